"""Answers to a run's questions about past partitions of its asset, read from the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from django.db import connection
from django.db.models import Min

import slicewise
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.keys import sent_keys
from partitions_app.rules import has_time, identity_of
from slicewise.runner.past_partitions import PAST_PARTITIONS

# Rows that one answer reads. Some may never have been materialized: the next question goes on after
# the last row, so that an answer costs the same whatever comes behind and before.
PAGE = 500
_YEARS = range(2, 9999)
_HIGHEST_ID = 2**63 - 1

# Both walk an index backwards from the position in `after`.
_BY_WINDOW = """
SELECT partition.key, partition.version, partition.window_start, partition.segment, partition.id
FROM assets_app_assetpartition AS partition
WHERE partition.asset_id = %(asset)s AND partition.identity = %(identity)s
  AND (partition.window_start, partition.segment, partition.id) < (%(moment)s, %(segment)s, %(id)s)
ORDER BY partition.window_start DESC, partition.segment DESC, partition.id DESC
LIMIT %(page)s
"""
_BY_MAKING = """
SELECT partition.key, partition.version, partition.materialized_at, '', partition.id
FROM assets_app_assetpartition AS partition
WHERE partition.asset_id = %(asset)s AND partition.identity = %(identity)s
  AND partition.window_start IS NULL AND partition.version > 0
  AND (partition.materialized_at, partition.id) < (%(moment)s, %(id)s)
ORDER BY partition.materialized_at DESC, partition.id DESC
LIMIT %(page)s
"""


@dataclass(frozen=True, slots=True)
class PagePosition:
    """A position in the order of the partitions: later rows are older."""

    moment: datetime | str
    segment: str
    id: int

    @classmethod
    def read(cls, content: Any) -> "PagePosition":
        """Read the position that an answer named; raise ValueError for any other JSON."""
        match content:
            case [str(moment), str(segment), int(number)] if not isinstance(number, bool):
                instant = datetime.fromisoformat(moment)
            case _:
                raise ValueError("'after' must be the 'next' of an earlier answer")
        is_text = segment.isascii() and (segment.isprintable() or not segment)
        is_instant = instant.tzinfo is not None and instant.year in _YEARS
        if not is_instant or not is_text or not 0 <= number <= _HIGHEST_ID:
            raise ValueError("'after' is no position in the past")
        # PostgreSQL reads no offset of 16 hours or more.
        return cls(instant.astimezone(UTC), segment, number)

    def to_json(self) -> list[Any]:
        """Return the position in the form that is sent to the runner, and comes back."""
        moment = self.moment
        text = moment.isoformat() if isinstance(moment, datetime) else moment
        return [text, self.segment, self.id]


class PastPartitions:
    """The materialized partitions of an attempt's asset before its own, newest first."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one message ``ask`` with key texts and the next position: one statement.

        A question that user code may ask, but no runner would, is refused in the answer.
        """
        if question["question"] != PAST_PARTITIONS:
            return _refused(f"nothing is known of {str(question['question'])[:50]!r}")
        after = question.get("after")
        try:
            position = self._beginning if after is None else PagePosition.read(after)
        except ValueError as error:
            return _refused(str(error))
        return {"type": "answer", **self._page(position)}

    def _page(self, after: PagePosition) -> dict[str, Any]:
        rows = self._rows(after)
        last = PagePosition(*rows[-1][2:]).to_json() if len(rows) == PAGE else None
        keys = [row[0] for row in rows if row[1] > 0 and row[0] not in self._own]
        return {"keys": sent_keys(self._definition, keys), "next": last}

    def _rows(self, after: PagePosition) -> Sequence[tuple[Any, ...]]:
        values: dict[str, str | int | datetime] = {
            "asset": self._attempt.run.asset_id,
            "identity": self._identity,
            "moment": after.moment,
            "segment": after.segment,
            "id": after.id,
            "page": PAGE,
        }
        with connection.cursor() as cursor:
            cursor.execute(_BY_WINDOW if has_time(self._definition) else _BY_MAKING, values)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    @cached_property
    def _definition(self) -> slicewise.PartitionDefinition | None:
        run = self._attempt.run
        return run.producer_version.definition_of(run.asset.name)

    @property
    def _identity(self) -> str:
        return identity_of(self._definition)

    @cached_property
    def _own(self) -> frozenset[str]:
        return frozenset(self._attempt.keys)

    @cached_property
    def _beginning(self) -> PagePosition:
        """The position of the run's first window or, without time, the latest position."""
        if not has_time(self._definition):
            return PagePosition("infinity", "", 0)
        own_windows = self._attempt.run.partitions.aggregate(first=Min("partition__window_start"))
        return PagePosition(own_windows["first"], "", 0)


def _refused(reason: str) -> dict[str, Any]:
    return {"type": "answer", "error": reason}
