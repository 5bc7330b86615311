"""The tabs with the declaration of an asset: settings, validations, definition and code."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest

from assets_app.models import Asset, FreshnessWatch, ProducerVersion, ValidationResult
from assets_app.queries.code_versions import difference, versions_of
from assets_app.views.declared_limits import declared_limits, pairs_text
from partitions_app.templatetags.slicewise_pages import duration
from slicewise.declaring import LONGEST_RETRY_DELAY, ProducerSpec
from slicewise.texts import masked_text, masked_uri
from slicewise_server.web.listing import page_of_rows


def validations_tab(request: HttpRequest, asset: Asset) -> dict[str, Any]:
    """Return the context of the tab: the latest results of validations of the asset's data."""
    rows = ValidationResult.objects.filter(asset=asset).select_related("attempt", "asset")
    rows = rows.defer("attempt__error", "attempt__traceback").order_by("-id")
    return {
        "page": page_of_rows(request, rows),
        "validations": _declared_validations(asset),
        "version": asset.producer and asset.producer.current_version,
    }


def settings_tab(request: HttpRequest, asset: Asset) -> dict[str, Any]:
    """Return the context of the tab: the settings in force, as the code declares them."""
    version = asset.producer.current_version if asset.producer else None
    settings = _settings(version.spec) if version else []
    watch = getattr(asset, "freshness_watch", None)
    if watch is not None or version:
        settings.insert(0, ("Freshness", _freshness_text(watch)))
    return {"settings": settings, "has_function": version is not None}


def _freshness_text(watch: FreshnessWatch | None) -> str:
    """Return in words when a missing partition is late, and when overdue."""
    if watch is None:
        return "none"
    within, warn = watch.freshness["within"], watch.freshness.get("warn")
    late = f"late {duration(warn)}, " if warn else ""
    return f"{late}overdue {duration(within)} after the end of the time window"


def _retries(spec: ProducerSpec) -> str:
    """Return the number of retries of a failure of the code, with the first pause."""
    if not spec.retries:
        return "0"
    longest = LONGEST_RETRY_DELAY.total_seconds()
    grows = spec.retries > 1 and 0 < spec.retry_delay < longest
    first_pause = f"after {duration(spec.retry_delay)}" if spec.retry_delay else "at once"
    text = f"{spec.retries:,}, {first_pause}"
    return f"{text}, doubled each time, up to {duration(longest)}" if grows else text


def _settings(spec: ProducerSpec) -> list[tuple[str, str]]:
    """Return the settings of a function in words."""
    limits = declared_limits(spec)
    texts = {
        "Retries": _retries(spec),
        "Timeout": limits.timeout,
        "Memory limit": limits.memory,
        "Max active runs": f"{spec.max_active_runs:,}" if spec.max_active_runs else "no limit",
        "Priority": str(spec.priority),
        "Depends on past": "yes" if spec.depends_on_past else "no",
        "Engine": limits.engine,
        "Write mode": spec.write_mode,
        "Partly failed runs": f"{spec.on_partial} finished partitions",
        "Partitions outside the definition": spec.outside,
        "Refresh": f"last {spec.refresh:,} partitions at each tick" if spec.refresh else "no",
        "Pending partitions": spec.pending,
        "Spark": limits.spark,
        "Params": pairs_text(spec.params),
        "Hooks": ", ".join(filter(None, [spec.on_success, spec.on_failure])) or "none",
    }
    return list(texts.items())


def definition_tab(request: HttpRequest, asset: Asset) -> dict[str, Any]:
    """Return the context of the tab: the declaration, the source, and differences of versions."""
    producer = asset.producer
    version = producer.current_version if producer else None
    versions = versions_of(producer) if producer else []
    same_uri = Asset.objects.filter(canonical_uri=asset.canonical_uri, active=True)
    return {
        "version": version,
        "versions": versions,
        **_difference(request, versions),
        "uri": masked_uri(asset.uri),
        # Decorators are part of the source, and so are the URIs in them.
        "source": masked_text(version.source) if version else "",
        "rule": repr(asset.definition) if asset.partition_definition else "",
        "validations": _declared_validations(asset),
        "sharing": same_uri.exclude(pk=asset.pk) if asset.canonical_uri else [],
    }


def _declared_validations(asset: Asset) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the phase, the asset's name and the loader's record of each declared validation."""
    version = asset.producer.current_version if asset.producer else None
    inlets = version.spec.inlet_validations if version else {}
    before = [
        ("inlet", name, validation)
        for name, validations in inlets.items()
        for validation in validations
    ]
    return [
        *before,
        *(("outlet", asset.name, validation) for validation in asset.outlet_validations),
    ]


def _difference(request: HttpRequest, versions: Sequence[ProducerVersion]) -> dict[str, Any]:
    """Return the difference of the versions that the address names; by default, of no version."""
    by_name = {version.digest[:12]: version for version in versions}
    older, newer = (by_name.get(request.GET.get(name, "")) for name in ("older", "newer"))
    if older is None or newer is None:
        return {"older": "", "newer": "", "diff": None}
    return {
        "older": older.digest[:12],
        "newer": newer.digest[:12],
        "diff": difference(older, newer),
    }
