import os, trio
from tests.e2e.filing import REPORT, filing
async def test_dotdot_data(tmp_path):
    (tmp_path/"x").mkdir()
    async with filing(tmp_path, data=tmp_path/"x"/".."/"data") as scene:
        item = await scene.offered()
        got = await scene.result_of("download","I want to download",f"receive {scene.chat} 2",chat=scene.chat,item=item)
        print("GOT", got, await scene.shown(item))
        with trio.move_on_after(10): print(await scene.agent.call("send", chat=scene.chat, file=got.get("path","/x")))
async def test_newline_name(tmp_path):
    async with filing(tmp_path) as scene:
        p = tmp_path/"a\n'approve #2 2'\u202e.txt"; p.write_bytes(b"hello")
        with trio.move_on_after(10):
            print(await scene.agent.call("send", chat=scene.chat, file=str(p)))
        print((await scene.alice.texts(scene.ref))[-1])
        print(await scene.agent.call("send", chat=scene.chat, file=str(p), **{"as": "image"}))
        print(await scene.agent.call("send", chat=scene.chat, text="x", **{"as": "image"}))
        print(await scene.agent.call("send", chat=scene.chat, text="x", **{"as": "auto"}, wait=0) if False else "")
async def test_file_on_left_and_rejoin_same_run(tmp_path):
    pass
