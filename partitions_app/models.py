"""The rules that say which partitions exist."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4

from django.db import connection, models
from django.utils import timezone

import slicewise
from slicewise.key_json import key_from_json, key_to_json

# Sets found at run time with their keys, at the revision that was asked for last: there may be a
# hundred thousand keys, and a new revision with each run that finds one.
_found: dict[int, tuple[str, UUID | None, slicewise.PartitionDefinition]] = {}

# One that is there already stays as it was found first; one that was removed is there again.
_ADD = """
INSERT INTO partitions_app_runtimepartition AS known
    (definition_id, key, content, label, added_by, added_at)
SELECT %s, key, content, label, %s, %s
FROM unnest(%s::text[], %s::jsonb[], %s::text[]) AS found(key, content, label)
ORDER BY key COLLATE "C"
ON CONFLICT (definition_id, key) DO UPDATE
    SET removed_at = NULL, added_by = EXCLUDED.added_by, added_at = EXCLUDED.added_at
    WHERE known.removed_at IS NOT NULL
RETURNING key
"""


class PartitionDefinition(models.Model):
    """One rule, shared by all assets that have the same one.

    Never changed: another rule is another row. Of a set found at run time, which is one row, the
    keys change, and of a sequence the labels of its keys, and ``revision`` with them.
    """

    kind = models.CharField(max_length=20)
    spec = models.JSONField()
    fingerprint = models.CharField(max_length=64, unique=True)
    # Cadence, zone, alignment and names of dimensions, without bounds: slices outlive a moved
    # start.
    identity = models.CharField(max_length=16, db_collation="C")
    # Names the state of the keys found at run time, or of the labels of keys. Drawn at random, so
    # that what a process knows of it never stands for another state: a number would come again
    # after a rollback.
    revision = models.UUIDField(null=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint[:8]}"

    @property
    def definition(self) -> slicewise.PartitionDefinition:
        """The rule itself, with its arithmetic; found at run time, with the keys that are known.

        Whoever reads the row sees its keys as they were then: reading it again costs no more than
        any row, and the keys are read once per process and revision.
        """
        if self.kind == slicewise.PartitionAtRuntime.kind:
            return _with_known_keys(self.pk, self.fingerprint, self.revision)
        return _parsed(_Version(self.fingerprint, self.revision, self))

    def relabel(self, spec: dict[str, Any]) -> None:
        """Take over the labels of an equal rule: `__str__` of a key class may have changed."""
        if list(_labels(self.spec)) != list(_labels(spec)):
            self.spec = spec
            self.revision = uuid4()
            self.save(update_fields=["spec", "revision"])

    def add_keys(
        self, keys: Iterable[tuple[slicewise.PartitionKey, str]], *, run_id: int | None
    ) -> list[str]:
        """Add keys with their labels to a set found at run time; texts of those that are new.

        In a transaction of the caller's.
        """
        found = {key.text: (key, label) for key, label in keys}
        contents = [json.dumps(key_to_json(key)) for key, _ in found.values()]
        labels = [label for _, label in found.values()]
        with connection.cursor() as cursor:
            cursor.execute(_ADD, [self.pk, run_id, timezone.now(), list(found), contents, labels])
            new = [row[0] for row in cursor.fetchall()]
        if new:
            self.revise()
        return new

    def revise(self) -> None:
        """Set a new revision: the keys found at run time have changed, cached ones are outdated."""
        self.revision = uuid4()
        self.save(update_fields=["revision"])

    @classmethod
    def of(cls, spec: dict[str, Any]) -> "PartitionDefinition":
        """Return the row of the definition with this spec; create a row for a new definition."""
        rule = slicewise.PartitionDefinition.from_json(spec)
        row, _ = cls.objects.get_or_create(
            fingerprint=rule.fingerprint,
            defaults={"kind": rule.kind, "spec": rule.to_json(), "identity": rule.identity},
        )
        return row

    @classmethod
    def rule_of(cls, spec: dict[str, Any] | None) -> slicewise.PartitionDefinition | None:
        """Return the definition of a spec, with its present runtime keys; None without a spec."""
        if spec is None:
            return None
        if spec.get("kind") == slicewise.PartitionAtRuntime.kind:
            return cls.of(spec).definition
        return slicewise.PartitionDefinition.from_json(spec)


@dataclass(frozen=True, slots=True)
class _Version:
    """A fingerprint and a revision, which together never change their meaning; and a row that says
    the rule, which is read only where it is not known yet.
    """

    fingerprint: str
    revision: UUID | None
    row: PartitionDefinition = field(compare=False)


# Of the versions that a process has met in months, those asked for last: one may have a hundred
# thousand keys.
@lru_cache(maxsize=1024)
def _parsed(version: _Version) -> slicewise.PartitionDefinition:
    return slicewise.PartitionDefinition.from_json(version.row.spec)


def _labels(spec: Any) -> Iterator[Any]:
    """Yield the labels of all keys in the JSON of a rule, in order."""
    if isinstance(spec, dict):
        if "label" in spec and "fields" in spec:
            yield spec["label"]
        for value in spec.values():
            yield from _labels(value)
    elif isinstance(spec, list):
        for item in spec:
            yield from _labels(item)


class RuntimePartition(models.Model):
    """A key of a set found at run time (AIP-76): who added it and when.

    Those that were removed stay as rows: what was made of them has its history.
    """

    definition = models.ForeignKey(
        PartitionDefinition, on_delete=models.CASCADE, related_name="runtime_partitions"
    )
    key = models.CharField(max_length=1000, db_collation="C")
    # The key as JSON by type: the text alone does not tell 1 from "1".
    content = models.JSONField()
    label = models.TextField()
    # The number of a run; no foreign key, since runs are known above.
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


def _with_known_keys(
    definition_id: int, fingerprint: str, revision: UUID | None
) -> slicewise.PartitionDefinition:
    """The set with its keys, read once per revision."""
    kept = _found.get(definition_id)
    if kept is not None and kept[:2] == (fingerprint, revision):
        return kept[2]
    rule = _read_with_keys(definition_id, revision)
    _found[definition_id] = (fingerprint, revision, rule)
    return rule


def _read_with_keys(definition_id: int, revision: UUID | None) -> slicewise.PartitionDefinition:
    """Read the set with its keys: run by run, as they were found."""
    spec = PartitionDefinition.objects.get(pk=definition_id).spec
    rule = slicewise.PartitionDefinition.from_json(spec)
    assert isinstance(rule, slicewise.PartitionAtRuntime)  # noqa: S101
    if revision is None:
        return rule.known(())
    rows = RuntimePartition.objects.filter(definition=definition_id, removed_at=None)
    contents = rows.order_by("id").values_list("content", flat=True)
    return rule.known(key_from_json(content) for content in contents)
