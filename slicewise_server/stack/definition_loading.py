"""The load of definition files for `slicewise definitions check`, in a process like a server's."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from slicewise.loading import DEFAULT_LIMIT_BYTES, BundleError, archive
from slicewise.runner import loader_users
from slicewise.runner.loader_process import (
    DEFAULT_SECONDS,
    LIBRARY_VARIABLE,
    PASSED_ON,
    LoaderOptions,
    LoaderReport,
    NotLoadedError,
    load_archive,
    load_in_place,
)
from slicewise_server.stack.errors import StackError


def load_definitions(path: Path) -> LoaderReport:
    """Return the loader's report of a bundle, or of one file.

    A bundle is loaded from a snapshot, as by a server. One file is loaded in place, since the
    folder may be no bundle; for root from a snapshot too, since the loader's user may not pass
    through the folder. Raises StackError.
    """
    is_root = os.geteuid() == 0
    options = LoaderOptions(
        env=_environment(os.environ, is_root=is_root),
        seconds=_number("LOADER_TIMEOUT_SECONDS", DEFAULT_SECONDS),
        only=None if path.is_dir() else path.name,
        keeps_output=True,
    )
    folder = (path if path.is_dir() else path.parent).resolve()
    try:
        with _without_warnings():
            if options.only is not None and not is_root:
                return load_in_place(folder, options)
            limit = _number("BUNDLE_LIMIT_BYTES", DEFAULT_LIMIT_BYTES)
            return load_archive(archive(folder, limit=limit)[1], options)
    except (BundleError, NotLoadedError, OSError) as error:
        raise StackError(str(error)) from error


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress the warning that root loads files: here a person loads files on purpose."""
    log = logging.getLogger(loader_users.__name__)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _environment(env: Mapping[str, str], *, is_root: bool) -> dict[str, str]:
    """Return the environment of the files: the variables that runs of `slicewise up` get, and no
    secret of the person.

    Under a person's own user, the environment also has the variable by which some Pythons find
    the Python library.

    Warnings of definition files are ignored here, since the report has them beside the assets.
    """
    named = env.get("SLICEWISE_RUNNER_ENV", "").split(",")
    names = {*PASSED_ON, "LAKE", *(name.strip() for name in named)}
    names |= set() if is_root else {LIBRARY_VARIABLE}
    passed = {name: env[name] for name in names if name in env}
    return {**passed, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()):
        raise StackError(f"{name} is {text!r}, and is to be a whole number.")
    return int(text)
