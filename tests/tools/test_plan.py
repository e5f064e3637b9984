"""Connection plans: the whole table, targets that are refused unasked, hosts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplexmcp.errors import Refused
from simplexmcp.tools.plan import PLANS, How, check_target, classify, host_of
from tests.recorded import frames
from tests.tools.world import LINK, contact, group

NAME, ADDRESS = "@directory.simplex", "https://relay.example/a#KEY"
BOT = {"profile": {"displayName": "Helper", "peerType": "bot"}, "business": False}
PERSON = {"profile": {"displayName": "Bob"}, "business": False}
SHOP = {"profile": {"displayName": "Shop"}, "business": True}
TRAIL = {"groupProfile": {"displayName": "Trail"}}
VERIFIED = {"nameTLD": "simplex", "domain": "directory", "subDomain": []}
PREPARED = contact(4, status=None, preparedContact={"uiConnLinkType": "con"})


def plan(kind: str, inner: str, **fields: Any) -> dict[str, Any]:
    return {"connLink": LINK, "connectionPlan": {"type": kind, f"{kind}Plan": {"type": inner, **fields}}}


@pytest.mark.parametrize(
    ("response", "target", "message", "verdict", "how", "kind", "name"),
    [
        (
            plan("contactAddress", "ok", contactSLinkData_=BOT, verifiedDomain=VERIFIED),
            NAME,
            False,
            "join",
            How.PREPARE_CONTACT,
            "bot",
            "Helper",
        ),
        (plan("contactAddress", "ok", contactSLinkData_=PERSON), ADDRESS, False, "join", How.LINK, "contact", "Bob"),
        (
            plan("contactAddress", "ok", contactSLinkData_=PERSON),
            ADDRESS,
            True,
            "join",
            How.PREPARE_CONTACT,
            "contact",
            "Bob",
        ),
        (
            plan("contactAddress", "ok", contactSLinkData_=SHOP),
            ADDRESS,
            True,
            "join",
            How.PREPARE_CONTACT,
            "business",
            "Shop",
        ),
        (plan("contactAddress", "ok"), ADDRESS, False, "join", How.LINK, "contact", ""),
        (plan("contactAddress", "ok"), ADDRESS, True, "refuse", None, "contact", ""),
        (plan("contactAddress", "ownLink"), ADDRESS, False, "refuse", None, "contact", ""),
        (plan("contactAddress", "connectingConfirmReconnect"), ADDRESS, False, "join", How.LINK, "contact", ""),
        (
            plan("contactAddress", "connectingProhibit", contact=contact(4, status="joined")),
            ADDRESS,
            False,
            "known",
            None,
            "bot",
            "Helper",
        ),
        (plan("contactAddress", "known", contact=contact(4)), ADDRESS, False, "known", None, "bot", "Helper"),
        (
            plan("contactAddress", "known", contact=PREPARED),
            ADDRESS,
            True,
            "join",
            How.PREPARED_CONTACT,
            "bot",
            "Helper",
        ),
        (
            plan("contactAddress", "known", contact=contact(4, contactStatus="deleted")),
            ADDRESS,
            False,
            "refuse",
            None,
            "contact",
            "",
        ),
        (
            plan(
                "contactAddress",
                "contactViaAddress",
                contact=contact(2, status=None, profile={"displayName": "S", "contactLink": "x"}),
            ),
            ADDRESS,
            False,
            "join",
            How.VIA_ADDRESS,
            "contact",
            "S",
        ),
        (
            plan(
                "contactAddress",
                "contactViaAddress",
                contact=contact(2, status=None, profile={"displayName": "S", "contactLink": "x"}),
            ),
            ADDRESS,
            True,
            "refuse",
            None,
            "contact",
            "",
        ),
        (plan("invitationLink", "ok", contactSLinkData_=PERSON), ADDRESS, False, "join", How.LINK, "contact", "Bob"),
        (
            plan("invitationLink", "ok", contactSLinkData_=PERSON),
            ADDRESS,
            True,
            "join",
            How.PREPARE_CONTACT,
            "contact",
            "Bob",
        ),
        (plan("invitationLink", "ownLink"), ADDRESS, False, "refuse", None, "contact", ""),
        (plan("invitationLink", "connecting"), ADDRESS, False, "refuse", None, "contact", ""),
        (
            plan("invitationLink", "connecting", contact_=contact(4, status="joined")),
            ADDRESS,
            False,
            "known",
            None,
            "bot",
            "Helper",
        ),
        (plan("invitationLink", "known", contact=contact(4)), ADDRESS, False, "known", None, "bot", "Helper"),
        (
            plan("groupLink", "ok", groupSLinkInfo_={"direct": True}, groupSLinkData_=TRAIL),
            ADDRESS,
            False,
            "join",
            How.LINK,
            "group",
            "Trail",
        ),
        (
            plan("groupLink", "ok", groupSLinkInfo_={"direct": True}, groupSLinkData_=TRAIL),
            ADDRESS,
            True,
            "refuse",
            None,
            "contact",
            "",
        ),
        (
            plan("groupLink", "ok", groupSLinkInfo_={"direct": False}, groupSLinkData_=TRAIL),
            ADDRESS,
            False,
            "join",
            How.PREPARE_CHANNEL,
            "channel",
            "Trail",
        ),
        (plan("groupLink", "ok", groupSLinkInfo_={"direct": False}), ADDRESS, False, "refuse", None, "contact", ""),
        (plan("groupLink", "ok"), ADDRESS, False, "join", How.LINK, "group", ""),
        (plan("groupLink", "ownLink", groupInfo=group(1)), ADDRESS, False, "refuse", None, "contact", ""),
        (plan("groupLink", "connectingConfirmReconnect"), ADDRESS, False, "join", How.LINK, "group", ""),
        (plan("groupLink", "connectingProhibit"), ADDRESS, False, "refuse", None, "contact", ""),
        (
            plan("groupLink", "connectingProhibit", groupInfo_=group(5, status="accepted")),
            ADDRESS,
            False,
            "known",
            None,
            "group",
            "Trail",
        ),
        (plan("groupLink", "known", groupInfo=group(5)), ADDRESS, False, "known", None, "group", "Trail"),
        (
            plan("groupLink", "known", groupInfo=group(5, status="unknown", preparedGroup={})),
            ADDRESS,
            False,
            "join",
            How.PREPARED_GROUP,
            "group",
            "Trail",
        ),
        (
            plan("groupLink", "known", groupInfo=group(5, status="unknown", preparedGroup={}, businessChat={"x": 1})),
            ADDRESS,
            True,
            "join",
            How.PREPARED_GROUP,
            "business",
            "Trail",
        ),
        (plan("groupLink", "known", groupInfo=group(5, status="left")), ADDRESS, False, "refuse", None, "contact", ""),
        (
            plan("groupLink", "known", groupInfo=group(5, status="rejected")),
            ADDRESS,
            False,
            "refuse",
            None,
            "contact",
            "",
        ),
        (
            plan("groupLink", "known", groupInfo=group(5, status="invited")),
            ADDRESS,
            False,
            "refuse",
            None,
            "contact",
            "",
        ),
        (
            plan("groupLink", "known", groupInfo=group(1, customData={"simplexMcp": {"control": True}})),
            ADDRESS,
            False,
            "refuse",
            None,
            "contact",
            "",
        ),
        (plan("groupLink", "noRelays"), ADDRESS, False, "refuse", None, "contact", ""),
        (plan("groupLink", "updateRequired"), ADDRESS, False, "refuse", None, "contact", ""),
        (plan("newThing", "ok"), ADDRESS, False, "refuse", None, "contact", ""),
        (plan("groupLink", "newThing"), ADDRESS, False, "refuse", None, "contact", ""),
        (
            {
                "connectionPlan": {
                    "type": "error",
                    "chatError": {"type": "errorAgent", "agentError": {"type": "NO_NAME_SERVERS"}},
                }
            },
            NAME,
            False,
            "refuse",
            None,
            "contact",
            "",
        ),
    ],
)
def test_every_plan_is_classified(
    response: dict[str, Any], target: str, message: bool, verdict: str, how: How | None, kind: str, name: str
) -> None:
    found = classify(target, response, message=message)
    assert (found.verdict, found.how, found.kind, found.name) == (verdict, how, kind, name)
    assert bool(found.reason) == (verdict == "refuse")


def test_the_table_has_every_plan_of_the_core() -> None:
    assert len(PLANS) == 17
    for frame in (
        f for name in ("01-first-start-lib", "02-connect", "02b-cards-sql", "10-restart") for f in frames(name)
    ):
        response = frame.get("resp") or frame.get("result")
        response = response.get("result", response) if isinstance(response, dict) else {}
        if response.get("type") == "connectionPlan":
            found = classify(ADDRESS, response, message=False)
            assert "is not known" not in found.reason
            assert found.host in ("127.0.0.1", "127.0.0.1:7001", "")


def test_a_name_is_passed_on_without_its_sign() -> None:
    for verified, domain in (
        (VERIFIED, "directory.simplex"),
        (VERIFIED | {"subDomain": ["x"]}, "directory.simplex"),
        ({}, "directory.simplex"),
    ):
        found = classify(
            NAME, plan("contactAddress", "ok", contactSLinkData_=BOT, verifiedDomain=verified), message=False
        )
        assert found.domain == domain
    team = classify(
        "#team",
        plan(
            "groupLink",
            "ok",
            groupSLinkInfo_={"direct": False},
            groupSLinkData_=TRAIL,
            verifiedDomain={"nameTLD": "simplex", "domain": "team", "subDomain": []},
        ),
        message=False,
    )
    assert team.domain == "team.simplex"
    assert classify(ADDRESS, plan("contactAddress", "ok", contactSLinkData_=BOT), message=False).domain is None


@pytest.mark.parametrize(
    "target",
    [
        "https://relay.example/a#KEY",
        "https://relay.example:5223/g#KEY",
        "https://smp1.simplex.im/i#ID/KEY",
        "https://relay.example/c#KEY?p=1",
        "simplex:/a#KEY?h=relay.example",
        "simplex:/contact#/?v=2-7&smp=smp%3A%2F%2Fkey%40relay.example%2Fq",
        "simplex:/invitation#/?v=2",
        "https://simplex.chat/contact#/?v=2-7&smp=x",
        "https://simplex.chat/invitation/#/?v=2",
        "@directory.simplex",
        "#team",
        "#team.simplex",
        "@a-b.c-d.simplex",
    ],
)
def test_simplex_links_and_names_pass(target: str) -> None:
    check_target(target)


@pytest.mark.parametrize(
    "target",
    [
        "javascript:alert(1)",
        "https://example.com/",
        "http://relay.example/a#KEY",
        "https://relay.example/a",
        "https://relay.example/a#",
        "relay.example/a#KEY",
        "https://user:pw@relay.example/a#KEY",
        "https://simplex.chat@evil.example/a#KEY",
        "https://relay.example/a#K Y",
        "https://relay.example/a#K\nY",
        "https://relay.example/x#KEY",
        "https://relay.example/r#KEY",
        "file:///etc/passwd#x",
        "simplex://host/a#KEY",
        "simplex:/a",
        "@",
        "#",
        "@4",
        "#15",
        "@a b",
        "@name\u202e.simplex",
        "@ｎame",
        "@.simplex",
        "@-a.simplex",
        "hello",
        "https://relay.exämple/a#KEY",
        "https://[::1/a#K",
        "https://relay.example:x/a#KEY",
        "/a#KEY",
        "#15 resolve=on",
        "",
    ],
)
def test_everything_else_is_refused_without_asking_the_core(target: str) -> None:
    with pytest.raises(Refused):
        check_target(target)


@given(st.text(max_size=60))
def test_what_passes_is_one_word_of_ascii(target: str) -> None:
    try:
        check_target(target)
    except Refused:
        return
    assert target.isascii()
    assert target.isprintable()
    assert not any(char.isspace() for char in target)


@pytest.mark.parametrize(
    ("link", "host"),
    [
        (LINK, "relay.example"),
        ({"connFullLink": LINK["connFullLink"]}, "relay.example"),
        ({"connShortLink": "simplex:/a#KEY?h=relay.example,other.onion&p=1"}, "relay.example"),
        ({"connShortLink": "https://relay.example:5223/a#KEY"}, "relay.example:5223"),
        (
            {
                "connFullLink": "simplex:/contact#/?v=2-7&smp=smp%3A%2F%2Fk%40a.example%2Cx.onion%3A443%2Fq"
                "%3Bsmp%3A%2F%2Fk%40b.example%2Fq"
            },
            "a.example",
        ),
        ({"connFullLink": "nonsense"}, ""),
        ({"connShortLink": "https://[::1/a"}, ""),
        ({}, ""),
    ],
)
def test_the_relay_of_a_link(link: dict[str, Any], host: str) -> None:
    assert host_of(link) == host


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from(["ok", "known", "groupLink", "contactAddress", "error"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "connectionPlan",
                    "groupLinkPlan",
                    "contactAddressPlan",
                    "contact",
                    "groupInfo",
                    "contactSLinkData_",
                    "profile",
                    "displayName",
                    "groupSLinkData_",
                    "groupSLinkInfo_",
                    "groupProfile",
                    "direct",
                    "verifiedDomain",
                    "connLink",
                    "chatError",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(
    st.dictionaries(st.sampled_from(["connectionPlan", "connLink"]), JSON),
    st.sampled_from([NAME, ADDRESS]),
    st.booleans(),
)
def test_a_damaged_plan_is_refused_or_read_but_never_fails(
    response: dict[str, Any], target: str, message: bool
) -> None:
    found = classify(target, response, message=message)
    assert found.verdict in ("join", "known", "refuse")
    hash(found.shown)
