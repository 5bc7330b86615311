"""Storage of the report of the loader in the catalogue, set by set."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q

from assets_app.catalogue.declared import DeclaredBundle, declared_bundle
from assets_app.catalogue.freshness_watches import store_watches
from assets_app.catalogue.loading import LoadedBundle
from assets_app.catalogue.pausing import pause_together
from assets_app.catalogue.refusals import refusals
from assets_app.catalogue.timetables import stop_schedules, store_schedules
from assets_app.catalogue.versions import store_producers
from assets_app.models import (
    Asset,
    AssetDependency,
    Bundle,
    BundleVersion,
    Producer,
)
from assets_app.queries.clock import database_now
from partitions_app.models import PartitionDefinition
from slicewise.declaring import ExternalSpec, OutletSpec, ProducerSpec

# A sync compares these columns of a stored asset with the declaration, and updates no others.
_ASSET_COLUMNS = (
    *("bundle_id", "producer_id", "partition_definition_id", "uri", "canonical_uri", "kind"),
    *("format", "group", "owners", "tags", "columns", "outlet_validations", "description"),
    *("alerts", "schedule", "file", "warnings", "active"),
)
_BATCH_SIZE = 1_000


def store(bundle: Bundle, loaded: LoadedBundle) -> BundleVersion:
    """Store the loaded snapshot as the version in force of the bundle; call in a transaction."""
    declared = declared_bundle(loaded.declared)
    refusal_errors = refusals(bundle.pk, declared)
    version, _ = BundleVersion.objects.update_or_create(
        bundle=bundle,
        digest=loaded.digest,
        defaults={
            "archive": loaded.archive,
            "import_errors": [*declared.errors, *refusal_errors],
        },
    )
    names = {entry["asset"] for entry in refusal_errors}
    producers = [producer for producer in declared.producers if producer.spec.name not in names]
    specs = [producer.spec for producer in producers]
    external = [spec for spec in declared.external if spec.name not in names]
    versions = store_producers(bundle, version, producers)
    lock_assets(bundle, [name for spec in declared.specs for name in spec.outlet_names])
    new_names = _store_assets(bundle, specs, external, versions)
    _deactivate_undeclared(bundle, declared)
    # Before rows of watches and schedules are locked (docs/internals/locks.md).
    pause_together(versions.values())
    _store_dependencies([*specs, *_specs_naming(new_names, bundle)], external)
    now = database_now()
    store_watches(bundle, specs, external, now=now)
    # At the end: as long as the rows of schedules are locked, no schedule ticks.
    store_schedules(versions.values(), now=now)
    stop_schedules(bundle, now=now)
    Bundle.objects.filter(pk=bundle.pk).update(current_version=version, error="", checked_at=now)
    bundle.refresh_from_db()
    return version


def lock_assets(bundle: Bundle, names: Sequence[str] = ()) -> None:
    """Lock the assets of a bundle and the assets with these names, in the order of ids.

    A pause locks the assets of a function in the same order, and waits: else it would miss an asset
    that joins the function.
    """
    rows = Asset.objects.filter(Q(bundle=bundle) | Q(name__in=names)).order_by("pk")
    list(rows.select_for_update(no_key=True).values_list("pk"))


def _store_assets(
    bundle: Bundle,
    producers: Sequence[ProducerSpec],
    external: Sequence[ExternalSpec],
    versions: Mapping[str, Producer],
) -> set[str]:
    """Store the declared assets; return the names that no bundle had declared before."""
    definition_rows = _DefinitionRows()
    rows = [
        _asset(bundle, outlet, spec, versions[spec.name], definition_rows)
        for spec in producers
        for outlet in spec.outlets
    ]
    rows += [_external_asset(bundle, spec, definition_rows) for spec in external]
    names = [row.name for row in rows]
    stored = Asset.objects.filter(name__in=names).values_list("name", *_ASSET_COLUMNS)
    stored_facts = {name: facts for name, *facts in stored}
    paused = {name for spec in producers if spec.paused for name in spec.outlet_names}
    for row in rows:
        # `paused=` in the file is the initial state of an asset; afterwards people decide on the
        # page of the asset.
        row.paused = row.name in paused and row.name not in stored_facts
    changed = [row for row in rows if stored_facts.get(row.name) != _stored_columns(row)]
    Asset.objects.bulk_create(
        changed,
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=[name.removesuffix("_id") for name in _ASSET_COLUMNS],
        batch_size=_BATCH_SIZE,
    )
    return {*names} - stored_facts.keys()


def _stored_columns(asset: Asset) -> list[Any]:
    """Return the declared columns of an asset, as the database holds the values."""
    return [getattr(asset, name) for name in _ASSET_COLUMNS]


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
    outlet: OutletSpec,
    spec: ProducerSpec,
    producer: Producer,
    definition_rows: _DefinitionRows,
) -> Asset:
    return Asset(
        **_own_columns(bundle, outlet),
        producer=producer,
        partition_definition=definition_rows.row(spec.partition_of(outlet.name)),
        group=outlet.group or spec.group or "",
        owners=list(outlet.owners or spec.owners),
        tags=list(outlet.tags or spec.tags),
        alerts=list(spec.alerts),
        description=outlet.description or spec.description,
        schedule=spec.schedule,
        file=spec.file,
    )


def _external_asset(bundle: Bundle, spec: ExternalSpec, definition_rows: _DefinitionRows) -> Asset:
    return Asset(
        **_own_columns(bundle, spec),
        partition_definition=definition_rows.row(spec.partition),
        group=spec.group or "",
        owners=list(spec.owners),
        tags=list(spec.tags),
        description=spec.description or "",
        file=spec.file,
    )


def _own_columns(bundle: Bundle, outlet: OutletSpec) -> dict[str, Any]:
    """Return the columns that an asset has from its own facts alone."""
    return {
        "name": outlet.name,
        "bundle": bundle,
        "uri": outlet.uri or "",
        "canonical_uri": outlet.canonical_uri or "",
        "kind": outlet.kind or "",
        "format": outlet.format or "",
        "columns": outlet.columns,
        "outlet_validations": outlet.outlet_validations,
        "warnings": outlet.warnings,
        "active": True,
    }


def _deactivate_undeclared(bundle: Bundle, declared: DeclaredBundle) -> None:
    """Deactivate assets that no file declares any more; assets of a broken file stay in force."""
    names = {name for spec in declared.specs for name in spec.outlet_names}
    broken = {entry["path"] for entry in declared.errors}
    undeclared_assets = Asset.objects.filter(bundle=bundle, active=True).exclude(name__in=names)
    undeclared_assets = undeclared_assets.exclude(file__in=broken)
    undeclared_assets.update(active=False)


def _specs_naming(names: set[str], bundle: Bundle) -> list[ProducerSpec]:
    """Return the producers of other bundles that name assets which did not exist until now."""
    if not names:
        return []
    other_producers = Producer.objects.exclude(bundle=bundle).filter(assets__active=True)
    definitions = other_producers.values_list("current_version__definition", flat=True)
    specs = [ProducerSpec.from_json(definition) for definition in definitions if definition]
    return [spec for spec in specs if names.intersection(spec.upstream_names)]


def _store_dependencies(
    producers: Sequence[ProducerSpec], external: Sequence[ExternalSpec]
) -> None:
    """Store the edges into the declared assets, and delete edges that are no longer declared. An
    external asset has no upstream edges.
    """
    downstream = [name for spec in producers for name in spec.outlet_names]
    upstream = {name for spec in producers for name in spec.upstream_names}
    ids = dict(Asset.objects.filter(name__in=[*downstream, *upstream]).values_list("name", "id"))
    declared = [*downstream, *(spec.name for spec in external)]
    declared_edges = {
        (ids[name], ids[outlet_name]): AssetDependency(
            upstream_id=ids[name],
            downstream_id=ids[outlet_name],
            inlet=name in spec.inlets,
            scheduling=name in spec.scheduling_names,
            fresh=name in spec.fresh_names,
            mapping=spec.mappings.get(name),
        )
        for spec in producers
        for outlet_name in spec.outlet_names
        for name in sorted(spec.upstream_names)
        if name in ids
    }
    stored = AssetDependency.objects.filter(downstream__name__in=declared)
    outdated_ids = []
    for edge in stored:
        declared_edge = declared_edges.get((edge.upstream_id, edge.downstream_id))
        if declared_edge is not None and _meaning(declared_edge) == _meaning(edge):
            del declared_edges[edge.upstream_id, edge.downstream_id]
        else:
            outdated_ids.append(edge.pk)
    AssetDependency.objects.filter(pk__in=outdated_ids).delete()
    AssetDependency.objects.bulk_create(declared_edges.values(), batch_size=_BATCH_SIZE)


def _meaning(edge: AssetDependency) -> tuple[bool, bool, bool, Any]:
    return edge.inlet, edge.scheduling, edge.fresh, edge.mapping
