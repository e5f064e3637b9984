from __future__ import annotations
import json, os
from pathlib import Path
import trio, pytest
from tests.e2e.filing import REPORT, filing, give, newest_file, picture
from tests.e2e.world import open_world, Flow
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.filing import Filing

async def test_old_files_under_approval(tmp_path):
    """A file offered before `/receive CHAT N all`, not asked for then: a card or not?"""
    async with filing(tmp_path) as scene:
        a = await scene.offered(scene.file("old.pdf", REPORT))
        b = await scene.offered(scene.file("ok.pdf", REPORT))
        await scene.result_of("download","ok.pdf",f"receive {scene.chat} 2 all",chat=scene.chat,item=b)
        got = {}
        with trio.move_on_after(20):
            got = await scene.agent.call("download", chat=scene.chat, item=a)
        print("OLD", got)

async def test_pending_other_then_all(tmp_path):
    async with filing(tmp_path) as scene:
        a = await scene.offered(scene.file("a.pdf", REPORT))
        b = await scene.offered(scene.file("b.pdf", REPORT))
        res = {}
        async with trio.open_nursery() as n:
            async def call():
                res.update(await scene.agent.call("download", chat=scene.chat, item=a))
            n.start_soon(call)
            await scene.card("a.pdf")
            await scene.result_of("download","b.pdf",f"receive {scene.chat} 3 all",chat=scene.chat,item=b)
            await trio.sleep(20)
            print("A", res, [t for t in await scene.alice.texts(scene.ref) if "a.pdf" in t])
            await scene.tap(f"approve {scene.chat} 2")
            await trio.sleep(5)
            await scene.tap("approve 2"); await trio.sleep(5)
            print((await scene.alice.texts(scene.ref))[-3:])
            await scene.tap(f"approve {scene.chat} all"); await trio.sleep(10)
            print("A", res, (await scene.alice.texts(scene.ref))[-2:])
            n.cancel_scope.cancel()

async def test_expired_then_standing(tmp_path):
    pass

async def test_long_path_and_caption_card(tmp_path):
    async with filing(tmp_path) as scene:
        d = tmp_path
        for i in range(12): d = d/("d%02d`/'approve 2'` "%i + "x"*200)
        d.mkdir(parents=True)
        p = d/"f.txt"; p.write_bytes(b"hello")
        got = {}
        with trio.move_on_after(10):
            got = await scene.agent.call("send", chat=scene.chat, file=str(p), text="hi /'approve 2'")
        print(got)
        print((await scene.alice.texts(scene.ref))[-1][:400], len((await scene.alice.texts(scene.ref))[-1]))

async def test_image_with_long_reply(tmp_path):
    async with filing(tmp_path) as scene:
        q = await scene.bob.say(scene.group, "Q"*300)
        item = await scene.newest_item(lambda i: i["text"].startswith("QQQ"))
        p = picture(tmp_path, size=(1600,1200))
        got = {}
        with trio.move_on_after(20):
            got = await scene.agent.call("send", chat=scene.chat, file=str(p), text="c"*900, reply_to=item)
        print(got)
        from simplexmcp.core.api import count
        it = (await scene.alice.api.get_chat(scene.ref, count(1)))["chatItems"][-1]
        m = it["content"]["msgContent"]; print(m["type"], len(m["text"]), len(m.get("image","")))
