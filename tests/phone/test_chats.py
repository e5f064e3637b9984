"""What people do to each other on the page: writing, editing, groups, roles, live messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.phone.tabs import RefusedError, Tab, shown
from tests.phone.world import group, pair, phone


async def last_state(tab: Tab, item: int, wanted: Any) -> dict[str, Any]:
    """An item once it is as wanted."""
    push = await tab.push("item", lambda push: push["item"]["id"] == item and wanted(push["item"]))
    return push["item"]


async def test_two_people_write_to_each_other() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        mine, theirs = await pair(ann, bob)
        item = (await ann.ask("send", chat=mine, text="*Hello* Bob"))["item"]
        got = await bob.see("Hello Bob")
        assert got["sender"] == {"name": "Ann"}
        assert got["unread"]
        chat = (await bob.push("chat", lambda push: push["chat"]["unread"] == 1))["chat"]
        assert chat["last"] == {"text": "Hello Bob"}
        await last_state(ann, item, lambda shown: shown["status"]["mark"] == "received")
        await bob.ask("read", chat=theirs)
        await bob.push("chat", lambda push: push["chat"]["unread"] == 0 and push["chat"].get("last"))
        await bob.ask("send", chat=theirs, text="Hello Ann", quote=got["id"])
        answer = await ann.see("Hello Ann")
        assert answer["quote"] == {"name": "you", "text": "*Hello* Bob", "item": item}


@pytest.mark.parametrize(
    ("place", "line"), [("@directory.simplex", "Welcome!"), ("@echo.simplex", "I repeat"), ("trail", "Welcome, Ann")]
)
async def test_the_list_shows_the_newest_line_of_a_chat_that_is_shown_in_it(place: str, line: str) -> None:
    async with phone(population=True) as world, world.browser.tab("Ann") as ann:
        places = {each["name"]: each["link"] for each in (await ann.ask("people"))["places"]}
        ref = await ann.joined(places[place])
        await ann.see(line, chat=ref)

        def shown_in_list(push: dict[str, Any]) -> bool:
            return push["chat"]["chat"] == ref and line in push["chat"].get("last", {}).get("text", "")

        await ann.push("chat", shown_in_list)
        (newest,) = (await ann.ask("chats"))["chats"]
        assert line in newest["last"]["text"]


async def test_several_tabs_of_one_person_see_the_same() -> None:
    async with phone() as world, world.browser.tab("Ann") as one, world.browser.tab("Ann") as two:
        (ref,) = await group(one)
        await one.ask("send", chat=ref, text="to myself")
        seen = [await tab.see("to myself") for tab in (one, two)]
        assert seen[0] == seen[1]
        await two.ask("edit", chat=ref, item=seen[0]["id"], text="changed")
        for tab in (one, two):
            assert (await tab.see("changed"))["edited"]


async def test_an_edit_is_seen_and_a_deletion_leaves_a_mark() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        mine, theirs = await pair(ann, bob)
        item = (await ann.ask("send", chat=mine, text="first"))["item"]
        there = (await bob.see("first"))["id"]
        await ann.ask("edit", chat=mine, item=item, text="second")
        edited = await bob.see("second")
        assert (edited["id"], edited["edited"]) == (there, True)
        await ann.ask("delete", chat=mine, item=item, everyone=True)
        gone = await last_state(bob, there, lambda shown: "deleted" in shown)
        assert (gone["deleted"], gone["text"], gone["parts"]) == ("deleted", "", [])
        with pytest.raises(RefusedError, match="cannot be edited"):
            await ann.ask("edit", chat=mine, item=item, text="third")
        await bob.ask("delete", chat=theirs, item=there, everyone=False)
        assert (await bob.push("gone"))["items"] == [there]


async def test_a_live_message_grows_until_it_is_finished() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        mine, _ = await pair(ann, bob)
        item = (await ann.ask("send", chat=mine, text="I am", live=True))["item"]
        assert (await bob.see("I am"))["live"]
        await ann.ask("edit", chat=mine, item=item, text="I am typing", live=True)
        assert (await bob.see("I am typing"))["live"]
        await ann.ask("edit", chat=mine, item=item, text="I am typing.")
        done = await bob.see("I am typing.")
        assert "live" not in done
        assert "edited" not in done


async def test_who_joins_a_group_is_a_member_with_a_role_that_the_owner_changes() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        ours, theirs = await group(ann, bob, role="observer")
        chat = next(each for each in (await bob.ask("chats"))["chats"] if each["chat"] == theirs)
        assert (chat["role"], chat["cannot"]) == ("observer", "Observers can only read here.")
        with pytest.raises(RefusedError, match="role"):
            await bob.ask("send", chat=theirs, text="may I?")
        await ann.ask("send", chat=ours, text="hello all")
        got = await bob.see("hello all")
        assert got["can"] == {}
        members = (await ann.ask("members", chat=ours))["members"]
        assert [(each["name"], each["role"], each["me"]) for each in members] == [
            ("Ann", "owner", True),
            ("Bob", "observer", False),
        ]
        assert members[1]["removable"]
        assert not members[0]["removable"]
        await ann.ask("role", chat=ours, member=members[1]["member"], role="admin")
        await bob.push("chat", lambda push: push["chat"].get("role") == "admin" and "cannot" not in push["chat"])
        assert (await last_state(bob, got["id"], lambda shown: shown["can"]))["can"] == {"reply": True}
        await bob.push("members", lambda push: push["chat"] == theirs)
        await bob.see("Ann changed your role to admin")


async def test_a_member_who_is_removed_or_leaves_reads_why_nothing_can_be_written() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        ours, theirs = await group(ann, bob)
        (_, member) = (await ann.ask("members", chat=ours))["members"]
        await ann.ask("remove", chat=ours, member=member["member"])
        gone = (await bob.push("chat", lambda push: push["chat"]["state"] == "removed"))["chat"]
        assert gone["cannot"] == "You are not a member of this group any more."
        await bob.ask("forget", chat=theirs)
        await bob.push("forgotten", lambda push: push["chat"] == theirs)
        assert [each["name"] for each in (await ann.ask("members", chat=ours))["members"]] == ["Ann"]
        with pytest.raises(RefusedError, match="Leave"):
            await ann.ask("forget", chat=ours)
        await ann.ask("leave", chat=ours)
        await ann.push("chat", lambda push: push["chat"]["state"] == "left")
        with pytest.raises(RefusedError, match="not in this group"):
            await ann.ask("leave", chat=ours)


async def test_a_moderator_deletes_the_messages_of_others() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        ours, theirs = await group(ann, bob)
        await bob.ask("send", chat=theirs, text="spam")
        item = (await ann.see("spam"))["id"]
        await ann.ask("delete", chat=ours, item=item, everyone=True)
        mine = await last_state(ann, item, lambda shown: "deleted" in shown)
        assert mine["deleted"].startswith("deleted")
        there = await bob.push("item", lambda push: push["item"].get("deleted"))
        assert there["item"]["deleted"] == "deleted by Ann"


async def test_a_mention_reaches_who_is_meant() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob B") as bob:
        ours, _ = await group(ann, bob)
        (me, him) = (await ann.ask("members", chat=ours))["members"]
        assert him["mention"] == "@'Bob B'"
        text = f"look, {him['mention']}"
        sent = (await ann.ask("send", chat=ours, text=text, mentions={him["name"]: him["memberId"]}))["item"]
        got = await bob.see("look, ")
        assert got["mentionsMe"]
        assert {"kind": "mention", "text": "@Bob B", "me": True} in got["parts"]
        await ann.ask("edit", chat=ours, item=sent, text=f"{text}!", mentions={him["name"]: him["memberId"]})
        assert (await bob.see("!"))["mentions"] == {"Bob B": him["memberId"]}
        with pytest.raises(RefusedError, match="not in the text"):
            await ann.ask("send", chat=ours, text="*nobody*", mentions={"Ann": me["memberId"]})
        with pytest.raises(RefusedError, match="not in this group"):
            await ann.ask("send", chat=ours, text="@x", mentions={"x": "no such member"})


async def test_commands_are_tappable_with_a_bot_and_in_a_group_with_a_menu_only() -> None:
    async with phone(population=True) as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        directory = next(place["link"] for place in ann.pushed[0]["places"] if "directory" in place["name"])
        bot = await ann.joined(directory)
        welcome = await ann.see("Send me a word", chat=bot)
        assert ann.commands(welcome) == ["/help"]
        chat = next(each for each in (await ann.ask("chats"))["chats"] if each["chat"] == bot)
        assert chat["kind"] == "bot"
        assert [entry.get("send") for entry in chat["menu"]] == ["/help", "/all"]
        await ann.ask("send", chat=bot, text=ann.commands(welcome)[0])
        assert ann.commands(await ann.see("I list the groups whose", chat=bot)) == ["/all"]
        mine, _ = await group(ann, bob)
        await ann.ask("send", chat=mine, text="now\n/'approve 7'")
        plain = await bob.see("approve 7")
        assert bob.commands(plain) == []
        assert shown(plain) == "now\n/'approve 7'"


async def test_a_menu_that_is_added_makes_the_commands_of_earlier_messages_tappable() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        ours, theirs = await group(ann, bob)
        await ann.ask("send", chat=ours, text="now\n/'approve 7'")
        item = (await bob.see("approve 7"))["id"]
        core = world.network.core("ann")
        menu = [{"type": "command", "keyword": "pending", "label": "Pending"}]
        profile = {"displayName": "Hikers", "fullName": "", "groupPreferences": {"commands": menu}}
        assert core.command(f"/_group_profile {ours} {json.dumps(profile)}")["type"] == "groupUpdated"
        changed = await last_state(bob, item, lambda shown: any(part["kind"] == "command" for part in shown["parts"]))
        assert bob.commands(changed) == ["/approve 7"]
        push = await bob.push("chat", lambda push: push["chat"]["chat"] == theirs and push["chat"]["menu"])
        assert push["chat"]["menu"] == [{"label": "Pending", "send": "/pending"}]


async def test_a_long_chat_is_read_page_by_page_in_both_directions() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann:
        (ref,) = await group(ann)
        ids = [(await ann.ask("send", chat=ref, text=f"message {n}"))["item"] for n in range(30)]
        end = await ann.ask("open", chat=ref, count=10)
        assert [item["id"] for item in end["items"]] == ids[20:]
        assert (end["older"], end["newer"]) == (True, False)
        before = await ann.ask("open", chat=ref, count=10, before=ids[20])
        assert [item["id"] for item in before["items"]] == ids[10:20]
        middle = await ann.ask("open", chat=ref, count=10, around=ids[15])
        assert [item["id"] for item in middle["items"]] == ids[10:21]
        assert (middle["older"], middle["newer"]) == (True, True)
        start = await ann.ask("open", chat=ref, count=20, before=ids[10])
        assert [item["id"] for item in start["items"]] == ids[:10]
        assert [item["order"] for item in end["items"]] == sorted(item["order"] for item in end["items"])


async def test_a_plan_says_what_a_link_is_before_anything_is_joined() -> None:
    async with phone(population=True) as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        places = {place["name"]: place["link"] for place in ann.pushed[0]["places"]}
        plan = await ann.ask("plan", link=f"  {places['trail']}\n")
        assert (plan["kind"], plan["name"], plan["can"]) == ("group", "Trail", True)
        assert plan["about"] == "Hiking in the hills"
        assert (await ann.ask("plan", link="@directory.simplex"))["kind"] == "bot"
        assert (await ann.ask("plan", link=places["@ridgeline.simplex"]))["kind"] == "business"
        assert (await ann.ask("chats"))["chats"] == []
        own = (await ann.ask("address"))["link"]
        assert not (await ann.ask("plan", link=own))["can"]
        assert (await ann.ask("address"))["link"] == own
        joined = await ann.joined(places["trail"])
        again = await ann.ask("plan", link=places["trail"])
        assert (again["can"], again["chat"]) == (False, joined)
        with pytest.raises(RefusedError, match="already"):
            await ann.ask("join", link=places["trail"])
        one_link = (await bob.ask("address"))["link"]
        assert (await ann.ask("plan", link=one_link))["name"] == "Bob"


async def test_names_businesses_and_full_links_are_joined_like_any_other() -> None:
    async with phone(population=True) as world, world.browser.tab("Ann") as ann:
        await ann.joined("@echo.simplex")
        business = await ann.joined("@ridgeline.simplex")
        kinds = {chat["chat"]: chat["kind"] for chat in (await ann.ask("chats"))["chats"]}
        assert kinds[business] == "business"
        full = world.network.directory()["trail"]["full"]
        answer = await ann.ask("join", link=full)
        assert "chat" not in answer
        await ann.push("chat", lambda push: push["chat"]["name"] == "Trail" and push["chat"]["state"] == "connected")


@pytest.mark.parametrize("link", ["", "x", "https://example.com/g#nothing", "two words", "@nobody.simplex", "#"])
async def test_what_is_no_link_or_leads_nowhere_is_refused_with_a_sentence(link: str) -> None:
    async with phone() as world, world.browser.tab("Ann") as ann:
        for do in ("plan", "join"):
            with pytest.raises(RefusedError, match=r"\.$"):
                await ann.ask(do, link=link)
        assert (await ann.ask("chats"))["chats"] == []


async def test_a_link_comes_with_a_code_to_scan_and_its_role_can_change() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann:
        (ref,) = await group(ann)
        first = await ann.ask("link", chat=ref)
        assert first["qr"].startswith("data:image/png;base64,")
        again = await ann.ask("link", chat=ref, role="observer")
        assert again["link"] == first["link"]
        with pytest.raises(RefusedError, match="member or an observer"):
            await ann.ask("link", chat=ref, role="owner")


async def test_a_conversation_with_the_admins_is_a_chat_of_its_own_on_both_sides() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        ours, theirs = await group(ann, bob, role="observer")
        message = [{"msgContent": {"type": "text", "text": "a word in private"}}]
        sent = world.network.core("bob").command(f"/_send {theirs}(_support) json {json.dumps(message)}")
        assert sent["type"] == "newChatItems"
        scoped = await ann.push("chat", lambda push: "(_support" in push["chat"]["chat"] and push["chat"]["unread"])
        assert (scoped["chat"]["name"], scoped["chat"]["unread"]) == ("Hikers: Bob", 1)
        ref = scoped["chat"]["chat"]
        assert [shown(item) for item in (await ann.ask("open", chat=ref))["items"]] == ["a word in private"]
        assert "a word in private" not in [shown(item) for item in (await ann.ask("open", chat=ours))["items"]]
        await ann.ask("send", chat=ref, text="an answer in private")
        await bob.see("an answer in private", chat=f"{theirs}(_support)")
        await ann.ask("read", chat=ref)
        await ann.push("chat", lambda push: push["chat"]["chat"] == ref and push["chat"]["unread"] == 0)
        own = next(each for each in (await bob.ask("chats"))["chats"] if "(" in each["chat"])
        assert own["name"] == "Hikers: the admins"
        assert "cannot" not in own
        with pytest.raises(RefusedError, match="goes with it"):
            await ann.ask("forget", chat=ref)


async def test_a_contact_that_is_forgotten_is_told() -> None:
    async with phone() as world, world.browser.tab("Ann") as ann, world.browser.tab("Bob") as bob:
        mine, _ = await pair(ann, bob)
        await ann.ask("forget", chat=mine)
        await ann.push("forgotten", lambda push: push["chat"] == mine)
        gone = (await bob.push("chat", lambda push: push["chat"]["state"] == "deleted"))["chat"]
        assert gone["cannot"] == "This contact deleted the chat with you."
