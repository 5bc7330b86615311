"""The reason of a partition's state, and reasons by the upstream partitions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from assets_app.queries.upstream_needs import UpstreamNeed, UpstreamPartition
from slicewise.texts import counted, masked_text

_LONGEST_ERROR = 200

# The reasons whose sentence has a time, which is not a time that the code of people wrote.
_WITH_TIMES = frozenset(
    {
        "not_yet_due", "before_activation", "waiting_for_tick", "missed_while_paused",
        "not_triggered", "paused", "evaluated_again", "waiting_for_fresh",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a partition is in its state: a word for programs, and a sentence.

    ``run`` is the run that the sentence names. ``blocker`` is an upstream partition that keeps the
    partition from being materialized. ``needs`` are the needed upstream partitions by asset.
    """

    code: str
    text: str
    run: int | None = None
    blocker: UpstreamPartition | None = None
    needs: tuple[UpstreamNeed, ...] = ()

    @property
    def has_times(self) -> bool:
        """Whether the sentence has a time, in UTC, which pages show in the reader's zone."""
        return self.code in _WITH_TIMES

    def with_text(self, text: str, code: str = "") -> "Reason":
        """Return the reason with another text, and perhaps another code."""
        return replace(self, text=text, code=code or self.code)


def upstream_reason(
    needs: Sequence[UpstreamNeed], *, all_needs: tuple[UpstreamNeed, ...]
) -> Reason | None:
    """Return the upstream partitions that block a partition: failed ones first, then missing.

    ``all_needs`` are the needs that the reason carries, also of assets that block nothing.
    """
    for need in needs:
        if need.failed is not None:
            run = f" (run {need.failed.run})" if need.failed.run else ""
            return Reason(
                "upstream_failed",
                f"Upstream failed: {need.failed.name}{run}.",
                need.failed.run,
                need.failed,
                all_needs,
            )
    for need in needs:
        if need.missing:
            names = ", ".join(row.name for row in need.absent)
            needed = counted(need.needed, "partition")
            text = f"Waiting for {need.missing:,} of {needed} of {need.asset.name}: {names}"
            text += f" and {need.more:,} more." if need.more else "."
            return Reason("waiting_for_upstream", text, None, need.absent[0], all_needs)
    for need in needs:
        if need.upstream_gap is not None:
            text = f"Needed upstream partitions do not exist: {need.upstream_gap.reason}."
            return Reason("upstream_does_not_exist", text, needs=all_needs)
    return None


def not_counted_text(needs: Sequence[UpstreamNeed]) -> str:
    """Return the sentence on the assets of which too many partitions are needed to count."""
    texts = [
        f"{counted(need.needed, 'partition')} of {need.asset.name}"
        for need in needs
        if not need.is_counted
    ]
    return f"The needed upstream partitions are too many to be counted here: {', '.join(texts)}."


def error_line(error: str) -> str:
    """Return the first line of an error, masked and not too long; an empty text without one."""
    lines = masked_text(error).strip().splitlines()
    line = lines[0] if lines else ""
    return line if len(line) <= _LONGEST_ERROR else line[:_LONGEST_ERROR] + "…"


def moment_text(moment: datetime) -> str:
    """Return a moment in UTC, in the form that pages show in the reader's zone."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"
