"""Signatures of functions that materialize assets: the functions, and the names of parameters."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from slicewise.declaring.option_checks import RESERVED_NAMES
from slicewise.errors import DefinitionError

HOOK_NAMES = ("self", "context")
"""The parameters that a function called after a run may have."""
_PARAMETER = inspect.Parameter
_BY_NAME = (_PARAMETER.POSITIONAL_OR_KEYWORD, _PARAMETER.KEYWORD_ONLY)


def check_function(function: object) -> str:
    """Return the function's name. Raises DefinitionError for one that a run cannot call or name."""
    if isinstance(function, type):
        raise DefinitionError("a class is decorated; decorate a function written with def")
    if isinstance(function, staticmethod | classmethod):
        raise DefinitionError("a method of a class is decorated; write the function outside of it")
    if not inspect.isroutine(function):
        raise DefinitionError(
            f"an object of type {type(function).__name__} is decorated; decorate a function"
            " written with def"
        )
    name: str = function.__name__
    if name == "<lambda>":
        raise DefinitionError("a lambda is decorated; write a function with def")
    if inspect.iscoroutinefunction(function):
        raise DefinitionError("the function is async, and a run awaits nothing; write plain def")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DefinitionError(
            "the function yields; return one DataFrame, or call self.write, instead"
        )
    return name


def wanted_names(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters that a run fills in; a parameter with a default is left
    out.

    Raises DefinitionError for parameters that no argument can fill.
    """
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (_PARAMETER.VAR_POSITIONAL, _PARAMETER.VAR_KEYWORD):
            stars = "*" if parameter.kind is _PARAMETER.VAR_POSITIONAL else "**"
            raise DefinitionError(
                f"the function has {stars}{parameter.name}; name each upstream asset"
            )
        if parameter.default is not _PARAMETER.empty:
            continue
        if parameter.kind is _PARAMETER.POSITIONAL_ONLY:
            raise DefinitionError(
                f"the parameter {parameter.name!r} is positional-only; parameters are given by name"
            )
        names.append(parameter.name)
    return names


def check_hook(option: str, hook: Callable[..., Any]) -> None:
    """Raise DefinitionError for a function that could not be called after a run."""
    shown = f"{option}={getattr(hook, '__qualname__', type(hook).__qualname__)}"
    if inspect.iscoroutinefunction(hook) or inspect.isasyncgenfunction(hook):
        raise DefinitionError(f"{shown} is async, and hooks are not awaited; write plain def")
    if inspect.isgeneratorfunction(hook):
        raise DefinitionError(f"{shown} yields, and hooks are not iterated; write plain def")
    try:
        parameters = inspect.signature(hook).parameters.values()
    except (TypeError, ValueError):  # some functions written in C have no signature
        raise DefinitionError(
            f"the parameters of {shown} cannot be read; call {shown} in a function of your own"
        ) from None
    for parameter in parameters:
        is_given = parameter.name in HOOK_NAMES and parameter.kind in _BY_NAME
        if not is_given and parameter.default is _PARAMETER.empty:
            raise DefinitionError(
                f"{shown} has the parameter {str(parameter)!r}; a function that is called after a"
                f" run gets {' and '.join(HOOK_NAMES)} only, by name"
            )


def inlet_parameters(
    function: Callable[..., Any], inlets: object = None, *, setup: str | None = None
) -> dict[str, str]:
    """Return the name of the upstream asset of each parameter, in the order of the parameters.

    ``inlets`` is the option: the assets of parameters that do not have the name of their asset.
    ``setup`` is the name of the set-up, whose result the parameter of that name gets. Raises
    DefinitionError.
    """
    filled_names = (*RESERVED_NAMES, setup)
    parameters = [name for name in wanted_names(function) if name not in filled_names]
    assets = {name: name for name in parameters}
    for parameter, name in _named_assets(inlets).items():
        if parameter not in assets:
            parameter_names = ", ".join(parameters) or "no parameter for an asset"
            raise DefinitionError(
                f"inlets names {parameter!r}, which is no parameter that a run fills in; the"
                f" function has {parameter_names}"
            )
        assets[parameter] = name
    for parameter, name in assets.items():
        first_parameter = next(first for first, asset in assets.items() if asset == name)
        if first_parameter != parameter:
            raise DefinitionError(
                f"the parameters {first_parameter!r} and {parameter!r} are both the asset {name!r};"
                " keep one"
            )
    return assets


def _named_assets(inlets: object) -> dict[str, str]:
    if inlets is None:
        return {}
    if not isinstance(inlets, Mapping):
        raise DefinitionError(
            f"inlets maps parameters to assets, such as {{'trips': Asset.ref('raw trips')}}, not"
            f" {inlets!r}; an asset whose name is an identifier is named by the parameter itself"
        )
    names: dict[str, str] = {}
    for parameter, asset in inlets.items():
        name = getattr(asset, "name", None)
        if not isinstance(name, str) or getattr(asset, "outlets", None):
            shown = f"; write Asset.ref({asset!r})" if isinstance(asset, str) else ""
            raise DefinitionError(f"inlets of {parameter!r} is one asset, not {asset!r}{shown}")
        names[parameter] = name
    return names
