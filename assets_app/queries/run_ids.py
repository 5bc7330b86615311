"""The ids of runs by time: ids are in the order of creation, and no index has the times."""

from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Max, Min, QuerySet

from assets_app.models import Run

# A transaction that creates runs takes the ids some time before others see the runs.
_SLACK = timedelta(minutes=10)


class IdRange(NamedTuple):
    """The runs with ids from ``first`` on, and before ``stop``; None without a last one."""

    first: int = 0
    stop: int | None = None

    def of(self, rows: QuerySet[Run]) -> QuerySet[Run]:
        """Select the runs of this range."""
        rows = rows.filter(pk__gte=self.first) if self.first else rows
        return rows if self.stop is None else rows.filter(pk__lt=self.stop)


def ids_between(since: datetime | None, before: datetime | None) -> IdRange:
    """Return a range with all runs that were created in a span, and few others: some twenty looks
    at the primary key for each bound, with a million runs.
    """
    return IdRange(
        0 if since is None else _first_id_since(since - _SLACK),
        None if before is None else _first_id_since(before + _SLACK),
    )


def _first_id_since(moment: datetime) -> int:
    """Return the first id of runs that were created at the moment or later, by halving."""
    ends = Run.objects.aggregate(least=Min("pk"), greatest=Max("pk"))
    first, stop = ends["least"] or 0, (ends["greatest"] or 0) + 1
    while first < stop:
        middle = (first + stop) // 2
        following = Run.objects.filter(pk__gte=middle).order_by("pk")
        run = following.values_list("pk", "created_at").first()
        # No run follows where runs were deleted meanwhile.
        if run is None or run[1] >= moment:
            stop = middle
        else:
            first = run[0] + 1
    return first
