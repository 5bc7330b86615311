"""Models of partition definitions and runtime partitions."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, models, transaction
from django.utils import timezone

import slicewise
from partitions_app.key_revisions import EMPTY, digest_in, digest_of, new_revision
from slicewise.keys import key_from_json, key_to_json

# A key that exists already keeps its first label and run; a removed key is restored.
_ADD = """
INSERT INTO partitions_app_runtimepartition AS known
    (definition_id, key, content, label, added_by, added_at)
SELECT %s, key, content, label, %s, %s
FROM unnest(%s::text[], %s::jsonb[], %s::text[]) AS found(key, content, label)
ORDER BY key COLLATE "C"
ON CONFLICT (definition_id, key) DO UPDATE
    SET removed_at = NULL, added_by = EXCLUDED.added_by, added_at = EXCLUDED.added_at
    WHERE known.removed_at IS NOT NULL
RETURNING id, key
"""


class PartitionDefinition(models.Model):
    """A partition definition, shared by all assets with an equal definition.

    A row is never changed: another definition is another row. Only the keys of runtime partitions
    change, whose definition is one row, and the labels of a sequence's keys; each such change sets
    a new ``revision``.
    """

    kind = models.CharField(max_length=20)
    spec = models.JSONField()
    fingerprint = models.CharField(max_length=64, unique=True)
    # Cadence, zone, alignment and names of dimensions, without bounds: partitions outlive a moved
    # start.
    identity = models.CharField(max_length=16, db_collation="C")
    # Names the state of the runtime keys, or of the labels of keys. It has a random part, so that a
    # state cached by a process is never taken for another state: a number would come again after a
    # rollback.
    revision = models.UUIDField(null=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint[:8]}"

    @property
    def definition(self) -> slicewise.PartitionDefinition:
        """The definition as a value of the SDK, with the present keys of runtime partitions.

        The keys are the keys at the time when this row was read. To read the row again costs no
        more than any row: a process reads each key once, and all keys again after a removal.
        """
        if self.kind == slicewise.PartitionAtRuntime.kind:
            return _definition_with_keys(self)
        return _parsed(_Version(self.fingerprint, self.revision, self))

    def relabel(self, spec: dict[str, Any]) -> None:
        """Store the labels of an equal definition: `__str__` of a key class may have changed."""
        if list(_labels(self.spec)) != list(_labels(spec)):
            self.spec = spec
            self.revision = uuid4()
            self.save(update_fields=["spec", "revision"])

    def add_keys(
        self, keys: Iterable[tuple[slicewise.PartitionKey, str]], *, run_id: int | None
    ) -> list[str]:
        """Add keys with labels to a definition of runtime partitions; return the texts of new keys.

        The caller provides the transaction.
        """
        labeled_keys = {key.text: (key, label) for key, label in keys}
        contents = [json.dumps(key_to_json(key)) for key, _ in labeled_keys.values()]
        labels = [label for _, label in labeled_keys.values()]
        with connection.cursor() as cursor:
            cursor.execute(
                _ADD, [self.pk, run_id, timezone.now(), list(labeled_keys), contents, labels]
            )
            new_rows: list[tuple[int, str]] = cursor.fetchall()
        if new_rows:
            self.revise(added=[row_id for row_id, _ in new_rows])
        return [text for _, text in new_rows]

    @transaction.atomic
    def revise(self, *, added: Sequence[int] = ()) -> None:
        """Set a new revision, since the runtime keys have changed and cached keys are outdated.

        ``added`` are the rows of the added keys, if no other key has changed: the rows of all other
        keys are not read then.
        """
        # Under the lock, so that of two transactions the later one adds to the digest of the other.
        locked = PartitionDefinition.objects.select_for_update(no_key=True).filter(pk=self.pk)
        revision = locked.values_list("revision", flat=True).get()
        digest = digest_in(revision) if added else None
        if digest is None:
            keys = RuntimePartition.objects.filter(definition=self.pk, removed_at=None)
            digest, added = EMPTY, list(keys.values_list("pk", flat=True))
        self.revision = new_revision(digest_of(added, digest))
        self.save(update_fields=["revision"])

    @classmethod
    def of(cls, spec: dict[str, Any]) -> "PartitionDefinition":
        """Return the row of the definition with this spec; create a row for a new definition."""
        definition = slicewise.PartitionDefinition.from_json(spec)
        row, _ = cls.objects.get_or_create(
            fingerprint=definition.fingerprint,
            defaults={
                "kind": definition.kind,
                "spec": definition.to_json(),
                "identity": definition.identity,
            },
        )
        return row

    @classmethod
    def rule_of(
        cls, spec: dict[str, Any] | None, *, in_force: "PartitionDefinition | None" = None
    ) -> slicewise.PartitionDefinition | None:
        """Return the definition of a spec, with its present runtime keys; None without a spec.

        The row ``in_force`` spares reading its own spec again: a list of segments may be long.
        """
        if not spec:
            return None
        if in_force is not None and in_force.spec == spec:
            return in_force.definition
        if spec.get("kind") == slicewise.PartitionAtRuntime.kind:
            return cls.of(spec).definition
        return slicewise.PartitionDefinition.from_json(spec)


@dataclass(frozen=True, slots=True)
class _Version:
    """A fingerprint and a revision, which together never change their meaning, and the row with the
    definition, read only when the version is not cached yet.
    """

    fingerprint: str
    revision: UUID | None
    row: PartitionDefinition = field(compare=False)


# Keeps the most recently used of the versions that a process meets in months: a version may have a
# hundred thousand keys.
@lru_cache(maxsize=1024)
def _parsed(version: _Version) -> slicewise.PartitionDefinition:
    return slicewise.PartitionDefinition.from_json(version.row.spec)


def _labels(spec: Any) -> Iterator[Any]:
    """Yield the labels of all keys in the JSON of a definition, in order."""
    if isinstance(spec, dict):
        if "label" in spec and "fields" in spec:
            yield spec["label"]
        for value in spec.values():
            yield from _labels(value)
    elif isinstance(spec, list):
        for item in spec:
            yield from _labels(item)


class RuntimePartition(models.Model):
    """A key of a definition of runtime partitions (AIP-76), with the run that added the key and the
    time.

    Removed keys stay as rows: partitions with these keys have a history.
    """

    definition = models.ForeignKey(
        PartitionDefinition, on_delete=models.CASCADE, related_name="runtime_partitions"
    )
    key = models.CharField(max_length=1000, db_collation="C")
    # The key as JSON by type: the text alone does not tell 1 from "1".
    content = models.JSONField()
    label = models.TextField()
    # The number of a run; no foreign key, since the model of runs belongs to a higher layer.
    added_by = models.BigIntegerField(null=True)
    added_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("definition", "key"), name="runtime_partition_once"),
        )

    def __str__(self) -> str:
        return f"{self.definition_id} {self.key}"


@dataclass(frozen=True, slots=True)
class _KeySet:
    """A definition of runtime partitions with all keys, as a process has read the keys."""

    row_id: int
    fingerprint: str
    revision: UUID | None
    definition: slicewise.PartitionAtRuntime
    digest: int = EMPTY
    last_id: int = 0

    def grown(self, revision: UUID | None) -> "_KeySet":
        """Return the set at a revision, with the keys that were added after the last one."""
        keys_of_set = RuntimePartition.objects.filter(definition=self.row_id, removed_at=None)
        added = keys_of_set.filter(pk__gt=self.last_id).order_by("pk")
        rows = list(added.values_list("pk", "content"))
        if not rows:
            return replace(self, revision=revision)
        keys = [key_from_json(content) for _, content in rows]
        return replace(
            self,
            revision=revision,
            definition=self.definition.known((*self.definition.values.keys, *keys)),
            digest=digest_of((row_id for row_id, _ in rows), self.digest),
            last_id=rows[-1][0],
        )


# By the id of the definition, at the revision that was last read: there may be a hundred thousand
# keys, and a new revision with each run that finds a key.
_key_sets: dict[int, _KeySet] = {}


def _definition_with_keys(row: PartitionDefinition) -> slicewise.PartitionDefinition:
    """Return a definition of runtime partitions with all keys. Only keys that were added since the
    last reading are read, unless other keys have changed too.
    """
    cached = _key_sets.get(row.pk)
    if cached is None or cached.fingerprint != row.fingerprint:
        cached = _no_keys(row)
    elif cached.revision == row.revision:
        return cached.definition
    key_set = cached.grown(row.revision) if row.revision else _no_keys(row)
    if key_set.digest != digest_in(row.revision) and cached.last_id:
        key_set = _no_keys(row).grown(row.revision)
    _key_sets[row.pk] = key_set
    return key_set.definition


def _no_keys(row: PartitionDefinition) -> _KeySet:
    definition = slicewise.PartitionDefinition.from_json(row.spec)
    assert isinstance(definition, slicewise.PartitionAtRuntime)  # noqa: S101
    return _KeySet(row.pk, row.fingerprint, None, definition.known(()))
