"""Upstream windows that do not exist: one rule by hand, by schedule, in previews and backfills."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt.inputs import read_inputs
from assets_app.models import Asset, AssetDependency, AssetPartition, Gateway, Run, Target
from assets_app.scheduling.readiness import evaluate
from backfills_app.services import retry_failed
from backfills_app.services.partitions.skipped_partitions import skips_of
from slicewise import Offset, Overlap, PartitionByInterval, PartitionByProduct, PartitionBySequence
from slicewise.partitions.rows import partition_rows
from tests.attempts import begun, publish
from tests.backfills.driven_backfills import ask, drive, following, outcomes, plan_of
from tests.factories import asset
from tests.partition_records import made
from tests.scheduling.scheduled_assets import at, by

pytestmark = pytest.mark.django_db
WORKDAYS = PartitionByInterval(
    "@daily", start="2024-01-08", end="2024-04-01", exclude=["0 0 * * 6,0", "0 0 29 3 *"]
)
MONTHLY = PartitionByInterval("@monthly")
DAILY = PartitionByInterval("@daily")
NORTH, BOTH = (PartitionBySequence(segments) for segments in (["north"], ["north", "south"]))
SELECTION = "2024-01-01..2024-03-01"
NOW = at(2024, 5, 1)


def _ready(downstream: Asset, selection: str) -> set[str]:
    """Return the partitions that the schedule would release."""
    edges = list(
        AssetDependency.objects.filter(downstream=downstream).select_related(
            "upstream__partition_definition", "downstream__partition_definition"
        )
    )
    assert downstream.definition is not None
    rows = list(partition_rows(downstream.definition, downstream.definition.select(selection)))
    evaluations = evaluate(Target(downstream), edges, rows, made=None, now=NOW)
    return {evaluation.row.key for evaluation in evaluations if evaluation.is_ready}


def _ready_by_hand(downstream: Asset, selection: str) -> set[str]:
    """Return the partitions whose run by hand could read all its inputs."""
    assert downstream.definition is not None
    assert downstream.producer is not None
    run = Run(asset=downstream, producer_version=downstream.producer.current_version)
    ready = set()
    for key in downstream.definition.select(selection):
        (read,) = read_inputs(run, [str(key)])
        if not read.missing and not read.nonexistent:
            ready.add(str(key))
    return ready


IGNORED: dict[str, Any] = {"nonexistent": "ignore"}
CASES: list[tuple[Any, Any, Any, str, set[str]]] = [
    # January begins before the upstream does.
    (WORKDAYS, MONTHLY, None, SELECTION, {"2024-02-01", "2024-03-01"}),
    (WORKDAYS, MONTHLY, Overlap(), SELECTION, {"2024-02-01", "2024-03-01"}),
    (WORKDAYS, MONTHLY, Overlap(**IGNORED), SELECTION, {
        "2024-01-01", "2024-02-01", "2024-03-01",
    }),
    (WORKDAYS, MONTHLY, Offset(-1, 0), SELECTION, {"2024-03-01"}),
    (WORKDAYS, MONTHLY, Offset(-1, 0, **IGNORED), SELECTION, {
        "2024-01-01", "2024-02-01", "2024-03-01",
    }),
    # 6 and 7 January are excluded, whatever the start is; 5 January is before the start.
    (WORKDAYS, DAILY, None, "2024-01-05..2024-01-09", {
        "2024-01-06", "2024-01-07", "2024-01-08", "2024-01-09",
    }),
    (
        PartitionByProduct({"day": WORKDAYS, "shop": NORTH}),
        PartitionByProduct({"month": MONTHLY, "shop": BOTH}),
        None,
        "month=2024-01..2024-03 shop=*",
        {"2024-02-01|north", "2024-03-01|north"},
    ),
    # Of an excluded day no shop is needed.
    (
        PartitionByProduct({"day": WORKDAYS, "shop": NORTH}),
        PartitionByProduct({"day": DAILY, "shop": BOTH}),
        None,
        "day=2024-01-12..2024-01-13 shop=*",
        {"2024-01-12|north", "2024-01-13|north", "2024-01-13|south"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("upstream", "downstream", "mapping", "selection", "ready"), CASES)
def test_hand_schedule_preview_and_backfill_say_the_same(
    upstream: slicewise.PartitionDefinition,
    downstream: slicewise.PartitionDefinition,
    mapping: slicewise.PartitionMapping | None,
    selection: str,
    ready: set[str],
    alice: User,
    worker: Gateway,
) -> None:
    load = asset("load", upstream)
    made(load, _all(upstream))
    follower = following("follower", downstream, of={"load": mapping}, schedule=by("load"))
    follower.schedule = by("load")
    assert _ready(follower, selection) == ready
    assert _ready_by_hand(follower, selection) == ready
    total = len(downstream.select(selection))
    planned = plan_of(alice, "follower", selection=selection)["follower"]
    assert (planned.to_materialize, planned.upstream_nonexistent) == (
        len(ready),
        total - len(ready),
    )
    backfill = ask(alice, "follower", selection=selection)
    drive(worker)
    skipped = {"upstream_nonexistent": total - len(ready)} if total > len(ready) else {}
    assert outcomes(backfill, "follower") == {"succeeded": len(ready)} | skipped
    made_keys = AssetPartition.objects.materialized_of(follower).values_list("key", flat=True)
    assert set(made_keys) == ready


def _all(upstream: slicewise.PartitionDefinition) -> str:
    days = "2024-01-08..2024-03-28"
    return f"day={days} shop=*" if isinstance(upstream, PartitionByProduct) else days


def test_counts_are_of_partitions_with_the_first_and_the_last(
    alice: User, gateway: Gateway
) -> None:
    load = asset("load", WORKDAYS)
    publish(begun(load, alice, gateway, "2024-01-08..2024-01-31", strategy="range"))
    following("month", MONTHLY, of={"load": None}, schedule=by("load"))
    (upstream_gap,) = plan_of(alice, "month", selection="2024-01")["month"].upstream_gaps
    assert (upstream_gap.text, upstream_gap.excluded) == (
        "5 do not exist: 2024-01-01 to 2024-01-05",
        8,
    )
    out = StringIO()
    call_command("backfill", "preview", "month", "2024-01-01", "2024-01-01", stdout=out)
    assert "month needs load, 5 do not exist: 2024-01-01 to 2024-01-05" in out.getvalue()
    assert "month does without 8 excluded partitions of load" in out.getvalue()


def test_a_retry_materializes_partitions_once_their_nonexistent_upstream_is_ignored(
    alice: User, gateway: Gateway, worker: Gateway
) -> None:
    load = asset("load", WORKDAYS)
    publish(begun(load, alice, gateway, "2024-01-08..2024-01-31", strategy="range"))
    following("month", MONTHLY, of={"load": None})
    backfill = ask(alice, "month", selection="2024-01")
    drive(worker)
    assert outcomes(backfill, "month") == {"upstream_nonexistent": 1}
    load.partition_definition = _row(
        PartitionByInterval("@daily", start="2024-01-08", end="2024-04-01", exclude=_EXCLUDED)
    )
    load.save()
    assert plan_of(alice, "month", selection="2024-01")["month"].to_materialize == 1
    retry_failed(backfill, code="newest", user=alice)
    drive(worker)
    assert outcomes(backfill, "month") == {"succeeded": 1}


_EXCLUDED = ["0 0 * * 6,0", "0 0 1-5 1 *"]


def _row(definition: slicewise.PartitionDefinition) -> Any:
    from partitions_app.models import PartitionDefinition

    return PartitionDefinition.of(definition.to_json())


def test_a_backfill_and_the_page_of_a_partition_name_what_does_not_exist(
    alice: User, gateway: Gateway, worker: Gateway, client: Client
) -> None:
    load = asset("load", WORKDAYS)
    publish(begun(load, alice, gateway, "2024-01-08..2024-01-31", strategy="range"))
    following("month", MONTHLY, of={"load": None}, schedule=by("load"))
    backfill = ask(alice, "month", selection="2023-12..2024-01")
    drive(worker)
    reason = "load, 26 do not exist: 2023-12-01 to 2024-01-05"
    (skip,) = skips_of(backfill)
    assert (skip.number, [upstream_gap.reason for upstream_gap in skip.upstream_gaps]) == (
        2,
        [reason],
    )
    client.force_login(alice)
    (skip_row,) = client.get(f"/api/v1/backfills/{backfill.pk}/outcome/").json()["skipped"]
    (upstream_gap,) = skip_row["upstream_gaps"]
    assert (upstream_gap["nonexistent"]["first"], upstream_gap["excluded"]) == ("2023-12-01", 18)
    out = StringIO()
    call_command("backfill", "show", str(backfill.pk), stdout=out)
    assert reason in out.getvalue()
    page = client.get(f"/backfills/{backfill.pk}/").content.decode()
    assert f"needs {reason}; 18 excluded partitions of load, not needed" in page
    page = client.get("/assets/month/partitions/2024-01-01/").content.decode()
    assert "load, 5 do not exist: 2024-01-01 to 2024-01-05" in page
    assert "8 excluded partitions of load, not needed" in page
    page = client.get("/assets/month/partitions/2024-02-01/").content.decode()
    assert "do not exist" not in page


def test_partitions_with_a_missing_upstream_keep_their_reason(alice: User, worker: Gateway) -> None:
    asset("load", WORKDAYS)
    following("follower", WORKDAYS, of={"load": None})
    backfill = ask(alice, "follower", selection="2024-01-08..2024-01-09")
    drive(worker)
    (skip,) = skips_of(backfill)
    assert (skip.reason, skip.number, skip.upstream_gaps) == ("upstream_missing", 2, ())
