"""The form that materializes partitions, and the partitions of a run in one line."""

import pytest
from django.test import Client

from assets_app.models import Asset, AssetDependency
from tests.factories import DAILY_2013, asset
from tests.pages.markup import compact, page_at
from tests.pages.run_records import failed_run

pytestmark = pytest.mark.django_db


def test_the_form_names_the_assets_that_data_may_trigger(browser: Client) -> None:
    orders = asset("orders", DAILY_2013)
    for name, scheduling, paused in [
        ("revenue", True, False), ("conversion", True, False), ("report", False, False),
        ("board", True, True),
    ]:  # fmt: skip
        downstream = asset(name, DAILY_2013, paused=paused)
        AssetDependency.objects.create(
            upstream=orders, downstream=downstream, inlet=True, scheduling=scheduling
        )
    page = compact(page_at(browser, "/assets/orders/materialize/"))
    sentence = page.partition("may make partitions due of")[2].partition("</p>")[0]
    assert sentence.index(">conversion</a>") < sentence.index(">revenue</a>")
    assert "report" not in sentence
    assert "board" not in sentence
    assert "may make partitions due of" not in page_at(browser, "/assets/revenue/materialize/")


def test_the_count_of_partitions_stands_once_and_is_not_cut(browser: Client) -> None:
    flights: Asset = asset("flights", DAILY_2013)
    first, last = "2026-10-30T00:00-04:00", "2026-11-26T23:00-05:00"
    run = failed_run(flights, f"{first} … {last} (35 partitions)", partition_count=35)
    for address in ("/runs/", f"/runs/{run.pk}/"):
        page = compact(page_at(browser, address))
        assert f"{first} … {last}<" in page, address
        assert "(35 partit" not in page.replace(f'title="{run.selection}"', ""), address
        assert "(35)" in page, address


def test_partitions_that_another_run_holds_are_named(browser: Client) -> None:
    asset("flights", DAILY_2013)
    address = "/assets/flights/materialize/"
    browser.post(address, {"selection": "2013-01-02..2013-01-06"})
    answer = browser.post(address, {"selection": "2013-01-01..2013-01-07"}, follow=True)
    text = compact(answer.content.decode())
    assert (
        "Left out, in progress in another run: 2013-01-02, 2013-01-03, 2013-01-04 and 2 more."
        in text
    )
    answer = browser.post(address, {"selection": "2013-01-08"}, follow=True)
    assert "Left out, in progress in another run" not in answer.content.decode()
