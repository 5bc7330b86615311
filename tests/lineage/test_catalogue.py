"""Events alone are enough to draw the asset graph and the partitions, as the catalogue has them."""

from __future__ import annotations

import json

import pytest

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt, take_inputs
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.request.reporting import ReportedWrite, report_write
from assets_app.models import Asset, AssetDependency, AssetPartition, Gateway
from slicewise_server.lineage.posting import send_due
from tests.alerts.conftest import Receiver
from tests.attempts import begun, publish, staged
from tests.factories import DAILY_2013, DAY_BY_AIRPORT, external, outlet_of, together
from tests.lineage.catalogue_of_events import CatalogueOfEvents, steps_by_run
from tests.lineage.openlineage_schemas import check_event
from tests.runtime_keys import CUSTOMERS, discover
from tests.scheduling.scheduled_assets import all_of, at, by, scheduled

pytestmark = pytest.mark.django_db(transaction=True)
MONTHLY = slicewise.PartitionByInterval("@monthly", start="2013-01-01", end="2014-01-01")


def make(asset: Asset, user: User, gateway: Gateway, selection: str = "") -> None:
    """Materialize partitions of an asset, with the inputs that a run reads."""
    attempt = begun(asset, user, gateway, selection)
    take_inputs(attempt)
    publish(attempt)


def make_together(outlets: list[Asset], user: User, gateway: Gateway, selection: str) -> None:
    """Materialize partitions of all assets of one function."""
    attempt = begun(outlets[0], user, gateway, selection)
    staged_outlets = [outlet_of(attempt, staged(attempt), of=outlet) for outlet in outlets]
    assert attempts.intend_to_publish(attempt.row, staged_outlets)
    assert ending.succeed(attempt.row)


def fail(attempt: Attempt) -> None:
    assert ending.fail(attempt.row, Failure(error="no rows"))


def test_graph_and_partitions_are_those_of_the_catalogue(
    lineage: Receiver, alice: User, gateway: Gateway
) -> None:
    since = at(2012, 1, 1)
    raw = external("raw", DAILY_2013)
    report_write(ReportedWrite(asset=raw, selection="2013-01"), user=alice)
    delays = scheduled(
        "delays", by("raw"), DAILY_2013, since=since, upstream={"raw": slicewise.Offset(-1, 0)},
        strategy="range",
    )  # fmt: skip
    by_origin = scheduled("by_origin", by("delays"), DAY_BY_AIRPORT, since=since, strategy="range")
    report = scheduled(
        "report", all_of(by("delays"), by("by_origin")), MONTHLY, since=since,
        upstream={"delays": None},
    )  # fmt: skip
    summary = scheduled("summary", by("report"), since=since, upstream={"report": None})
    train_and_test = together("split", ["train", "test"], MONTHLY, options={"strategy": "range"})
    make(delays, alice, gateway, "2013-01-02..2013-01-31")
    make(delays, alice, gateway, "2013-01-05,2013-01-09")
    make(by_origin, alice, gateway, "date=2013-01-01..2013-01-03 airport=JFK,EWR")
    make(report, alice, gateway, "2013-01")
    make(summary, alice, gateway)
    make(summary, alice, gateway)
    make_together(train_and_test, alice, gateway, "2013-01..2013-02")
    customers = together("customers", ["customers"], CUSTOMERS)[0]
    discover(customers, alice, gateway, "ann", "bob", "eve", written=["ann", "bob"])
    fail(begun(delays, alice, gateway, "2013-02-01"))
    while send_due():
        pass
    for event in lineage.bodies:
        check_event(event)
    counts = steps_by_run(lineage.bodies).values()
    assert len(counts) == 9
    assert all(steps == {"START": 1, "end": 1} for steps in counts)

    drawn = CatalogueOfEvents()
    drawn.read(reversed(lineage.bodies))
    assert drawn.edges == edges_on_record()
    made = (
        AssetPartition.objects.under_current_definition().filter(version__gt=0).exclude(asset=raw)
    )
    on_record: dict[str, dict[str, int]] = {}
    for name, key, version in made.values_list("asset__name", "key", "version"):
        on_record.setdefault(name, {})[key] = version
    assert drawn.versions == on_record
    assert drawn.definitions == {
        asset.name: asset.definition for asset in Asset.objects.exclude(pk=raw.pk)
    }


def edges_on_record() -> set[tuple[str, str, bool, bool, str]]:
    rows = AssetDependency.objects.select_related("upstream", "downstream")
    return {
        (
            row.upstream.name,
            row.downstream.name,
            row.inlet,
            row.scheduling,
            json.dumps(row.mapping, sort_keys=True),
        )
        for row in rows
    }
