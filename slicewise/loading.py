"""Importing the files of a bundle and reporting, as JSON, what they declare."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from slicewise.assets import ProducedAsset
from slicewise.errors import DefinitionError
from slicewise.registry import AssetDefinitionError, Registry, collecting
from slicewise.schedules import scheduling_assets
from slicewise.tracebacks import one_line, user_line, user_traceback


class BundleFileError(DefinitionError):
    """A file that cannot be loaded for a reason other than what it says."""


def load_bundle(folder: str | Path) -> dict[str, Any]:
    """Imports every Python file below ``folder`` and reports what they declare, as JSON.

    Each file is loaded once, under its module name. A file that raises is reported with its error
    and declares nothing; the others are not affected.
    """
    root = Path(folder).resolve()
    registry = Registry(root)
    errors: dict[str, dict[str, Any] | None] = {}
    with _anew(root), importable(root), collecting(registry):
        for file in python_files(root):
            errors[file] = _load(root, file, registry)
        _check_names(registry, errors)
    return {
        "files": [{"path": path, "error": error} for path, error in errors.items()],
        "producers": [a.to_json() for a in _assets(registry) if isinstance(a, ProducedAsset)],
        "assets": [a.to_json() for a in _assets(registry) if not isinstance(a, ProducedAsset)],
    }


def python_files(root: Path) -> list[str]:
    """The Python files of a bundle, relative and in order; a package before what it holds."""
    found = [path.relative_to(root) for path in root.rglob("*.py") if path.is_file()]
    shown = [path for path in found if not any(_is_hidden(part) for part in path.parts)]
    return [path.as_posix() for path in sorted(shown, key=_package_first)]


def module_name(file: str) -> str:
    """The name under which a file of a bundle is imported: ``a/b.py`` is ``a.b``."""
    path = Path(file).with_suffix("")
    parts = path.parts[:-1] if path.name == "__init__" else path.parts
    if not parts or any("." in part for part in parts):
        raise BundleFileError(f"{file} cannot be imported under this name; rename it")
    return ".".join(parts)


def import_file(root: Path, file: str) -> ModuleType:
    """Imports one file of a bundle whose folder is `importable`.

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
        return _error_json(error, root)
    return None


def _error_json(error: BaseException, root: Path) -> dict[str, Any]:
    declared = isinstance(error, AssetDefinitionError)
    return {
        "message": str(error) if declared else one_line(error),
        "traceback": user_traceback(error, root),
        "line": error.site.line
        if isinstance(error, AssetDefinitionError)
        else user_line(error, root),
        "asset": error.asset if isinstance(error, AssetDefinitionError) else None,
    }


def _files_not_loaded(root: Path, registry: Registry) -> set[str]:
    """Files that declared something and whose import did not end well."""
    declared = {asset.site.file for asset in registry.assets.values()}
    return {file for file in declared if module_name(file) not in sys.modules}


def _check_names(registry: Registry, errors: dict[str, dict[str, Any] | None]) -> None:
    """Upstream names that nothing declares. A broken file may declare them: then none is judged."""
    if any(errors.values()):
        return
    known = registry.assets.keys() | registry.references
    for asset in _assets(registry):
        if not isinstance(asset, ProducedAsset):
            continue
        unknown = [name for name in asset.inlets if name not in known]
        if unknown:
            error = AssetDefinitionError(
                f"the parameter {unknown[0]!r} names no asset; there are"
                f" {', '.join(sorted(known - {asset.name})[:10]) or 'no others'}",
                site=asset.site,
                asset=asset.name,
            )
            errors[asset.site.file] = _error_json(error, registry.folder)
    _check_cycles(registry, errors)
    registry.drop_files({file for file, error in errors.items() if error})


def _check_cycles(registry: Registry, errors: dict[str, dict[str, Any] | None]) -> None:
    after = {
        asset.name: scheduling_assets(asset.options.schedule)
        for asset in _assets(registry)
        if isinstance(asset, ProducedAsset)
    }
    for name in after:
        cycle = _cycle(name, after)
        if cycle is not None:
            asset = registry.assets[name]
            error = AssetDefinitionError(
                f"its schedule waits for itself: {' -> '.join(cycle)}",
                site=asset.site,
                asset=name,
            )
            errors[asset.site.file] = errors[asset.site.file] or _error_json(error, registry.folder)


def _cycle(name: str, after: dict[str, list[str]]) -> list[str] | None:
    """A way from ``name`` back to itself along schedules, if there is one."""
    ways = [[name]]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for other in after.get(way[-1], []):
            if other == name:
                return [*way, name]
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return None


def _assets(registry: Registry) -> list[Any]:
    return sorted(registry.assets.values(), key=lambda a: (a.site.file, a.site.line, a.name))


def _is_hidden(part: str) -> bool:
    return part.startswith(".") or part == "__pycache__"


def _package_first(path: Path) -> tuple[tuple[str, ...], bool, str]:
    return path.parts[:-1], path.name != "__init__.py", path.name


def _forget_modules(root: Path) -> None:
    inside = f"{root}/"
    for name, module in list(sys.modules.items()):
        # Not by getattr, which would make lazy modules of other packages import things.
        facts = getattr(module, "__dict__", {})
        places = [facts.get("__file__"), *facts.get("__path__", ())]
        if any(str(place).startswith(inside) for place in places if place):
            del sys.modules[name]
