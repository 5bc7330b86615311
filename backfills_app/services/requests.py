"""What a person asks for, read from what a form, a JSON body or a command line holds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from accounts_app.errors import InvalidRequest
from assets_app.execution.requests import Strategy
from assets_app.models import Asset
from backfills_app.models import BackfillOrder, ExistingPolicy
from slicewise.moments import read_time
from slicewise.zones import to_datetime, zone

T = TypeVar("T")

# Which assets follow: none, all that depend on it, or these names.
Downstream = str | tuple[str, ...]
NONE, ALL = "none", "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRequest:
    """Which partitions of an asset to make, and how.

    Either ``start`` and ``end``, the first and the last partition (both included), or a
    ``selection`` in the selection grammar. ``strategy`` None stands for each asset's own.
    ``code_version`` is the number or the beginning of the digest of a version of the asset's
    bundle, empty for the newest; ``start_at`` the time from which runs may start, None for at once.
    """

    asset: Asset
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


def request_from_text(
    asset: object,
    start: object = "",
    end: object = "",
    *,
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
    """A request from text, numbers and lists. InvalidRequest on what cannot be read.

    ``downstream`` is "none", "all", names with commas between them, or a list of names;
    ``start_at`` is read in the asset's time zone where it names none.
    """
    errors: dict[str, list[str]] = {}
    found = gather(errors, lambda: _asset(asset))
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
    following = gather(errors, lambda: _downstream(downstream))
    version = gather(errors, lambda: _version(code_version))
    begin = gather(errors, lambda: _moment(start_at, found))
    if errors or found is None or most is None or version is None:
        raise InvalidRequest(errors)
    return BackfillRequest(
        asset=found,
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


def gather(errors: dict[str, list[str]], work: Callable[[], T]) -> T | None:
    """What the work gives, or None with what is wrong added to the errors."""
    try:
        return work()
    except InvalidRequest as refused:
        for name, said in refused.errors.items():
            errors.setdefault(name, []).extend(said)
        return None


def _asset(name: object) -> Asset:
    found = Asset.objects.declared().filter(name=name).first() if isinstance(name, str) else None
    if found is None:
        raise InvalidRequest(
            {"asset": f"There is no asset {name!r}." if name else "Name an asset."}
        )
    return found


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


def _moment(value: object, asset: Asset | None) -> datetime | None:
    if value is None or value == "":
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    if not isinstance(value, str):
        raise InvalidRequest({"start_at": f"{value!r} is no time: write 2026-01-31T06:00Z."})
    rule = asset.definition.time_dimension if asset and asset.definition else None
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
