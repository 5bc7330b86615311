"""The context of a run, for the asset's function: a mapping with a view of the partitions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from datetime import datetime
from typing import Any

from slicewise.errors import PartitionError
from slicewise.io.frames import rows_of_partitions
from slicewise.keys.column_texts import dimension_keys
from slicewise.keys.partition_key import Interval, PartitionKey
from slicewise.partitions.definition import PartitionDefinition
from slicewise.partitions.discovering import register_add_key
from slicewise.partitions.discovery import Discoveries
from slicewise.running.handles import AssetHandle
from slicewise.running.watermarks import Watermark, watermark

PastKeys = Callable[[], Iterator[PartitionKey]]
"""A function that returns the asset's materialized keys, newest first, fetched as iterated."""


class PartitionContext:
    """The partitions that a run materializes. The text of this object is the key text."""

    def __init__(
        self,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        upstream: Mapping[str, AssetHandle],
        past: PastKeys = lambda: iter(()),
    ) -> None:
        self.definition = definition
        self._keys = tuple(keys)
        self._upstream = upstream
        self._past = past

    @property
    def key(self) -> Any:
        """The only key: an Interval, a plain value, a product's key. Raises PartitionError."""
        if not self._keys:
            raise PartitionError("this run covers no partition: the run discovers partitions")
        if len(self._keys) > 1:
            raise PartitionError(f"this run covers {len(self._keys)} partitions; use .keys")
        return self._keys[0].value

    @property
    def keys(self) -> tuple[Any, ...]:
        """All keys of the run, in order."""
        return tuple(key.value for key in self._keys)

    @property
    def interval(self) -> Interval:
        """The window of the run; of several, from the first start to the last end.

        Raises PartitionError where the asset has no dimension of time.
        """
        windows = [p for key in self._keys for p in dimension_keys(key) if isinstance(p, Interval)]
        if not windows:
            raise PartitionError("the partitions of this run have no dimension of time")
        first = min(windows, key=lambda window: window.start)
        last = max(windows, key=lambda window: window.end)
        return first if first == last else Interval(first.start, last.end, first.zone)

    def filter(self, frame: Any) -> Any:
        """Return the rows of a DataFrame that belong to the run's partitions.

        Rows are selected by the frame's columns for dimensions of the asset. Such a column holds
        texts of keys or times inside the windows, as in a frame that is written. A dimension
        without a column removes no row; a row with a null in such a column belongs to no partition.
        """
        return rows_of_partitions(frame, self.definition, self._keys)

    def iter_past_partitions(self) -> Iterator[Any]:
        """Iterate over the asset's materialized partitions, newest first: the latest is `next`.

        The partitions are the windows (or products with windows) that begin before the run's first
        window, ordered by window. Without a dimension of time, the partitions are all but the
        run's own, ordered by the time of the last materialization, not by key: ``max(...)`` is the
        greatest key. Partitions are looked up page by page during iteration, for a history of any
        length. Raises ConnectionError when the worker of the run is gone.
        """
        return (key.value for key in self._past())

    def watermark(self, *, previous: Any, key: object) -> Watermark:
        """Return the watermark of a key; `RunContext.watermark` has the rules."""
        return watermark(self.definition, self._keys, self._past(), previous=previous, key=key)

    def upstream(self, name: str) -> tuple[Any, ...]:
        """Return the keys of an upstream asset that are mapped to this run's partitions.

        Raises KeyError for a name that is no upstream asset of the run.
        """
        if name not in self._upstream:
            known_names = ", ".join(self._upstream) or "none"
            raise KeyError(
                f"{name!r} is no upstream asset of this run; the upstream assets are: {known_names}"
            )
        return self._upstream[name].partitions

    def __str__(self) -> str:
        if len(self._keys) <= 1:
            return "".join(key.text for key in self._keys)
        return f"{self._keys[0].text}..{self._keys[-1].text}"


class RunContext(Mapping[str, Any]):
    """A mapping with run_id, attempt, trigger, params, asset, logical_time and partition.

    ``asset`` is the function's ``self``. In a tear-down the mapping also has ``outcome`` and
    ``error``, and after a run ``error``.
    """

    def __init__(
        self,
        *,
        run_id: int,
        attempt: int,
        trigger: str,
        params: Mapping[str, Any],
        asset: AssetHandle | Mapping[str, AssetHandle],
        logical_time: datetime | None,
        partition: PartitionContext,
        discoveries: Discoveries | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.discoveries = discoveries or Discoveries()
        self._values: dict[str, Any] = {
            "run_id": run_id,
            "attempt": attempt,
            "trigger": trigger,
            "params": dict(params),
            "asset": asset,
            "logical_time": logical_time,
            "partition": partition,
            **(more or {}),
        }

    def watermark(self, *, previous: Any = None, key: object = None) -> Watermark:
        """Return the part of a source that a run of runtime partitions reads, as (low, high): rows
        after ``low``, up to and with ``high``.

        ``high`` is the key of the run; in a run that discovers partitions ``high`` is None, and the
        function chooses the key. ``low`` is the greatest key below ``high`` by the order of keys,
        not of materialization, so that a second run of an old key reads the same rows.
        ``previous`` stands for ``low`` where no key is lower. In a run of several keys, ``key``
        names one of them. Raises PartitionError for other partitions than those of a
        `PartitionAtRuntime`, and ConnectionError when the worker of the run is gone.
        """
        view: PartitionContext = self["partition"]
        return view.watermark(previous=previous, key=key)

    @property
    def discovered(self) -> dict[str, list[PartitionKey]]:
        """The runtime keys that the run has added so far, by set."""
        return self.discoveries.sets()

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise KeyError(f"the context has no {name!r}; use one of {', '.join(self._values)}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def extended(context: RunContext, **more: Any) -> RunContext:
    """Return a copy of a context with more values."""
    extended_context = copy(context)
    extended_context._values = {**context._values, **more}
    return extended_context


# The contexts of runs that this process executes now. A runner has one context, which also covers
# threads of the function, where the context variable is not set. In unit tests several threads may
# each materialize an asset.
_entered: dict[int, RunContext] = {}
_of_this_thread: ContextVar[RunContext | None] = ContextVar("run", default=None)


def get_current_context() -> RunContext:
    """Return the context of the calling run. Raises RuntimeError outside of a run."""
    thread_context = _of_this_thread.get()
    if thread_context is not None and id(thread_context) in _entered:
        return thread_context
    latest = next(reversed(_entered.values()), None)
    if latest is None:
        raise RuntimeError("no run is active, so no context exists")
    return latest


def discover(definition: PartitionDefinition, key: object) -> PartitionKey:
    """Add a key to a set of runtime partitions, for the calling run; return the stored key.

    A key added twice counts once, and a run that fails adds no key. Raises RuntimeError outside of
    a run, PartitionKeyError for a value that cannot be a key.
    """
    if not _entered:
        raise RuntimeError(f"a run adds partitions to {definition!r}, and no run is active here")
    return get_current_context().discoveries.add(definition, key)


register_add_key(discover)


@contextmanager
def current_context(context: RunContext) -> Iterator[RunContext]:
    """Set ``context`` as the current context within the block."""
    token = _of_this_thread.set(context)
    _entered[id(context)] = context
    try:
        yield context
    finally:
        del _entered[id(context)]
        _of_this_thread.reset(token)
