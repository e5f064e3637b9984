"""The commands of `ChatApi`, byte for byte as a real core was seen to take them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simplexmcp.core.api import ChatApi, after, around, before, count, initial
from simplexmcp.errors import CoreError, Refused
from tests.core.fakes import ScriptedLink, examples

EXAMPLES = examples()
ASK = json.loads


def _json_tail(command: str) -> Any:
    return ASK(command[command.index(" {") + 1 :])


def _link(command: str) -> dict[str, str]:
    """The pair of links in a recorded command."""
    words = [w for w in command.split(" ") if w.startswith(("simplex:/", "https://"))]
    return dict(zip(("connFullLink", "connShortLink"), words, strict=False))


def _sent_text(command: str) -> str:
    return ASK(command[command.index("json ") + 5 :])[0]["msgContent"]["text"]


# Name of the example -> the call that makes its command, and where its result is in the response.
CALLS: dict[str, tuple[Any, Any]] = {
    "version": (lambda api, _: api.version(), lambda r: r["versionInfo"]["version"]),
    "user": (lambda api, _: api.active_user(), lambda r: r["user"]),
    "no_user": (lambda api, _: api.active_user(), lambda _: None),
    "create_user": (lambda api, _: api.create_user("My Agent"), lambda r: r["user"]),
    "users": (lambda api, _: api.list_users(), lambda r: r["users"]),
    "network": (lambda api, _: api.set_network(), lambda r: r["networkConfig"]),
    "temp_folder": (lambda api, _: api.set_temp_folder("/srv/agent/tmp"), lambda _: None),
    "start": (lambda api, _: api.start(), lambda _: True),
    "start_again": (lambda api, _: api.start(), lambda _: False),
    "servers": (lambda api, _: api.user_servers(), lambda r: r["userServers"]),
    "smp": (lambda api, c: api.set_smp_servers(c.split(" ")[1:]), lambda _: None),
    "xftp": (lambda api, c: api.set_xftp_servers(c.split(" ")[1:]), lambda _: None),
    "groups": (lambda api, _: api.list_groups(), lambda r: r["groups"]),
    "contacts": (lambda api, _: api.list_contacts(), lambda r: r["contacts"]),
    "chats": (lambda api, _: api.list_chats(3), lambda r: r["chats"]),
    "new_group": (lambda api, c: api.new_group(_json_tail(c)), lambda r: r["groupInfo"]),
    "group_profile": (lambda api, c: api.update_group_profile(1, _json_tail(c)), lambda r: r["toGroup"]),
    "custom_group": (lambda api, c: api.set_custom("#1", _json_tail(c)), lambda _: None),
    "custom_contact": (lambda api, c: api.set_custom("@4", _json_tail(c)), lambda _: None),
    "custom_clear": (lambda api, _: api.set_custom("#1", None), lambda _: None),
    "members": (lambda api, _: api.list_members(2), lambda r: (r["group"]["groupInfo"], r["group"]["members"])),
    "create_link": (lambda api, _: api.create_group_link(1, "member"), lambda r: r["groupLink"]),
    "create_link_observer": (lambda api, _: api.create_group_link(1, "observer"), lambda r: r["groupLink"]),
    "get_link": (lambda api, _: api.get_group_link(1), lambda r: r["groupLink"]),
    "no_link": (lambda api, _: api.get_group_link(1), lambda _: None),
    "delete_link": (lambda api, _: api.delete_group_link(3), lambda _: True),
    "no_link_to_delete": (lambda api, _: api.delete_group_link(1), lambda _: False),
    "role": (lambda api, _: api.set_member_role(1, 2, "owner"), lambda r: r["members"]),
    "remove": (lambda api, _: api.remove_member(1, 4), lambda r: r["members"]),
    "plan": (lambda api, c: api.connect_plan(c.split(" ")[3]), lambda r: r),
    "prepare_contact": (lambda api, c: api.prepare_contact(_link(c), _json_tail(c)), lambda r: r["chat"]),
    "prepare_group": (lambda api, c: api.prepare_group(_link(c), _json_tail(c)), lambda r: r["chat"]),
    "prepare_channel": (
        lambda api, c: api.prepare_group(_link(c), _json_tail(c), direct=False),
        lambda r: r["chat"],
    ),
    "connect_contact": (lambda api, _: api.connect_contact(5, incognito=False), lambda r: r),
    "connect_contact_incognito": (lambda api, _: api.connect_contact(4, incognito=True), lambda r: r),
    "connect_contact_message": (lambda api, _: api.connect_contact(5, False, "hello Bob"), lambda r: r),
    "connect_group_plain": (lambda api, _: api.connect_group(1, None), lambda r: r),
    "connect_group": (lambda api, _: api.connect_group(6, False), lambda r: r),
    "connect_business_message": (lambda api, _: api.connect_group(5, False, "a question"), lambda r: r),
    "connect_link": (lambda api, c: api.connect_link(_link(c), False), lambda r: r),
    "connect_invitation": (lambda api, c: api.connect_link(_link(c), False), lambda r: r),
    "connect_card": (lambda api, _: api.connect_via_address(2, False), lambda r: r["contact"]),
    "delete_contact": (lambda api, _: api.delete_chat("@6"), lambda _: None),
    "delete_contact_quietly": (lambda api, _: api.delete_chat("@5", notify=False), lambda _: None),
    "delete_group": (lambda api, _: api.delete_chat("#4"), lambda _: None),
    "delete_pending": (lambda api, _: api.delete_pending(6), lambda _: None),
    "leave": (lambda api, _: api.leave_group(1), lambda r: r["groupInfo"]),
    "get_count": (lambda api, _: api.get_chat("@1", count(2)), lambda r: r["chat"]),
    "get_after": (lambda api, _: api.get_chat("#1", after(23, 3)), lambda r: r["chat"]),
    "get_before": (lambda api, _: api.get_chat("@4", before(148, 2)), lambda r: r["chat"]),
    "get_around": (
        lambda api, _: api.get_chat("#1", around(25, 0)),
        lambda r: {**r["chat"], "navInfo": r["navInfo"]},
    ),
    "get_initial": (
        lambda api, _: api.get_chat("#1", initial(0)),
        lambda r: {**r["chat"], "navInfo": r["navInfo"]},
    ),
    "get_search": (lambda api, _: api.get_chat("@4", count(2), search="m 2"), lambda r: r["chat"]),
    "get_support": (lambda api, _: api.get_chat("#1(_support)", count(3)), lambda r: r["chat"]),
    "send_text": (lambda api, _: api.send_text("#4", "nobody"), lambda r: r["chatItems"][0]),
    "send_quote": (lambda api, _: api.send_text("@4", "third", quoted=34), lambda r: r["chatItems"][0]),
    "send_mention": (
        lambda api, _: api.send_text("#1", "no name here", mentions={"Bob": 3}),
        lambda r: r["chatItems"][0],
    ),
    "update": (
        lambda api, _: api.update_item("#1", 25, {"type": "text", "text": "edited after 23 h"}),
        lambda r: r["chatItem"],
    ),
    "update_same": (
        lambda api, c: api.update_item("#1", 18, _json_tail(c)["msgContent"]),
        lambda r: r["chatItem"],
    ),
    "delete_item": (lambda api, _: api.delete_items("@4", [56]), lambda r: r["chatItemDeletions"]),
    "delete_items_here": (
        lambda api, _: api.delete_items("#2", range(46, 63), "internal"),
        lambda r: r["chatItemDeletions"],
    ),
    "read": (lambda api, _: api.read_items("#1", [22]), lambda _: None),
    "item_info": (lambda api, _: api.item_info("#1", 25), lambda r: r),
    "receive": (
        lambda api, _: api.receive_file(1, "/srv/agent/files/d/direct-1.bin"),
        lambda r: r["chatItem"],
    ),
    "receive_approved": (
        lambda api, _: api.receive_file(1, "/srv/agent/files/d/u-direct.bin", approved_relays=True),
        lambda r: r["chatItem"],
    ),
    "cancel_received": (lambda api, _: api.cancel_file(9), lambda _: None),
    "description": (lambda api, _: api.file_description(1), lambda r: r["rows"][1].removeprefix("1|")),
    "connections": (lambda api, _: api.connection_ids(1), lambda r: r["rows"][1:]),
    "pending": (
        lambda api, _: api.pending_deliveries(["pk2ETkhtuXatZkEt", "OIncyUNoWA_iCo3N"]),
        lambda _: 0,
    ),
    "stop": (lambda api, _: api.stop(), lambda _: None),
}


async def _api(*script: dict[str, Any]) -> tuple[ChatApi, ScriptedLink]:
    """An api that knows its user, with what the script answers next."""
    link = ScriptedLink(EXAMPLES["user"], *script)
    api = ChatApi(link)
    await api.active_user()
    link.commands.clear()
    return api, link


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_is_the_recorded_command_and_gives_the_core_s_own_object(name: str) -> None:
    example = EXAMPLES[name]
    api, link = await _api(example)
    call, expected = CALLS[name]
    result = await call(api, example["cmd"])
    assert link.commands == [example["cmd"]]
    assert result == expected(example.get("resp"))


def test_every_recorded_example_has_a_call() -> None:
    assert set(EXAMPLES) - {"plan_error", "receive_error"} == set(CALLS)


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"no_user", "no_link", "no_link_to_delete"}))
async def test_a_call_whose_answer_is_something_else_fails_with_the_answer_s_tag(name: str) -> None:
    api, _ = await _api({"resp": {"type": "strange"}})
    with pytest.raises(CoreError) as caught:
        await CALLS[name][0](api, EXAMPLES[name]["cmd"])
    assert caught.value.tag == "unexpected/strange"


@pytest.mark.parametrize("name", sorted(set(CALLS)))
async def test_an_error_of_the_core_reaches_the_caller(name: str) -> None:
    api, _ = await _api({"error": {"type": "error", "errorType": {"type": "chatNotStarted"}}})
    with pytest.raises(CoreError) as caught:
        await CALLS[name][0](api, EXAMPLES[name]["cmd"])
    assert caught.value.tag == "error/chatNotStarted"


@pytest.mark.parametrize(
    ("call", "tag"),
    [
        (lambda api: api.list_groups(), "groupsList"),
        (lambda api: api.version(), "versionInfo"),
        (lambda api: api.active_user(), "activeUser"),
        (lambda api: api.list_members(1), "groupMembers"),
        (lambda api: api.connect_plan("x"), "connectionPlan"),
        (lambda api: api.get_chat("@4", count(1)), "apiChat"),
        (lambda api: api.connection_ids(1), "sQLResult"),
        (lambda api: api.pending_deliveries(["a"]), "sQLResult"),
        (lambda api: api.send_text("@4", "a"), "newChatItems"),
    ],
)
async def test_an_answer_without_its_fields_is_an_error_of_the_core(call: Any, tag: str) -> None:
    api, _ = await _api({"resp": {"type": tag}})
    with pytest.raises(CoreError) as caught:
        await call(api)
    assert caught.value.tag == f"unexpected/{tag}"


async def test_a_user_id_that_is_no_number_is_not_taken() -> None:
    api = ChatApi(ScriptedLink({"resp": {"type": "activeUser", "user": {"userId": True}}}))
    with pytest.raises(CoreError):
        await api.active_user()


async def test_calls_that_need_the_user_fail_before_a_user_is_known() -> None:
    link = ScriptedLink(EXAMPLES["no_user"])
    api = ChatApi(link)
    assert await api.active_user() is None
    with pytest.raises(CoreError) as caught:
        await api.list_groups()
    assert caught.value.tag == "error/noActiveUser"
    assert link.commands == ["/user"]


async def test_creating_a_user_makes_it_the_active_one() -> None:
    api = ChatApi(ScriptedLink(EXAMPLES["create_user"]))
    await api.create_user("My Agent")
    assert api.user_id == 1


async def test_creating_a_user_can_say_agent_where_the_core_knows_it() -> None:
    link = ScriptedLink(EXAMPLES["create_user"])
    await ChatApi(link).create_user('A "quoted" name', peer_type="agent")
    assert ASK(link.commands[0].removeprefix("/_create user ")) == {
        "profile": {"displayName": 'A "quoted" name', "fullName": "", "peerType": "agent"},
        "pastTimestamp": False,
        "userChatRelay": False,
        "clientService": False,
    }


@pytest.mark.parametrize(
    ("call", "command"),
    [
        (
            lambda api: api.prepare_contact({"connFullLink": "F", "connShortLink": "S"}, {}, "directory.simplex"),
            "/_prepare contact 1 F S domain=directory.simplex {}",
        ),
        (
            lambda api: api.prepare_group({"connFullLink": "F"}, {"a": 1}, False, "news.simplex"),
            '/_prepare group 1 F direct=off domain=news.simplex {"a":1}',
        ),
        (
            lambda api: api.connect_contact(4, True, " two\nlines "),
            '/_connect contact @4 incognito=on json {"type":"text","text":" two\\nlines "}',
        ),
        (
            lambda api: api.connect_link({"connFullLink": "F", "connShortLink": "S"}, True),
            "/_connect 1 incognito=on F S",
        ),
    ],
)
async def test_options_stand_in_the_order_of_the_grammar(call: Any, command: str) -> None:
    tag = "newPreparedChat" if command.startswith("/_prepare") else "contactAlreadyExists"
    api, link = await _api({"resp": {"type": tag, "chat": {}}})
    await call(api)
    assert link.commands == [command]


async def test_several_messages_give_one_item_each() -> None:
    items = [{"chatItem": {"meta": {"itemId": number}}} for number in (1, 2)]
    api, link = await _api({"resp": {"type": "newChatItems", "chatItems": items}})
    texts = [{"msgContent": {"type": "text", "text": t}} for t in ("a", "b")]
    assert await api.send_messages("@4", texts) == items
    assert link.commands == [
        '/_send @4 json [{"msgContent":{"type":"text","text":"a"}},{"msgContent":{"type":"text","text":"b"}}]'
    ]


async def test_fewer_items_than_messages_are_an_error_of_the_core() -> None:
    api, _ = await _api({"resp": {"type": "newChatItems", "chatItems": []}})
    with pytest.raises(CoreError):
        await api.send_text("@4", "a")


@pytest.mark.parametrize(
    "item", [{}, {"chatItem": 1}, {"chatItem": {}}, {"chatItem": {"meta": []}}, {"chatItem": {"meta": {"itemId": "1"}}}]
)
async def test_a_message_without_its_number_is_an_error_of_the_core(item: dict[str, Any]) -> None:
    api, _ = await _api(
        {"resp": {"type": "newChatItems", "chatItems": [item]}},
        {"resp": {"type": "chatItemUpdated", "chatItem": item}},
        {"resp": {"type": "apiChat", "chat": {"chatInfo": {}, "chatItems": [item.get("chatItem")]}}},
        {"resp": {"type": "apiChat", "chat": {"chatInfo": True, "chatItems": []}}},
    )
    asked = (
        api.send_text("@4", "a"),
        api.update_item("@4", 1, {}),
        api.get_chat("@4", count(1)),
        api.get_chat("@4", count(1)),
    )
    for answer in asked:
        with pytest.raises(CoreError, match="has no"):
            await answer


async def test_no_connections_have_no_pending_deliveries_and_nothing_is_asked() -> None:
    api, link = await _api()
    assert await api.pending_deliveries([]) == 0
    await api.read_items("@4", [])
    assert link.commands == []


async def test_no_rows_are_no_connections() -> None:
    api, _ = await _api({"resp": {"type": "sQLResult", "rows": []}})
    assert await api.connection_ids(1) == []


async def test_connection_ids_that_could_change_a_query_are_left_out() -> None:
    api, _ = await _api({"resp": {"type": "sQLResult", "rows": ["agent_conn_id", "ok-_=", "x') OR 1", ""]}})
    assert await api.connection_ids(1) == ["ok-_="]


REFUSED = {
    "a lone surrogate in a text": lambda api: api.send_text("@4", "a\ud800b"),
    "a lone surrogate in a mention": lambda api: api.send_text("@4", "a", mentions={"\udfff": 1}),
    "a lone surrogate in a name": lambda api: api.create_user("\ud800"),
    "a lone surrogate in a search": lambda api: api.get_chat("@4", count(1), search="\udc80"),
    "a NUL in a search": lambda api: api.get_chat("@4", count(1), search="a\0b"),
    "a lone surrogate in custom data": lambda api: api.set_custom("@4", {"a": "\ud800"}),
    "no target": lambda api: api.connect_plan(""),
    "a blank in a target": lambda api: api.connect_plan("https://x/a#k resolve=on"),
    "a newline in a target": lambda api: api.connect_plan("https://x/a#k\n"),
    "a no-break space in a target": lambda api: api.connect_plan("@a\xa0b"),
    "a control in a target": lambda api: api.connect_plan("@a\x1b"),
    "a surrogate in a target": lambda api: api.connect_plan("@a\ud800"),
    "a link without its full form": lambda api: api.connect_link({"connShortLink": "S"}, False),
    "a blank in a link": lambda api: api.connect_link({"connFullLink": "F incognito=on"}, False),
    "a sign before a domain": lambda api: api.prepare_contact({"connFullLink": "F"}, {}, "@a.simplex"),
    "a blank in a domain": lambda api: api.prepare_contact({"connFullLink": "F"}, {}, "a b"),
    "a name for a chat": lambda api: api.send_text("Alice", "a"),
    "options in a reference": lambda api: api.delete_chat("@4 full notify=off"),
    "a newline after a reference": lambda api: api.delete_chat("@4\n"),
    "foreign digits in a reference": lambda api: api.delete_chat("@４"),
    "no messages": lambda api: api.send_messages("@4", []),
    "no items to delete": lambda api: api.delete_items("@4", []),
    "no relay": lambda api: api.set_smp_servers([]),
    "a blank in a relay": lambda api: api.set_xftp_servers(["xftp://a b"]),
    "a role with options": lambda api: api.set_member_role(1, 2, "owner x"),
    "a folder that ends in a blank": lambda api: api.set_temp_folder("/srv/tmp "),
    "a connection id with a quote": lambda api: api.pending_deliveries(["a') OR ('1"]),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_what_a_command_cannot_hold_is_refused_before_anything_is_sent(what: str) -> None:
    api, link = await _api()
    with pytest.raises(Refused) as caught:
        await REFUSED[what](api)
    assert link.commands == []
    assert str(caught.value).isprintable()


async def test_text_is_sent_unchanged() -> None:
    text = "two\nlines, a tab\t, a NUL \0, quotes \"'\\, ünïcödé 🙂, and blanks at the end  "
    api, link = await _api(EXAMPLES["send_text"])
    await api.send_text("#4", text)
    assert "\n" not in link.commands[0]
    assert "\0" not in link.commands[0]
    assert _sent_text(link.commands[0]) == text


async def test_a_file_on_unknown_servers_is_refused_with_their_names() -> None:
    api, _ = await _api(EXAMPLES["receive_error"])
    with pytest.raises(CoreError) as caught:
        await api.receive_file(1, "/x")
    assert caught.value.tag == "error/fileNotApproved"
    assert caught.value.error["errorType"]["unknownServers"][0].endswith("@127.0.0.1:7003")


@pytest.mark.parametrize("path", ["", "a.txt", "approved_relays=on /a.txt", "/a ", "/a\n", " /a"])
async def test_a_path_that_the_core_would_read_as_another_is_refused(path: str) -> None:
    api, link = await _api()
    with pytest.raises(Refused):
        await api.receive_file(1, path)
    assert link.commands == []


async def test_a_file_that_its_sender_cancelled_in_between_is_an_error() -> None:
    api, _ = await _api({"resp": {"type": "rcvFileAcceptedSndCancelled", "rcvFileTransfer": {}}})
    with pytest.raises(CoreError) as caught:
        await api.receive_file(1, "/a")
    assert caught.value.tag == "error/fileCancelled"


@pytest.mark.parametrize("rows", [[], ["file_descr_complete|file_descr_text", "0|chunkSize"], ["a|b", "1|"], ["a", ""]])
async def test_a_description_that_is_not_complete_is_none(rows: list[str]) -> None:
    api, _ = await _api({"resp": {"type": "sQLResult", "rows": rows}})
    assert await api.file_description(7) is None
