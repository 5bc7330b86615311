"""Partitions that were made before a run, asked for page by page."""

from collections.abc import Callable, Iterator
from typing import Any

from slicewise.definitions import PartitionDefinition
from slicewise.errors import PartitionKeyError
from slicewise.runner.channel import Channel
from slicewise.runner.keys import read_key

PAST_PARTITIONS = "past_partitions"


def past_keys(
    worker: Channel, definition: PartitionDefinition | None
) -> Callable[[], Iterator[Any]]:
    """A function that goes through the past once more each time it is called."""

    def each() -> Iterator[Any]:
        after = None
        while True:
            page = worker.ask(PAST_PARTITIONS, after=after)
            for content in page["keys"]:
                try:
                    yield read_key(definition, content)
                except PartitionKeyError:
                    continue  # made under other bounds than the definition has now
            after = page["next"]
            if after is None:
                return

    return each
