"""Tracebacks as the authors of definition files want them: their own lines first."""

import traceback
from pathlib import Path

from slicewise.registry import PACKAGE_FOLDER

_FRAME_LIMIT = 50
_CHARACTER_LIMIT = 60_000


def user_traceback(error: BaseException, folder: Path) -> str:
    """The traceback from the first line of a file below ``folder`` on, its paths relative to it."""
    shown = traceback.TracebackException.from_exception(error, limit=-_FRAME_LIMIT)
    _trim(shown, str(folder), seen=set())
    text = "".join(shown.format())
    if len(text) > _CHARACTER_LIMIT:
        half = _CHARACTER_LIMIT // 2
        text = (
            f"{text[:half]}\n… {len(text) - _CHARACTER_LIMIT} characters left out …\n{text[-half:]}"
        )
    return text


def one_line(error: BaseException) -> str:
    """``ValueError: what went wrong``, the first line of what the error says."""
    said = str(error).strip()
    first = said.splitlines()[0] if said else ""
    return f"{type(error).__name__}: {first}"[:1000] if first else type(error).__name__


def user_line(error: BaseException, folder: Path) -> int | None:
    """The line in the innermost file below ``folder`` that the error passed through."""
    if isinstance(error, SyntaxError) and (error.filename or "").startswith(str(folder)):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.filename.startswith(str(folder))]
    return inside[-1].lineno if inside else None


def file_line(error: BaseException, file: Path) -> int | None:
    """The line of a file at which the error passed through it, if it did."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in frames if frame.filename == str(file)), None)


def _trim(shown: traceback.TracebackException, folder: str, seen: set[int]) -> None:
    if id(shown) in seen:
        return
    seen.add(id(shown))
    shown.stack = _user_frames(shown.stack, folder)
    if isinstance(getattr(shown, "filename", None), str):  # of a SyntaxError
        shown.filename = _relative(shown.filename, folder)
    for other in (shown.__cause__, shown.__context__):
        if other is not None:
            _trim(other, folder, seen)


def _user_frames(stack: traceback.StackSummary, folder: str) -> traceback.StackSummary:
    frames = list(stack)
    first = next((i for i, f in enumerate(frames) if f.filename.startswith(folder)), 0)
    kept = [frame for frame in frames[first:] if not _is_machinery(frame.filename)]
    for frame in kept:
        frame.filename = _relative(frame.filename, folder)
    return traceback.StackSummary.from_list(kept)


def _is_machinery(filename: str) -> bool:
    is_own = filename.startswith((PACKAGE_FOLDER, "<frozen importlib"))
    return is_own or "/site-packages/pyspark/" in filename


def _relative(filename: str, folder: str) -> str:
    return filename.removeprefix(folder).lstrip("/") if filename.startswith(folder) else filename
