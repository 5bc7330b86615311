"""Puts an attempt's data in place and records it.

Whoever finds a run half published finishes it here.
"""

import errno
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import structlog

from assets_app.catalogue.texts import storable
from assets_app.execution import attempts
from assets_app.execution.attempts import Failure, lease_end
from assets_app.execution.worker import current
from assets_app.models import FailureKind, RunAttempt, RunPartition, RunState
from slicewise import storage
from slicewise.uris import uri_path

log = structlog.get_logger(__name__)

# What may pass by itself: no room, a server that does not answer, too much at once. Anything else
# would be tried again for ever, and hold a slot meanwhile.
_PASSING = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOLCK),
        *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EINTR),
        *(errno.ENOTCONN, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
    }
)


def publish(
    attempt: RunAttempt, root: str, staging: str, staged: Sequence[Mapping[str, Any]]
) -> None:
    """Swap the staged partitions in and record them. The intent has been committed before.

    An error of the file system that may pass leaves the run in ``publishing``, to be finished by a
    sweep; where what was staged is gone, or cannot be put in place, the run fails with what is
    published by then.
    """
    try:
        refusal = _put_in_place(attempt, root, staging, staged)
        published = _published(attempt, root, staged) if refusal else []
    except OSError as error:
        log.warning("not published yet", run=attempt.run_id, error=str(error))
        RunAttempt.objects.filter(pk=attempt.pk, token=attempt.token).update(
            error=storable(f"Publishing is tried again: {error}")
        )
        return
    if refusal is None:
        attempts.succeed(attempt)
        return
    failure = Failure(error=f"It could not be published: {refusal}.", kind=FailureKind.PLATFORM)
    if attempts.fail_publishing(attempt, failure, published):
        _discard(attempt, root)


def _put_in_place(
    attempt: RunAttempt, root: str, staging: str, staged: Sequence[Mapping[str, Any]]
) -> Exception | None:
    """What keeps the data from its place for good, if anything does; raises OSError for what may
    pass.
    """
    names: dict[str, Any] = {"run_id": attempt.run_id, "attempt": attempt.name_on_disk}
    try:
        if staged:
            storage.publish(root, staging, staged, token=str(attempt.token), **names)
    except storage.StorageError as error:
        return error
    except OSError as error:
        if error.errno in _PASSING:
            raise
        return error
    return None


def _published(attempt: RunAttempt, root: str, staged: Sequence[Mapping[str, Any]]) -> list[str]:
    """The folders in which the attempt's data is. One that may not be looked at counts as none."""
    names: dict[str, Any] = {"run_id": attempt.run_id, "attempt": attempt.name_on_disk}
    published = []
    for piece in staged:
        try:
            published += storage.published(root, [piece["path"]], **names)
        except OSError as error:
            if error.errno in _PASSING:
                raise
            log.warning("not looked at", run=attempt.run_id, path=piece["path"], error=str(error))
    return published


def finish_publishing(attempt_id: int, token: str) -> None:
    """Take over a publication whose worker was lost: under a new token, so that it cannot wake up
    and go on.
    """
    taken = RunAttempt.objects.filter(
        pk=attempt_id,
        token=token,
        ended_at__isnull=True,
        run__state=RunState.PUBLISHING,
    )
    fresh = uuid4()
    if not taken.update(token=fresh, lease_until=lease_end(), gateway=current().gateway):
        return
    attempt = RunAttempt.objects.get(pk=attempt_id)
    staged = [
        {"key": key, "path": path, "rows": rows, "bytes": size}
        for key, path, rows, size in RunPartition.objects.filter(run=attempt.run_id)
        .exclude(rows=None)
        .values_list("slice__key", "path", "rows", "bytes")
    ]
    publish(attempt, attempt.target_root, attempt.staging_root, staged)


def discard_staging(attempt: RunAttempt, uri: str) -> None:
    """Remove what the attempt has written and will not publish; failing to is no reason to fail."""
    if not uri:
        return
    try:
        root = str(uri_path(uri))
    except ValueError as error:
        log.warning("staging not removed", run=attempt.run_id, uri=uri, error=str(error))
    else:
        _discard(attempt, root)


def _discard(attempt: RunAttempt, root: str) -> None:
    try:
        storage.discard(root, run_id=attempt.run_id, attempt=attempt.name_on_disk)
    except OSError as error:
        log.warning("staging not removed", run=attempt.run_id, root=root, error=str(error))
