"""The log of one partition in a bucket: numbered entries, each with the complete state.

An entry is created only where there is none: of several workers that would write the next entry,
the store admits one. Each entry repeats the facts of earlier entries that still hold, so that only
the latest is ever read, and a worker that wakes up late and creates an entry below it changes
nothing.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import uuid4

from slicewise.io.object_log_names import is_mark, mark_above, number_in_name, state_of_names
from slicewise.io.object_store import Store
from slicewise.storage.storage_errors import TryAgainError

_NAME = re.compile(r"(\d{12})\.json")
_TRIES = 20


@dataclass(frozen=True)
class LogState:
    """The content of the latest entry of a partition's log. An attempt's
    name is that of the folder.
    """

    number: int = 0
    """The number of the entry; 0 if there is no entry."""
    data: tuple[str, ...] = ()
    """The attempts whose files are the partition's rows."""
    outside: bool = True
    """Whether rows that another program has written beside these files count too."""
    versions: Mapping[int, str] = field(default_factory=dict)
    """The attempts that published a version, by the version's number."""
    repeats: tuple[str, ...] = ()
    """Attempts that add nothing to the data, since an earlier attempt at the same run has."""
    old: tuple[str, ...] = ()
    """The attempts whose files the entry put out of use: no worker may publish them again."""
    fences: Mapping[str, int] = field(default_factory=dict)
    """The highest fencing number of each attempt that was taken over."""

    def has(self, attempt: str) -> bool:
        """Return whether an attempt's data is in place."""
        return attempt in (*self.data, *self.repeats, *self.versions.values())

    def published(self, attempt: str, mode: str, earlier: Collection[str]) -> "LogState":
        """Return the state after an attempt was published; ``earlier`` are
        attempts at the same run.
        """
        number = self.number + 1
        if mode == "append" and any(data_attempt in earlier for data_attempt in self.data):
            return replace(self, number=number, repeats=(*self.repeats, attempt), old=())
        if mode == "append":
            return replace(self, number=number, data=(*self.data, attempt), old=())
        versions = {**self.versions, number: attempt} if mode == "version" else self.versions
        return LogState(
            number=number,
            data=(attempt,),
            outside=False,
            versions=versions,
            old=tuple(
                data_attempt for data_attempt in self.data if data_attempt not in versions.values()
            ),
            fences=self.fences,
        )

    def fenced(self, attempt: str, fence: int) -> "LogState":
        """Return the state after a worker has taken an attempt over."""
        return replace(self, number=self.number + 1, fences={**self.fences, attempt: fence})

    def removed(self) -> "LogState":
        """Return the state after the partition's data was removed."""
        old = tuple(dict.fromkeys([*self.versions.values(), *self.data]))
        return LogState(number=self.number + 1, old=old, fences=self.fences)

    def to_json(self) -> dict[str, Any]:
        """Return the content of the entry, but for its number, which is its name."""
        content = asdict(self)
        del content["number"]
        return content

    @staticmethod
    def from_json(number: int, content: Mapping[str, Any]) -> "LogState":
        """Return the state that an entry contains."""
        return LogState(
            number=number,
            data=tuple(content["data"]),
            outside=content["outside"],
            versions={int(key): attempt for key, attempt in content["versions"].items()},
            repeats=tuple(content["repeats"]),
            old=tuple(content["old"]),
            fences=content["fences"],
        )


@dataclass(frozen=True)
class ObjectLog:
    """The log in one folder of a bucket; ``path`` is the partition's path, for error messages."""

    store: Store
    folder: str
    path: str

    def state(self) -> LogState:
        """Return the content of the latest entry."""
        return self._latest()[0]

    def change(
        self, step: Callable[[LogState], LogState | None], holds: Callable[[LogState], bool]
    ) -> LogState:
        """Create the next entry, which ``step`` makes from the latest;
        return the latest entry then.

        ``step`` returns None if nothing is left to do, and is called anew whenever another worker
        was quicker. ``holds`` says whether a later entry builds on this one: otherwise this entry
        was created below others, under a number that had been used and deleted meanwhile, and
        counts for nothing. Raises TryAgainError if other workers are quicker again and again.
        """
        for _ in range(_TRIES):
            state, _ = self._latest()
            wanted = step(state)
            if wanted is None:
                return state
            content = json.dumps({"by": uuid4().hex, **wanted.to_json()})
            if self.store.create(f"{self.folder}/{_name(wanted.number)}", content.encode()):
                latest, names = self._latest()
                self._mark(wanted.number, names)
                if holds(latest):
                    for name in _below_latest(names):
                        self.store.delete(f"{self.folder}/{name}")
                    return latest
        raise TryAgainError(f"{self.path}: other workers publish this partition at the same time")

    def _mark(self, number: int, names: Sequence[str]) -> None:
        """Ensure that workers of older releases count on from above an entry."""
        if not any(is_mark(name) and name > _name(number) for name in names):
            self.store.put(f"{self.folder}/{mark_above(number)}", b"")

    def _latest(self) -> tuple[LogState, list[str]]:
        """Return (state, names): the content of the latest entry, and all
        names in the log's folder.
        """
        for _ in range(_TRIES):
            names = self.store.names(self.folder)
            entries = {name: number for name in names if (number := _number(name))}
            if not entries:
                return LogState(), names
            number = max(entries.values())
            latest = max(filter(_NAME.fullmatch, entries), default="")
            content = self.store.get(f"{self.folder}/{latest}") if latest else b""
            if content is None:  # a later entry was created, and this one deleted
                continue
            state = json.loads(content) if content else LogState().to_json()
            above = [name for name in entries if entries[name] > entries.get(latest, 0)]
            if above:
                state = state_of_names(above, state)
            return LogState.from_json(number, state), names
        raise TryAgainError(f"{self.path}: the log of this partition changes too fast to be read")


def _below_latest(names: Sequence[str]) -> list[str]:
    """Return the names of the entries that the latest complete entry makes needless."""
    latest = max(filter(_NAME.fullmatch, names), default="")
    bound = _number(latest) or 0
    return [name for name in names if 0 < (_number(name) or 0) <= bound and name != latest]


def _name(number: int) -> str:
    return f"{number:012}.json"


def _number(name: str) -> int | None:
    if is_mark(name):
        return None
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else number_in_name(name)
