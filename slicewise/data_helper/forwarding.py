"""Storages whose work on data is done by the helper."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from slicewise.data_helper.calls import writer_to_json
from slicewise.data_helper.client import DataHelper
from slicewise.io.base import Measured, Storage, Writer


def forwarded(storage: Storage, helper: DataHelper) -> Storage:
    """Return a storage at the same location for which the helper performs the calls of a worker.

    Results of location and writer alone, such as `staging`, are computed in this process.
    """
    copy = _forwarding(type(storage))(storage.location)
    vars(copy)["_helper"] = helper
    return copy


class _Forwarding(Storage):
    """The base class that precedes a storage's own class: its methods call the helper."""

    _helper: DataHelper

    def refuse_unfit_location(self) -> None:
        self._call("refuse_unfit_location")

    def check(self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer) -> None:
        self._call("check", staging=staging, partitions=list(partitions), writer=_json(writer))

    def publish(
        self, staging: str, partitions: Sequence[Mapping[str, Any]], writer: Writer
    ) -> Mapping[str, Mapping[str, Any]]:
        facts: Mapping[str, Mapping[str, Any]] = self._call(
            "publish", staging=staging, partitions=list(partitions), writer=_json(writer)
        )
        return facts

    def published(self, paths: Sequence[str], writer: Writer) -> list[str]:
        published: list[str] = self._call("published", paths=list(paths), writer=_json(writer))
        return published

    def discard(self, writer: Writer) -> None:
        self._call("discard", writer=_json(writer))

    def has_remains(self, writer: Writer) -> bool:
        return bool(self._call("has_remains", writer=_json(writer)))

    def is_reachable(self) -> bool:
        return bool(self._call("is_reachable"))

    def measure(self, paths: Sequence[str]) -> Mapping[str, Measured | None] | None:
        sizes: Mapping[str, Measured | None] | None = self._call("measure", paths=list(paths))
        return sizes

    def remove(self, writers: Mapping[str, Sequence[Writer]]) -> Mapping[str, str]:
        writers_json = {
            path: [_json(writer) for writer in path_writers]
            for path, path_writers in writers.items()
        }
        reasons: Mapping[str, str] = self._call("remove", writers=writers_json)
        return reasons

    def _call(self, name: str, **arguments: Any) -> Any:
        return self._helper.call(name, self.location, arguments)


_json = writer_to_json


@cache
def _forwarding(cls: type[Storage]) -> type[Storage]:
    return cast(
        "type[Storage]",
        type(f"Forwarded{cls.__name__}", (_Forwarding, cls), {"__module__": __name__}),
    )
