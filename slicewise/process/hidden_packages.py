"""Packages of the server, hidden from user code: a bundle's own files may have the same names."""

import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

SERVER_PACKAGES = frozenset(
    {"slicewise_server", "backfills_app", "assets_app", "partitions_app", "accounts_app"}
)
_SDK = "slicewise"
_CHECKOUT_FILES = ("manage.py", "pyproject.toml", "slicewise_server/__init__.py")


def hide_server_packages() -> None:
    """Let this process import none of the server's packages; add no second finder.

    In a checkout of the project, other folders and files at the top are hidden as well (`tests`).
    Modules of these names in all other folders are found: a bundle's own.
    """
    if not any(isinstance(finder, _HidingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _HidingFinder(Path(__file__).resolve().parents[2]))


class _HidingFinder(MetaPathFinder):
    """The first finder of a process: answers for names of hidden packages, and for no other."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names = SERVER_PACKAGES | _checkout_names(root)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the module in another folder; None for names that are not hidden.

        Raises ModuleNotFoundError for a hidden package: after None, the next finder would find it.
        """
        if path is not None or fullname not in self._names:
            return None
        for spec in self._specs(fullname, target):
            if not self._is_in_root(fullname, spec):
                return spec
        raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)

    def _specs(self, name: str, target: ModuleType | None) -> Iterator[ModuleSpec]:
        """Yield the modules of a name: in each folder of the path, then those of other finders."""
        specs = [PathFinder.find_spec(name, [folder], target) for folder in sys.path]
        others = (one for one in sys.meta_path if one is not self and one is not PathFinder)
        specs += [finder.find_spec(name, None, target) for finder in others]
        yield from (spec for spec in specs if spec is not None)

    def _is_in_root(self, name: str, spec: ModuleSpec) -> bool:
        """Return whether a module lies directly in the folder that has the SDK."""
        locations = [spec.origin, *(spec.submodule_search_locations or ())]
        own = (self._root / name, self._root / f"{name}.py", self._root / name / "__init__.py")
        return any(location and Path(location).resolve() in own for location in locations)


def _checkout_names(root: Path) -> frozenset[str]:
    """Return the importable names at the top of a checkout; empty for an installed package."""
    if not all((root / file).is_file() for file in _CHECKOUT_FILES):
        return frozenset()
    names = {path.stem for path in root.iterdir() if path.is_dir() or path.suffix == ".py"}
    return frozenset(name for name in names if name.isidentifier()) - {_SDK}
