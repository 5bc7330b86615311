"""The precedence of the reasons to skip a partition, for preview and admission.

Preview and admission differ in where the facts come from: the preview plans the upstream assets of
the same request first, and the admission reads the rows of upstream partitions that have ended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import slicewise
from assets_app.models import SkipReason

Partitions = slicewise.PartitionSet
# Sorts partitions blocked by missing upstream partitions by reason; the sets have no partition in
# common.
Blocking = Callable[[Partitions], Mapping[SkipReason, Partitions]]


@dataclass(frozen=True, slots=True)
class Decision:
    """The partitions to materialize, and the partitions to skip, each by its first reason."""

    to_materialize: Partitions
    skipped: Mapping[SkipReason, Partitions]


def decide_by_precedence(
    requested: Partitions,
    *,
    existing: Partitions,
    removed: Partitions,
    held: Partitions,
    blocking: Blocking,
) -> Decision:
    """Decide by the first reason that applies: data exists, the definition lost the partition,
    another run holds it, an upstream partition is missing.
    """
    rest = requested
    skipped: dict[SkipReason, Partitions] = {}
    for reason, partitions in (
        (SkipReason.EXISTS, existing),
        (SkipReason.NO_SUCH_PARTITION, removed),
        (SkipReason.IN_FLIGHT, held),
    ):
        skipped[reason] = rest & partitions
        rest -= partitions
    for reason, partitions in blocking(rest).items():
        skipped[reason] = partitions
        rest -= partitions
    return Decision(rest, skipped)
