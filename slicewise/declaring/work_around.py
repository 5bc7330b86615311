"""The decorators that declare the set-up and the tear-down of an asset."""

from collections.abc import Callable
from typing import Any, Protocol

from slicewise.declaring.declaration_sites import AssetDefinitionError
from slicewise.declaring.options import RunOptions, with_options
from slicewise.declaring.producers import function_site


class _Declared(Protocol):
    """An asset, or several assets, with a function."""

    name: str
    options: Any

    def declare(self, options: RunOptions) -> None:
        """Check the function with these options, and take the options over."""


class WorkAround:
    """The decorators ``@f.setup`` and ``@f.teardown`` of an asset ``f`` with a function."""

    def setup(self: _Declared, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """Declare the function that each run calls before the asset's function; return the set-up.

        The set-up gets ``self``, ``context`` and ``spark`` by name, and is called in the process
        and the Spark session of the run. The asset's function and the tear-down get the result by
        the parameter with the set-up's name. A set-up that fails fails the run. Raises
        DefinitionError with file, line and asset.
        """
        return _declared(self, "setup", function)

    def teardown(self: _Declared, function: Callable[..., Any] | None = None) -> Callable[..., Any]:
        """Declare the function that each run calls at its end if the set-up or the function has
        begun, whatever happened then; return the tear-down.

        The tear-down gets ``self``, ``context``, ``spark`` and the result of the set-up by name;
        the result is None if the set-up has failed. ``context["outcome"]`` is ``"succeeded"``,
        ``"failed"``, ``"canceled"``, ``"timed_out"`` or ``"stopped"``, and ``context["error"]`` is
        the error in one line, or None. A tear-down that fails is shown on the run's page, and
        changes nothing else. Raises DefinitionError with file, line and asset.
        """
        return _declared(self, "teardown", function)


def _declared(
    asset: _Declared, option: str, function: Callable[..., Any] | None
) -> Callable[..., Any]:
    declared_function = getattr(asset.options, option)
    if function is None:
        sentence = f"write @{asset.name}.{option} without parentheses"
    elif declared_function is not None:
        sentence = (
            f"has a {option} already, {declared_function.__name__}; call both functions in one"
            f" {option}"
        )
    else:
        try:
            asset.declare(with_options(asset.options, **{option: function}))
            return function
        except ValueError as error:
            sentence = str(error)
    raise AssetDefinitionError(sentence, site=function_site(function), asset=asset.name)
