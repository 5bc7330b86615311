"""Two backfills that want the same partitions at the same moment."""

import re
import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts_app.models import User
from assets_app.execution.queue.withdrawing import untried_runs_of, withdraw_runs
from assets_app.models import AssetPartition, Run
from backfills_app.models import Backfill, BackfillAsset, BackfillPartition
from backfills_app.services import pause_backfill
from backfills_app.services.advance import admission
from backfills_app.services.advance.admission import admit
from backfills_app.services.advance.expansion import expand
from backfills_app.services.partitions.decisions import BatchDecision, decide
from tests.backfills.driven_backfills import counts_of, start
from tests.factories import DAILY_2013, asset
from tests.threads import elsewhere


def written(alice: User, **more: Any) -> Backfill:
    """Create a backfill of two days, and expand it."""
    backfill = start(alice, end="2013-01-02", **more)
    expand(backfill.pk)
    return backfill


@pytest.mark.parametrize("strategy", ["partition", "range"])
def test_partitions_withdrawn_between_decision_and_record_are_not_skipped(
    alice: User, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    asset("raw_flights", DAILY_2013)
    holder, backfill = written(alice), written(alice, strategy=strategy)
    admit(holder.pk)
    decisions: list[BatchDecision] = []

    def decide_and_pause(*arguments: Any) -> BatchDecision:
        decisions.append(decide(*arguments))
        if len(decisions) == 1:
            pause_backfill(holder, user=alice)
        return decisions[-1]

    monkeypatch.setattr(admission, "decide", decide_and_pause)
    admit(backfill.pk)
    assert not BackfillPartition.objects.filter(state="skipped").exists()
    admit(backfill.pk)
    # Each admission decided once.
    assert len(decisions) == 2
    assert counts_of(backfill) == {"active": 2}
    assert set(Run.objects.values_list("group", flat=True)) == {backfill.group_id}


def test_a_withdrawal_changes_counts_in_the_order_in_which_the_end_of_runs_does(
    alice: User,
) -> None:
    asset("raw_flights", DAILY_2013)
    holder, backfill = written(alice), start(alice, end="2013-01-03")
    expand(backfill.pk)
    admit(holder.pk)
    admit(backfill.pk)
    assert counts_of(backfill) == {"active": 1, "skipped": 2}
    with CaptureQueriesContext(connection) as statements:
        pause_backfill(holder, user=alice)
    assert (counts_of(holder), counts_of(backfill)) == ({"waiting": 2}, {"active": 1, "waiting": 2})
    shifted = re.findall(
        r'UPDATE "backfills_app_backfillasset" .* WHERE .*"id" = (\d+)',
        "\n".join(statement["sql"] for statement in statements),
    )
    asset_rows = BackfillAsset.objects.order_by("pk").values_list("pk", flat=True)
    assert shifted == [str(pk) for pk in asset_rows]


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_just_being_withdrawn_is_not_waited_for(alice: User) -> None:
    asset("raw_flights", DAILY_2013)
    holder, backfill = written(alice), written(alice)
    admit(holder.pk)
    is_held, may_go = threading.Event(), threading.Event()

    def withdraw() -> None:
        with transaction.atomic():
            runs = untried_runs_of(holder.group, 1000)
            BackfillPartition.objects.filter(run__in=runs).update(state="waiting", run=None)
            is_held.set()
            may_go.wait(120)
            withdraw_runs(runs)

    thread = elsewhere(withdraw)
    assert is_held.wait(120)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '60s'")
            admit(backfill.pk)
        assert counts_of(backfill) == {"waiting": 2}
    finally:
        may_go.set()
        thread.join()
    admit(backfill.pk)
    assert counts_of(backfill) == {"active": 2}
    holders = AssetPartition.objects.values_list("held_by__group", flat=True)
    assert set(holders) == {backfill.group_id}
