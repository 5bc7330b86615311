"""Lookup of assets by name and of runs by number, for pages, API and commands."""

from difflib import get_close_matches

from django.db.models import QuerySet
from django.http import Http404

from assets_app.models import DISCOVERY, Asset, Run, RunPartition
from slicewise.declaring import NAME_LIMIT

LARGEST_ID = 2**63 - 1
# Number of names that a mistaken name is compared with, which takes some milliseconds.
_MOST_COMPARED = 1_000


def asset_named(name: str) -> Asset:
    """Return the asset of this name, declared or not; raise Http404 with a sentence if none has
    it.
    """
    assets = Asset.objects.select_related(
        "bundle", "partition_definition", "producer__current_version", "producer__schedule"
    )
    # No name holds a NUL, which the database would not even compare.
    asset = None if "\0" in name else assets.filter(name=name).first()
    if asset is None:
        raise Http404(no_asset_sentence(name))
    return asset


def not_partitioned_sentence(asset: Asset) -> str:
    """Return the sentence about a selection of an asset without partitions."""
    return f"{asset.name} is not partitioned: leave the selection empty."


def no_asset_sentence(name: object) -> str:
    """Return the sentence that no asset has this name, with a declared name that is spelled
    alike.
    """
    sentence = f"There is no asset {name!r}."
    if not isinstance(name, str) or len(name) > NAME_LIMIT:
        return sentence
    declared = Asset.objects.declared().order_by("name").values_list("name", flat=True)
    near = get_close_matches(name, declared[:_MOST_COMPARED], n=1)
    return f"{sentence} Did you mean {near[0]!r}?" if near else sentence


def run_numbered(pk: int) -> Run:
    """Return the run of this number; raise Http404 with a sentence if there is none."""
    rows = Run.objects.listed().prefetch_related("attempts__gateway", "attempts__steps")
    run = rows.filter(pk=pk).first()
    if run is None:
        raise Http404(f"There is no run {pk}.")
    return run


def partitions_of_run(run: Run) -> QuerySet[RunPartition]:
    """Return the partitions of the run, without the row that stands for a search for keys."""
    return run.partitions.exclude(partition__identity=DISCOVERY)
