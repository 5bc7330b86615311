"""Services that keep the catalogue in step with the declarations of the bundles."""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import transaction

from accounts_app import audit, policy
from accounts_app.models import User
from assets_app.catalogue.loading import BundleNotLoaded, LoadedBundle, load, snapshot
from assets_app.catalogue.refusals import OTHERS, is_outdated
from assets_app.catalogue.storing import lock_assets, store
from assets_app.catalogue.timetables import stop_schedules
from assets_app.models import Bundle, BundleVersion
from assets_app.queries.clock import database_now
from assets_app.queries.pages import kept_assets
from assets_app.signals import bundle_synced
from slicewise_server.web.advisory_locks import AdvisoryLock, connection_lock

log = logging.getLogger(__name__)

_REFUSED_SECONDS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """The result of one sync of a bundle: ``errors`` per broken file, or one for the folder as a
    whole, and the names of the assets that the errors ``kept`` at the last good version.
    """

    bundle: Bundle
    version: BundleVersion | None
    changed: bool
    assets: int
    errors: list[dict[str, Any]] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


def sync_bundles(bundles: Mapping[str, Path] | None = None) -> list[SyncReport]:
    """Sync every configured bundle without a request by a person; unchanged bundles cost one digest
    each.

    One call syncs at a time, others return at once: loading may take long, and must not fill the
    threads that all other work waits for. A refused bundle is loaded again when its files have
    changed, or after ten minutes.
    """
    reports = []
    with connection_lock(AdvisoryLock.SYNC) as has_lock:
        if not has_lock:
            return []
        if bundles is None:
            retire_bundles(settings.BUNDLES)
        for name, path in (settings.BUNDLES if bundles is None else bundles).items():
            try:
                reports.append(sync_bundle(name, path, hold_off=True))
            except Exception:  # an error of one bundle keeps no other waiting
                log.exception("bundle not synced", extra={"bundle": name})
    return reports


def retire_bundles(configured: Collection[str]) -> None:
    """Put all declarations of bundles that the settings no longer name out of force. A bundle that
    the settings name again is loaded anew.

    If the settings name no bundle at all, the setting is more likely missing, and no bundle is
    retired.
    """
    unnamed_bundles = Bundle.objects.exclude(name__in=configured).exclude(current_version=None)
    for bundle in unnamed_bundles if configured else ():
        with transaction.atomic():
            retired = Bundle.objects.select_for_update().get(pk=bundle.pk)
            errors_before = _errors_of(retired)
            lock_assets(retired)
            retired.assets.filter(active=True).update(active=False)
            stop_schedules(retired, now=database_now())
            Bundle.objects.filter(pk=retired.pk).update(
                current_version=None, error="", checked_at=database_now()
            )
            bundle_synced.send(
                sender=None, name=retired.name, errors_before=errors_before, errors=[]
            )
        log.warning(
            "bundle retired: SLICEWISE_BUNDLES does not name it", extra={"bundle": bundle.name}
        )


def sync_bundle(
    name: str, path: Path, *, user: User | None = None, hold_off: bool = False
) -> SyncReport:
    """Load the folder if it changed, and put its declarations in force.

    A file that cannot be loaded leaves the last good version of its assets in force; the traceback
    is kept with the bundle version. A folder that cannot be read at all changes only the error of
    the bundle. With ``hold_off`` the same files are not loaded again for some minutes after the
    folder was refused as a whole.
    """
    if user is not None:
        policy.require(user, policy.Action.SYNC)
    bundle, _ = Bundle.objects.update_or_create(name=name, defaults={"path": str(path)})
    try:
        digest, archive = snapshot(path)
        current = _in_force(bundle)
        if current is not None and current.digest == digest and _is_settled(bundle, current):
            Bundle.objects.filter(pk=bundle.pk).update(checked_at=database_now())
            return _report(bundle, current, changed=False)
        loaded = (_load_unless_refused if hold_off else load)(digest, archive)
    except BundleNotLoaded as error:
        with transaction.atomic():
            bundle = Bundle.objects.select_for_update().get(pk=bundle.pk)
            errors_before, bundle.error = _errors_of(bundle), str(error)
            Bundle.objects.filter(pk=bundle.pk).update(error=str(error), checked_at=database_now())
            _announce(bundle, errors_before)
        return _report(bundle, _in_force(bundle), changed=False)
    with transaction.atomic():
        # Two syncs of one bundle, one after the other.
        bundle = Bundle.objects.select_for_update().get(pk=bundle.pk)
        errors_before = _errors_of(bundle)
        version = store(bundle, loaded)
        _announce(bundle, errors_before)
        if user is not None:
            audit.record(user, "sync", "bundle", name, {"digest": digest})
    return _report(bundle, version, changed=True)


def _is_settled(bundle: Bundle, current: BundleVersion) -> bool:
    """Return whether a load of the same files would have the same result."""
    return not bundle.error and not is_outdated(bundle.pk, current.import_errors)


def _load_unless_refused(digest: str, archive: bytes) -> LoadedBundle:
    # The cache may lose the refusal, or be away: then the files are loaded once more.
    name = f"bundle-refused-{digest}"
    refused = None
    with _cache_may_be_away():
        refused = cache.get(name)
    if refused is not None:
        raise BundleNotLoaded(refused)
    try:
        return load(digest, archive)
    except BundleNotLoaded as error:
        with _cache_may_be_away():
            cache.set(name, str(error), _REFUSED_SECONDS)
        raise


@contextmanager
def _cache_may_be_away() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        from redis.exceptions import RedisError  # commands have no other use for redis

        if not isinstance(error, RedisError | OSError):
            raise
        log.warning("cache away", extra={"error": str(error)})


def _errors_of(bundle: Bundle) -> list[str]:
    """Return the import errors of a bundle, a line for each."""
    version = _in_force(bundle)
    errors = [
        f"{error['path']}: {error['message']}"
        for error in (version.import_errors if version else ())
    ]
    return [bundle.error, *errors] if bundle.error else errors


def _announce(bundle: Bundle, errors_before: list[str]) -> None:
    bundle_synced.send(
        sender=None, name=bundle.name, errors_before=errors_before, errors=_errors_of(bundle)
    )


def _in_force(bundle: Bundle) -> BundleVersion | None:
    """Return the version in force of a bundle, without the archive, which no caller reads."""
    if bundle.current_version_id is None:
        return None
    return BundleVersion.objects.defer("archive").get(pk=bundle.current_version_id)


def _report(bundle: Bundle, version: BundleVersion | None, *, changed: bool) -> SyncReport:
    import_errors = version.import_errors if version else []
    errors = [
        {name: value for name, value in import_error.items() if name != OTHERS}
        for import_error in import_errors
    ]
    if bundle.error:
        errors.insert(0, {"path": "", "message": bundle.error, "traceback": "", "line": None})
    return SyncReport(
        bundle=bundle,
        version=version,
        changed=changed,
        assets=bundle.assets.filter(active=True).count(),
        errors=errors,
        kept=list(kept_assets(bundle, import_errors).values_list("name", flat=True)),
    )
