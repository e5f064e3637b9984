"""What the program promises, and the tests that show it: each flow, and each case from the field by its number.

A case is a report, a wish or an attack that was seen on systems like this one; what is said here is our behaviour.
`LATER` names the cases of parts that are not built yet. `test_requirements` holds the list against the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CASES", "FLOWS", "LATER", "Requirement"]


@dataclass(frozen=True)
class Requirement:
    """One promise; `tests` are `FILE::TEST` below `tests/`."""

    says: str
    tests: tuple[str, ...]


def _r(says: str, *tests: str) -> Requirement:
    return Requirement(says, tests)


_PROPERTY = "e2e/test_approval_property.py::test_nothing_reaches_others_without_exactly_one_word_for_it"
_FUZZ = "fuzz/test_fuzz.py::test_whatever_is_said_to_it_the_program_lives_in_bounded_memory_and_serves_the_next"
_POSTS = "test_posts.py::test_nothing_foreign_is_active_or_invisible_and_the_commands_are_those_meant"
_CARDS = "e2e/test_attacks_cards.py::"
_COMMANDS = "e2e/test_attacks_commands.py::"
_CHATS = "e2e/test_attacks_chats.py::"
_DOWNLOAD = "e2e/test_flow_13_download.py::"
_FORWARD = "e2e/test_flow_14_forward.py::"
_SEND_FILE = "e2e/test_flow_15_send_file.py::"
_DELETE = "e2e/test_flow_16_leave_delete.py::"
_ROBUST_FILES = "e2e/test_robust_files.py::"
_CRASH = "e2e/test_robust_crash.py::"
_STEPS = "e2e/test_crash_steps.py::test_whatever_the_step_nothing_is_done_twice_or_without_a_word_and_the_card_is_true"
_FAULTS = "e2e/test_faults_core.py::"
_CLOCK = "e2e/test_faults_clock.py::"
_AUDIT = "e2e/test_faults_audit.py::"
_LEFT = "listener/test_left_behind.py::"
_OUTGOING = "files/test_outgoing.py::"
_DOWNLOADS = "files/test_downloads.py::"
_ROOMS_FENCING = "rooms/test_fencing.py::"
_VIEW = "rooms/view/test_security.py::"
_ROOMS_TEXTS = "rooms/test_hostile_texts.py::"
_ROOMS_DATABASE = "rooms/test_database.py::"

FLOWS: dict[int, Requirement] = {
    1: _r(
        "The first start makes the control chat and prints its link; the first person who joins is the owner.",
        "e2e/test_flow_01_first_start.py::test_flow_1_the_first_start_makes_the_chat_prints_the_link_and_the_first_person_is_the_owner",
        "e2e/test_robust_start.py::test_the_core_is_told_what_flow_1_says_in_its_order_and_less_at_the_next_start",
        "test_setup.py::test_the_second_who_joins_by_the_link_is_no_owner",
    ),
    2: _r(
        "The agent is added to Claude Code, or its entry is printed.",
        "e2e/test_flow_02_register.py::test_flow_2_the_registered_entry_opens_the_server_that_runs",
        "test_register.py::test_flow_2_adds_the_agent_in_place_of_an_old_entry",
        "test_register.py::test_flow_2_without_the_program_the_entry_is_printed",
    ),
    3: _r(
        "A connect is asked, approved, done, and gives the first messages.",
        "e2e/test_flow_03_connect.py::test_flow_3_a_connect_is_asked_approved_and_gives_the_first_messages",
        "e2e/test_flow_03_connect.py::test_flow_3_a_rejected_connect_makes_no_chat",
        "tools/test_connect.py::test_each_plan_has_its_join_method",
    ),
    4: _r(
        "A send is asked, sent as it was asked, and gives the replies.",
        "e2e/test_flow_04_send.py::test_flow_4_a_send_is_asked_sent_and_gives_the_replies",
        "e2e/test_flow_04_send.py::test_flow_4_what_cannot_be_sent_is_refused_without_a_card",
    ),
    5: _r(
        "Unread messages are given once; a waiting receive gets the next one.",
        "e2e/test_flow_05_receive.py::test_flow_5_a_waiting_receive_gives_the_message_when_it_comes",
        "e2e/test_flow_05_receive.py::test_flow_5_unread_messages_are_given_once_oldest_first_with_the_rest_counted",
    ),
    6: _r(
        "A standing approval carries sends until it is revoked, used up, or its time is over.",
        "e2e/test_flow_06_standing.py::test_flow_6_a_standing_approval_carries_later_sends_until_it_is_revoked",
        "e2e/test_flow_06_standing.py::test_flow_6_a_bounded_approval_ends_with_its_messages_and_says_so",
        f"{_CHATS}test_an_approval_survives_a_restart_is_listed_and_can_be_revoked",
    ),
    7: _r(
        "A group is left and a contact deleted after approval; the owner leaves a chat at once.",
        "e2e/test_flow_07_leave.py::test_flow_7_a_group_is_left_and_deleted_after_approval",
        "e2e/test_flow_07_leave.py::test_flow_7_a_contact_is_deleted_and_told",
        "e2e/test_flow_07_leave.py::test_flow_7_the_owner_leaves_a_chat_at_once_and_its_pending_actions_end",
    ),
    8: _r(
        "In mode host the client's user is asked, and the owner is told.",
        "e2e/test_flow_08_host.py::test_flow_8_the_host_asks_its_user_and_the_server_performs_and_tells",
        "e2e/test_flow_08_host.py::test_flow_8_without_an_owner_nothing_is_done_in_mode_host_either",
    ),
    9: _r(
        "An action that nobody decides expires; the agent and the owner are told.",
        "e2e/test_flow_09_expiry.py::test_flow_9_an_action_expires_tells_the_agent_and_the_owner",
        f"{_COMMANDS}test_after_its_time_an_action_is_expired_on_its_card_and_in_the_answer",
    ),
    10: _r(
        "A lost call leaves its action; the same call gets its result.",
        "e2e/test_flow_10_lost_call.py::test_flow_10_a_lost_call_leaves_its_action_and_the_same_call_gets_its_result",
        "e2e/test_flow_10_lost_call.py::test_flow_10_two_equal_calls_at_once_are_one_message_and_one_result",
    ),
    11: _r(
        "A stop ends every call with a result and tells the owner on each card.",
        "e2e/test_flow_11_shutdown.py::test_flow_11_a_stop_ends_every_call_with_a_result_and_tells_the_owner",
        "e2e/test_flow_11_shutdown.py::test_flow_11_the_next_start_goes_on_counting_and_knows_no_old_number",
        "e2e/test_flow_11_shutdown.py::test_flow_11_no_task_is_left_after_a_stop",
    ),
    12: _r(
        "With --owners only the listed people approve.",
        "e2e/test_flow_12_owners.py::test_flow_12_the_list_is_printed_then_obeyed",
        "e2e/test_flow_12_owners.py::test_flow_12_an_owner_outside_the_list_cannot_approve_and_is_told",
        "e2e/test_flow_12_owners.py::test_flow_12_an_entry_that_matches_nobody_ends_the_start_with_code_2",
        "test_setup.py::test_a_list_makes_its_people_owners_and_removes_everybody_else",
    ),
    13: _r(
        "A file is asked for, received after approval, and given as a path.",
        f"{_DOWNLOAD}test_flow_13_a_file_is_asked_for_received_and_given_as_a_path",
        f"{_DOWNLOAD}test_flow_13_the_senders_upload_is_waited_for_without_a_card",
        f"{_DOWNLOAD}test_flow_13_a_long_download_goes_on_and_is_attached_to_again",
        f"{_DOWNLOAD}test_flow_13_a_rejected_file_gets_a_card_again_also_under_a_files_approval",
        f"{_DOWNLOAD}test_flow_13_the_card_of_a_picture_shows_its_preview_and_keeps_it",
        f"{_ROBUST_FILES}test_a_stop_in_the_middle_interrupts_and_the_next_start_finds_the_download_again",
    ),
    14: _r(
        "An owner gets the file first; the agent only after the approval.",
        f"{_FORWARD}test_flow_14_the_owner_gets_the_file_and_the_agent_only_after_the_approval",
        f"{_FORWARD}test_flow_14_a_file_that_does_not_come_is_told_and_the_card_stays_pending",
    ),
    15: _r(
        "A file is shown on the card, bound to its bytes, and sent as it was shown.",
        f"{_SEND_FILE}test_flow_15_a_file_is_shown_approved_and_sent_as_it_is",
        f"{_SEND_FILE}test_flow_15_a_picture_is_shown_on_the_card_and_sent_without_metadata",
        f"{_SEND_FILE}test_flow_15_a_failed_upload_is_told_to_the_owner",
        f"{_SEND_FILE}test_flow_15_copies_of_the_last_run_are_gone_at_the_start",
    ),
    16: _r(
        "Files stay when a chat is left, until an owner deletes them.",
        f"{_DELETE}test_flow_16_files_are_kept_after_an_owners_leave_until_they_are_deleted",
        f"{_DELETE}test_flow_16_deleting_ends_a_download_that_the_core_goes_on_with_after_a_restart",
        f"{_DELETE}test_flow_16_a_new_chat_with_the_number_does_not_find_the_old_files",
    ),
}

CASES: dict[str, Requirement] = {
    # What users of such systems reported
    "U1": _r(
        "A call that waits for a person never falls silent and lives for days.",
        "listener/test_held_calls.py::test_a_call_of_twenty_minutes_never_falls_silent",
        "listener/test_held_calls.py::test_a_call_of_two_days_lives_and_ends_with_its_result",
    ),
    "U2": _r(
        "A result that the client did not wait for is got by the same call, and shown by list.",
        "e2e/test_flow_10_lost_call.py::test_flow_10_a_lost_call_leaves_its_action_and_the_same_call_gets_its_result",
        "tools/test_listing.py::test_list_shows_actions_until_their_result_was_delivered",
    ),
    "U3": _r(
        "No session is demanded, so none can be lost.",
        "listener/test_endpoint.py::test_sessions_are_handed_out_and_never_demanded",
        "listener/test_clients.py::test_it_goes_on_with_another_server_on_the_same_port",
        f"{_LEFT}test_the_pending_call_of_a_client_ends_within_seconds_of_a_restart",
        f"{_CRASH}test_a_call_whose_server_was_killed_ends_within_seconds_of_the_restart",
    ),
    "U4": _r(
        "The first byte of a held call comes at once.",
        "listener/test_held_calls.py::test_a_held_call_has_its_first_byte_within_a_quarter_second",
    ),
    "U5": _r(
        "Each word of an owner gets a clear answer, also a late one, a second one, and one on no number.",
        f"{_COMMANDS}test_a_second_word_a_late_one_and_one_on_an_unknown_number_each_get_a_clear_answer",
        f"{_COMMANDS}test_a_word_that_came_while_the_server_was_down_is_answered_after_its_start",
        f"{_COMMANDS}test_the_answer_to_a_word_survives_a_lost_link",
        "test_actions.py::test_a_tap_that_overtakes_the_answer_of_the_post_is_not_lost",
    ),
    "U6": _r(
        "One server per data folder; a second one is refused loudly.",
        "test_folder.py::test_a_second_server_is_refused_with_the_process_of_the_first",
        "e2e/test_robust_start.py::test_a_second_server_on_the_folder_is_refused_and_the_first_goes_on",
    ),
    "U7": _r(
        "A lost core is tried again for ever.",
        "core/test_websocket.py::test_it_tries_again_for_ever_at_most_every_thirty_seconds",
        "test_uplink.py::test_a_core_that_is_not_ready_is_tried_for_ever_with_longer_pauses_and_said_once",
        "test_status.py::test_a_running_agent_is_one_screen",
    ),
    "U9": _r(
        "What waits unread is shown by `status`, and so is a link that is down.",
        "test_status.py::test_a_running_server_says_what_is_unread_and_who_the_owners_are",
        "test_status.py::test_a_lost_link_is_told_with_its_time",
        "rooms/test_watch.py::test_a_message_wakes_a_process_within_moments",
        "rooms/test_watch.py::test_a_killed_watcher_blocks_nobody",
    ),
    "U10": _r(
        "A card shows its outcome at once, for each way to end, also after a crash and a lost link.",
        f"{_COMMANDS}test_a_card_gets_its_outcome_at_once_for_each_way_to_end",
        f"{_COMMANDS}test_the_cards_of_a_crashed_run_get_their_last_line_at_the_next_start",
        f"{_CRASH}test_killed_after_the_send_or_in_its_stop_or_in_the_next_start_each_card_gets_its_outcome_once",
        f"{_COMMANDS}test_a_card_whose_post_was_lost_with_the_link_is_found_and_told_its_outcome",
    ),
    "U11": _r(
        "Only owners decide, and the log says who did.",
        f"{_COMMANDS}test_a_member_that_is_no_owner_decides_nothing_is_told_and_logged",
        f"{_COMMANDS}test_the_log_names_who_asked_who_decided_and_what_happened_and_no_text",
        f"{_AUDIT}test_each_action_is_in_the_log_from_its_request_to_its_outcome_and_nothing_is_ever_changed",
        f"{_AUDIT}test_who_decided_is_on_the_disk_before_anything_leaves",
    ),
    "U12": _r("Nothing goes out without exactly one word for it, also over a crash at any step.", _PROPERTY, _STEPS),
    "U13": _r(
        "A standing approval survives a restart, is listed to the agent and the owner, and can be revoked.",
        f"{_CHATS}test_an_approval_survives_a_restart_is_listed_and_can_be_revoked",
    ),
    "U14": _r(
        "Characters that cannot be seen are shown on the card.",
        f"{_CARDS}test_a_hostile_text_is_inert_on_every_card_and_sent_unchanged",
        "test_inert.py::test_no_invisible_character_is_left",
    ),
    "U15": _r(
        "A cut parts no character and says how much it hides; the rest is shown on demand.",
        "test_inert.py::test_a_cut_loses_nothing_and_parts_no_character",
        f"{_CARDS}test_a_text_over_the_size_of_a_card_shows_both_ends_and_the_rest_on_demand",
    ),
    "U16": _r(
        "Names that turn the direction of text are shown as what they are, on cards and at the terminal.",
        f"{_CARDS}test_a_hostile_group_name_is_inert_on_every_card",
        "test_terminal.py::test_what_reorders_or_hides_text_is_shown",
        "tools/test_listing.py::test_names_of_others_are_shown_with_what_cannot_be_seen",
    ),
    "U17": _r(
        "Messages come to the agent as fields of JSON; no text can close one.",
        f"{_CARDS}test_a_hostile_name_or_text_of_a_peer_comes_to_the_agent_as_data_with_its_hidden_characters_shown",
        "test_messages.py::test_claims_in_a_text_stay_text",
    ),
    "U18": _r(
        "Before an action expires the owner is reminded.",
        f"{_COMMANDS}test_after_its_time_an_action_is_expired_on_its_card_and_in_the_answer",
        "e2e/test_flow_09_expiry.py::test_flow_9_an_action_expires_tells_the_agent_and_the_owner",
        f"{_CLOCK}test_a_clock_that_jumps_around_the_time_of_a_reminder_reminds_once",
    ),
    "U20": _r(
        "The core is started before it is used, and both forms of its answers are read.",
        "core/test_decode.py::test_both_transports_give_the_same_error",
        "core/test_on_the_sandbox.py::test_the_conversation_of_flow_1_is_the_same_over_each_link",
    ),
    "U23": _r(
        "A result waits for the core's own answer, found by its id, of any size.",
        "core/test_websocket.py::test_a_command_gets_the_answer_with_its_id",
        "core/test_websocket.py::test_frames_of_five_megabytes_pass_both_ways",
    ),
    "U24": _r(
        "What the README tells to type is run by a test; `doctor` says what is wrong and what to do.",
        "test_doctor.py::test_a_new_computer_is_fine_and_knows_what_is_still_to_come",
        "test_doctor.py::test_an_agent_that_was_never_started_fails_with_the_command_to_start_it",
        "test_readme.py::test_every_command_of_the_readme_is_tested_here",
        "test_readme.py::test_a_reader_can_start_register_and_look",
        "test_guides.py::test_the_commands_of_the_quick_start_work_in_their_order",
    ),
    "U25": _r(
        "However often the link goes, each message reaches the agent once, and in order.",
        "e2e/test_robust_link.py::test_each_message_reaches_the_agent_exactly_once_and_in_order_whenever_the_link_goes",
        "tools/test_receive.py::test_what_comes_after_a_missed_message_waits_for_it",
        "tools/test_send.py::test_a_reply_after_a_missed_one_is_not_given_before_it",
        "tools/test_simulated.py::test_with_a_link_that_is_lost_at_random_each_message_comes_once",
    ),
    "U26": _r(
        "A name is no chat: it is refused with the chats it could mean; the card shows kind, name and ID.",
        f"{_CARDS}test_a_name_is_never_a_chat_and_look_alikes_are_listed_with_their_ids",
    ),
    "U28": _r(
        "Only this computer can reach the server, and only with the token.",
        "listener/test_server.py::test_only_loopback_is_bound",
        "listener/test_guard.py::test_only_the_exact_token_opens",
    ),
    "U29": _r(
        "What a message made the agent ask for stands on a card before it goes out.",
        f"{_CHATS}test_an_injected_message_cannot_be_answered_without_the_owner",
    ),
    "U31": _r(
        "A start reads no messages of the chats.",
        "e2e/test_robust_start.py::test_the_core_is_told_what_flow_1_says_in_its_order_and_less_at_the_next_start",
    ),
    "U32": _r(
        "Waiting is told as progress; what the documents list is generated or compared.",
        "listener/test_held_calls.py::test_what_a_tool_says_reaches_the_client_at_once_and_again_every_twenty_seconds",
        "test_docs.py::test_what_is_generated_is_up_to_date",
        "test_docs.py::test_the_table_of_serve_has_every_option_and_its_default",
        "test_guides.py::test_the_agent_guide_has_every_tool_with_its_inputs_and_defaults",
    ),
    "U33": _r(
        "Sends to one chat go out one after the other, in the order they were asked.",
        "tools/test_send.py::test_sends_that_are_approved_together_go_out_in_their_order",
    ),
    "U34": _r(
        "A message wakes who waits for it within moments; nothing is polled, and nothing is told twice.",
        "rooms/test_watch.py::test_a_message_wakes_a_process_within_moments",
        "rooms/test_watch.py::test_nothing_written_costs_one_look_in_five_seconds",
        "rooms/test_watch.py::test_following_tells_each_news_once_at_most_each_second",
        "rooms/test_hook.py::test_a_directed_message_is_told_once_while_the_agent_works",
    ),
    "U35": _r(
        "Locks wedge nobody, and what a command tells is what is unread now.",
        "rooms/test_lock.py::test_of_many_that_start_at_once_exactly_one_holds_it",
        "rooms/test_watch.py::test_a_second_watcher_of_a_scope_is_refused_and_another_scope_is_not",
        "rooms/test_check.py::test_all_rooms_are_counted_and_those_with_news_are_listed",
        "rooms/test_hook.py::test_what_was_read_is_never_told",
    ),
    "U36": _r(
        "A watcher that was killed at any moment blocks no later one, whatever it left.",
        "rooms/test_lock.py::test_case_u36_a_watcher_that_was_killed_while_it_took_the_lock_blocks_nobody",
        "rooms/test_lock.py::test_case_u36_a_file_without_an_owner_in_it_is_taken_over",
        "rooms/test_lock.py::test_a_stranger_that_got_the_process_id_of_a_dead_holder_keeps_nothing",
        "rooms/test_watch.py::test_a_killed_watcher_blocks_nobody",
    ),
    "U37": _r(
        "No idle time ends a call that is being served.",
        "listener/test_held_calls.py::test_a_call_of_two_days_lives_and_ends_with_its_result",
    ),
    "U38": _r(
        "A client that has left is noticed at once; strange bytes end only their own connection.",
        "listener/test_held_calls.py::test_a_client_that_leaves_cancels_its_tool_at_once",
        f"{_LEFT}test_a_client_that_vanished_is_noticed_within_35_seconds",
        f"{_LEFT}test_a_client_that_vanished_cancels_its_tool_though_nothing_says_so",
        "listener/test_guard.py::test_bytes_that_are_no_request_end_only_their_own_connection",
        _FUZZ,
    ),
    "U39": _r(
        "A client's cap on a call loses nothing: the next equal call attaches.",
        "listener/test_clients.py::test_a_call_that_times_out_is_cancelled_in_the_tool",
        "tools/test_send.py::test_a_lost_call_attaches_again_and_gets_the_replies",
        "test_client_limits.py::test_the_guide_says_for_each_client_how_long_it_waits_and_how_to_attach_again",
    ),
    "U40": _r(
        "An error is a sentence in the text of the result, which is never empty.",
        "listener/test_endpoint.py::test_an_error_says_its_sentence_in_the_text",
        "listener/test_endpoint.py::test_an_empty_result_is_not_an_empty_text",
        "listener/test_held_calls.py::test_what_a_tool_says_reaches_the_client_at_once_and_again_every_twenty_seconds",
        "tools/test_download.py::test_the_texts_of_a_wait_name_the_item_and_the_time",
    ),
    "U41": _r(
        "An action is on the disk before its card is sent.",
        "test_actions.py::test_the_journal_knows_the_action_before_its_card_is_posted",
        f"{_CRASH}test_killed_while_it_asks_it_has_asked_nothing_or_the_card_is_cancelled",
    ),
    # Attacks: the HTTP endpoint
    "S1": _r(
        "A request for another host is refused.",
        "listener/test_guard.py::test_another_host_is_refused_before_the_token_is_looked_at",
    ),
    "S2": _r(
        "A page of another site is refused, and no answer allows one.",
        "listener/test_guard.py::test_a_foreign_origin_is_refused",
        "listener/test_guard.py::test_a_browser_that_hides_its_origin_is_refused",
        "listener/test_guard.py::test_its_own_origin_passes_and_no_answer_allows_pages_of_others",
    ),
    "S3": _r(
        "Only the exact token opens, and none is logged.",
        "listener/test_guard.py::test_only_the_exact_token_opens",
        "listener/test_guard.py::test_a_token_that_comes_twice_is_refused_even_when_both_are_right",
        "listener/test_guard.py::test_nothing_is_written_to_the_log_for_refused_and_served_requests",
    ),
    "S4": _r(
        "A body that a form could send is refused.",
        "listener/test_guard.py::test_a_body_that_is_not_declared_json_is_refused",
    ),
    "S5": _r(
        "Large, deep and broken bodies are refused and bounded.",
        "listener/test_guard.py::test_a_declared_size_over_the_limit_is_refused_before_it_is_sent",
        "listener/test_guard.py::test_a_chunked_body_is_counted_while_it_comes",
        "listener/test_guard.py::test_bodies_of_all_clients_together_are_bounded",
        "listener/test_jsonrpc.py::test_what_is_not_plain_json_is_a_parse_error",
        _FUZZ,
    ),
    "S6": _r(
        "Many held calls and slow readers hold up nobody, and there is a cap.",
        "listener/test_held_calls.py::test_hundreds_of_held_calls_each_get_their_own_result",
        "listener/test_held_calls.py::test_a_client_that_does_not_read_blocks_neither_tool_nor_others_and_gets_the_result",
        "listener/test_endpoint.py::test_one_call_more_than_allowed_is_refused_with_a_sentence",
        "listener/test_guard.py::test_more_connections_than_allowed_are_turned_away_with_an_answer",
    ),
    "S7": _r("There is no way to listen elsewhere.", "listener/test_server.py::test_only_loopback_is_bound"),
    # Attacks: the local machine
    "S8": _r(
        "The library has no port. Whoever reaches another core's port can send: that is said, and a program there too.",
        "e2e/test_robust_native.py::test_with_the_library_there_is_no_port_to_the_core",
        "core/test_websocket.py::test_another_client_of_the_core_is_reported_once_and_its_end_too",
        "test_uplink.py::test_another_program_at_the_port_is_a_warning_and_its_end_means_to_read_again",
    ),
    "S9": _r(
        "The same for a web page; and a core elsewhere is spoken to over TLS only.",
        "core/test_websocket.py::test_another_client_of_the_core_is_reported_once_and_its_end_too",
        "core/test_address.py::test_plain_ws_to_another_machine_is_refused",
    ),
    "S10": _r(
        "Another program at the core's port is told at once and by `status`; what it took is read again when it goes.",
        "test_status.py::test_other_programs_at_the_port_of_the_core_are_a_warning",
        "e2e/test_robust_link.py::test_another_client_at_the_port_is_told_to_the_person_and_what_it_took_is_read_when_it_goes",
    ),
    "S11": _r(
        "Files are private from the moment they are there; looser modes are repaired.",
        "test_folder.py::test_the_folder_and_its_files_are_private_whatever_the_umask",
        "test_folder.py::test_files_are_created_with_the_mode_and_never_looser",
        "test_folder.py::test_under_any_umask_nothing_is_ever_open_to_others",
        "test_folder.py::test_looser_modes_are_repaired_with_one_line",
    ),
    "S12": _r(
        "Links and folders of others are refused.",
        "test_folder.py::test_a_folder_that_is_a_symlink_is_refused",
        "test_folder.py::test_a_file_that_is_a_symlink_is_refused",
        "test_folder.py::test_a_folder_of_another_user_is_refused",
    ),
    "S14": _r(
        "Names and paths never meet a shell.",
        "test_register.py::test_s14_a_nasty_folder_reaches_the_program_and_its_helper_as_it_is",
        "test_register.py::test_s14_names_that_could_be_options_or_lines_are_refused",
    ),
    "S15": _r(
        "Secrets are in no entry, no line, no log.",
        "test_register.py::test_no_secret_is_in_the_entry",
        "test_options.py::test_a_refusal_shows_no_password",
        "test_audit.py::test_a_secret_never_gets_in_and_long_values_are_cut",
        f"{_AUDIT}test_no_text_of_anybody_no_link_and_no_secret_is_in_the_log",
        "e2e/test_robust_start.py::test_the_lines_of_a_failed_start_hold_no_secret",
    ),
    "S16": _r(
        "A killed server leaves nothing that stops the next one.",
        "test_folder.py::test_after_a_kill_at_any_step_the_next_start_works",
        f"{_CRASH}test_killed_after_the_send_or_in_its_stop_or_in_the_next_start_each_card_gets_its_outcome_once",
        "test_folder.py::test_a_lock_file_without_a_lock_stops_nobody",
    ),
    # Attacks: cards and commands
    "S17": _r(
        "Nothing on a card is active but our own commands, whatever text is to be sent; it is sent unchanged.",
        f"{_CARDS}test_a_hostile_text_is_inert_on_every_card_and_sent_unchanged",
        f"{_CARDS}test_a_card_in_which_the_core_finds_another_command_is_deleted_and_its_action_fails",
        _POSTS,
    ),
    "S18": _r(
        "Nor whatever a chat, a peer or an owner is called.",
        f"{_CARDS}test_a_hostile_group_name_is_inert_on_every_card",
        f"{_CARDS}test_a_hostile_name_of_an_owner_or_a_joiner_is_inert",
        "test_inert.py::test_any_name_is_inert_and_one_line",
        _POSTS,
        "e2e/test_every_post.py::test_whatever_everybody_is_called_only_the_programs_own_commands_are_active",
    ),
    "S19": _r(
        "A long text shows both ends, its length, and all of it on demand; over a message's size it is refused.",
        f"{_CARDS}test_a_text_over_the_size_of_a_card_shows_both_ends_and_the_rest_on_demand",
        f"{_CARDS}test_a_text_too_long_for_one_message_is_refused_without_a_card",
        "test_posts.py::test_a_card_shows_the_whole_text_or_both_ends_and_how_much_is_between",
        "test_posts.py::test_the_pieces_of_a_text_are_all_of_it",
    ),
    "S20": _r(
        "Bidi, zero-width, tag and control characters and floods of marks are shown; halves of characters are refused.",
        f"{_CARDS}test_a_hostile_text_is_inert_on_every_card_and_sent_unchanged",
        f"{_CARDS}test_a_lone_surrogate_is_refused_without_a_card",
        "test_inert.py::test_a_flood_of_combining_marks_is_shown_as_what_it_is",
        "test_inert.py::test_emoji_keep_their_presentation_but_a_selector_elsewhere_is_shown",
        _POSTS,
    ),
    "S21": _r(
        "Chats with one name are told apart by their IDs.",
        f"{_CARDS}test_a_name_is_never_a_chat_and_look_alikes_are_listed_with_their_ids",
    ),
    "S22": _r(
        "A word counts from an owner, in the control chat, said here and now: nothing else does.",
        f"{_COMMANDS}test_a_member_that_is_no_owner_decides_nothing_is_told_and_logged",
        f"{_COMMANDS}test_a_member_renamed_to_the_owners_name_is_still_nobody",
        f"{_COMMANDS}test_a_removed_owner_decides_nothing_and_approvals_of_theirs_end",
        f"{_COMMANDS}test_an_owner_made_a_member_again_decides_nothing",
        f"{_FAULTS}test_an_owner_removed_between_the_word_and_the_perform_has_approved_nothing",
        f"{_COMMANDS}test_the_agents_own_account_cannot_approve",
        f"{_COMMANDS}test_words_in_another_chat_decide_nothing",
        f"{_COMMANDS}test_a_quote_an_edit_and_a_live_message_are_no_words",
        f"{_COMMANDS}test_a_forwarded_message_is_no_word",
        f"{_COMMANDS}test_what_was_said_before_a_restart_is_handled_once_and_never_again",
        "test_setup.py::test_a_newcomer_with_the_name_of_a_listed_owner_approves_nothing",
    ),
    "S23": _r(
        "An action has one outcome whoever decides it when, and a number is given once.",
        f"{_COMMANDS}test_two_owners_who_decide_at_once_make_one_outcome",
        f"{_COMMANDS}test_a_second_word_a_late_one_and_one_on_an_unknown_number_each_get_a_clear_answer",
        f"{_CHATS}test_a_number_that_a_crash_kept_from_being_stored_is_not_given_again",
        _PROPERTY,
    ),
    "S24": _r(
        "The grammar is strict: what is not exactly a command does nothing.",
        f"{_COMMANDS}test_a_word_outside_the_grammar_does_nothing_and_gets_the_usage",
        f"{_COMMANDS}test_other_talk_is_ignored",
        "test_commands.py::test_every_command_is_read_as_it_is_written_and_as_it_is_tapped",
        "test_commands.py::test_a_command_with_a_change_anywhere_is_another_one_that_is_written_so_or_none",
        "test_commands.py::test_two_commands_in_a_message_are_none",
    ),
    "S25": _r(
        "What changed since the card gets nothing.",
        f"{_CHATS}test_a_group_that_changed_after_the_word_gets_nothing_of_what_was_asked_before",
        f"{_CHATS}test_a_contact_that_takes_another_name_or_deletes_the_chat_gets_nothing",
        f"{_CHATS}test_a_link_that_leads_elsewhere_after_the_card_is_not_followed",
        f"{_CHATS}test_a_chat_number_that_is_used_again_inherits_nothing",
        f"{_CHATS}test_pending_actions_of_a_chat_that_was_left_fail_also_those_to_its_admins",
    ),
    "S26": _r(
        "A standing approval carries messages to its own chat only, while its giver is an owner and nobody revokes it.",
        f"{_CHATS}test_a_standing_approval_carries_messages_to_its_chat_and_nothing_else",
        f"{_CHATS}test_an_approval_for_all_covers_no_pending_leave_and_no_other_chat",
        f"{_CHATS}test_a_revoke_stops_a_send_that_is_already_under_way",
        f"{_CHATS}test_a_revoke_holds_although_the_link_is_lost_while_it_is_read_or_stored",
        f"{_CHATS}test_a_bounded_approval_is_not_stretched_by_sends_at_once",
        f"{_COMMANDS}test_an_owner_who_is_gone_approves_nothing_also_while_the_control_chat_is_stuck",
        f"{_CLOCK}test_a_bounded_approval_ends_in_its_time_though_the_clock_was_set_back",
    ),
    "S27": _r(
        "Fifty actions wait at most; the owner is not flooded, and they expire.",
        f"{_COMMANDS}test_a_flood_of_requests_is_capped_and_the_owner_is_not_flooded",
    ),
    "S28": _r(
        "No tool touches the owners' chat or its link.",
        f"{_CHATS}test_no_tool_touches_the_owners_chat",
        f"{_CHATS}test_the_link_to_the_owners_chat_leads_the_agent_nowhere",
        f"{_CHATS}test_the_owner_cannot_make_the_agent_leave_the_control_chat",
    ),
    "S29": _r(
        "Items and members of another chat cannot be replied to or mentioned.",
        f"{_CHATS}test_a_reply_or_mention_from_another_chat_is_refused",
    ),
    # Attacks: content, process
    "S40": _r(
        "What a message claims stays its text; the agent is told that messages are data.",
        f"{_CARDS}test_a_hostile_name_or_text_of_a_peer_comes_to_the_agent_as_data_with_its_hidden_characters_shown",
        "listener/test_endpoint.py::test_the_instructions_say_what_an_agent_must_know_in_under_two_kilobytes",
    ),
    "S41": _r(
        "Nothing that is printed steers the terminal.",
        f"{_COMMANDS}test_a_name_with_escape_sequences_steers_no_terminal",
        "test_terminal.py::test_nothing_active_is_left_and_it_can_be_encoded",
        "test_terminal.py::test_a_log_line_steers_no_terminal",
    ),
    "S42": _r(
        "Only SimpleX links and names are followed; the card names the other side, its server and the profile shown.",
        f"{_CARDS}test_what_is_no_simplex_link_or_name_is_refused_before_the_core_hears_of_it",
        f"{_CARDS}test_the_card_of_a_connect_names_kind_server_and_profile_and_stays_inert",
    ),
    "S43": _r(
        "What may have been sent is never sent again; the agent and the owner read that nobody knows.",
        f"{_CHATS}test_a_send_whose_answer_is_lost_is_never_repeated_and_says_that_nobody_knows",
        f"{_CHATS}test_a_server_killed_between_the_word_and_the_send_sends_nothing_later",
        f"{_CRASH}test_killed_between_the_word_and_the_send_it_has_done_nothing_twice_and_tells_what_it_knows",
        f"{_FAULTS}test_a_link_that_stalls_is_given_up_and_opened_again_and_nothing_is_sent_twice",
        f"{_FAULTS}test_an_error_of_any_kind_at_any_step_is_a_clear_answer_and_sends_nothing_unknown",
        "e2e/test_robust_link.py::test_a_send_in_flight_at_the_loss_fails_with_check_the_chat_and_is_not_repeated",
        "test_recovery.py::test_what_was_under_way_without_a_card_is_told_in_a_message",
    ),
    "S45": _r(
        "One signal ends every call with a result, a second one ends at once.",
        "e2e/test_process.py::test_a_signal_ends_every_call_with_its_result_and_the_last_line_is_stopped",
        "e2e/test_process.py::test_a_second_signal_ends_the_wait_for_the_delivery_at_once",
    ),
    # Files
    "U21": _r(
        "A file of any kind is given when it is whole, or its failure has a reason.",
        f"{_DOWNLOAD}test_flow_13_a_long_download_goes_on_and_is_attached_to_again",
        f"{_DOWNLOADS}test_a_file_is_received_with_its_bytes_under_its_number_and_for_nobody_else",
    ),
    "U22": _r(
        "Unknown relays are asked about; names that are empty or taken, and old files, are in nobody's way.",
        f"{_DOWNLOAD}test_flow_13_unknown_servers_are_named_and_approved_for_one_file_only",
        "files/test_names.py::test_every_name_becomes_one_that_can_be_made_in_any_folder",
        f"{_DOWNLOADS}test_a_file_with_the_number_of_an_older_one_does_not_write_over_it",
        "files/test_places.py::test_a_move_never_writes_over_a_file",
    ),
    "U27": _r(
        "No path leads around the rules of what may be sent.",
        "files/test_paths.py::test_no_other_spelling_of_a_refused_path_gets_through",
        "files/test_paths.py::test_no_way_to_write_a_path_leads_past_a_rule",
        "files/test_any_path.py::test_no_path_gets_a_secret_out",
        f"{_OUTGOING}test_what_is_no_real_absolute_path_is_refused",
        f"{_SEND_FILE}test_s30_a_refused_file_is_an_error_and_the_owner_is_told",
    ),
    "U30": _r(
        "Every failed file has a reason, and files for groups work as those for contacts.",
        f"{_DOWNLOAD}test_s32_a_full_disk_fails_the_download_and_nothing_is_left",
        f"{_DOWNLOAD}test_flow_13_a_sender_who_cancels_ends_the_download",
        f"{_DOWNLOAD}test_flow_13_a_file_of_a_contact",
        f"{_DOWNLOADS}test_a_file_that_is_gone_from_the_server_says_so_and_cannot_be_received_again",
    ),
    "S30": _r(
        "Links, pipes, devices, secrets and keys are never opened to be sent, and the owner is told.",
        f"{_SEND_FILE}test_s30_a_refused_file_is_an_error_and_the_owner_is_told",
        f"{_OUTGOING}test_a_link_is_refused_as_a_middle_part_and_named",
        f"{_OUTGOING}test_a_pipe_is_refused_without_waiting_for_a_writer",
        f"{_OUTGOING}test_a_hard_link_is_refused_as_its_other_name_may_be_a_secret",
        "files/test_paths.py::test_a_data_folder_is_found_in_each_unicode_form_and_case",
        "files/test_any_path.py::test_no_path_gets_a_secret_out",
    ),
    "S31": _r(
        "What is sent are the bytes that the card was about.",
        f"{_SEND_FILE}test_s31_a_file_that_changed_after_the_card_is_not_sent",
        f"{_OUTGOING}test_a_file_with_other_bytes_and_the_same_identity_is_not_sent",
        f"{_OUTGOING}test_a_change_after_the_copy_changes_nothing",
    ),
    "S32": _r(
        "Files that are empty, too large, sparse or unreadable are refused; a full disk leaves nothing behind.",
        f"{_OUTGOING}test_an_empty_file_is_refused",
        f"{_OUTGOING}test_a_sparse_file_is_refused_before_it_is_read",
        f"{_OUTGOING}test_a_full_disk_is_told_and_leaves_nothing",
        f"{_DOWNLOAD}test_s32_a_full_disk_fails_the_download_and_nothing_is_left",
    ),
    "S33": _r(
        "No standing approval carries a file that the agent sends.",
        "e2e/test_files_property.py::test_s33_no_file_comes_or_goes_without_a_word_for_it",
        f"{_SEND_FILE}test_s33_no_standing_approval_of_messages_carries_a_file",
        "test_standing_files.py::test_an_approval_of_messages_carries_no_download",
        "test_standing_files.py::test_approve_all_leaves_a_pending_download_and_a_pending_file",
    ),
    "S34": _r(
        "Pictures go without metadata, or the card says that it goes along.",
        f"{_SEND_FILE}test_flow_15_a_picture_is_shown_on_the_card_and_sent_without_metadata",
        f"{_SEND_FILE}test_flow_15_a_picture_as_file_goes_with_its_metadata_and_the_card_says_so",
    ),
    "S35": _r(
        "Decoders run with limits, and see one local file.",
        "files/test_media.py::test_a_decoder_that_never_ends_is_ended",
        "files/test_media.py::test_a_picture_that_takes_too_much_memory_is_given_up",
        "files/test_media.py::test_ffmpeg_takes_no_playlist",
    ),
    "S36": _r(
        "A received file lies in its chat's folder under its number; its name is shown, never used.",
        f"{_DOWNLOAD}test_s36_a_hostile_name_is_shown_escaped_and_kept_under_a_number",
        "files/test_places.py::test_a_hostile_name_stays_in_the_chats_folder",
        "test_filecards.py::test_only_the_commands_that_are_meant_are_active_whatever_a_file_is_called",
    ),
    "S38": _r(
        "A received file is never opened, and nobody can run it.",
        f"{_DOWNLOADS}test_a_file_that_the_core_made_executable_is_not",
        f"{_DOWNLOAD}test_flow_13_a_file_is_asked_for_received_and_given_as_a_path",
    ),
    "S39": _r(
        "A lie about the size, a stalled sender and unknown servers end a download or are asked about.",
        f"{_DOWNLOADS}test_a_sender_that_lies_about_the_size_is_refused",
        f"{_DOWNLOAD}test_flow_13_a_stalled_download_fails_after_30_minutes_and_is_cancelled",
        f"{_DOWNLOAD}test_flow_13_unknown_servers_are_named_and_approved_for_one_file_only",
        f"{_DOWNLOADS}test_relays_that_show_up_after_the_acceptance_end_the_download_also_where_the_core_is_silent",
    ),
    "S47": _r(
        "The page of the rooms shows hostile texts as texts, and answers to no other page and no foreign name.",
        "pages/test_rooms_writing.py::test_texts_that_want_to_break_out_stay_texts",
        f"{_VIEW}test_the_address_puts_nothing_into_the_page",
        f"{_VIEW}test_texts_of_others_are_json_and_never_a_page",
        f"{_VIEW}test_a_name_that_a_foreign_server_bound_to_this_computer_reads_and_writes_nothing",
        f"{_VIEW}test_another_page_cannot_write_whatever_form_its_request_has",
        f"{_VIEW}test_another_page_hears_nothing_of_the_stream",
        f"{_VIEW}test_every_answer_forbids_frames_scripts_of_others_and_copies",
        f"{_VIEW}test_with_a_token_nothing_is_read_or_written_without_it",
    ),
    "S48": _r(
        "A persona has one writer at a time, whatever is tried or raced; its word is shown once.",
        f"{_ROOMS_FENCING}test_a_fenced_session_changes_nothing_whatever_it_calls",
        f"{_ROOMS_FENCING}test_nobody_can_speak_as_a_persona_without_its_word",
        f"{_ROOMS_FENCING}test_of_two_resumes_at_once_exactly_one_holds_the_persona",
        f"{_ROOMS_FENCING}test_of_two_claimers_at_once_exactly_one_wins",
        "rooms/test_identity.py::test_the_word_is_never_shown_again",
        "rooms/test_identity.py::test_the_word_is_in_no_line_of_the_servers_log",
        "rooms/test_claims.py::test_a_claim_that_expires_while_its_holder_works_goes_to_the_next",
        "rooms/test_members.py::test_the_read_marker_moves_to_the_end_and_back",
    ),
    "S49": _r(
        "Hostile texts are refused with a reason, or stored and shown as they are.",
        f"{_ROOMS_TEXTS}test_no_stored_text_holds_a_nul_or_half_a_character",
        f"{_ROOMS_TEXTS}test_half_characters_in_structured_content_are_found_at_any_depth",
        f"{_ROOMS_TEXTS}test_any_other_text_comes_back_to_the_letter",
        f"{_ROOMS_TEXTS}test_a_body_has_at_most_ten_million_bytes",
        f"{_ROOMS_TEXTS}test_a_lone_surrogate_on_the_wire_is_answered_with_an_error",
        "rooms/test_searching.py::test_hostile_queries_give_matches_or_a_clear_error",
        "rooms/test_searching.py::test_any_text_is_a_query_or_a_clear_error",
    ),
    "S50": _r(
        "A database that is read-only, full, busy, damaged, older, newer or another program's is told apart, unharmed.",
        f"{_ROOMS_DATABASE}test_a_file_that_may_not_be_written_is_refused_with_what_to_do",
        f"{_ROOMS_DATABASE}test_a_full_disk_refuses_the_post_and_keeps_what_was_there",
        f"{_ROOMS_DATABASE}test_a_file_that_others_keep_busy_is_told_to_be_tried_again",
        f"{_ROOMS_DATABASE}test_a_file_of_the_reference_program_opens_with_all_that_is_in_it",
        f"{_ROOMS_DATABASE}test_a_file_of_a_newer_version_is_left_alone",
        f"{_ROOMS_DATABASE}test_the_database_of_another_program_is_left_alone",
    ),
}

LATER: dict[str, str] = {}
