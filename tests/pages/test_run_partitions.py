"""The partitions of a run: the first partitions on the run's page, all on a page of their own."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Run, RunPartition
from tests.factories import DAILY_2013, asset
from tests.pages.markup import page_at

pytestmark = pytest.mark.django_db
ROW = re.compile(r'href="/assets/raw_flights/partitions/([^/"]+)/"')


def run_of(user: User, selection: str) -> Run:
    """Create a run of all these partitions."""
    flights = asset("raw_flights", DAILY_2013)
    request = MaterializeRequest(asset=flights, selection=selection, strategy="range")
    return materialize(request, user=user).runs.get()


def test_of_many_the_first_are_shown_with_a_count_and_the_way_to_the_rest(
    browser: Client, vera: User
) -> None:
    run = run_of(vera, "2013")
    text = page_at(browser, f"/runs/{run.pk}/")
    assert len(ROW.findall(text)) == 20
    assert "Showing 20 of 365 partitions." in text
    assert f'href="/runs/{run.pk}/partitions/"' in text


def test_all_of_them_are_turned_page_by_page(browser: Client, vera: User) -> None:
    run = run_of(vera, "2013")
    shown_keys: list[str] = []
    costs = set()
    for number in range(1, 5):
        with CaptureQueriesContext(connection) as statements:
            text = page_at(browser, f"/runs/{run.pk}/partitions/?page={number}")
        costs.add(len(statements))
        shown_keys += ROW.findall(text)
    assert len(shown_keys) == len(set(shown_keys)) == 365
    assert shown_keys == sorted(shown_keys)
    assert "Next" not in text
    assert len(costs) == 1


def test_they_are_asked_for_by_state(browser: Client, vera: User) -> None:
    run = run_of(vera, "2013-01")
    failed = RunPartition.objects.filter(run=run, partition__key="2013-01-17")
    failed.update(state="failed", error="line 3 is cut")
    text = page_at(browser, f"/runs/{run.pk}/partitions/?state=failed")
    assert ROW.findall(text) == ["2013-01-17"]
    assert "line 3 is cut" in text
    text = page_at(browser, f"/runs/{run.pk}/partitions/?state=skipped")
    assert "No partitions in this state." in text
    assert browser.get("/runs/999999/partitions/").status_code == 404


def test_of_few_all_are_shown(browser: Client, vera: User) -> None:
    run = run_of(vera, "2013-01-01..2013-01-20")
    text = page_at(browser, f"/runs/{run.pk}/")
    assert len(ROW.findall(text)) == 20
    assert "All partitions" not in text
