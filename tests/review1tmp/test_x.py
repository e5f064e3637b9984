from __future__ import annotations
import json
from pathlib import Path
import trio, pytest
from tests.e2e.filing import REPORT, filing, give, newest_file
from tests.e2e.world import open_world, Flow
from tests.e2e.test_flow_04_send import join_trail
from tests.e2e.filing import Filing

async def test_symlinked_grandparent(tmp_path):
    (tmp_path/"real"/"sub").mkdir(parents=True)
    (tmp_path/"link").symlink_to(tmp_path/"real")
    async with filing(tmp_path, data=tmp_path/"link"/"sub"/"data") as scene:
        item = await scene.offered()
        got = await scene.result_of("download","I want to download",f"receive {scene.chat} 2",chat=scene.chat,item=item)
        print("GOT", got)
        sent = {}
        with trio.move_on_after(30):
            sent = await scene.agent.call("send", chat=scene.chat, file=got["path"], wait=0)
        print("SENT", sent)
        assert "error" not in sent

async def test_chat_changes_while_copied(tmp_path, monkeypatch):
    from simplexmcp.tools import attaching
    real = attaching.private_copy
    async with filing(tmp_path) as scene:
        async def slow(offer, folders):
            copy = await real(offer, folders)
            number = int(scene.group[1:])
            r = await scene.bob.api.link.send(f'/_group_profile #{number} ' + json.dumps({"displayName":"Evil","fullName":""}))
            # until the agent's core has it
            with trio.fail_after(60):
                while not any(c["name"] == "Evil" for c in (await scene.agent.call("list"))["chats"]):
                    await trio.sleep(0.5)
            return copy
        monkeypatch.setattr(attaching, "private_copy", slow)
        got = await scene.result_of("send","I want to send",f"approve {scene.chat} 2",chat=scene.chat,file=str(scene.file()))
        print("GOT", got)
        assert got["status"] == "failed"

async def test_old_folder_after_restart(tmp_path):
    async with open_world(tmp_path) as world:
        async with world.person("Bob") as bob:
            async with world.flow() as flow:
                group, chat = await join_trail(flow, bob)
                scene = Filing(world, flow.server, flow.alice, flow.ref, flow.agent, bob, group, chat)
                item = await scene.offered()
                got = await scene.result_of("download","I want to download",f"receive {chat} 2",chat=chat,item=item)
                print("GOT", got)
                await scene.tap(f"leave {chat}")
                await scene.card("are kept in")
            # the server is down; the agent's core joins another group
            async with world.person("Agent") as core:
                group2, link2 = await bob.make_group("Other")
                try:
                    ref2 = await core.join(link2)
                finally:
                    print("NEW", await core.api.list_groups() and [ (g["groupId"], g["groupProfile"]["displayName"]) for g in await core.api.list_groups()])
            server = await world.serve()
            await trio.sleep(30)
            data = tmp_path/"data"/"files"
            print(sorted(str(p.relative_to(data)) for p in data.rglob("*")))
            # a new file in the new chat
            await server.end()
            assert ref2 != chat or not (data/f"group-{chat[1:]}").exists()
