import trio
from tests.e2e.filing import REPORT, filing
async def test_many_unknown_servers(tmp_path):
    async with filing(tmp_path) as scene:
        pass
async def test_rename_of_sender(tmp_path):
    async with filing(tmp_path) as scene:
        item = await scene.offered()
        res = {}
        async with trio.open_nursery() as n:
            async def call(): res.update(await scene.agent.call("download", chat=scene.chat, item=item))
            n.start_soon(call)
            print(await scene.card("I want to download"))
            u = await scene.bob.api.active_user()
            try:
                await scene.bob.api.link.send(f'/_profile {u["userId"]} ' + '{"displayName":"Alice","fullName":""}')
                await scene.bob.say(scene.group, "now renamed")
                await trio.sleep(20)
                h = (await scene.agent.call("history", chat=scene.chat))["messages"][-1]; print(h["from"])
            except Exception as e: print(repr(e)[:200])
            await scene.tap(f"receive {scene.chat} 2")
        print(res)
        print([t for t in await scene.alice.texts(scene.ref) if "download" in t])
