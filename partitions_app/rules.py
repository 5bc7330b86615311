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
