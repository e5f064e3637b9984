"""Groups: joining by a link, what those who join see, roles, review, leaving, removing, and ids."""

from __future__ import annotations

from tests.sandbox.world import World


def test_the_host_hears_of_a_guest_and_the_guest_of_the_group_in_the_order_of_a_real_core() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.group(agent, "Team", bob)
    host = [t for t in agent.tags() if t != "newChatItems"]
    assert host == ["acceptingGroupJoinRequestMember", "joinedGroupMember"]
    guest = [t for t in bob.tags() if t != "newChatItems"]
    assert guest == ["groupLinkConnecting", "userJoinedGroup"]
    assert agent.members()["Bob"]["memberStatus"] in ("complete", "connected")
    assert bob.members()["My Agent"]["memberRole"] == "owner"


def test_a_guest_gets_the_role_of_the_link() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.group(agent, "Team", bob, role="observer")
    assert agent.members()["Bob"]["memberRole"] == "observer"
    assert bob.do("/_groups 1")["groups"][0]["membership"]["memberRole"] == "observer"
    assert bob.refused('/_send #1 json [{"msgContent":{"type":"text","text":"hi"}}]')["type"] == "groupUserRole"


def test_two_guests_are_introduced_to_each_other() -> None:
    world = World()
    agent, bob, carol = world.person("My Agent"), world.person("Bob"), world.person("Carol")
    world.group(agent, "Team", bob, carol)
    assert set(bob.members()) == {"My Agent", "Carol"}
    assert set(carol.members()) == {"My Agent", "Bob"}
    bob.say("#1", "hello Carol")
    world.settle()
    assert carol.texts("#1")[-1] == "hello Carol"
    assert carol.item("#1", "hello Carol")["meta"].get("forwardedByMember") is None


def test_a_guest_gets_the_latest_messages_when_history_is_on_and_none_when_it_is_off() -> None:
    for enable, expected in (("on", ["first", "second"]), ("off", [])):
        world = World()
        agent, bob = world.person("My Agent"), world.person("Bob")
        link = world.group(agent, "Team", groupPreferences={"history": {"enable": enable}})
        agent.say("#1", "first")
        agent.say("#1", "second")
        world.settle()
        world.join(bob, link)
        assert [t for t in bob.texts("#1") if t in ("first", "second")] == expected


def test_a_message_reaches_members_that_are_not_connected_to_its_author_yet_through_the_host() -> None:
    world = World()
    agent, bob, carol = world.person("My Agent"), world.person("Bob"), world.person("Carol")
    link = world.group(agent, "Team", bob)
    bob.do("/_stop")  # Bob cannot be introduced to Carol now
    world.join(carol, link)
    carol.say("#1", "is anybody here?")
    world.settle()
    assert agent.texts("#1")[-1] == "is anybody here?"
    bob.do("/_start")
    world.settle()
    item = bob.item("#1", "is anybody here?")
    assert item["chatDir"]["groupMember"]["localDisplayName"] == "Carol"
    assert len([t for t in bob.texts("#1") if t == "is anybody here?"]) == 1


def test_nothing_that_two_members_say_is_lost_or_doubled_while_they_are_being_connected() -> None:
    world = World()
    agent, bob, carol = world.person("My Agent"), world.person("Bob"), world.person("Carol")
    link = world.group(agent, "Team", bob)
    carol.do(f"/_connect 1 {link['connFullLink']} {link['connShortLink']}")
    said: dict[str, list[str]] = {"Bob": [], "Carol": []}
    for moment in range(60):
        world.now += 0.01
        world.network.deliver()
        for person, other in ((bob, "Carol"), (carol, "Bob")):
            if person.do("/_groups 1")["groups"] and other in person.members():
                said[other].append(f"to {other} at {moment}")
                person.say("#1", said[other][-1])
    world.settle()
    assert bob.got("connectedToGroupMember")
    assert len(said["Bob"]) > 30
    for listener, name in ((bob, "Bob"), (carol, "Carol")):
        assert sorted(t for t in listener.texts("#1") if t.startswith(f"to {name} ")) == sorted(said[name])


def test_a_new_role_is_known_to_everybody_and_a_member_may_not_give_roles() -> None:
    world = World()
    agent, bob, carol = world.person("My Agent"), world.person("Bob"), world.person("Carol")
    world.group(agent, "Team", bob, carol)
    assert bob.refused(f"/_member role #1 {bob.member_id('Carol')} admin")["type"] == "groupUserRole"
    agent.do(f"/_member role #1 {agent.member_id('Bob')} admin")
    world.settle()
    assert carol.members()["Bob"]["memberRole"] == "admin"
    assert bob.got("memberRole")[0]["toRole"] == "admin"
    assert carol.got("memberRole")[0]["fromRole"] == "member"


def test_a_removed_member_hears_it_and_can_no_longer_write() -> None:
    world = World()
    agent, bob, carol = world.person("My Agent"), world.person("Bob"), world.person("Carol")
    world.group(agent, "Team", bob, carol)
    agent.do(f"/_remove #1 {agent.member_id('Bob')}")
    world.settle()
    assert "deletedMemberUser" in bob.tags()
    assert "deletedMember" in carol.tags()
    error = bob.refused('/_send #1 json [{"msgContent":{"type":"text","text":"hi"}}]')
    assert error == {"type": "commandError", "message": "not current member"}
    assert carol.members()["Bob"]["memberStatus"] == "removed"  # her list keeps whoever has items in the chat


def test_who_leaves_is_gone_for_the_others_and_may_delete_the_group() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.group(agent, "Team", bob)
    bob.do("/_leave #1")
    world.settle()
    assert agent.got("leftMember")[0]["member"]["localDisplayName"] == "Bob"
    bob.do("/_delete #1 full notify=off")
    assert bob.do("/_groups 1")["groups"] == []
    assert bob.refused("/_get chat #1 count=1") == {"type": "groupNotFound", "groupId": 1}


def test_the_id_of_a_deleted_last_group_is_given_again() -> None:
    world = World()
    agent = world.person("My Agent")
    world.group(agent, "One")
    world.group(agent, "Two")
    agent.do("/_delete #2 full notify=off")
    assert agent.do("/_group 1", {"displayName": "Three", "fullName": ""})["groupInfo"]["groupId"] == 2
    agent.do("/_delete #1 full notify=off")
    assert agent.do("/_group 1", {"displayName": "Four", "fullName": ""})["groupInfo"]["groupId"] == 3


def test_a_second_group_of_the_same_name_gets_a_number_locally() -> None:
    world = World()
    agent = world.person("My Agent")
    first = agent.do("/_group 1", {"displayName": "Team", "fullName": ""})["groupInfo"]
    second = agent.do("/_group 1", {"displayName": "Team", "fullName": ""})["groupInfo"]
    assert (first["localDisplayName"], second["localDisplayName"]) == ("Team", "Team_1")
    assert second["groupProfile"]["displayName"] == "Team"


def test_a_deleted_link_cannot_be_used_any_more() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    link = world.group(agent, "Team")
    agent.do("/_delete link #1")
    assert bob.core.command(f"/_connect plan 1 {link['connShortLink']}")["type"] == "chatCmdError"
    assert agent.refused("/_get link #1")["type"] == "groupLinkNotFound"


def test_a_plan_knows_the_group_that_one_is_in_and_the_own_link() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    link = world.group(agent, "Team", bob)
    plan = bob.do(f"/_connect plan 1 {link['connShortLink']}")["connectionPlan"]
    assert plan["groupLinkPlan"]["type"] == "known"
    assert plan["groupLinkPlan"]["groupInfo"]["groupId"] == 1
    own = agent.do(f"/_connect plan 1 {link['connShortLink']}")["connectionPlan"]
    assert own["groupLinkPlan"]["type"] == "ownLink"


def test_incognito_shows_the_group_another_name() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    link = world.group(agent, "Team")
    plan = bob.do(f"/_connect plan 1 {link['connShortLink']}")
    data = plan["connectionPlan"]["groupLinkPlan"]["groupSLinkData_"]
    bob.do(f"/_prepare group 1 {link['connFullLink']} {link['connShortLink']} direct=on", data)
    bob.do("/_connect group #1 incognito=on")
    world.settle()
    assert list(agent.members()) != ["Bob"]
    membership = bob.do("/_groups 1")["groups"][0]["membership"]
    assert membership["memberProfile"]["displayName"] != "Bob"
    assert list(agent.members()) == [membership["memberProfile"]["displayName"]]


def test_with_review_a_guest_waits_until_it_is_accepted() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.group(agent, "Team", bob, memberAdmission={"review": "all"})
    assert agent.members()["Bob"]["memberStatus"] == "pending_review"
    agent.say("#1", "not for guests")
    world.settle()
    assert "not for guests" not in bob.texts("#1")
    agent.do(f"/_accept member #1 {agent.member_id('Bob')} member")
    world.settle()
    agent.say("#1", "welcome")
    world.settle()
    assert bob.texts("#1")[-1] == "welcome"


def test_custom_data_is_kept_and_taken_away() -> None:
    world = World()
    agent = world.person("My Agent")
    world.group(agent, "Team")
    agent.do("/_set custom #1", {"agent": {"a": 1}})
    assert agent.do("/_groups 1")["groups"][0]["customData"] == {"agent": {"a": 1}}
    agent.do("/_set custom #1")
    assert "customData" not in agent.do("/_groups 1")["groups"][0]


def test_a_changed_group_profile_reaches_all_members() -> None:
    world = World()
    agent, bob = world.person("My Agent"), world.person("Bob")
    world.group(agent, "Team", bob)
    agent.do("/_group_profile #1", {"displayName": "Crew", "fullName": "", "shortDescr": "we"})
    world.settle()
    assert bob.got("groupUpdated")[-1]["toGroup"]["groupProfile"]["displayName"] == "Crew"
    assert bob.do("/_groups 1")["groups"][0]["localDisplayName"] == "Crew"
