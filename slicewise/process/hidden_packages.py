"""Packages of the server, hidden from user code: a bundle's own files may have the same names."""

from __future__ import annotations  # Pythons of user code may be older than the server's

import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    BuiltinImporter,
    ExtensionFileLoader,
    FileFinder,
    FrozenImporter,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from pathlib import Path
from types import ModuleType
from typing import Any

SERVER_PACKAGES = frozenset(
    {"slicewise_server", "backfills_app", "assets_app", "partitions_app", "accounts_app"}
)
# A fixed list: libraries may be installed into the folder of a checkout.
CHECKOUT_NAMES = frozenset(
    {"bench", "bin", "docs", "examples", "manage", "static", "templates", "tests"}
)
_SDK = "slicewise"
_CHECKOUT_FILES = ("manage.py", "pyproject.toml", "slicewise_server/__init__.py")
_PYTHON_S_OWN = (BuiltinImporter, FrozenImporter, PathFinder)
_LOADERS: tuple[tuple[Any, list[str]], ...] = (
    (ExtensionFileLoader, EXTENSION_SUFFIXES),
    (SourceFileLoader, SOURCE_SUFFIXES),
    (SourcelessFileLoader, BYTECODE_SUFFIXES),
)


def hide_server_packages() -> None:
    """Let this process find none of the server's packages; a second call changes nothing.

    In a checkout of the project, other folders and files at the top are hidden as well (`tests`).
    Modules of these names in all other folders are found: a bundle's own. To `import` and to
    `importlib.util.find_spec`, hidden packages look like packages that are not installed, and
    `pkgutil` does not list them.
    """
    if any(isinstance(hook, _HidingHook) for hook in sys.path_hooks):
        return
    hook = _HidingHook(Path(__file__).resolve().parents[2])
    sys.path_hooks.insert(0, hook)
    _hide_in_lists()
    for folder in [*sys.path_importer_cache]:
        if hook.is_root(folder):
            del sys.path_importer_cache[folder]
    sys.meta_path[:] = [
        finder
        if finder in _PYTHON_S_OWN or not hasattr(finder, "find_spec")
        else _HidingFinder(finder, hook)
        for finder in sys.meta_path
    ]


class _HidingHook:
    """Gives `PathFinder` the finder of the folder that has the SDK, and of no other folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.names = SERVER_PACKAGES | _checkout_names(root)

    def __call__(self, folder: str) -> FileFinder:
        """Return the finder of the folder. Raises ImportError for all other folders."""
        if not self.is_root(folder):
            raise ImportError(f"not the folder of {_SDK}", path=folder)
        return _HidingFileFinder(folder, self.names)

    def is_root(self, folder: str) -> bool:
        """Return whether this is the folder that has the SDK."""
        # Not Path.resolve, which raises for links in a circle.
        return os.path.realpath(folder) == str(self._root)

    def hides(self, name: str, spec: ModuleSpec) -> bool:
        """Return whether a module has a hidden name and lies directly in the SDK's folder."""
        if name not in self.names:
            return False
        locations = [spec.origin, *(spec.submodule_search_locations or ())]
        own_paths = (
            self._root / name,
            self._root / f"{name}.py",
            self._root / name / "__init__.py",
        )
        return any(location and Path(location).resolve() in own_paths for location in locations)


class _HidingFileFinder(FileFinder):
    """Finds all modules of a folder but those of the names."""

    def __init__(self, folder: str, names: frozenset[str]) -> None:
        super().__init__(folder, *_LOADERS)
        self.names = names

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the module of the folder; None for hidden names."""
        return None if fullname in self.names else super().find_spec(fullname, target)


class _HidingFinder(MetaPathFinder):
    """A finder that an installed package has added, such as that of an editable installation."""

    def __init__(self, finder: Any, hook: _HidingHook) -> None:
        self._finder = finder
        self._hook = hook

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_finder":  # a copy has no finder yet
            raise AttributeError(name)
        return getattr(self._finder, name)

    def __eq__(self, other: object) -> bool:
        inner = other._finder if isinstance(other, _HidingFinder) else other
        return bool(self._finder == inner)

    def __hash__(self) -> int:
        return hash(self._finder)

    def invalidate_caches(self) -> None:
        """Clear the caches of the finder, if the finder has caches."""
        getattr(self._finder, "invalidate_caches", lambda: None)()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the module that the finder finds; None for a hidden package."""
        spec: ModuleSpec | None = self._finder.find_spec(fullname, path, target)
        return None if spec is None or self._hook.hides(fullname, spec) else spec


def _hide_in_lists() -> None:
    """Have `pkgutil` list the modules of a hiding finder without the hidden ones."""
    listing: Any = pkgutil.iter_importer_modules  # type: ignore[attr-defined]
    modules_of_folder = listing.dispatch(FileFinder)

    def modules(finder: _HidingFileFinder, prefix: str = "") -> Iterator[tuple[str, bool]]:
        for name, is_package in modules_of_folder(finder, prefix):
            if name.removeprefix(prefix) not in finder.names:
                yield name, is_package

    listing.register(_HidingFileFinder, modules)


def _checkout_names(root: Path) -> frozenset[str]:
    """Return the importable names at the top of a checkout; empty for an installed package."""
    if not all((root / file).is_file() for file in _CHECKOUT_FILES):
        return frozenset()
    return CHECKOUT_NAMES
