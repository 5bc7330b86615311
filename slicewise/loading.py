"""Importing the files of a bundle and reporting, as JSON, what they declare."""

import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from slicewise.bundle_checks import Errors, check_declared, error_json
from slicewise.declarations import declarations_json
from slicewise.errors import DefinitionError
from slicewise.limits import Limits
from slicewise.registry import Registry, collecting
from slicewise.shared_uris import warn_of_shared_uris


class BundleFileError(DefinitionError):
    """A file that cannot be loaded for a reason other than what it says."""


def load_bundle(
    folder: str | Path,
    *,
    only: str | None = None,
    limits: Limits = Limits(),  # noqa: B008
) -> dict[str, Any]:
    """Import every Python file below ``folder`` and report what they declare, as JSON.

    Each file is loaded once, under its module name; with ``only`` this one alone, and what it
    imports. A file that raises is reported with its error and declares nothing; the others are not
    affected. ``errors`` holds everything that is wrong, file by file. ``limits`` are those of the
    server that loads.
    """
    root = Path(folder).resolve()
    registry = Registry(root)
    errors: Errors = {}
    with _anew(root), importable(root), collecting(registry):
        for file in python_files(root) if only is None else [only]:
            error = _load(root, file, registry)
            errors[file] = [] if error is None else [error]
        check_declared(registry, errors, limits)
        declared = declarations_json(registry, errors)
        warn_of_shared_uris(declared.producers, declared.assets)
    return {
        "files": [
            {"path": path, "error": found[0] if found else None} for path, found in errors.items()
        ],
        "errors": [{"path": path, **one} for path, found in errors.items() for one in found],
        "producers": declared.producers,
        "assets": declared.assets,
    }


def python_files(root: Path) -> list[str]:
    """The Python files of a bundle, relative and in order; a package before what it holds."""
    found = [path.relative_to(root) for path in root.rglob("*.py") if path.is_file()]
    shown = [path for path in found if not any(_is_hidden(part) for part in path.parts)]
    return [path.as_posix() for path in sorted(shown, key=_package_first)]


def module_name(file: str) -> str:
    """Return the name under which a file of a bundle is imported: ``a/b.py`` is ``a.b``."""
    path = Path(file).with_suffix("")
    parts = path.parts[:-1] if path.name == "__init__" else path.parts
    if not parts or any("." in part for part in parts):
        raise BundleFileError(f"{file} cannot be imported under this name; rename it")
    return ".".join(parts)


def import_file(root: Path, file: str) -> ModuleType:
    """Import one file of a bundle whose folder is `importable`.

    Raises BundleFileError when its name belongs to another module, and whatever the file raises.
    """
    name = module_name(file)
    module = importlib.import_module(name)
    if Path(module.__file__ or "").resolve() != (root / file).resolve():
        raise BundleFileError(
            f"{file} has the name of another module ({module.__file__ or name}); rename it"
        )
    return module


@contextmanager
def importable(root: Path) -> Iterator[None]:
    """Within the block, files below ``root`` are imported by module name, leaving no files."""
    dont_write, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    importlib.invalidate_caches()
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        sys.path.remove(str(root))
        sys.dont_write_bytecode = dont_write


@contextmanager
def _anew(root: Path) -> Iterator[None]:
    """Within the block, no module of an earlier version of the bundle is found, nor after it."""
    _forget_modules(root)
    try:
        yield
    finally:
        _forget_modules(root)


def _load(root: Path, file: str, registry: Registry) -> dict[str, Any] | None:
    try:
        import_file(root, file)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        registry.drop_files(_files_not_loaded(root, registry))
        registry.drop_files({file})
        return error_json(error, root, file)
    return None


def _files_not_loaded(root: Path, registry: Registry) -> set[str]:
    """Files that declared something and whose import did not end well."""
    declared = {asset.site.file for asset in registry.assets.values()}
    declared |= {several.site.file for several in registry.multis.values()}
    return {file for file in declared if module_name(file) not in sys.modules}


def _is_hidden(part: str) -> bool:
    return part.startswith(".") or part == "__pycache__"


def _package_first(path: Path) -> tuple[tuple[str, ...], bool, str]:
    return path.parts[:-1], path.name != "__init__.py", path.name


def _forget_modules(root: Path) -> None:
    inside = f"{root}/"
    for name, module in list(sys.modules.items()):
        # Not by getattr, which would make lazy modules of other packages import things.
        facts = getattr(module, "__dict__", {})
        folders = facts.get("__path__", ())
        paths = [facts.get("__file__"), *(folders if isinstance(folders, Iterable) else ())]
        if any(path.startswith(inside) for path in paths if isinstance(path, str)):
            del sys.modules[name]
