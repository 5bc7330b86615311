"""A small cast for tests: a few people, and a catalogue without a loader."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import Group

import slicewise
from accounts_app.models import User
from accounts_app.policy import Role
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.outputs import StagedOutlet
from assets_app.models import Asset, Bundle, BundleVersion, Producer, ProducerVersion
from partitions_app.models import PartitionDefinition

DAILY_2013 = slicewise.PartitionByInterval("@daily", start="2013-01-01", end="2014-01-01")
AIRPORTS = slicewise.PartitionBySequence(["EWR", "JFK", "LGA"])
DAY_BY_AIRPORT = slicewise.PartitionByProduct({"date": DAILY_2013, "airport": AIRPORTS})


def outlet_of(
    attempt: Attempt,
    staged: list[dict[str, Any]],
    *,
    of: Asset | None = None,
    root: str = "/lake",
    staging: str = "/lake/_s",
) -> StagedOutlet:
    """Return the data that an attempt has staged of its asset, or of another outlet."""
    outlet = of or attempt.run.asset
    name = attempt.row.disk_names(attempt.run.producer_version)[outlet.name]
    return StagedOutlet(
        asset_id=outlet.pk, name_on_disk=name, root=root, staging=staging, partitions=staged
    )


def person(name: str, role: Role | None = None, **fields: Any) -> User:
    """Create a person without a password: to hash a password takes a tenth of a second."""
    user = User.objects.create_user(name, **fields)
    if role is not None:
        user.groups.add(Group.objects.get_or_create(name=role.value)[0])
    return user


def give_password(user: User, password: str, settings: Any) -> User:
    """Give a person a password that is cheap to hash, for as long as the settings last."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    user.set_password(password)
    user.save()
    return user


def definition_of(partitioned: Asset) -> slicewise.PartitionDefinition:
    """The partition definition of a partitioned asset."""
    definition = partitioned.definition
    assert definition is not None
    return definition


def asset(
    name: str,
    partition: slicewise.PartitionDefinition | None = None,
    *,
    params: dict[str, Any] | None = None,
    upstream: Mapping[str, slicewise.PartitionMapping | None] | None = None,
    options: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Asset:
    """Create an asset with a producer, as if a definition file had declared both.

    ``upstream`` names the assets that the function reads, each by a mapping or by overlap;
    ``options`` are further facts that the loader reports of the producer.
    """
    return together(
        name, [name], partition, params=params, upstream=upstream, options=options, **fields
    )[0]


def together(
    name: str,
    outlets: Sequence[str],
    partition: slicewise.PartitionDefinition | None = None,
    *,
    params: dict[str, Any] | None = None,
    upstream: Mapping[str, slicewise.PartitionMapping | None] | None = None,
    options: Mapping[str, Any] | None = None,
    **fields: Any,
) -> list[Asset]:
    """Create the assets that one function of that name makes together."""
    inlets = upstream or {}
    bundle, _ = Bundle.objects.get_or_create(name="nyc_flights", defaults={"path": "/nowhere"})
    version, _ = BundleVersion.objects.get_or_create(
        bundle=bundle, digest="0" * 64, defaults={"archive": b""}
    )
    definition = {
        "name": name, "strategy": "partition", "params": params or {}, "retries": 0,
        "outlets": [{"name": outlet} for outlet in outlets],
        "partition": partition.to_json() if partition else None,
        "inlets": list(inlets), "schedule": None,
        "mappings": {n: m.to_json() for n, m in inlets.items() if m},
        **(options or {}),
    }  # fmt: skip
    producer = Producer.objects.create(name=name, bundle=bundle)
    producer.current_version = ProducerVersion.objects.create(
        producer=producer,
        bundle_version=version,
        digest=hashlib.sha256(json.dumps(definition).encode()).hexdigest(),
        definition=definition,
        source=f"def {name}(): ...",
        file="flights.py",
    )
    producer.save()
    row = None if partition is None else PartitionDefinition.of(partition.to_json())
    return [
        Asset.objects.create(
            name=outlet,
            bundle=bundle,
            producer=producer,
            partition_definition=row,
            file="flights.py",
            **fields,
        )
        for outlet in outlets
    ]


def external(
    name: str, partition: slicewise.PartitionDefinition | None = None, **fields: Any
) -> Asset:
    """Create an asset declared with ``Asset(...)``, whose data comes from outside."""
    bundle, _ = Bundle.objects.get_or_create(name="nyc_flights", defaults={"path": "/nowhere"})
    row = None if partition is None else PartitionDefinition.of(partition.to_json())
    return Asset.objects.create(
        name=name, bundle=bundle, partition_definition=row, file="flights.py", **fields
    )
