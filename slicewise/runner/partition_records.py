"""Records of partitions, requested from the worker page by page."""

from collections.abc import Callable, Collection, Mapping, Sequence

from slicewise.io.recorded import PartitionRecord, Records
from slicewise.runner.channel import Channel

RECORDED = "recorded"
PRESENT = "present_partitions"
# A key text has up to 1,000 characters, and a message at most a megabyte.
_PAGE = 250


def records_of(worker: Channel, asset: str) -> Records:
    """Return a function that asks the worker for the records of partitions of an asset."""

    def ask(keys: Sequence[str]) -> Mapping[str, PartitionRecord]:
        records: dict[str, PartitionRecord] = {}
        for start in range(0, len(keys), _PAGE):
            page = list(keys[start : start + _PAGE])
            answer = worker.ask(RECORDED, asset=asset, keys=page)["recorded"]
            records |= {key: PartitionRecord.from_json(content) for key, content in answer.items()}
        return records

    return ask


def present_keys(worker: Channel, asset: str) -> Callable[[Sequence[str]], Collection[str]]:
    """Return a function that asks the worker which partitions of an outlet are materialized."""

    def ask(keys: Sequence[str]) -> Collection[str]:
        present: list[str] = []
        for start in range(0, len(keys), _PAGE):
            page = list(keys[start : start + _PAGE])
            present += worker.ask(PRESENT, asset=asset, keys=page)["present"]
        return present

    return ask
