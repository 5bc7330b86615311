"""Tracebacks as the authors of definition files want them: their own lines first."""

import ast
import re
import traceback
from collections.abc import Collection
from pathlib import Path
from typing import TypeGuard

from slicewise.registry import PACKAGE_FOLDER, Site

_FRAME_LIMIT = 50
_CHARACTER_LIMIT = 60_000
# What gRPC says of a call that its server did not answer, over several lines.
_BROKEN_CALL = re.compile(
    r"of RPC that terminated with:\s+status = StatusCode\.(?P<status>\w+)"
    r"\s+details = \"(?P<details>[^\n]*)\"\s"
)


def user_traceback(error: BaseException, folder: Path) -> str:
    """Return the traceback from the first line of a file below ``folder`` on, its paths
    relative to it.
    """
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
    """``ValueError: what went wrong``, the first line of what the error says; a sentence where a
    server did not answer a call.
    """
    text = error_text(error).strip()
    first = _broken_call(error, text) or (text.splitlines()[0] if text else "")
    return f"{type(error).__name__}: {first}"[:1000] if first else type(error).__name__


def _broken_call(error: BaseException, text: str) -> str:
    """Return a sentence about a call over gRPC that its server broke off; empty for the rest."""
    broken = _BROKEN_CALL.search(text)
    if broken is None:
        return ""
    server = "the Spark server" if type(error).__module__.startswith("pyspark.") else "the server"
    details = broken["details"].strip().rstrip(".")
    because = f"{broken['status']}: {details}" if details else broken["status"]
    return f"{server} did not answer, or ended while the call was under way ({because})."


def error_text(error: BaseException) -> str:
    """Return the text of an error of any class; empty where its own `__str__` fails."""
    try:
        return str(error)
    except (Exception, SystemExit):
        return ""


def user_site(error: BaseException, folder: Path) -> Site | None:
    """Return the innermost place below ``folder`` that the error passed through."""
    inside = [place for place in _places(error) if place.file.startswith(f"{folder}/")]
    return Site(_relative(inside[-1].file, str(folder)), inside[-1].line) if inside else None


def file_lines(error: BaseException, file: Path) -> list[int]:
    """Return the lines of a file that the error passed through, the innermost last."""
    return [place.line for place in _places(error) if place.file == str(file)]


def asset_at(file: Path, lines: Collection[int]) -> str | None:
    """Return the asset that a declaration at one of these lines of a file is of.

    Its arguments stand there: they may be wrong before there is an asset that could say so.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        declarations = node.decorator_list if isinstance(node, ast.FunctionDef) else [node]
        for call in declarations:
            if _declares(call) and set(lines) & {*range(call.lineno, (call.end_lineno or 0) + 1)}:
                return _name_of(call, node.name if isinstance(node, ast.FunctionDef) else None)
    return None


def _declares(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether it is written as ``asset(...)``, ``asset.multi(...)`` or ``Asset(...)``."""
    if not isinstance(node, ast.Call):
        return False
    return {"asset", "Asset"} & set(ast.unparse(node.func).split(".")) != set()


def _name_of(call: ast.Call, function: str | None) -> str | None:
    """The name that a declaration says as a literal, else the function's."""
    said = [word.value for word in call.keywords if word.arg == "name"] or call.args[:1]
    if not said:
        return function
    literal = said[0].value if isinstance(said[0], ast.Constant) else None
    return literal if isinstance(literal, str) else None


def _places(error: BaseException) -> list[Site]:
    """Where the error passed, the innermost place last."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [Site(frame.filename, frame.lineno or 0) for frame in frames]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        places.append(Site(error.filename, error.lineno))
    return places


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
