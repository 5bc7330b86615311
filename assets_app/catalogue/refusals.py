"""Refusals: declarations that this server cannot put in force, by its settings or other bundles.

Declarations that no server acts on are refused by the SDK itself, so that `slicewise definitions
check` reports the refusal.

Each refusal is reported like an error that kept a file from being loaded, and concerns one asset:
the last good version of the asset stays in force, and the rest of the file is put in force.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from django.conf import settings

from assets_app.models import Asset, Bundle, Producer, ProducerVersion
from slicewise.declaring import cycle_from, schedule_names
from slicewise.partitions import Limits

Declared = dict[str, Any]

OTHERS = "others"
"""In an error caused by other bundles: the digest of the versions of these bundles."""

_NO_MASTER = (
    'engine="submit" needs a Spark master, and this server has none; its setting SPARK_MASTER'
    " names one"
)


def refusals(bundle_id: int, declared: Declared) -> list[dict[str, Any]]:
    """Return file errors for declarations that servers refuse, one for each producer or asset."""
    cycles, name_clashes = (
        _cycles(bundle_id, declared["producers"]),
        _taken_names(bundle_id, declared),
    )
    reasons = {
        **cycles,
        **{entry["name"]: reason for entry, reason in _not_acted_on(declared)},
        **name_clashes,
    }
    others_digest = _others_in_force(bundle_id) if cycles or name_clashes else ""
    return [
        error(entry, f"asset {entry['name']!r}: {reasons[entry['name']]}")
        | ({OTHERS: others_digest} if entry["name"] in {**cycles, **name_clashes} else {})
        for entry in [*declared["producers"], *declared["assets"]]
        if entry["name"] in reasons
    ]


def is_outdated(bundle_id: int, errors: Iterable[dict[str, Any]]) -> bool:
    """Return whether a refusal was for a setting that has changed since, or for other bundles that
    have changed since.
    """
    errors = list(errors)
    messages = [entry["message"] for entry in errors]
    if settings.SPARK_MASTER and any(_NO_MASTER in message for message in messages):
        return True
    if any(_was_over_another_limit(message) for message in messages):
        return True
    for_others = {refusal[OTHERS] for refusal in errors if OTHERS in refusal}
    return bool(for_others) and for_others != {_others_in_force(bundle_id)}


def _was_over_another_limit(message: str) -> bool:
    """Tell whether a definition was too large for a limit that has changed since."""
    for name in Limits._fields:
        setting = name.upper()
        if f"(setting {setting} of the server)" in message:
            return f"at most {getattr(settings, setting):,} are taken" not in message
    return False


def _others_in_force(bundle_id: int) -> str:
    """Return a digest of the versions of the other bundles."""
    rows = Bundle.objects.exclude(pk=bundle_id).order_by("name")
    versions = list(rows.values_list("name", "current_version__digest"))
    return sha256(repr(versions).encode()).hexdigest()


def error(entry: Declared, message: str) -> dict[str, Any]:
    """Return an error of the file that declares the entry, in the form of the loader's errors."""
    return {
        "path": entry["file"],
        "message": message,
        "traceback": "",
        "line": entry["line"],
        "asset": entry["name"],
        "asset_only": True,
    }


def names_of(entry: Declared) -> list[str]:
    """Return the assets that an entry of the report declares: outlets, or the asset itself."""
    return (
        [outlet["name"] for outlet in entry["outlets"]] if "outlets" in entry else [entry["name"]]
    )


def scheduling_names(schedule: dict[str, Any] | None) -> list[str]:
    """Return the names of the assets in a schedule's JSON: the leaves of its expression."""
    return schedule_names(schedule)


def _taken_names(bundle_id: int, declared: Declared) -> dict[str, str]:
    """Return the reasons to refuse entries with a name that another bundle has: one namespace holds
    all names (AIP-75).
    """
    entries = {
        name: entry
        for entry in [*declared["producers"], *declared["assets"]]
        for name in {*names_of(entry), entry["name"]}
    }
    other_assets = Asset.objects.filter(active=True).exclude(bundle=bundle_id)
    other_assets = other_assets.select_related("bundle", "producer__current_version")
    reasons = {}
    for clashing in other_assets.filter(name__in=entries):
        reasons[entries[clashing.name]["name"]] = (
            f"the name {clashing.name!r} is taken by an asset of bundle {clashing.bundle.name}"
            f"{_location(clashing)}; give one of them another"
        )
    functions = Producer.objects.filter(name__in=entries, assets__active=True)
    functions = functions.exclude(bundle=bundle_id).select_related("bundle", "current_version")
    for function in functions.distinct():
        reasons.setdefault(
            entries[function.name]["name"],
            f"the name {function.name!r} is taken by a function of bundle {function.bundle.name}"
            f"{_location_of(function.current_version)}; give one of them another",
        )
    return reasons


def _location(asset: Asset) -> str:
    return _location_of(asset.producer.current_version if asset.producer else None)


def _location_of(version: ProducerVersion | None) -> str:
    return f" ({version.file}:{version.definition['line']})" if version else ""


def _not_acted_on(declared: Declared) -> Iterator[tuple[Declared, str]]:
    """Yield the producers whose options this server cannot follow, each with the reason."""
    for entry in declared["producers"]:
        if entry.get("engine") == "submit" and not settings.SPARK_MASTER:
            yield entry, _NO_MASTER


def _cycles(bundle_id: int, producers: Iterable[Declared]) -> dict[str, str]:
    """Return the reasons to refuse producers whose schedule waits for itself by way of other
    bundles; the loader sees one bundle.
    """
    own_upstreams = {
        name: scheduling_names(entry["schedule"]) for entry in producers for name in names_of(entry)
    }
    if {name for names in own_upstreams.values() for name in names} <= own_upstreams.keys():
        return {}
    other_assets = Asset.objects.filter(active=True).exclude(bundle=bundle_id)
    rows = other_assets.exclude(schedule=None).values_list("name", "schedule")
    after = {**{name: scheduling_names(schedule) for name, schedule in rows}, **own_upstreams}
    reasons = {}
    for entry in producers:
        cycle = next(filter(None, (cycle_from(name, after) for name in names_of(entry))), None)
        if cycle is not None:
            reasons[entry["name"]] = (
                f"its schedule waits for itself, by way of another bundle: {' -> '.join(cycle)};"
                " one of these follows a time, or none"
            )
    return reasons
