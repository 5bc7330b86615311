"""The declarations of definition files, collected while the files are loaded, with their sites."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, cast

from slicewise.errors import DefinitionError
from slicewise.texts.sites import PACKAGE_FOLDER, Site

if TYPE_CHECKING:
    from slicewise.declaring.declared_asset import Asset
    from slicewise.declaring.decorator import ProducedAsset
    from slicewise.declaring.multi_asset import MultiAsset


class AssetDefinitionError(DefinitionError):
    """A declaration breaks a rule; the message names the file, the line and the asset."""

    def __init__(self, message: str, *, site: Site, asset: str | None) -> None:
        self.sentence = f"asset {asset!r}: {message}" if asset else message
        """The message without file and line, for displays that show both beside the message."""
        super().__init__(f"{site}: {self.sentence}")
        self.site = site
        self.asset = asset


@dataclass
class Registry:
    """The assets that the files below ``folder`` declare, by name."""

    folder: Path
    assets: dict[str, "Asset"] = field(default_factory=dict)
    multis: dict[str, "MultiAsset"] = field(default_factory=dict)
    """The functions that materialize several assets; assets and functions share one namespace."""
    references: set[str] = field(default_factory=set)
    """The names in ``Asset.ref(...)``, which another bundle may declare."""

    def add(self, asset: "Asset") -> None:
        """Add an asset. Raises AssetDefinitionError if another asset has the name already."""
        self._check_free(asset)
        self.assets[asset.name] = asset

    def add_multi(self, producer: "MultiAsset") -> None:
        """Add a multi-asset. Raises AssetDefinitionError if an asset or an outlet has the name."""
        self._check_free(producer)
        self.multis[producer.name] = producer

    def producers(self) -> list["ProducedAsset | MultiAsset"]:
        """Return the assets and multi-assets that have a function, by file and line."""
        single_assets = [asset for asset in self.assets.values() if asset.made_by is asset]
        return sorted(
            [*cast("list[ProducedAsset]", single_assets), *self.multis.values()], key=_order
        )

    def external(self) -> list["Asset"]:
        """Return the assets that another program writes, by file and line."""
        return sorted((a for a in self.assets.values() if a.made_by is None), key=_order)

    def drop_files(self, files: set[str]) -> None:
        """Forget the declarations of these files, because loading the files ended with an error."""
        for name in [name for name, asset in self.assets.items() if asset.site.file in files]:
            del self.assets[name]
        for name in [name for name, producer in self.multis.items() if producer.site.file in files]:
            # Outlets may be declared in another file, which is loaded only once.
            for outlet in self.multis.pop(name).outlets:
                outlet.made_by = None

    def _check_free(self, asset: "Asset | MultiAsset") -> None:
        namesake = self.assets.get(asset.name, self.multis.get(asset.name))
        if namesake is not None:
            raise asset.refused(
                f"declared twice, here and at {namesake.site}; every asset needs a name of its own"
            )

    def relative(self, path: str) -> str | None:
        """Return the path of a file inside the bundle, or None for a file outside the bundle."""
        try:
            return Path(path).relative_to(self.folder).as_posix()
        except ValueError:
            return None


_active: list[Registry] = []


@contextmanager
def collecting(registry: Registry) -> Iterator[Registry]:
    """Add all declarations within the block to ``registry``."""
    _active.append(registry)
    try:
        yield registry
    finally:
        _active.pop()


def active_registry() -> Registry | None:
    """Return the registry that collects declarations now, or None if no files are being loaded."""
    return _active[-1] if _active else None


def declaring_site(function_file: str | None = None, function_line: int = 0) -> Site:
    """Return the site where the asset that is being created is declared.

    The site is in the file whose top level runs, even if a function of another file creates the
    asset: loading this file again declares the asset again. The line is the line of the function if
    the function is in the same file; for a decorated function, the line of its first decorator.
    """
    registry = active_registry()
    frame = _declaring_frame(registry)
    is_loading = registry is not None and _is_top_level_of(registry, frame)
    if function_file is not None and (function_file == frame.f_code.co_filename or not is_loading):
        return _site(registry, function_file, function_line)
    return _site(registry, frame.f_code.co_filename, frame.f_lineno)


def _declaring_frame(registry: Registry | None) -> FrameType:
    """Return the innermost top-level frame of a file of the bundle, else the innermost caller."""
    outside = [frame for frame in _frames() if not _is_own(frame)]
    if registry is None:
        return outside[0]
    return next((frame for frame in outside if _is_top_level_of(registry, frame)), outside[0])


def _is_top_level_of(registry: Registry, frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name == "<module>" and registry.relative(code.co_filename) is not None


def _site(registry: Registry | None, path: str, line: int) -> Site:
    return Site((registry and registry.relative(path)) or path, line)


def caller_site() -> Site:
    """Return the innermost site outside this package that is being executed."""
    frame = next(frame for frame in _frames() if not _is_own(frame))
    return _site(active_registry(), frame.f_code.co_filename, frame.f_lineno)


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_own(frame: FrameType) -> bool:
    code = frame.f_code
    # The generated __init__ of a dataclass is in no file, nor is the code that `python -c` runs.
    is_written_for_us = code.co_filename == "<string>" and code.co_name == "__init__"
    return code.co_filename.startswith(PACKAGE_FOLDER) or is_written_for_us


def _order(declared: "Asset | MultiAsset") -> tuple[str, int, str]:
    return declared.site.file, declared.site.line, declared.name
