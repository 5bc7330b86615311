"""Labels of partition keys, on pages and in the API, and their cost: no statement."""

import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

import slicewise
from accounts_app.models import User
from assets_app.catalogue.services import sync_bundles
from assets_app.models import Asset, Run, RunGroup
from partitions_app.grid.cells import Cell
from partitions_app.grid.layouts import GridRequest, draw, layout
from partitions_app.grid.periods import Clock
from partitions_app.labels import example_selection, label_of, selection_label
from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from tests.factories import AIRPORTS, DAILY_2013, asset, definition_of
from tests.pages.markup import compact
from tests.partition_records import record

WEEKLY = PartitionByInterval("0 0 * * 1", start=date(2026, 1, 1), end=date(2026, 7, 1))
ODD = ["東京", "a b", "50%", "مركز", 'say "x" <b>', "w" * 200]
NOW = datetime(2026, 11, 20, tzinfo=UTC)
CLOCK = Clock(NOW, NOW)
POSITIONS = """
from slicewise import PartitionBySequence, PartitionKey, asset


class Position(PartitionKey):
    x: int
    y: int
    z: int

    def __str__(self) -> str:
        return f"({self.x}, {self.y}, {self.z}) <b>"


@asset(partition=PartitionBySequence([Position(1, 2, 3), Position(4, 5, 6), Position(7, 8, 9)]))
def measured(): ...
"""


@pytest.mark.parametrize(
    ("rule", "text", "label"),
    [
        (WEEKLY, "2026-01-26", "2026-W05"),
        (PartitionByInterval("@monthly", start=date(2024, 1, 1)), "2024-01-01", "2024-01"),
        (PartitionByInterval("@quarterly", start=date(2024, 1, 1)), "2024-04-01", "2024-Q2"),
        (PartitionByInterval("@yearly", start=date(2024, 1, 1)), "2024-01-01", "2024"),
        (DAILY_2013, "2013-01-01", "2013-01-01"),
        (PartitionBySequence(ODD), quote(ODD[0]), ODD[0]),
        (PartitionByProduct([WEEKLY, AIRPORTS]), "2026-01-26|JFK", "2026-W05 | JFK"),
        (None, "", ""),
    ],
)
def test_a_key_is_shown_by_its_label(
    rule: slicewise.PartitionDefinition | None, text: str, label: str
) -> None:
    assert label_of(rule, text) == label


@pytest.mark.parametrize("text", ["1999-01-01", "nonsense", "2026-01-26|JFK"])
def test_a_key_that_is_no_more_is_shown_as_it_was(text: str) -> None:
    assert label_of(WEEKLY, text) == text


@pytest.mark.parametrize(
    "value", ["right\N{RIGHT-TO-LEFT OVERRIDE}left", " a", "a\N{ZERO WIDTH SPACE}b"]
)
def test_invisible_characters_stay_encoded(value: str) -> None:
    rule = PartitionBySequence([value])
    assert label_of(rule, quote(value)) == quote(value)


@pytest.mark.parametrize(
    ("rule", "selection", "label"),
    [
        (WEEKLY, "2026-01-05..2026-01-26", "2026-W02..2026-W05"),
        (WEEKLY, "2026-01-05,2026-01-26", "2026-01-05,2026-01-26"),
        (PartitionByProduct({"week": WEEKLY, "at": AIRPORTS}), "week=2026-01-05 at=*",
         "week=2026-W02 at=*"),
    ],
)  # fmt: skip
def test_a_selection_is_shown_with_labels(
    rule: slicewise.PartitionDefinition, selection: str, label: str
) -> None:
    assert selection_label(rule, selection) == label
    # What is shown of windows can be typed.
    assert rule.select(label) == rule.select(selection)


@pytest.mark.parametrize(
    "rule",
    [
        WEEKLY,
        DAILY_2013,
        PartitionBySequence(ODD),
        PartitionByInterval("@hourly"),
        PartitionByProduct([WEEKLY, PartitionBySequence(ODD)]),
    ],
)
def test_the_example_of_a_selection_is_one(rule: slicewise.PartitionDefinition) -> None:
    assert len(rule.select(example_selection(rule, NOW)))


@pytest.mark.parametrize("zoom", ["year", "month"])
@pytest.mark.parametrize(
    "segments",
    [
        {"site": ODD},
        {"site": [f"{'long' * 20}{n}" for n in range(40)]},
        {"a": ["x" * 200], "b": ["y" * 200], "c": ["z" * 200, "ü" * 30], "d": ["w" * 200]},
    ],
)
def test_all_partitions_are_reached_however_long_their_keys_are(
    zoom: str, segments: dict[str, list[str]]
) -> None:
    cadence = {"year": "0 0 * * 1", "month": "@daily"}[zoom]
    time = PartitionByInterval(cadence, start=date(2026, 3, 1), end=date(2026, 4, 1))
    other_dimensions = {name: PartitionBySequence(values) for name, values in segments.items()}
    rule = PartitionByProduct({"time": time, **other_dimensions})
    shown_keys: set[str] = set()
    addresses = [f"?zoom={zoom}&at=2026-03-01"]
    for address in addresses:
        query: dict[str, Any] = {name: value[0] for name, value in parse_qs(address[1:]).items()}
        query["page"] = int(query.get("page", 1))
        grid = draw(layout(rule, GridRequest(**query), CLOCK), {}, {})
        cells = [cell for block in grid.blocks for row in block.rows for cell in row.cells if cell]
        assert sum(len(cell.href) + len(cell.title) + 50 for cell in cells) < 150_000
        shown_keys |= {cell.key for cell in cells if isinstance(cell, Cell)}
        further = [grid.following] if "T" in grid.following else []
        further += [grid.segments.following] if grid.segments else []
        addresses += [link for link in further if link and link not in addresses]
    listed = rule.keys()
    assert shown_keys == {key.text for key in listed}


@pytest.fixture
def measured(db: None) -> Iterator[Asset]:
    """Load an asset whose keys are of a class that only the asset's bundle declares."""
    with tempfile.TemporaryDirectory(prefix="slicewise-bundle-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "positions.py").write_text(POSITIONS)
        (report,) = sync_bundles({"positions": folder})
        assert report.errors == []
        yield Asset.objects.get(name="measured")


def test_keys_of_a_class_of_the_bundle_are_shown_and_made_without_it(
    measured: Asset, browser: Client
) -> None:
    first, second, _ = (key.text for key in definition_of(measured).select("*"))
    record(measured, second, lambda n: "failed")

    grid = browser.get("/assets/measured/").content.decode()
    assert f' aria-label="(1, 2, 3) &lt;b&gt; ({first}): missing">(1, 2, 3) &lt;b&gt;</a>' in grid
    assert f' aria-label="(4, 5, 6) &lt;b&gt; ({second}): failed"' in grid
    page = browser.get(f"/assets/measured/partitions/{quote(first)}/").content.decode()
    assert "<bdi>(1, 2, 3) &lt;b&gt;</bdi>" in page
    assert f'<dd class="key">{first}</dd>' in page

    browser.post("/assets/measured/materialize/", {"selection": first})
    answer = browser.post(
        "/api/v1/assets/measured/materialize/",
        {"selection": second},
        content_type="application/json",
    )
    assert answer.status_code == 201, answer.content
    assert [run.selection for run in Run.objects.order_by("id")] == [first, second]
    runs = compact(browser.get("/runs/").content.decode())
    assert f'title="{first}">(1, 2, 3) &lt;b&gt;</span>' in runs
    listed = browser.get("/api/v1/assets/measured/partitions/").json()["results"]
    assert [(partition["key"], partition["label"]) for partition in listed][:1] == [
        (first, "(1, 2, 3) <b>")
    ]

    assert "positions" not in sys.modules
    assert "Position" not in {
        subclass.__name__ for subclass in slicewise.PartitionKey.__subclasses__()
    }


@pytest.mark.django_db
def test_every_list_says_label_and_key(browser: Client, vera: User) -> None:
    weekly = asset("weekly", WEEKLY)
    record(weekly, "*", lambda n: "failed" if n == 3 else "materialized")
    browser.post("/assets/weekly/materialize/", {"selection": "2026-W05"})
    run = Run.objects.get()
    for address in ("/runs/", f"/runs/{run.pk}/", "/assets/weekly/?tab=runs"):
        text = compact(browser.get(address).content.decode())
        assert 'title="2026-01-26">2026-W05<' in text, address
    form = {"asset": "weekly", "start": "2026-W02", "end": "2026-W04", "max_active_runs": "3"}
    form |= {"existing": "all", "strategy": "", "params": "", "description": ""}
    preview = browser.get("/backfills/new/", form, headers={"hx-request": "true"})
    assert 'title="2026-01-05">2026-W02<' in preview.content.decode()
    browser.post("/backfills/new/", form)
    assert "2026-W02..2026-W04" in browser.get("/backfills/").content.decode()
    assert 'aria-label="2026-W02 to 2026-W26: ' in browser.get("/assets/").content.decode()
    body: dict[str, Any] = form | {"max_active_runs": 3, "strategy": None, "params": {}}
    answer = browser.post("/api/v1/backfills/preview/", body, content_type="application/json")
    planned = answer.json()
    assert (planned["first_key"], planned["first_label"]) == ("2026-01-05", "2026-W02")


@pytest.mark.django_db
def test_labels_cost_no_statement(browser: Client, vera: User) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as statements:
            assert browser.get("/runs/").status_code == 200
        return len(statements)

    def add(number: int) -> None:
        rule = PartitionByInterval("0 0 * * 1", start=date(2020, 1, 1 + number))
        row: Any = asset(f"weekly{number}", rule)
        assert row.definition  # read once by this process
        Run.objects.create(
            group=RunGroup.objects.create(kind="request"), asset=row, trigger="manual",
            queue="scheduled", producer_version=row.producer.current_version, state="queued",
            partition_count=1, selection="2026-01-26", requested_by=vera,
        )  # fmt: skip

    add(0)
    few = statements()
    for number in range(1, 12):
        add(number)
    assert statements() == few


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("rule", "named", "address"),
    [
        (PartitionByInterval("@monthly", start=date(2013, 1, 1)), "2013-03", "2013-03-01"),
        (PartitionByInterval("@quarterly", start=date(2024, 1, 1)), "2024-Q2", "2024-04-01"),
        (WEEKLY, "2026-W05", "2026-01-26"),
        (PartitionByProduct([WEEKLY, AIRPORTS]), "2026-W05 | JFK", "2026-01-26%7CJFK"),
        (PartitionByProduct([WEEKLY, AIRPORTS]), "2026-W05|JFK", "2026-01-26%7CJFK"),
        (PartitionBySequence(ODD), ODD[0], quote(quote(ODD[0]))),
    ],
)
def test_an_address_with_the_label_leads_to_the_partition(
    browser: Client, rule: slicewise.PartitionDefinition, named: str, address: str
) -> None:
    asset("reports", rule)
    answer = browser.get(f"/assets/reports/partitions/{quote(named)}/")
    assert answer.status_code == 302
    assert answer["Location"] == f"/assets/reports/partitions/{address}/"
    assert browser.get(answer["Location"]).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("named", ["2026", "2026-01", "*", "2026-W05..2026-W05", "2026-W99", "|"])
def test_an_address_that_names_no_single_partition_is_not_found(
    browser: Client, named: str
) -> None:
    asset("reports", WEEKLY)
    assert browser.get(f"/assets/reports/partitions/{quote(named)}/").status_code == 404
