"""What reasons say of the next write is what the scheduler does with that write."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.db import transaction

import slicewise
from accounts_app.models import User
from assets_app.models import (
    Asset,
    AssetDependency,
    AssetPartition,
    Gateway,
    Materialization,
    Outbox,
    Run,
    Trigger,
)
from assets_app.queries.edges import edge_of
from assets_app.queries.reason_texts import Reason
from assets_app.queries.reasons import reason_of
from slicewise.partitions import ended_between
from tests.factories import asset
from tests.scheduling.beats import written
from tests.scheduling.scheduled_assets import all_of, any_of, at, by, scheduled, write

pytestmark = pytest.mark.django_db
NOW = at(2024, 7, 10)
_MINUTE = timedelta(minutes=1)
AIRPORTS = slicewise.PartitionBySequence(["EWR", "JFK"])
_DAY = slicewise.PartitionByInterval("@daily", start="2024-07-01")
_BY_DAY_AND_AIRPORT = slicewise.PartitionByProduct({"day": _DAY, "airport": AIRPORTS})
_PROMISED = re.compile("The next write of a needed partition of ([ab or]+) by a schedule")
_BOUNDED = re.compile("A write of ([ab or]+) makes due only")
# Upstream definitions with mappings: a write concerns its own windows, or all that have ended.
_UPSTREAM: list[tuple[Any, Any]] = [
    (None, None),
    (AIRPORTS, None),
    (AIRPORTS, slicewise.All()),
    (_DAY, None),
    (_DAY, slicewise.All()),
    (_DAY, slicewise.Latest()),
    (_DAY, slicewise.Offset(-1, 0)),
    (_BY_DAY_AND_AIRPORT, None),
]


class DrawnCase(NamedTuple):
    """A partition, and the needed partitions of each asset by name."""

    downstream: Asset
    key: str
    needed: Mapping[str, list[str]]
    text: str


@contextmanager
def undone() -> Iterator[None]:
    """Do the block, and leave the database as before."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def reread(of: Asset) -> Asset:
    return Asset.objects.select_related("producer__schedule", "partition_definition").get(pk=of.pk)


def drawn_case(chance: random.Random, alice: User, gateway: Gateway) -> DrawnCase | None:
    """Draw assets, a schedule, writes, and a partition that nothing has queued, if there is one."""
    definition = chance.choice([_DAY, _BY_DAY_AND_AIRPORT])
    upstream = {name: chance.choice(_UPSTREAM) for name in "ab"}
    for name, (upstream_definition, _) in upstream.items():
        asset(name, upstream_definition)
    expression = chance.choice([by("a"), all_of(by("a"), by("b")), any_of(by("a"), by("b"))])
    since = at(2024, 7, 1) + timedelta(hours=12 * chance.randrange(16))
    downstream = scheduled(
        "x", expression, definition, since=since,
        upstream={name: mapping for name, (_, mapping) in upstream.items()},
    )  # fmt: skip
    key = chance.choice(keys_of(definition)[:-1])
    drawn_writes(chance, upstream, alice, gateway)
    row = AssetPartition.objects.filter(asset=downstream, key=key).first()
    if row is not None and (row.held_by_id or row.version):
        return None
    needed = {}
    for dependency in AssetDependency.objects.filter(downstream=downstream).order_by("upstream"):
        needed_partitions = edge_of(dependency, NOW).needed_by_texts([key])
        needed[dependency.upstream.name] = [partition.text for partition in needed_partitions]
    return DrawnCase(downstream, key, needed, f"{definition} {upstream} {expression} {since}")


def keys_of(definition: slicewise.PartitionDefinition | None) -> list[str]:
    """Return the keys of the first days of July."""
    if definition is None:
        return [""]
    if definition == AIRPORTS:
        return ["EWR", "JFK"]
    return [key.text for key in ended_between(definition, at(2024, 7, 1), NOW)]


def drawn_writes(
    chance: random.Random, upstream: Mapping[str, Any], alice: User, gateway: Gateway
) -> None:
    """Write partitions at times in order, some by backfills, which trigger nothing."""
    for hour in sorted(chance.sample(range(9 * 24), chance.randrange(7))):
        name = chance.choice("ab")
        of, key = Asset.objects.get(name=name), chance.choice(keys_of(upstream[name][0]))
        when = at(2024, 7, 1) + timedelta(hours=hour)
        if Run.objects.filter(partitions__partition__asset=of, state="queued").exists():
            continue
        if chance.random() < 0.3:
            with undoing_outbox(of):
                write(of, key, gateway, alice)
            Materialization.objects.filter(
                run__trigger=Trigger.BACKFILL, created_at__gt=NOW
            ).update(created_at=when)
        else:
            written(of, key, when, gateway, alice)


@contextmanager
def undoing_outbox(of: Asset) -> Iterator[None]:
    """Let the runs of the block count as runs of a backfill."""
    before = set(Run.objects.values_list("pk", flat=True))
    yield
    runs = Run.objects.exclude(pk__in=before)
    Outbox.objects.filter(run__in=runs).delete()
    runs.update(trigger=Trigger.BACKFILL)


def is_queued_after(
    case: DrawnCase, writes: list[tuple[str, str]], alice: User, gateway: Gateway
) -> bool:
    """Return whether writes, a minute apart, have the scheduler queue the partition."""
    with undone():
        for number, (name, key) in enumerate(writes, 1):
            written(Asset.objects.get(name=name), key, NOW + number * _MINUTE, gateway, alice)
        rows = AssetPartition.objects.filter(asset=case.downstream, key=case.key)
        return rows.filter(held_by__isnull=False).exists()


def check(case: DrawnCase, alice: User, gateway: Gateway) -> str:
    """Compare the reason of the partition with what writes do; return the code of the reason."""
    reason = reason_of(reread(case.downstream), case.key, NOW)
    assert reason is not None
    promised, bounded = named(_PROMISED, reason), named(_BOUNDED, reason)
    absent = []
    for name, keys in case.needed.items():
        outcomes = {key: is_queued_after(case, [(name, key)], alice, gateway) for key in keys}
        told = f"{case.text}\n{case.key} {name} {outcomes}\n{reason.text}"
        if name in promised:
            assert outcomes, told
            assert all(outcomes.values()), told
        if name in bounded and outcomes:
            assert not all(outcomes.values()), told
        if reason.code == "not_triggered" and any(outcomes.values()):
            assert name in promised | bounded, told
        made = AssetPartition.objects.filter(asset__name=name, key__in=keys, version__gt=0)
        absent += [
            (name, key) for key in keys if key not in set(made.values_list("key", flat=True))
        ]
    if reason.code == "waiting_for_upstream" and all(case.needed.values()):
        all_needed = [(name, key) for name, keys in case.needed.items() for key in keys]
        assert is_queued_after(case, absent + all_needed, alice, gateway), f"{case}\n{reason.text}"
    return reason.code


def named(pattern: re.Pattern[str], reason: Reason) -> set[str]:
    """Return the names of assets in the sentences of a pattern."""
    return {name for found in pattern.findall(reason.text) for name in found.split(" or ")}


@pytest.mark.parametrize("seed", range(2))
def test_the_next_write_does_what_the_reason_says(
    seed: int, alice: User, gateway: Gateway, settings: Any
) -> None:
    chance = random.Random(seed)
    codes: Counter[str] = Counter()
    for _ in range(12):
        settings.MAX_PARTITIONS_PER_TICK = chance.choice([2, 5, 10_000])
        with undone():
            case = drawn_case(chance, alice, gateway)
            codes[check(case, alice, gateway) if case else "queued"] += 1
    assert codes["not_triggered"]
