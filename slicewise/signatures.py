"""What an asset's function asks for: the names of its parameters."""

import inspect
from collections.abc import Callable
from typing import Any

from slicewise.options import RESERVED_NAMES

_PARAMETER = inspect.Parameter


def wanted_names(function: Callable[..., Any]) -> list[str]:
    """The parameters that a run fills in, by name; one with a default keeps its default.

    Raises ValueError for parameters that nothing can be given for.
    """
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (_PARAMETER.VAR_POSITIONAL, _PARAMETER.VAR_KEYWORD):
            stars = "*" if parameter.kind is _PARAMETER.VAR_POSITIONAL else "**"
            raise ValueError(f"the function has {stars}{parameter.name}; name each upstream asset")
        if parameter.default is not _PARAMETER.empty:
            continue
        if parameter.kind is _PARAMETER.POSITIONAL_ONLY:
            raise ValueError(
                f"the parameter {parameter.name!r} is positional-only; parameters are given by name"
            )
        names.append(parameter.name)
    return names


def inlet_names(function: Callable[..., Any]) -> list[str]:
    """The names of the upstream assets that a function reads, in the order of its parameters."""
    return [name for name in wanted_names(function) if name not in RESERVED_NAMES]
