"""Very many materializations on record: ``python -m bench.history 10000000``, in the database of
DATABASE_URL.

The materializations belong to an asset without other work, a thousand for each partition.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from slicewise_server.stack.process import scrubbed

_OF_EACH_PARTITION = 1000
_BEGAN = datetime(2024, 7, 1, tzinfo=UTC)

# Looked up row by row, constraints are the larger part of the work: one transaction drops
# and creates the constraints, and so checks all rows at once.
_CONSTRAINTS = """
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND conrelid = 'assets_app_materialization'::regclass
"""
_PARTITIONS = """
INSERT INTO assets_app_assetpartition
    (asset_id, identity, key, segment, state, version, due_again)
SELECT %(asset)s, 'history', 'p' || number, '', 'materialized', %(each)s, false
FROM generate_series(1, %(partitions)s) AS number
"""
_MATERIALIZATIONS = """
INSERT INTO assets_app_materialization
    (partition_id, version, run_id, attempt_id, producer_version_id, metadata, created_at)
SELECT partition.id, series.version, %(run)s, %(attempt)s, %(version)s, '{}', now()
FROM assets_app_assetpartition AS partition, generate_series(1, %(each)s) AS series(version)
WHERE partition.asset_id = %(asset)s
"""


def remember(environment: Mapping[str, str], count: int) -> None:
    """Load the materializations in a process with these settings."""
    subprocess.run(
        [sys.executable, "-m", "bench.history", str(count)],
        env={**scrubbed(os.environ), **environment},
        check=True,
    )


def load(count: int) -> None:
    """Create so many materializations, by one run of a separate asset. Needs Django's set-up."""
    from django.db import connection, transaction

    ids = _made_by(count // _OF_EACH_PARTITION)
    numbers = {**ids, "each": _OF_EACH_PARTITION, "partitions": count // _OF_EACH_PARTITION}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_CONSTRAINTS)
        constraints = cursor.fetchall()
        for name, _ in constraints:
            cursor.execute(f'ALTER TABLE assets_app_materialization DROP CONSTRAINT "{name}"')
        cursor.execute(_PARTITIONS, numbers)
        cursor.execute(_MATERIALIZATIONS, numbers)
        # What is still to be checked of the partitions keeps the table from being altered.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for name, rule in constraints:
            cursor.execute(f'ALTER TABLE assets_app_materialization ADD CONSTRAINT "{name}" {rule}')
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _made_by(partitions: int) -> dict[str, int]:
    from assets_app import models

    bundle = models.Bundle.objects.create(name="history", path="/nowhere")
    loaded = models.BundleVersion.objects.create(bundle=bundle, digest="0" * 64, archive=b"")
    producer = models.Producer.objects.create(name="remembered", bundle=bundle)
    version = models.ProducerVersion.objects.create(
        producer=producer,
        bundle_version=loaded,
        digest="0" * 64,
        definition={"name": "remembered", "strategy": "partition", "outlets": []},
        source="",
        file="history.py",
    )
    asset = models.Asset.objects.create(name="remembered", bundle=bundle, active=False)
    run = models.Run.objects.create(
        group=models.RunGroup.objects.create(label="history"),
        producer_version=version,
        asset=asset,
        trigger=models.Trigger.MANUAL,
        queue=models.Queue.SCHEDULED,
        state=models.RunState.SUCCEEDED,
        partition_count=partitions,
        ended_at=_BEGAN,
    )
    attempt = run.attempts.create(
        number=1, token="0" * 32, started_at=_BEGAN, ended_at=_BEGAN, outcome="succeeded"
    )
    return {
        "asset": asset.pk,
        "run": run.pk,
        "attempt": attempt.pk,
        "version": version.pk,
    }


def main() -> None:
    """Load the number of materializations that the command line names."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slicewise_server.settings")
    django.setup()
    load(int(sys.argv[1]))


if __name__ == "__main__":
    main()
