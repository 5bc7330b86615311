"""Puts an attempt's data in place and records it.

Whoever finds a run half published finishes it here.
"""

import errno
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from assets_app.catalogue.texts import storable
from assets_app.execution import attempts, data_files, ending
from assets_app.execution.connections import ConnectionsError
from assets_app.execution.ending import Failure
from assets_app.execution.outputs import StagedOutlet, kept_outlets
from assets_app.execution.worker import current
from assets_app.models import FailureKind, ProducerVersion, RunAttempt, RunState
from slicewise.io import NoStorageError, Storage, Writer, find_storage
from slicewise.storage import StorageError, TryAgainError, UnfitPlaceError

log = logging.getLogger(__name__)

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
        log.warning("not published yet", extra={"run": attempt.run_id, "error": str(error)})
        RunAttempt.objects.filter(pk=attempt.pk, token=attempt.token).update(
            error=storable(f"Publishing is tried again: {error}")
        )
        return
    if refusal is None and attempt.partly is None:
        ending.succeed(attempt)
        return
    if refusal is None and attempt.partly is not None:
        failure = Failure(**attempt.partly)
        published = {one.asset_id: [str(p["path"]) for p in one.partitions] for one in outlets}
    else:
        failure = Failure(error=f"It could not be published: {refusal}.", kind=FailureKind.PLATFORM)
    if ending.fail_publishing(attempt, failure, published):
        for outlet in outlets:
            _discard(attempt, outlet)


def _put_in_place(attempt: RunAttempt, outlets: Sequence[StagedOutlet]) -> Exception | None:
    """Return what keeps the data from its place for good, if anything does; raise OSError for what
    may pass.
    """
    wanted = [(outlet, _writer(attempt, outlet)) for outlet in outlets if outlet.partitions]
    if len(wanted) > 1:
        # All of them, whatever is wrong with one: each is taken from whoever held the attempt
        # before, who may change nothing once it is looked at which are published.
        refusals = [_refusal("check", outlet, writer) for outlet, writer in wanted]
        if refusal := next(filter(None, refusals), None):
            return refusal
    for outlet, writer in wanted:
        if refusal := _refusal("publish", outlet, writer):
            return refusal
    return None


class PlaceNotTriedError(Exception):
    """It cannot be told now whether data could be published."""


def refuse_unfit_places(version: ProducerVersion) -> None:
    """Raise ValueError where an outlet's data is kept where nothing can be published.

    Raises PlaceNotTriedError where that cannot be told: no code is to run for hours meanwhile.
    """
    for uri in version.canonical_uris.values():
        try:
            with _where_data_is_kept():
                if find_storage(uri) is not None:
                    _kept(StagedOutlet.nothing("", uri)).refuse_place()
        except UnfitPlaceError as error:
            raise ValueError(f"Nothing could be published: {error}.") from error
        except (OSError, StorageError) as error:
            message = f"It cannot be told whether data could be published: {error}"
            raise PlaceNotTriedError(message) from error


def _refusal(
    step: Literal["check", "publish"], outlet: StagedOutlet, writer: Writer
) -> StorageError | None:
    """Return why a step of publishing can never be taken; raise OSError for what may pass."""
    try:
        with _where_data_is_kept():
            getattr(_kept(outlet), step)(outlet.staging, outlet.partitions, writer)
    except StorageError as error:
        log.warning("could not be published", extra={"run": writer.run_id}, exc_info=error)
        return error
    return None


@contextmanager
def _where_data_is_kept() -> Iterator[None]:
    """Whatever goes wrong there is an OSError where it may pass, and a StorageError else.

    A storage may be a package's, and raises what it likes: what nobody catches would leave the run
    in ``publishing`` for whoever takes it over, and they would fare no better. Slicewise's own
    database is not asked in here, since what goes wrong with that says nothing of the data.
    """
    try:
        yield
    except StorageError:
        raise
    except ConnectionsError as error:
        raise TryAgainError(str(error)) from error  # it is being written, or will be mended
    except NoStorageError as error:
        raise StorageError(str(error)) from error
    except OSError as error:
        if error.errno in _PASSING:
            raise
        raise StorageError(f"{error}{data_files.advice(error)}") from error
    except Exception as error:
        raise StorageError(f"{type(error).__name__}: {error}") from error


def _kept(outlet: StagedOutlet) -> Storage:
    return data_files.storage_of(outlet.root, write_mode=outlet.write_mode)


def _writer(attempt: RunAttempt, outlet: StagedOutlet) -> Writer:
    earlier: list[str] = []
    if outlet.write_mode == "append":
        place = outlet.name_on_disk.removeprefix(attempt.name_on_disk)
        before = RunAttempt.objects.filter(run=attempt.run_id, number__lt=attempt.number)
        earlier = [f"{one.name_on_disk}{place}" for one in before]
    return Writer(
        run_id=attempt.run_id,
        attempt=outlet.name_on_disk,
        fence=attempt.fence,
        earlier=earlier,
    )


def _published(attempt: RunAttempt, outlet: StagedOutlet) -> list[str]:
    """The folders in which the attempt's data is. One that may not be looked at counts as none."""
    writer = _writer(attempt, outlet)
    try:
        with _where_data_is_kept():
            kept = _kept(outlet)
    except StorageError as error:
        log.warning(
            "not looked at", extra={"run": attempt.run_id, "uri": outlet.root, "error": str(error)}
        )
        return []
    return _published_among(kept, [str(piece["path"]) for piece in outlet.partitions], writer)


def _published_among(kept: Storage, paths: Sequence[str], writer: Writer) -> list[str]:
    """Those of some folders; where one keeps all from being looked at, it is searched by halves."""
    try:
        with _where_data_is_kept():
            return kept.published(paths, writer) if paths else []
    except StorageError as error:
        if len(paths) == 1:
            said = {"run": writer.run_id, "path": paths[0], "error": str(error)}
            log.warning("not looked at", extra=said)
            return []
    middle = len(paths) // 2
    halves = paths[:middle], paths[middle:]
    return [path for half in halves for path in _published_among(kept, half, writer)]


def finish_publishing(attempt_id: int, token: str) -> None:
    """Take over a publication whose worker was lost.

    The lease is renewed meanwhile: it may take longer than that, and must not be begun anew each
    time.
    """
    worker = current()
    attempt = attempts.take_over(attempt_id, token, RunState.PUBLISHING)
    if attempt is None:
        return
    with worker.watching(attempt):
        RunAttempt.objects.filter(pk=attempt.pk).update(gateway=worker.gateway)
        publish(attempt, kept_outlets(attempt))


def discard_staging(attempt: RunAttempt, version: ProducerVersion) -> bool:
    """Remove what the attempt has written for any of its outlets and will not publish; return
    whether all of it is gone. Failing to is no reason to fail: a worker looks again later.
    """
    names = attempt.disk_names(version)
    outlets = [
        StagedOutlet.nothing(names[name], uri) for name, uri in version.canonical_uris.items()
    ]
    are_clean = [_discard(attempt, outlet) for outlet in outlets]
    return all(are_clean)


def _discard(attempt: RunAttempt, outlet: StagedOutlet) -> bool:
    writer = _writer(attempt, outlet)
    try:
        with _where_data_is_kept():
            if find_storage(outlet.root) is not None:
                _kept(outlet).discard(writer)
    except (OSError, StorageError) as error:
        log.warning(
            "staging not removed",
            extra={"run": attempt.run_id, "uri": outlet.root, "error": str(error)},
        )
        return False
    return True
