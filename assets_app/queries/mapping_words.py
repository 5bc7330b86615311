"""Mappings of edges in words, as graph and tables show the mappings.

The words follow the kinds of definitions and the JSON of a mapping alone: to parse the definitions
of thousands of assets takes longer than the page may take.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Func, JSONField

from partitions_app.models import PartitionDefinition
from slicewise import PartitionAtRuntime, PartitionByProduct, PartitionBySequence

_WITHOUT_TIME = frozenset({PartitionBySequence.kind, PartitionAtRuntime.kind})
# A definition may list thousands of segments, which the words do not need.
_DIMENSION_KINDS = Func(
    F("spec"),
    template="jsonb_path_query_array(%(expressions)s, '$.dimensions[*].definition.kind')",
    output_field=JSONField(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The definition at one end of an edge: the identity, and whether there are partitions and
    time.
    """

    identity: str
    is_partitioned: bool
    has_time: bool

    @classmethod
    def by_definition_id(cls, ids: Collection[int]) -> "dict[int | None, Side]":
        """Return the sides by the ids of definitions, and the side without partitions under None:
        one statement.
        """
        rows = PartitionDefinition.objects.filter(pk__in=ids).annotate(kinds=_DIMENSION_KINDS)
        sides: dict[int | None, Side] = {
            None: cls(identity="whole", is_partitioned=False, has_time=False)
        }
        for pk, kind, identity, kinds in rows.values_list("pk", "kind", "identity", "kinds"):
            dimension_kinds = set(kinds) if kind == PartitionByProduct.kind else {kind}
            sides[pk] = cls(
                identity=identity,
                is_partitioned=True,
                has_time=bool(dimension_kinds - _WITHOUT_TIME),
            )
        return sides


def mapping_words(spec: Mapping[str, Any] | None, downstream: Side, upstream: Side) -> str:
    """Return the partitions that a downstream partition needs, in words: ``latest partition``."""
    if spec is None:
        return _default_words(downstream, upstream)
    kind = str(spec.get("kind", ""))
    # A mapping of an installed package has no words of its own.
    text = _WORDS[kind](spec) if kind in _WORDS else kind
    return f"{text}, if defined" if spec.get("nonexistent") == "ignore" else text


def _default_words(downstream: Side, upstream: Side) -> str:
    if not upstream.is_partitioned:
        return "whole asset"
    if not downstream.is_partitioned:
        return "existing partitions"
    if downstream.identity == upstream.identity:
        return "same partition"
    if downstream.has_time and upstream.has_time:
        return "overlapping windows"
    return "all windows" if upstream.has_time else "same segments"


def _offset_words(spec: Mapping[str, Any]) -> str:
    first = int(spec.get("first", 0))
    last = int(spec.get("last", first))
    if first == last:
        return _one_offset(first)
    if last == 0:
        return f"last {1 - first} windows"
    return f"windows {first:+d} to {last:+d}"


def _one_offset(number: int) -> str:
    if number == 0:
        return "same window"
    noun = "window" if abs(number) == 1 else "windows"
    return f"{abs(number)} {noun} {'earlier' if number < 0 else 'later'}"


def _keys_words(spec: Mapping[str, Any]) -> str:
    count = len(spec.get("keys", ()))
    return "1 named partition" if count == 1 else f"{count:,} named partitions"


_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "overlap": lambda spec: "overlapping windows",
    "offset": _offset_words,
    "all": lambda spec: "all partitions",
    "latest": lambda spec: "latest partition",
    "keys": _keys_words,
}
