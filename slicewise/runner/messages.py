"""The messages that a worker accepts from a runner, and the checks of message fields.

User code shares the runner's process and can write to the channel. A message of another form ends
the run, as the fault of the run's code, before any part of the message is used.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from slicewise.runner.wire import Message, WireError

FAILURE_KINDS = ("code", "platform", "data")
LARGEST_COUNT = 2**63 - 1
_APPLICATION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}", re.ASCII)

_Check = Callable[[Any], bool]


def is_web_address(value: object) -> bool:
    """Return whether a page may link to an address: ``javascript:`` and the like are code."""
    return isinstance(value, str) and value.lower().startswith(("http://", "https://"))


def is_application_id(value: object) -> bool:
    """Return whether a text may stand in a command as the id of a Spark application."""
    return isinstance(value, str) and _APPLICATION_ID.fullmatch(value) is not None


def refuse_malformed(message: Message) -> None:
    """Raise WireError for an object that is no message of a runner."""
    kind = message.get("type")
    form = _FORMS.get(kind) if isinstance(kind, str) else None
    if form is None:
        raise WireError(f"unexpected message {str(message)[:80]}")
    _refuse_fields(f"message {kind!r}", message, form)


def _refuse_fields(where: str, fields: Mapping[str, Any], form: Mapping[str, _Check]) -> None:
    for name, is_right in form.items():
        optional = name.endswith("?")
        name = name.removesuffix("?")
        if name not in fields:
            if optional:
                continue
            raise WireError(f"a {where} without {name!r}")
        if not is_right(fields[name]):
            raise WireError(f"a {where} with {name!r}: {repr(fields[name])[:80]}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    """Return whether a value can be recorded as a number of rows or bytes, which may be None."""
    return value is None or (type(value) is int and 0 <= value <= LARGEST_COUNT)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


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


# A name with a question mark may be left out.
_FORMS: dict[str, dict[str, _Check]] = {
    "spark": {"application_id": _or_none(is_application_id), "ui": _or_none(is_web_address)},
    "ask": {"question": _is_text},
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
    "discovered": {"set": _is_text, "keys": _is_list},
    "finished": {},
    "failed": {
        "kind": FAILURE_KINDS.__contains__,
        "error": _is_text,
        "traceback": _is_text,
    },
}
