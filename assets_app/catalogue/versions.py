"""Versions of producers: a new row for each producer that has changed with its bundle."""

import hashlib
import json
from collections.abc import Sequence

from django.db import connection

from assets_app.catalogue.declared import DeclaredProducer
from assets_app.models import Bundle, BundleVersion, Producer, ProducerVersion
from assets_app.queries.clock import database_now
from slicewise_server.web.row_ids import reserve_ids

# For thousands of rows, Django's own bulk_update takes several seconds.
_IN_FORCE = """
UPDATE assets_app_producer AS producer SET current_version_id = fresh.version_id
FROM unnest(%s::bigint[], %s::bigint[]) AS fresh(producer_id, version_id)
WHERE producer.id = fresh.producer_id
"""
_COPY = """
COPY assets_app_producerversion
    (id, producer_id, bundle_version_id, digest, definition, source, file, created_at)
FROM STDIN
"""


def store_producers(
    bundle: Bundle, version: BundleVersion, producers: Sequence[DeclaredProducer]
) -> dict[str, Producer]:
    """Store the producers and their changed versions, and put the versions in force; return the
    producers by name.
    """
    names = [declared.spec.name for declared in producers]
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
        for declared in producers
        if (new := _changed_version(rows[declared.spec.name], declared, version)) is not None
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
    now = database_now()
    with connection.cursor() as cursor:
        for new, pk in zip(fresh, reserve_ids(ProducerVersion, len(fresh)), strict=True):
            new.pk, new.created_at = pk, now
        with cursor.copy(_COPY) as copy:
            for new in fresh:
                definition = json.dumps(new.definition)
                names = (new.pk, new.producer_id, new.bundle_version_id, new.digest)
                copy.write_row((*names, definition, new.source, new.file, new.created_at))


def _changed_version(
    producer: Producer, declared: DeclaredProducer, version: BundleVersion
) -> ProducerVersion | None:
    """Return a new version of the producer, or None where nothing has changed that its runs depend
    on: a run depends on every file of the bundle.
    """
    digest = hashlib.sha256(
        json.dumps([declared.definition, declared.source, version.digest], sort_keys=True).encode()
    ).hexdigest()
    current = producer.current_version
    if current is not None and current.digest == digest:
        return None
    return ProducerVersion(
        producer=producer,
        bundle_version=version,
        digest=digest,
        definition=declared.definition,
        source=declared.source,
        file=declared.spec.file,
    )
