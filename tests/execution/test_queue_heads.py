"""The heads of the queues: that dispatch takes the runs that the rules name, and that no change of
runs, groups or producers is missed.
"""

import random
import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from assets_app.execution.queue import dispatch as dispatching
from assets_app.execution.queue import queue_heads
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.queue.queue_heads import check_heads, refresh_heads
from assets_app.execution.queue.transitions import move_all
from assets_app.models import (
    Asset,
    Gateway,
    GroupKind,
    ProducerVersion,
    Queue,
    QueueChange,
    QueueHead,
    Run,
    RunGroup,
    RunState,
    Trigger,
)
from tests.execution.conftest import make_gateway
from tests.execution.dispatch_order import expected_order
from tests.factories import asset
from tests.query_plans import rows_read
from tests.queued_runs import add_runs, queue_runs
from tests.threads import elsewhere

NOW = datetime(2024, 7, 1, 12, tzinfo=timezone.get_default_timezone())
_ENDED = {"state": RunState.CANCELED, "ended_at": NOW}


class Scene:
    """Random assets, groups and runs, with random changes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        count = self.random.choice([3, 5, 10])
        self.assets = [asset(f"asset_{number}") for number in range(count)]
        self.versions = [
            version for queued_asset in self.assets for version in self._versions(queued_asset)
        ]
        self.groups = RunGroup.objects.bulk_create(
            RunGroup(
                kind=GroupKind.REQUEST,
                queue=self.random.choice(Queue.values),
                priority=self.random.choice([0, 0, 0, 1, -1]),
                max_active_runs=self.random.choice([None, None, 1, 2, 4]),
                paused=self.random.random() < 0.1,
            )
            for _ in range(self.random.choice([1, 3, 6]))
        )
        self.add_runs(self.random.randint(1, 40))
        self.change_runs(RunState.QUEUED, 0.15, state=RunState.DISPATCHED)
        self.change_runs(RunState.DISPATCHED, 0.5, state=RunState.RUNNING)

    def _versions(self, of: Asset) -> list[ProducerVersion]:
        """Create an older version beside the version in force, and return both."""
        assert of.producer
        assert of.producer.current_version
        versions = [of.producer.current_version]
        older = ProducerVersion.objects.get(pk=versions[0].pk)
        older.pk, older.digest = None, f"{of.pk:064}"
        versions.append(older)
        for version in versions:
            version.definition = {
                **version.definition,
                "priority": self.random.choice([0, 0, 0, 2]),
                "max_active_runs": self.random.choice([None, None, None, 1, 3]),
                "engine": self.random.choice(["connect", "connect", "submit"]),
            }
            version.save()
        return versions

    def add_runs(self, number: int) -> None:
        Run.objects.bulk_create(
            Run(
                group=group,
                producer_version=self.random.choice(self.versions),
                asset=self.assets[0],
                trigger=Trigger.MANUAL,
                queue=group.queue,
                partition_count=1,
                not_before=self.random.choice([None] * 6 + [self._moment()]),
            )
            for group in self.random.choices(self.groups, k=number)
        )

    def change_runs(self, old: RunState, share: float, **fields: Any) -> None:
        run_ids = Run.objects.filter(state=old).values_list("pk", flat=True)
        chosen = [run_id for run_id in run_ids if self.random.random() < share]
        Run.objects.filter(pk__in=chosen).update(**fields)

    def change(self) -> None:
        """Act once as people, workers and backfills do."""
        self.random.choice(
            (
                lambda: self.add_runs(self.random.randint(1, 5)),
                lambda: self.change_runs(RunState.QUEUED, 0.3, **_ENDED),
                lambda: self.change_runs(
                    RunState.CANCELED, 0.5, state=RunState.QUEUED, ended_at=None, not_before=None
                ),
                lambda: self.change_runs(
                    RunState.DISPATCHED, 0.5, state=RunState.QUEUED, not_before=self._moment()
                ),
                lambda: self.change_runs(RunState.QUEUED, 0.2, state=RunState.DISPATCHED),
                lambda: self.change_runs(
                    RunState.QUEUED, 0.1, producer_version=self.random.choice(self.versions)
                ),
                self._delete_runs,
                self._change_group,
                self._change_version,
            )
        )()

    def _delete_runs(self) -> None:
        first = Run.objects.filter(state=RunState.QUEUED).order_by("pk")[:2]
        Run.objects.filter(pk__in=[run.pk for run in first]).delete()

    def _change_group(self) -> None:
        field, values = self.random.choice(
            (
                ("priority", (0, 1, 5)),
                ("paused", (False, False, True)),
                ("max_active_runs", (None, 1, 3)),
            )
        )
        group = RunGroup.objects.filter(pk=self.random.choice(self.groups).pk)
        group.update(**{field: self.random.choice(values)})

    def _change_version(self) -> None:
        version = self.random.choice(self.versions)
        version.producer.current_version = version
        version.producer.save()

    def _moment(self) -> datetime:
        return NOW + timedelta(minutes=self.random.choice([-1, 1]))

    def check(self) -> None:
        """Compare the choice of dispatch with the choice of the rules."""
        for name in Queue.values:
            free, has_spark = self.random.randint(1, 8), self.random.random() < 0.8
            locked = {group.pk for group in self.groups if self.random.random() < 0.05}
            order = expected_order(name, NOW, has_spark=has_spark, locked_groups=locked)
            refresh_heads(NOW)
            chosen = dispatching._choose(name, free, locked, has_spark=has_spark)
            assert [run_id for run_id, _ in chosen] == order[:free]


@pytest.mark.parametrize("seed", range(40))
def test_the_runs_that_are_chosen_are_those_that_the_rules_name(db: None, seed: int) -> None:
    scene = Scene(seed)
    scene.check()
    for _ in range(5):
        for _ in range(scene.random.randint(1, 3)):
            scene.change()
        scene.check()
    assert check_heads() == 0


def test_without_spark_only_runs_with_a_spark_of_their_own_are_sent(db: None) -> None:
    for name in ("first", "second"):
        make_gateway("scheduled", name=name, slots=2)
    needing, own = queue_runs(asset("needing"), 1), queue_runs(asset("own"), 1)
    version = own.runs.get().producer_version
    version.definition |= {"engine": "submit"}
    version.save()
    Gateway.objects.update(spark_away_since=timezone.now())
    assert dispatch() == 1
    assert own.runs.get().state == RunState.DISPATCHED
    Gateway.objects.filter(name="second").update(spark_away_since=None)
    assert dispatch() == 1
    assert needing.runs.get().state == RunState.DISPATCHED


def head_runs() -> list[int]:
    refresh_heads(timezone.now())
    return list(QueueHead.objects.order_by("run_id").values_list("run_id", flat=True))


def test_a_head_that_is_missing_or_wrong_is_mended(gateway: Gateway) -> None:
    groups = [queue_runs(asset(name), 3) for name in ("one", "two", "three")]
    right = head_runs()
    assert len(right) == 3
    QueueHead.objects.filter(group=groups[0]).delete()
    QueueHead.objects.filter(group=groups[1]).update(run=right[1] + 2)
    QueueHead.objects.filter(group=groups[2]).update(paused=True)
    assert head_runs() == [right[1] + 2, right[2]]
    assert check_heads() == 3
    assert head_runs() == right
    assert not QueueHead.objects.filter(paused=True).exists()
    assert check_heads() == 0


def test_a_head_whose_runs_are_gone_goes_too(gateway: Gateway) -> None:
    group = queue_runs(asset("one"), 3)
    assert len(head_runs()) == 1
    Run.objects.filter(group=group).delete()
    assert head_runs() == []


def test_a_delayed_run_is_ready_once_its_time_has_come(gateway: Gateway) -> None:
    group = queue_runs(asset("one"), 2)
    first, second = group.runs.order_by("pk")
    now = timezone.now()
    Run.objects.filter(pk=first.pk).update(not_before=now + timedelta(minutes=1))
    assert head_runs() == [second.pk]
    refresh_heads(now + timedelta(minutes=2))
    assert head_runs() == [first.pk]


def test_a_change_of_many_runs_is_noted_once(gateway: Gateway) -> None:
    group, second_asset = queue_runs(asset("one"), 1), asset("two")
    refresh_heads(timezone.now())
    add_runs(group, second_asset, 500)
    assert QueueChange.objects.count() == 1
    run_ids = list(group.runs.values_list("pk", flat=True))
    move_all(run_ids, RunState.QUEUED, RunState.CANCELED, ended_at=timezone.now())
    assert QueueChange.objects.count() == 3
    assert head_runs() == []
    assert not QueueChange.objects.exists()


def test_changes_that_do_not_concern_the_queue_are_not_noted(gateway: Gateway) -> None:
    group = queue_runs(asset("one"), 1)
    assert dispatch() == 1
    refresh_heads(timezone.now())
    for state in (RunState.RUNNING, RunState.PUBLISHING):
        group.runs.update(state=state)
    group.runs.update(state=RunState.SUCCEEDED, ended_at=timezone.now())
    group.save()
    group.runs.get().producer_version.producer.save()
    assert not QueueChange.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_who_queues_runs_and_who_sends_them_wait_for_no_lock_of_each_other() -> None:
    make_gateway("scheduled", slots=1)
    flights = asset("raw_flights")
    group = queue_runs(flights, 1)
    is_queued, may_go = threading.Event(), threading.Event()

    def queue_more() -> None:
        with transaction.atomic():
            add_runs(group, flights, 50)
            is_queued.set()
            may_go.wait(120)

    thread = elsewhere(queue_more)
    assert is_queued.wait(120)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '60s'")
        add_runs(group, flights, 1)
        assert dispatch() == 2
        # Nothing is left of the group that is committed.
        assert head_runs() == []
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = 0")
        may_go.set()
        thread.join()
    # It was queued before others that have been sent since.
    assert head_runs() == [group.runs.filter(state=RunState.QUEUED).earliest("pk").pk]


def test_a_choice_reads_the_heads_and_no_more_runs_than_slots_need(gateway: Gateway) -> None:
    for number in range(60):
        queue_runs(asset(f"asset_{number}"), 50)
    refresh_heads(timezone.now())
    values = {"queue": "scheduled", "free": 4, "locked": [], "spark": True}
    read = rows_read(dispatching._CHOOSE, values)
    # The heads, four runs of each of four producers, and no active run.
    assert read <= 60 + 4 * 4


def test_a_refresh_reads_what_has_changed(gateway: Gateway) -> None:
    groups = [queue_runs(asset(f"asset_{number}"), 50) for number in range(60)]
    refresh_heads(timezone.now())
    groups[0].runs.filter(pk__in=list(groups[0].runs.values_list("pk", flat=True)[:10])).update(
        **_ENDED
    )
    # The change, its head and run, and the head's four rows; small tables are read as a whole.
    assert rows_read(queue_heads._REFRESH) <= 5 * 60 + 20
