"""Schedules on pages: the rule, the next tick, partitions on their way, and pausing."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts_app.models import AuditEntry, User
from accounts_app.policy import Role
from assets_app.catalogue.pausing import set_paused
from assets_app.execution.request.reporting import ReportedWrite, report_write
from assets_app.models import (
    Asset,
    Gateway,
    GroupKind,
    Run,
    RunGroup,
    Schedule,
    ScheduleTick,
    ScheduleTruncation,
    TickReason,
    Trigger,
)
from assets_app.queries import ticks
from assets_app.scheduling.failures import record_failures
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.progress import progress_of
from assets_app.scheduling.ticking import handle_ticks
from slicewise import PartitionByInterval
from tests.clients import browser_of
from tests.execution.conftest import make_gateway
from tests.factories import asset, external, person
from tests.midnight import same_day
from tests.pages.markup import compact, page_at
from tests.scheduling.scheduled_assets import (
    DAILY,
    HOURLY,
    all_of,
    any_of,
    at,
    by,
    cron,
    scheduled,
    write,
)

__all__ = ["same_day"]

pytestmark = pytest.mark.django_db
MONTHLY = PartitionByInterval("@monthly", start="2020-01-01")
WORKDAYS = PartitionByInterval("@daily", start="2024-01-08", exclude="0 0 * * 6,0")
YEARLY = PartitionByInterval("@yearly", start="2020-01-01")
BEGAN = at(2024, 7, 1)


@pytest.fixture
def gateway(db: None) -> Gateway:
    return make_gateway("scheduled")


@pytest.fixture
def alice(db: None) -> User:
    return person("alice", is_superuser=True)


@pytest.fixture
def editor(db: None) -> Client:
    """Return the browser of a person who may pause."""
    return browser_of(person("edith", Role.EDITOR))


def shown(browser: Client, name: str, more: str = "") -> str:
    return page_at(browser, f"/assets/{name}/?tab=schedule{more}")


def statements(browser: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as statements:
        assert browser.get(address).status_code == 200
    return len(statements)


def test_a_schedule_by_time_is_said_in_words_with_its_zone(browser: Client) -> None:
    scheduled("daily", cron("30 6 * * *"), DAILY, since=BEGAN, timezone="America/New_York")
    Schedule.objects.update(next_at=timezone.now() + timedelta(hours=3, minutes=1))
    text = shown(browser, "daily")
    assert "every day at 06:30" in text
    assert "(America/New_York)" in text
    assert " UTC, in 3 h" in re.sub(r"<[^>]*>", "", compact(text))
    evaluated = compact(text).split("Evaluated until</dt>")[1].split("</dd>")[0]
    # Times of ticks are in the zone that the reader chooses, as all times of the page.
    assert evaluated == f'<dd><time datetime="{BEGAN.isoformat(timespec="milliseconds")}">' + (
        f"{BEGAN:%Y-%m-%d %H:%M:%S} UTC</time>"
    )


def test_a_tick_that_nobody_handled_is_said_to_be_overdue(browser: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    page = compact(shown(browser, "daily"))
    assert "overdue by" in page
    assert "The control worker evaluates ticks and sends queued runs to workers." in page
    for address in ("/assets/", "/assets/daily/"):
        text = re.sub(r"<[^>]*>", "", compact(browser.get(address).content.decode()))
        assert "Overdue tick: due" in text
        assert "Next" not in text


def test_a_schedule_by_assets_leads_to_them(browser: Client) -> None:
    for name in ("one", "two", "three"):
        asset(name, DAILY)
    scheduled("all", all_of(by("one"), any_of(by("two"), by("three"))), DAILY, since=BEGAN)
    sentence = (
        'Triggered by <a href="/assets/one/">one</a> and '
        '(<a href="/assets/two/">two</a> or <a href="/assets/three/">three</a>)'
    )
    assert sentence in shown(browser, "all")
    assert sentence in browser.get("/assets/").content.decode()
    assert "No partitions are waiting" in shown(browser, "all")


def test_names_of_upstream_assets_are_text_and_not_markup(browser: Client) -> None:
    asset("<b>bold", DAILY)
    scheduled("after", by("<b>bold"), DAILY, since=BEGAN)
    text = shown(browser, "after")
    assert "<b>bold" not in text
    assert "&lt;b&gt;bold" in text


def test_an_asset_without_a_schedule_says_how_it_gets_one(browser: Client) -> None:
    asset("by_hand", DAILY)
    text = shown(browser, "by_hand")
    assert "No schedule" in text
    assert "/pause/" not in text


def test_an_asset_of_another_program_says_why_no_schedule_is_possible(browser: Client) -> None:
    external("years", YEARLY)
    text = shown(browser, "years")
    assert "Another program writes this asset. Slicewise starts no runs." in text
    assert "schedule=" not in text


def test_materialized_upstream_partitions_are_counted_and_missing_ones_are_named(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    hourly = asset("hourly", HOURLY)
    scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    write(hourly, "2024-07-01T00:00Z..2024-07-01T04:00Z", gateway, alice)
    write(hourly, "2024-07-01T06:00Z..2024-07-01T23:00Z", gateway, alice)
    text = shown(browser, "daily")
    assert "hourly <b>23 of 24</b>" in text
    assert 'href="/assets/hourly/partitions/2024-07-01T05:00Z/"' in text
    write(hourly, "2024-07-01T05:00Z", gateway, alice)
    assert "of 24" not in shown(browser, "daily")


def test_the_list_of_waiting_partitions_says_which_partitions_it_lacks(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    hourly = asset("hourly", HOURLY)
    daily = scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    write(hourly, "2024-07-01T00:00Z..2024-07-01T04:00Z", gateway, alice)
    Run.objects.update(trigger=Trigger.BACKFILL)
    RunGroup.objects.update(kind=GroupKind.BACKFILL)
    assert progress_of(daily, at(2024, 7, 3)) == []
    page = compact(shown(browser, "daily"))
    assert "whose inputs all came from ended backfills, because backfills make nothing due" in page
    assert '<a href="/assets/daily/">The grid</a>' in page
    assert "that a coming tick makes due" not in page
    reason = compact(page_at(browser, "/assets/daily/partitions/2024-07-01/"))
    assert "Waiting for 19 of 24 partitions of hourly" in reason


def test_nonexistent_and_excluded_upstream_partitions_are_shown_with_their_number(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    workdays = asset("workdays", WORKDAYS)
    months = scheduled("months", by("workdays"), MONTHLY, since=BEGAN)
    write(workdays, "2024-01-08..2024-01-10", gateway, alice)
    (month,) = progress_of(months, at(2024, 7, 2))
    # 23 working days in January; the five before the start are needed all the same.
    sentence = "workdays 3 of 23 (5 do not exist: 2024-01-01 to 2024-01-05; 8 excluded)"
    assert month.text == sentence
    assert month.counts == {
        "workdays": {
            "needed": 23, "materialized": 3, "missing": ["2024-01-11", "2024-01-12", "2024-01-15"],
            "nonexistent": {"partitions": 5, "first": "2024-01-01", "last": "2024-01-05"},
            "excluded": 8,
        }
    }  # fmt: skip
    text = shown(browser, "months")
    assert "workdays <b>3 of 23</b>" in text
    assert "5 do not exist: 2024-01-01 to 2024-01-05" in text
    assert "8 excluded, not needed" in text
    assert "and 12 more" in text


def test_progress_costs_the_same_for_a_short_and_a_long_history(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    hourly = asset("hourly", HOURLY)
    scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    write(hourly, "2024-07-01T00:00Z", gateway, alice)
    few = statements(browser, "/assets/daily/?tab=schedule")
    for day in range(2, 9):
        write(hourly, f"2024-07-0{day}T00:00Z..2024-07-0{day}T01:00Z", gateway, alice)
    assert statements(browser, "/assets/daily/?tab=schedule") == few
    assert few <= 14
    text = shown(browser, "daily")
    assert text.count("of 24") == 8
    assert "and 19 more" in text


def test_ticks_are_listed_with_what_came_of_them(browser: Client) -> None:
    scheduled("daily", cron("@hourly"), DAILY, since=BEGAN)
    for hour in range(1, 25):
        handle_ticks(BEGAN + timedelta(hours=hour))
    text = re.sub(r"(<[^>]*>|\s)+", " ", shown(browser, "daily"))
    assert "1 partition queued" in text
    assert "Nothing new since the last tick" in text
    assert "2024-07-01 01:00:00 UTC to 2024-07-01 23:00:00 UTC" in text


def test_a_tick_leads_to_its_runs(browser: Client) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    handle_ticks(at(2024, 7, 2))
    handle_ticks(at(2024, 7, 3))
    tick = ScheduleTick.objects.order_by("at")[0]
    address = f"/runs/?tick={tick.pk}"
    assert address in shown(browser, "daily")
    listed = browser.get(address).content.decode()
    assert "2024-07-01" in listed
    assert "2024-07-02<" not in listed
    assert "Schedule tick of <strong>daily</strong>" in listed
    run = Run.objects.get(asset=daily, selection="2024-07-01")
    assert address in browser.get(f"/runs/{run.pk}/").content.decode()
    assert "No matching runs" in browser.get("/runs/?tick=999999").content.decode()
    assert browser.get("/runs/?tick=x&created_after=nonsense").status_code == 200


def test_a_truncation_is_shown_with_a_way_to_materialize_its_partitions(
    browser: Client, vera: User, settings: Any
) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 5
    scheduled("months", by(external("years", YEARLY).name), MONTHLY, since=BEGAN)
    report_write(ReportedWrite(asset=Asset.objects.get(name="years"), selection="2023"), user=vera)
    process_outbox(at(2024, 8, 1))
    text = shown(browser, "months")
    assert "7 not examined" in text
    assert "the newest 5 examined" in text
    query = "?asset=months&amp;start=2023-01-01&amp;end=2023-07-01&amp;existing=stale"
    assert query in text
    form = browser.get(f"/backfills/new/{unescape(query)}").content.decode()
    assert re.search(r'value="stale"[^>]* checked', form)
    assert "7 not queued" not in browser.get("/").content.decode()  # that was long ago
    ScheduleTruncation.objects.update(at=timezone.now())
    first_page = browser.get("/").content.decode()
    assert "7 not queued" in first_page
    assert "/assets/months/?tab=schedule" in first_page


def test_a_truncation_of_refresh_leads_to_a_backfill_of_materialized_partitions_too(
    browser: Client, settings: Any
) -> None:
    settings.MAX_PARTITIONS_PER_TICK = 5
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN, refresh=7)
    handle_ticks(at(2024, 7, 2))
    text = shown(browser, "daily")
    assert "2 not examined" in text
    assert "?asset=daily&amp;start=2024-06-24&amp;end=2024-06-25&amp;existing=all" in text


def test_many_ticks_come_in_pages(browser: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    schedule = Schedule.objects.get()
    few = statements(browser, "/assets/daily/?tab=schedule")
    ScheduleTick.objects.bulk_create(
        ScheduleTick(
            schedule=schedule, at=BEGAN + timedelta(days=day), last_at=BEGAN, reason="exists"
        )
        for day in range(120)
    )
    assert "Already materialized</span>" in compact(shown(browser, "daily"))
    assert "Page 3" in shown(browser, "daily", "&page=3")
    assert statements(browser, "/assets/daily/?tab=schedule&page=2") == few


def test_a_tick_that_only_skips_says_so(browser: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN, pending="latest")
    ScheduleTick.objects.create(
        schedule=Schedule.objects.get(), at=BEGAN, last_at=BEGAN, reason="", superseded=10
    )
    page = compact(shown(browser, "daily"))
    assert 'Older windows skipped</span></td><td class="number no-number">' in page
    assert '<td class="number">10</td>' in page


def test_an_editor_pauses_and_an_operator_sees_no_button(browser: Client, editor: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    assert "/assets/daily/pause/" not in shown(browser, "daily")
    assert browser.post("/assets/daily/pause/").status_code == 403
    assert not Asset.objects.get().paused
    assert "/assets/daily/pause/" in shown(editor, "daily")
    assert editor.post("/assets/daily/pause/")["Location"] == "/assets/daily/?tab=schedule"
    assert Asset.objects.get().paused
    assert "None (paused)" in shown(editor, "daily")
    assert "Paused" in editor.get("/assets/").content.decode()
    assert editor.get("/assets/daily/pause/").status_code == 405


def test_pausing_needs_the_token_of_a_form(editor: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = editor.cookies
    assert strict.post("/assets/daily/pause/").status_code == 403
    assert not Asset.objects.get().paused


@pytest.mark.usefixtures("same_day")
def test_unpausing_makes_nothing_of_what_was_missed_and_offers_a_backfill(editor: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    Asset.objects.update(activated_at=BEGAN)
    editor.post("/assets/daily/pause/")
    before = shown(editor, "daily")
    assert "Unpausing does not run missed partitions" in before
    assert "?asset=daily&amp;start=2024-07-01&amp;end=" in before
    answer = editor.post("/assets/daily/unpause/", follow=True)
    assert "daily unpaused" in answer.content.decode()
    assert not handle_ticks(timezone.now())
    later = shown(editor, "daily")
    assert "Missed while paused" in later
    assert "/backfills/new/?asset=daily&amp;start=2024-07-01&amp;end=" in later
    first_day = editor.get("/assets/daily/partitions/2024-07-01/").content.decode()
    assert "came due while the asset was paused" in first_day


def test_partitions_missed_by_upstream_writes_are_offered_before_and_after_unpausing(
    editor: Client, gateway: Gateway, alice: User
) -> None:
    hourly = asset("hourly", HOURLY)
    scheduled("daily", by("hourly"), DAILY, since=BEGAN)
    editor.post("/assets/daily/pause/")
    assert "None so far" in shown(editor, "daily")
    write(hourly, "2024-07-01..2024-07-02", gateway, alice)
    link = "?asset=daily&amp;selection=2024-07-01..2024-07-02&amp;existing=stale"
    assert link in shown(editor, "daily")
    assert link in editor.post("/assets/daily/unpause/", follow=True).content.decode()
    write(Asset.objects.get(name="daily"), "2024-07-01..2024-07-02", gateway, alice)
    assert "Missed while paused" not in shown(editor, "daily")


def test_unpausing_twice_passes_over_nothing(editor: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    editor.post("/assets/daily/unpause/")
    assert Schedule.objects.get().handled_until == BEGAN
    assert not AuditEntry.objects.exists()


def test_the_list_costs_the_same_for_one_schedule_and_for_many(browser: Client) -> None:
    scheduled("a0", cron("@daily"), DAILY, since=BEGAN)
    few = statements(browser, "/assets/")
    for n in range(1, 9):
        scheduled(f"a{n}", by("a0"), DAILY, since=BEGAN)
    assert statements(browser, "/assets/") == few


def test_each_reason_is_a_sentence_on_the_page(browser: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    for day, reason in enumerate(TickReason):
        when = BEGAN + timedelta(days=day)
        ScheduleTick.objects.create(
            schedule=Schedule.objects.get(), at=when, last_at=when, reason=reason
        )
    text = shown(browser, "daily")
    assert all(reason.label in text for reason in TickReason)


def test_a_schedule_that_fails_says_why_until_it_is_seen_to(editor: Client) -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    assert daily.producer is not None
    record_failures({daily.producer.schedule.pk: KeyError("<gone>")}, at(2024, 7, 2))
    page = shown(editor, "daily")
    assert "Schedule evaluation failed" in page
    assert "KeyError: &#x27;&lt;gone&gt;&#x27;" in page
    handle_ticks(at(2024, 7, 3))
    assert "Schedule evaluation failed" not in shown(editor, "daily")


def test_times_and_assets_are_said_in_words_with_ticks_and_what_is_on_its_way(
    browser: Client, alice: User, gateway: Gateway
) -> None:
    up = asset("up", DAILY)
    scheduled(
        "joined", all_of(by("up"), any_of(cron("30 6 * * *"), cron("@daily", "Asia/Kolkata"))),
        DAILY, since=BEGAN, timezone="Europe/Berlin",
    )  # fmt: skip
    write(up, "2024-07-01", gateway, alice)
    sentence = (
        'Triggered by <a href="/assets/up/">up</a> and'
        " (every day at 06:30 (Europe/Berlin) or every day at 00:00 (Asia/Kolkata))"
    )
    page = shown(browser, "joined")
    assert sentence in page
    assert "up &amp; (Cron(&#x27;30 6 * * *&#x27;) | Cron(&#x27;@daily&#x27;, timezone=" in page
    assert "first tick after its time window at which the whole expression is true" in page
    assert "waits for a tick of the schedule" in page
    assert "Next tick" in page
    assert "No ticks yet" in page
    asset_list = browser.get("/assets/").content.decode()
    assert sentence in asset_list
    assert "Overdue tick: due" in re.sub(r"<[^>]*>", "", compact(asset_list))
    assert "Next tick" not in asset_list
    handle_ticks(at(2024, 7, 2, 4, 30))
    page = shown(browser, "joined")
    assert "1 partition queued" in page
    assert "waits for a tick of the schedule" not in page


def test_missed_partitions_of_a_joined_schedule_are_on_its_tab(
    browser: Client, alice: User
) -> None:
    asset("up", DAILY)
    joined = scheduled("joined", any_of(by("up"), cron("@daily")), DAILY, since=BEGAN)
    set_paused(joined, True, user=alice)
    Schedule.objects.update(
        paused_at=BEGAN, handled_before_pause=BEGAN, misses_since=BEGAN, began_at=BEGAN
    )
    assert "2024-07-01" in shown(browser, "joined")
    assert "Missed while paused" in shown(browser, "joined")


def test_open_pages_show_a_tick_that_becomes_overdue(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    Schedule.objects.update(next_at=timezone.now() - timedelta(seconds=30))
    versions = {
        "/assets/?": browser.get("/assets/").context["version"],
        "/assets/daily/?fragment=head&": browser.get("/assets/daily/").context["head_version"],
    }
    # In place of half a minute.
    monkeypatch.setattr(ticks, "OVERDUE_AFTER", timedelta(seconds=10))
    for address, version in versions.items():
        polled = browser.get(f"{address}version={version}", headers={"hx-request": "true"})
        assert "Overdue tick" in polled.content.decode(), address
