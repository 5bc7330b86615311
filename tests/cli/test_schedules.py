"""`assets schedule`: its text and its JSON."""

import re
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from accounts_app.models import User
from assets_app.catalogue.pausing import set_paused
from assets_app.models import Run
from assets_app.scheduling.failures import record_failures
from assets_app.scheduling.ticking import handle_ticks
from tests.cli.commands import json_of, output_of
from tests.execution.conftest import make_gateway
from tests.factories import DAILY_2013, asset, external
from tests.scheduling.scheduled_assets import DAILY, HOURLY, any_of, at, by, cron, scheduled, write

pytestmark = pytest.mark.usefixtures("ada")
BEGAN = at(2024, 7, 1)


def schedule_text(*arguments: str) -> str:
    """Return the text of `assets schedule`."""
    return output_of("assets", "schedule", *arguments)


def schedule_json(*arguments: str) -> Any:
    """Return the JSON of `assets schedule`."""
    return json_of("assets", "schedule", *arguments)


def test_a_schedule_by_time_is_shown_with_its_ticks() -> None:
    scheduled("daily", cron("@daily"), since=BEGAN, timezone="America/New_York")
    handle_ticks(at(2024, 7, 2, 4))
    text = schedule_text("daily")
    assert "@daily (every day at 00:00)" in text
    assert "Wed 2024-07-03 00:00" in text
    assert "tick (America/New_York)" in text
    assert "evaluated until" in text
    assert re.search("already materialized +in progress +skipped", text)
    assert schedule_json("daily")["ticks"][0]["queued"] == 1
    assert schedule_json("daily", "--limit", "0")["schedule"]["by_time"] is True


def test_a_run_names_the_time_of_its_tick() -> None:
    scheduled("daily", cron("@daily"), since=BEGAN, timezone="America/New_York")
    handle_ticks(at(2024, 7, 2, 4))
    out = StringIO()
    call_command("runs", "show", str(Run.objects.get().pk), stdout=out)
    assert "2024-07-02 04:00:00 UTC" in out.getvalue()


def test_a_schedule_that_joins_times_is_shown_in_words_with_its_ticks() -> None:
    asset("up", DAILY_2013)
    rule = any_of(by("up"), cron("@daily"))
    scheduled("joined", rule, DAILY_2013, since=BEGAN, timezone="Europe/Berlin")
    handle_ticks(at(2024, 7, 1, 22))
    text = schedule_text("joined")
    assert "up | Cron('@daily') (up or every day at 00:00 (Europe/Berlin))" in text
    assert "Wed 2024-07-03 00:00" in text
    assert schedule_json("joined")["ticks"][0]["reason"] == "nothing_ended"


def test_a_schedule_that_fails_is_shown_with_its_error() -> None:
    daily = scheduled("daily", cron("@daily"), since=BEGAN)
    assert daily.producer is not None
    record_failures({daily.producer.schedule.pk: KeyError("gone")}, at(2024, 7, 2))
    assert "KeyError: 'gone' (tried again at Tue 2024-07-02 00:01)" in schedule_text("daily")


def test_a_schedule_by_assets_is_shown_with_what_is_on_its_way(ada: User) -> None:
    hourly = asset("hourly", HOURLY)
    scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    write(hourly, "2024-07-01T00:00Z..2024-07-01T22:00Z", make_gateway("scheduled"), ada)
    text = schedule_text("daily")
    assert "hourly 23 of 24" in text
    assert "waiting for upstream" in text
    hours = {
        "needed": 24,
        "materialized": 23,
        "missing": ["2024-07-01T23:00Z"],
        "nonexistent": None,
        "excluded": 0,
    }
    assert schedule_json("daily")["on_their_way"] == [
        {"key": "2024-07-01", "upstream": {"hourly": hours}}
    ]


def test_an_asset_without_a_schedule_says_so() -> None:
    asset("by_hand", DAILY_2013)
    assert "only requests and backfills materialize the asset" in schedule_text("by_hand")
    assert schedule_json("by_hand") == {
        "schedule": None,
        "on_their_way": [],
        "ticks": [],
        "truncations": [],
        "missed": None,
    }


def test_an_asset_of_another_program_says_why_no_schedule_is_possible() -> None:
    external("outside", DAILY_2013)
    assert "another program writes the asset" in schedule_text("outside")


def test_missed_partitions_of_a_paused_asset_are_shown(ada: User) -> None:
    hourly = asset("hourly", HOURLY)
    set_paused(scheduled("daily", by("hourly"), DAILY, since=BEGAN), True, user=ada)
    assert "Missed" not in schedule_text("daily")
    write(hourly, "2024-07-01..2024-07-02", make_gateway("scheduled"), ada)
    assert "Missed while paused, 2 partitions: 2024-07-01..2024-07-02." in schedule_text("daily")
    assert schedule_json("daily")["missed"] == {
        "count": 2,
        "first": "2024-07-01",
        "last": "2024-07-02",
        "selection": "2024-07-01..2024-07-02",
        "is_all": True,
    }
