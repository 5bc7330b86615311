"""Sets of runtime keys: a process reads the keys that it has not read, and no others."""

from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

import slicewise
from partitions_app.models import PartitionDefinition, RuntimePartition
from tests.query_plans import rows_read
from tests.runtime_keys import find_keys

pytestmark = pytest.mark.django_db

SHOPS, OTHERS = slicewise.PartitionAtRuntime(name="shops"), slicewise.PartitionAtRuntime(name="x")


def row() -> PartitionDefinition:
    """Return the row of the set as another process would read the row now."""
    return PartitionDefinition.of(SHOPS.to_json())


def texts() -> list[str]:
    definition = row().definition
    assert isinstance(definition, slicewise.PartitionAtRuntime)
    return [key.text for key in definition.values.keys]


def remove(*keys: str) -> None:
    """Remove keys as a person does, in another process: nothing that is cached here changes."""
    RuntimePartition.objects.filter(key__in=keys).update(removed_at=timezone.now())
    row().revise()


def reading() -> tuple[list[str], int]:
    """Return the texts of the keys, and the number of rows of keys that were read for them."""
    present = row()
    with CaptureQueriesContext(connection) as statements:
        definition = present.definition
    assert isinstance(definition, slicewise.PartitionAtRuntime)
    read = sum(rows_read(statement["sql"]) for statement in statements)
    return [key.text for key in definition.values.keys], read


def test_of_a_grown_set_only_the_new_keys_are_read() -> None:
    names = [f"shop{number:03}" for number in range(300)]
    find_keys(SHOPS, *names)
    assert texts() == names
    find_keys(SHOPS, "late", "later")
    assert reading() == ([*names, "late", "later"], 2)
    assert reading() == ([*names, "late", "later"], 0)
    find_keys(SHOPS, "late")  # is there already
    assert reading()[1] == 0


def test_the_writer_of_a_key_reads_no_other_keys() -> None:
    find_keys(SHOPS, *(f"shop{number:03}" for number in range(300)))
    with CaptureQueriesContext(connection) as statements:
        find_keys(SHOPS, "late")
    selects = [entry["sql"] for entry in statements if entry["sql"].startswith("SELECT")]
    assert not [sql for sql in selects if "runtimepartition" in sql]


def test_removed_keys_are_gone_and_keys_added_since_are_there() -> None:
    find_keys(SHOPS, "a", "b", "c")
    assert texts() == ["a", "b", "c"]
    remove("b")
    find_keys(SHOPS, "d")
    assert texts() == ["a", "c", "d"]
    remove("d")
    assert texts() == ["a", "c"]
    remove("a", "c")
    assert texts() == []
    find_keys(SHOPS, "e")
    assert texts() == ["e"]


def test_restored_keys_come_back_to_their_place() -> None:
    find_keys(SHOPS, "a", "b", "c")
    remove("b")
    assert texts() == ["a", "c"]
    find_keys(SHOPS, "b", "d")
    assert texts() == ["a", "b", "c", "d"]
    # Removed and restored between two readings: there is nothing to read.
    remove("b")
    find_keys(SHOPS, "b")
    assert reading() == (["a", "b", "c", "d"], 0)


def test_keys_of_a_transaction_that_was_undone_are_not_kept() -> None:
    find_keys(SHOPS, "a")
    with transaction.atomic():
        find_keys(SHOPS, "undone")
        assert texts() == ["a", "undone"]
        transaction.set_rollback(True)
    find_keys(SHOPS, "b")
    assert texts() == ["a", "b"]


def test_a_key_with_a_lower_number_that_is_committed_later_is_read() -> None:
    find_keys(SHOPS, "a", "aa", "b")
    early = RuntimePartition.objects.get(key="aa")
    remove("aa")
    RuntimePartition.objects.filter(pk=early.pk).delete()
    assert texts() == ["a", "b"]
    # As of a transaction that began before the one that added "b", and has ended since.
    early.save(force_insert=True)
    row().revise(added=[early.pk])
    assert texts() == ["a", "aa", "b"]


def test_a_set_with_a_revision_of_an_earlier_release_is_read_as_a_whole_once() -> None:
    find_keys(SHOPS, "a", "b")
    PartitionDefinition.objects.filter(pk=row().pk).update(revision=uuid4())
    assert texts() == ["a", "b"]
    find_keys(SHOPS, "c")
    assert texts() == ["a", "b", "c"]
    find_keys(SHOPS, "d")
    assert reading() == (["a", "b", "c", "d"], 1)


def test_a_row_that_was_read_before_a_change_has_the_keys_at_that_time_or_later() -> None:
    find_keys(SHOPS, "a")
    earlier = row()
    find_keys(SHOPS, "b")
    assert texts() == ["a", "b"]
    definition = earlier.definition
    assert isinstance(definition, slicewise.PartitionAtRuntime)
    assert [key.text for key in definition.values.keys] == ["a", "b"]


def test_sets_are_apart() -> None:
    find_keys(SHOPS, "a")
    find_keys(OTHERS, "x")
    find_keys(SHOPS, "b")
    assert texts() == ["a", "b"]
