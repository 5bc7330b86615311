"""Writes what the loader reported into the catalogue, set by set."""

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


_AT_ONCE = 1_000

# Of thousands, Django's own bulk_update takes several seconds.
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
    """Make the loaded snapshot the bundle's version in force; in a transaction of the caller's."""
    declared = loaded.declared
    refused = refusals(bundle.pk, declared)
    version, _ = BundleVersion.objects.update_or_create(
        bundle=bundle,
        digest=loaded.digest,
        defaults={"archive": loaded.archive, "import_errors": [*declared["errors"], *refused]},
    )
    names = {entry["asset"] for entry in refused}
    producers = [entry for entry in declared["producers"] if entry["name"] not in names]
    external = [entry for entry in declared["assets"] if entry["name"] not in names]
    versions = _store_producers(bundle, version, producers)
    new = _store_assets(bundle, producers, external, versions)
    _deactivate_undeclared(bundle, declared, {entry["path"] for entry in declared["errors"]})
    _store_dependencies([*producers, *_waiting_for(new, bundle)], external)
    # At the end: as long as their rows are locked, no schedule ticks.
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
    """Write them and give them their ids. Thousands of definitions as parameters of a statement
    would take longer to quote than all else.
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
    """A new version where anything that can change what a run does has changed: any file of the
    bundle can.
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
    """Returns the names that no bundle had declared before."""
    rules = _Rules()
    rows = [
        _asset(bundle, outlet | {"file": entry["file"]}, entry, versions[entry["name"]], rules)
        for entry in producers
        for outlet in entry["outlets"]
    ]
    rows += [_asset(bundle, entry, {}, None, rules) for entry in external]
    names = [row.name for row in rows]
    stored = Asset.objects.filter(name__in=names).values_list("name", *_ASSET_COLUMNS)
    known = {name: facts for name, *facts in stored}
    for row, entry in zip(rows, [*_entry_per_outlet(producers), *external], strict=True):
        # `paused=` in the file is where an asset begins; afterwards people decide on its page.
        row.paused = bool(entry.get("paused")) and row.name not in known
    Asset.objects.bulk_create(
        [row for row in rows if known.get(row.name) != _facts_of(row)],
        update_conflicts=True,
        unique_fields=["name"],
        update_fields=[name.removesuffix("_id") for name in _ASSET_COLUMNS],
        batch_size=_AT_ONCE,
    )
    return {*names} - known.keys()


def _facts_of(asset: Asset) -> list[Any]:
    """What a file says of an asset, as the database holds it."""
    return [getattr(asset, name) for name in _ASSET_COLUMNS]


def _entry_per_outlet(producers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in producers for _ in entry["outlets"]]


class _Rules:
    """Rows of partition definitions: each rule is looked up once, however many assets share it."""

    def __init__(self) -> None:
        self._known: dict[str, PartitionDefinition] = {}

    def row(self, spec: dict[str, Any] | None) -> PartitionDefinition | None:
        """The row of a rule, made if it is new; None for none."""
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
    rules: _Rules,
) -> Asset:
    spec = outlet.get("partition") or entry.get("partition")
    return Asset(
        name=outlet["name"],
        bundle=bundle,
        producer=producer,
        partition_definition=rules.row(spec),
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
    """Assets that no file declares any more; those of a broken file stay in force."""
    names = {entry["name"] for entry in _outlets(declared["producers"])}
    names |= {entry["name"] for entry in declared["assets"]}
    gone = Asset.objects.filter(bundle=bundle, active=True).exclude(name__in=names)
    gone = gone.exclude(file__in=broken)
    gone.update(active=False)


def _waiting_for(names: set[str], bundle: Bundle) -> list[dict[str, Any]]:
    """Producers of other bundles that name assets of which there was nothing until now."""
    if not names:
        return []
    others = Producer.objects.exclude(bundle=bundle).filter(assets__active=True)
    found = others.values_list("current_version__definition", flat=True)
    return [entry for entry in found if entry and names & _upstream_names(entry)]


def _store_dependencies(producers: list[dict[str, Any]], external: list[dict[str, Any]]) -> None:
    """The edges into the declared assets, whole: what is not declared any more goes. What something
    else writes has none.
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
    wrong = []
    for edge in stored:
        same = wanted.get((edge.upstream_id, edge.downstream_id))
        if same is not None and _meaning(same) == _meaning(edge):
            del wanted[edge.upstream_id, edge.downstream_id]
        else:
            wrong.append(edge.pk)
    AssetDependency.objects.filter(pk__in=wrong).delete()
    AssetDependency.objects.bulk_create(wanted.values(), batch_size=_AT_ONCE)


def _meaning(edge: AssetDependency) -> tuple[bool, bool, Any]:
    return edge.inlet, edge.scheduling, edge.mapping


def _upstream_names(entry: dict[str, Any]) -> set[str]:
    return {*entry["inlets"], *scheduling_names(entry["schedule"])}
