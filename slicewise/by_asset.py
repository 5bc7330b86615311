"""Options that speak of other assets: mappings and validations, by name (AIP-73)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from slicewise.arguments import near
from slicewise.errors import DefinitionError
from slicewise.mapping import PartitionMapping
from slicewise.options import RunOptions
from slicewise.plugins import check_installed
from slicewise.schedules import scheduling_assets
from slicewise.validations import AssetValidation

Json = dict[str, Any]


def mappings_json(options: RunOptions, inlets: Collection[str]) -> dict[str, Json]:
    """``upstream=`` as JSON by name. Raises DefinitionError."""
    given: object = options.upstream
    if not isinstance(given, Mapping):
        raise DefinitionError(
            f"upstream maps assets to mappings, such as {{raw: Offset(-1)}}, not {given!r}"
        )
    known = _upstream_names(options, inlets)
    found: dict[str, Json] = {}
    for asset, mapping in given.items():
        name = _known_name("upstream", asset, known)
        if not isinstance(mapping, PartitionMapping):
            raise DefinitionError(
                f"upstream of {name!r} is a mapping such as Offset(-1), All() or Keys([...]),"
                f" not {_instance(mapping)}"
            )
        check_installed(mapping)
        _add("upstream", found, name, mapping.to_json())
    return found


def inlet_validations_json(options: RunOptions, inlets: Collection[str]) -> dict[str, list[Json]]:
    """``inlet_validations=`` as JSON by name. Raises DefinitionError."""
    by_name = inlet_validations(options, inlets)
    return {name: [one.to_json() for one in listed] for name, listed in by_name.items()}


def inlet_validations(
    options: RunOptions, inlets: Collection[str]
) -> "dict[str, list[AssetValidation]]":
    """``inlet_validations=`` by the name of the asset; raises DefinitionError.

    Written as ``{asset: [...]}``, or as validations alone where it is plain of which asset they
    are: their columns say so, or the function reads one asset only.
    """
    given: object = options.inlet_validations
    known = _upstream_names(options, inlets)
    found: dict[str, list[AssetValidation]] = {}
    if not isinstance(given, Mapping):
        for one in validations("inlet_validations", given):
            name = _known_name("inlet_validations", _meant(one, inlets), known)
            found.setdefault(name, []).append(one)
        return found
    for asset, checks in given.items():
        name = _known_name("inlet_validations", asset, known)
        listed = validations(f"inlet_validations of {name!r}", checks)
        for one in listed:
            if (other := _asset_of(one)) not in (None, name):
                raise DefinitionError(
                    f"inlet_validations of {name!r}: {one!r} speaks of a column of {other!r}"
                )
        _add("inlet_validations", found, name, listed)
    return found


def validations(option: str, given: Any) -> list[AssetValidation]:
    """Return a list of validations, or a single one, as a list. Raises DefinitionError."""
    listed = [given] if isinstance(given, AssetValidation) else given
    if isinstance(listed, str | Mapping) or not isinstance(listed, Iterable):
        raise DefinitionError(f"{option} is a list of validations, not {_instance(listed)}")
    listed = list(listed)
    for one in listed:
        if not isinstance(one, AssetValidation):
            raise DefinitionError(
                f"{option} holds validations such as AssetValidation.has_columns(...), not"
                f" {_instance(one)}"
            )
    return listed


def outlet_validations_json(name: str, given: Any) -> list[Json]:
    """``outlet_validations=`` of the asset of that name as JSON. Raises DefinitionError."""
    listed = validations("outlet_validations", given)
    for one in listed:
        if (other := _asset_of(one)) not in (None, name):
            raise DefinitionError(f"outlet_validations: {one!r} speaks of a column of {other!r}")
    return [one.to_json() for one in listed]


def _upstream_names(options: RunOptions, inlets: Collection[str]) -> list[str]:
    return list(dict.fromkeys([*inlets, *scheduling_assets(options.schedule)]))


def _known_name(option: str, asset: object, known: Collection[str]) -> str:
    name = asset if isinstance(asset, str) else getattr(asset, "name", None)
    if not isinstance(name, str) or getattr(asset, "outlets", None):
        raise DefinitionError(
            f"{option} names assets, by themselves or by name, not {_instance(asset)}"
        )
    if name not in known:
        hint = near(name, known, otherwise="it has none")
        raise DefinitionError(
            f"{option} names {name!r}, which is no upstream asset of the function or its"
            f" schedule; {hint}"
        )
    return name


def _add(option: str, found: dict[str, Any], name: str, value: object) -> None:
    if name in found:
        raise DefinitionError(f"{option} names {name!r} twice")
    found[name] = value


def _meant(one: AssetValidation, inlets: Collection[str]) -> str:
    asset = _asset_of(one)
    if asset is not None:
        return asset
    if len(inlets) == 1:
        return next(iter(inlets))
    raise DefinitionError(
        f"inlet_validations does not say of which asset {one!r} is;"
        " write inlet_validations={asset: [...]}"
    )


def _asset_of(one: AssetValidation) -> str | None:
    """The asset whose columns were given, if any was given as ``raw_sales.sales``."""
    return next(iter(one.assets), None)


def _instance(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}; write {value.__name__}(...)"
    return repr(value)
