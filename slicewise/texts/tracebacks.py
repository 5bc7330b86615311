"""Tracebacks for the authors of definition files: their own lines come first."""

import ast
import re
import traceback
from collections.abc import Collection
from pathlib import Path
from typing import TypeGuard

from slicewise.texts.sites import PACKAGE_FOLDER, Site

_FRAME_LIMIT = 50
_CHARACTER_LIMIT = 60_000
# The message of gRPC for a call that the server did not answer, over several lines.
_BROKEN_CALL = re.compile(
    r"of RPC that terminated with:\s+status = StatusCode\.(?P<status>\w+)"
    r"\s+details = \"(?P<details>[^\n]*)\"\s"
)


def user_traceback(error: BaseException, folder: Path) -> str:
    """Return the traceback from the first line of a file below ``folder``, with relative paths."""
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
    """Return ``ValueError: message`` with the first line of the error's message.

    For a call that a server did not answer, the message is a sentence.
    """
    text = error_text(error).strip()
    first = _broken_call(error, text) or (text.splitlines()[0] if text else "")
    return f"{type(error).__name__}: {first}"[:1000] if first else type(error).__name__


def _broken_call(error: BaseException, text: str) -> str:
    """Return a sentence about a gRPC call that its server broke off; empty for other errors."""
    matched = _BROKEN_CALL.search(text)
    if matched is None:
        return ""
    server = "the Spark server" if type(error).__module__.startswith("pyspark.") else "the server"
    details = matched["details"].strip().rstrip(".")
    reason = f"{matched['status']}: {details}" if details else matched["status"]
    return f"{server} did not answer, or ended while the call was under way ({reason})."


def error_text(error: BaseException) -> str:
    """Return the text of an error of any class; empty if the error's own `__str__` fails."""
    try:
        return str(error)
    except (Exception, SystemExit):
        return ""


def user_site(error: BaseException, folder: Path) -> Site | None:
    """Return the innermost site below ``folder`` that the error passed through."""
    inside = [site for site in _error_sites(error) if site.file.startswith(f"{folder}/")]
    return Site(_relative(inside[-1].file, str(folder)), inside[-1].line) if inside else None


def file_lines(error: BaseException, file: Path) -> list[int]:
    """Return the lines of a file that the error passed through, the innermost last."""
    return [site.line for site in _error_sites(error) if site.file == str(file)]


def asset_at(file: Path, lines: Collection[int]) -> str | None:
    """Return the name of the asset whose declaration covers one of these lines of a file.

    The declaration's arguments are in these lines: they may be wrong before an asset exists that
    could report the error.
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
    """Return whether a node is a call of ``asset(...)``, ``asset.multi(...)`` or ``Asset(...)``."""
    if not isinstance(node, ast.Call):
        return False
    return {"asset", "Asset"} & set(ast.unparse(node.func).split(".")) != set()


def _name_of(call: ast.Call, function: str | None) -> str | None:
    """Return the name that a declaration gives as a literal, else the function's name."""
    name_arguments = [word.value for word in call.keywords if word.arg == "name"] or call.args[:1]
    if not name_arguments:
        return function
    literal = name_arguments[0].value if isinstance(name_arguments[0], ast.Constant) else None
    return literal if isinstance(literal, str) else None


def _error_sites(error: BaseException) -> list[Site]:
    """Return the sites that the error passed through, the innermost site last."""
    frames = traceback.extract_tb(error.__traceback__)
    sites = [Site(frame.filename, frame.lineno or 0) for frame in frames]
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        sites.append(Site(error.filename, error.lineno))
    return sites


def _trim(shown: traceback.TracebackException, folder: str, seen: set[int]) -> None:
    if id(shown) in seen:
        return
    seen.add(id(shown))
    shown.stack = _user_frames(shown.stack, folder)
    if isinstance(getattr(shown, "filename", None), str):  # of a SyntaxError
        shown.filename = _relative(shown.filename, folder)
    for cause in (shown.__cause__, shown.__context__):
        if cause is not None:
            _trim(cause, folder, seen)


def _user_frames(stack: traceback.StackSummary, folder: str) -> traceback.StackSummary:
    frames = list(stack)
    first = next((i for i, f in enumerate(frames) if f.filename.startswith(folder)), 0)
    user_frames = [frame for frame in frames[first:] if not _is_machinery(frame.filename)]
    for frame in user_frames:
        frame.filename = _relative(frame.filename, folder)
    return traceback.StackSummary.from_list(user_frames)


def _is_machinery(filename: str) -> bool:
    is_own = filename.startswith((PACKAGE_FOLDER, "<frozen importlib"))
    return is_own or "/site-packages/pyspark/" in filename


def _relative(filename: str, folder: str) -> str:
    return filename.removeprefix(folder).lstrip("/") if filename.startswith(folder) else filename
