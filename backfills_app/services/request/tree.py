"""The assets of a request, upstream before downstream, each with its partitions: chosen assets by
the period, upstream assets by need, downstream assets by the partitions that follow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from assets_app.models import BundleVersion
from backfills_app.models import AssetRole
from backfills_app.services.choosing import ended_by, refuse_too_many
from backfills_app.services.drafts import (
    Drafts,
    reads_of,
    refuse_circle,
    upstream_drafts,
)
from backfills_app.services.partitions.cuts import in_current_definition
from backfills_app.services.partitions.scopes import AssetScope, edges_of, join
from backfills_app.services.request.backfill_request import BackfillRequest
from backfills_app.services.request.layers import follow
from backfills_app.services.request.ordering import in_order
from backfills_app.services.request.periods import Hull, Period, Terms, hull_of, read_period
from partitions_app.rules import has_time
from slicewise_server.web.request_errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Tree:
    """All assets of a request, upstream before downstream.

    ``chosen`` are the chosen assets in the order of the request. ``refused`` are sentences on
    assets and partitions that are left out.
    """

    parts: Sequence[AssetScope]
    chosen: Sequence[AssetScope]
    refused: Sequence[str]
    hull: Hull


def grow(
    request: BackfillRequest,
    drafts: Drafts,
    bundle_version: BundleVersion | None,
    request_time: datetime,
) -> Tree:
    """Return the tree of the chosen assets.

    Raises InvalidRequest, on the field that is the cause, if no partition can be materialized.
    """
    no_drafts = Drafts((), ())
    above_drafts = (
        upstream_drafts(request, drafts.parts, bundle_version) if request.upstream else no_drafts
    )
    reads = reads_of([*drafts.parts, *above_drafts.parts])
    refuse_circle(request, reads)
    period = read_period(request, drafts.parts, above_drafts.parts, request_time)
    terms_by_scope = _chosen_terms(request, drafts.parts, period)
    if request.upstream:
        terms_by_scope |= {scope: [scope.nothing] * period.number for scope in above_drafts.parts}
        _add_needed(terms_by_scope, reads, period)
    for scope, scope_terms in terms_by_scope.items():
        scope.terms = tuple(term for term in scope_terms if term)
    chosen = [scope for scope in drafts.parts if scope.terms]
    upstream = [scope for scope in above_drafts.parts if scope.terms]
    if not any(has_time(scope.definition) for scope in chosen + upstream):
        raise InvalidRequest({request.period_field: "Nothing that has time can be made there."})
    refuse_too_many(sum(len(scope.whole) for scope in chosen + upstream), "upstream")
    hull = hull_of(scope.whole for scope in chosen) or period.hull
    following = follow(request, chosen, upstream, bundle_version, hull, request_time)
    scopes = in_order(reads_of([*chosen, *upstream, *following.parts]))
    refuse_too_many(sum(map(_partition_count, scopes)), "downstream")
    join(scopes, request_time)
    left_out = [_explain_empty(scope) for scope in terms_by_scope if not scope.terms]
    refused = [*drafts.refused, *above_drafts.refused, *left_out, *following.refused]
    return Tree(scopes, chosen, refused, hull)


def _chosen_terms(
    request: BackfillRequest, drafts: Sequence[AssetScope], period: Period
) -> dict[AssetScope, Terms]:
    """Return the partitions of the chosen assets in the period, term by term."""
    terms_by_scope: dict[AssetScope, Terms] = {}
    for scope in drafts:
        chosen = period.of(scope)
        scope.not_over = chosen.not_over
        terms_by_scope[scope] = [in_current_definition(scope.asset, term) for term in chosen.terms]
    number = sum(len(term) for scope_terms in terms_by_scope.values() for term in scope_terms)
    if not number:
        message = (
            f"{drafts[0].asset.name} has none of these partitions any more."
            if len(drafts) == 1
            else "None of these assets has partitions there."
        )
        raise InvalidRequest({request.period_field: message})
    refuse_too_many(number, request.period_field)
    return terms_by_scope


def _add_needed(
    terms_by_scope: dict[AssetScope, Terms],
    reads: Mapping[AssetScope, set[AssetScope]],
    period: Period,
) -> None:
    """Add to the partitions of each upstream asset the partitions that other assets need."""
    scopes = list(reads)
    for scope in reversed(in_order(reads)):
        _keep_ended(scope, terms_by_scope[scope], period.at)
        for edge in edges_of(scope, scopes, period.at, beginning=period.hull.start):
            if edge.part is None:
                continue
            upstream_terms, scope_terms = terms_by_scope[edge.part], terms_by_scope[scope]
            if not edge.reads_whatever_there_is:
                needed = [edge.needed(term) if term else edge.part.nothing for term in scope_terms]
            else:
                # Only the partitions of the period are needed, since holes do not matter.
                needed = list(period.of(edge.part).terms) if any(scope_terms) else []
            upstream_terms[: len(needed)] = [
                term | needed_term
                for term, needed_term in zip(upstream_terms, needed, strict=False)
            ]


def _keep_ended(scope: AssetScope, scope_terms: Terms, request_time: datetime) -> None:
    """Keep in each term the partitions that have ended and that exist, without partitions of
    earlier terms.
    """
    earlier_partitions = scope.nothing
    for number, term in enumerate(scope_terms):
        ended = ended_by(term, request_time)
        scope.not_over += len(term) - len(ended)
        scope_terms[number] = in_current_definition(scope.asset, ended) - earlier_partitions
        earlier_partitions |= scope_terms[number]


def _partition_count(scope: AssetScope) -> int:
    return len(scope.whole)


def _explain_empty(scope: AssetScope) -> str:
    name = scope.asset.name
    if scope.not_over:
        return f"{name} is skipped: partitions in this range have not ended yet."
    if scope.role == AssetRole.UPSTREAM:
        return f"{name} is skipped: no partitions needed."
    if scope.asset.finds_partitions:
        return f"{name} is skipped: no partitions yet; runs discover them."
    return f"{name} is skipped: no partitions in this range."
