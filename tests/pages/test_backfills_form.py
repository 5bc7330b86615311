"""The trigger form: choices for an asset, reading of typed text, and the preview."""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from accounts_app.models import Grant, User
from assets_app.models import Asset, AssetDependency
from assets_app.queries.clock import database_now
from backfills_app.forms.presets import preset_ends
from backfills_app.models import Backfill
from slicewise import PartitionByInterval, PartitionBySequence, PartitionDefinition
from slicewise_server.web.request_errors import InvalidRequest
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, asset, definition_of, person
from tests.pages.backfill_records import written_backfill
from tests.pages.markup import compact, page_at
from tests.partition_records import record

pytestmark = pytest.mark.django_db
PARAMS = {
    "limit": 10, "factor": 1.5, "city": "Köln", "strict": True, "columns": ["a", "b"],
    "source": None, "note": "two\nlines",
}  # fmt: skip


def typed(name: str = "raw_flights", **changes: Any) -> dict[str, Any]:
    """Return the fields that the form sends once an asset is chosen."""
    return {
        "asset": name, "shown_for": name, "start": "2013-01-01", "end": "2013-01-31",
        "selection": "", "description": "", "max_active_runs": "3", "strategy": "", "per_run": "",
        "existing": "missing_and_failed", "order": "oldest", "downstream": "none",
        "code_version": "", "start_at": "",
    } | changes  # fmt: skip


def params_typed(**changes: str) -> dict[str, str]:
    """Return the fields of all params as a browser sends untouched fields, but for the changes."""
    shown = {
        "limit": "10", "factor": "1.5", "city": "Köln", "strict": "true",
        "columns": '["a", "b"]', "source": "null", "note": "two\r\nlines",
    } | changes  # fmt: skip
    return {f"param-{name}": text for name, text in shown.items()}


def created(browser: Client, **sent: Any) -> Backfill:
    """Return the backfill that the form creates."""
    answer = browser.post("/backfills/new/", sent)
    assert answer.status_code == 302, answer.context["form"].errors
    return Backfill.objects.latest("id")


def preview(browser: Client, **sent: Any) -> str:
    """Return the text beside the form while a person fills in the form."""
    answer = browser.get("/backfills/new/", sent, headers={"hx-request": "true"})
    assert answer.status_code == 200
    return answer.content.decode()


def dependent_fields(browser: Client, **sent: Any) -> str:
    """Return the fragment of the form that depends on the asset, as polled when another asset is
    chosen.
    """
    return preview(browser, fragment="dependent", **sent)


def test_params_are_fields_of_the_types_of_their_defaults(browser: Client) -> None:
    asset("raw_flights", DAILY_2013, params=PARAMS)
    text = dependent_fields(browser, asset="raw_flights")
    assert '<input type="number" name="param-limit" value="10" step="1"' in text
    assert '<input type="number" name="param-factor" value="1.5" step="any"' in text
    assert '<input type="text" name="param-city" value="Köln"' in text
    assert '<option value="true" selected>true</option>' in text
    assert "[&quot;a&quot;, &quot;b&quot;]" in text
    assert ">\nnull</textarea>" in text


def test_params_that_were_not_touched_are_left_to_the_asset(browser: Client) -> None:
    asset("raw_flights", DAILY_2013, params=PARAMS)
    assert created(browser, **typed(**params_typed())).params == PARAMS


def test_params_that_were_typed_keep_their_types(browser: Client) -> None:
    asset("raw_flights", DAILY_2013, params=PARAMS)
    sent = params_typed(
        limit="11", factor="2", city=" Bonn", strict="false", columns='[{"a": 1}]', source='"s3"'
    )
    params = created(browser, **typed(**sent)).params
    assert params == PARAMS | {
        "limit": 11, "factor": 2.0, "city": " Bonn", "strict": False, "columns": [{"a": 1}],
        "source": "s3",
    }  # fmt: skip
    assert [type(params[name]) for name in ("limit", "factor", "strict")] == [int, float, bool]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("limit", "1.5"), ("limit", "many"), ("limit", "true"), ("limit", "9" * 5000),
        ("factor", "NaN"), ("factor", "[1]"), ("columns", "[1"), ("source", "\0"),
        ("strict", "maybe"),
    ],
)  # fmt: skip
def test_a_param_that_cannot_be_read_is_refused_at_its_field(
    browser: Client, name: str, text: str
) -> None:
    asset("raw_flights", DAILY_2013, params=PARAMS)
    answer = browser.post("/backfills/new/", typed(**params_typed(**{name: text})))
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == [f"param-{name}"]
    assert not Backfill.objects.exists()


def test_params_of_the_asset_that_was_chosen_before_are_not_read(browser: Client) -> None:
    asset("raw_flights", DAILY_2013, params={"limit": 1})
    asset("weather", DAILY_2013, params={"limit": 5})
    sent = typed("weather", shown_for="raw_flights") | {"param-limit": "1"}
    assert created(browser, **sent).params == {"limit": 5}


def test_without_a_script_params_are_json_until_the_asset_is_shown(browser: Client) -> None:
    asset("raw_flights", DAILY_2013, params=PARAMS)
    assert '<textarea name="params"' in browser.get("/backfills/new/").content.decode()
    sent = typed(shown_for="", params='{"limit": 3}')
    text = browser.post("/backfills/new/", sent | {"preview": "1"}).content.decode()
    assert 'name="param-limit" value="3"' in text
    assert '<textarea name="params"' not in text
    assert created(browser, **sent).params == PARAMS | {"limit": 3}


def test_segments_narrow_a_range_of_dates(browser: Client) -> None:
    asset("by_airport", DAY_BY_AIRPORT)
    text = dependent_fields(browser, asset="by_airport")
    assert text.count('type="checkbox" name="segment-airport"') == 3
    backfill = created(browser, **typed("by_airport", **{"segment-airport": "EWR,L*"}))
    assert backfill.logical_dates == "date=2013-01-01..2013-01-31 airport=EWR,LGA"


def test_a_selection_takes_the_place_of_dates(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    sent = typed(start="", end="", selection="2013-03,2013-01-05", order="listed")
    assert created(browser, **sent).logical_dates == "2013-03-01..2013-03-31; 2013-01-05"
    answer = browser.post("/backfills/new/", typed(selection="2013-03"))
    assert list(answer.context["form"].errors) == ["selection"]


def test_a_number_of_partitions_in_a_run_is_a_strategy(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    assert created(browser, **typed(strategy="n", per_run="10")).strategy == 10
    answer = browser.post("/backfills/new/", typed(strategy="n"))
    assert list(answer.context["form"].errors) == ["per_run"]


def test_more_is_read_as_well(browser: Client) -> None:
    flights = asset("raw_flights", PartitionByInterval("@daily", timezone="America/New_York",
        start=date(2013, 1, 1), end=date(2014, 1, 1)))  # fmt: skip
    assert flights.producer
    assert flights.producer.current_version
    digest = flights.producer.current_version.bundle_version.digest[:12]
    backfill = created(
        browser,
        **typed(code_version=digest, start_at="2099-07-01 06:00", allow_holes="on", order="newest"),
    )
    assert backfill.scheduled_date == datetime(2099, 7, 1, 10, tzinfo=UTC)
    assert backfill.allow_holes
    assert backfill.order == "newest"
    assert backfill.code_version == flights.producer.current_version.bundle_version
    text = browser.get(f"/backfills/{backfill.pk}/").content.decode()
    assert "Starts at <time" in text


def follower(name: str, of: str, definition: PartitionDefinition = DAILY_2013) -> Asset:
    """Create an asset that reads another asset, by the overlap of the windows."""
    downstream = asset(name, definition, upstream={of: None})
    above = Asset.objects.get(name=of)
    AssetDependency.objects.create(upstream=above, downstream=downstream, inlet=True)
    return downstream


def test_downstream_assets_are_offered_in_the_order_in_which_they_are_made(
    browser: Client,
) -> None:
    asset("raw_flights", DAILY_2013)
    assert "No downstream assets to backfill" in dependent_fields(browser, asset="raw_flights")
    follower("z_delays", "raw_flights")
    follower("a_report", "z_delays", PartitionByInterval("@monthly", start="2013-01-01"))
    follower("b_airports", "a_report", PartitionBySequence(["EWR", "JFK"]))
    text = dependent_fields(browser, asset="raw_flights")
    offered = re.findall(r'name="downstream_assets" value="(\w+)"', text)
    assert offered == ["z_delays", "a_report", "b_airports"]
    assert 'value="none" class="form-check-input" id="id_downstream_0" checked' in text


@pytest.mark.parametrize(
    ("sent", "included"),
    [
        ({"downstream": "none"}, ["raw_flights"]),
        ({"downstream": "all"}, ["raw_flights", "delays", "report"]),
        ({"downstream": "chosen", "downstream_assets": ["delays"]}, ["raw_flights", "delays"]),
        # Of the asset that was chosen before.
        (
            {"downstream": "chosen", "downstream_assets": ["x"], "shown_for": "x"},
            ["raw_flights"],
        ),
    ],
)
def test_downstream_assets_are_none_all_or_those_that_are_chosen(
    browser: Client, sent: dict[str, Any], included: list[str]
) -> None:
    asset("raw_flights", DAILY_2013)
    follower("delays", "raw_flights")
    follower("report", "delays", PartitionByInterval("@monthly", start="2013-01-01"))
    text = preview(browser, **typed(**sent))
    backfill = created(browser, **typed(**sent))
    assert list(backfill.assets.values_list("asset__name", flat=True)) == included
    for name in ("raw_flights", "delays", "report"):
        assert (f'<b class="text-break">{name}</b>' in text) == (name in included)
    assert (f"of <b>{len(included)}</b> assets" in text) == (len(included) > 1)
    page = browser.get(f"/backfills/{backfill.pk}/").content.decode()
    assert ('aria-label="Partitions of"' in page) == (len(included) > 1)


def test_the_preview_counts_the_assets_that_have_runs(browser: Client) -> None:
    raw_flights = asset("raw_flights", DAILY_2013)
    follower("delays", "raw_flights")
    record(raw_flights, "2013")
    sent = {"start": "2013-01-01", "end": "2013-01-10", "downstream": "all"}
    text = compact(preview(browser, **typed(**sent)))
    assert "raw_flights</b>: 0 of 10, 0 runs" in text
    assert "<b>10</b>partitions in<b>10</b>runs of<b>1</b>asset</p>" in text


def test_chosen_ones_have_to_be_chosen(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    follower("delays", "raw_flights")
    answer = browser.post("/backfills/new/", typed(downstream="chosen"))
    assert list(answer.context["form"].errors) == ["downstream_assets"]


@pytest.mark.parametrize(
    ("preset", "ends"),
    [
        ("7", ("2013-06-24", "2013-06-30")),
        ("30", ("2013-06-01", "2013-06-30")),
        ("90", ("2013-04-02", "2013-06-30")),
        ("success", ("2013-02-01", "2013-06-30")),
        ("all", ("2013-01-01", "2013-06-30")),
    ],
)
def test_a_preset_names_partitions_that_are_over(preset: str, ends: tuple[str, str]) -> None:
    flights = asset("raw_flights", DAILY_2013)
    record(flights, "2013-01")
    now = datetime(2013, 7, 1, 12, tzinfo=UTC)
    assert preset_ends(flights, preset, now) == ends


def test_a_day_in_which_the_clock_changes_is_a_day() -> None:
    shops = asset(
        "shops", PartitionByInterval("@daily", timezone="Europe/Berlin", start=date(2026, 1, 1))
    )
    for now in (datetime(2026, 4, 2, 12, tzinfo=UTC), datetime(2026, 10, 28, 12, tzinfo=UTC)):
        first, last = preset_ends(shops, "7", now)
        assert len(definition_of(shops).select(f"{first}..{last}")) == 7


def test_this_month_begins_with_its_first_day_in_the_zone_of_the_asset() -> None:
    days = PartitionByInterval("@daily", timezone="Asia/Tokyo", start=date(2013, 1, 1))
    shops = asset("shops", days)
    # In Tokyo the third of June has begun.
    now = datetime(2013, 6, 2, 16, tzinfo=UTC)
    assert preset_ends(shops, "month", now) == ("2013-06-01", "2013-06-02")
    with pytest.raises(InvalidRequest, match="This month: shops has no ended partitions"):
        preset_ends(shops, "month", datetime(2013, 6, 1, 3, tzinfo=UTC))


def test_a_preset_fills_the_dates_with_and_without_a_script(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    sent = typed(start="", end="", preset="7")
    answer = browser.get("/backfills/new/", sent, headers={"hx-request": "true"})
    text = answer.content.decode()
    assert 'name="start" value="2013-12-25"' in text
    assert 'name="end" value="2013-12-31"' in text
    assert "<form" not in text
    assert answer["HX-Trigger-After-Settle"] == "ends-filled"
    text = browser.post("/backfills/new/", sent).content.decode()
    assert 'name="start" value="2013-12-25"' in text
    assert "<b>7</b> partitions in <b>7</b> runs" in text
    assert not Backfill.objects.exists()


def test_a_preset_without_an_asset_says_what_is_missing(browser: Client) -> None:
    answer = browser.post("/backfills/new/", {"preset": "7"})
    assert "Select an asset first." in answer.content.decode()


def test_the_preview_says_what_becomes_of_materialized_partitions(browser: Client) -> None:
    states = ["materialized"] * 5 + ["failed"] * 2
    record(asset("raw_flights", DAILY_2013), "2013-01-01..2013-01-07", states.__getitem__)
    text = preview(browser, **typed(existing="missing_and_failed"))
    assert "<b>26</b> partitions in <b>26</b> runs" in text
    for line in (">Materialized</th>", ">5</td><td>skip<", ">2</td><td>run again"):
        assert line in compact(text)
    text = preview(browser, **typed(existing="missing"))
    assert "<b>24</b> partitions" in text
    assert ">2</td><td>skip<" in compact(text)
    assert ">5</td><td>run again" in compact(preview(browser, **typed(existing="all")))


def test_the_preview_says_where_a_range_that_ends_today_is_cut(browser: Client) -> None:
    asset("visits", PartitionByInterval("@daily", start="2013-01-01"))
    today = database_now().date()
    yesterday, day_before = today - timedelta(days=1), today - timedelta(days=2)
    sent = typed("visits", start=f"{day_before}", end=f"{today}")
    text = compact(preview(browser, **sent))
    assert "<b>2</b>partitions in" in text
    assert f"1 partition of visits has not ended yet: the range is cut at {yesterday}." in text
    # A range that ended before is not cut.
    ended = typed("visits", start=f"{yesterday}", end=f"{yesterday}")
    assert "the range is cut" not in preview(browser, **ended)


def test_the_preview_links_to_the_missing_upstream_partitions(browser: Client) -> None:
    raw_flights = asset("raw_flights", DAILY_2013)
    delays = asset("delays", DAILY_2013, upstream={"raw_flights": None})
    AssetDependency.objects.create(upstream=raw_flights, downstream=delays, inlet=True)
    record(raw_flights, "2013-01-01..2013-01-29")
    text = compact(preview(browser, **typed("delays")))
    for day in ("2013-01-30", "2013-01-31"):
        assert f'href="/assets/raw_flights/partitions/{day}/">{day}</a>' in text


def test_the_preview_says_that_time_is_unknown_without_past_runs(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    text = preview(browser, **typed())
    assert "No estimate: fewer than 3 succeeded runs of raw_flights have about as many" in text


def test_the_preview_names_the_assets_of_which_nothing_runs(browser: Client) -> None:
    flights = asset("raw_flights", DAILY_2013, options={"strategy": "range"})
    follower("delays", "raw_flights")
    sent = several(assets=["raw_flights", "delays"])
    assert "No runs of" not in preview(browser, **sent)
    record(flights, "2013-01-01..2013-01-31")
    text = compact(preview(browser, **sent))
    assert "in<b>31</b>runs of<b>1</b>asset" in text
    assert "No runs of raw_flights: 31 materialized." in text
    assert "fewer than 3 succeeded runs of delays have" in text
    assert "Inclusive; no future dates." in page_at(browser, "/backfills/new/")


def test_a_single_run_is_told_once(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    assert "<td>in 1 run</td>" in compact(preview(browser, **typed(strategy="range")))


def test_the_preview_says_what_would_be_refused_by_the_name_of_its_field(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    text = preview(browser, **typed(end="2012-12-31", max_active_runs="0"))
    assert "Cannot start" in text
    assert "<strong>Max active runs:</strong> Between 1 and 1000, not 0." in text


def test_the_preview_is_quiet_before_there_is_something_to_say(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    text = preview(browser, **typed(start="", end=""))
    assert "Select an asset and a range" in text
    assert "Cannot start" not in text


def test_only_assets_that_the_person_may_backfill_are_offered() -> None:
    asset("raw_flights", DAILY_2013)
    asset("weather", DAILY_2013)
    asset("carriers")
    ulf = person("ulf")
    Grant.objects.create(person=ulf, asset="weather")
    client = Client()
    client.force_login(ulf, backend="django.contrib.auth.backends.ModelBackend")
    text = client.get("/backfills/new/").content.decode()
    assert 'value="weather"' in text
    assert "raw_flights" not in text
    assert "carriers" not in text
    assert client.post("/backfills/new/", typed("raw_flights")).status_code == 403
    assert client.post("/backfills/new/", typed("weather")).status_code == 302


def test_a_link_fills_the_form_in(browser: Client) -> None:
    asset("raw_flights", DAILY_2013)
    address = "/backfills/new/?asset=raw_flights&strategy=30&existing=all&selection="
    text = browser.get(address + "2013-02-01..2013-02-07").content.decode()
    assert 'name="asset" value="raw_flights"' in text
    assert 'name="start" value="2013-02-01"' in text
    assert 'name="end" value="2013-02-07"' in text
    assert 'name="per_run" value="30"' in text
    # Not a range: the selection itself.
    text = browser.get(address + "2013-02-01,2013-02-07").content.decode()
    assert 'name="selection" value="2013-02-01,2013-02-07"' in text


def test_a_backfill_is_cloned_into_the_form(browser: Client, vera: User) -> None:
    asset("raw_flights", DAILY_2013, params={"limit": 1})
    backfill = written_backfill(
        vera, strategy=10, params={"limit": 2}, description="again", order="newest"
    )
    text = browser.get(f"/backfills/new/?clone={backfill.pk}").content.decode()
    for fragment in (
        'name="start" value="2013-01-01"', 'name="end" value="2013-01-31"',
        'name="per_run" value="10"', 'name="param-limit" value="2"',
        'name="description" value="again"', '<option value="newest" selected>',
    ):  # fmt: skip
        assert fragment in text
    assert browser.get("/backfills/new/?clone=9999").status_code == 404


def test_a_clone_in_the_listed_order_keeps_the_selection(browser: Client, vera: User) -> None:
    asset("raw_flights", DAILY_2013)
    backfill = written_backfill(vera, selection="2013-03; 2013-02", order="listed")
    text = browser.get(f"/backfills/new/?clone={backfill.pk}").content.decode()
    selection = backfill.logical_dates
    assert selection.startswith("2013-03")
    assert f'name="selection" value="{selection}"' in text
    assert '<option value="listed" selected>' in text
    assert 'name="start" value' not in text
    clone = created(browser, **typed(start="", end="", selection=selection, order="listed"))
    assert clone.logical_dates == selection
    link = "/backfills/new/?asset=raw_flights&selection=2013-03;2013-02&order="
    text = browser.get(f"{link}listed").content.decode()
    assert 'name="selection" value="2013-03;2013-02"' in text
    assert 'name="start" value="2013-02-01"' in browser.get(f"{link}newest").content.decode()


def test_enter_in_a_field_previews_and_starts_nothing(browser: Client) -> None:
    text = browser.get("/backfills/new/").content.decode()
    form = text.split('id="trigger"')[1]
    assert form.split("<button")[1].startswith(' class="visually-hidden" name="preview"')


@pytest.fixture
def flights() -> None:
    """Create a group of assets: the second is made from the first, and one has no time."""
    asset("raw_flights", DAILY_2013, group="flights", tags=["nightly"])
    follower("delays", "raw_flights")
    asset("carriers", group="shelves")


def several(**changes: Any) -> dict[str, Any]:
    """Return the fields that the form sends once several assets are chosen."""
    by = changes.get("by", "assets")
    chosen = changes.get(by) or ["raw_flights", "delays"]
    text = f"{by}={','.join(chosen) if by == 'assets' else chosen}"
    return typed("", shown_for=text, by=by) | {by: chosen} | changes


@pytest.mark.usefixtures("flights")
@pytest.mark.parametrize(
    ("sent", "included", "title"),
    [
        (several(), ["raw_flights", "delays"], "raw_flights and delays"),
        (
            several(assets=["raw_flights", "carriers"]),
            ["raw_flights", "carriers"],
            "raw_flights and carriers",
        ),
        (several(by="asset_group", asset_group="flights"), ["raw_flights"], "group flights"),
        (
            several(by="asset_tag", asset_tag="nightly", downstream="all"),
            ["raw_flights", "delays"],
            "tag nightly",
        ),
        (typed("delays", by="asset", upstream="on"), ["raw_flights", "delays"], "delays"),
        # What lies hidden is not read.
        (
            typed("raw_flights", by="asset", assets=["carriers"], asset_group="shelves"),
            ["raw_flights"],
            "raw_flights",
        ),
    ],
)
def test_several_assets_a_group_or_a_tag_are_previewed_and_made(
    browser: Client, sent: dict[str, Any], included: list[str], title: str
) -> None:
    text = preview(browser, **sent)
    backfill = created(browser, **sent)
    assert list(backfill.assets.values_list("asset__name", flat=True)) == included
    for name in ("raw_flights", "delays", "carriers"):
        assert (f'<b class="text-break">{name}</b>' in text) == (name in included)
    page = browser.get(f"/backfills/{backfill.pk}/").content.decode()
    for name in included:
        assert f'<th scope="row"><a href="/assets/{name}/">' in compact(page) or len(included) == 1
        assert f'<a href="/assets/{name}/">{name}</a>' in compact(page)
    listed = browser.get("/backfills/").content.decode()
    assert backfill.title == title
    assert f"backfill_{title}_" in listed


@pytest.mark.usefixtures("flights")
def test_the_preview_shows_the_order_of_several_assets(browser: Client) -> None:
    text = preview(browser, **several(assets=["delays", "raw_flights"]))
    assert "<dt>Order</dt>" in text
    assert "<li>raw_flights</li><li>delays</li>" in compact(text)
    assert compact(text).count(">31</td>") == 2
    text = preview(browser, **typed("delays", upstream="on"))
    assert "raw_flights</b><span" in compact(text)
    assert "(upstream)" in text
    assert "<dt>Order</dt>" not in preview(browser, **typed())


@pytest.mark.usefixtures("flights")
def test_the_form_offers_assets_groups_and_tags_that_the_person_may_backfill() -> None:
    ulf = person("ulf")
    Grant.objects.create(person=ulf, asset="raw_flights")
    client = Client()
    client.force_login(ulf, backend="django.contrib.auth.backends.ModelBackend")
    text = client.get("/backfills/new/").content.decode()
    assert '<input type="checkbox" name="assets" value="raw_flights"' in text
    for shown in ('<option value="flights">', '<option value="nightly">'):
        assert shown in text
    for hidden in ("carriers", "delays", "shelves"):
        assert hidden not in text
    refused = preview(client, **several())
    assert "ulf may not backfill delays" in refused


@pytest.mark.usefixtures("flights")
def test_nothing_chosen_is_said_at_the_field_that_is_shown(browser: Client) -> None:
    for by in ("assets", "asset_group", "asset_tag"):
        answer = browser.post("/backfills/new/", typed("", by=by, shown_for=""))
        assert list(answer.context["form"].errors) == [by]
    assert list(browser.post("/backfills/new/", typed("")).context["form"].errors) == ["asset"]
    assert not Backfill.objects.exists()


@pytest.mark.usefixtures("flights")
def test_left_out_assets_are_named_beside_the_form(browser: Client) -> None:
    asset("later", PartitionByInterval("@daily", start="2020-01-01"))
    text = preview(browser, **several(assets=["raw_flights", "later"]))
    assert "later is skipped: no partitions in this range." in text


@pytest.mark.usefixtures("flights")
def test_a_backfill_of_several_is_cloned_and_linked_to(browser: Client) -> None:
    backfill = created(browser, **several(start="2013-02", end="2013-03"))
    text = browser.get(f"/backfills/new/?clone={backfill.pk}").content.decode()
    assert 'name="by" value="assets" class="form-check-input" id="id_by_1" checked' in text
    for name in ("raw_flights", "delays"):
        assert f'name="assets" value="{name}"' in text
    assert text.count('name="assets"') - text.count("checked") < 3
    assert 'name="start" value="2013-02"' in text
    text = browser.get("/backfills/new/?asset_group=flights&upstream=1").content.decode()
    assert '<option value="flights" selected>' in text
    assert 'id="id_upstream" checked' in text
    link = "/backfills/new/?assets=raw_flights&assets=delays&upstream=false"
    page = browser.get(link).content.decode()
    boxes = re.findall(r'name="assets" value="(\w+)"[^>]* checked', page)
    assert sorted(boxes) == ["delays", "raw_flights"]
    assert 'id="id_upstream" checked' not in page


@pytest.mark.usefixtures("flights")
def test_params_of_a_clone_of_several_are_json(browser: Client) -> None:
    asset("weather", DAILY_2013, params={"limit": 1, "city": "Bonn", "strict": True})
    params = '{"city": "Köln", "limit": 5, "strict": false}'
    sent = several(assets=["raw_flights", "weather"], params=params)
    backfill = created(browser, **sent)
    answer = browser.get(f"/backfills/new/?clone={backfill.pk}")
    assert answer.context["form"]["params"].value() == params


@pytest.mark.usefixtures("flights")
@pytest.mark.parametrize("params", ['{ "limit":5}', "{'limit': 5}", "[1", "5"])
def test_params_that_were_typed_as_json_stay_as_typed(browser: Client, params: str) -> None:
    sent = several(params=params, selection="")
    link = browser.get("/backfills/new/", sent)
    assert link.context["form"]["params"].value() == params
    answer = browser.post("/backfills/new/", sent | {"start": "3013"})
    assert answer.status_code == 400
    assert answer.context["form"]["params"].value() == params


@pytest.mark.usefixtures("flights")
def test_a_preset_and_what_follows_go_by_all_chosen_assets(browser: Client) -> None:
    sent = several(start="", end="", preset="7", assets=["carriers", "raw_flights"])
    answer = browser.get("/backfills/new/", sent, headers={"hx-request": "true"})
    assert 'name="end" value="2013-12-31"' in answer.content.decode()
    assert 'value="delays"' in dependent_fields(
        browser, by="assets", assets=["carriers", "raw_flights"]
    )
    assert "No downstream assets" in dependent_fields(
        browser, by="assets", assets=["raw_flights", "delays"]
    )


def test_of_very_many_assets_names_are_typed(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset("raw_flights", DAILY_2013)
    follower("delays", "raw_flights")
    monkeypatch.setattr("backfills_app.forms.trigger.MOST_BOXES", 1)
    text = browser.get("/backfills/new/").content.decode()
    assert '<input type="text" name="assets" list="assets-options"' in text
    # Each name is completed, but for the names before.
    for typed_names, options in (
        ("del", '<option value="delays">'),
        ("raw_flights, ", '<option value="raw_flights, delays">'),
        ("delays,RAW", '<option value="delays, raw_flights">'),
        ("delays, raw_flights, a", ""),
    ):
        sent = {"fragment": "assets-options", "by": "assets", "assets": typed_names}
        assert compact(preview(browser, **sent)).strip() == options
    sent = typed("", by="assets", assets="raw_flights, delays", shown_for="")
    assert created(browser, **sent).assets.count() == 2
