"""The request for a backfill, read from a form, a JSON body or a command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from assets_app.execution.request.requests import Strategy
from assets_app.models import Asset
from backfills_app.models import BackfillOrder, ExistingPolicy
from backfills_app.services.request.naming import Named, named_assets
from slicewise.calendar import read_time, to_datetime, zone
from slicewise_server.web.request_errors import FieldErrors, InvalidRequest

# The downstream assets to include: none, all, or the assets with these names.
Downstream = str | tuple[str, ...]
NONE, ALL = "none", "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRequest:
    """The assets and partitions that a backfill is to materialize, and how.

    ``assets`` are the chosen assets: by name, or all assets of an ``asset_group`` or with an
    ``asset_tag``. ``upstream`` adds all assets upstream of the chosen ones, ``downstream`` adds
    assets that follow. The partitions are named either by ``start`` and ``end``, the first and the
    last partition (both included), or by a ``selection`` in the selection grammar. ``strategy``
    None stands for the strategy of each asset. ``code_version`` is the number or the beginning of
    the digest of a version of the asset's bundle, empty for the newest version; ``start_at`` is the
    time from which runs may start, None for at once.
    """

    assets: tuple[Asset, ...]
    # The field that chose the assets: "asset", "assets", "asset_group" or "asset_tag".
    chosen_field: str = "asset"
    asset_group: str = ""
    asset_tag: str = ""
    upstream: bool = False
    start: str = ""
    end: str = ""
    selection: str = ""
    description: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    max_active_runs: int = 3
    order: str = BackfillOrder.OLDEST
    strategy: Strategy | None = None
    allow_holes: bool = False
    existing: str = ExistingPolicy.MISSING_AND_FAILED
    downstream: Downstream = NONE
    code_version: str = ""
    start_at: datetime | None = None

    @property
    def is_named(self) -> bool:
        """Whether each asset was chosen by its own name."""
        return self.chosen_field in ("asset", "assets")


def request_from_text(
    asset: object = "",
    start: object = "",
    end: object = "",
    *,
    assets: object = None,
    asset_group: object = "",
    asset_tag: object = "",
    upstream: object = False,
    selection: object = "",
    description: object = "",
    params: object = None,
    max_active_runs: object = 3,
    order: object = BackfillOrder.OLDEST,
    strategy: object = None,
    allow_holes: object = False,
    existing: object = ExistingPolicy.MISSING_AND_FAILED,
    downstream: object = NONE,
    code_version: object = "",
    start_at: object = "",
) -> BackfillRequest:
    """Read a request from text, numbers and lists; raise InvalidRequest on unreadable values.

    Assets are chosen by one of ``asset``, ``assets`` (a list of names, or a text with commas
    between names), ``asset_group`` and ``asset_tag``. ``downstream`` is "none", "all", names with
    commas between them, or a list of names; ``start_at`` without a time zone is read in the zone of
    the first asset that has a zone.
    """
    errors = FieldErrors()
    named_choice: Named | None = None
    with errors:
        named_choice = named_assets(asset, assets, asset_group, asset_tag)
    texts = {
        "start": start, "end": end, "selection": selection, "description": description,
        "order": order, "existing": existing,
    }  # fmt: skip
    for name, value in texts.items():
        if not isinstance(value, str):
            errors.add(name, f"{value!r} is not text.")
    with errors:
        active_runs = _whole_number("max_active_runs", max_active_runs)
    with errors:
        given_params = _params(params)
    with errors:
        run_strategy = _strategy(strategy)
    with errors:
        allows_holes = _yes_or_no("allow_holes", allow_holes)
    with errors:
        is_upstream = _yes_or_no("upstream", upstream)
    with errors:
        downstream_choice = _downstream(downstream)
    with errors:
        version = _version(code_version)
    with errors:
        begin_time = _start_time(start_at, named_choice.assets if named_choice else ())
    if errors.messages or named_choice is None:
        raise InvalidRequest(errors.messages)
    return BackfillRequest(
        assets=named_choice.assets,
        chosen_field=named_choice.field,
        asset_group=str(asset_group),
        asset_tag=str(asset_tag),
        upstream=is_upstream,
        start=str(start).strip(),
        end=str(end).strip(),
        selection=str(selection).strip(),
        description=str(description),
        params=given_params,
        max_active_runs=active_runs,
        order=str(order),
        strategy=run_strategy,
        allow_holes=allows_holes,
        existing=str(existing),
        downstream=downstream_choice,
        code_version=version,
        start_at=begin_time,
    )


def _params(params: object) -> Mapping[str, Any]:
    if params is None:
        return {}
    if not isinstance(params, Mapping):
        raise InvalidRequest({"params": "Params are an object of names and values."})
    return params


def _strategy(strategy: object) -> Strategy | None:
    if strategy is None or (isinstance(strategy, str | int) and not isinstance(strategy, bool)):
        return strategy
    raise InvalidRequest({"strategy": f"{strategy!r} is none of partition, range, or a number."})


def _downstream(value: object) -> Downstream:
    """Return NONE, ALL, or the names in the order of the request, each once."""
    if isinstance(value, str):
        text = value.strip()
        if text in ("", NONE, ALL):
            return text or NONE
        value = text.split(",")
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise InvalidRequest(
            {"downstream": f"{value!r} is neither none, nor all, nor a list of names."}
        )
    names = tuple(dict.fromkeys(name.strip() for name in value if name.strip()))
    # A form field with several values may have "all" or "none" among the values.
    keywords = {NONE, ALL} & set(names)
    if keywords and len(names) > 1:
        raise InvalidRequest({"downstream": f"Either {keywords.pop()} or names, not both."})
    return names[0] if keywords else names or NONE


def _version(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise InvalidRequest({"code_version": f"{value!r} is no number and no digest."})
    return "" if value is None else str(value).strip()


def _start_time(value: object, assets: Sequence[Asset]) -> datetime | None:
    if value is None or value == "":
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    if not isinstance(value, str):
        raise InvalidRequest({"start_at": f"{value!r} is no time: write 2026-01-31T06:00Z."})
    time_dimensions = [asset.definition.time_dimension for asset in assets if asset.definition]
    time_dimension = next(
        (time_dimension for time_dimension in time_dimensions if time_dimension is not None), None
    )
    try:
        parsed = read_time(
            value.strip(), zone(time_dimension.timezone if time_dimension else "UTC")
        )
    except ValueError as error:
        raise InvalidRequest({"start_at": f"{value!r}: {error}"}) from error
    return to_datetime(parsed.start)


def _yes_or_no(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidRequest({name: f"{value!r} is neither true nor false."})


def _whole_number(name: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    problem = InvalidRequest({name: f"{value!r} is not a whole number."})
    if not isinstance(value, str):
        raise problem
    try:
        return int(value.strip())
    except ValueError:
        raise problem from None
