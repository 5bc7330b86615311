"""The choice of a backfill's assets in words: the same text in its name, on pages and
for programs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from slicewise.texts import listed

_MOST_NAMED = 2
# Leaves room for the time in the name of a backfill.
_LONGEST = 150


def chosen_text(chosen_by: Mapping[str, Any], asset: str) -> str:
    """Return ``group G``, ``tag T``, ``a, b and 3 more``, or the name of the only asset.

    ``chosen_by`` is the field of a backfill: empty for partitions of one asset.
    """
    if group := chosen_by.get("asset_group"):
        text = f"group {group}"
    elif tag := chosen_by.get("asset_tag"):
        text = f"tag {tag}"
    else:
        text = _names_text(chosen_by.get("assets") or [asset])
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _names_text(names: Sequence[str]) -> str:
    if len(names) == _MOST_NAMED:
        return " and ".join(names)
    return listed(names, _MOST_NAMED)
