"""Checks of set-up and tear-down: a run calls each by the names of its parameters."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from slicewise.declaring.option_checks import RESERVED_NAMES
from slicewise.declaring.options import RunOptions
from slicewise.declaring.signatures import inlet_parameters, wanted_names
from slicewise.errors import DefinitionError

Function = Callable[..., Any]

_HINTS = {
    "setup": "upstream assets are read in the asset's function",
    "teardown": "the result of a setup has the name of the setup, which is declared before the"
    " teardown",
}


def function_name(function: Function | None) -> str | None:
    """Return the name of a set-up or tear-down, if there is one."""
    return None if function is None else str(function.__name__)


def setup_name(options: RunOptions) -> str | None:
    """Return the name of the set-up, and of the parameter for the result."""
    return function_name(options.setup)


def parameters_of_inlets(function: Function, options: RunOptions) -> dict[str, str]:
    """Return the name of the upstream asset of each parameter, in the order of the parameters.

    Raises DefinitionError.
    """
    return inlet_parameters(function, options.inlets, setup=setup_name(options))


def check_step_functions(function: Function, options: RunOptions) -> None:
    """Raise DefinitionError for a set-up or tear-down that a run could not call."""
    name = None
    if options.setup is not None:
        _check("setup", options.setup, RESERVED_NAMES)
        name = setup_name(options)
        _check_setup_name(str(name), function, options)
    if options.teardown is not None:
        _check("teardown", options.teardown, (*RESERVED_NAMES, *filter(None, [name])))


def _check(option: str, function: Function, given: tuple[str, ...]) -> None:
    name = getattr(function, "__name__", None)
    shown = f"{option}={name or repr(function)}"
    if not inspect.isroutine(function) or (option == "setup" and name == "<lambda>"):
        raise DefinitionError(f"{shown} is no function with a name; write a function with def")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise DefinitionError(f"{shown} is async, and a run awaits nothing; write plain def")
    if inspect.isgeneratorfunction(function):
        raise DefinitionError(
            f"{shown} yields; write two functions, a setup that returns and a teardown that gets"
            " the returned value by the name of the setup"
        )
    try:
        names = wanted_names(function)
    except DefinitionError:
        raise DefinitionError(
            f"{shown} has parameters that are not given by name; name each of {_listed(given)}"
        ) from None
    except (TypeError, ValueError):  # some functions written in C have no signature
        raise DefinitionError(
            f"the parameters of {shown} cannot be read; call {name} in a function of your own"
        ) from None
    unknown_names = [parameter for parameter in names if parameter not in given]
    if unknown_names:
        raise DefinitionError(
            f"{shown} has the parameter {unknown_names[0]!r}; a {option} gets {_listed(given)}, by"
            f" name; {_HINTS[option]}"
        )


def _check_setup_name(name: str, function: Function, options: RunOptions) -> None:
    if name in RESERVED_NAMES:
        raise DefinitionError(
            f"setup={name} has the name of a reserved parameter"
            f" ({', '.join(RESERVED_NAMES)}); rename the setup"
        )
    if isinstance(options.inlets, Mapping) and name in options.inlets:
        raise DefinitionError(
            f"inlets names the parameter {name!r}, by which {function.__name__} gets the result of"
            " the setup of that name; rename the setup"
        )


def _listed(names: tuple[str, ...]) -> str:
    *first_names, last_name = names
    return f"{', '.join(first_names)} and {last_name}"
