"""What a function can know of its run: the context, a mapping with a view of the partitions."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from slicewise.definitions import PartitionDefinition
from slicewise.folders import key_parts
from slicewise.handles import AssetHandle
from slicewise.intervals import Interval
from slicewise.keys import PartitionKey


class PartitionError(ValueError):
    """The one partition of a run was asked for, and the run has several, or none of that kind."""


class PartitionContext:
    """The partitions that a run makes. Its text is the key text."""

    def __init__(
        self,
        definition: PartitionDefinition | None,
        keys: Sequence[PartitionKey],
        upstream: Mapping[str, AssetHandle],
    ) -> None:
        self.definition = definition
        self._keys = tuple(keys)
        self._upstream = upstream

    @property
    def key(self) -> Any:
        """The only key: an Interval, a plain value, a product's key. Raises PartitionError."""
        if len(self._keys) != 1:
            raise PartitionError(f"this run makes {len(self._keys)} partitions; use .keys")
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
        windows = [p for key in self._keys for p in key_parts(key) if isinstance(p, Interval)]
        if not windows:
            raise PartitionError("the partitions of this run have no dimension of time")
        first = min(windows, key=lambda window: window.start)
        last = max(windows, key=lambda window: window.end)
        return first if first == last else Interval(first.start, last.end, first.zone)

    def upstream(self, name: str) -> tuple[Any, ...]:
        """The keys of an upstream asset that are mapped to this run's partitions."""
        if name not in self._upstream:
            known = ", ".join(self._upstream) or "none"
            raise KeyError(f"{name!r} is no upstream asset of this run; there are: {known}")
        return self._upstream[name].partitions

    def __str__(self) -> str:
        if len(self._keys) <= 1:
            return "".join(key.text for key in self._keys)
        return f"{self._keys[0].text}..{self._keys[-1].text}"


class RunContext(Mapping[str, Any]):
    """A mapping with run_id, attempt, trigger, params, asset, logical_time and partition."""

    def __init__(
        self,
        *,
        run_id: int,
        attempt: int,
        trigger: str,
        params: Mapping[str, Any],
        asset: AssetHandle,
        logical_time: datetime | None,
        partition: PartitionContext,
    ) -> None:
        self._values: dict[str, Any] = {
            "run_id": run_id,
            "attempt": attempt,
            "trigger": trigger,
            "params": dict(params),
            "asset": asset,
            "logical_time": logical_time,
            "partition": partition,
        }

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise KeyError(f"the context has no {name!r}; it has {', '.join(self._values)}")
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


# Not a context variable: threads that a function starts are part of its run.
_current: list[RunContext] = []


def get_current_context() -> RunContext:
    """The context of the run that calls. Raises RuntimeError outside of a run."""
    if not _current:
        raise RuntimeError("there is no current context: no asset is being made")
    return _current[-1]


@contextmanager
def entered(context: RunContext) -> Iterator[RunContext]:
    """Within the block, ``context`` is the current one."""
    _current.append(context)
    try:
        yield context
    finally:
        _current.pop()
