"""Row 15: a tick with very many assets, none due and all due, and the cost of history."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import perf_counter

from django.db import transaction

import slicewise
from assets_app.catalogue.timetables import store_schedules
from assets_app.models import (
    Asset,
    Bundle,
    BundleVersion,
    Producer,
    ProducerVersion,
    Run,
    Schedule,
    Trigger,
)
from assets_app.scheduling.ticking import handle_ticks
from bench.figures import Figure, duration
from partitions_app.models import PartitionDefinition

DAILY = slicewise.PartitionByInterval("@daily")
BEGAN = datetime(2024, 7, 1, tzinfo=UTC)
ASSETS = 10_000
_BUNDLE = "many"


def measure(record: str, turn: int) -> Iterator[Figure]:
    """Measure ticks of 10,000 assets, each turn two days later."""
    since = BEGAN + timedelta(days=2 * turn)
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
    Schedule.objects.filter(producer__bundle__name=_BUNDLE).update(
        handled_until=since + timedelta(days=2), next_at=since + timedelta(days=3)
    )


def declare() -> None:
    """Create ten thousand assets, each with a partition a day."""
    bundle = Bundle.objects.create(name=_BUNDLE, path="/nowhere")
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
    with transaction.atomic():
        store_schedules(producers, now=BEGAN)


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
