"""Events of other tools, as far as Slicewise reads events of OpenLineage."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

COMPLETE = "COMPLETE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedDataset:
    """A dataset of an event, with the facets that say something about partitions and counts."""

    namespace: str
    name: str
    facets: Mapping[str, Any] = field(default_factory=dict)
    outputFacets: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> Iterator[tuple[str, str]]:
        """The name of the dataset, and the names of symbolic links to the dataset."""
        yield self.namespace, self.name
        symlinks = self.facets.get("symlinks", {}).get("identifiers", ())
        for link in symlinks:
            yield link["namespace"], link["name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRun:
    """One event of a run of another tool's job; without an id the event is of the job alone."""

    event_type: str
    # The time of the event, by the clock of the tool.
    event_time: datetime
    run_id: UUID | None
    job_namespace: str
    job_name: str
    producer: str
    inputs: Sequence[ReceivedDataset] = ()
    outputs: Sequence[ReceivedDataset] = ()
    # The beginning of field names in errors: the place in a list of events, and a dot.
    field_prefix: str = ""

    @property
    def changes_catalogue(self) -> bool:
        """Whether the event is of a completed run, or describes a job."""
        return self.run_id is None or self.event_type == COMPLETE

    @property
    def datasets(self) -> Iterator[ReceivedDataset]:
        """The inputs, and then the outputs."""
        yield from self.inputs
        yield from self.outputs
