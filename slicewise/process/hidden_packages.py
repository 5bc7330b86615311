"""Packages of the server, hidden from user code: a bundle's own files may have the same names."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

SERVER_PACKAGES = frozenset(
    {"slicewise_server", "backfills_app", "assets_app", "partitions_app", "accounts_app"}
)
_SDK = "slicewise"
_CHECKOUT_FILE = "manage.py"


def hide_server_packages() -> None:
    """Let this process import none of the server's packages; add no second finder.

    In a checkout of the project, other folders and files at the top are hidden as well (`tests`).
    Modules of these names in folders that are added to `sys.path` later are found: a bundle's own.
    """
    if not any(isinstance(finder, _HidingFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _HidingFinder(Path(__file__).parents[2]))


class _HidingFinder(MetaPathFinder):
    """The first finder of a process: answers for names of hidden packages, and for no other."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._first_paths = frozenset(sys.path)
        self._checkout_names = _checkout_names(root)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the module in another folder; None for names that are not hidden.

        Raises ModuleNotFoundError for a hidden package.
        """
        is_package = fullname in SERVER_PACKAGES
        if path is not None or not (is_package or fullname in self._checkout_names):
            return None
        folders = [
            folder
            for folder in sys.path
            if folder not in self._first_paths or not (is_package or self._is_root(folder))
        ]
        spec = PathFinder.find_spec(fullname, folders, target)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return spec

    def _is_root(self, folder: str) -> bool:
        return str(Path(folder).resolve()) == self._root


def _checkout_names(root: Path) -> frozenset[str]:
    """Return the importable names at the top of a checkout; empty for an installed package."""
    if not (root / _CHECKOUT_FILE).is_file():
        return frozenset()
    names = {
        path.stem for path in root.iterdir() if path.is_dir() or path.suffix in (".py", ".pyc")
    }
    return frozenset(name for name in names if name.isidentifier()) - {_SDK}
