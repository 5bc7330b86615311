"""The call of an asset's function: arguments by parameter name, and the returned data."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from slicewise.declaring.declared_asset import Asset
from slicewise.declaring.options import RunOptions
from slicewise.declaring.per_asset_options import inlet_validations
from slicewise.declaring.signatures import wanted_names
from slicewise.declaring.step_functions import parameters_of_inlets
from slicewise.running.context import RunContext, current_context
from slicewise.running.handles import AssetHandle
from slicewise.running.written_handles import Outlets, WritableHandle
from slicewise.validations import AssetValidation


class Producer(Protocol):
    """An asset with a function, or several assets that one function materializes together."""

    @property
    def name(self) -> str:
        """The name in messages."""

    @property
    def function(self) -> Callable[..., Any]:
        """The function that materializes the data."""

    @property
    def options(self) -> RunOptions:
        """The options of runs."""


def invoke(
    producer: Producer,
    context: RunContext,
    self_argument: WritableHandle | Outlets,
    upstream: Mapping[str, AssetHandle],
    session: Callable[[], Any],
    set_up: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Call the producer's function and return the result.

    ``set_up`` is the result of the set-up, by the name of the parameter. A session is created only
    for a function with the parameter `spark`.
    """
    argument_factories: dict[str, Callable[[], Any]] = {
        "self": lambda: self_argument,
        "context": lambda: context,
        "spark": session,
    }
    assets = parameters_of_inlets(producer.function, producer.options)
    arguments = {}
    for name in wanted_names(producer.function):
        if name in set_up:
            arguments[name] = set_up[name]
            continue
        asset = assets.get(name, name)
        if name not in argument_factories and asset not in upstream:
            raise LookupError(
                f"{producer.name} reads {asset!r}, which is not among the given assets"
            )
        arguments[name] = (
            argument_factories[name]() if name in argument_factories else upstream[asset]
        )
    with current_context(context):
        return producer.function(**arguments)


def all_inlet_validations(
    producer: Producer, assets_by_name: Mapping[str, Asset]
) -> "dict[str, list[AssetValidation]]":
    """Return the validations of the assets that a function reads, by name, for use before the call.

    The validations that an asset of another program declares come first, since no run has validated
    that data; the function's own inlet validations follow. ``assets_by_name`` are the declared
    assets in the same code as the function.
    """
    inlets = list(parameters_of_inlets(producer.function, producer.options).values())
    checks: dict[str, list[AssetValidation]] = {}
    for name in inlets:
        asset = assets_by_name.get(name)
        if asset is not None and asset.made_by is None and asset.validations:
            checks[name] = list(asset.validations)
    for name, validations in inlet_validations(producer.options, inlets).items():
        # Equal validations run once.
        checks[name] = list(dict.fromkeys([*checks.get(name, []), *validations]))
    return checks


def write_returned(
    producer: Producer, self_argument: WritableHandle | Outlets, returned: Any
) -> None:
    """Write the data that a function returned. Raises ValueError for partitions not written.

    A function of several assets returns, by name, the data of all outlets not written yet.
    """
    if isinstance(self_argument, Outlets):
        frames = _frames_by_outlet(producer, self_argument, returned)
        for name, frame in frames.items():
            self_argument[name].write(frame)
        handles = list(self_argument.values())
    else:
        if returned is not None:
            self_argument.write(returned)
        handles = [self_argument]
    for handle in handles:
        handle.check_complete()


def _frames_by_outlet(producer: Producer, outlets: Outlets, returned: Any) -> Mapping[str, Any]:
    if returned is None:
        return {}
    if not isinstance(returned, Mapping):
        raise TypeError(
            f"the function of {producer.name} returns {{name: DataFrame}}, not"
            f" {type(returned).__name__}; the outlets are {', '.join(outlets)}"
        )
    unknown = [name for name in returned if name not in outlets]
    if unknown:
        raise ValueError(
            f"the function of {producer.name} returned {unknown[0]!r}, which is no outlet;"
            f" the outlets are {', '.join(outlets)}"
        )
    # A function may write an outlet by other means only if the outlet's URI lies elsewhere.
    required_names = [
        name for name, handle in outlets.items() if handle.must_write or handle.uri is None
    ]
    missing = [
        name for name in required_names if name not in returned and not outlets[name].is_written
    ]
    if missing:
        raise ValueError(
            f"the function of {producer.name} returned nothing for {missing[0]!r}, and did not"
            " write this outlet: a run writes all outlets or none"
        )
    return returned
