"""The partitions beside one partition: before and after it, and downstream of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import slicewise
from assets_app.models import Asset, AssetDependency
from assets_app.queries.edges import edge_without_bounds
from partitions_app.labels import label_of_key
from partitions_app.rules import has_time
from slicewise.keys import SEPARATOR, WHOLE

# Windows are at most some years long.
_FAR = timedelta(days=3000)


@dataclass(frozen=True, slots=True)
class Adjacent:
    """Key texts of the partitions before and after a partition; empty where there is none."""

    previous: str = ""
    following: str = ""


@dataclass(frozen=True, slots=True)
class Followers:
    """The partitions of one downstream asset that need a partition.

    ``count`` is None where the need does not depend on the partition: all partitions follow.
    """

    asset: Asset
    count: int | None
    first: str = ""
    first_label: str = ""
    last_label: str = ""


def adjacent_to(
    definition: slicewise.PartitionDefinition | None, key: str, now: datetime
) -> Adjacent:
    """Return the partitions of the same segment in the windows before and after; without time, the
    keys before and after. ``following`` has begun by now.

    No partitions stand beside an unpartitioned asset, or beside a key that the definition no longer
    has.
    """
    if definition is None:
        return Adjacent()
    try:
        window = definition.parse(key).time
    except ValueError:
        return Adjacent()
    time_definition = definition.time_dimension
    if window is None or time_definition is None:
        listed_keys = definition.keys()
        return _beside(key, [listed_key.text for listed_key in listed_keys])
    earlier = time_definition.windows(window.start - _FAR, window.start)
    later = time_definition.windows(window.end, window.end + _FAR)
    names, time_name = definition.space.names, definition.space.time_name
    components = key.split(SEPARATOR)

    def at(other_window: slicewise.Interval) -> str:
        components[names.index(time_name or "")] = other_window.text
        return SEPARATOR.join(components)

    return Adjacent(
        at(earlier[-1]) if len(earlier) else "",
        at(later[0]) if len(later) and later[0].start <= now else "",
    )


def followers_of_partition(asset: Asset, key: str) -> list[Followers]:
    """Return the downstream partitions of a partition, by asset: one statement."""
    dependencies = AssetDependency.objects.filter(upstream=asset, downstream__active=True)
    dependencies = dependencies.select_related(
        "downstream__partition_definition", "upstream__partition_definition"
    )
    try:
        own = slicewise.PartitionSet.of(asset.definition, [_parsed(asset, key)])
    except ValueError:
        return []
    followers = []
    for dependency in dependencies.order_by("downstream__name"):
        edge = edge_without_bounds(dependency)
        if edge.downstream is None:
            followers.append(Followers(dependency.downstream, 1))
            continue
        if edge.needs_all_of_time or has_time(edge.upstream) != has_time(edge.downstream):
            followers.append(Followers(dependency.downstream, None))
            continue
        partitions = edge.following(own)
        if partitions:
            first, last = partitions[0], partitions[-1]
            followers.append(
                Followers(
                    dependency.downstream,
                    len(partitions),
                    first.text,
                    label_of_key(first),
                    label_of_key(last),
                )
            )
    return followers


def _parsed(asset: Asset, key: str) -> slicewise.PartitionKey:
    return WHOLE if asset.definition is None else asset.definition.parse(key)


def _beside(key: str, texts: Sequence[str]) -> Adjacent:
    if key not in texts:
        return Adjacent()
    index = texts.index(key)
    return Adjacent(
        texts[index - 1] if index else "", texts[index + 1] if index + 1 < len(texts) else ""
    )
