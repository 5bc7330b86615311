"""The fields of people's key classes: annotations, defaults, and checks of values."""

import re
from collections.abc import Mapping
from datetime import datetime
from inspect import Parameter, Signature
from typing import Any, ClassVar, NamedTuple, get_origin

from slicewise.errors import DefinitionError, PartitionKeyError
from slicewise.keys.plain_values import PLAIN_TYPES, plain_value

_DOTTED_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_CLASS_VARIABLE = re.compile(r"(?:\w+\.)*ClassVar\b")
_MISSING = Parameter.empty
_PLAIN_NAMES = {kind.__name__: kind for kind in PLAIN_TYPES}
_GENERIC: tuple[type, ...] = (tuple, frozenset, list, set, dict)
_INSTEAD: dict[type, type] = {list: tuple, set: frozenset}
_ALLOWED = f"use one of {', '.join(_PLAIN_NAMES)}, or a PartitionKey"


class Field(NamedTuple):
    """A field of a key class: class name, field name, annotation, annotated class (if any), and
    default.
    """

    owner: str
    name: str
    annotation: object
    kind: type | None
    default: object = _MISSING

    @property
    def parameter(self) -> Parameter:
        """The field as a parameter of the constructor."""
        return Parameter(
            self.name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=self.default,
            annotation=self.annotation,
        )

    def check(self, value: object, key_type: type) -> Any:
        """Return the value in the form that a key stores.

        Raises PartitionKeyError, which names the field.
        """
        try:
            checked = value if isinstance(value, key_type) else plain_value(value)
        except PartitionKeyError as error:
            raise PartitionKeyError(f"field {self.name} of {self.owner}: {error}") from None
        if self.kind is not None and not _is_instance(checked, self.kind):
            raise PartitionKeyError(
                f"field {self.name} of {self.owner} takes a {self.kind.__name__},"
                f" not {value!r:.200} ({type(value).__name__})"
            )
        return checked


def read_fields(
    owner: str, namespace: Mapping[str, Any], scope: Mapping[str, Any], key_type: type
) -> dict[str, Field]:
    """Return the fields that a class body declares, by name; a ClassVar is no field.

    `scope` holds the names that annotations written as text may use, `key_type` is the class of all
    keys. Raises DefinitionError.
    """
    fields = {}
    for name, annotation in namespace.get("__annotations__", {}).items():
        if _is_class_variable(annotation):
            continue
        if name.startswith("_"):
            raise DefinitionError(
                f"the field {name} of {owner} begins with an underscore: a field is public, part"
                " of the key's text"
            )
        kind = _kind(annotation, scope)
        _check_kind(owner, name, kind, key_type)
        field = Field(owner, name, annotation, kind, namespace.get(name, _MISSING))
        fields[name] = _with_checked_default(field, key_type)
    return fields


def _with_checked_default(field: Field, key_type: type) -> Field:
    if field.default is _MISSING:
        return field
    try:
        return field._replace(default=field.check(field.default, key_type))
    except PartitionKeyError as error:
        raise DefinitionError(f"the default of {error}") from None


def signature_of(owner: str, fields: Mapping[str, Field]) -> Signature:
    """Return the constructor's parameters.

    Raises DefinitionError for a field without default after a field with a default.
    """
    with_default = ""
    for field in fields.values():
        if field.default is not _MISSING:
            with_default = field.name
        elif with_default:
            raise DefinitionError(
                f"the field {field.name} of {owner} has no default but follows {with_default},"
                f" which has a default: declare {field.name} before {with_default}"
            )
    return Signature([field.parameter for field in fields.values()])


def _is_instance(value: object, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float)
    if isinstance(value, datetime):  # in Python also a date, but never equal to a date
        return issubclass(kind, datetime)
    return isinstance(value, kind)


def _is_class_variable(annotation: object) -> bool:
    if isinstance(annotation, str):
        return _CLASS_VARIABLE.match(annotation) is not None
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _kind(annotation: object, scope: Mapping[str, Any]) -> type | None:
    """Return the class that an annotation names; None for unions, literals, type variables, …."""
    if isinstance(annotation, str):
        annotation = _resolve(annotation, scope)
    origin = get_origin(annotation)
    if origin is not None:
        return origin if origin in _GENERIC else None
    if annotation is object or annotation is Any:
        return None
    return annotation if isinstance(annotation, type) else None


def _check_kind(owner: str, name: str, kind: type | None, key_type: type) -> None:
    if kind is None or kind in PLAIN_TYPES or issubclass(kind, key_type):
        return
    near = next((plain for plain in (*_INSTEAD, *PLAIN_TYPES) if issubclass(kind, plain)), None)
    hint = f"annotate it as {_INSTEAD.get(near, near).__name__}" if near is not None else _ALLOWED
    raise DefinitionError(
        f"the field {name} of {owner} is a {kind.__name__}, which a key cannot hold: {hint}"
    )


def _resolve(annotation: str, scope: Mapping[str, Any]) -> object:
    """Return the object named by a name, dotted name or tuple[…]; None for other texts."""
    text, bracket, _ = annotation.partition("[")
    if not _DOTTED_NAME.fullmatch(text.strip()):
        return None
    first, *rest = text.strip().split(".")
    resolved = scope.get(first, _PLAIN_NAMES.get(first))
    for name in rest:
        resolved = getattr(resolved, name, None)
    return None if bracket and resolved not in _GENERIC else resolved
