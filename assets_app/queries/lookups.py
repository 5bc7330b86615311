"""Assets and runs by name and number, for all doors."""

from django.http import Http404

from assets_app.models import Asset, Run

LARGEST_ID = 2**63 - 1


def asset_named(name: str) -> Asset:
    """Return the asset of this name, declared or not; raise Http404 with a sentence without one."""
    found = Asset.objects.select_related(
        "bundle", "partition_definition", "producer__current_version", "producer__schedule"
    )
    # No name holds a NUL, which the database would not even compare.
    asset = None if "\0" in name else found.filter(name=name).first()
    if asset is None:
        raise Http404(f"There is no asset {name!r}.")
    return asset


def run_numbered(pk: int) -> Run:
    """Return the run of this number; raise Http404 with a sentence without one."""
    run = Run.objects.listed().prefetch_related("attempts__gateway").filter(pk=pk).first()
    if run is None:
        raise Http404(f"There is no run {pk}.")
    return run
