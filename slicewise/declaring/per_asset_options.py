"""Options that name other assets, by name: mappings and validations (AIP-73)."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from slicewise.declaring.options import RunOptions
from slicewise.declaring.schedules import scheduling_assets
from slicewise.errors import DefinitionError
from slicewise.mapping.partition_mapping import PartitionMapping
from slicewise.plugins import check_installed
from slicewise.texts.hints import name_hint
from slicewise.validations import AssetValidation

Json = dict[str, Any]


def mappings_json(options: RunOptions, inlets: Collection[str]) -> dict[str, Json]:
    """Return ``upstream=`` as JSON, by asset name. Raises DefinitionError."""
    option_value: object = options.upstream
    if not isinstance(option_value, Mapping):
        raise DefinitionError(
            f"upstream maps assets to mappings, such as {{raw: Offset(-1)}}, not {option_value!r}"
        )
    known_names = _upstream_names(options, inlets)
    json_by_name: dict[str, Json] = {}
    for asset, mapping in option_value.items():
        name = _known_name("upstream", asset, known_names)
        if not isinstance(mapping, PartitionMapping):
            raise DefinitionError(
                f"upstream of {name!r} is a mapping such as Offset(-1), All() or Keys([...]),"
                f" not {_shown_value(mapping)}"
            )
        check_installed(mapping)
        _add("upstream", json_by_name, name, mapping.to_json())
    return json_by_name


def inlet_validations_json(options: RunOptions, inlets: Collection[str]) -> dict[str, list[Json]]:
    """Return ``inlet_validations=`` as JSON, by asset name. Raises DefinitionError."""
    by_name = inlet_validations(options, inlets)
    return {
        name: [validation.to_json() for validation in asset_validations]
        for name, asset_validations in by_name.items()
    }


def inlet_validations(
    options: RunOptions, inlets: Collection[str]
) -> "dict[str, list[AssetValidation]]":
    """Return ``inlet_validations=`` by asset name. Raises DefinitionError.

    The option is ``{asset: [...]}``, or validations alone if the asset is clear: columns name the
    asset, or the function reads only one asset.
    """
    option_value: object = options.inlet_validations
    known_names = _upstream_names(options, inlets)
    by_name: dict[str, list[AssetValidation]] = {}
    if not isinstance(option_value, Mapping):
        for validation in validations("inlet_validations", option_value):
            name = _known_name(
                "inlet_validations", _validated_asset(validation, inlets), known_names
            )
            by_name.setdefault(name, []).append(validation)
        return by_name
    for asset, checks in option_value.items():
        name = _known_name("inlet_validations", asset, known_names)
        asset_validations = validations(f"inlet_validations of {name!r}", checks)
        for validation in asset_validations:
            if (named_asset := _asset_of_columns(validation)) not in (None, name):
                raise DefinitionError(
                    f"inlet_validations of {name!r}: {validation!r} names a column of"
                    f" {named_asset!r}"
                )
        _add("inlet_validations", by_name, name, asset_validations)
    return by_name


def validations(option: str, option_value: Any) -> list[AssetValidation]:
    """Return a list of validations, or a single validation, as a list. Raises DefinitionError."""
    items = [option_value] if isinstance(option_value, AssetValidation) else option_value
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise DefinitionError(f"{option} is a list of validations, not {_shown_value(items)}")
    items = list(items)
    for item in items:
        if not isinstance(item, AssetValidation):
            raise DefinitionError(
                f"{option} holds validations such as AssetValidation.has_columns(...), not"
                f" {_shown_value(item)}"
            )
    return items


def outlet_validations_json(name: str, option_value: Any) -> list[Json]:
    """Return ``outlet_validations=`` of the named asset as JSON. Raises DefinitionError."""
    asset_validations = validations("outlet_validations", option_value)
    for validation in asset_validations:
        if (named_asset := _asset_of_columns(validation)) not in (None, name):
            raise DefinitionError(
                f"outlet_validations: {validation!r} names a column of {named_asset!r}"
            )
    return [validation.to_json() for validation in asset_validations]


def _upstream_names(options: RunOptions, inlets: Collection[str]) -> list[str]:
    return list(dict.fromkeys([*inlets, *scheduling_assets(options.schedule)]))


def _known_name(option: str, asset: object, known_names: Collection[str]) -> str:
    name = asset if isinstance(asset, str) else getattr(asset, "name", None)
    if not isinstance(name, str) or getattr(asset, "outlets", None):
        raise DefinitionError(
            f"{option} takes assets or names of assets, not {_shown_value(asset)}"
        )
    if name not in known_names:
        hint = name_hint(name, known_names, otherwise="the asset has no upstream assets")
        raise DefinitionError(
            f"{option} names {name!r}, which is no upstream asset of the function or its"
            f" schedule; {hint}"
        )
    return name


def _add(option: str, values_by_name: dict[str, Any], name: str, value: object) -> None:
    if name in values_by_name:
        raise DefinitionError(f"{option} names {name!r} twice")
    values_by_name[name] = value


def _validated_asset(validation: AssetValidation, inlets: Collection[str]) -> str:
    asset = _asset_of_columns(validation)
    if asset is not None:
        return asset
    if len(inlets) == 1:
        return next(iter(inlets))
    raise DefinitionError(
        f"inlet_validations does not name the asset of {validation!r};"
        " write inlet_validations={asset: [...]}"
    )


def _asset_of_columns(validation: AssetValidation) -> str | None:
    """Return the asset of the validation's columns, if a column is written ``raw_sales.sales``."""
    return next(iter(validation.assets), None)


def _shown_value(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}; write {value.__name__}(...)"
    return repr(value)
