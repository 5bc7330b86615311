"""Partitions by interval: windows between the ticks of a cadence."""

from collections.abc import Iterable
from datetime import timedelta, tzinfo

from slicewise.calendar.cadence import Cadence, StepCadence, read_cadence
from slicewise.calendar.ticks import Ticks, ticks_of
from slicewise.calendar.time_text import Moment
from slicewise.calendar.zones import to_instant
from slicewise.errors import DefinitionError
from slicewise.partitions.by_time import PartitionByTime
from slicewise.partitions.definition import Excluded, Json


class PartitionByInterval(PartitionByTime, kind="interval"):
    """One partition for each window between two ticks of a cadence (AIP-76).

    `cadence` is a preset (`@hourly @daily @weekly @monthly @quarterly @yearly`), a five-field cron
    text, or a timedelta of whole seconds, aligned to `start` or else to the epoch. `timezone` is an
    IANA name. `start` and `end` bound the windows: naive values are wall time in the zone, a date
    means midnight, aware values are instants. `exclude` leaves out the windows that start at the
    ticks of a cron text, on a date, or at a datetime. `name` is the dimension's name.

    Raises DefinitionError for an unknown preset or zone, a bad cron, end before start, and naive
    mixed with aware bounds.
    """

    cadence: Cadence

    def __init__(
        self,
        cadence: str | timedelta,
        *,
        timezone: str | tzinfo = "UTC",
        start: Moment | None = None,
        end: Moment | None = None,
        exclude: Excluded | Iterable[Excluded] = (),
        name: str | None = None,
    ) -> None:
        super().__init__(
            own={"cadence": read_cadence(cadence)},
            timezone=timezone,
            start=start,
            end=end,
            exclude=exclude,
            name=name,
        )
        if isinstance(self.cadence, StepCadence) and self.start and self.start.microsecond:
            raise DefinitionError(
                f"a timedelta aligns to a start in whole seconds, not {self.start}"
            )

    def make_ticks(self) -> Ticks:
        """Return the ticks of the cadence."""
        return ticks_of(self.cadence, self.zone, self._anchor)

    @property
    def _anchor(self) -> int:
        return 0 if self.start is None else to_instant(self.start)

    @property
    def follows_elapsed_time(self) -> bool:
        """Whether the cadence leaves no hour out; if so, exclusion crons follow calendar rule 5."""
        return isinstance(self.cadence, StepCadence) or self.cadence.follows_elapsed_time

    @property
    def typical_width(self) -> int:
        """Seconds of a typical window."""
        return self.cadence.typical_width

    def to_json(self) -> Json:
        """Return the kind, cadence, timezone, start, end, exclude and name."""
        return {**super().to_json(), "cadence": self.cadence.to_json()}

    def canonical(self) -> Json:
        """Return JSON that is the same for equal definitions."""
        return {**super().canonical(), "cadence": self.cadence.canonical}

    def shape(self) -> Json:
        """Return the cadence, zone and alignment."""
        phase = self._anchor % self.cadence.seconds if isinstance(self.cadence, StepCadence) else 0
        return {"cadence": self.cadence.canonical, "timezone": self.timezone, "phase": phase}

    def _shown(self) -> list[str]:
        return [repr(str(self.cadence))]
