import pytest
from trio.testing import MockClock
from tests.e2e.stack import open_stack
@pytest.fixture(autouse=True)
def fast_clock(): return MockClock()
async def test_try(tmp_path, fast_clock):
    async with open_stack(tmp_path, fast_clock) as s:
        await s.start()
        ev=[]
        s.network.core("agent").react(ev.append)
        r=s.person("Robo",bot=True)
        await s.owner(r)
        for e in ev:
            m=e.get("member") or e.get("toMember") or {}
            print(e["type"], m.get("memberProfile"), m.get("memberStatus"))
        print(s.lines)
        print(s.control.members)
        print([x.text[:80] for x in s.sent][-12:])
