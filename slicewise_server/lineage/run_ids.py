"""Ids of runs in OpenLineage: the same for the same attempt, whichever process asks."""

from datetime import datetime

from django.conf import settings
from openlineage.client.uuid import generate_static_uuid

from assets_app.models import RunAttempt


def attempt_run_id(attempt: RunAttempt) -> str:
    """Return the id of the run that OpenLineage knows an attempt by.

    The session id is chosen at random for each attempt: numbers come again with a new database.
    """
    return _run_id(attempt.started_at, "attempt", attempt.tag, attempt.spark_session_id)


def parent_run_id(kind: str, row_id: int, since: datetime) -> str:
    """Return the id of a backfill, a tick of a schedule, or another parent of runs."""
    return _run_id(since, kind, row_id)


def _run_id(since: datetime, *names: object) -> str:
    name = "/".join(map(str, [settings.OPENLINEAGE_NAMESPACE, *names]))
    return str(generate_static_uuid(since, name.encode()))
