"""The import of a bundle's files, and the report of the declarations as JSON."""

import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from slicewise.declaring.active_registry import collecting
from slicewise.declaring.registry import Registry
from slicewise.errors import DefinitionError
from slicewise.loading.bundle_checks import Errors, check_declarations, error_json
from slicewise.loading.declarations import declarations_json
from slicewise.partitions.limits import Limits
from slicewise.uris.shared import warn_of_shared_uris

_PATH_LIMIT = 1000  # characters of a file's path on record


class BundleFileError(DefinitionError):
    """A file cannot be loaded, for a reason other than the file's content."""


def load_bundle(
    folder: str | Path,
    *,
    only: str | None = None,
    limits: Limits = Limits(),  # noqa: B008
) -> dict[str, Any]:
    """Import every Python file below ``folder`` and report the declarations as JSON.

    Each file is loaded once, under the file's module name; with ``only``, just that file and the
    modules that the file imports. A file that raises is reported with the error and declares
    nothing; other files are not affected. ``errors`` in the report holds all errors, file by file.
    ``limits`` are the limits of the server that loads the bundle.
    """
    root = Path(folder).resolve()
    registry = Registry(root)
    errors: Errors = {}
    with _fresh_modules(root), importable(root), collecting(registry):
        for file in python_files(root) if only is None else [only]:
            error = _load(root, file, registry)
            errors[file] = [] if error is None else [error]
        check_declarations(registry, errors, limits)
        declared = declarations_json(registry, errors)
        warn_of_shared_uris(declared.producers, declared.assets)
    return {
        "files": [
            {"path": path, "error": file_errors[0] if file_errors else None}
            for path, file_errors in errors.items()
        ],
        "errors": [
            {"path": path, **details}
            for path, file_errors in errors.items()
            for details in file_errors
        ],
        "producers": declared.producers,
        "assets": declared.assets,
    }


def python_files(root: Path) -> list[str]:
    """Return the relative paths of a bundle's Python files in order; a package comes before the
    modules inside.
    """
    paths = [path.relative_to(root) for path in root.rglob("*.py") if path.is_file()]
    visible_paths = [path for path in paths if not any(_is_hidden(name) for name in path.parts)]
    return [path.as_posix() for path in sorted(visible_paths, key=_package_first)]


def module_name(file: str) -> str:
    """Return the name under which a file of a bundle is imported: ``a/b.py`` is ``a.b``."""
    if len(file) > _PATH_LIMIT:
        raise BundleFileError(f"{file[:50]}… has a path of more than {_PATH_LIMIT} characters")
    path = Path(file).with_suffix("")
    names = path.parts[:-1] if path.name == "__init__" else path.parts
    if not names or any("." in name for name in names):
        raise BundleFileError(f"{file} cannot be imported under this name; rename it")
    return ".".join(names)


def import_file(root: Path, file: str) -> ModuleType:
    """Import one file of a bundle whose folder is `importable`.

    Raises BundleFileError when the name belongs to another module, and any error that the file
    raises.
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
    """Make files below ``root`` importable by module name within the block; imports write no
    files.
    """
    dont_write, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    importlib.invalidate_caches()
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        sys.path.remove(str(root))
        sys.dont_write_bytecode = dont_write


@contextmanager
def _fresh_modules(root: Path) -> Iterator[None]:
    """Forget modules of the bundle before the block, so that no earlier version is found, and
    after the block.
    """
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
    """Return the files that declared an asset and whose import failed."""
    declared = {asset.site.file for asset in registry.assets.values()}
    declared |= {multi_asset.site.file for multi_asset in registry.multis.values()}
    return {file for file in declared if module_name(file) not in sys.modules}


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _package_first(path: Path) -> tuple[tuple[str, ...], bool, str]:
    return path.parts[:-1], path.name != "__init__.py", path.name


def _forget_modules(root: Path) -> None:
    inside = f"{root}/"
    for name, module in list(sys.modules.items()):
        # Not by getattr, which would make lazy modules of other packages import more modules.
        facts = getattr(module, "__dict__", {})
        paths = [facts.get("__file__")]
        # Spark brings thousands of modules, of which few are packages.
        folders = facts.get("__path__")
        if folders is not None and isinstance(folders, Iterable):
            paths.extend(folders)
        for path in paths:
            if isinstance(path, str) and path.startswith(inside):
                del sys.modules[name]
                break
