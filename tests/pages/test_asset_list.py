"""The list of assets: declared facts with filters, schedules in words, and pauses of several."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from psycopg.errors import DeadlockDetected

from accounts_app.models import AuditEntry
from accounts_app.policy import Role
from assets_app.models import Asset, Schedule
from assets_app.queries.asset_pauses import pause_of
from tests.clients import browser_of
from tests.factories import DAILY_2013, asset, person, together
from tests.pages.markup import compact, page_at
from tests.scheduling.scheduled_assets import DAILY, at, cron, scheduled

pytestmark = pytest.mark.django_db

BEGAN = at(2024, 7, 1)


@pytest.fixture
def editor(db: None) -> Client:
    return browser_of(person("eve", Role.EDITOR))


@pytest.fixture
def declared(db: None) -> None:
    asset("orders", DAILY_2013, owners=["ada", "shop team"], tags=["daily"], group="shop")
    asset("visits", DAILY_2013, owners=["bob"], tags=["daily", "raw"], kind="parquet")


def deadlock() -> OperationalError:
    """Return the error of a deadlock, as Django raises the error."""
    error = OperationalError("deadlock detected")
    error.__cause__ = DeadlockDetected("deadlock detected")
    return error


def listed(client: Client, query: str = "") -> str:
    return compact(page_at(client, f"/assets/{query}"))


def names(client: Client, query: str) -> list[str]:
    page = listed(client, query)
    return [name for name in ("orders", "visits") if f'href="/assets/{name}/"' in page]


@pytest.mark.parametrize(
    ("query", "matching"),
    [
        ("?owner=shop+team", ["orders"]),
        ("?owner=shop", []),
        ("?tag=daily", ["orders", "visits"]),
        ("?tag=daily&owner=bob", ["visits"]),
        ("?kind=parquet", ["visits"]),
        ("?group=shop&q=ord", ["orders"]),
        ("?group=%00", None),
    ],
)
@pytest.mark.usefixtures("declared")
def test_assets_are_filtered_by_owner_tag_kind_and_group(
    browser: Client, query: str, matching: list[str] | None
) -> None:
    if matching is None:
        assert browser.get(f"/assets/{query}").status_code == 400
    else:
        assert names(browser, query) == matching


@pytest.mark.usefixtures("declared")
def test_owners_and_tags_are_shown_and_offered_as_filters(browser: Client) -> None:
    page = listed(browser)
    assert 'href="?owner=shop%20team"' in page
    assert 'href="?tag=raw"' in page
    assert '<option value="shop team">shop team</option>' in page
    assert '<details class="more-filters">' in page
    filtered = listed(browser, "?tag=raw")
    assert '<option value="raw" selected>raw</option>' in filtered
    assert '<details class="more-filters" open>' in filtered
    assert "tag=raw&amp;version=" in filtered
    # An old address names a tag that no asset has any more.
    assert '<option value="old" selected>old</option>' in listed(browser, "?tag=old")


def test_facts_that_no_asset_has_are_no_filters(browser: Client) -> None:
    asset("orders", DAILY_2013)
    assert "More filters" not in listed(browser)
    assert "Owners and tags" not in listed(browser)


def test_schedules_are_listed_in_words(browser: Client) -> None:
    scheduled("early", cron("30 6 * * 1-5"), DAILY, since=BEGAN)
    scheduled("odd", cron("0 0 1,15 * 2"), DAILY, since=BEGAN)
    page = listed(browser)
    assert "every Monday to Friday at 06:30 (UTC)" in page
    assert "<code>0 0 1,15 * 2</code>(UTC)" in page


def test_several_assets_are_paused_and_unpaused_with_one_answer(editor: Client) -> None:
    daily, weekly = (
        scheduled(name, cron(f"@{name}"), DAILY, since=BEGAN) for name in ("daily", "weekly")
    )
    held = scheduled("held", cron("@daily"), DAILY, since=BEGAN)
    Asset.objects.filter(pk=held.pk).update(paused=True)
    manual = asset("manual", DAILY_2013)
    ids = [row.pk for row in (daily, weekly, held, manual)]
    answer = editor.post("/pause-assets/", {"id": [*ids, "x", 999999], "back": "sort=group"})
    assert answer["Location"] == "/assets/?sort=group"
    page = listed(editor)
    assert "2 assets paused: daily, weekly. Manual runs and backfills still work." in page
    stayed = (
        "Not paused: held (already paused), manual (no schedule), asset 999999 (no such asset)."
    )
    assert stayed in page
    assert set(Asset.objects.filter(paused=True).values_list("name", flat=True)) == {
        "daily", "held", "weekly",
    }  # fmt: skip
    entries = AuditEntry.objects.order_by("pk").values_list("action", "subject", "actor__username")
    assert list(entries) == [("pause", "daily", "eve"), ("pause", "weekly", "eve")]
    answer = editor.post("/unpause-assets/", {"id": ids}, follow=True)
    text = compact(answer.content.decode())
    assert "3 assets unpaused: daily, held, weekly." in text
    assert "Not unpaused: manual (not paused)." in text


def test_assets_of_one_function_are_paused_once(editor: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    first = Asset.objects.get(name="daily")
    second = Asset.objects.create(name="other", bundle=first.bundle, producer=first.producer)
    answer = editor.post("/pause-assets/", {"id": [first.pk, second.pk]}, follow=True)
    assert "2 assets paused: daily, other." in compact(answer.content.decode())
    assert AuditEntry.objects.count() == 1
    # All changed assets are named, also those that were not selected.
    answer = editor.post("/unpause-assets/", {"id": [second.pk]}, follow=True)
    assert "2 assets unpaused: daily, other." in compact(answer.content.decode())


def test_the_page_of_a_paused_asset_says_who_paused_the_asset(
    editor: Client, django_assert_num_queries: Any
) -> None:
    together("made", ["flights", "later"], DAILY_2013)
    for name in ("flights", "later"):
        assert "Paused</a>" not in compact(page_at(editor, f"/assets/{name}/"))
    editor.post("/assets/flights/pause/")
    at = AuditEntry.objects.get(action="pause").at.isoformat(timespec="milliseconds")
    for name in ("flights", "later"):
        page = compact(page_at(editor, f"/assets/{name}/"))
        assert f'Paused</a><span class="text-secondary">by eve,<time datetime="{at}">' in page
    rows = Asset.objects.select_related("producer__current_version")
    paused = rows.get(name="flights")
    with django_assert_num_queries(1):
        assert pause_of(paused)
    editor.post("/assets/flights/unpause/")
    unpaused = rows.get(name="flights")
    with django_assert_num_queries(0):
        assert pause_of(unpaused) is None


def test_a_pause_that_has_ended_names_no_person_for_a_pause_without_an_entry(
    editor: Client,
) -> None:
    together("made", ["flights", "later"], DAILY_2013)
    editor.post("/assets/flights/pause/")
    editor.post("/assets/later/unpause/")
    Asset.objects.update(paused=True)
    page = compact(page_at(editor, "/assets/flights/"))
    assert "Paused</a>" in page
    assert "by eve" not in page


@pytest.mark.parametrize(
    ("choice", "meaning"),
    [
        ("failing", "The evaluation of the schedule of a listed asset ends with an error."),
        ("late", "No process has evaluated the schedule of a listed asset"),
        ("stale", "Change the search, or clear the filters."),
    ],
)
@pytest.mark.usefixtures("declared")
def test_a_list_without_assets_says_what_the_choice_means(
    browser: Client, choice: str, meaning: str
) -> None:
    assert meaning in listed(browser, f"?show={choice}")


def test_the_admin_site_pauses_as_the_list_does() -> None:
    daily = scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    other = Asset.objects.create(name="other", bundle=daily.bundle, producer=daily.producer)
    held = scheduled("held", cron("@daily"), DAILY, since=BEGAN)
    Asset.objects.filter(pk=held.pk).update(paused=True)
    admin = browser_of(person("ann", Role.ADMIN, is_staff=True))
    chosen = {"action": "pause", "_selected_action": [daily.pk, held.pk]}
    answer = admin.post("/admin/assets_app/asset/", chosen, follow=True)
    text = compact(answer.content.decode())
    assert "2 assets paused: daily, other. Manual runs and backfills still work." in text
    assert "Not paused: held (already paused)." in text
    other.refresh_from_db()
    assert other.paused
    assert [entry.subject for entry in AuditEntry.objects.filter(action="pause")] == ["daily"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"return_value": []}, "already paused"),
        ({"side_effect": [deadlock(), ["weekly"]]}, "in use by"),
    ],
)
def test_an_asset_that_stays_in_the_end_is_told_with_the_reason(
    editor: Client, answer: dict[str, Any], reason: str
) -> None:
    rows = [scheduled(name, cron("@daily"), DAILY, since=BEGAN) for name in ("daily", "weekly")]
    with patch("assets_app.catalogue.bulk_pausing.set_paused", **answer):
        shown = editor.post("/pause-assets/", {"id": [row.pk for row in rows]}, follow=True)
    text = compact(shown.content.decode())
    assert f"Not paused: daily ({reason}" in text
    assert ("1 asset paused: weekly." in text) is ("side_effect" in answer)


def test_assets_whose_schedules_cannot_be_read_are_unpaused_with_the_others(
    editor: Client,
) -> None:
    rows = [scheduled(name, cron("@daily"), DAILY, since=BEGAN) for name in ("a", "moon", "z")]
    ids = {"id": [row.pk for row in rows]}
    editor.post("/pause-assets/", ids)
    moons = Schedule.objects.filter(producer=rows[1].producer)
    moons.update(rule={"schedule": cron("@daily"), "timezone": "Moon/Base"})
    shown = editor.post("/unpause-assets/", ids, follow=True)
    assert "3 assets unpaused: a, moon, z." in compact(shown.content.decode())
    assert not Asset.objects.filter(paused=True).exists()
    # The schedule is tried at once, as others that cannot be read: a tick keeps the error.
    assert moons.get().next_at == moons.get().unpaused_at
    for query in ("", "?tab=schedule"):
        assert editor.get(f"/assets/moon/{query}").status_code == 200


def test_a_lost_database_is_not_told_as_another_request(editor: Client) -> None:
    rows = [scheduled(name, cron("@daily"), DAILY, since=BEGAN) for name in ("daily", "weekly")]
    lost = OperationalError("the connection is lost")
    with patch("assets_app.catalogue.bulk_pausing.set_paused", side_effect=lost) as pausing:
        answer = editor.post("/pause-assets/", {"id": [row.pk for row in rows]})
    assert answer.status_code == 503
    assert pausing.call_count == 1


def test_who_may_not_pause_sees_no_boxes_and_is_refused(browser: Client) -> None:
    paused = asset("orders", DAILY_2013)
    assert "Select orders" not in listed(browser)
    assert browser.post("/pause-assets/", {"id": [paused.pk]}).status_code == 403


def test_a_pause_without_assets_or_of_too_many_is_refused(editor: Client) -> None:
    scheduled("daily", cron("@daily"), DAILY, since=BEGAN)
    assert "Select daily" in listed(editor)
    nothing = editor.post("/pause-assets/", {"id": ["x"]}, follow=True)
    assert "No asset selected." in nothing.content.decode()
    many = editor.post("/pause-assets/", {"id": list(range(1, 202))}, follow=True)
    assert "Between 1 and 200, not 201." in many.content.decode()
    assert not Asset.objects.filter(paused=True).exists()


@pytest.mark.usefixtures("declared")
def test_facts_cost_the_same_for_few_and_many_assets(browser: Client) -> None:
    def statements(ask: Callable[[], object]) -> int:
        with CaptureQueriesContext(connection) as captured:
            ask()
        return len(captured)

    few = statements(lambda: listed(browser))
    for number in range(12):
        asset(f"a{number}", DAILY_2013, owners=[f"o{number}"], tags=[f"t{number}"])
    assert statements(lambda: listed(browser)) == few
