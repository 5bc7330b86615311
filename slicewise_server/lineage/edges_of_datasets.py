"""Edges between datasets, from the events of other tools."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from assets_app.models import Asset
from assets_app.queries.clock import database_now
from slicewise_server.lineage.asset_matching import AssetMatcher
from slicewise_server.lineage.dataset_names import dataset_name
from slicewise_server.lineage.models import LineageEdge
from slicewise_server.lineage.received_runs import ReceivedDataset, ReceivedRun
from slicewise_server.lineage.truncated_jobs import UnstoredEdges, store_truncated_jobs

MOST_EDGES = 1_000
"""The most edges that one request adds. Pages show the number of the other edges of each job."""


class _End(NamedTuple):
    """One end of an edge: an asset with the name of its whole dataset, or another dataset."""

    asset: Asset | None
    namespace: str
    name: str


class _Edge(NamedTuple):
    """An edge of a job, the same for all events of the job."""

    job_namespace: str
    job_name: str
    upstream: _End
    downstream: _End

    @property
    def digest(self) -> str:
        names = (
            *(str(self.upstream.asset and self.upstream.asset.pk), *self.upstream[1:]),
            *(str(self.downstream.asset and self.downstream.asset.pk), *self.downstream[1:]),
            *(self.job_namespace, self.job_name),
        )
        return sha256("\0".join(names).encode()).hexdigest()


class _RunEnds:
    """The datasets of one event, each once, however many folders of an asset the event names."""

    def __init__(self, run: ReceivedRun, matcher: AssetMatcher) -> None:
        self._job = (run.job_namespace, run.job_name)
        self._upstream = _ends(run.inputs, matcher)
        self._downstream = _ends(run.outputs, matcher)
        self._upstream_assets = {end: None for end in self._upstream if end.asset}

    @property
    def edge_count(self) -> int:
        """The number of edges, without going through the edges: they may be a million."""
        downstream_assets = {end for end in self._downstream if end.asset}
        dataset_count = len(self._downstream) - len(downstream_assets)
        return (
            len(downstream_assets) * len(self._upstream)
            + dataset_count * len(self._upstream_assets)
            - len(downstream_assets & self._upstream_assets.keys())
        )

    def has(self, edge: _Edge) -> bool:
        """Return whether an edge is of this event."""
        is_of_job = self._job == edge[:2]
        return is_of_job and edge.upstream in self._upstream and edge.downstream in self._downstream

    def edges(self) -> Iterator[_Edge]:
        """Yield the edges of which at least one end is an asset."""
        for downstream in self._downstream:
            for upstream in self._upstream if downstream.asset else self._upstream_assets:
                if upstream != downstream:
                    yield _Edge(*self._job, upstream, downstream)


def record_edges(runs: Sequence[ReceivedRun], matcher: AssetMatcher) -> int:
    """Add an edge from each input to each output where at least one of the two is an asset; return
    the number of edges that are not added.

    An edge that is known gets a new time, unless the event is older.
    """
    now = database_now()
    edges: dict[_Edge, ReceivedRun] = {}
    unstored: list[UnstoredEdges] = []
    for run in sorted(runs, key=lambda run: run.event_time):
        unstored_count = _add_edges(edges, run, _RunEnds(run, matcher))
        unstored.append(UnstoredEdges.of(run, unstored_count, now))
    _store(edges, now)
    return store_truncated_jobs(unstored)


def _add_edges(edges: dict[_Edge, ReceivedRun], run: ReceivedRun, ends: _RunEnds) -> int:
    """Add the edges of a run while there is room; return the number of the other edges."""
    for edge in ends.edges():
        if len(edges) >= MOST_EDGES:
            break
        edges[edge] = run
    run_edges = [edge for edge in edges if ends.has(edge)]
    edges.update(dict.fromkeys(run_edges, run))
    return ends.edge_count - len(run_edges)


def _store(edges: dict[_Edge, ReceivedRun], now: datetime) -> None:
    rows = {row.digest: row for row in (_row(edge, run, now) for edge, run in edges.items())}
    present_edges = LineageEdge.objects.filter(digest__in=rows)
    for digest, last_seen_at in present_edges.values_list("digest", "last_seen_at"):
        if last_seen_at > rows[digest].last_seen_at:
            del rows[digest]
    LineageEdge.objects.bulk_create(
        # In one order, so that no two requests wait for each other.
        [rows[digest] for digest in sorted(rows)],
        update_conflicts=True,
        unique_fields=("digest",),
        update_fields=("upstream", "downstream", "last_run_id", "last_seen_at"),
    )


def _ends(datasets: Sequence[ReceivedDataset], matcher: AssetMatcher) -> dict[_End, None]:
    """Return the ends of datasets as a set with an order."""
    ends: dict[_End, None] = {}
    for dataset in datasets:
        matches = matcher.matches(dataset)
        if not matches:
            ends[_End(None, dataset.namespace, dataset.name)] = None
        for asset, _folder in matches:
            ends[_End(asset, *dataset_name(asset.name, asset.canonical_uri))] = None
    return ends


def _row(edge: _Edge, run: ReceivedRun, now: datetime) -> LineageEdge:
    seen_at = min(run.event_time, now)
    return LineageEdge(
        digest=edge.digest,
        upstream=edge.upstream.asset,
        upstream_namespace=edge.upstream.namespace,
        upstream_name=edge.upstream.name,
        downstream=edge.downstream.asset,
        downstream_namespace=edge.downstream.namespace,
        downstream_name=edge.downstream.name,
        job_namespace=edge.job_namespace,
        job_name=edge.job_name,
        last_run_id=run.run_id,
        first_seen_at=seen_at,
        last_seen_at=seen_at,
    )
