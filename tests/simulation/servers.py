"""The product's own services, driven step by step on a fast clock.

The catalogue is read from a real bundle by the real loader, and everything is written to a real
PostgreSQL. Time is replaced, for the database and this process, and so is the runner: a run ends
when and as `chance` decides.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from unittest.mock import patch
from zoneinfo import ZoneInfo

from django.db import connection
from django.db.models import Q

from accounts_app.models import User
from assets_app.catalogue.pausing import set_paused
from assets_app.catalogue.services import sync_bundle
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.outlets import claimed_outlet_ids
from assets_app.execution.queue.transitions import move_all
from assets_app.execution.queue.waiting import wake_waiting
from assets_app.execution.request.reporting import ReportedWrite, report_write
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import DISCOVERY as DISCOVERY_IDENTITY
from assets_app.models import (
    Asset,
    AssetPartition,
    Gateway,
    Run,
    RunState,
)
from assets_app.scheduling.outbox import process_outbox
from assets_app.scheduling.requeue_due import requeue_due
from assets_app.scheduling.ticking import handle_ticks
from slicewise import PartitionKey
from slicewise.keys.key_json import key_to_json
from slicewise_server.web.request_errors import ConflictingRequest
from tests.factories import outlet_of
from tests.simulation.declarations import DeclaredAsset, definition_file, instant_text
from tests.simulation.drawn_actions import Action, Partition, fate_of, is_made_again
from tests.simulation.entries import Outcome
from tests.simulation.product_records import outcome
from tests.simulation.reference import DISCOVERY

_CLOCK_FUNCTIONS = ("now", "clock_timestamp", "statement_timestamp", "transaction_timestamp")


@contextmanager
def simulated_clock() -> Iterator["Clock"]:
    """Have PostgreSQL and Django tell a time of ours, for as long as the block lasts."""
    clock = Clock()
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA simulated")
        for name in _CLOCK_FUNCTIONS:
            cursor.execute(
                f"CREATE FUNCTION simulated.{name}() RETURNS timestamptz STABLE LANGUAGE sql"
                " AS $$ SELECT current_setting('simulated.now')::timestamptz $$"
            )
        # Named before pg_catalog, the schema's functions are found first.
        cursor.execute("SET search_path = simulated, pg_catalog, public")
    try:
        with patch("django.utils.timezone.now", lambda: clock.now):
            yield clock
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET search_path")
            cursor.execute("DROP SCHEMA simulated CASCADE")


class Clock:
    """The time that the database and this process see."""

    now: datetime

    def set(self, now: datetime) -> None:
        """Move on to an instant."""
        self.now = now
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('simulated.now', %s, false)", [now.isoformat()])


@dataclass
class Servers:
    """A deployment of the product."""

    clock: Clock
    folder: Path
    user: User
    gateway: Gateway
    assets: dict[str, DeclaredAsset] = field(default_factory=dict)
    # Identities in the words of the reference, by asset and by identity in the database.
    _identity_texts: dict[tuple[str, str], str] = field(default_factory=dict)
    _ordinals: dict[tuple[str, tuple[Partition, ...]], int] = field(default_factory=dict)
    _running: list[tuple[datetime, attempts.Attempt, bool, tuple[str, ...]]] = field(
        default_factory=list
    )
    # When failed runs are tried again.
    _retries: list[datetime] = field(default_factory=list)

    def declare(self, assets: Sequence[DeclaredAsset]) -> None:
        """Write a definition file, load the file, and put it in force."""
        self.assets = {declared.name: declared for declared in assets}
        (self.folder / "definitions.py").write_text(definition_file(assets))
        report = sync_bundle("simulated", self.folder)
        assert not report.errors, report.errors[0]
        for asset in Asset.objects.select_related("partition_definition").filter(active=True):
            identity_text = repr(self.assets[asset.name].identity)
            self._identity_texts[asset.name, asset.identity] = identity_text
            if asset.finds_partitions:
                self._identity_texts[asset.name, DISCOVERY_IDENTITY] = identity_text

    def outcome(self) -> Outcome:
        """Return the record of the deployment."""
        return outcome(self._identity_texts)

    def step(self, now: datetime, actions: Sequence[Action]) -> None:
        """Do everything that happens at one instant, in the order in which servers look."""
        self.clock.set(now)
        self._end_runs(now)
        for action in actions:
            self._act(action, now)
        handle_ticks(now)
        while process_outbox(now):
            pass
        while requeue_due(now):
            pass
        wake_waiting(now)
        self._begin(now)

    def is_due(self, now: datetime) -> bool:
        """Return whether a run ends by then, or is tried again."""
        ends = [ends_at for ends_at, *_ in self._running]
        return any(moment <= now for moment in [*ends, *self._retries])

    def _end_runs(self, now: datetime) -> None:
        over = [entry for entry in self._running if entry[0] <= now]
        self._running = [entry for entry in self._running if entry[0] > now]
        for _, attempt, fails, customers in sorted(
            over, key=lambda entry: (entry[0], entry[1].run.pk)
        ):
            if fails:
                assert ending.fail(attempt.row, Failure(error="ValueError: chance"))
                run = Run.objects.get(pk=attempt.run.pk)
                self._retries += [run.not_before] if run.not_before is not None else []
                continue
            staged = [{"key": key, "path": key, "rows": 1, "bytes": 1} for key in attempt.keys]
            outlets = Asset.objects.filter(pk__in=claimed_outlet_ids(attempt.run).values())
            keys = [
                {"set": "customers", "key": key_to_json(PartitionKey.of(customer))}
                for customer in customers
            ]
            if attempt.is_discovering:
                assert attempts.intend_to_publish(attempt.row, [], keys)
            else:
                made = [outlet_of(attempt, staged, of=asset) for asset in outlets]
                assert attempts.intend_to_publish(attempt.row, made)
            assert ending.succeed(attempt.row)

    def _begin(self, now: datetime) -> None:
        ready = Q(not_before=None) | Q(not_before__lte=now)
        queued = list(Run.objects.filter(ready, state=RunState.QUEUED).order_by("id"))
        self._retries = [moment for moment in self._retries if moment > now]
        if not queued:
            return
        move_all([run.pk for run in queued], RunState.QUEUED, RunState.DISPATCHED)
        for run in queued:
            attempt = attempts.begin(run.pk, self.gateway)
            assert attempt is not None
            attempts.take_inputs(attempt)
            partitions = self._partitions_of(attempt)
            key = (run.asset.name, tuple(partitions))
            ordinal = self._ordinals[key] = self._ordinals.get(key, 0) + 1
            fate = fate_of(run.asset.name, partitions, ordinal, now)
            customers = fate.customers if attempt.is_discovering else ()
            self._running.append((fate.ends_at, attempt, fate.fails, customers))

    def _partitions_of(self, attempt: attempts.Attempt) -> list[Partition]:
        if attempt.is_discovering:
            return [DISCOVERY]
        own = attempt.run.partitions.filter(partition__asset=attempt.run.asset_id)
        windows = own.order_by("position").values_list(
            "partition__window_start", "partition__segment"
        )
        return [(start, segment) for start, segment in windows]

    def _act(self, action: Action, now: datetime) -> None:
        if action.kind in ("pause", "unpause"):
            asset = Asset.objects.get(name=action.asset)
            set_paused(asset, action.kind == "pause", user=self.user)
        elif action.kind == "report":
            asset = Asset.objects.get(name=action.asset)
            selection = self._selection(action.asset, action.partition)
            report_write(ReportedWrite(asset=asset, selection=selection), user=self.user)
        elif action.kind == "make":
            self._make(action.asset, action.partition)
        elif action.kind == "retry":
            for name, partition in self._failed(now):
                self._make(name, partition)

    def _make(self, name: str, partition: Partition) -> None:
        asset = Asset.objects.get(name=name)
        request = MaterializeRequest(asset=asset, selection=self._selection(name, partition))
        try:
            materialize(request, user=self.user)
        except ConflictingRequest:
            return  # a run holds it

    def _selection(self, name: str, partition: Partition) -> str:
        """Return the partition as a person would write the partition."""
        declared, (start, segment) = self.assets[name], partition
        if start is None:
            return segment
        if declared.cadence in ("@hourly", "every 6"):
            text = start.astimezone(ZoneInfo(declared.zone)).isoformat(timespec="minutes")
            if declared.zone == "UTC":
                text = instant_text(start)
        else:
            text = f"{start.astimezone(ZoneInfo(declared.zone)):%Y-%m-%d}"
        return f"time={text} segment={segment}" if declared.segments else text

    def _failed(self, now: datetime) -> list[tuple[str, Partition]]:
        failed = AssetPartition.objects.filter(
            state="failed", held_by=None, asset__active=True
        ).select_related("asset__partition_definition")
        failures = [
            (partition_row.asset.name, (partition_row.window_start, partition_row.segment))
            for partition_row in failed
            if partition_row.identity == partition_row.asset.identity
        ]
        return sorted(
            (
                (name, partition)
                for name, partition in failures
                if is_made_again(name, partition, now)
            ),
            key=repr,
        )
