"""The last window within bounds, which `Latest` maps to."""

from slicewise.errors import UnboundedPartitionsError
from slicewise.partitions.windows import Bound, Windows

_MAX_WINDOWS_BACK = 1 << 16  # how far `last_window` goes back where all windows are excluded


def last_window(windows: Windows, since: Bound, until: Bound) -> int | None:
    """Return the number of the last window inside [since, until) and the bounds; None if there is
    no such window.

    Raises UnboundedPartitionsError where time has no upper bound.
    """
    lows = (windows.lowest, None if since is None else windows.ticks.rank(since))
    highs = (windows.highest, None if until is None else windows.last_before(until))
    stop = min((high for high in highs if high is not None), default=None)
    if stop is None:
        raise UnboundedPartitionsError("the definition has no end: write end=, or pass until=")
    low = max((low for low in lows if low is not None), default=stop - _MAX_WINDOWS_BACK)
    size = 1
    while low < stop:
        first, after = windows.trim(max(stop - size, low), stop)
        if first < after:
            return after - 1
        stop, size = stop - size, size * 8
    return None
