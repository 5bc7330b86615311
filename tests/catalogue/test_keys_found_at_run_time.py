"""The memory that a process spends on keys of sets that runs find."""

import gc
import weakref

import pytest

from partitions_app.models import PartitionDefinition
from slicewise import PartitionAtRuntime, PartitionKey

pytestmark = pytest.mark.django_db


def test_keys_as_they_were_before_are_not_kept() -> None:
    row = PartitionDefinition.of(PartitionAtRuntime("customers").to_json())
    row.add_keys([(PartitionKey.of("ann"), "ann")], run_id=None)
    before = weakref.ref(row.definition)
    assert before() is row.definition
    row.add_keys([(PartitionKey.of("bob"), "bob")], run_id=None)
    now = row.definition
    assert isinstance(now, PartitionAtRuntime)
    assert list(now.values.texts) == ["ann", "bob"]
    gc.collect()
    assert before() is None
