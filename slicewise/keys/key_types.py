"""The metaclass of partition keys, which reads declarations of key classes (AIP-76, "Rich Partition
Key").

A key class has fields and methods, and no code that runs by itself when a key is created, compared
or read back: only code of Slicewise creates keys.
"""

import sys
from collections import ChainMap
from collections.abc import Sequence
from inspect import Signature
from typing import Any, Literal, dataclass_transform
from weakref import WeakValueDictionary

from slicewise.errors import DefinitionError
from slicewise.keys.key_fields import Field, read_fields, signature_of

_ALLOWED = {"__str__", "__repr__", "__doc__"}
_WRITTEN_BY_THE_COMPILER = {
    *("__module__", "__qualname__", "__annotations__", "__classcell__", "__static_attributes__"),
    *("__firstlineno__", "__annotate__", "__annotate_func__", "__classdictcell__"),
    *("__conditional_annotations__", "__type_params__"),
}
_MAKING = "annotate fields (x: float); Slicewise creates the constructor"
_COMPARING = "keys are equal, hashed and ordered by their fields"
_FROZEN = "keys are frozen, and their fields plain"
_STORING = "keys are stored by their fields"
_OTHERS = "a key class has fields, methods, and __str__ for the shown text"
_INSTEAD = {
    **dict.fromkeys(("__init__", "__new__", "__post_init__", "__init_subclass__"), _MAKING),
    **dict.fromkeys(("__eq__", "__ne__", "__hash__"), _COMPARING),
    **dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__"), _COMPARING),
    **dict.fromkeys(("__setattr__", "__delattr__", "__slots__", "__del__"), _FROZEN),
    **dict.fromkeys(("__getattribute__", "__getattr__"), _FROZEN),
    **dict.fromkeys(("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"), _STORING),
}
# The base of all keys and the base of keys with fields, which modules above this one define.
_BASES: dict[Literal["key", "record"], type] = {}
# People's key classes of this process, by the names of class and fields; the latest class of a name
# counts. Nothing is imported to find a class: a server that reads the JSON of such a key has no
# class, and creates a stand-in.
_declared: WeakValueDictionary[tuple[str, tuple[str, ...]], type] = WeakValueDictionary()


def register_base(kind: Literal["key", "record"], cls: type) -> None:
    """Use a class as the base of all keys, or as the base of people's keys with fields."""
    _BASES[kind] = cls


def declared_key_class(type_name: str, names: Sequence[str]) -> type | None:
    """Return the key class that this process declared with that name and those fields, if any."""
    return _declared.get((type_name, tuple(names)))


@dataclass_transform(frozen_default=True)
class PartitionKeyType(type):
    """The type of key classes.

    The fields of people's classes are read from annotations. Raises DefinitionError for special
    methods other than `__str__` and `__repr__`, for bases that are no key class, and for names that
    would hide an attribute of every key. `built_in=True` is for the key classes of this package.
    """

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        built_in: bool = False,
    ) -> "PartitionKeyType":
        if not bases or (built_in and str(namespace.get("__module__")).startswith("slicewise.")):
            return super().__new__(mcls, name, bases, namespace)
        key_class, record_class = _BASES["key"], _BASES["record"]
        base = record_class if bases == (key_class,) else _base(name, bases)
        _check_names(name, namespace, record_class)
        caller = sys._getframe(1)
        scope = ChainMap(namespace, caller.f_locals, caller.f_globals)
        fields: dict[str, Field] = {
            **getattr(base, "_fields", {}),
            **read_fields(name, namespace, scope, key_class),
        }
        fields = {field_name: field._replace(owner=name) for field_name, field in fields.items()}
        cls = super().__new__(mcls, name, (base,), _with_fields(namespace, name, fields))
        _declared[name, tuple(fields)] = cls
        return cls

    def __init_subclass__(mcls) -> None:
        raise DefinitionError(
            f"{mcls.__name__} would change key classes: derive from PartitionKey alone"
        )

    def __setattr__(cls, name: str, value: object) -> None:
        if "_fields" in vars(cls) and name != "__final__":
            raise DefinitionError(
                f"the key class {cls.__name__} is complete as it is declared: {name} cannot be set"
                " (it needs no @dataclass and no @total_ordering)"
            )
        super().__setattr__(name, value)

    def __delattr__(cls, name: str) -> None:
        raise DefinitionError(f"the key class {cls.__name__} is complete: {name} cannot be deleted")


class _Attribute:
    """A descriptor that reads a field of a key."""

    def __init__(self, index: int, field: Field) -> None:
        self._index, self._field = index, field

    def __get__(self, key: Any, owner: type) -> Any:
        return self._field if key is None else key._values[self._index]

    def __set__(self, key: Any, value: object) -> None:
        raise AttributeError(f"a partition key is frozen: {self._field.name} cannot be set")


def _with_fields(namespace: dict[str, Any], name: str, fields: dict[str, Field]) -> dict[str, Any]:
    attributes = {
        field_name: _Attribute(index, fields[field_name]) for index, field_name in enumerate(fields)
    }
    signature: Signature = signature_of(name, fields)
    return {
        **namespace,
        **attributes,
        "__slots__": (),
        "__match_args__": tuple(fields),
        "__signature__": signature,
        "_fields": fields,
        "_names": tuple(fields),
        "_type_name": name,
    }


def _base(name: str, bases: tuple[type, ...]) -> type:
    """Return the one base of a key class: a person's own key class.

    Raises DefinitionError for several bases, and for a base that is no key class.
    """
    if len(bases) > 1:
        raise DefinitionError(
            f"the key class {name} has {len(bases)} bases: derive {name} from PartitionKey alone,"
            " or from one key class alone"
        )
    if "_fields" not in vars(bases[0]):
        raise DefinitionError(
            f"the key class {name} cannot derive from {bases[0].__name__}: derive {name} from"
            f" PartitionKey (a field may hold a {bases[0].__name__})"
        )
    return bases[0]


def _check_names(name: str, namespace: dict[str, Any], record: type) -> None:
    """Refuse special methods, which run by themselves, and names that hide attributes of keys."""
    special = {
        attribute
        for attribute in namespace
        if attribute.startswith("__") and attribute.endswith("__")
    }
    for attribute in sorted(special - _ALLOWED - _WRITTEN_BY_THE_COMPILER):
        hint = _INSTEAD.get(attribute, _OTHERS)
        raise DefinitionError(f"the key class {name} may not have {attribute}: {hint}")
    for attribute in {**namespace, **namespace.get("__annotations__", {})}:
        if not attribute.startswith("__") and hasattr(record, attribute):
            raise DefinitionError(
                f"{attribute!r} of the key class {name} would hide an attribute of every key: take"
                " another name"
            )
