"""Refusals: declarations that this server cannot put in force, by its settings or other bundles.

Declarations that no server acts on are refused by the SDK itself, so that `slicewise definitions
check` reports the refusal.

Each refusal is reported like an error that kept a file from being loaded, and concerns one asset:
the last good version of the asset stays in force, and the rest of the file is put in force.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from django.conf import settings

from assets_app.catalogue.declared import DeclaredBundle
from assets_app.models import Asset, Bundle, Producer, ProducerVersion
from slicewise.declaring import ExternalSpec, ProducerSpec, cycle_from, schedule_names
from slicewise.partitions import Limits

Spec = ProducerSpec | ExternalSpec

OTHERS = "others"
"""In an error caused by other bundles: the digest of the versions of these bundles."""

_NO_MASTER = (
    'engine="submit" needs a Spark master, and this server has none; its setting SPARK_MASTER'
    " names one"
)


def refusals(bundle_id: int, declared: DeclaredBundle) -> list[dict[str, Any]]:
    """Return file errors for declarations that servers refuse, one for each producer or asset."""
    producers = [producer.spec for producer in declared.producers]
    cycles, name_clashes = _cycles(bundle_id, producers), _taken_names(bundle_id, declared.specs)
    reasons = {**cycles, **_not_acted_on(producers), **name_clashes}
    others_digest = _others_in_force(bundle_id) if cycles or name_clashes else ""
    return [
        _error(spec, f"asset {spec.name!r}: {reasons[spec.name]}")
        | ({OTHERS: others_digest} if spec.name in {**cycles, **name_clashes} else {})
        for spec in declared.specs
        if spec.name in reasons
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
            return f"the limit is {getattr(settings, setting):,} (" not in message
    return False


def _others_in_force(bundle_id: int) -> str:
    """Return a digest of the versions of the other bundles."""
    rows = Bundle.objects.exclude(pk=bundle_id).order_by("name")
    versions = list(rows.values_list("name", "current_version__digest"))
    return sha256(repr(versions).encode()).hexdigest()


def _error(spec: Spec, message: str) -> dict[str, Any]:
    """Return an error of the file that declares the entry, in the form of the loader's errors."""
    return {
        "path": spec.file,
        "message": message,
        "traceback": "",
        "line": spec.line,
        "asset": spec.name,
        "asset_only": True,
    }


def _taken_names(bundle_id: int, specs: Iterable[Spec]) -> dict[str, str]:
    """Return the reasons to refuse entries with a name that another bundle has: one namespace holds
    all names (AIP-75).
    """
    declaring = {name: spec.name for spec in specs for name in {*spec.outlet_names, spec.name}}
    other_assets = Asset.objects.filter(active=True).exclude(bundle=bundle_id)
    other_assets = other_assets.select_related("bundle", "producer__current_version")
    reasons = {}
    for clashing in other_assets.filter(name__in=declaring):
        reasons[declaring[clashing.name]] = (
            f"the name {clashing.name!r} is taken by an asset of bundle {clashing.bundle.name}"
            f"{_location(clashing)}; give one of them another"
        )
    functions = Producer.objects.filter(name__in=declaring, assets__active=True)
    functions = functions.exclude(bundle=bundle_id).select_related("bundle", "current_version")
    for function in functions.distinct():
        reasons.setdefault(
            declaring[function.name],
            f"the name {function.name!r} is taken by a function of bundle {function.bundle.name}"
            f"{_location_of(function.current_version)}; give one of them another",
        )
    return reasons


def _location(asset: Asset) -> str:
    return _location_of(asset.producer.current_version if asset.producer else None)


def _location_of(version: ProducerVersion | None) -> str:
    return f" ({version.file}:{version.spec.line})" if version else ""


def _not_acted_on(producers: Iterable[ProducerSpec]) -> dict[str, str]:
    """Return the reasons to refuse producers whose options this server cannot follow."""
    if settings.SPARK_MASTER:
        return {}
    return {spec.name: _NO_MASTER for spec in producers if spec.engine == "submit"}


def _cycles(bundle_id: int, producers: Sequence[ProducerSpec]) -> dict[str, str]:
    """Return the reasons to refuse producers whose schedule waits for itself by way of other
    bundles; the loader sees one bundle.
    """
    own_upstreams = {
        name: spec.scheduling_names for spec in producers for name in spec.outlet_names
    }
    if {name for names in own_upstreams.values() for name in names} <= own_upstreams.keys():
        return {}
    other_assets = Asset.objects.filter(active=True).exclude(bundle=bundle_id)
    rows = other_assets.exclude(schedule=None).values_list("name", "schedule")
    after = {**{name: schedule_names(schedule) for name, schedule in rows}, **own_upstreams}
    reasons = {}
    for spec in producers:
        cycles = (cycle_from(name, after) for name in spec.outlet_names)
        cycle = next(filter(None, cycles), None)
        if cycle is not None:
            reasons[spec.name] = (
                f"its schedule waits for itself, by way of another bundle: {' -> '.join(cycle)};"
                " one of these follows a time, or none"
            )
    return reasons
