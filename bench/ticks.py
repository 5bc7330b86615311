"""Row 15: a tick with very many assets, none due and all due, and what history adds to it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import perf_counter

from django.db import connection

import slicewise
from assets_app.catalogue.timetables import store_schedules
from assets_app.models import (
    Asset,
    Bundle,
    BundleVersion,
    Producer,
    ProducerVersion,
    Queue,
    Run,
    RunState,
    Schedule,
    Trigger,
)
from assets_app.scheduling.ticking import handle_ticks
from bench.figures import Figure, duration
from partitions_app.models import PartitionDefinition

DAILY = slicewise.PartitionByInterval("@daily")
BEGAN = datetime(2024, 7, 1, tzinfo=UTC)
ASSETS = 10_000

# A thousand materializations of each of so many slices of an asset that is not scheduled.
_HISTORY = """
WITH slices AS (
    INSERT INTO assets_app_assetpartition
        (asset_id, identity, key, segment, state, version, due_again)
    SELECT %(asset)s, 'history', 'p' || number, '', 'materialized', 1000, false
    FROM generate_series(1, %(slices)s) AS number
    RETURNING id
)
INSERT INTO assets_app_materialization
    (slice_id, version, run_id, attempt_id, producer_version_id, metadata, created_at)
SELECT slices.id, version, %(run)s, %(attempt)s, %(version)s, '{}', now()
FROM slices, generate_series(1, 1000) AS version
"""


def measure(history: int) -> Iterator[Figure]:
    """Ticks of 10,000 assets on an empty record, then with so many materializations on it."""
    version = _declare()
    yield from _ticks("an empty record", BEGAN)
    _remember(version, history)
    yield from _ticks(f"{history:,} materializations on record", BEGAN + timedelta(days=2))


def _ticks(record: str, since: datetime) -> Iterator[Figure]:
    for what, now, reach in (
        ("none due", since + timedelta(hours=12), 0.5),
        ("all due", since + timedelta(days=1, seconds=1), 3.0),
    ):
        began, ticked = perf_counter(), 0
        while more := handle_ticks(now):
            ticked += more
        took = perf_counter() - began
        if ticked not in (0, ASSETS):
            raise ValueError(f"{ticked} assets ticked")
        yield Figure(
            row=15,
            work=f"a tick of {ASSETS:,} assets, {what}, {record}",
            measured=duration(took),
            seconds=took,
            reach=duration(reach),
            reached=took <= reach,
        )
    Run.objects.filter(trigger=Trigger.SCHEDULE).delete()
    Schedule.objects.update(
        handled_until=since + timedelta(days=2), next_at=since + timedelta(days=3)
    )


def _declare() -> ProducerVersion:
    bundle = Bundle.objects.create(name="many", path="/nowhere")
    loaded = BundleVersion.objects.create(bundle=bundle, digest="0" * 64, archive=b"")
    rule = PartitionDefinition.of(DAILY.to_json())
    names = [f"asset_{number:05}" for number in range(ASSETS)]
    producers = Producer.objects.bulk_create(Producer(name=name, bundle=bundle) for name in names)
    versions = ProducerVersion.objects.bulk_create(
        ProducerVersion(
            producer=producer,
            bundle_version=loaded,
            digest="0" * 64,
            definition=_definition(producer.name),
            source="",
            file="many.py",
        )
        for producer in producers
    )
    for producer, version in zip(producers, versions, strict=True):
        producer.current_version = version
    Producer.objects.bulk_update(producers, ["current_version"], batch_size=1_000)
    Asset.objects.bulk_create(
        Asset(
            name=producer.name, bundle=bundle, producer=producer, partition_definition=rule,
            schedule=_definition(producer.name)["schedule"],
        )
        for producer in producers
    )  # fmt: skip
    store_schedules(producers, now=BEGAN)
    return versions[0]


def _definition(name: str) -> dict[str, object]:
    return {
        "name": name,
        "schedule": {"kind": "cron", "expression": "@daily"},
        "partition": DAILY.to_json(),
        "strategy": "partition",
        "params": {},
        "inlets": [],
        "outlets": [{"name": name}],
    }


def _remember(version: ProducerVersion, count: int) -> None:
    """So many materializations, by one run that nothing else is known of."""
    asset = Asset.objects.create(name="remembered", bundle=version.producer.bundle)
    run = Run.objects.create(
        group=Schedule.objects.select_related("group").earliest("pk").group,
        producer_version=version,
        asset=asset,
        trigger=Trigger.MANUAL,
        queue=Queue.SCHEDULED,
        state=RunState.SUCCEEDED,
        partition_count=count // 1000,
        ended_at=BEGAN,
    )
    attempt = run.attempts.create(
        number=1, token="0" * 32, lease_until=BEGAN, started_at=BEGAN, ended_at=BEGAN,
        outcome="succeeded",
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(
            _HISTORY,
            {
                "asset": asset.pk,
                "slices": count // 1000,
                "run": run.pk,
                "attempt": attempt.pk,
                "version": version.pk,
            },
        )
        cursor.execute("VACUUM ANALYZE")
