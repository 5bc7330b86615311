"""Small questions about rules, as columns and other rows keep them."""

from collections.abc import Mapping
from typing import Any

import slicewise
from slicewise.mapping import WindowMapping


def has_time(definition: slicewise.PartitionDefinition | None) -> bool:
    """Whether the definition cuts time."""
    return definition is not None and definition.time_dimension is not None


def identity_of(definition: slicewise.PartitionDefinition | None) -> str:
    """What slices of a definition are kept under: `Asset.identity` of an asset that has it."""
    return "whole" if definition is None else definition.identity


def mapping_of(spec: Mapping[str, Any] | None) -> slicewise.PartitionMapping | None:
    """An explicit mapping of a dependency; None for overlap.

    Raises what `slicewise.PartitionMapping.from_json` does.
    """
    return None if spec is None else slicewise.PartitionMapping.from_json(spec)


def goes_by_windows(mapping: slicewise.PartitionMapping | None) -> bool:
    """Whether what a window needs is found from where it lies, as overlap and offsets find it.

    Other mappings need the same for all windows: all of time, or the last of it, as far as it is
    bounded.
    """
    return mapping is None or isinstance(mapping, WindowMapping)


def needs_all_of_time(
    downstream: slicewise.PartitionDefinition | None,
    upstream: slicewise.PartitionDefinition | None,
    mapping: slicewise.PartitionMapping | None,
) -> bool:
    """Whether upstream windows are needed whatever the downstream window is: all of their time, or
    the last of it. It begins with the first one that was ever made.
    """
    by_own_window = has_time(downstream) and goes_by_windows(mapping)
    return has_time(upstream) and not by_own_window
