"""The feed: every event once and in one order, also while transactions commit out of order."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone
from rest_framework.test import APIClient

from slicewise_server.events.feed import end_of_feed, forget_events, publish_events
from slicewise_server.events.models import Event

ADDRESS = "/api/v1/events/"


def write(*assets: str, kind: str = "run_failed", **fields: Any) -> None:
    """Write an event for each of the assets, and publish all of them."""
    for asset in assets:
        Event.objects.create(kind=kind, asset=asset, **fields)
    publish_events(timezone.now())


def assets_of(page: Any) -> list[str]:
    return [event["asset"] for event in page["results"]]


@pytest.mark.django_db(transaction=True)
def test_an_event_that_commits_late_is_read_after_events_with_larger_ids() -> None:
    may_commit, has_written = threading.Event(), threading.Event()

    def write_late() -> None:
        try:
            with transaction.atomic():
                Event.objects.create(kind="run_failed", asset="late")
                has_written.set()
                assert may_commit.wait(60)
        finally:
            connection.close()

    thread = threading.Thread(target=write_late)
    thread.start()
    assert has_written.wait(60)
    write("early")
    seen_position = end_of_feed()
    assert list(Event.objects.values_list("asset", flat=True)) == ["early"]
    may_commit.set()
    thread.join()
    publish_events(timezone.now())
    late = Event.objects.get(asset="late")
    assert late.pk < Event.objects.get(asset="early").pk
    assert late.position is not None
    assert late.position > seen_position


def test_pages_hold_every_event_once(api: APIClient) -> None:
    names = [f"asset_{number}" for number in range(25)]
    write(*names)
    listed, cursor = [], ""
    while True:
        page = api.get(ADDRESS, {"after": cursor, "page_size": "10"}).json()
        if not page["results"]:
            break
        listed += assets_of(page)
        cursor = page["cursor"]
    assert listed == names
    write("one_more")
    assert assets_of(api.get(ADDRESS, {"after": cursor}).json()) == ["one_more"]


def test_the_end_is_a_cursor_before_all_later_events(api: APIClient) -> None:
    write("old")
    page = api.get(ADDRESS, {"after": "end"}).json()
    assert page["results"] == []
    write("new")
    assert assets_of(api.get(ADDRESS, {"after": page["cursor"]}).json()) == ["new"]


def test_an_event_without_a_place_is_not_listed(api: APIClient) -> None:
    Event.objects.create(kind="run_failed", asset="unpublished")
    assert api.get(ADDRESS).json() == {"cursor": "0", "results": []}


def test_a_filter_moves_the_cursor_past_other_events(api: APIClient) -> None:
    write("a", "b")
    write("a", kind="backfill_failed")
    by_asset = api.get(ADDRESS, {"asset": "b"}).json()
    assert assets_of(by_asset) == ["b"]
    by_kind = api.get(f"{ADDRESS}?kind=backfill_failed&kind=worker_lost").json()
    assert [event["kind"] for event in by_kind["results"]] == ["backfill_failed"]
    nothing = api.get(ADDRESS, {"asset": "c"}).json()
    assert nothing == {"cursor": str(end_of_feed()), "results": []}


def test_secrets_are_masked(api: APIClient) -> None:
    write("a", error="no route to postgres://loader:hunter2@db/x", detail={"password": "hunter2"})
    answer = api.get(ADDRESS)
    assert "hunter2" not in answer.content.decode()
    assert "postgres://" in answer.json()["results"][0]["error"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("after=x", "after"),
        ("after=-1", "after"),
        ("after=1" + "0" * 18, "after"),
        ("after=%D9%A1", "after"),
        ("kind=run_fialed", "kind"),
        ("wait=16", "wait"),
        ("wait=1.5", "wait"),
        ("wait=", "wait"),
        ("page_size=0", "page_size"),
        ("befor=1", "befor"),
    ],
)
def test_a_wrong_query_is_refused_with_its_field(api: APIClient, query: str, field: str) -> None:
    answer = api.get(f"{ADDRESS}?{query}")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [field]


def test_strangers_read_nothing(stranger_api: APIClient) -> None:
    assert stranger_api.get(ADDRESS).status_code == 401


@pytest.mark.django_db
def test_old_events_are_deleted_and_positions_are_never_used_again(settings: Any) -> None:
    settings.EVENT_DAYS = 30
    write("old", "newest")
    Event.objects.update(at=timezone.now() - timedelta(days=31))
    before = end_of_feed()
    assert forget_events(timezone.now()) == 1
    assert list(Event.objects.values_list("asset", flat=True)) == ["newest"]
    write("new")
    assert end_of_feed() == before + 1
