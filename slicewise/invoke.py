"""Calling an asset's function with what its parameters ask for, and taking what it returns."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from slicewise.by_asset import inlet_validations
from slicewise.context import RunContext, entered
from slicewise.declared import Asset
from slicewise.handles import AssetHandle, Outlets, WritableHandle
from slicewise.options import RunOptions
from slicewise.signatures import inlet_parameters, wanted_names
from slicewise.validations import AssetValidation


class Producer(Protocol):
    """What has a function: an asset, or several that are made together."""

    @property
    def name(self) -> str:
        """How it is spoken of."""

    @property
    def function(self) -> Callable[..., Any]:
        """What makes the data."""

    @property
    def options(self) -> RunOptions:
        """How it runs."""


def invoke(
    producer: Producer,
    context: RunContext,
    own: WritableHandle | Outlets,
    upstream: Mapping[str, AssetHandle],
    session: Callable[[], Any],
) -> Any:
    """What the function returns. A session is made only for a function with the parameter spark."""
    given: dict[str, Callable[[], Any]] = {
        "self": lambda: own,
        "context": lambda: context,
        "spark": session,
    }
    assets = inlet_parameters(producer.function, producer.options.inlets)
    arguments = {}
    for name in wanted_names(producer.function):
        asset = assets.get(name, name)
        if name not in given and asset not in upstream:
            raise LookupError(
                f"{producer.name} asks for {asset!r}, which is no asset that it was given"
            )
        arguments[name] = given[name]() if name in given else upstream[asset]
    with entered(context):
        return producer.function(**arguments)


def inlet_checks(
    producer: Producer, known: Mapping[str, Asset]
) -> "dict[str, list[AssetValidation]]":
    """What is validated of the assets that a function reads, by name, before it is called.

    That is what it says of them itself, after what an asset that something else writes declares of
    its own: nothing else has looked at that data. ``known`` are the assets that are declared where
    the function can be seen.
    """
    inlets = list(inlet_parameters(producer.function, producer.options.inlets).values())
    found: dict[str, list[AssetValidation]] = {}
    for name in inlets:
        asset = known.get(name)
        if asset is not None and asset.made_by is None and asset.validations:
            found[name] = list(asset.validations)
    for name, validations in inlet_validations(producer.options, inlets).items():
        # The same one is asked once.
        found[name] = list(dict.fromkeys([*found.get(name, []), *validations]))
    return found


def keep(producer: Producer, own: WritableHandle | Outlets, returned: Any) -> None:
    """Write what a function returned. Raises ValueError for partitions that are not written.

    The function of several assets returns all those that it did not write, by name.
    """
    if isinstance(own, Outlets):
        frames = _by_outlet(producer, own, returned)
        for name, frame in frames.items():
            own[name].write(frame)
        handles = list(own.values())
    else:
        if returned is not None:
            own.write(returned)
        handles = [own]
    for handle in handles:
        handle.check_complete()


def _by_outlet(producer: Producer, own: Outlets, returned: Any) -> Mapping[str, Any]:
    if returned is None:
        return {}
    if not isinstance(returned, Mapping):
        raise TypeError(
            f"the function of {producer.name} returns {{name: DataFrame}}, not"
            f" {type(returned).__name__}: it makes {', '.join(own)}"
        )
    unknown = [name for name in returned if name not in own]
    if unknown:
        raise ValueError(
            f"the function of {producer.name} returned {unknown[0]!r}, which it does not make;"
            f" it makes {', '.join(own)}"
        )
    # Only what lies elsewhere, by its URI, is written by other means than these.
    here = [name for name, handle in own.items() if handle.must_write or handle.uri is None]
    missing = [name for name in here if name not in returned and not own[name].is_written]
    if missing:
        raise ValueError(
            f"the function of {producer.name} returned nothing for {missing[0]!r}, and did not"
            " write it: one run makes all outlets or none"
        )
    return returned
