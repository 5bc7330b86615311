"""The filters of the list of runs, which the address of the page names."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import F, QuerySet
from django.db.models.functions import Coalesce, Now
from django.http import HttpRequest, QueryDict

from assets_app.models import AssetPartition, Run, RunGroup, ScheduleTick
from assets_app.queries.clock import database_now
from assets_app.queries.run_ids import IdRange, ids_between
from assets_app.queries.shown_errors import ExaminedRuns, searched_for
from slicewise_server.web.storable import is_storable
from slicewise_server.web.typed_ids import ids_of, is_id

# The columns that an instant of the address bounds, by the name in the address.
_BOUNDS = {
    "created_after": "created_at__gte",
    "created_before": "created_at__lt",
    "ended_after": "ended_at__gte",
    "ended_before": "ended_at__lt",
}
FILTERS = (
    "asset", "state", "trigger", "since", "id", "partition", "person", "error", "group", "tick",
    "queue", *_BOUNDS,
)  # fmt: skip
# Filters by which an index leads to few runs.
_FEW = frozenset({"id", "partition", "tick"})
# Fields of the form that are folded in until one of them is used.
_MORE_FILTERS = ("id", "partition", "person", *_BOUNDS)
SPANS = {
    "1h": ("Last hour", timedelta(hours=1)),
    "24h": ("Last 24 hours", timedelta(hours=24)),
    "7d": ("Last 7 days", timedelta(days=7)),
    "30d": ("Last 30 days", timedelta(days=30)),
}
# Orders by which no index leads to the first rows sort the newest runs that match.
MOST_SORTED = 1_000
SORTS = {
    "": "Newest first",
    "oldest": "Oldest first",
    "started": "Last started first",
    "longest": "Longest first",
    "state": "State",
}
_DURATION = Coalesce("ended_at", Now()) - F("started_at")
_ORDERS: dict[str, tuple[Any, ...]] = {
    "started": (F("started_at").desc(nulls_last=True), "-id"),
    "longest": (_DURATION.desc(nulls_last=True), "-id"),
    "state": ("state", "-id"),
}
_MOST_IDS = 500
_MOST_PARTITIONS = 1000


class BoundField(NamedTuple):
    """A field for a bound of time; ``instant`` is None for no text, and for text that is none."""

    name: str
    label: str
    text: str
    instant: datetime | None


class MatchingRuns(NamedTuple):
    """The runs that an address names, and the things that alone are searched, in words, where a
    limit applies.
    """

    rows: QuerySet[Run]
    limit_texts: Sequence[str] = ()


class RunFilters(NamedTuple):
    """The filters of one request, with the rows and instants that the page names."""

    values: dict[str, str]
    group: RunGroup | None
    tick: ScheduleTick | None
    bounds: dict[str, datetime]

    @property
    def is_any(self) -> bool:
        """Whether the list is filtered."""
        return bool(self.values)

    @property
    def shows_more(self) -> bool:
        """Whether a filter is in use that the form folds in otherwise."""
        return any(name in self.values for name in _MORE_FILTERS)

    @property
    def bound_fields(self) -> list[BoundField]:
        """The fields for bounds of time."""
        return [
            BoundField(
                name,
                name.replace("_", " ").capitalize(),
                self.values.get(name, ""),
                self.bounds.get(name),
            )
            for name in _BOUNDS
        ]

    @property
    def bound_texts(self) -> list[tuple[str, datetime]]:
        """The bounds of time in words, each with the instant."""
        return [
            (name.replace("_", " ").capitalize(), instant) for name, instant in self.bounds.items()
        ]


def filters_of(request: HttpRequest) -> RunFilters:
    """Return the filters that the address names; empty ones are left out."""
    query = request.GET
    values = {name: text for name, text in _texts_of(query).items() if text}
    bounds = {name: instant for name in _BOUNDS if (instant := read_instant(values.get(name, "")))}
    group, tick = values.get("group", ""), values.get("tick", "")
    ticks = ScheduleTick.objects.select_related("schedule__producer")
    return RunFilters(
        values,
        RunGroup.objects.filter(pk=group).first() if is_id(group) else None,
        ticks.filter(pk=tick).first() if is_id(tick) else None,
        bounds,
    )


def _texts_of(query: QueryDict) -> dict[str, str]:
    return {name: query.get(name, "").strip() for name in FILTERS}


def matching_runs(query: QueryDict) -> MatchingRuns:
    """Select the runs that the address names, newest first; a text is searched in the newest errors
    of the runs that the other filters leave.
    """
    text = _texts_of(query)
    times = _times(text)
    of_any_error = _runs_of_any_error(text, times)
    if not text["error"]:
        return of_any_error
    search = searched_for(of_any_error.rows, text["error"], _examined_runs(text, times))
    limit_texts = [*of_any_error.limit_texts, *([search.limit_text] if search.limit_text else [])]
    return MatchingRuns(search.rows, limit_texts)


def _examined_runs(text: dict[str, str], times: dict[str, Any]) -> ExaminedRuns | None:
    """Return the runs among whose errors a search looks for those of the filtered runs; None where
    an index leads to the errors of the filtered runs.
    """
    used = {name for name in FILTERS if text[name]} - {"error"}
    if not used or used & _FEW or used == {"group"}:
        return None
    if "group" in used:
        group = int(text["group"]) if is_id(text["group"]) else None
        return ExaminedRuns(Run.objects.filter(group=group), IdRange(), "all runs of the request")
    # A run was created before its end.
    ends = [times[column] for column in ("created_at__lt", "ended_at__lt") if column in times]
    ids = ids_between(times.get("created_at__gte"), min(ends, default=None))
    return ExaminedRuns(Run.objects.all(), ids, "all runs")


def _runs_of_any_error(text: dict[str, str], times: dict[str, Any]) -> MatchingRuns:
    limit_texts: list[str] = []
    rows: QuerySet[Run] = Run.objects.listed()
    exact = {name: text[name] for name in ("state", "trigger", "queue") if text[name]}
    rows = rows.filter(**exact)
    if text["asset"]:
        rows = rows.filter(asset__name__icontains=text["asset"])
    for name in ("group", "tick"):
        if text[name]:
            rows = rows.filter(**{name: int(text[name])}) if is_id(text[name]) else rows.none()
    if text["id"]:
        words = text["id"].replace(",", " ").split()
        rows = rows.filter(pk__in=ids_of(words[:_MOST_IDS]))
        limit_texts += [f"first {_MOST_IDS:,} ids"] if len(words) > _MOST_IDS else []
    if text["person"]:
        rows = rows.filter(requested_by__username__icontains=text["person"])
    if text["partition"]:
        partition_ids = _partitions_of(text["partition"], text["asset"])
        rows = rows.filter(partitions__partition__in=partition_ids[:_MOST_PARTITIONS]).distinct()
        if len(partition_ids) > _MOST_PARTITIONS:
            limit_texts.append(f"newest {_MOST_PARTITIONS:,} partitions with this key")
    return MatchingRuns(rows.filter(**times).order_by("-id"), limit_texts)


def sorted_runs(rows: QuerySet[Run], query: QueryDict) -> QuerySet[Run]:
    """Select the runs of ``matching_runs`` in the order that the address names.

    The ids of runs are in the order of creation. For other orders only the newest 1,000 of these
    runs are sorted, so that a list of millions of runs costs no more.
    """
    order = query.get("sort", "")
    if order == "oldest":
        return rows.order_by("id")
    if order not in _ORDERS:
        return rows
    newest = rows.values("pk")[:MOST_SORTED]
    return Run.objects.listed().filter(pk__in=newest).order_by(*_ORDERS[order])


def is_cut(query: QueryDict) -> bool:
    """Return whether the order of the address sorts only the newest runs."""
    return query.get("sort", "") in _ORDERS


def read_instant(text: str) -> datetime | None:
    """Parse an instant, in UTC unless an offset is written; return None for any other text."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    # PostgreSQL reads no offset of 16 hours or more.
    return instant.astimezone(UTC) if instant.year in range(1000, 9000) else None


def _times(text: dict[str, str]) -> dict[str, Any]:
    bounds: dict[str, Any] = {
        column: instant for name, column in _BOUNDS.items() if (instant := read_instant(text[name]))
    }
    if text["since"] in SPANS:
        _, span = SPANS[text["since"]]
        began_at = database_now() - span
        bounds["created_at__gte"] = max(bounds.get("created_at__gte", began_at), began_at)
    return bounds


def _partitions_of(key: str, asset: str) -> list[int]:
    """Return the ids of the partitions with a key, of assets with a text in the name: the newest
    partitions, and one more than the runs of which are searched.
    """
    if not is_storable(key):
        return []
    partitions = AssetPartition.objects.filter(key=key, asset__name__icontains=asset)
    newest = partitions.under_current_definition().order_by("-pk")
    return list(newest.values_list("pk", flat=True)[: _MOST_PARTITIONS + 1])
