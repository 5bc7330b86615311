"""What a paused schedule by time has passed over: unpausing does not make it, a backfill can."""

from dataclasses import dataclass
from datetime import datetime

from assets_app.catalogue.timetables import time_rule
from assets_app.models import Asset
from assets_app.scheduling.words import words_of
from slicewise.due import ended_between


@dataclass(frozen=True, slots=True)
class Missed:
    """The partitions whose windows ended since the last tick that was handled."""

    count: int
    first: str
    last: str


def missed_by(asset: Asset, now: datetime) -> Missed | None:
    """What is missed while the asset is paused, so far; None where nothing is. Arithmetic alone.

    Partitions without a window are not missed: the next tick makes them.
    """
    schedule, definition = words_of(asset), asset.definition
    if schedule is None or not schedule.row.by_time or definition is None or not asset.paused:
        return None
    if definition.time_dimension is None:
        return None
    last = time_rule(schedule.rule).last_until(now)
    if last is None or last <= schedule.row.handled_until:
        return None
    ended = ended_between(definition, schedule.row.handled_until, last)
    if not ended:
        return None
    return Missed(len(ended), ended[0].time.text, ended[-1].time.text)
