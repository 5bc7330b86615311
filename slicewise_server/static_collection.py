"""The folder of static files with hashed names, rebuilt when a source file has changed."""

from __future__ import annotations

import fcntl
import hashlib
from pathlib import Path

import django
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

_SOURCES = ".sources"  # a digest of the source files of the folder
_LOCK = ".lock"


def collect_static_files() -> None:
    """Fill the folder, unless the folder was filled from the present source files.

    Files of earlier versions stay, since open pages link to these files. Raise ImproperlyConfigured
    if the folder cannot be created.
    """
    folder: Path = settings.STATIC_ROOT
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except PermissionError as error:
        raise ImproperlyConfigured(
            f"{error}: this user may not create the folder. Name one in STATIC_FOLDER"
            " that the web server may write to."
        ) from None
    with (folder / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        today, noted = _digest(), folder / _SOURCES
        if not noted.is_file() or noted.read_text() != today:
            noted.unlink(missing_ok=True)
            call_command("collectstatic", interactive=False, verbosity=0)
            noted.write_text(today)


def _digest() -> str:
    """Return a digest of the names, sizes and times of all sources, and of Django's version."""
    digest = hashlib.sha256(django.__version__.encode())
    for finder in get_finders():
        for name, storage in finder.list(None):
            facts = Path(storage.path(name)).stat()
            digest.update(f"{name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()
