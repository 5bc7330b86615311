"""Freshness: how long after its window each partition of an asset is to be there (AIP-73)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from slicewise.declaring.lateness_spans import SECOND, check_span, span_text
from slicewise.errors import DefinitionError
from slicewise.partitions.definition import PartitionDefinition

_EXAMPLE = "timedelta(hours=2)"


@dataclass(frozen=True)
class Freshness:
    """How long after the end of its window each partition of an asset is to be there.

    ``within`` is a positive timedelta of whole seconds: a partition without data is overdue from so
    long after the end of its window. ``warn`` is a shorter one, from which on the partition counts
    as late. Raises DefinitionError.
    """

    within: timedelta
    warn: timedelta | None = None

    def __post_init__(self) -> None:
        check_span("Freshness(within=...)", self.within, example=_EXAMPLE)
        if self.warn is None:
            return
        check_span("Freshness(warn=...)", self.warn, example=_EXAMPLE)
        if self.warn >= self.within:
            raise DefinitionError(
                f"warn={span_text(self.warn)} is not shorter than"
                f" within={span_text(self.within)}; write a shorter time, or leave warn out"
            )

    def __repr__(self) -> str:
        warn = "" if self.warn is None else f", warn={span_text(self.warn)}"
        return f"Freshness(within={span_text(self.within)}{warn})"

    def to_json(self) -> dict[str, Any]:
        """Return ``{"within": ..., "warn": ...}`` in seconds, without ``"warn"`` if there is
        none.
        """
        warn = {} if self.warn is None else {"warn": self.warn // SECOND}
        return {"within": self.within // SECOND, **warn}

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> "Freshness":
        """Return the freshness of its JSON. Raises KeyError or DefinitionError."""
        warn = json.get("warn")
        return cls(
            timedelta(seconds=json["within"]), None if warn is None else timedelta(seconds=warn)
        )


def check_freshness(value: object) -> None:
    """Raise DefinitionError for a value that is neither a Freshness nor None."""
    if value is None or isinstance(value, Freshness):
        return
    hint = "Freshness(within=timedelta(hours=2))"
    if isinstance(value, timedelta):
        hint = f"Freshness(within={span_text(value)})"
    raise DefinitionError(f"freshness takes a Freshness, not {value!r}; write {hint}")


def check_has_windows(freshness: Freshness | None, partition: PartitionDefinition | None) -> None:
    """Raise DefinitionError for the freshness of an asset without windows."""
    if freshness is not None and (partition is None or partition.time_dimension is None):
        raise DefinitionError(
            "freshness counts from the end of a window, and this asset has no partitions by time;"
            ' write partition=PartitionByInterval("@daily"), or leave freshness out'
        )
