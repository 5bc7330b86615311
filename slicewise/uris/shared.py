"""Warnings about assets of one bundle that keep their data in the same location."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from slicewise.texts import listed

_NAMED_AT_MOST = 5


def warn_of_shared_uris(
    producers: Sequence[Mapping[str, Any]], assets: Sequence[Mapping[str, Any]]
) -> None:
    """Add a warning to each outlet whose canonical URI another asset has.

    A shared URI is no error: such files may be in use, and two assets may be two names of one data
    set. ``producers`` and ``assets`` are results of `load_bundle`.
    """
    outlets = [outlet for producer in producers for outlet in producer["outlets"]]
    names_by_uri: dict[str, list[str]] = defaultdict(list)
    for asset in [*outlets, *assets]:
        if asset["canonical_uri"] is not None:
            names_by_uri[asset["canonical_uri"]].append(asset["name"])
    for outlet in outlets:
        sharing_names = names_by_uri.get(outlet["canonical_uri"], ())
        other_names = [name for name in sharing_names if name != outlet["name"]]
        if other_names:
            outlet["warnings"] = [*outlet["warnings"], _sentence(other_names)]


def _sentence(other_names: Sequence[str]) -> str:
    shown = listed([repr(name) for name in other_names], _NAMED_AT_MOST)
    verb = "has" if len(other_names) == 1 else "have"
    return f"{shown} {verb} the same uri: each replaces the data of the other"
