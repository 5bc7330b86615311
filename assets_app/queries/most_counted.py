"""The assets with the largest numbers, by name: of failed, of overdue partitions."""

from collections.abc import Mapping
from typing import NamedTuple

from assets_app.models import Asset


class AssetNumber(NamedTuple):
    """The name of an asset, and a number of its partitions."""

    name: str
    number: int


def assets_with_most(numbers: Mapping[int, int], most: int) -> list[AssetNumber]:
    """Return the assets with the largest numbers, which are given by asset id: one statement, none
    without numbers.
    """
    largest = sorted(numbers, key=lambda asset_id: (-numbers[asset_id], asset_id))[:most]
    names = dict(Asset.objects.filter(pk__in=largest).values_list("pk", "name")) if largest else {}
    return [AssetNumber(names[pk], numbers[pk]) for pk in largest if pk in names]
