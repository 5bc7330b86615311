"""The upstream partitions that partitions of one asset need, and the present state of each."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db import connection
from django.db.models import Q

from assets_app.models import Asset, AssetDependency
from assets_app.queries.any_materialized import any_materialized
from assets_app.queries.edges import edge_without_bounds, with_time_on_record
from partitions_app.edges import Edge
from partitions_app.labels import label_of
from partitions_app.rules import UpstreamGap

# A year of minutes for one partition is not counted while a page loads, and of many partitions not
# all needs are.
_MOST_NEEDED = 20_000
_MOST_OF_ALL_KEYS = 50_000
_MOST_NAMED = 3

_STATES = """
SELECT requested.number, partition.version > 0, partition.state, partition.held_by_id,
    partition.last_run_id, coalesce(maker.trigger = 'backfill', false), partition.materialized_at,
    materialization.created_at, last_tick.created_at
FROM unnest(%s::int[], %s::bigint[], %s::text[], %s::text[])
    AS requested(number, asset_id, identity, key)
JOIN assets_app_assetpartition AS partition
    ON partition.asset_id = requested.asset_id AND partition.identity = requested.identity
   AND partition.key = requested.key
LEFT JOIN assets_app_materialization AS materialization
    ON materialization.partition_id = partition.id AND materialization.version = partition.version
LEFT JOIN assets_app_run AS maker ON maker.id = materialization.run_id
-- As in the scheduler: the write that the next write of a partition without a window follows.
LEFT JOIN LATERAL (
    SELECT earlier.created_at
    FROM assets_app_materialization AS earlier
    LEFT JOIN assets_app_run AS run ON run.id = earlier.run_id
    WHERE earlier.partition_id = partition.id AND partition.window_start IS NULL
      AND run.trigger IS DISTINCT FROM 'backfill'
    ORDER BY earlier.version DESC LIMIT 1
) AS last_tick ON true
"""


class UpstreamPartition(NamedTuple):
    """An upstream partition that is not materialized; ``state`` is missing, failed or running."""

    asset: Asset
    key: str
    state: str
    run: int | None

    @property
    def name(self) -> str:
        """The asset and the label of the partition."""
        return f"{self.asset.name} {label_of(self.asset.definition, self.key)}".strip()


@dataclass(frozen=True, slots=True)
class UpstreamNeed:
    """The partitions of one upstream asset that a partition needs.

    ``absent`` are the first partitions that are not materialized, failed ones first.
    ``upstream_gap`` names needed partitions that do not exist. ``is_counted`` is False where too
    many are needed. ``backfilled`` counts the materialized partitions that a backfill wrote, and
    ``newest_at`` is when the newest was materialized. ``needs_none`` is True where a mapping leaves
    no partition to need. ``recorded_at`` is when the newest materialization was recorded: other
    programs report writes later, and the scheduler follows the record. ``edge`` is the edge
    without bounds of time, and ``ends`` are the keys of the first and the last needed partition,
    unless these are not counted. ``first_tick_at`` and ``last_tick_at`` are the first and the last
    of the times at which the needed partitions were written last other than by a backfill: of an
    asset without time. The first is None where a partition was never written so.
    """

    asset: Asset
    needed: int
    materialized: int
    absent: tuple[UpstreamPartition, ...] = ()
    upstream_gap: UpstreamGap | None = None
    is_counted: bool = True
    backfilled: int = 0
    newest_at: datetime | None = None
    needs_none: bool = False
    recorded_at: datetime | None = None
    edge: Edge | None = None
    ends: tuple[str, ...] = ()
    first_tick_at: datetime | None = None
    last_tick_at: datetime | None = None

    @property
    def is_ready(self) -> bool:
        """Whether all needed partitions are known to be materialized, and there is at least one, as
        schedules by assets require.
        """
        if self.needs_none:
            return True
        return self.is_counted and self.materialized >= self.needed > 0 and not self.upstream_gap

    @property
    def missing(self) -> int:
        """How many of the needed partitions are not materialized."""
        return self.needed - self.materialized if self.is_counted else 0

    @property
    def more(self) -> int:
        """How many partitions are missing beside the named ones."""
        return max(self.missing - len(self.absent), 0)

    @property
    def failed(self) -> UpstreamPartition | None:
        """A needed partition that failed, if any."""
        return next((row for row in self.absent if row.state == "failed"), None)

    @property
    def text(self) -> str:
        """``17 of 31; 14 do not exist: 2024-01-01 to 2024-01-14``: the partitions that do not
        exist are needed too, as in the progress of a schedule.
        """
        upstream_gap = self.upstream_gap
        needed = self.needed + (upstream_gap.nonexistent.partitions if upstream_gap else 0)
        text = f"{self.materialized:,} of {needed:,}" if self.is_counted else f"needs {needed:,}"
        return f"{text}; {upstream_gap.text}" if upstream_gap else text


def upstream_needs(
    asset: Asset, keys: Sequence[str], now: datetime
) -> dict[str, list[UpstreamNeed]]:
    """Return the needs of partitions by key, for each upstream asset: two statements, and one more
    for each asset of which all of time is needed.

    Keys that the definition no longer has are left out. Not counted are needs of one key beyond
    20,000 partitions, and needs of all keys beyond 50,000.
    """
    dependencies = (
        AssetDependency.objects.filter(
            Q(inlet=True) | Q(scheduling=True) | Q(fresh=True), downstream=asset
        )
        .select_related("upstream__partition_definition")
        .order_by("pk")
    )
    edges: list[_BoundedEdge] = []
    for dependency in dependencies:
        edge = edge_without_bounds(dependency, asset)
        if not edge.reads_whatever_exists:
            bounded = with_time_on_record(edge, dependency.upstream, now)
            edges.append(_BoundedEdge(dependency.upstream, edge, bounded))
    drafts: list[_Draft] = []
    room_of_all = _MOST_OF_ALL_KEYS
    for key in keys:
        room = min(_MOST_NEEDED, room_of_all)
        key_drafts = _drafts(key, edges, room)
        room_of_all -= sum(len(draft.texts) for draft in key_drafts)
        drafts += key_drafts
    return _with_states(drafts)


def needs_of_any(asset: Asset, names: Collection[str]) -> list[UpstreamNeed]:
    """Return the needs of an asset without partitions for upstream assets of which the schedule
    asks for any one partition: the assets of these names. A need of no partition is not met.
    """
    dependencies = AssetDependency.objects.filter(
        Q(scheduling=True) | Q(fresh=True), downstream=asset, upstream__name__in=names
    ).select_related("upstream__partition_definition")
    needs: list[UpstreamNeed] = []
    for dependency in dependencies:
        if edge_without_bounds(dependency, asset).reads_whatever_exists:
            exists, newest_at = any_materialized(dependency.upstream)
            newest_at = newest_at if dependency.fresh else None
            count = int(exists)
            needs.append(UpstreamNeed(dependency.upstream, count, count, newest_at=newest_at))
    return needs


class _BoundedEdge(NamedTuple):
    """An edge to an upstream asset, without and with the bounds of the time on record."""

    upstream: Asset
    edge: Edge
    bounded: Edge


class _Draft(NamedTuple):
    key: str
    asset: Asset
    edge: Edge
    needed: int
    texts: Sequence[str]
    upstream_gap: UpstreamGap | None
    is_counted: bool
    needs_none: bool


def _drafts(key: str, edges: Sequence[_BoundedEdge], room: int) -> list[_Draft]:
    """Return the needs of a partition of the downstream asset, without the states of the needed
    partitions; needs beyond the room have no keys.
    """
    drafts: list[_Draft] = []
    for upstream, edge, bounded in edges:
        try:
            needed = bounded.needed_by_texts([key])
        except ValueError:
            continue
        excluded = needed.excluded.partitions
        upstream_gap = (
            UpstreamGap(upstream.name, needed.blocking, excluded) if needed.blocking else None
        )
        is_counted = len(needed) <= room
        texts = [upstream_key.text for upstream_key in needed] if is_counted else []
        room -= len(texts)
        drafts.append(
            _Draft(
                key, upstream, edge, len(needed), texts, upstream_gap, is_counted,
                needed.needs_none,
            )
        )  # fmt: skip
    return drafts


class _State(NamedTuple):
    is_materialized: bool
    state: str
    held_by: int | None
    last_run: int | None
    is_from_backfill: bool
    materialized_at: datetime | None
    recorded_at: datetime | None
    ticked_at: datetime | None


def _with_states(drafts: Sequence[_Draft]) -> dict[str, list[UpstreamNeed]]:
    pairs = list(dict.fromkeys((draft.asset, text) for draft in drafts for text in draft.texts))
    states = _states(pairs)
    needs: dict[str, list[UpstreamNeed]] = defaultdict(list)
    for draft in drafts:
        present_states = [states.get((draft.asset.pk, text)) for text in draft.texts]
        made_states = [state for state in present_states if state and state.is_materialized]
        absent = sorted(
            (
                _absent(draft.asset, text, state)
                for text, state in zip(draft.texts, present_states, strict=True)
                if state is None or not state.is_materialized
            ),
            key=lambda row: row.state != "failed",
        )
        ticks = [state.ticked_at for state in present_states if state and state.ticked_at]
        needs[draft.key].append(
            UpstreamNeed(
                draft.asset,
                draft.needed,
                len(made_states),
                tuple(absent[:_MOST_NAMED]),
                draft.upstream_gap,
                draft.is_counted,
                sum(state.is_from_backfill for state in made_states),
                max((s.materialized_at for s in made_states if s.materialized_at), default=None),
                draft.needs_none,
                max((s.recorded_at for s in made_states if s.recorded_at), default=None),
                draft.edge,
                (draft.texts[0], draft.texts[-1]) if draft.texts else (),
                min(ticks) if ticks and len(ticks) == len(draft.texts) else None,
                max(ticks, default=None),
            )
        )
    return needs


def _absent(asset: Asset, key: str, state: _State | None) -> UpstreamPartition:
    if state is None:
        return UpstreamPartition(asset, key, "missing", None)
    if state.held_by is not None:
        return UpstreamPartition(asset, key, "running", state.held_by)
    return UpstreamPartition(asset, key, state.state, state.last_run)


def _states(pairs: Iterable[tuple[Asset, str]]) -> Mapping[tuple[int, str], _State]:
    """Read the states of partitions, by asset id and key: one statement, or none."""
    requested_pairs = list(pairs)
    if not requested_pairs:
        return {}
    numbers, asset_ids = (
        list(range(len(requested_pairs))),
        [asset.pk for asset, _ in requested_pairs],
    )
    identities, keys = (
        [asset.identity for asset, _ in requested_pairs],
        [key for _, key in requested_pairs],
    )
    with connection.cursor() as cursor:
        cursor.execute(_STATES, [numbers, asset_ids, identities, keys])
        return {
            (requested_pairs[number][0].pk, requested_pairs[number][1]): _State(*state)
            for number, *state in cursor.fetchall()
        }
