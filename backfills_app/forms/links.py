"""The values that an address fills into the form: of a link, a reload, or a backfill to clone."""

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict

from assets_app.execution.request.requests import preview_selection
from assets_app.models import Asset
from backfills_app.forms.choice import names_in
from backfills_app.forms.params import PREFIX
from backfills_app.forms.period import SEGMENT
from backfills_app.forms.trigger import AT_MOST, CHOSEN
from backfills_app.models import BackfillOrder
from slicewise import PartitionSet
from slicewise_server.web.request_errors import InvalidRequest

_TEXTS = (
    "by", "asset", "asset_group", "asset_tag", "upstream", "start", "end", "selection",
    "description", "max_active_runs", "strategy", "per_run", "order", "existing", "downstream",
    "params", "code_version", "start_at", "allow_holes",
)  # fmt: skip


def values_in(query: QueryDict) -> dict[str, Any]:
    """Return the values that an address names, under the names of the form's fields."""
    values: dict[str, Any] = {name: query[name] for name in _TEXTS if query.get(name)}
    values["assets"] = names_in(query.getlist("assets"))
    for name in query:
        if name.startswith(SEGMENT):
            values[name] = names_in(query.getlist(name))
        elif name.startswith(PREFIX):
            values[name] = query[name]
    if followers := query.getlist("downstream_assets"):
        values["downstream_assets"] = followers
    if values.get("upstream", "").lower() in ("0", "false", "no"):
        del values["upstream"]
    return values


def completed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with the strategy, the downstream assets and the period as the form has
    these.
    """
    initial = dict(values)
    if str(initial.get("strategy", "")).isdecimal():
        initial |= {"strategy": AT_MOST, "per_run": str(initial["strategy"])}
    followers = initial.get("downstream")
    if isinstance(followers, str):
        followers = None if followers in ("none", "all", CHOSEN) else followers.split(",")
    if followers:
        initial |= {"downstream": CHOSEN, "downstream_assets": followers}
    return initial | _dates_and_segments(initial)


def _dates_and_segments(initial: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first and the last window and the segments of a selection made in a grid, if the
    selection is one range of windows with the same segments; otherwise nothing.

    Dates and boxes are easier to change than a selection is. But only the selection has the listed
    order.
    """
    if initial.get("order") == BackfillOrder.LISTED:
        return {}
    selection = initial.get("selection", "")
    asset = Asset.objects.declared().filter(name=initial.get("asset", "")).first()
    definition = asset.definition if selection and asset is not None else None
    if asset is None or definition is None or definition.time_dimension is None:
        return {}
    try:
        chosen = PartitionSet.of(definition, preview_selection(asset, selection))
    except (InvalidRequest, ValueError):
        # The form opens with the typed text, and the check of the form shows the error.
        return {}
    if len(chosen.ranges) != 1:
        return {}
    (selected,) = chosen.ranges
    assert selected.first is not None  # noqa: S101  (the definition has time)
    assert selected.last is not None  # noqa: S101
    dates = {"selection": "", "start": selected.first.text, "end": selected.last.text}
    dimensions = definition.segment_dimensions
    if len(chosen) == definition.count(selected.first.start, selected.last.end):
        return dates
    if len(dimensions) != 1:
        return {}
    return dates | {SEGMENT + dimensions[0].name: list(selected.segments)}
