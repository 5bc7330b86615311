"""Calling an asset's function with what its parameters ask for, by name."""

from collections.abc import Callable, Mapping
from typing import Any

from slicewise.assets import ProducedAsset
from slicewise.context import RunContext, entered
from slicewise.handles import AssetHandle
from slicewise.signatures import wanted_names


def invoke(
    asset: ProducedAsset,
    context: RunContext,
    own: AssetHandle,
    upstream: Mapping[str, AssetHandle],
    session: Callable[[], Any],
) -> Any:
    """What the function returns. A session is made only for a function with the parameter spark."""
    given: dict[str, Callable[[], Any]] = {
        "self": lambda: own,
        "context": lambda: context,
        "spark": session,
    }
    arguments = {}
    for name in wanted_names(asset.function):
        if name not in given and name not in upstream:
            raise LookupError(
                f"{asset.name} asks for {name!r}, which is no asset that it was given"
            )
        arguments[name] = given[name]() if name in given else upstream[name]
    with entered(context):
        return asset.function(**arguments)
