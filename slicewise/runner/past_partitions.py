"""Partitions that were materialized before a run, requested page by page."""

from collections.abc import Callable, Iterator
from typing import Any

from slicewise.errors import PartitionKeyError
from slicewise.partitions.definition import PartitionDefinition
from slicewise.runner.channel import Channel
from slicewise.runner.keys import read_key

PAST_PARTITIONS = "past_partitions"


def past_keys(
    worker: Channel, definition: PartitionDefinition | None
) -> Callable[[], Iterator[Any]]:
    """Return a function that iterates over the past partitions, from the first at each call."""

    def iterate_keys() -> Iterator[Any]:
        after = None
        while True:
            page = worker.ask(PAST_PARTITIONS, after=after)
            for content in page["keys"]:
                try:
                    yield read_key(definition, content)
                except PartitionKeyError:
                    continue  # materialized under earlier bounds of the definition
            after = page["next"]
            if after is None:
                return

    return iterate_keys
