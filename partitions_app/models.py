"""The rules that say which partitions exist."""

from typing import Any

from django.db import models

import slicewise

# A fingerprint never changes its meaning, so what is parsed once serves the whole process.
_parsed: dict[str, slicewise.PartitionDefinition] = {}


class PartitionDefinition(models.Model):
    """One rule, shared by all assets that have the same one.

    Never changed: another rule is another row.
    """

    kind = models.CharField(max_length=20)
    spec = models.JSONField()
    fingerprint = models.CharField(max_length=64, unique=True)
    # Cadence, zone, alignment and names of dimensions, without bounds: slices outlive a moved
    # start.
    identity = models.CharField(max_length=16, db_collation="C")

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return f"{self.kind} {self.fingerprint[:8]}"

    @property
    def definition(self) -> slicewise.PartitionDefinition:
        """The rule itself, with its arithmetic."""
        known = _parsed.get(self.fingerprint)
        if known is None:
            known = _parsed[self.fingerprint] = slicewise.PartitionDefinition.from_json(self.spec)
        return known

    @classmethod
    def of(cls, spec: dict[str, Any]) -> "PartitionDefinition":
        """The row of this rule, made if it is new."""
        rule = slicewise.PartitionDefinition.from_json(spec)
        row, _ = cls.objects.get_or_create(
            fingerprint=rule.fingerprint,
            defaults={"kind": rule.kind, "spec": rule.to_json(), "identity": rule.identity},
        )
        return row
