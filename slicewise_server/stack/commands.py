"""The commands of our own processes, the same in the embedded stack and in docker-compose.yml.

Settings of a place come from the environment: GRANIAN_HOST, GRANIAN_PORT,
GRANIAN_WORKERS, SLICEWISE_SLOTS and the settings. The first word, `python`, is the virtual
environment's.
"""

from __future__ import annotations

# HTTP/1 alone: where granian has yet to learn the version, a connection that says nothing stays for
# good. A connection without a request, or with half of its headers, is closed after 30 seconds.
WEB = [
    *["python", "-m", "granian", "--interface", "asginl", "--http", "1", "--no-ws"],
    *["--backlog", "4096", "--backpressure", "4096", "--http1-buffer-size", "65536"],
    *["--http1-header-read-timeout", "30000", "--workers-kill-timeout", "20"],
    *["--log-config", "slicewise_server/serving/granian_log.json", "--respawn-failed-workers"],
    "slicewise_server.asgi:application",
]
# Quiet: without a banner, which is no line of the log.
CELERY = ["python", "-m", "celery", "-A", "slicewise_server", "--quiet"]
BEAT = [*CELERY, "beat"]

# Workers exchange no messages: facts about gateways are rows in the database.
ALONE = ["--without-gossip", "--without-mingle", "--without-heartbeat"]


def worker(queue: str, *more: str) -> list[str]:
    """Return the command of a worker for one queue, with SLICEWISE_SLOTS slots or as in `more`."""
    return [
        *[*CELERY, "worker", "-P", "threads"],
        *["-Q", queue, "-n", f"{queue}@%h", *more, *ALONE],
    ]


COMMANDS = {
    "web": WEB,
    "beat": BEAT,
    "worker-scheduled": worker("scheduled"),
    "worker-backfill": worker("backfill"),
    "worker-control": worker("control", "-c", "4"),
    # Most kinds of work here run in one thread at a time, and backfills in a second one where a
    # step of a backfill takes long. No thread is reserved for a kind.
    "worker-bulk": worker("bulk", "-c", "7"),
}

# Once, before the others: the database's tables, the first account, the bundles.
PREPARE = ["python", "-m", "slicewise_server.stack.prepare"]
