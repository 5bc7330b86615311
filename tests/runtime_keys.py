"""Sets of partitions that runs find: keys, and runs that find keys."""

from collections.abc import Sequence
from typing import Any

import slicewise
from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Asset, Gateway, Run
from partitions_app.models import PartitionDefinition
from slicewise.keys.key_json import key_to_json
from tests.attempts import begin_next
from tests.factories import definition_of, outlet_of

CUSTOMERS = slicewise.PartitionAtRuntime(name="active_customers")


class Position(slicewise.PartitionKey):
    """A place, as people may name their partitions."""

    x: int
    y: int

    def __str__(self) -> str:
        return f"{self.x} right, {self.y} up"


def found(*keys: object) -> list[dict[str, Any]]:
    """Return keys of the set, as an attempt keeps the keys."""
    return [
        {"set": "active_customers", "key": key_to_json(slicewise.PartitionKey.of(key))}
        for key in keys
    ]


def known(of: Asset) -> list[str]:
    """Return the texts of the keys that a reader of the catalogue sees now."""
    keys = definition_of(Asset.objects.get(pk=of.pk)).keys()
    return [key.text for key in keys]


def discovering(of: Asset, user: User, gateway: Gateway) -> Attempt:
    """Begin a run that finds partitions on the gateway, and return the attempt."""
    group = materialize(MaterializeRequest(asset=of), user=user)
    return begin_next(group.runs.get(), gateway)


def discover(
    of: Asset, user: User, gateway: Gateway, *keys: object, written: Sequence[str] = ()
) -> Run:
    """Run to success an attempt that finds keys and writes the data of some."""
    attempt = discovering(of, user, gateway)
    staged = [{"key": key, "path": key, "rows": 3, "bytes": 30} for key in written]
    outlets = [outlet_of(attempt, staged)] if staged else []
    assert attempts.intend_to_publish(attempt.row, outlets, found(*keys))
    assert ending.succeed(attempt.row)
    return Run.objects.get(pk=attempt.run.pk)


def find_keys(definition: slicewise.PartitionAtRuntime, *names: str) -> None:
    """Add keys to the set, as runs that find keys do."""
    row = PartitionDefinition.of(definition.to_json())
    row.add_keys([(slicewise.PartitionKey.of(name), name) for name in names], run_id=None)
