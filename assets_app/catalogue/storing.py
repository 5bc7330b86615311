"""Storage of the report of the loader in the catalogue, set by set."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection
from django.utils import timezone

from assets_app.catalogue.loading import LoadedBundle
from assets_app.catalogue.refusals import refusals, scheduling_names
from assets_app.catalogue.timetables import stop_schedules, store_schedules
from assets_app.models import (
    Asset,
    AssetDependency,
    Bundle,
    BundleVersion,
    Producer,
    ProducerVersion,
)
from assets_app.queries.clock import database_now
from partitions_app.models import PartitionDefinition

_ASSET_COLUMNS = (
    *("bundle_id", "producer_id", "partition_definition_id", "uri", "canonical_uri", "kind"),
    *("format", "group", "owners", "tags", "columns", "outlet_validations", "description"),
    *("schedule", "file", "warnings", "active"),
)


_BATCH_SIZE = 1_000

# For thousands of rows, Django's own bulk_update takes several seconds.
_IN_FORCE = """
UPDATE assets_app_producer AS producer SET current_version_id = fresh.version_id
FROM unnest(%s::bigint[], %s::bigint[]) AS fresh(producer_id, version_id)
WHERE producer.id = fresh.producer_id
"""
_RESERVE = "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)"
_COPY = """
COPY assets_app_producerversion
    (id, producer_id, bundle_version_id, digest, definition, source, file, created_at)
FROM STDIN
"""


def store(bundle: Bundle, loaded: LoadedBundle) -> BundleVersion:
    """Store the loaded snapshot as the version in force of the bundle; call in a transaction."""
    declared = loaded.declared
    refusal_errors = refusals(bundle.pk, declared)
    version, _ = BundleVersion.objects.update_or_create(
        bundle=bundle,
        digest=loaded.digest,
        defaults={
            "archive": loaded.archive,
            "import_errors": [*declared["errors"], *refusal_errors],
        },
    )
    names = {entry["asset"] for entry in refusal_errors}
    producers = [entry for entry in declared["producers"] if entry["name"] not in names]
    external = [entry for entry in declared["assets"] if entry["name"] not in names]
    versions = _store_producers(bundle, version, producers)
    new_names = _store_assets(bundle, producers, external, versions)
    _deactivate_undeclared(bundle, declared, {entry["path"] for entry in declared["errors"]})
    _store_dependencies([*producers, *_entries_naming(new_names, bundle)], external)
    # At the end: as long as the rows of schedules are locked, no schedule ticks.
    store_schedules(versions.values(), now=database_now())
    stop_schedules(bundle)
    Bundle.objects.filter(pk=bundle.pk).update(
        current_version=version, error="", checked_at=timezone.now()
    )
    bundle.refresh_from_db()
    return version


def _outlets(producers: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**outlet, "file": entry["file"]} for entry in producers for outlet in entry["outlets"]]


def _store_producers(
    bundle: Bundle, version: BundleVersion, producers: list[dict[str, Any]]
) -> dict[str, Producer]:
    names = [entry["name"] for entry in producers]
    stored = set(Producer.objects.filter(bundle=bundle).values_list("name", flat=True))
    Producer.objects.bulk_create(
        [Producer(name=name, bundle=bundle) for name in names if name not in stored],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=["bundle"],
    )
    rows = {
        row.name: row
        for row in Producer.objects.filter(name__in=names).select_related("current_version")
    }
    fresh = [
        new
        for entry in producers
        if (new := _changed_version(rows[entry["name"]], entry, version)) is not None
    ]
    _copy_versions(fresh)
    for new in fresh:
        new.producer.current_version = new
    with connection.cursor() as cursor:
        cursor.execute(_IN_FORCE, [[new.producer_id for new in fresh], [new.pk for new in fresh]])
    return rows


def _copy_versions(fresh: Sequence[ProducerVersion]) -> None:
    """Write the versions and set their ids. Thousands of definitions as parameters of a statement
    would take longer to quote than all other work.
    """
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE, [ProducerVersion._meta.db_table, len(fresh)])
        for new, (pk,) in zip(fresh, cursor.fetchall(), strict=True):
            new.pk, new.created_at = pk, timezone.now()
        with cursor.copy(_COPY) as copy:
            for new in fresh:
                definition = json.dumps(new.definition)
                names = (new.pk, new.producer_id, new.bundle_version_id, new.digest)
                copy.write_row((*names, definition, new.source, new.file, new.created_at))


def _changed_version(
    producer: Producer, entry: dict[str, Any], version: BundleVersion
) -> ProducerVersion | None:
    """Return a new version of the producer, or None where nothing has changed that its runs depend
    on: a run depends on every file of the bundle.
    """
    definition = {key: value for key, value in entry.items() if key != "source"}
    digest = hashlib.sha256(
        json.dumps([definition, entry["source"], version.digest], sort_keys=True).encode()
    ).hexdigest()
    current = producer.current_version
    if current is not None and current.digest == digest:
        return None
    return ProducerVersion(
        producer=producer,
        bundle_version=version,
        digest=digest,
        definition=definition,
        source=entry["source"],
        file=entry["file"],
    )


def _store_assets(
    bundle: Bundle,
    producers: list[dict[str, Any]],
    external: list[dict[str, Any]],
    versions: dict[str, Producer],
) -> set[str]:
    """Store the declared assets; return the names that no bundle had declared before."""
    definition_rows = _DefinitionRows()
    rows = [
        _asset(
            bundle,
            outlet | {"file": entry["file"]},
            entry,
            versions[entry["name"]],
            definition_rows,
        )
        for entry in producers
        for outlet in entry["outlets"]
    ]
    rows += [_asset(bundle, entry, {}, None, definition_rows) for entry in external]
    names = [row.name for row in rows]
    stored = Asset.objects.filter(name__in=names).values_list("name", *_ASSET_COLUMNS)
    stored_facts = {name: facts for name, *facts in stored}
    for row, entry in zip(rows, [*_entry_per_outlet(producers), *external], strict=True):
        # `paused=` in the file is the initial state of an asset; afterwards people decide on the
        # page of the asset.
        row.paused = bool(entry.get("paused")) and row.name not in stored_facts
    Asset.objects.bulk_create(
        [row for row in rows if stored_facts.get(row.name) != _facts_of(row)],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=[name.removesuffix("_id") for name in _ASSET_COLUMNS],
        batch_size=_BATCH_SIZE,
    )
    return {*names} - stored_facts.keys()


def _facts_of(asset: Asset) -> list[Any]:
    """Return the declared columns of an asset, as the database holds the values."""
    return [getattr(asset, name) for name in _ASSET_COLUMNS]


def _entry_per_outlet(producers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in producers for _ in entry["outlets"]]


class _DefinitionRows:
    """Rows of partition definitions, each looked up once however many assets share it."""

    def __init__(self) -> None:
        self._known: dict[str, PartitionDefinition] = {}

    def row(self, spec: dict[str, Any] | None) -> PartitionDefinition | None:
        """Return the row of a partition definition, created if it is new; None without a
        definition.
        """
        if not spec:
            return None
        text = json.dumps(spec, sort_keys=True)
        if text not in self._known:
            row = self._known[text] = PartitionDefinition.of(spec)
            row.relabel(spec)
        return self._known[text]


def _asset(
    bundle: Bundle,
    outlet: dict[str, Any],
    entry: dict[str, Any],
    producer: Producer | None,
    definition_rows: _DefinitionRows,
) -> Asset:
    spec = outlet.get("partition") or entry.get("partition")
    return Asset(
        name=outlet["name"],
        bundle=bundle,
        producer=producer,
        partition_definition=definition_rows.row(spec),
        uri=outlet.get("uri") or "",
        canonical_uri=outlet.get("canonical_uri") or "",
        kind=outlet.get("kind") or "",
        format=outlet.get("format") or "",
        group=outlet.get("group") or entry.get("group") or "",
        owners=outlet.get("owners") or entry.get("owners") or [],
        tags=outlet.get("tags") or entry.get("tags") or [],
        columns=outlet.get("columns"),
        outlet_validations=outlet.get("outlet_validations") or [],
        description=outlet.get("description") or entry.get("description") or "",
        schedule=entry.get("schedule"),
        file=outlet["file"],
        warnings=outlet["warnings"],
        active=True,
    )


def _deactivate_undeclared(bundle: Bundle, declared: dict[str, Any], broken: set[str]) -> None:
    """Deactivate assets that no file declares any more; assets of a broken file stay in force."""
    names = {entry["name"] for entry in _outlets(declared["producers"])}
    names |= {entry["name"] for entry in declared["assets"]}
    undeclared_assets = Asset.objects.filter(bundle=bundle, active=True).exclude(name__in=names)
    undeclared_assets = undeclared_assets.exclude(file__in=broken)
    undeclared_assets.update(active=False)


def _entries_naming(names: set[str], bundle: Bundle) -> list[dict[str, Any]]:
    """Return the producers of other bundles that name assets which did not exist until now."""
    if not names:
        return []
    other_producers = Producer.objects.exclude(bundle=bundle).filter(assets__active=True)
    definitions = other_producers.values_list("current_version__definition", flat=True)
    return [entry for entry in definitions if entry and names & _upstream_names(entry)]


def _store_dependencies(producers: list[dict[str, Any]], external: list[dict[str, Any]]) -> None:
    """Store the edges into the declared assets, and delete edges that are no longer declared. An
    external asset has no upstream edges.
    """
    downstream = [outlet["name"] for outlet in _outlets(producers)]
    upstream = {name for entry in producers for name in _upstream_names(entry)}
    ids = dict(Asset.objects.filter(name__in=[*downstream, *upstream]).values_list("name", "id"))
    declared = [*downstream, *(entry["name"] for entry in external)]
    wanted = {
        (ids[name], ids[outlet["name"]]): AssetDependency(
            upstream_id=ids[name],
            downstream_id=ids[outlet["name"]],
            inlet=name in entry["inlets"],
            scheduling=name in scheduling_names(entry["schedule"]),
            mapping=(entry.get("mappings") or {}).get(name),
        )
        for entry in producers
        for outlet in entry["outlets"]
        for name in sorted(_upstream_names(entry))
        if name in ids
    }
    stored = AssetDependency.objects.filter(downstream__name__in=declared)
    outdated_ids = []
    for edge in stored:
        wanted_edge = wanted.get((edge.upstream_id, edge.downstream_id))
        if wanted_edge is not None and _meaning(wanted_edge) == _meaning(edge):
            del wanted[edge.upstream_id, edge.downstream_id]
        else:
            outdated_ids.append(edge.pk)
    AssetDependency.objects.filter(pk__in=outdated_ids).delete()
    AssetDependency.objects.bulk_create(wanted.values(), batch_size=_BATCH_SIZE)


def _meaning(edge: AssetDependency) -> tuple[bool, bool, Any]:
    return edge.inlet, edge.scheduling, edge.mapping


def _upstream_names(entry: dict[str, Any]) -> set[str]:
    return {*entry["inlets"], *scheduling_names(entry["schedule"])}
