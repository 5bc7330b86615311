"""Notes on assets whose dimensions of segments do not pair (need rules 2 and 3)."""

from collections.abc import Iterator, Mapping
from typing import Any

from slicewise.declaring.schedules import schedule_names
from slicewise.errors import DefinitionError
from slicewise.mapping.partition_mapping import PartitionMapping, WindowMapping
from slicewise.mapping.relation import paired_segments
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.runtime_keys import is_runtime

Json = Mapping[str, Any]


def pairing_notes(declared: Json) -> Iterator[tuple[Json, str]]:
    """Yield the producer and a sentence for each pair of assets whose segments do not pair.

    `declared` is the report of `load_bundle`.
    """
    by_name = {asset["name"]: asset["partition"] for asset in declared["assets"]}
    for producer in declared["producers"]:
        by_name |= {outlet["name"]: producer["partition"] for outlet in producer["outlets"]}
    for producer in declared["producers"]:
        names = [*producer["inlets"], *schedule_names(producer["schedule"])]
        for name in dict.fromkeys(names):
            sentence = _sentence(producer, name, by_name.get(name))
            if sentence:
                yield producer, sentence


def _sentence(producer: Json, name: str, spec: Json | None) -> str:
    if spec is None or producer["partition"] is None or not _goes_by_segments(producer, name):
        return ""
    downstream, upstream = map(PartitionDefinition.from_json, (producer["partition"], spec))
    if is_runtime(downstream) or is_runtime(upstream):
        return ""
    downstream_names, upstream_names = downstream.space.segment_names, upstream.space.segment_names
    if not downstream_names or not upstream_names:
        return ""
    pairs = paired_segments(downstream, upstream)
    if not pairs:
        return (
            f"its segments ({', '.join(downstream_names)}) and the segments of {name!r}"
            f" ({', '.join(upstream_names)}) have different names, so that each partition"
            f" needs all segments of {name!r}; give equal dimensions one name (name=... on the"
            " definition)"
        )
    for downstream_position, upstream_position in pairs:
        keys = set(downstream.space.segments.lists[downstream_position].keys)
        if not keys & set(upstream.space.segments.lists[upstream_position].keys):
            return (
                f"its segments {downstream_names[downstream_position]!r} have no key in common"
                f" with {upstream_names[upstream_position]!r} of {name!r}, so that no partition"
                " can be materialized; give different dimensions different names"
            )
    return ""


def _goes_by_segments(producer: Json, name: str) -> bool:
    mapping = (producer.get("mappings") or {}).get(name)
    try:
        return mapping is None or isinstance(PartitionMapping.from_json(mapping), WindowMapping)
    except DefinitionError:
        return False
