"""A catalogue for `bench.graphs`: teams whose assets read the team's assets, and a few others."""

from datetime import date
from random import Random

from django.db import connection
from django.test import Client

import slicewise
from accounts_app.models import User
from assets_app.models import Asset, AssetDependency, Bundle, PartitionCount, Producer
from partitions_app.models import PartitionDefinition

_TEAMS, _LAYERS = 60, 5
_STATES = ("materialized", "materialized", "materialized", "failed")


def declare(count: int) -> None:
    """Declare assets in teams, of which every sixth asset has no group; partitions are counted."""
    bundle = Bundle.objects.create(name="graphs", path="/nowhere")
    producer = Producer.objects.create(name="graphs", bundle=bundle)
    definitions = [
        PartitionDefinition.of(
            slicewise.PartitionByInterval(
                cadence, start=date(2024, month, 1), timezone=zone
            ).to_json()
        )
        for month in range(1, 13)
        for cadence in ("@daily", "@hourly")
        for zone in ("UTC", "Europe/Berlin")
    ]
    assets = Asset.objects.bulk_create(
        Asset(
            name=f"{('mart', 'stage', 'raw')[number % 3] if number % 6 else 'mart'}_{number:05}",
            bundle=bundle,
            producer=producer,
            group=f"team {number % _TEAMS:02}" if number % 6 else "",
            partition_definition=definitions[number % len(definitions)],
        )
        for number in range(count)
    )
    AssetDependency.objects.bulk_create(_edges(assets))
    PartitionCount.objects.bulk_create(
        PartitionCount(
            asset=asset, identity=asset.identity, bucket=date(2024, 12, 1),
            state=_STATES[number % len(_STATES)], count=number % 300 + 1,
        )
        for number, asset in enumerate(assets)
    )  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _edges(assets: list[Asset]) -> list[AssetDependency]:
    """Return two edges for each asset, from a lower layer: nine of ten of the same team."""
    random = Random(7)
    span = _TEAMS * max(1, len(assets) // _TEAMS // _LAYERS)
    pairs: dict[tuple[int, int], AssetDependency] = {}
    for number in range(span, len(assets)):
        for _ in range(2):
            stranger = random.randrange(_TEAMS) if random.random() < 0.1 else 0
            upstream = number - span + stranger
            pairs[upstream, number] = AssetDependency(
                upstream=assets[upstream], downstream=assets[number], inlet=True
            )
    return list(pairs.values())


def browser_client() -> Client:
    """Return a browser in which the administrator is signed in."""
    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.get(), backend="django.contrib.auth.backends.ModelBackend")
    return client
