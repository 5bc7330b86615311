"""Jobs of other tools with more edges than a request adds: the numbers that pages show."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Self
from uuid import UUID

from slicewise_server.lineage.models import TruncatedJob
from slicewise_server.lineage.received_runs import ReceivedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstoredEdges:
    """The number of edges of one event of a job that are not added; mostly none."""

    namespace: str
    name: str
    run_id: UUID | None
    number: int
    at: datetime

    @classmethod
    def of(cls, run: ReceivedRun, number: int, now: datetime) -> Self:
        """Return the number for the job of a run, at the time of the event."""
        return cls(
            namespace=run.job_namespace,
            name=run.job_name,
            run_id=run.run_id,
            number=number,
            at=min(run.event_time, now),
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the job's names, which are longer than an index takes."""
        return sha256(f"{self.namespace}\0{self.name}".encode()).hexdigest()


def store_truncated_jobs(events: Iterable[UnstoredEdges]) -> int:
    """Store the numbers of the newest events, one for each job; return the sum of the numbers.

    Of several events of a job the event with the most counts. A job whose edges are all added
    has no row.
    """
    most: dict[str, UnstoredEdges] = {}
    for event in events:
        if event.digest not in most or event.number >= most[event.digest].number:
            most[event.digest] = event
    # In one order, so that no two requests wait for each other.
    present = TruncatedJob.objects.filter(digest__in=most).order_by("digest").select_for_update()
    known_at = {row.digest: row.at for row in present}
    fresh = {
        digest: event
        for digest, event in sorted(most.items())
        if digest not in known_at or event.at >= known_at[digest]
    }
    ended = [digest for digest, event in fresh.items() if not event.number and digest in known_at]
    if ended:
        TruncatedJob.objects.filter(digest__in=ended).delete()
    TruncatedJob.objects.bulk_create(
        [
            TruncatedJob(
                digest=digest,
                job_namespace=event.namespace,
                job_name=event.name,
                run_id=event.run_id,
                number=event.number,
                at=event.at,
            )
            for digest, event in fresh.items()
            if event.number
        ],
        update_conflicts=True,
        unique_fields=("digest",),
        update_fields=("run_id", "number", "at"),
    )
    return sum(event.number for event in most.values())
