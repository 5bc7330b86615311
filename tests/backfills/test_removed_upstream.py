"""Upstream definitions that lose or gain partitions while a backfill is on its way.

A run needs the partitions of the frozen definitions; a retry with the newest code goes by the
definitions in force.
"""

from datetime import date
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

import slicewise
from accounts_app.models import AuditEntry, User
from assets_app.execution.request.retrying import retry_runs
from assets_app.execution.request.runtime_partitions import remove_partitions
from assets_app.models import Asset, AssetPartition, FrozenUpstream, Gateway, Run
from backfills_app.models import Backfill
from backfills_app.services import clone_backfill, retry_failed
from backfills_app.services.advance import admission
from backfills_app.services.advance.expansion import expand
from backfills_app.services.partitions.decisions import BatchDecision, decide
from backfills_app.services.partitions.skipped_partitions import skips_of
from backfills_app.services.partitions.stored import StoredScope
from partitions_app.models import PartitionDefinition, RuntimePartition
from tests.backfills.driven_backfills import (
    ask,
    drive,
    failing_keys,
    following,
    lacking_input,
    outcomes,
    plan_of,
    redefine,
    state_of,
)
from tests.factories import asset
from tests.partition_records import made
from tests.runtime_keys import find_keys

# Two whole weeks, which begin on Sundays.
DAYS, SECOND_WEEK = "2024-03-24..2024-04-06", "2024-03-31..2024-04-06"
DAILY = slicewise.PartitionByInterval("@daily", start="2024-03-24", end="2024-04-07")
HOURLY = slicewise.PartitionByInterval("@hourly", start="2024-03-24", end="2024-04-07")
WEEKLY = slicewise.PartitionByInterval("@weekly", start="2024-03-24", end="2024-04-07")
CLOSED = date(2024, 4, 1)
WITHOUT_CLOSED = slicewise.PartitionByInterval(
    "@daily", start="2024-03-24", end="2024-04-07", exclude=[CLOSED]
)
AT_RUNTIME = slicewise.PartitionAtRuntime("shop")


def by_shop(*shops: str) -> slicewise.PartitionByProduct:
    """Define days by shops."""
    sequence = slicewise.PartitionBySequence(list(shops), name="shop")
    return slicewise.PartitionByProduct({"day": DAILY, "shop": sequence})


BEFORE, AFTER = by_shop("mitte", "nord", "wedding"), by_shop("mitte", "nord")


def shop_of_assets() -> Asset:
    """Create receipts by day, takings by day and shop, and takings of each week; return the
    takings.
    """
    asset("receipts", DAILY)
    takings = following("takings", BEFORE, of={"receipts": None})
    following("weekly_takings", WEEKLY, of={"takings": None})
    return takings


def asked_before_the_removal(alice: User) -> Backfill:
    """Create a backfill of all these assets, expanded before one of the shops is removed."""
    backfill = ask(alice, "receipts", selection=DAYS, downstream="all")
    expand(backfill.pk)
    redefine("takings", AFTER)
    return backfill


def materialized(of: Asset, selection: str) -> None:
    """Put partitions on record as materialized."""
    made(of, selection)
    AssetPartition.objects.filter(asset=of).update(state="materialized")


def test_a_retry_with_the_newest_code_materializes_partitions_that_needed_a_removed_segment(
    alice: User, worker: Gateway
) -> None:
    takings = shop_of_assets()
    following("trend", WEEKLY, of={"weekly_takings": None})
    materialized(takings, "day=2024-03-24..2024-03-30 shop=wedding")
    backfill = asked_before_the_removal(alice)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "takings") == {"succeeded": 28, "exists": 7, "no_such_partition": 7}
    # Of the first week all is there that the frozen definition names.
    assert outcomes(backfill, "weekly_takings") == {"succeeded": 1, "upstream_nonexistent": 1}
    assert outcomes(backfill, "trend") == {"succeeded": 1, "upstream_missing": 1}
    assert state_of(backfill) == "partially_failed"
    retry_failed(backfill, user=alice)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "weekly_takings") == {"succeeded": 1, "upstream_nonexistent": 1}
    retry_failed(backfill, code="newest", user=alice)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "takings") == {"succeeded": 28, "exists": 7, "no_such_partition": 7}
    assert outcomes(backfill, "weekly_takings") == {"succeeded": 2}
    assert outcomes(backfill, "trend") == {"succeeded": 2}


def test_partitions_retried_with_the_newest_code_wait_for_their_upstream_partitions(
    alice: User, worker: Gateway
) -> None:
    shop_of_assets()
    backfill = asked_before_the_removal(alice)
    drive(worker, failing=failing_keys("2024-03-25|nord", "2024-04-02|mitte"))
    assert outcomes(backfill, "takings") == {
        "succeeded": 26, "failed": 2, "no_such_partition": 14,
    }  # fmt: skip
    retry_failed(backfill, code="newest", user=alice)
    before = Run.objects.count()
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "takings") == {"succeeded": 28, "no_such_partition": 14}
    assert outcomes(backfill, "weekly_takings") == {"succeeded": 2}
    names = Run.objects.order_by("pk")[before:].values_list("asset__name", flat=True)
    assert list(names) == ["takings", "takings", "weekly_takings", "weekly_takings"]


def test_it_is_so_where_the_upstream_asset_is_not_of_the_backfill(
    alice: User, worker: Gateway
) -> None:
    takings = shop_of_assets()
    made(takings, f"day={DAYS} shop=mitte,nord")
    backfill = ask(alice, "weekly_takings", selection="2024-03-24..2024-03-31")
    redefine("takings", AFTER)
    drive(worker)
    assert outcomes(backfill, "weekly_takings") == {"upstream_nonexistent": 2}
    retry_failed(backfill, code="newest", user=alice)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "weekly_takings") == {"succeeded": 2}


def test_it_is_so_of_all_that_one_function_makes(alice: User, worker: Gateway) -> None:
    asset("receipts", DAILY)
    following("tills", BEFORE, of={"receipts": None}, outlets=["takings", "refunds"])
    following("weekly_refunds", WEEKLY, of={"refunds": None})
    backfill = ask(alice, "receipts", selection=DAYS, downstream="all")
    expand(backfill.pk)
    redefine("tills", AFTER)
    drive(worker)
    assert outcomes(backfill, "weekly_refunds") == {"upstream_nonexistent": 2}
    retry_failed(backfill, code="newest", user=alice)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "weekly_refunds") == {"succeeded": 2}


def test_a_window_that_is_excluded_meanwhile_does_not_exist_any_more(
    alice: User, worker: Gateway
) -> None:
    asset("receipts", DAILY)
    following("weekly_receipts", WEEKLY, of={"receipts": None})
    backfill = ask(alice, "receipts", selection=DAYS, downstream="all")
    expand(backfill.pk)
    redefine("receipts", WITHOUT_CLOSED)
    drive(worker)
    assert outcomes(backfill, "receipts") == {"succeeded": 13, "no_such_partition": 1}
    assert outcomes(backfill, "weekly_receipts") == {"succeeded": 1, "upstream_nonexistent": 1}
    (upstream_gap,) = skips_of(backfill)[-1].upstream_gaps
    assert upstream_gap.reason == "receipts, 1 does not exist any more: 2024-04-01"
    retry_failed(backfill, code="newest", user=alice)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "weekly_receipts") == {"succeeded": 2}


@pytest.mark.parametrize(
    ("code", "of_weeks"),
    [("same", {"succeeded": 2}), ("newest", {"succeeded": 1, "upstream_missing": 1})],
)
def test_a_segment_that_was_added_is_needed_with_the_newest_code_only(
    code: str, of_weeks: dict[str, int], alice: User, worker: Gateway
) -> None:
    shop_of_assets()
    backfill = ask(alice, "receipts", selection=DAYS, downstream="all")
    drive(worker, failing=failing_keys("2024-03-31"))
    redefine("takings", by_shop("mitte", "nord", "wedding", "moabit"))
    retry_failed(backfill, code=code, user=alice)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "weekly_takings") == of_weeks
    # The backfill has no partitions of the new shop, another request has.
    clone = clone_backfill(backfill, {"existing": "all"}, user=alice)
    drive(worker, failing=lacking_input)
    assert outcomes(clone, "takings") == {"succeeded": 56}
    assert outcomes(clone, "weekly_takings") == {"succeeded": 2}


def test_an_upstream_asset_partitioned_differently_is_read_by_the_current_definition(
    alice: User, worker: Gateway
) -> None:
    receipts = asset("receipts", DAILY)
    following("weekly_receipts", WEEKLY, of={"receipts": None})
    backfill = ask(alice, "receipts", selection=DAYS, downstream="all")
    expand(backfill.pk)
    redefine("receipts", HOURLY)
    drive(worker)
    assert outcomes(backfill, "receipts") == {"no_such_partition": 14}
    assert outcomes(backfill, "weekly_receipts") == {"upstream_nonexistent": 2}
    receipts.refresh_from_db()
    made(receipts, SECOND_WEEK)
    # Nothing of the receipts themselves is made again.
    retry_failed(backfill, code="newest", user=alice)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "receipts") == {"no_such_partition": 14}
    assert outcomes(backfill, "weekly_receipts") == {"succeeded": 1, "upstream_missing": 1}
    detail = AuditEntry.objects.filter(action="retry failed").latest("pk").detail
    assert "versions" not in detail or "receipts" not in detail["versions"]


def test_a_newly_partitioned_upstream_asset_is_nonexistent_for_the_backfill(
    alice: User, worker: Gateway
) -> None:
    rates = asset("rates")
    following("receipts", DAILY, of={"rates": None})
    backfill = ask(alice, "receipts", selection=DAYS)
    redefine("rates", DAILY)
    drive(worker)
    assert outcomes(backfill, "receipts") == {"upstream_nonexistent": 14}
    (upstream_gap,) = skips_of(backfill)[-1].upstream_gaps
    assert upstream_gap.reason == "rates, 1 does not exist any more"
    rates.refresh_from_db()
    made(rates, SECOND_WEEK)
    retry_failed(backfill, code="newest", user=alice)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "receipts") == {"succeeded": 7, "upstream_missing": 7}


def test_of_a_set_found_at_run_time_the_keys_are_needed_that_there_are(
    alice: User, worker: Gateway
) -> None:
    asset("receipts", DAILY)
    find_keys(AT_RUNTIME, "mitte", "wedding")
    following("shops", AT_RUNTIME, of={"receipts": None})
    following("prices", DAILY, of={"shops": None})
    backfill = ask(alice, "receipts", selection=DAYS, downstream="all")
    expand(backfill.pk)
    RuntimePartition.objects.filter(key="wedding").update(removed_at=timezone.now())
    PartitionDefinition.of(AT_RUNTIME.to_json()).revise()
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "shops") == {"succeeded": 1, "no_such_partition": 1}
    assert outcomes(backfill, "prices") == {"succeeded": 14}


def test_a_key_removed_between_decision_and_claim_gets_no_run(
    alice: User, worker: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset("receipts", DAILY)
    find_keys(AT_RUNTIME, "mitte", "wedding")
    following("shops", AT_RUNTIME, of={"receipts": None})
    backfill = ask(alice, "receipts", selection=DAYS, downstream="all")

    def decide_and_remove(backfill: Backfill, scope: StoredScope, *arguments: Any) -> BatchDecision:
        decision = decide(backfill, scope, *arguments)
        if scope.asset.name == "shops":
            RuntimePartition.objects.filter(key="wedding").update(removed_at=timezone.now())
            PartitionDefinition.of(AT_RUNTIME.to_json()).revise()
        return decision

    monkeypatch.setattr(admission, "decide", decide_and_remove)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "shops") == {"succeeded": 1, "no_such_partition": 1}
    assert state_of(backfill) == "partially_failed"


def test_no_retry_of_runs_or_of_the_backfill_materializes_a_removed_key(
    alice: User, worker: Gateway
) -> None:
    asset("receipts", DAILY)
    find_keys(AT_RUNTIME, "mitte", "wedding")
    shops = following("shops", AT_RUNTIME, of={"receipts": None})
    backfill = ask(alice, "receipts", selection=DAYS, downstream="all")
    drive(worker, failing=failing_keys("mitte", "wedding"))
    remove_partitions(shops, ["wedding"], user=alice)
    of_mitte, of_wedding = (
        Run.objects.get(partitions__partition__key=key) for key in ("mitte", "wedding")
    )
    retried = retry_runs([of_mitte.pk, of_wedding.pk], user=alice)
    assert retried.runs == [of_mitte.pk]
    assert retried.refused == {
        of_wedding.pk: f"Run {of_wedding.pk} cannot be retried:"
        " shops has no partition wedding any more."
    }
    retry_failed(backfill, user=alice)
    drive(worker)
    assert outcomes(backfill, "shops") == {"succeeded": 1, "no_such_partition": 1}


def test_a_backfill_that_has_no_frozen_definitions_goes_by_its_own(
    alice: User, worker: Gateway
) -> None:
    shop_of_assets()
    backfill = asked_before_the_removal(alice)
    FrozenUpstream.objects.all().delete()
    drive(worker)
    assert outcomes(backfill, "weekly_takings") == {"upstream_nonexistent": 2}
    retry_failed(backfill, code="newest", user=alice)
    drive(worker, failing=lacking_input)
    assert outcomes(backfill, "weekly_takings") == {"succeeded": 2}


def test_page_api_and_command_line_say_what_is_gone_and_what_helps(
    alice: User, worker: Gateway, client: Client
) -> None:
    shop_of_assets()
    backfill = asked_before_the_removal(alice)
    drive(worker)
    reason = "takings, 14 do not exist any more: 2024-03-24|wedding to 2024-04-06|wedding"
    hint = (
        "Partition definition changed since: takings."
        " A retry with the latest code uses the new definition."
    )
    client.force_login(alice)
    skips = client.get(f"/api/v1/backfills/{backfill.pk}/outcome/").json()["skipped"]
    (weeks,) = [skip for skip in skips if skip["upstream_gaps"]]
    (upstream_gap,) = weeks["upstream_gaps"]
    assert (upstream_gap["reason"], weeks["hint"]) == (reason, hint)
    assert upstream_gap["removed"] == {
        "partitions": 14, "first": "2024-03-24|wedding", "last": "2024-04-06|wedding",
    }  # fmt: skip
    assert upstream_gap["nonexistent"] is None
    page = client.get(f"/backfills/{backfill.pk}/").content.decode()
    assert f"needs {reason}" in page
    assert hint in page
    out = StringIO()
    call_command("backfill", "show", str(backfill.pk), stdout=out)
    assert reason in out.getvalue()
    assert hint in out.getvalue()


def test_the_preview_says_what_another_request_would_make(alice: User, worker: Gateway) -> None:
    shop_of_assets()
    asked_before_the_removal(alice)
    drive(worker)
    planned = plan_of(alice, "weekly_takings", selection="2024-03-24..2024-03-31")
    takings_plan = planned["weekly_takings"]
    assert (
        takings_plan.to_materialize,
        takings_plan.upstream_missing,
        takings_plan.upstream_gaps,
    ) == (
        2,
        0,
        (),
    )
