"""The trigger form: errors at their fields, one backfill for one submission, and nothing to run."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from accounts_app.models import Grant, User
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import AssetDependency
from backfills_app.models import Backfill
from backfills_app.services import PlanLimit
from slicewise import PartitionByProduct, PartitionBySequence
from tests.clients import browser_of
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, asset, person
from tests.pages.backfill_records import written_backfill
from tests.pages.markup import compact, page_at
from tests.partition_records import record
from tests.queued_runs import run_of

pytestmark = pytest.mark.django_db


def typed(name: str, **changes: Any) -> dict[str, Any]:
    """Return the fields that the form sends once an asset is chosen."""
    return {
        "asset": name, "shown_for": name, "start": "2013-03-01", "end": "2013-03-31",
        "max_active_runs": "3", "existing": "missing_and_failed", "order": "oldest",
        "downstream": "none",
    } | changes  # fmt: skip


def polled(browser: Client, **sent: Any) -> str:
    """Return a fragment as the page requests it while a person types."""
    answer = browser.get("/backfills/new/", sent, headers={"hx-request": "true"})
    return compact(answer.content.decode())


def is_start_off(text: str) -> bool:
    return "disabled" in text.split('id="start-backfill"')[1].split(">")[0]


def errors(browser: Client, **sent: Any) -> dict[str, list[str]]:
    """Return the errors of a form that is refused, by field."""
    answer = browser.post("/backfills/new/", sent)
    assert answer.status_code == 400
    return {field: list(messages) for field, messages in answer.context["form"].errors.items()}


def test_an_error_stands_at_the_field_that_is_wrong(browser: Client) -> None:
    asset("weather", DAY_BY_AIRPORT)
    sent = typed("weather") | {"segment-airport": "JFX"}
    assert list(errors(browser, **sent)) == ["segment-airport"]
    sent = typed("weather", start="March 1, 2013") | {"segment-airport": "JFK"}
    assert list(errors(browser, **sent)) == ["start"]
    sent = typed("weather", end="2013-02-30") | {"segment-airport": "JFX"}
    assert sorted(errors(browser, **sent)) == ["end", "segment-airport"]
    answer = browser.post("/backfills/new/", sent)
    assert 'id="id_segment-airport_error"' in answer.content.decode()


def test_upper_and_lower_case_of_segments_are_forgiven(browser: Client) -> None:
    asset("weather", DAY_BY_AIRPORT)
    sent = typed("weather") | {"segment-airport": "jfk, EWR"}
    assert browser.post("/backfills/new/", sent).status_code == 302
    assert Backfill.objects.get().logical_dates == "date=2013-03-01..2013-03-31 airport=EWR,JFK"


def test_the_error_of_a_preset_goes_with_the_asset(browser: Client) -> None:
    record(asset("done", DAILY_2013), "2013")
    asset("open", DAILY_2013)
    sent = typed("done", start="", end="")
    text = browser.get(
        "/backfills/new/", sent | {"preset": "success"}, headers={"hx-request": "true"}
    ).content.decode()
    assert "All partitions of done ended before the last materialized one." in text
    other = sent | {"asset": "open", "fragment": "dependent"}
    text = browser.get("/backfills/new/", other, headers={"hx-request": "true"}).content.decode()
    assert 'name="start"' in text
    assert "ended before" not in text


def test_a_few_segments_are_boxes_and_many_are_searched(browser: Client) -> None:
    asset("weather", DAY_BY_AIRPORT)
    shops = PartitionBySequence([f"shop-{number}" for number in range(60)])
    asset("sales", PartitionByProduct({"day": DAILY_2013, "shop": shops}))
    sent = typed("weather", fragment="dependent") | {"segment-airport": ["EWR", "LGA"]}
    text = browser.get("/backfills/new/", sent, headers={"hx-request": "true"}).content.decode()
    assert text.count('type="checkbox" name="segment-airport"') == 3
    assert 'value="LGA" class="form-check-input" id="id_segment-airport_2" checked' in text
    sent = typed("sales", fragment="segment-options", dimension="shop") | {
        "segment-shop": "shop-1,P-59"
    }
    text = browser.get("/backfills/new/", sent, headers={"hx-request": "true"}).content.decode()
    assert text == '<option value="shop-1,shop-59">'


def test_the_asset_is_searched_by_name_and_group(browser: Client) -> None:
    asset("daily", DAILY_2013)
    page = compact(page_at(browser, "/backfills/new/"))
    assert '<input type="text" name="asset" list="asset-options"' in page
    # Without a script the first names are suggested.
    assert '<option value="daily"></datalist>' in page
    for number in range(52):
        asset(f"raw_{number}", DAILY_2013, group="odd" if number % 2 else "even")
    text = polled(browser, fragment="asset-options", asset="RAW_5")
    labeled = (("raw_5", "odd"), ("raw_50", "even"), ("raw_51", "odd"))
    assert text == "".join(f'<option value="{name}" label="{group}">' for name, group in labeled)
    # A browser shows only options that have the typed text in the value or in the label.
    text = polled(browser, fragment="asset-options", asset="even")
    assert text.count('label="even"') == text.count("<option") == 26
    text = polled(browser, fragment="assets-options", by="assets", assets="raw_5,od")
    assert text.startswith('<option value="raw_5, raw_1" label="raw_5, odd">')


def test_the_same_form_sent_twice_creates_one_backfill(browser: Client) -> None:
    asset("daily", DAILY_2013)
    sent = typed("daily", token="a1")
    first = browser.post("/backfills/new/", sent)
    again = browser.post("/backfills/new/", sent)
    assert first["Location"] == again["Location"]
    assert "was submitted already" in page_at(browser, again["Location"])
    # Changed, or from a new page, the form is another submission.
    for changes in ({"start": "2013-03-02"}, {"token": "b2"}):
        assert browser.post("/backfills/new/", sent | changes)["Location"] != first["Location"]
    assert Backfill.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_two_submissions_at_once_create_one_backfill(vera: User) -> None:
    asset("daily", DAILY_2013)
    browsers = [browser_of(vera) for _ in range(4)]

    def send(browser: Client) -> str:
        try:
            return str(browser.post("/backfills/new/", typed("daily", token="a1"))["Location"])
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as threads:
        addresses = set(threads.map(send, browsers))
    assert Backfill.objects.count() == 1
    assert len(addresses) == 1


def test_where_nothing_would_run_start_is_off_and_the_way_out_is_offered(browser: Client) -> None:
    record(asset("daily", DAILY_2013), "2013")
    text = browser.get(
        "/backfills/new/", typed("daily"), headers={"hx-request": "true"}
    ).content.decode()
    start = text.split('id="start-backfill"')[1].split("</button>")[0]
    assert "disabled" in start
    assert "Run all 31 partitions again" in compact(text)
    assert list(errors(browser, **typed("daily"))) == ["existing"]
    assert not Backfill.objects.exists()
    answer = browser.post("/backfills/new/", typed("daily", run_all="1"))
    assert answer.status_code == 302
    assert Backfill.objects.get().existing == "all"


def test_start_is_off_where_the_preview_refuses(browser: Client) -> None:
    asset("daily", DAILY_2013)
    assert not is_start_off(polled(browser, **typed("daily")))
    text = polled(browser, **typed("daily", end="2099-01-01"))
    assert "Cannot start" in text
    assert is_start_off(text)
    # Without a script too.
    sent = typed("daily", end="2099-01-01", preview="1")
    assert is_start_off(compact(browser.post("/backfills/new/", sent).content.decode()))


def test_partitions_in_flight_lead_to_the_runs_and_backfills_that_hold_them(
    browser: Client, vera: User
) -> None:
    daily = asset("daily", DAILY_2013)
    group = materialize(MaterializeRequest(asset=daily, selection="2013-03"), user=vera)
    text = polled(browser, **typed("daily"))
    assert is_start_off(text)
    assert "Nothing to run: 31 partitions are in progress in other runs." in text
    runs = f'href="/runs/?group={group.pk}">'
    assert text.count(runs) == 2
    answer = browser.post("/backfills/new/", typed("daily"))
    assert answer.status_code == 400
    page = compact(answer.content.decode())
    assert "31 partitions are in progress in other runs. Wait for these runs" in page
    assert runs in page
    assert not Backfill.objects.exists()
    # Two requests have no common page, but the page of the asset's runs.
    run_of(daily, "2013-04-01", vera)
    assert 'href="/runs/?asset=daily">' in polled(browser, **typed("daily", end="2013-04-01"))

    backfill = written_backfill(vera, "daily", "2013-05-01", "2013-05-31")
    group.runs.update(group=backfill.group)
    text = polled(browser, **typed("daily"))
    assert f"31 partitions are in progress in {backfill.name}." in text
    assert f'href="/backfills/{backfill.pk}/">' in text
    assert errors(browser, **typed("daily")).keys() == {"__all__"}


def test_the_first_five_backfills_that_hold_partitions_are_named(
    browser: Client, vera: User
) -> None:
    daily = asset("daily", DAILY_2013)
    names = []
    for day in range(1, 7):
        run = run_of(daily, f"2013-03-0{day}", vera)
        backfill = written_backfill(vera, "daily", f"2013-05-0{day}", f"2013-05-0{day}")
        run.group = backfill.group
        run.save(update_fields=["group"])
        names.append(backfill.name)
    text = polled(browser, **typed("daily", end="2013-03-06"))
    assert f"6 partitions are in progress in {', '.join(names[:5])} and 1 more." in text
    assert text.count("Show backfill_daily") == 5


def test_missing_upstream_partitions_can_be_included(browser: Client) -> None:
    raw = asset("raw", DAILY_2013)
    delays = asset("delays", DAILY_2013, upstream={"raw": None})
    AssetDependency.objects.create(upstream=raw, downstream=delays, inlet=True)
    text = polled(browser, **typed("delays"))
    assert is_start_off(text)
    assert "Nothing to run: 31 partitions need missing upstream partitions." in text
    assert 'name="add_upstream"' in text
    assert list(errors(browser, **typed("delays"))) == ["upstream"]
    assert not Backfill.objects.exists()
    text = compact(
        browser.post("/backfills/new/", typed("delays", add_upstream="1")).content.decode()
    )
    assert "<b>62</b>partitions" in text
    assert 'id="id_upstream" checked' in text
    assert not is_start_off(text)
    assert browser.post("/backfills/new/", typed("delays", upstream="on")).status_code == 302
    assert Backfill.objects.get().assets.count() == 2


def test_a_way_out_of_many_partitions_is_named_without_a_further_plan(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = asset("raw", DAILY_2013)
    delays = asset("delays", DAILY_2013, upstream={"raw": None})
    AssetDependency.objects.create(upstream=raw, downstream=delays, inlet=True)
    limit = PlanLimit(partitions=31, upstream_rows=1_000)
    monkeypatch.setattr("backfills_app.views.ways_out._FURTHER_PLANS", limit)
    text = polled(browser, **typed("delays"))
    # With the upstream partitions, 62 partitions would run.
    assert "missing upstream partitions. Include upstream assets, or materialize" in text
    assert 'name="add_upstream"' not in text
    monkeypatch.undo()
    text = polled(browser, **typed("delays"))
    assert 'name="add_upstream"' in text
    assert "Include upstream assets, or" not in text


def test_upstream_assets_that_the_person_may_not_backfill_are_not_offered() -> None:
    raw = asset("raw", DAILY_2013)
    delays = asset("delays", DAILY_2013, upstream={"raw": None})
    AssetDependency.objects.create(upstream=raw, downstream=delays, inlet=True)
    ulf = person("ulf")
    Grant.objects.create(person=ulf, asset="delays")
    text = polled(browser_of(ulf), **typed("delays"))
    assert is_start_off(text)
    assert "need missing upstream partitions" in text
    assert 'name="add_upstream"' not in text


def test_a_later_start_may_find_other_runs_ended(browser: Client, vera: User) -> None:
    daily = asset("daily", DAILY_2013)
    materialize(MaterializeRequest(asset=daily, selection="2013-03"), user=vera)
    sent = typed("daily", start_at="2099-01-01 06:00")
    text = polled(browser, **sent)
    assert "Nothing would run now. The start time decides" in text
    assert not is_start_off(text)
    assert browser.post("/backfills/new/", sent).status_code == 302


def test_without_an_asset_to_choose_start_is_off(browser: Client) -> None:
    def page() -> str:
        return compact(browser.get("/backfills/new/").content.decode())

    def start(text: str) -> str:
        return text.split('id="start-backfill"')[1].split(">")[0]

    without = page()
    assert "disabled" in start(without)
    assert "No assets to backfill." in without
    # Without scripts no preview turns start on again: the server names a missing choice.
    asset("daily", DAILY_2013)
    assert "disabled" not in start(page())


def test_each_option_tells_how_many_partitions_it_runs(browser: Client) -> None:
    states = ["materialized"] * 20 + ["failed"] * 5
    record(asset("daily", DAILY_2013), "2013-03-01..2013-03-25", states.__getitem__)
    answer = browser.get(
        "/backfills/new/", typed("daily", fragment="counts"), headers={"hx-request": "true"}
    )
    text = compact(answer.content.decode())
    for policy, number in (("missing", 6), ("missing_and_failed", 11), ("stale", 11), ("all", 31)):
        counted = f'<span id="count-{policy}" class="text-secondary" hx-swap-oob="true">{number}<'
        assert counted in text


def test_an_address_fills_in_what_was_typed(browser: Client) -> None:
    weather = asset("weather", DAY_BY_AIRPORT, params={"limit": 10})
    delays = asset("delays", DAILY_2013)
    AssetDependency.objects.create(upstream=weather, downstream=delays, inlet=True)
    text = page_at(
        browser,
        "/backfills/new/?asset=weather&start=2013-03-01&segment-airport=JFK&param-limit=12"
        "&existing=all&downstream=chosen&downstream_assets=delays&strategy=n&per_run=7",
    )
    assert 'value="JFK" class="form-check-input" id="id_segment-airport_1" checked' in text
    assert 'name="param-limit" value="12"' in text
    assert 'name="per_run" value="7"' in text
    (chosen,) = re.findall(r'<input type="radio" name="existing"[^>]*checked[^>]*>', text)
    assert 'value="all"' in chosen
    assert 'name="downstream_assets" value="delays"' in text
    # A rectangle of a grid becomes dates and boxes.
    text = page_at(
        browser,
        "/backfills/new/?asset=weather&selection=date%3D2013-03-01..2013-03-31+airport%3DJFK",
    )
    assert 'name="start" value="2013-03-01"' in text
    assert 'name="end" value="2013-03-31"' in text
    assert text.count('name="segment-airport"') == 3
    assert 'value="JFK" class="form-check-input" id="id_segment-airport_1" checked' in text
