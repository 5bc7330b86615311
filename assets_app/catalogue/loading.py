"""Snapshots of bundles, and their declarations as the loader process reports them.

No server process imports user code.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from assets_app.catalogue.texts import storable, storable_json
from slicewise.loading import archives
from slicewise.partitions import Limits
from slicewise.runner.loader_process import (
    PASSED_ON,
    LoaderOptions,
    NotLoadedError,
    load_archive,
)


class BundleNotLoaded(Exception):
    """The bundle as a whole could not be read or loaded; the message says why."""


@dataclass(frozen=True, slots=True)
class LoadedBundle:
    """A snapshot of a folder, and the declarations of its files."""

    digest: str
    archive: bytes
    declared: dict[str, Any]


def user_code_environment() -> dict[str, str]:
    """Return the environment of user code: an allow-list, with the names that the settings add."""
    names = (*PASSED_ON, *settings.RUNNER_ENV)
    variables = {name: os.environ[name] for name in names if name in os.environ}
    return {**variables, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


def snapshot(folder: Path) -> tuple[str, bytes]:
    """Return digest and archive of the folder; raise BundleNotLoaded if it is missing or too
    large.
    """
    try:
        return archives.archive(folder, limit=settings.BUNDLE_LIMIT_BYTES)
    except (OSError, ValueError) as error:
        raise BundleNotLoaded(str(error)) from error


def load(digest: str, archive: bytes) -> LoadedBundle:
    """Unpack the snapshot and have the loader import the files, under limits of time and memory.

    Raise BundleNotLoaded when the loader gives no usable report.
    """
    limits = Limits(*(getattr(settings, name.upper()) for name in Limits._fields))
    options = LoaderOptions(
        env=user_code_environment(), seconds=settings.LOADER_TIMEOUT_SECONDS, limits=limits
    )
    try:
        declared = load_archive(archive, options).declared
    except NotLoadedError as error:
        raise BundleNotLoaded(storable(str(error))) from error
    return LoadedBundle(digest, archive, storable_json(declared))
