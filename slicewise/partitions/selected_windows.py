"""The windows that a selection names, by number."""

from slicewise.calendar.time_text import Span, read_time
from slicewise.errors import UnboundedPartitionsError
from slicewise.partitions.selection_fragments import SelectionText
from slicewise.partitions.windows import Bound, Windows

Numbers = tuple[int, int]

# The number of windows before and after an excluded window that are searched for a partition.
_FURTHEST = 400


class TimeReader:
    """A reader of time texts as window numbers, within the definition's and the given bounds."""

    def __init__(self, windows: Windows, since: Bound, until: Bound) -> None:
        self._windows, self._since, self._until = windows, since, until
        lows = [windows.lowest, None if since is None else windows.ticks.rank(since)]
        highs = [windows.highest, None if until is None else windows.last_before(until)]
        self._low = max((low for low in lows if low is not None), default=None)
        self._high = min((high for high in highs if high is not None), default=None)

    def all(self, fragment: SelectionText) -> Numbers:
        """Return the range of all windows; both sides must be bounded."""
        try:
            return self._windows.between(self._since, self._until)
        except UnboundedPartitionsError as error:
            fragment.refuse(f"the selection covers all of time: {error}")

    def read(self, fragment: SelectionText) -> list[Numbers]:
        """Return the ranges of windows of a union."""
        return [self._read_item(item) for item in fragment.split(",")]

    def _read_item(self, item: SelectionText) -> Numbers:
        if item.text == "*":
            return self.all(item)
        ends = list(item.split(".."))
        if len(ends) > 2:
            ends[2].refuse("a range has two ends: write first..last")
        spans = [self._read_span(end) for end in ends]
        if spans[-1].end <= spans[0].start:
            ends[-1].refuse(f"{ends[-1].text} comes before {ends[0].text}")
        for end, span in zip(ends, spans, strict=True):
            self._check_span(end, span)
        first, stop = self._numbers(spans[0])[0], self._numbers(spans[-1])[1]
        first = first if self._low is None else max(first, self._low)
        stop = stop if self._high is None else min(stop, self._high)
        # To count the windows would examine each excluded window of a range, which may be of years.
        if next(self._windows.runs(first, stop), None) is None:
            near = self._neighbours(first, stop)
            item.refuse(f"all partitions of {item.text} are excluded{near}")
        return first, stop

    def _read_span(self, fragment: SelectionText) -> Span:
        try:
            return read_time(fragment.text, self._windows.zone)
        except ValueError as error:
            fragment.refuse(str(error))

    def _numbers(self, span: Span) -> Numbers:
        return self._windows.ticks.rank(span.start), self._windows.ticks.rank(span.end)

    def _check_span(self, fragment: SelectionText, span: Span) -> None:
        first, stop = self._numbers(span)
        if first == stop:
            around = self._windows.window(self._windows.number_at(span.start))
            fragment.refuse(f"no partition starts in {fragment.text}; {around} contains it")
        self.check_within(fragment, first, stop)

    def check_within(self, fragment: SelectionText, first: int, stop: int | None = None) -> None:
        """Refuse a text whose windows are all before the first or all after the last window, or
        have not ended.
        """
        stop = first + 1 if stop is None else stop
        if self._low is not None and stop <= self._low:
            fragment.refuse(
                f"{fragment.text} is before the first partition, {self._text(self._low)}"
            )
        if self._high is not None and first >= self._high:
            highest = self._windows.highest
            is_later = self._until is not None and (highest is None or first < highest)
            reason = (
                "has not ended yet; the last partition that has ended is"
                if is_later
                else "is after the last partition,"
            )
            fragment.refuse(f"{fragment.text} {reason} {self._text(self._high - 1)}")

    def _neighbours(self, first: int, stop: int) -> str:
        """Return a hint with the partitions next to a range of excluded windows, if near enough."""
        low, high = first - _FURTHEST, stop + _FURTHEST
        low = low if self._low is None else max(low, self._low)
        high = high if self._high is None else min(high, self._high)
        before = [end - 1 for _, end in self._windows.runs(low, first)][-1:]
        after = [start for start, _ in self._windows.runs(stop, high)][:1]
        names = [f"the last one before is {self._text(number)}" for number in before]
        names += [f"the first one after is {self._text(number)}" for number in after]
        return "".join(f"; {name}" for name in names)

    def _text(self, number: int) -> str:
        return self._windows.window(number).text
