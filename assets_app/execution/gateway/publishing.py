"""Publication of an attempt's data, and the record of the publication.

A worker that finds a half published run finishes the publication here.
"""

import errno
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from assets_app.catalogue.texts import storable
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.attempt.outputs import StagedOutlet, stored_outlets
from assets_app.execution.attempt.phases import AttemptPhase, attempt_phase, attempt_work
from assets_app.execution.data import data_files
from assets_app.execution.data.connections import ConnectionsError
from assets_app.execution.data.recorded import Totals
from assets_app.execution.gateway.worker import current
from assets_app.models import FailureKind, ProducerVersion, RunAttempt, RunState
from slicewise.io import Measured, NoStorageError, Storage, Writer, find_storage
from slicewise.storage import StorageError, TryAgainError, UnfitLocationError

log = logging.getLogger(__name__)

# Errors that may pass: no room, a server that does not answer, too many requests at once. Any other
# error would be tried again for ever, and hold a slot meanwhile.
_PASSING = frozenset(
    {
        *(errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOLCK),
        *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EINTR),
        *(errno.ENOTCONN, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
    }
)


def publish(attempt: RunAttempt, outlets: Sequence[StagedOutlet]) -> None:
    """Publish the staged partitions and record the run; the intent to publish is committed before.

    Assets that are materialized together are published together as far as file systems allow: no
    asset is published if a check shows that another one cannot be, and a worker that takes over
    finishes all assets. An error of the file system that may pass leaves the run in ``publishing``,
    to be finished by a sweep. If staged data is gone, or cannot be put in place, the run fails with
    the partitions that are published by then. A run that publishes only some partitions fails, too,
    when these are in place.
    """
    try:
        with attempt_phase(attempt, AttemptPhase.PUBLISH):
            refusal = _put_in_place(attempt, outlets)
        published = {
            outlet.asset_id: _published_paths(attempt, outlet) if refusal else _paths(outlet)
            for outlet in outlets
        }
        totals = _appended_totals(attempt, outlets, published)
    except OSError as error:
        log.warning("not published yet", extra={"run": attempt.run_id, "error": str(error)})
        RunAttempt.objects.filter(pk=attempt.pk, token=attempt.token).update(
            error=storable(f"Publishing is tried again: {error}")
        )
        return
    if refusal is None and attempt.partly is None:
        with attempt_phase(attempt, AttemptPhase.RECORD):
            ending.succeed(attempt, totals, is_clean=_is_clean(attempt, outlets))
        return
    if refusal is None and attempt.partly is not None:
        failure = Failure(**attempt.partly)
    else:
        failure = Failure(
            error=f"The data could not be published: {refusal}.", kind=FailureKind.PLATFORM
        )
    with attempt_phase(attempt, AttemptPhase.RECORD):
        is_recorded = ending.fail_publishing(attempt, failure, published, totals)
    if is_recorded:
        for outlet in outlets:
            _discard(attempt, outlet)


def _is_clean(attempt: RunAttempt, outlets: Sequence[StagedOutlet]) -> bool:
    """Return whether the publication has left no staged data and no old data beside the new.

    Of an attempt that was taken over, a worker looks later in any case.
    """
    try:
        with _storage_errors():
            return attempt.fence == 1 and not any(
                _outlet_storage(outlet).has_remains(_writer(attempt, outlet))
                for outlet in outlets
                if outlet.partitions
            )
    except (OSError, StorageError) as error:
        log.warning("remains not sought", extra={"run": attempt.run_id, "error": str(error)})
        return False


def _put_in_place(attempt: RunAttempt, outlets: Sequence[StagedOutlet]) -> Exception | None:
    """Publish the outlets; return the error that makes this impossible for good, or None.

    Raises OSError for an error that may pass.
    """
    outlet_writers = [(outlet, _writer(attempt, outlet)) for outlet in outlets if outlet.partitions]
    if len(outlet_writers) > 1:
        # All outlets are checked, even after a refusal: a check takes the outlet away from the
        # worker that held the attempt before, which may change no data once the published
        # partitions are determined.
        refusals = [_refusal("check", outlet, writer) for outlet, writer in outlet_writers]
        if refusal := next(filter(None, refusals), None):
            return refusal
    for outlet, writer in outlet_writers:
        if refusal := _refusal("publish", outlet, writer):
            return refusal
    return None


class UntriedLocationError(Exception):
    """A location could not be tried: whether data could be published is unknown at present."""


def refuse_unfit_locations(version: ProducerVersion) -> None:
    """Raise ValueError if an outlet's data is kept in a location where no data can be published.

    Raises UntriedLocationError if that cannot be determined: user code is not to run for hours
    meanwhile.
    """
    for uri in version.canonical_uris.values():
        try:
            with _storage_errors():
                if find_storage(uri) is not None:
                    _outlet_storage(StagedOutlet.nothing("", uri)).refuse_unfit_location()
        except UnfitLocationError as error:
            raise ValueError(f"Nothing could be published: {error}.") from error
        except (OSError, StorageError) as error:
            message = f"Slicewise cannot determine whether data could be published: {error}"
            raise UntriedLocationError(message) from error


def _refusal(
    step: Literal["check", "publish"], outlet: StagedOutlet, writer: Writer
) -> StorageError | None:
    """Return the error that makes a step of publishing impossible for good, or None.

    Raises OSError for an error that may pass.
    """
    try:
        with _storage_errors():
            getattr(_outlet_storage(outlet), step)(outlet.staging, outlet.partitions, writer)
    except StorageError as error:
        log.warning("could not be published", extra={"run": writer.run_id}, exc_info=error)
        return error
    return None


@contextmanager
def _storage_errors() -> Iterator[None]:
    """Turn an error of the block into an OSError if it may pass, otherwise into a StorageError.

    A storage may be a package's, and may raise any error: an error that is not caught would leave
    the run in ``publishing`` for the worker that takes over, which would fare no better.
    Slicewise's own database is not used in the block, since errors of the database say nothing of
    the data.
    """
    try:
        yield
    except StorageError:
        raise
    except ConnectionsError as error:
        raise TryAgainError(str(error)) from error  # the file is being written, or will be mended
    except NoStorageError as error:
        raise StorageError(str(error)) from error
    except OSError as error:
        # A library may raise these without a number.
        if error.errno in _PASSING or isinstance(error, (ConnectionError, TimeoutError)):
            raise
        raise StorageError(f"{error}{data_files.advice(error)}") from error
    except Exception as error:
        raise StorageError(f"{type(error).__name__}: {error}") from error


def _outlet_storage(outlet: StagedOutlet) -> Storage:
    return data_files.storage_of(outlet.root, write_mode=outlet.write_mode)


def _writer(attempt: RunAttempt, outlet: StagedOutlet) -> Writer:
    earlier: list[str] = []
    if outlet.write_mode == "append":
        outlet_suffix = outlet.name_on_disk.removeprefix(attempt.name_on_disk)
        before = RunAttempt.objects.filter(run=attempt.run_id, number__lt=attempt.number)
        earlier = [f"{earlier_attempt.name_on_disk}{outlet_suffix}" for earlier_attempt in before]
    return Writer(
        run_id=attempt.run_id,
        attempt=outlet.name_on_disk,
        fence=attempt.fence,
        earlier=earlier,
    )


def _published_paths(attempt: RunAttempt, outlet: StagedOutlet) -> list[str]:
    """Return the paths at which the attempt's data is published, as far as they can be read."""
    writer = _writer(attempt, outlet)
    try:
        with _storage_errors():
            storage = _outlet_storage(outlet)
    except StorageError as error:
        log.warning(
            "not looked at", extra={"run": attempt.run_id, "uri": outlet.root, "error": str(error)}
        )
        return []
    return _published_among(storage, _paths(outlet), writer)


def _paths(outlet: StagedOutlet) -> list[str]:
    return [str(partition["path"]) for partition in outlet.partitions]


def _appended_totals(
    attempt: RunAttempt, outlets: Sequence[StagedOutlet], published: Mapping[int, Sequence[str]]
) -> Totals:
    """Measure the partitions that the run has appended to: the staged data is only a part of them.

    No other run publishes these partitions before they are recorded. Data that cannot be measured,
    or not at a low cost, is recorded without a measure: the record of published data never waits.
    """
    totals: dict[int, Mapping[str, Measured]] = {}
    for outlet in outlets:
        paths = published[outlet.asset_id]
        if outlet.write_mode != "append" or not paths:
            continue
        try:
            with _storage_errors():
                storage = _outlet_storage(outlet)
                if not storage.measures_cheaply:
                    continue
                sizes = storage.measure(paths) or {}
        except (OSError, StorageError) as error:
            facts = {"run": attempt.run_id, "uri": outlet.root, "error": str(error)}
            log.warning("not measured", extra=facts)
            continue
        totals[outlet.asset_id] = {path: size for path, size in sizes.items() if size is not None}
    return totals


def _published_among(storage: Storage, paths: Sequence[str], writer: Writer) -> list[str]:
    """Return which paths are published; search by halves if an error stops the look at all
    paths.
    """
    try:
        with _storage_errors():
            return storage.published(paths, writer) if paths else []
    except StorageError as error:
        if len(paths) == 1:
            facts = {"run": writer.run_id, "path": paths[0], "error": str(error)}
            log.warning("not looked at", extra=facts)
            return []
    middle = len(paths) // 2
    halves = paths[:middle], paths[middle:]
    return [path for half in halves for path in _published_among(storage, half, writer)]


def finish_publishing(attempt_id: int, token: str) -> None:
    """Take over a publication whose worker was lost.

    The lease is renewed meanwhile: a publication may take longer than a lease, and must not be
    begun anew each time.
    """
    worker = current()
    attempt = attempts.take_over(attempt_id, token, RunState.PUBLISHING)
    if attempt is None:
        return
    with attempt_work(attempt, is_new=False), worker.watching(attempt):
        attempt.gateway = worker.gateway
        attempt.save(update_fields=["gateway"])
        publish(attempt, stored_outlets(attempt))


def discard_staging(attempt: RunAttempt, version: ProducerVersion) -> bool:
    """Remove the staged data of the attempt in all outlets; return whether all of it is gone.

    A failure to remove data is no reason to fail: a worker looks again later.
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
        with _storage_errors():
            if find_storage(outlet.root) is not None:
                _outlet_storage(outlet).discard(writer)
    except (OSError, StorageError) as error:
        log.warning(
            "staging not removed",
            extra={"run": attempt.run_id, "uri": outlet.root, "error": str(error)},
        )
        return False
    return True
