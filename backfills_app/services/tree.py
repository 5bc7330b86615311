"""The assets of a request, upstream before downstream, each with its partitions: those of the
chosen assets by the period, of what is upstream those that are needed, of what is downstream those
that follow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from accounts_app.errors import InvalidRequest
from assets_app.models import BundleVersion
from backfills_app.models import AssetRole
from backfills_app.services.choosing import ended_by, refuse_too_many
from backfills_app.services.cuts import current_part
from backfills_app.services.drafts import (
    Drafts,
    reads_of,
    refuse_circle,
    upstream_drafts,
)
from backfills_app.services.layers import follow
from backfills_app.services.ordering import in_order
from backfills_app.services.parts import Part, edges_of, join
from backfills_app.services.periods import Hull, Period, Terms, hull_of, read_period
from backfills_app.services.requests import BackfillRequest
from partitions_app.rules import has_time


@dataclass(frozen=True, slots=True)
class Tree:
    """All assets of a request, upstream before downstream.

    ``chosen`` are those of them that were chosen, in the order of the request. ``refused`` are
    sentences on what is left out.
    """

    parts: Sequence[Part]
    chosen: Sequence[Part]
    refused: Sequence[str]
    hull: Hull


def grow(
    request: BackfillRequest,
    drafts: Drafts,
    bundle_version: BundleVersion | None,
    at: datetime,
) -> Tree:
    """Return the tree of the chosen assets.

    InvalidRequest where nothing of it can be made, on the field that says so.
    """
    none = Drafts((), ())
    above = upstream_drafts(request, drafts.parts, bundle_version) if request.upstream else none
    reads = reads_of([*drafts.parts, *above.parts])
    refuse_circle(request, reads)
    period = read_period(request, drafts.parts, above.parts, at)
    terms = _chosen_terms(request, drafts.parts, period)
    if request.upstream:
        terms |= {part: [part.nothing] * period.number for part in above.parts}
        _add_needed(terms, reads, period)
    for part, some in terms.items():
        part.terms = tuple(term for term in some if term)
    chosen = [part for part in drafts.parts if part.terms]
    upstream = [part for part in above.parts if part.terms]
    if not any(has_time(part.definition) for part in chosen + upstream):
        raise InvalidRequest({request.period_field: "Nothing that has time can be made there."})
    refuse_too_many(sum(len(part.whole) for part in chosen + upstream), "upstream")
    hull = hull_of(part.whole for part in chosen) or period.hull
    following = follow(request, chosen, upstream, bundle_version, hull, at)
    parts = in_order(reads_of([*chosen, *upstream, *following.parts]))
    refuse_too_many(sum(map(_size, parts)), "downstream")
    join(parts, at)
    left_out = [_why_nothing(part) for part in terms if not part.terms]
    refused = [*drafts.refused, *above.refused, *left_out, *following.refused]
    return Tree(parts, chosen, refused, hull)


def _chosen_terms(
    request: BackfillRequest, drafts: Sequence[Part], period: Period
) -> dict[Part, Terms]:
    """Return the partitions of the chosen assets in the period, term by term."""
    terms: dict[Part, Terms] = {}
    for part in drafts:
        found = period.of(part)
        part.not_over = found.not_over
        terms[part] = [current_part(part.asset, term) for term in found.terms]
    number = sum(len(term) for some in terms.values() for term in some)
    if not number:
        said = (
            f"{drafts[0].asset.name} has none of these partitions any more."
            if len(drafts) == 1
            else "None of these assets has partitions there."
        )
        raise InvalidRequest({request.period_field: said})
    refuse_too_many(number, request.period_field)
    return terms


def _add_needed(terms: dict[Part, Terms], reads: Mapping[Part, set[Part]], period: Period) -> None:
    """Add to the partitions of each asset those that the others need of it."""
    parts = list(reads)
    for part in reversed(in_order(reads)):
        _settle(part, terms[part], period.at)
        for edge in edges_of(part, parts, period.at, beginning=period.hull.start):
            if edge.part is None:
                continue
            above, own = terms[edge.part], terms[part]
            if not edge.reads_whatever_there_is:
                needed = [edge.needed(term) if term else edge.part.nothing for term in own]
            else:
                # No more of it than the period, since holes do not matter.
                needed = list(period.of(edge.part).terms) if any(own) else []
            above[: len(needed)] = [term | more for term, more in zip(above, needed, strict=False)]


def _settle(part: Part, terms: Terms, at: datetime) -> None:
    """Keep of the terms what is over and there, each without those before it."""
    seen = part.nothing
    for number, term in enumerate(terms):
        over = ended_by(term, at)
        part.not_over += len(term) - len(over)
        terms[number] = current_part(part.asset, over) - seen
        seen |= terms[number]


def _size(part: Part) -> int:
    return len(part.whole)


def _why_nothing(part: Part) -> str:
    name = part.asset.name
    if part.not_over:
        return f"{name} is skipped: partitions in this range have not ended yet."
    if part.role == AssetRole.UPSTREAM:
        return f"{name} is skipped: no partitions needed."
    if part.asset.finds_partitions:
        return f"{name} is skipped: no partitions yet; runs discover them."
    return f"{name} is skipped: no partitions in this range."
