from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from simplexmcp.clock import SystemClock, hhmm, iso, parse_iso
from simplexmcp.sandbox import markdown

NOW = datetime(2026, 11, 30, 22, 44, 5, 678901, tzinfo=UTC)
EAST = timezone(timedelta(hours=3))


def test_the_system_clock_is_aware_and_in_utc():
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_a_moment_of_today_is_hours_and_minutes():
    assert hhmm(NOW + timedelta(minutes=3), NOW, UTC) == "22:47"


def test_a_moment_of_another_day_says_the_day():
    assert hhmm(NOW + timedelta(hours=2), NOW, UTC) == "1 Dec 00:44"


def test_a_moment_of_another_year_says_the_year():
    assert hhmm(NOW + timedelta(days=400), NOW, UTC) == "4 Jan 2028, 22:44"


def test_no_time_is_a_phone_number_on_a_card():
    for hours in (0, 2, 24, 24 * 400):
        assert markdown.parse(f"Action 7 expires at {hhmm(NOW + timedelta(hours=hours), NOW, UTC)}.") is None


def test_the_day_is_the_local_one():
    """22:44 UTC is already 1 December three hours to the east, and so is 00:44 UTC."""
    assert hhmm(NOW + timedelta(hours=2), NOW, EAST) == "03:44"


def test_iso_is_utc_to_the_second():
    assert iso(NOW.astimezone(EAST)) == "2026-11-30T22:44:05Z"


@pytest.mark.parametrize(
    "text", ["2026-11-30T22:44:05Z", "2026-11-30T22:44:05.123456789Z", "2026-12-01T01:44:05.5+03:00"]
)
def test_the_forms_of_the_core_and_ours_are_read(text: str):
    assert iso(parse_iso(text)) == "2026-11-30T22:44:05Z"


def test_what_is_no_time_is_an_error():
    with pytest.raises(ValueError, match="yesterday"):
        parse_iso("yesterday")
