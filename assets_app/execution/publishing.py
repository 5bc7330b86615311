"""Puts an attempt's data in place and records it.

Whoever finds a run half published finishes it here.
"""

import errno
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import structlog

from assets_app.catalogue.texts import storable
from assets_app.execution import attempts
from assets_app.execution.attempts import Failure, lease_end
from assets_app.execution.outputs import StagedOutlet, kept_outlets
from assets_app.execution.worker import current
from assets_app.models import FailureKind, ProducerVersion, RunAttempt, RunState
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


def publish(attempt: RunAttempt, outlets: Sequence[StagedOutlet]) -> None:
    """Swap the staged partitions in and record them. The intent has been committed before.

    What is made together is put in place together as far as file systems allow: nothing of it
    while it can be seen that some cannot be, and whoever takes over finishes all of it. An error of
    the file system that may pass leaves the run in ``publishing``, to be finished by a sweep; where
    what was staged is gone, or cannot be put in place, the run fails with what is published by
    then. So does one that is published in part only, when that is in place.
    """
    try:
        refusal = _put_in_place(attempt, outlets)
        published = {one.asset_id: _published(attempt, one) for one in outlets} if refusal else {}
    except OSError as error:
        log.warning("not published yet", run=attempt.run_id, error=str(error))
        RunAttempt.objects.filter(pk=attempt.pk, token=attempt.token).update(
            error=storable(f"Publishing is tried again: {error}")
        )
        return
    if refusal is None and attempt.partly is None:
        attempts.succeed(attempt)
        return
    if refusal is None and attempt.partly is not None:
        failure = Failure(**attempt.partly)
        published = {one.asset_id: [str(p["path"]) for p in one.partitions] for one in outlets}
    else:
        failure = Failure(error=f"It could not be published: {refusal}.", kind=FailureKind.PLATFORM)
    if attempts.fail_publishing(attempt, failure, published):
        for outlet in outlets:
            _discard(attempt, outlet.root, outlet.name_on_disk)


def _put_in_place(attempt: RunAttempt, outlets: Sequence[StagedOutlet]) -> Exception | None:
    """What keeps the data from its place for good, if anything does; raises OSError for what may
    pass.
    """
    wanted = [outlet for outlet in outlets if outlet.partitions]
    try:
        if len(wanted) > 1:
            for outlet in wanted:
                storage.check(
                    outlet.root, outlet.staging, outlet.partitions, **_names(attempt, outlet)
                )
        for outlet in wanted:
            storage.publish(
                outlet.root,
                outlet.staging,
                outlet.partitions,
                token=str(attempt.token),
                **_names(attempt, outlet),
            )
    except storage.StorageError as error:
        return error
    except OSError as error:
        if error.errno in _PASSING:
            raise
        return error
    return None


def _names(attempt: RunAttempt, outlet: StagedOutlet) -> dict[str, Any]:
    return {"run_id": attempt.run_id, "attempt": outlet.name_on_disk}


def _published(attempt: RunAttempt, outlet: StagedOutlet) -> list[str]:
    """The folders in which the attempt's data is. One that may not be looked at counts as none."""
    names = _names(attempt, outlet)
    published = []
    for piece in outlet.partitions:
        try:
            published += storage.published(outlet.root, [piece["path"]], **names)
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
    publish(attempt, kept_outlets(attempt))


def discard_staging(attempt: RunAttempt, version: ProducerVersion) -> None:
    """Remove what the attempt has written for any of its outlets and will not publish; failing to
    is no reason to fail.
    """
    names = attempt.disk_names(version)
    for outlet, uri in version.outlets.items():
        if not uri:
            continue
        try:
            root = str(uri_path(uri))
        except ValueError as error:
            log.warning("staging not removed", run=attempt.run_id, uri=uri, error=str(error))
        else:
            _discard(attempt, root, names[outlet])


def _discard(attempt: RunAttempt, root: str, name_on_disk: str) -> None:
    try:
        storage.discard(root, run_id=attempt.run_id, attempt=name_on_disk)
    except OSError as error:
        log.warning("staging not removed", run=attempt.run_id, root=root, error=str(error))
