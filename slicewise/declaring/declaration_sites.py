"""The sites of declarations: the file and line that an error about a declaration names."""

import sys
from collections.abc import Iterator
from types import FrameType

from slicewise.declaring.active_registry import Collector, active_registry
from slicewise.errors import DefinitionError
from slicewise.texts.sites import PACKAGE_FOLDER, Site


class AssetDefinitionError(DefinitionError):
    """A declaration breaks a rule; the message names the file, the line and the asset."""

    def __init__(self, message: str, *, site: Site, asset: str | None) -> None:
        self.sentence = f"asset {asset!r}: {message}" if asset else message
        """The message without file and line, for displays that show both beside the message."""
        super().__init__(f"{site}: {self.sentence}")
        self.site = site
        self.asset = asset


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


def _declaring_frame(registry: Collector | None) -> FrameType:
    """Return the innermost top-level frame of a file of the bundle, else the innermost caller."""
    outside = [frame for frame in _frames() if not _is_own(frame)]
    if registry is None:
        return outside[0]
    return next((frame for frame in outside if _is_top_level_of(registry, frame)), outside[0])


def _is_top_level_of(registry: Collector, frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name == "<module>" and registry.relative(code.co_filename) is not None


def _site(registry: Collector | None, path: str, line: int) -> Site:
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
