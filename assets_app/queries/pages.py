"""Queries for the pages of one asset, one partition and one run."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q, QuerySet

from assets_app.models import (
    Asset,
    AssetPartition,
    AttemptStep,
    Bundle,
    Materialization,
    Run,
    RunLog,
    RunPartition,
    ValidationResult,
)
from slicewise.texts import spelling_hint

_STEPS_SHOWN = 60
_MOST_KEPT = 20


def import_error_of(asset: Asset) -> dict[str, Any] | None:
    """Return the error that keeps the asset's last declaration from being in force, if any."""
    version = asset.bundle.current_version
    if version is None or not asset.file:
        return None
    errors: list[dict[str, Any]] = version.import_errors
    file_errors = [error for error in errors if error["path"] == asset.file]
    of_asset = [error for error in file_errors if error.get("asset") == asset.name]
    of_file = [error for error in file_errors if not error.get("asset_only")]
    return next(iter(of_asset + of_file), None)


def broken_bundles() -> list[Bundle]:
    """Return bundles that could not be loaded, whole or in part, with the version in force."""
    broken = ~Q(error="") | (
        Q(current_version__isnull=False) & ~Q(current_version__import_errors=[])
    )
    return list(bundles().filter(broken))


def kept_assets(bundle: Bundle, errors: Sequence[Mapping[str, Any]]) -> QuerySet[Asset]:
    """Select the assets in force that errors of the bundle leave at their last good version."""
    assets = bundle.assets.filter(active=True)
    if not bundle.error:
        files = [error["path"] for error in errors if not error.get("asset_only")]
        refused = [error["asset"] for error in errors if error.get("asset_only")]
        assets = assets.filter(
            Q(file__in=files) | Q(producer__name__in=refused) | Q(name__in=refused)
        )
    return assets.order_by("name")


class BundleRow(NamedTuple):
    """A bundle with the assets in force that its errors leave at their last good version: the
    names of the first ones, and the number of the rest.
    """

    bundle: Bundle
    kept: Sequence[str] = ()
    more_kept: int = 0

    @property
    def errors(self) -> Sequence[Mapping[str, Any]]:
        """The import errors of the version in force."""
        return _import_errors(self.bundle)

    @property
    def has_errors(self) -> bool:
        """Whether the bundle, or a file of the bundle, could not be loaded."""
        return bool(self.bundle.error or self.errors)

    @property
    def failed_names(self) -> list[str]:
        """The paths of the files that cannot be loaded, and the names of single refused assets."""
        return sorted(
            {error["asset"] if error.get("asset_only") else error["path"] for error in self.errors}
        )


def bundle_rows() -> list[BundleRow]:
    """Return all bundles, those with errors first: two statements more for each broken one."""
    rows = [_bundle_row(bundle) for bundle in bundles()]
    return sorted(rows, key=lambda row: not row.has_errors)


def last_bundle_check(rows: Sequence[BundleRow]) -> datetime | None:
    """Return the time of the latest check of a bundle in force or with an error; None without any.

    A bundle that the settings no longer name is not checked.
    """
    checked = [row.bundle for row in rows if row.bundle.current_version or row.has_errors]
    return max((bundle.checked_at for bundle in checked if bundle.checked_at), default=None)


def _bundle_row(bundle: Bundle) -> BundleRow:
    row = BundleRow(bundle)
    if not row.has_errors:
        return row
    kept = kept_assets(bundle, row.errors)
    names = list(kept.values_list("name", flat=True)[:_MOST_KEPT])
    return BundleRow(bundle, names, kept.count() - len(names))


def bundles_with_kept_assets(broken: Sequence[Bundle]) -> list[int]:
    """Return the ids of broken bundles of which assets stay in force at their last good version."""
    return [bundle.pk for bundle in broken if kept_assets(bundle, _import_errors(bundle)).exists()]


def _import_errors(bundle: Bundle) -> list[dict[str, Any]]:
    version = bundle.current_version
    return version.import_errors if version else []


def bundles() -> QuerySet[Bundle]:
    """Select all bundles with the version in force, without its archive."""
    rows = Bundle.objects.select_related("current_version").defer("current_version__archive")
    return rows.order_by("name")


_UNKNOWN_NAMES = """
SELECT producer.bundle_id, producer.name, reference.name
FROM assets_app_producer AS producer
JOIN assets_app_producerversion AS version ON version.id = producer.current_version_id
CROSS JOIN jsonb_array_elements_text(version.definition -> 'references') AS reference(name)
WHERE EXISTS (
        SELECT FROM assets_app_asset WHERE producer_id = producer.id AND active
    )
    AND NOT EXISTS (SELECT FROM assets_app_asset WHERE name = reference.name AND active)
ORDER BY producer.bundle_id, producer.name, reference.name
LIMIT %s
"""
_UNKNOWN_NAMES_SHOWN = 100


class UnknownName(NamedTuple):
    """An upstream asset that a function of a bundle names and that no bundle declares."""

    bundle_id: int
    producer: str
    name: str
    hint: str


def unknown_names() -> list[UnknownName]:
    """Return the upstream names that no bundle declares, up to 100, by bundle and function."""
    with connection.cursor() as cursor:
        cursor.execute(_UNKNOWN_NAMES, [_UNKNOWN_NAMES_SHOWN])
        rows = cursor.fetchall()
    if not rows:
        return []
    declared_names = list(Asset.objects.filter(active=True).values_list("name", flat=True))
    return [
        UnknownName(
            bundle_id,
            producer,
            name,
            spelling_hint(
                name,
                [declared_name for declared_name in declared_names if declared_name != producer],
            ),
        )
        for bundle_id, producer, name in rows
    ]


def partition_of(asset: Asset, key: str) -> AssetPartition | None:
    """Return the row of a partition; None if the partition has no history."""
    rows = AssetPartition.objects.select_related("held_by", "last_run")
    return rows.filter(asset=asset, identity=asset.identity, key=key).first()


def materializations_of(partition: AssetPartition, most: int = 50) -> list[Materialization]:
    """Return materializations, newest first, with their runs or the person who reported them."""
    return list(
        partition.materializations.select_related("run", "report", "producer_version")[:most]
    )


def runs_of_partition(partition: AssetPartition, most: int = 20) -> list[RunPartition]:
    """Return the runs that were to materialize a partition, newest first."""
    rows = partition.run_partitions.select_related("run", "run__requested_by")
    return list(rows.order_by("-run_id")[:most])


def validations_of(run: Run, most: int = 200) -> list[ValidationResult]:
    """Return the results of the run's validations: the last attempt's first, failures first."""
    rows = ValidationResult.objects.filter(attempt__run=run).select_related("asset", "attempt")
    rows = rows.defer("attempt__error", "attempt__traceback")
    return list(rows.order_by("-attempt__number", "passed", "severity", "position")[:most])


def whole_log(run: Run) -> QuerySet[RunLog]:
    """Select the whole output of the run's attempts, in order."""
    return RunLog.objects.filter(attempt__run=run).order_by("attempt__number", "sequence")


def step_log(run: Run, number: int, step: str) -> QuerySet[RunLog]:
    """Select the output of one step of an attempt, in order."""
    return whole_log(run).filter(attempt__number=number, step=step)


def steps_of(run: Run) -> list[AttemptStep]:
    """Return the steps of the run's attempts, the last attempt's first."""
    rows = AttemptStep.objects.filter(attempt__run=run).select_related("attempt")
    rows = rows.defer("attempt__error", "attempt__traceback")
    return list(rows.order_by("-attempt__number", "position")[:_STEPS_SHOWN])
