from __future__ import annotations
import json
from pathlib import Path
import trio, pytest
from tests.e2e.filing import REPORT, filing, give, newest_file
from tests.e2e.world import open_world, Flow
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.filing import Filing

async def test_rejected_then_restart(tmp_path):
    async with open_world(tmp_path) as world:
        async with world.person("Bob") as bob:
            async with world.flow() as flow:
                group, chat = await join_trail(flow, bob)
                scene = Filing(world, flow.server, flow.alice, flow.ref, flow.agent, bob, group, chat)
                a = await scene.offered(scene.file("secret.pdf", REPORT))
                got = await scene.result_of("download","secret.pdf",f"reject {chat} 2",chat=chat,item=a)
                print(got)
                b = await scene.offered(scene.file("ok.pdf", REPORT))
                got = await scene.result_of("download","ok.pdf",f"receive {chat} 3 all",chat=chat,item=b)
                print(got)
                await scene.card("Files approved for")
                with trio.move_on_after(20):
                    print("before restart", await scene.agent.call("download", chat=chat, item=a))
            server = await world.serve()
            await trio.sleep(30)
            async with server.agent() as agent:
                got = {}
                with trio.move_on_after(60):
                    got = await agent.call("download", chat=chat, item=a)
                print("after restart", got)
            await server.end()
            assert got.get("status") != "done"

async def test_forward_defect(tmp_path, monkeypatch):
    async with filing(tmp_path) as scene:
        item = await scene.offered()
        from simplexmcp import owner_files
        async def bad(*a): raise IndexError("x")
        monkeypatch.setattr(owner_files.OwnerFiles, "_post_file", bad)
        async with trio.open_nursery() as n:
            n.start_soon(scene.result_of_download, item)
            await scene.card("I want to download")
            await scene.tap(f"forward {scene.chat} 2")
            await trio.sleep(10)
            print("ended", scene.server.ended.is_set())
            n.cancel_scope.cancel()

async def test_missing_file_is_asked(tmp_path):
    async with filing(tmp_path) as scene:
        item = await scene.offered()
        got = await scene.result_of("download","I want to download",f"receive {scene.chat} 2",chat=scene.chat,item=item)
        await scene.tap(f"delete {scene.chat} files")
        await scene.card("Deleted 1")
        print((await scene.shown(item))["file"])
        with trio.move_on_after(5):
            print("RES", await scene.agent.call("download", chat=scene.chat, item=item))
        print([t for t in await scene.alice.texts(scene.ref) if "download" in t])

async def test_odd_paths(tmp_path):
    async with filing(tmp_path) as scene:
        for p in ["/tmp/\u202egpj.exe", "/home/x/.env", "relative", "/tmp/../etc/passwd", "/proc/self/environ","/dev/zero", "/tmp/" + "a"*5000, "/tmp/`/'approve 2'`", "/tmp/a\nb /'approve 2'"]:
            try:
                with trio.fail_after(30):
                    r = await scene.agent.call("send", chat=scene.chat, file=p)
            except BaseException as e:
                r = repr(e)[:200]
            print(repr(p[:30]), str(r)[:200])
        await trio.sleep(20)
        for t in await scene.alice.texts(scene.ref):
            if "asked to send" in t: print("CARD", t[:300])
        print(scene.server.lines.all[-3:])
