"""What a person asks for, read from what a form, a JSON body or a command line holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from accounts_app.errors import InvalidRequest
from assets_app.execution.requests import Strategy
from assets_app.models import Asset
from backfills_app.models import BackfillOrder, ExistingPolicy
from backfills_app.services.errors import gather
from backfills_app.services.naming import named_assets
from slicewise.moments import read_time
from slicewise.zones import to_datetime, zone

# Which assets follow: none, all that depend on it, or these names.
Downstream = str | tuple[str, ...]
NONE, ALL = "none", "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRequest:
    """Which partitions of one asset, or of several, to make, and how.

    ``assets`` are those that were chosen: by name, or as those of an ``asset_group`` or with an
    ``asset_tag``. ``upstream`` adds all that they are made from, ``downstream`` what follows them.
    Either ``start`` and ``end``, the first and the last partition (both included), or a
    ``selection`` in the selection grammar. ``strategy`` None stands for each asset's own.
    ``code_version`` is the number or the beginning of the digest of a version of the asset's
    bundle, empty for the newest; ``start_at`` the time from which runs may start, None for at once.
    """

    assets: tuple[Asset, ...]
    # The field that says which assets: "asset", "assets", "asset_group" or "asset_tag".
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
        """Whether each of the assets was named by itself."""
        return self.chosen_field in ("asset", "assets")

    @property
    def period_field(self) -> str:
        """The field that says which partitions."""
        return "selection" if self.selection else "end"


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
    between them), ``asset_group`` and ``asset_tag``. ``downstream`` is "none", "all", names with
    commas between them, or a list of names; ``start_at`` without a time zone is read in the zone of
    the first asset that has one.
    """
    errors: dict[str, list[str]] = {}
    found = gather(errors, lambda: named_assets(asset, assets, asset_group, asset_tag))
    texts = {
        "start": start, "end": end, "selection": selection, "description": description,
        "order": order, "existing": existing,
    }  # fmt: skip
    errors |= {
        name: [f"{value!r} is not text."]
        for name, value in texts.items()
        if not isinstance(value, str)
    }
    most = gather(errors, lambda: _whole_number("max_active_runs", max_active_runs))
    given = gather(errors, lambda: _params(params))
    cut = gather(errors, lambda: _strategy(strategy))
    holes = gather(errors, lambda: _yes_or_no("allow_holes", allow_holes))
    is_upstream = gather(errors, lambda: _yes_or_no("upstream", upstream))
    following = gather(errors, lambda: _downstream(downstream))
    version = gather(errors, lambda: _version(code_version))
    begin = gather(errors, lambda: _moment(start_at, found.assets if found else ()))
    if errors or found is None or most is None or version is None:
        raise InvalidRequest(errors)
    return BackfillRequest(
        assets=found.assets,
        chosen_field=found.field,
        asset_group=str(asset_group),
        asset_tag=str(asset_tag),
        upstream=bool(is_upstream),
        start=str(start).strip(),
        end=str(end).strip(),
        selection=str(selection).strip(),
        description=str(description),
        params=given or {},
        max_active_runs=most,
        order=str(order),
        strategy=cut,
        allow_holes=bool(holes),
        existing=str(existing),
        downstream=following or NONE,
        code_version=version,
        start_at=begin,
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
    """Names in the order in which they are given, each once."""
    if isinstance(value, str):
        text = value.strip()
        if text in ("", NONE, ALL):
            return text or NONE
        value = text.split(",")
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise InvalidRequest({"downstream": f"{value!r} is none of none, all, or names of assets."})
    names = tuple(dict.fromkeys(name.strip() for name in value if name.strip()))
    # A form of one field with several values says all or none among them.
    words = {NONE, ALL} & set(names)
    if words and len(names) > 1:
        raise InvalidRequest({"downstream": f"Either {words.pop()} or names, not both."})
    return names[0] if words else names or NONE


def _version(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise InvalidRequest({"code_version": f"{value!r} is no number and no digest."})
    return "" if value is None else str(value).strip()


def _moment(value: object, assets: Sequence[Asset]) -> datetime | None:
    if value is None or value == "":
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    if not isinstance(value, str):
        raise InvalidRequest({"start_at": f"{value!r} is no time: write 2026-01-31T06:00Z."})
    rules = [asset.definition.time_dimension for asset in assets if asset.definition]
    rule = next((rule for rule in rules if rule is not None), None)
    try:
        read = read_time(value.strip(), zone(rule.timezone if rule else "UTC"))
    except ValueError as error:
        raise InvalidRequest({"start_at": f"{value!r}: {error}"}) from error
    return to_datetime(read.start)


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
