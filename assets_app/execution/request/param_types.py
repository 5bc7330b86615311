"""The types of params: a given value has the type of the declared default, and is no mask."""

from collections.abc import Mapping
from typing import Any

from slicewise.texts import holds_mask, masked_json
from slicewise_server.web.request_errors import InvalidRequest

# In this order: in Python, bool is a kind of int.
_NAMES: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def with_declared_types(params: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params; numbers get the type of their declared default, so that 1 becomes 1.0.

    Any value is fit where the default is null, and for names that are not declared. Raises
    InvalidRequest on ``params`` for values of another type, and for the mask of a secret, which
    pages and API show in place of the value; the error shows no value, since a value may be a
    secret.
    """
    typed, refusals = dict(params), list[str]()
    for name in sorted(params.keys() & declared.keys()):
        value, default = params[name], declared[name]
        if value != default and _is_mask(name, value, default):
            refusals.append(f"{name} has *** in place of a secret: give the secret itself.")
            continue
        try:
            typed[name] = _typed(value, default)
        except (TypeError, OverflowError):
            wanted_type, value_type = _name_of(default), _name_of(value)
            refusals.append(
                f"{name} takes {wanted_type}, as its declared default is; the given value is"
                f" {value_type}."
            )
    if refusals:
        raise InvalidRequest({"params": refusals})
    return typed


def _typed(value: Any, default: Any) -> Any:
    """Return the value with the type of the default. Raises TypeError and OverflowError."""
    if default is None or type(value) is type(default):
        return value
    if type(default) is float and type(value) is int:
        return float(value)
    if type(default) is int and type(value) is float and value.is_integer():
        return int(value)
    raise TypeError


def _is_mask(name: str, value: Any, default: Any) -> bool:
    return holds_mask({name: value}) or _has_mask_of(value, default)


def _has_mask_of(value: Any, default: Any) -> bool:
    """Return whether a text in a value is the masked form of the text in its place in a default."""
    if isinstance(value, Mapping) and isinstance(default, Mapping):
        return any(_has_mask_of(value[name], default[name]) for name in value.keys() & default)
    if isinstance(value, list) and isinstance(default, list):
        return any(map(_has_mask_of, value, default))
    return bool(value != default and value == masked_json(default))


def _name_of(value: Any) -> str:
    return next(name for kind, name in _NAMES.items() if isinstance(value, kind))
