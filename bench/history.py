"""Very many materializations on record: ``python -m bench.history 10000000``, in the database of
DATABASE_URL.

They are of an asset that nothing else is asked of, a thousand of each of its slices.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from slicewise_server.stack.process import scrubbed

_OF_EACH_SLICE = 1000
_BEGAN = datetime(2024, 7, 1, tzinfo=UTC)

# Looked up row by row, constraints are the larger part of the work: they are taken away and given
# back in the same transaction, which checks them for all rows at once.
_CONSTRAINTS = """
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'f' AND conrelid = 'assets_app_materialization'::regclass
"""
_SLICES = """
INSERT INTO assets_app_assetpartition
    (asset_id, identity, key, segment, state, version, due_again)
SELECT %(asset)s, 'history', 'p' || number, '', 'materialized', %(each)s, false
FROM generate_series(1, %(slices)s) AS number
"""
_MATERIALIZATIONS = """
INSERT INTO assets_app_materialization
    (slice_id, version, run_id, attempt_id, producer_version_id, metadata, created_at)
SELECT slice.id, made.version, %(run)s, %(attempt)s, %(version)s, '{}', now()
FROM assets_app_assetpartition AS slice, generate_series(1, %(each)s) AS made(version)
WHERE slice.asset_id = %(asset)s
"""


def remember(environment: Mapping[str, str], count: int) -> None:
    """Have a process with these settings load them."""
    subprocess.run(
        [sys.executable, "-m", "bench.history", str(count)],
        env={**scrubbed(os.environ), **environment},
        check=True,
    )


def load(count: int) -> None:
    """So many materializations, by one run of an asset of its own; Django is set up."""
    from django.db import connection, transaction

    ids = _made_by(count // _OF_EACH_SLICE)
    numbers = {**ids, "each": _OF_EACH_SLICE, "slices": count // _OF_EACH_SLICE}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_CONSTRAINTS)
        constraints = cursor.fetchall()
        for name, _ in constraints:
            cursor.execute(f'ALTER TABLE assets_app_materialization DROP CONSTRAINT "{name}"')
        cursor.execute(_SLICES, numbers)
        cursor.execute(_MATERIALIZATIONS, numbers)
        # What is still to be checked of the slices keeps the table from being altered.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for name, rule in constraints:
            cursor.execute(f'ALTER TABLE assets_app_materialization ADD CONSTRAINT "{name}" {rule}')
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _made_by(slices: int) -> dict[str, int]:
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
        partition_count=slices,
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
    """Load as many as the command line says."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slicewise_server.settings")
    django.setup()
    load(int(sys.argv[1]))


if __name__ == "__main__":
    main()
