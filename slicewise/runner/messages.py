"""The messages that a worker accepts from a runner, and the checks of message fields.

User code shares the runner's process and can write to the channel. A message of another form ends
the run, as the fault of the run's code, before any part of the message is used.
"""

import re
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

from slicewise.runner.wire import Message, WireError
from slicewise.running.steps import STATES, STEPS
from slicewise.texts.web_links import is_web_address

FAILURE_KINDS = ("code", "platform", "data")
QUESTIONS = ("ask", "step")
"""The messages that the worker answers."""
LARGEST_COUNT = 2**63 - 1
_APPLICATION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}", re.ASCII)

# Keys of products of tuples are some levels deep.
_MOST_LEVELS = 100

_Check = Callable[[Any], bool]
# Python's own repr fails on deep values.
_excerpt = reprlib.Repr()
_excerpt.maxstring = _excerpt.maxother = 80


def is_application_id(value: object) -> bool:
    """Return whether a text may stand in a command as the id of a Spark application."""
    return isinstance(value, str) and _APPLICATION_ID.fullmatch(value) is not None


def refuse_malformed(message: Message) -> None:
    """Raise WireError for an object that is no message of a runner."""
    kind = message.get("type")
    form = _FORMS.get(kind) if isinstance(kind, str) else None
    if form is None:
        raise WireError(f"unexpected message {_excerpt.repr(message)[:80]}")
    _refuse_fields(f"message {kind!r}", message, {"type": _is_text, **form})


def _refuse_fields(where: str, fields: Mapping[str, Any], form: Mapping[str, _Check]) -> None:
    for name in fields:
        if name not in form and f"{name}?" not in form:
            raise WireError(f"a {where} with an unknown field {name[:80]!r}")
    for name, is_right in form.items():
        optional = name.endswith("?")
        name = name.removesuffix("?")
        if name not in fields:
            if optional:
                continue
            raise WireError(f"a {where} without {name!r}")
        if not is_right(fields[name]):
            raise WireError(f"a {where} with {name!r}: {_excerpt.repr(fields[name])[:80]}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    """Return whether a value can be recorded as a number of rows or bytes, which may be None."""
    return value is None or (type(value) is int and 0 <= value <= LARGEST_COUNT)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_key(value: Any) -> bool:
    """Return whether a value has the form of a key's JSON: a plain value, or {type: content}."""
    is_plain = isinstance(value, str | int | float)
    return is_plain or (isinstance(value, dict) and len(value) == 1 and _is_shallow(value))


def _are_keys(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_key, value))


def _is_shallow(value: Any) -> bool:
    """Return whether functions that call themselves for each level can read a value."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        nested = [entry for entry in level if isinstance(entry, list | dict)]
        level = [
            inner
            for entry in nested
            for inner in (entry.values() if isinstance(entry, dict) else entry)
        ]
        if not level:
            return True
    return False


def _or_none(is_right: _Check) -> _Check:
    return lambda value: value is None or is_right(value)


def _list_of(form: Mapping[str, _Check]) -> _Check:
    def is_right(value: Any) -> bool:
        if not isinstance(value, list):
            return False
        for entry in value:
            if not isinstance(entry, dict):
                return False
            _refuse_fields("entry of a message", entry, form)
        return True

    return is_right


# A name with a question mark may be left out. No message has other fields.
_FORMS: dict[str, dict[str, _Check]] = {
    "spark": {"application_id": _or_none(is_application_id), "ui": _or_none(is_web_address)},
    # The answer refuses facts that are wrong.
    "ask": {"question": _is_text, "asset?": _is_shallow, "keys?": _is_list, "after?": _is_shallow},
    "step": {"step": STEPS.__contains__, "state": STATES.__contains__, "error": _is_text},
    "validated": {"when": _is_text, "asset": _is_text, "results": _is_list},
    "staged": {
        "asset?": _is_text,
        "root": _is_text,
        "staging": _is_text,
        "partitions": _list_of(
            {"key": _is_text, "path": _is_text, "rows": _is_count, "bytes": _is_count}
        ),
    },
    "unmade": {"partitions": _list_of({"key": _is_text, "error": _is_text})},
    "discovered": {"set": _is_text, "keys": _are_keys},
    "finished": {},
    "failed": {
        "kind": FAILURE_KINDS.__contains__,
        "error": _is_text,
        "traceback": _is_text,
        "partition?": _or_none(_is_key),
    },
}
