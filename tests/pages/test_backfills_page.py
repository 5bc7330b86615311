"""The page of one backfill: text, actions, and number of statements."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app import audit
from accounts_app.models import AuditEntry, User
from assets_app.models import (
    AssetPartition,
    BundleVersion,
    ProducerVersion,
    Run,
    RunGroup,
    RunState,
)
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition
from backfills_app.queries import retry_skips
from backfills_app.queries.pace import ended_by_time, paces_of
from backfills_app.queries.skips import skipped_by_reason
from backfills_app.services import change_backfill, pause_backfill, resume_backfill
from backfills_app.services.advance.carrying import COULD_NOT_BE_RETRIED
from backfills_app.views.timeline import COLUMNS, timeline_of
from partitions_app.templatetags.slicewise_pages import rounded_duration
from slicewise import PartitionByInterval
from tests.factories import DAILY_2013, asset, person
from tests.pages.backfill_records import hold_partitions, runs_of, skip, written_backfill
from tests.pages.markup import compact, page_at, polled_address
from tests.pages.run_records import recorded_run, renewed_code
from tests.query_plans import rows_read

pytestmark = pytest.mark.django_db


@pytest.fixture
def january(vera: User) -> Backfill:
    """Create a backfill of a month of days, of which nothing is materialized."""
    asset("raw_flights", DAILY_2013, params={"limit": 3})
    return written_backfill(vera, description="January again")


def page_of(browser: Client, backfill: Backfill, query: str = "") -> str:
    """Return the page of a backfill."""
    return page_at(browser, f"/backfills/{backfill.pk}/?{query}")


def words_of(text: str) -> str:
    """Return the words that people read of a page."""
    return " ".join(re.sub("<[^>]*>", "", text).split())


def test_every_column_of_the_source_design_is_on_the_page(
    browser: Client, january: Backfill
) -> None:
    runs_of(january, "succeeded", 31)
    text = page_of(browser, january)
    for column in (
        january.name, "raw_flights", "Succeeded", "January again", "2013-01-01..2013-01-31",
        "limit=3", "<dt>Max active runs</dt><dd>3</dd>", "<dt>Start at</dt><dd>immediately</dd>",
        "<dt>Deleted</dt><dd>no</dd>", "flights.py", "def raw_flights(): ...", "by vera",
    ):  # fmt: skip
        assert column in text, column
    for moment in ("start_date", "end_date", "submitted_at", "updated_at", "run_start_date"):
        instant = getattr(january, moment)
        assert f"{instant:%Y-%m-%d %H:%M:%S} UTC" in text, moment


def test_queued_partitions_are_not_shown_as_running(browser: Client, january: Backfill) -> None:
    runs_of(january, "running", 1)
    runs_of(january, "queued", 1)
    text = page_of(browser, january)
    shown = [re.search(rf"2013-01-0{day}: (\w+)", text) for day in (1, 2, 3)]
    assert [match and match[1] for match in shown] == ["running", "queued", "waiting"]


def test_failures_are_grouped_by_what_they_say(browser: Client, january: Backfill) -> None:
    runs_of(january, "failed", 3, error="ValueError: line 17 is cut")
    runs_of(january, "failed", 1, error="KeyError: 'dest'")
    text = compact(page_of(browser, january))
    assert text.index("3 runs</span>") < text.index("1 run</span>")
    assert "line 17 is cut" in text


def test_skipped_partitions_are_counted_by_reason_with_the_holding_backfill(
    browser: Client, vera: User, january: Backfill
) -> None:
    holder = written_backfill(vera)
    (run,) = runs_of(holder, "running", 1)
    hold_partitions(run, skip(january, "in_flight", 2))
    skip(january, "upstream_missing", 3)
    text = compact(page_of(browser, january))
    assert "Already in progress:" in text
    assert f'<a href="/backfills/{holder.pk}/">{holder.name}</a>' in text
    assert "<b>3</b></span>Upstream missing" in text
    assert "2013-01-01: skipped: Already in progress" in text
    skips = skipped_by_reason(january.assets.all())
    assert [(skip.reason, skip.number) for skip in skips] == [
        ("upstream_missing", 3), ("in_flight", 2),
    ]  # fmt: skip


def test_a_skipped_partition_names_the_backfill_that_it_was_left_to(
    vera: User, january: Backfill
) -> None:
    holder, later = written_backfill(vera), written_backfill(vera)
    (holding_run,), (later_run,) = runs_of(holder, "running", 1), runs_of(later, "running", 1)
    keys = skip(january, "in_flight", 1)
    hold_partitions(later_run, keys)
    BackfillPartition.objects.filter(state="skipped").update(run=holding_run)
    (skipped,) = skipped_by_reason(january.assets.all())
    assert skipped.others == ((holder.pk, holder.name),)


def test_a_skipped_asset_without_partitions_names_the_backfill_that_holds_the_data(
    vera: User, january: Backfill
) -> None:
    rates = asset("rates", None)
    assert rates.producer
    assert rates.producer.current_version
    whole = BackfillAsset.objects.create(
        backfill=january, asset=rates, producer_version=rates.producer.current_version,
        position=1, total=1, expanded=1, skipped=1,
    )  # fmt: skip
    BackfillPartition.objects.create(
        backfill_asset=whole, position=0, key="", state="skipped", reason="in_flight"
    )
    holder = written_backfill(vera)
    (holding_run,) = runs_of(holder, "running", 1)
    AssetPartition.objects.create(asset=rates, identity="whole", key="", held_by=holding_run)
    (skipped,) = skipped_by_reason(january.assets.all())
    assert skipped.others == ((holder.pk, holder.name),)


def test_the_timeline_counts_runs_by_when_they_ended(january: Backfill) -> None:
    now = timezone.now()
    assert timeline_of(january, now) is None
    runs = runs_of(january, "succeeded", 10, seconds=60.0)
    (failed,) = runs_of(january, "failed", 1, error="no", seconds=60.0)
    drawn = timeline_of(january, now)
    assert drawn
    assert drawn.counted == (("succeeded", 10), ("failed", 1))
    assert drawn.first == min(run.started_at for run in runs if run.started_at)
    assert drawn.last == failed.ended_at
    assert len(drawn.columns) <= COLUMNS
    assert all(0 <= column.x < COLUMNS for column in drawn.columns)
    tallest = max(sum(bar.height for bar in column.bars) for column in drawn.columns)
    assert tallest == pytest.approx(40, abs=0.1)


def test_runs_that_all_ended_at_once_are_one_column(january: Backfill) -> None:
    runs_of(january, "succeeded", 4)
    instant = timezone.now()
    Run.objects.update(started_at=instant, ended_at=instant)
    ended = ended_by_time(january, COLUMNS, instant)
    assert ended
    assert ended.columns == {0: {"succeeded": 4}}


def test_the_pace_of_a_backfill_without_progress_slows_down(january: Backfill) -> None:
    runs_of(january, "succeeded", 10, seconds=1.0)
    runs_of(january, "running", 1)
    now = timezone.now()
    soon, later = (paces_of([january], now + timedelta(seconds=s)) for s in (0, 600))
    fast, slow = soon[january.pk].per_second, later[january.pk].per_second
    assert fast
    assert slow
    assert slow < fast / 10


def test_a_backfill_in_which_no_run_ends_tells_since_when_in_place_of_its_pace(
    browser: Client, january: Backfill
) -> None:
    ended = runs_of(january, "succeeded", 10, seconds=20.0)
    working = runs_of(january, "running", 2)
    text = words_of(page_of(browser, january))
    assert "Last run ended" not in text
    assert re.search(r"(about \d+|less than 1) min left", text)
    moved(ended, 1)
    moved(working, 1)
    text = words_of(page_of(browser, january))
    assert "Last run ended" in text
    assert "partitions/min" not in text
    assert "min left" not in text
    assert "Last run ended" in words_of(page_at(browser, "/backfills/"))
    moved(working, -0.99)
    assert "Last run ended" not in words_of(page_of(browser, january))


@pytest.mark.parametrize("actions", [("pause", "resume"), ("retry failed",)])
def test_a_pause_and_the_time_before_a_retry_are_no_silence(
    browser: Client, january: Backfill, actions: tuple[str, ...]
) -> None:
    """Runs of half an hour ended ten hours ago; the next run began three minutes ago."""
    now = timezone.now()
    ended = runs_of(january, "succeeded", 4, seconds=1800.0)
    for run in ended:
        run.queued_at = run.started_at
    Run.objects.bulk_update(ended, ["queued_at"])
    moved(ended, 10)
    let_go(january, actions[0], now - timedelta(hours=10))
    let_go(january, actions[-1], now - timedelta(minutes=4))
    (working,) = runs_of(january, "running", 1, seconds=90.0)
    Run.objects.filter(pk=working.pk).update(queued_at=now - timedelta(minutes=4))
    assert paces_of([january], now)[january.pk].silent_since is None
    text = words_of(page_of(browser, january))
    assert "Last run ended" not in text
    assert "left" in text
    moved([working], 6)
    assert paces_of([january], now)[january.pk].silent_since


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (12, "less than 1 min"), (3_338, "about 56 min"), (11_900, "about 3 h 20 min"),
        (180_000, "about 2 d 2 h"), (86_380, "about 1 d"),
    ],
)  # fmt: skip
def test_a_time_left_is_rounded(seconds: float, text: str) -> None:
    assert rounded_duration(timedelta(seconds=seconds)).replace("\N{NO-BREAK SPACE}", " ") == text


def moved(runs: list[Run], hours: float) -> None:
    """Have runs begun and ended so many hours earlier."""
    for run in runs:
        assert run.started_at
        run.started_at -= timedelta(hours=hours)
        run.ended_at = run.ended_at and run.ended_at - timedelta(hours=hours)
    Run.objects.bulk_update(runs, ["started_at", "ended_at"])


def let_go(backfill: Backfill, action: str, at: datetime) -> None:
    """Record that a person resumed or retried a backfill."""
    with patch("django.utils.timezone.now", return_value=at):
        audit.record(backfill.submitted_by, action, "backfill", backfill.name)


def pace_of(backfill: Backfill, now: datetime) -> float:
    seen = paces_of([backfill], now)[backfill.pk].per_second
    assert seen
    return seen


def test_the_pace_counts_no_pause_and_no_time_before_a_retry(january: Backfill) -> None:
    now = timezone.now()
    moved(runs_of(january, "succeeded", 10, seconds=1.0), 8)
    moved(runs_of(january, "succeeded", 5, seconds=1.0), 4)
    let_go(january, "retry failed", now - timedelta(hours=4, seconds=6.5))
    assert pace_of(january, now) == pytest.approx(1.0, rel=0.1)
    let_go(january, "pause", now - timedelta(hours=4, seconds=1))
    let_go(january, "resume", now - timedelta(seconds=10))
    # A run is dispatched, and has not begun.
    (run,) = runs_of(january, "dispatched", 1)
    Run.objects.filter(pk=run.pk).update(started_at=None)
    assert pace_of(january, now) == pytest.approx(15 / 25, rel=0.05)
    Run.objects.filter(pk=run.pk).update(state="running", started_at=now - timedelta(seconds=5))
    assert pace_of(january, now) == pytest.approx(15 / 25, rel=0.05)


def test_the_pace_counts_no_time_before_a_retry_of_a_run(january: Backfill) -> None:
    now = timezone.now()
    moved(runs_of(january, "succeeded", 4, seconds=1.0), 8)
    (run,) = runs_of(january, "succeeded", 1, seconds=1.0)
    assert run.started_at
    # The clock of the host is ahead of the database's.
    with patch("django.utils.timezone.now", return_value=run.started_at + timedelta(seconds=2)):
        audit.record(january.submitted_by, "retry", "run", str(run.pk))
    assert pace_of(january, now) == pytest.approx(1.0, rel=0.1)


def test_the_pace_counts_waits_for_a_slot(january: Backfill) -> None:
    now = timezone.now()
    for hours in (3, 2, 1):
        moved(runs_of(january, "succeeded", 1, seconds=600.0), hours)
    assert pace_of(january, now) == pytest.approx(3 / (2 * 3600 + 600), rel=0.01)


def test_a_pause_after_the_start_ends_no_wait_before(january: Backfill) -> None:
    now = timezone.now()
    for hours in (3, 2, 1):
        moved(runs_of(january, "succeeded", 1, seconds=600.0), hours)
    started = now - timedelta(hours=1, minutes=20)
    let_go(january, "pause", started + timedelta(seconds=20))
    let_go(january, "resume", started + timedelta(seconds=40))
    assert pace_of(january, now) == pytest.approx(3 / (2 * 3600 + 600), rel=0.01)


@pytest.mark.parametrize("minutes_ahead", [0, 3])
def test_of_a_wait_only_the_pauses_in_it_do_not_count(
    january: Backfill, minutes_ahead: int
) -> None:
    """Also where the clock of the host that records the pauses is ahead."""
    now = timezone.now()
    moved(runs_of(january, "succeeded", 3, seconds=600.0), 4)
    moved(runs_of(january, "succeeded", 1, seconds=600.0), 0)
    started = now - timedelta(minutes=20)
    for minutes in (180, 30):
        for action, at in ("pause", minutes), ("resume", minutes - 20):
            let_go(january, action, started - timedelta(minutes=at - minutes_ahead))
    waited = 4 * 60 + 30 - 2 * 20
    assert pace_of(january, now) == pytest.approx(4 / (waited * 60), rel=0.01)


def test_a_run_that_begins_during_a_pause_ends_the_idle_time(january: Backfill) -> None:
    now = timezone.now()
    moved(runs_of(january, "succeeded", 3, seconds=600.0), 4)
    moved(runs_of(january, "succeeded", 1, seconds=600.0), 0)
    let_go(january, "pause", now - timedelta(minutes=30))
    let_go(january, "resume", now - timedelta(minutes=5))
    waited = 4 * 60 + 30 - 10
    assert pace_of(january, now) == pytest.approx(4 / (waited * 60), rel=0.01)


@pytest.mark.parametrize("is_run_started", [True, False])
def test_a_retry_ends_no_wait_of_other_runs(january: Backfill, is_run_started: bool) -> None:
    """A run of the backfill is queued since four hours ago; another is retried an hour ago."""
    now = timezone.now()
    moved(runs_of(january, "succeeded", 6, seconds=600.0), 4)
    (again,) = runs_of(january, "succeeded", 1, seconds=60.0)
    (waiting,) = runs_of(january, "running" if is_run_started else "queued", 1, seconds=1.0)
    hour_ago, queued_at = now - timedelta(hours=1), now - timedelta(hours=4)
    Run.objects.filter(pk=again.pk).update(queued_at=hour_ago)
    Run.objects.filter(pk=waiting.pk).update(queued_at=queued_at)
    with patch("django.utils.timezone.now", return_value=hour_ago):
        audit.record(january.submitted_by, "retry", "run", str(again.pk))
    assert pace_of(january, now) == pytest.approx(7 / (5 * 3600), rel=0.01)
    Run.objects.filter(pk=waiting.pk).update(queued_at=hour_ago)
    assert pace_of(january, now) == pytest.approx(7 / (2 * 3600), rel=0.01)


def test_the_pace_counts_no_time_before_a_retry_whose_run_is_dispatched(
    january: Backfill,
) -> None:
    now = timezone.now()
    moved(runs_of(january, "succeeded", 10, seconds=1.0), 72)
    (run,) = runs_of(january, "dispatched", 1)
    retried_at = now - timedelta(seconds=5)
    Run.objects.filter(pk=run.pk).update(started_at=None, queued_at=retried_at)
    with patch("django.utils.timezone.now", return_value=retried_at):
        audit.record(january.submitted_by, "retry", "run", str(run.pk))
    assert pace_of(january, now) == pytest.approx(10 / 15, rel=0.01)


def test_the_rate_names_its_time_and_is_absent_where_nothing_was_materialized(
    browser: Client, january: Backfill
) -> None:
    runs_of(january, "failed", 5, error="no")
    assert "partitions/" not in words_of(page_of(browser, january))
    runs_of(january, "succeeded", 5)
    assert re.search(r"partitions/min while running", words_of(page_of(browser, january)))


def test_failed_runs_whose_partitions_were_requeued_are_told_apart(
    browser: Client, january: Backfill
) -> None:
    runs = runs_of(january, "failed", 3, error="no")
    text = words_of(page_of(browser, january))
    assert "Failed 3 runs" in text
    assert "retried since" not in text
    january.assets.get().partitions.filter(run=runs[0]).update(state="waiting", run=None)
    text = words_of(page_of(browser, january))
    assert "Failed 3 runs, 1 of these retried since" in text
    assert "2 runs no" in text


def test_the_failures_lead_to_all_failed_runs(browser: Client, january: Backfill) -> None:
    runs_of(january, "succeeded", 2)
    assert "All failed runs" not in page_of(browser, january)
    failed_runs = runs_of(january, "failed", 7, error="no")
    link = re.search(r'href="([^"]*)">\s*All failed runs', page_of(browser, january))
    assert link
    listed_ids = re.findall(r'id="run-(\d+)"', page_at(browser, unescape(link[1])))
    assert sorted(map(int, listed_ids)) == [run.pk for run in failed_runs]


def test_a_run_at_work_is_no_pause(january: Backfill) -> None:
    now = timezone.now()
    runs_of(january, "running", 1, seconds=4 * 3600.0)
    for hours in (3, 2, 1):
        moved(runs_of(january, "succeeded", 1, seconds=60.0), hours)
    let_go(january, "pause", now - timedelta(hours=1.8))
    let_go(january, "resume", now - timedelta(hours=1.5))
    assert pace_of(january, now) == pytest.approx(3 / (3 * 3600 + 60), rel=0.01)


def test_it_is_paused_and_resumed_by_a_button(browser: Client, january: Backfill) -> None:
    text = page_of(browser, january)
    assert 'id="pause"' in text
    assert 'id="resume"' not in text
    answer = browser.post(f"/backfills/{january.pk}/pause/")
    assert answer["Location"] == f"/backfills/{january.pk}/"
    text = page_of(browser, january)
    assert 'id="resume"' in text
    assert 'id="pause"' not in text
    browser.post(f"/backfills/{january.pk}/resume/")
    january.refresh_from_db()
    assert january.state == "scheduled"


def test_a_paused_backfill_tells_who_paused_it_and_when(
    browser: Client, vera: User, january: Backfill
) -> None:
    asset("weather", DAILY_2013)
    other = written_backfill(vera, "weather")
    pages = f"/backfills/{january.pk}/", "/backfills/"
    assert not any("aused by" in page_at(browser, page) for page in pages)
    pause_backfill(other, user=person("omar", is_superuser=True))
    pause_backfill(january, user=person("anna", is_superuser=True))
    resume_backfill(january, user=vera)
    version = polled_address(page_at(browser, pages[0]))
    pause_backfill(january, user=person("eve", is_superuser=True))
    paused_at = AuditEntry.objects.filter(subject=january.name, action="pause")[0].at
    stamp = f'<time datetime="{paused_at.isoformat(timespec="milliseconds")}"'
    assert f"Paused by eve{stamp}" in compact(page_at(browser, pages[0]))
    assert browser.get(version).status_code == 200
    listed = compact(page_at(browser, pages[1]))
    assert f"paused by eve{stamp}" in listed
    assert "paused by omar<time" in listed
    resume_backfill(january, user=vera)
    assert "aused by" not in page_at(browser, pages[0])


def test_a_backfill_that_is_being_canceled_is_not_called_paused(
    browser: Client, january: Backfill
) -> None:
    # As a cancellation leaves the rows until the bulk worker has done the work.
    RunGroup.objects.filter(pk=january.group_id).update(paused=True)
    Backfill.objects.filter(pk=january.pk).update(state="canceling")
    text = words_of(page_of(browser, january))
    assert "The backfill is being canceled: no run starts." in text
    assert "Resume the backfill" not in text
    assert "paused" not in words_of(page_at(browser, "/backfills/"))


def test_the_start_of_a_backfill_that_begins_later_is_told(
    browser: Client, january: Backfill
) -> None:
    later = datetime(2999, 1, 2, 3, 4, tzinfo=UTC)
    assert "Runs start when" in words_of(page_of(browser, january))
    Backfill.objects.filter(pk=january.pk).update(scheduled_date=later)
    text = words_of(page_of(browser, january))
    assert "No runs yet. Runs start from 2999-01-02 03:04" in text


def test_actions_that_do_not_fit_the_state_are_refused_in_words(
    browser: Client, january: Backfill
) -> None:
    answer = browser.post(f"/backfills/{january.pk}/resume/", follow=True)
    assert "is not paused" in answer.content.decode()
    answer = browser.post(f"/backfills/{january.pk}/delete/", follow=True)
    assert "Only a backfill that has ended can be deleted" in answer.content.decode()


def test_it_is_changed_while_it_runs(browser: Client, january: Backfill) -> None:
    address = f"/backfills/{january.pk}/change/"
    assert 'name="max_active_runs" value="3"' in browser.get(address).content.decode()
    sent = {
        "max_active_runs": "7", "priority": "-2", "order": "newest", "description": "faster",
    }  # fmt: skip
    assert browser.post(address, sent)["Location"] == f"/backfills/{january.pk}/"
    january = Backfill.objects.select_related("group").get(pk=january.pk)
    assert (january.max_active_runs, january.order, january.description) == (7, "newest", "faster")
    assert (january.group.max_active_runs, january.group.priority) == (7, -2)


def test_a_change_leaves_fields_as_others_have_changed_these_since_the_form_was_shown(
    browser: Client, january: Backfill, vera: User
) -> None:
    address = f"/backfills/{january.pk}/change/"
    shown = browser.get(address)
    hidden = re.findall(
        r'<input type="hidden" name="(initial-[^"]*)"(?: value="([^"]*)")?', shown.content.decode()
    )
    form = {field.html_name: field.value() for field in shown.context["form"]} | dict(hidden)
    change_backfill(january, priority=7, max_active_runs=9, description="late", user=vera)
    refused = browser.post(address, form | {"priority": "many"})
    assert 'name="initial-priority" value="0"' in refused.content.decode()
    browser.post(address, form | {"order": "newest", "max_active_runs": "5"})
    january = Backfill.objects.select_related("group").get(pk=january.pk)
    assert (january.order, january.max_active_runs) == ("newest", 5)
    assert (january.group.priority, january.description) == (7, "late")
    answer = browser.post(address, form, follow=True)
    assert f"{january.name} unchanged." in answer.content.decode()
    assert AuditEntry.objects.filter(action="change").count() == 2


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("max_active_runs", "0"), ("max_active_runs", "many"), ("max_active_runs", "9" * 5000),
        ("priority", "1.5"), ("order", "listed"), ("order", "by size"), ("description", "x" * 1001),
    ],
    ids=lambda value: value[:20],
)  # fmt: skip
def test_a_change_that_is_wrong_is_refused_at_its_field(
    browser: Client, january: Backfill, field: str, text: str
) -> None:
    sent = {"max_active_runs": "3", "priority": "0", "order": "oldest", "description": ""}
    answer = browser.post(f"/backfills/{january.pk}/change/", sent | {field: text})
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [field]


def test_failed_partitions_are_retried_after_a_page_that_asks_for_the_code_version(
    browser: Client, january: Backfill
) -> None:
    assert "Retry failed" not in page_of(browser, january)
    runs_of(january, "failed", 2, error="no")
    assert f"/backfills/{january.pk}/retry/" in page_of(browser, january)
    asked = compact(page_at(browser, f"/backfills/{january.pk}/retry/"))
    assert "Code unchanged." in asked
    crumbs = asked.split('aria-label="Breadcrumb">')[1].split("</nav>")[0]
    assert f'href="/backfills/{january.pk}/"' in crumbs
    renewed_code(january.asset)
    text = browser.get(f"/backfills/{january.pk}/retry/").content.decode()
    assert 'value="newest"' in text
    assert re.search("Latest.*ffffffffffff", words_of(text))
    assert "Retry 2 partitions" in words_of(text)
    assert "2 failed" in text
    browser.post(f"/backfills/{january.pk}/retry/", {"code": "newest"})
    backfill_asset = january.assets.get()
    assert (backfill_asset.waiting, backfill_asset.failed) == (31, 0)


def test_the_source_names_the_version_that_a_retry_has_put_in_place(
    browser: Client, january: Backfill
) -> None:
    assert "retried with" not in page_of(browser, january)
    version = renewed_code(january.asset)
    newer = BundleVersion.objects.create(
        bundle=version.bundle_version.bundle, digest="e" * 64, archive=b""
    )
    version.bundle_version = newer
    version.save()
    runs_of(january, "failed", 2, error="no")
    browser.post(f"/backfills/{january.pk}/retry/", {"code": "newest"})
    assert "Source of raw_flights, retried with bundle version eeeeeeeeeeee" in words_of(
        page_of(browser, january)
    )


def last_result(backfill: Backfill, run: Run | None, key: str, state: str, **values: Any) -> None:
    """Record the present state of a partition."""
    AssetPartition.objects.create(
        asset=backfill.asset, identity=backfill.asset.identity, key=key, state=state,
        last_run=run, version=int(state == "materialized"), **values,
    )  # fmt: skip


def question_of(browser: Client, backfill: Backfill) -> str:
    """Return the words of the page that asks before a retry."""
    return words_of(page_at(browser, f"/backfills/{backfill.pk}/retry/"))


@pytest.mark.parametrize(
    ("error", "is_offered"),
    [("", True), (f"{COULD_NOT_BE_RETRIED}ValueError: no plug-in", True), ("No code.", False)],
)
def test_a_retry_is_offered_again_after_a_retry_that_could_not_be_carried_out(
    browser: Client, january: Backfill, error: str, is_offered: bool
) -> None:
    runs_of(january, "failed", 31)
    Backfill.objects.update(error=error)
    assert ("Retry failed…" in page_of(browser, january)) is is_offered


def test_a_retry_tells_which_failed_partitions_are_materialized_by_now(
    browser: Client, january: Backfill
) -> None:
    runs = runs_of(january, "failed", 6, error="no")
    skipped_key = skip(january, "upstream_missing", 1)[0]
    canceled_key = runs_of(january, "canceled", 3)[0].selection
    assert "skipped." not in question_of(browser, january).partition("because of upstream.")[2]
    last_result(january, runs[0], runs[0].selection, "failed")
    for key in (runs[1].selection, runs[2].selection, skipped_key, canceled_key):
        last_result(january, None, key, "materialized")
    asked = question_of(browser, january)
    assert "7 partitions failed or skipped because of upstream. 3 of these are" in asked
    assert "3 of these are materialized by now, and are skipped. 4 are left to run." in asked
    assert "3 canceled partitions. 1 of these is materialized by now, and is skipped." in asked
    other = recorded_run(january.asset, RunState.RUNNING, runs[3].selection)
    last_result(january, None, runs[3].selection, "failed", held_by=other)
    assert "1 of these is in progress in another run, and is skipped. 3 are left" in question_of(
        browser, january
    )
    last_result(january, other, runs[4].selection, "failed")
    assert "in another run since" not in question_of(browser, january)
    Backfill.objects.filter(pk=january.pk).update(existing="missing")
    asked = question_of(browser, january)
    assert "1 of these failed in another run since, and is skipped. 2 are left" in asked
    Backfill.objects.filter(pk=january.pk).update(existing="stale")
    asked = question_of(browser, january)
    assert "3 of these are materialized by now, and are skipped unless stale or from" in asked
    assert "are left" not in asked.partition("canceled")[0]
    Backfill.objects.filter(pk=january.pk).update(existing="all")
    assert "materialized by now" not in question_of(browser, january)


def test_a_retry_of_outlets_written_together_tells_no_number_that_is_left(
    browser: Client, january: Backfill
) -> None:
    runs = runs_of(january, "failed", 4, error="no")
    last_result(january, None, runs[0].selection, "materialized")
    assert "and is skipped. 3 are left to run." in question_of(browser, january)
    version = january.assets.get().producer_version
    version.definition["outlets"].append({"name": "flight_errors"})
    version.save()
    asked = question_of(browser, january)
    assert "1 of these is materialized by now, and is skipped." in asked
    assert "left to run" not in asked


def test_a_retry_of_an_unpartitioned_asset_tells_no_number_that_is_left(
    browser: Client, january: Backfill
) -> None:
    runs = runs_of(january, "failed", 4, error="no")
    last_result(january, None, runs[0].selection, "materialized")
    rates = asset("rates", None)
    assert rates.producer
    assert rates.producer.current_version
    whole = BackfillAsset.objects.create(
        backfill=january, asset=rates, producer_version=rates.producer.current_version,
        position=1, total=1, expanded=1, waiting=1,
    )  # fmt: skip
    row = BackfillPartition.objects.create(backfill_asset=whole, position=0, key="")
    assert "and is skipped. 3 are left to run." in question_of(browser, january)
    BackfillPartition.objects.filter(pk=row.pk).update(state="failed")
    BackfillAsset.objects.filter(pk=whole.pk).update(waiting=0, failed=1)
    asked = question_of(browser, january)
    assert "5 partitions failed" in asked
    assert "1 of these is materialized by now, and is skipped." in asked
    assert "left to run" not in asked


def test_a_retry_examines_a_limited_number_of_partitions_and_says_so(
    browser: Client, january: Backfill, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = runs_of(january, "failed", 6, error="no")
    for run in runs:
        last_result(january, None, run.selection, "materialized")
    monkeypatch.setattr(retry_skips, "MOST_EXAMINED", 4)
    asked = question_of(browser, january)
    assert "6 partitions failed or skipped" in asked
    assert "At least 4 of these are materialized by now, and are skipped." in asked
    assert "left to run" not in asked


def test_a_retry_reads_two_versions_of_each_function(january: Backfill) -> None:
    (backfill_asset,) = january.assets.all()
    version = backfill_asset.producer_version
    version.definition["outlets"] = None
    version.save()
    unrelated = [
        ProducerVersion(
            producer=version.producer, bundle_version=version.bundle_version, digest=str(number),
            definition={}, source="", file="",
        )
        for number in range(200)
    ]  # fmt: skip
    ProducerVersion.objects.bulk_create(unrelated)
    with CaptureQueriesContext(connection) as statements:
        skips, _ = retry_skips.retry_skips(january)
    assert not skips.skips_more
    (statement,) = statements.captured_queries
    assert rows_read(statement["sql"]) < 20


def test_who_did_what_is_on_record(browser: Client, january: Backfill) -> None:
    browser.post(f"/backfills/{january.pk}/pause/")
    changed = {"max_active_runs": "7", "priority": "0", "order": "oldest", "description": "because"}
    browser.post(f"/backfills/{january.pk}/change/", changed)
    trail = compact(page_of(browser, january)).split("Audit log")[1]
    assert "Create" in trail
    assert "Pause" in trail
    assert trail.count("vera") == 3
    assert "max active runs: 3 → 7" in trail
    assert "→ because" in trail


def test_a_long_audit_log_has_the_newest_actions_and_says_that_older_ones_are_left_out(
    browser: Client, vera: User, january: Backfill
) -> None:
    for number in range(1, 50):
        audit.record(vera, "change", "backfill", january.name, {"reason": f"no {number};"})
    trail = page_of(browser, january).split("Audit log")[1]
    assert ("Create" in trail, "Older actions" in trail) == (True, False)
    audit.record(vera, "change", "backfill", january.name, {"reason": "no 50;"})
    trail = page_of(browser, january).split("Audit log")[1]
    assert ("Create" in trail, trail.count("vera")) == (False, 50)
    assert trail.index("no 1;") < trail.index("no 50;")
    assert "The latest 50 actions. Older actions are not listed." in trail


@pytest.mark.parametrize("fragment", ["progress", "details", "cells"])
def test_each_fragment_answers_nothing_until_it_has_changed_and_ends_with_the_backfill(
    browser: Client, january: Backfill, fragment: str
) -> None:
    again = polled_address(browser.get(f"/backfills/{january.pk}/{fragment}/").content.decode())
    assert browser.get(again).status_code == 204
    runs_of(january, "succeeded", 1)
    answer = browser.get(again)
    assert answer.status_code == 200
    text = answer.content.decode()
    assert "<html" not in text
    assert browser.get(polled_address(text)).status_code == 204
    runs_of(january, "succeeded", 30)
    answer = browser.get(polled_address(text))
    assert answer.status_code == 286
    assert "hx-get" not in answer.content.decode()


def test_an_open_page_tells_that_a_backfill_stalls_and_the_time_of_the_next_try(
    browser: Client, january: Backfill
) -> None:
    address = f"/backfills/{january.pk}/progress/"
    text = browser.get(address).content.decode()
    since = datetime(2026, 1, 31, 12, tzinfo=UTC)
    stalls: list[dict[str, Any]] = [
        {"stalled_error": "no token='hunter2'", "stalled_since": since, "try_again_at": since},
        {"try_again_at": since + timedelta(minutes=5)},
        {"stalled_error": "no disk"},
        {"stalled_error": "", "stalled_since": None, "try_again_at": None},
    ]
    for changes in stalls:
        Backfill.objects.update(**changes)
        answer = browser.get(polled_address(text))
        assert answer.status_code == 200, changes
        text = answer.content.decode()
        assert "hunter2" not in text
        assert ("Stalled since" in text) is (changes.get("stalled_error") != "")
        assert browser.get(polled_address(text)).status_code == 204


def test_its_partitions_are_turned_from_end_to_end_over_the_gaps_between_them(
    browser: Client, vera: User
) -> None:
    hours = PartitionByInterval("@hourly", start="2020-01-01", end="2022-01-01")
    asset("hourly", hours)
    backfill = written_backfill(vera, "hourly", selection="2020-01..2020-06,2021-06")
    backfill_asset = backfill.assets.get()
    # As a hole between the two ranges leaves it.
    backfill_asset.partitions.filter(key__gte="2021").update(position=F("position") + 50_000)
    text = page_of(browser, backfill, "from=1")
    cells, pages = cells_of(text), 1
    next_page = r'href="[^"]*\?backfill_asset=\d+&amp;from=(\d+)#partitions"\s*>\s*Next'
    while later := re.search(next_page, text):
        text = page_of(browser, backfill, f"from={later[1]}")
        cells += cells_of(text)
        pages += 1
        assert pages < 30
    assert pages > 2
    assert len(cells) == len(set(cells)) == backfill_asset.total
    for _ in range(pages - 1):
        earlier = re.search(r"from=(\d+)#partitions\"\s*>\s*<svg.*</svg>Previous", text)
        assert earlier
        text = page_of(browser, backfill, f"from={earlier[1]}")
    assert "Previous" not in text


def cells_of(text: str) -> list[str]:
    """Return the addresses of the partitions in the grid."""
    grid = text.split('<div id="cells"')[1].split('<p class="text-secondary mt-3')[0]
    return re.findall(r'href="([^"]*partitions/[^"]*)"', grid)


def test_its_page_costs_the_same_for_ten_and_for_thirty_thousand_partitions(
    browser: Client, vera: User
) -> None:
    asset("minutes", PartitionByInterval("*/15 * * * *", start="2020-01-01", end="2021-01-01"))
    few = written_backfill(vera, "minutes", "2020-01-01T00:00Z", "2020-01-01T05:00Z")
    many = written_backfill(vera, "minutes", "2020-01-01", "2020-12-31")
    assert many.assets.get().total > 35_000
    costs = set()
    for backfill in (few, many):
        runs_of(backfill, "succeeded", 4)
        runs_of(backfill, "failed", 2, error="no")
        skip(backfill, "in_flight", 2)
        for page in ("", "progress/", "details/", "cells/"):
            address = f"/backfills/{backfill.pk}/{page}"
            browser.get(address)
            with CaptureQueriesContext(connection) as statements:
                answer = browser.get(address)
            assert answer.status_code == 200
            assert len(answer.content) < 200_000
            costs.add((page, len(statements)))
    assert len(costs) == 4, costs
    assert max(number for _, number in costs) <= 25


def test_a_piece_of_many_says_how_many_there_are(browser: Client, vera: User) -> None:
    hours = PartitionByInterval("@hourly", start="2020-01-01", end="2021-01-01")
    asset("hourly", hours)
    backfill = written_backfill(vera, "hourly", "2020-01-01", "2020-12-31")
    assert " of 8,784, from" in page_of(browser, backfill)


def test_no_page_of_backfills_has_script_or_style_of_its_own(
    browser: Client, january: Backfill
) -> None:
    runs_of(january, "failed", 3, error="no")
    for address in (
        "/backfills/", "/backfills/new/?asset=raw_flights", f"/backfills/{january.pk}/",
        f"/backfills/{january.pk}/change/", f"/backfills/{january.pk}/cancel/",
    ):  # fmt: skip
        text = browser.get(address).content.decode()
        assert " style=" not in text
        assert "<style" not in text
        assert " onclick" not in text
        scripts = re.findall(r"<script([^>]*)>([^<]*)", text)
        assert all("src=" in attributes and not body for attributes, body in scripts)


def test_the_page_of_a_backfill_without_assets_says_so(browser: Client, january: Backfill) -> None:
    BackfillAsset.objects.all().delete()
    assert "Preparing partitions…" in page_of(browser, january)


def test_a_canceled_one_says_how_many_were_made_and_offers_to_run_the_canceled_ones(
    browser: Client, january: Backfill
) -> None:
    runs_of(january, "succeeded", 2)
    browser.post(f"/backfills/{january.pk}/cancel/")
    text = page_of(browser, january)
    assert "2 of 31 materialized, 29 canceled" in words_of(text)
    assert not re.search(r"\d\s*%", words_of(text))
    assert "Retry failed" not in text
    assert re.search(
        r'btn-primary"\s+href="/backfills/\d+/retry/\?canceled=1"\s*>\s*<svg.*Retry 29 canceled',
        text,
    )
    listed = browser.get("/backfills/").content.decode()
    assert "2 of 31 materialized, 29 canceled" in words_of(listed)
    asked_for = browser.get(f"/backfills/{january.pk}/retry/?canceled=1").content.decode()
    assert 'name="canceled" value="1" checked' in asked_for
    assert (
        'value="1" checked' not in browser.get(f"/backfills/{january.pk}/retry/").content.decode()
    )
    assert "2 of 31 materialized, 29 canceled" in words_of(asked_for)


def test_canceled_partitions_that_no_run_had_claimed_are_told_apart(
    browser: Client, january: Backfill
) -> None:
    runs_of(january, "succeeded", 2)
    runs_of(january, "canceled", 4)
    assert "before a run was created" not in page_of(browser, january)
    browser.post(f"/backfills/{january.pk}/cancel/")
    text = words_of(page_of(browser, january))
    assert "2 of 31 materialized, 29 canceled 25 canceled before a run was created" in text


def test_of_a_canceled_one_the_canceled_partitions_come_before_what_failed(
    browser: Client, january: Backfill
) -> None:
    runs_of(january, "failed", 1, error="no")
    assert "Retry 30 canceled" not in page_of(browser, january)
    browser.post(f"/backfills/{january.pk}/cancel/")
    text = page_of(browser, january)
    assert "0 of 31 materialized, 1 failed, 30 canceled" in words_of(text)
    assert text.index("Retry 30 canceled") < text.index("Retry failed")


def test_queued_runs_are_told_apart_from_those_that_take_a_slot(
    browser: Client, january: Backfill
) -> None:
    runs_of(january, "running", 3)
    runs_of(january, "queued", 6)
    text = page_of(browser, january)
    assert "3 active runs (max 3)" in text
    assert "6 runs queued" in text
    assert re.search(r"Running</span> <b>3</b>", text)
    assert re.search(r"Queued</span> <b>6</b>", text)


def test_a_dispatched_run_is_named_among_the_active_runs(
    browser: Client, january: Backfill
) -> None:
    runs_of(january, "running", 2)
    runs_of(january, "dispatched", 1)
    runs_of(january, "queued", 4)
    text = words_of(page_of(browser, january))
    assert "Queued 5" in text
    assert "3 active runs (max 3), 1 not begun 4 runs queued" in text
