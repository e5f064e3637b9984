"""Who can be played: the owner and other people, never the agent or a bot; and several tabs at once."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from simplexmcp.core.api import ChatApi
from simplexmcp.errors import UserError
from simplexmcp.phone.server import Phone, serve_phone
from simplexmcp.sandbox.driver import trio_clock
from simplexmcp.sandbox.link import open_sandbox
from simplexmcp.sandbox.network import Network
from simplexmcp.web.serving import listen
from tests.phone.tabs import RefusedError
from tests.phone.world import HELD, a_bot, pair, phone

if TYPE_CHECKING:
    from pathlib import Path


async def started(nursery: trio.Nursery, network: Network, port: int | None) -> Phone:
    return await nursery.start(partial(serve_phone, network, held=HELD, port=port))


async def test_the_owner_is_offered_first_and_made_when_somebody_becomes_it() -> None:
    async with phone() as world, world.browser.tab() as tab:
        hello = tab.pushed[0]
        assert [(person["name"], person["kind"]) for person in hello["people"]] == [("owner", "owner")]
        assert hello["limits"]["file"] > 1_000_000
        became = await tab.ask("become", name="owner")
        assert became["person"]["label"] == "Owner"
        assert became["person"]["tabs"] == 1
        assert became["chats"] == []


async def test_a_new_name_is_a_new_person_and_the_same_name_later_the_same() -> None:
    async with phone() as world, world.browser.tab() as first, world.browser.tab() as second:
        bob = (await first.ask("become", name="Bob B"))["person"]
        assert (bob["name"], bob["label"], bob["kind"]) == ("bob-b", "Bob B", "person")
        await second.push("people", lambda push: any(person["name"] == "bob-b" for person in push["people"]))
        for name in ("bob-b", "Bob B"):
            again = (await second.ask("become", name=name))["person"]
            assert (again["name"], again["tabs"]) == ("bob-b", 2)


async def test_a_tab_that_becomes_another_or_is_closed_plays_no_more() -> None:
    async with phone() as world, world.browser.tab() as watching:

        def tabs(counts: dict[str, int]) -> bool:
            found = [push for push in watching.pushed if push["push"] == "people"]
            return bool(found) and {each["name"]: each["tabs"] for each in found[-1]["people"]} == counts

        async with world.browser.tab() as tab:
            await tab.ask("become", name="Ann")
            await watching.until(lambda: tabs({"owner": 0, "ann": 1}))
            await tab.ask("become", name="owner")
            await watching.until(lambda: tabs({"owner": 1, "ann": 0}))
        await watching.until(lambda: tabs({"owner": 0, "ann": 0}))


async def test_the_agents_own_core_can_never_be_played() -> None:
    async with phone() as world, world.browser.tab() as tab:
        for name in (HELD, "Agent", "AGENT"):
            with pytest.raises(RefusedError, match="not free"):
                await tab.ask("become", name=name)
        assert world.network.cores.get(HELD) is None


async def test_bots_are_not_offered_and_cannot_be_played() -> None:
    async with phone(population=True) as world, world.client("my-agent") as link:
        await a_bot(link, "My Agent")
        async with world.browser.tab() as tab:
            offered = {person["label"] for person in tab.pushed[0]["people"]}
            assert offered == {"Owner", "Mara", "Switchback", "Juniper", "Ridgeline"}
            for name in ("my-agent", "My Agent"):
                with pytest.raises(RefusedError, match="uses this name"):
                    await tab.ask("become", name=name)


async def test_a_name_that_another_program_connected_to_is_left_to_it() -> None:
    async with phone() as world, world.client("carol") as link, world.browser.tab() as tab:
        assert await ChatApi(link).active_user() is None
        with pytest.raises(RefusedError, match="uses this name"):
            await tab.ask("become", name="Carol")


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, 7, None, "a\0b", "half \ud800"])
async def test_a_name_that_is_none_is_refused_with_a_sentence(name: object) -> None:
    async with phone() as world, world.browser.tab() as tab:
        with pytest.raises(RefusedError, match=r"\.$"):
            await tab.ask("become", name=name)
        assert list(world.network.cores) == []


async def test_a_name_that_simplex_does_not_take_is_refused_with_one_that_it_takes() -> None:
    async with phone() as world, world.browser.tab() as tab:
        with pytest.raises(RefusedError, match='"Bob home" would do'):
            await tab.ask("become", name="Bob  /home")
        with pytest.raises(RefusedError, match="not free"):
            await tab.ask("become", name="../..")


async def test_who_lives_in_the_network_does_nothing_alone_while_somebody_plays_it() -> None:
    async with phone(population=True) as world, world.browser.tab("people.mara") as mara:
        assert [chat["name"] for chat in (await mara.ask("chats"))["chats"]] == ["Trail"]
        core = world.network.core("people.mara")
        assert core.played
        async with world.browser.tab("Ann") as ann:
            trail = next(place["link"] for place in ann.pushed[0]["places"] if place["name"] == "trail")
            await ann.joined(trail)
            await mara.see("Ann connected")
        # Her welcome would be on its way by now.
        assert not [one for one in world.network.queue if one.do == "act" and one.core == core.name]
        await mara.ask("become", name="owner")
        assert not core.played


async def test_another_program_on_the_core_gets_every_event_and_its_messages_are_seen() -> None:
    async with phone() as world, world.client("alice") as link:
        api = ChatApi(link)
        await api.create_user("Alice", "human")
        await api.start()
        async with world.browser.tab("Alice") as alice, world.browser.tab("Bob") as bob:
            mine, theirs = await pair(alice, bob)
            await bob.ask("send", chat=theirs, text="for both of you")
            await alice.see("for both of you")
            with trio.fail_after(10):
                async for event in link.events:
                    if event["type"] == "newChatItems" and "for both of you" in str(event):
                        break
            await api.send_text(mine, "from the other program")
            shown = await alice.see("from the other program")
            assert shown["mine"]
            await bob.see("from the other program")


async def test_a_core_that_nobody_else_listens_to_is_never_held_up() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        _mine, theirs = await pair(ann, bob)
        core = world.network.core("ann")
        core.queue_size = 5
        for number in range(20):
            await bob.ask("send", chat=theirs, text=f"message {number}")
        await ann.see("message 19")
        assert len(core._kept) == 5


async def test_people_and_their_chats_stay_with_the_state_file(tmp_path: Path) -> None:
    state = tmp_path / "network.json"
    for run in (1, 2):
        async with (
            open_sandbox(state, HELD, population=False) as link,
            phone(network=link.network) as world,
            world.browser.tab() as tab,
        ):
            if run == 1:
                await tab.ask("become", name="Ann")
                chat = (await tab.ask("group", name="Hikers"))["chat"]
                sent = await world.browser.upload("a.txt", b"kept")
                item = (await tab.ask("send", chat=chat, text="note", upload=sent["upload"]))["item"]
            assert "Ann" in [person["label"] for person in (await tab.ask("people"))["people"]]
            await tab.ask("become", name="Ann")
            (note,) = [each for each in (await tab.ask("open", chat=chat))["items"] if each["id"] == item]
            assert (await world.browser.http.get(note["file"]["url"])).content == b"kept"


async def test_the_usual_port_is_taken_when_it_is_free_and_another_when_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = Network(trio_clock(), population=False)
    with listen(0) as one:
        usual = one.getsockname()[1]
    monkeypatch.setattr("simplexmcp.phone.server.PORT", usual)
    async with trio.open_nursery() as nursery:
        first = await started(nursery, network, None)
        assert (first.port, first.moved) == (usual, False)
        second = await started(nursery, network, None)
        assert second.port != usual
        assert second.line().startswith(f"Phone (a simulation, on a free port, as {usual} is taken): http://127.0.0.1:")
        chosen = await started(nursery, network, 0)
        assert chosen.line().startswith("Phone (a simulation): ")
        nursery.cancel_scope.cancel()


async def test_a_port_that_was_asked_for_and_is_taken_is_an_error_that_names_the_option() -> None:
    with listen(0) as taken, pytest.raises(UserError, match="--phone-port"):
        await serve_phone(Network(trio_clock(), population=False), held=HELD, port=taken.getsockname()[1])


def test_the_address_for_joining_has_the_link_filled_in() -> None:
    shown = Phone(5231, "secret").line("https://smp.example/g#K?h=a,b&c=d")
    address = "http://127.0.0.1:5231/join?link=https%3A%2F%2Fsmp.example%2Fg%23K%3Fh%3Da%2Cb%26c%3Dd&token=secret"
    assert shown == f"Phone (a simulation): {address}"
    assert Phone(5231, "secret").url() == "http://127.0.0.1:5231/?token=secret"
