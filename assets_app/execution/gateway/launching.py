"""The start of an attempt's runner, after earlier attempts were cleared away."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from django.conf import settings

from assets_app.execution.attempt import leases
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.inputs import UpstreamInput
from assets_app.execution.attempt.keys import sent_keys
from assets_app.execution.attempt.phases import runner_variables
from assets_app.execution.data.connections import connection_of
from assets_app.execution.data.runner_user import own_folder
from assets_app.execution.database import persist
from assets_app.execution.gateway.clearing import clear_away
from assets_app.execution.gateway.worker import GatewayWorker
from assets_app.models import BundleVersion, ProducerVersion, RunAttempt
from assets_app.queries.clock import database_now
from slicewise.runner.parent_client import RunnerProcess
from slicewise.runner.run_limits import MEMORY_OPTION, MEMORY_SETTING, RunLimits


def launch(
    worker: GatewayWorker,
    attempt: Attempt,
    inputs: Sequence[UpstreamInput],
    spark: dict[str, Any],
    goes_on: Callable[[], bool],
) -> RunnerProcess | None:
    """Start the runner once no work of earlier attempts goes on; return None if the lease was lost.

    The heartbeat renews the lease all the while. User code must not begin beside the code of
    another attempt, so the lease is renewed here once more: the runner is not forked if so much
    time has passed since then that a missing ping would have killed the runner. While the database
    is away, the start waits as long as ``goes_on`` returns true.
    """
    request = persist(lambda: _request(attempt, inputs, spark), goes_on=goes_on)
    for earlier in attempt.unstopped:
        if not persist(lambda: leases.renew(attempt.row), goes_on=goes_on):
            return None
        persist(lambda e=earlier: _clear(worker, attempt, e), goes_on=goes_on)  # type: ignore[misc]
    worker.parent.start()
    return persist(lambda: _launch(worker, attempt, request), goes_on=goes_on)


def _clear(worker: GatewayWorker, attempt: Attempt, earlier: RunAttempt) -> None:
    clear_away(worker.parent, earlier, attempt.run.producer_version)


def _launch(
    worker: GatewayWorker, attempt: Attempt, request: dict[str, Any]
) -> RunnerProcess | None:
    not_after = time.monotonic() + request["watchdog"]
    if not leases.renew(attempt.row):
        return None
    clock = {"database": database_now().isoformat(), "monotonic": time.monotonic()}
    return worker.parent.launch({**request, "not_after": not_after, "clock": clock})


def _request(
    attempt: Attempt, inputs: Sequence[UpstreamInput], spark: dict[str, Any]
) -> dict[str, Any]:
    row, version = attempt.row, attempt.run.producer_version
    names = row.disk_names(version)
    return {
        **facts_of_run(row, attempt.keys),
        "attempt_name": row.name_on_disk,
        "fence": row.fence,
        "outlets": [
            {
                "name": name,
                "uri": uri or None,
                "attempt_name": names[name],
                "connection": connection_of(version.canonical_uris[name]),
            }
            for name, uri in version.outlets.items()
        ],
        "strategy": version.spec.strategy,
        "upstreams": {
            upstream_input.asset.name: upstream_input.to_json()
            for upstream_input in inputs
            if upstream_input.is_inlet
        },
        "spark": spark,
        "environment": runner_variables(row),
        # User code ends before the lease can, and so never runs beside the attempt that takes over.
        "watchdog": settings.LEASE_SECONDS * 2 / 3,
    }


def facts_of_run(attempt: RunAttempt, keys: Iterable[str]) -> dict[str, Any]:
    """Return the facts of a run for a runner, whichever function is to be called for these keys."""
    run, version = attempt.run, attempt.run.producer_version
    partition = version.spec.partition_of(run.asset.name)
    return {
        "run_id": run.pk,
        "attempt": attempt.number,
        "trigger": run.trigger,
        "params": run.params,
        "logical_time": (run.queued_at or run.created_at).isoformat(),
        "bundle": {
            "digest": version.bundle_version.digest,
            "archive": str(_cached_archive(version.bundle_version)),
        },
        "file": version.file,
        "asset": run.asset.name,
        "partition": partition,
        "partitions": sent_keys(version.definition_of(run.asset.name), keys),
        "limits": _limits(version).to_json(),
        "log_limit": settings.LOG_LIMIT_BYTES,
        "output_limit": settings.RUN_OUTPUT_LIMIT_BYTES + 1024 * run.partition_count,
    }


def _limits(version: ProducerVersion) -> RunLimits:
    """Return the limits of a run: for memory, the lower one of the asset's limit and the
    server's.
    """
    asset_memory, most = version.spec.memory, settings.RUN_MEMORY
    is_own = asset_memory is not None and (most is None or asset_memory <= most)
    return RunLimits(
        memory=asset_memory if is_own else most,
        memory_by=MEMORY_OPTION if is_own else f"setting {MEMORY_SETTING} of the server",
        processes=settings.RUN_PROCESSES,
        open_files=settings.RUN_OPEN_FILES,
    )


def _cached_archive(version: BundleVersion) -> Path:
    """Return the file of the version's archive on this host, which is written once per digest."""
    folder = own_folder("archives", mode=0o700)
    archive: Path = folder / f"{version.digest}.tar.gz"
    if not archive.exists():
        unfinished = folder / f"{version.digest}.{os.getpid()}.{uuid4()}"
        unfinished.write_bytes(bytes(version.archive))
        unfinished.rename(archive)
    return archive
