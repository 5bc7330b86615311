"""The assets of a request, upstream before downstream, each with its partitions: chosen assets by
the period, upstream assets by need, downstream assets by the partitions that follow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from backfills_app.models import AssetRole
from backfills_app.services.partitions.frozen_assets import (
    FrozenAsset,
    edges_of,
    reads_of,
    refuse_too_many_partitions,
)
from backfills_app.services.partitions.scopes import (
    AssetScope,
    ScopeDraft,
    partition_count,
    scopes_of,
)
from backfills_app.services.request.frozen_request import FrozenRequest
from backfills_app.services.request.layers import follow
from backfills_app.services.request.ordering import in_order
from backfills_app.services.request.periods import Hull, Period, chosen_drafts, hull_of, read_period
from partitions_app.rules import has_time
from slicewise_server.web.request_errors import InvalidRequest

Drafts = dict[FrozenAsset, ScopeDraft]


@dataclass(frozen=True, slots=True)
class Tree:
    """All assets of a request, upstream before downstream.

    ``chosen`` are the chosen assets in the order of the request. ``refused`` are sentences on
    assets and partitions that are left out.
    """

    scopes: Sequence[AssetScope]
    chosen: Sequence[AssetScope]
    refused: Sequence[str]
    hull: Hull


def grow(frozen: FrozenRequest) -> Tree:
    """Return the tree of the chosen assets.

    Raises InvalidRequest, on the field that is the cause, if no partition can be materialized.
    """
    period = read_period(frozen)
    drafts = chosen_drafts(frozen, period)
    if frozen.request.upstream:
        drafts |= {
            asset: ScopeDraft(asset, AssetRole.UPSTREAM, [asset.nothing] * period.number)
            for asset in frozen.upstream
        }
        _add_needed(frozen, drafts, period)
    for draft in drafts.values():
        draft.drop_empty()
    chosen = [drafts[asset] for asset in frozen.chosen if drafts[asset].terms]
    upstream = [drafts[asset] for asset in frozen.upstream if drafts[asset].terms]
    if not [draft for draft in chosen + upstream if has_time(draft.frozen.definition)]:
        raise InvalidRequest(
            {period.field: "No partition with a window can be materialized in this period."}
        )
    refuse_too_many_partitions(partition_count(chosen + upstream), "upstream")
    hull = hull_of([draft.whole for draft in chosen]) or period.hull
    following = follow(frozen, chosen, upstream, hull)
    kept = {draft.frozen: draft for draft in [*chosen, *upstream, *following.drafts]}
    refuse_too_many_partitions(partition_count(kept.values()), "downstream")
    scopes = scopes_of([kept[asset] for asset in in_order(reads_of(list(kept)))], frozen.at)
    explanations = [_explain_empty(draft) for draft in drafts.values() if not draft.terms]
    by_id = {scope.asset.pk: scope for scope in scopes}
    return Tree(
        scopes=scopes,
        chosen=[by_id[draft.frozen.asset.pk] for draft in chosen],
        refused=[*frozen.refused, *explanations, *following.refused],
        hull=hull,
    )


def _add_needed(frozen: FrozenRequest, drafts: Drafts, period: Period) -> None:
    """Add to the partitions of each upstream asset the partitions that other assets need."""
    beginning = period.hull.start
    for asset in reversed(frozen.in_order):
        draft = drafts[asset]
        draft.keep_past(frozen.at)
        draft.drop_repeated()
        for edge in edges_of(asset, list(drafts), frozen.at, lambda _: beginning):
            if edge.upstream_scope is None:
                continue
            upstream_terms = drafts[edge.upstream_scope].terms
            if not edge.reads_whatever_exists:
                needed = [
                    edge.needed(term) if term else edge.upstream_scope.nothing
                    for term in draft.terms
                ]
            else:
                # Only the partitions of the period are needed: a missing one blocks nothing.
                needed = list(period.of(edge.upstream_scope).terms) if any(draft.terms) else []
            upstream_terms[: len(needed)] = [
                term | needed_term
                for term, needed_term in zip(upstream_terms, needed, strict=False)
            ]


def _explain_empty(draft: ScopeDraft) -> str:
    name = draft.frozen.asset.name
    if draft.not_ended:
        return f"{name} is skipped: partitions in this range have not ended yet."
    if draft.role == AssetRole.UPSTREAM:
        return f"{name} is skipped: no partitions needed."
    if draft.frozen.asset.finds_partitions:
        return f"{name} is skipped: no partitions yet; runs discover them."
    return f"{name} is skipped: no partitions in this range."
