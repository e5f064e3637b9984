import trio
from tests.e2e.filing import REPORT, filing
from tests.e2e.world import open_world
# uploads left after a contact/group is deleted by the OTHER side; link lost between send
async def test_news_is_lost_with_the_link(tmp_path):
    from simplexmcp.errors import LinkLost
    from simplexmcp.owner_files import OwnerNews
    from simplexmcp import cards
    lines = []; n = 0
    async def post(card):
        nonlocal n; n += 1
        raise LinkLost("link/down", "down")
    news = OwnerNews(post, lines.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(news.run); news.failed("The file was not sent")
        await trio.sleep(100); print("posts tried", n, lines); nursery.cancel_scope.cancel()

async def test_all_from_support(tmp_path):
    pass

async def test_files_approval_of_send(tmp_path):
    """`/receive all` never carries a send with a file, `/approve all` never a download"""
    async with filing(tmp_path) as scene:
        a = await scene.offered(scene.file("a.pdf", REPORT))
        await scene.result_of("download","a.pdf",f"receive {scene.chat} 2 all",chat=scene.chat,item=a)
        for kw in ({"file": str(scene.file("z.txt", b"hello"))}, {"text": "x"}):
            with trio.move_on_after(10):
                print(await scene.agent.call("send", chat=scene.chat, **kw)); 
        print([(x["action"], x["state"]) for x in (await scene.agent.call("list"))["actions"]])
        await scene.tap(f"receive {scene.chat} off"); await scene.card("need approval again")
        await scene.tap(f"approve {scene.chat} all"); await trio.sleep(10)
        b = await scene.offered(scene.file("b.pdf", REPORT))
        with trio.move_on_after(10):
            print(await scene.agent.call("download", chat=scene.chat, item=b))
        print([(x["action"], x["state"]) for x in (await scene.agent.call("list"))["actions"]])

async def test_send_with_newline_path(tmp_path):
    async with filing(tmp_path) as scene:
        p = tmp_path/"a\n/approve #2 2\n.txt"; p.write_bytes(b"hello")
        with trio.move_on_after(10):
            print(await scene.agent.call("send", chat=scene.chat, file=str(p)))
        print((await scene.alice.texts(scene.ref))[-1])
        with trio.move_on_after(10):
            print(await scene.agent.call("send", chat=scene.chat, file=str(p), **{"as": "image"}))
        with trio.move_on_after(10):
            print(await scene.agent.call("send", chat=scene.chat, text="x", **{"as": "image"}))
