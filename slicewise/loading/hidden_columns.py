"""A check of validations that name an attribute of an asset instead of a column."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from slicewise.declaring.declaration_sites import AssetDefinitionError
from slicewise.declaring.declared_asset import Asset
from slicewise.declaring.registry import Registry

Json = Mapping[str, Any]


def mistaken_columns(registry: Registry) -> list[AssetDefinitionError]:
    """Return an error for each producer with an inlet validation of a column that an attribute of
    the inlet hides; only for the first such column.

    ``not_null(raw.name)`` names the column ``"raw"``, which ``raw`` does not declare, where ``raw``
    declares a column ``"name"``. Outlet validations are written before there is such an attribute.
    """
    errors = []
    for producer in registry.producers():
        for name, validations in producer.production.inlet_validations.items():
            asset = registry.assets.get(name)
            sentence = None if asset is None else _sentence(asset, validations)
            if sentence is not None:
                errors.append(producer.refused(sentence))
                break
    return errors


def _sentence(asset: Asset, validations: Iterable[Json]) -> str | None:
    hidden = dict(_hidden_columns(asset))
    for validation in validations:
        for column in _columns_of(validation):
            if column in hidden:
                name = hidden[column]
                return (
                    f"inlet_validations of {asset.name!r}: {validation['name']} names {column!r},"
                    f" the attribute {name!r} of the asset, and no declared column; write"
                    f" .column({name!r}) for the column {name!r}, or add {column!r} to columns= of"
                    f" {asset.name!r}"
                )
    return None


def _hidden_columns(asset: Asset) -> Iterator[tuple[str, str]]:
    """Yield (text, name) for each declared column that an attribute of the same name hides; a
    validation of the attribute takes the text for the name of a column.
    """
    names = [str(column["name"]) for column in asset.columns or ()]
    for name in names:
        if name in vars(asset) or hasattr(type(asset), name):
            value = getattr(asset, name)
            text = value if isinstance(value, str) else getattr(value, "name", None)
            if isinstance(text, str) and text not in names:
                yield text, name


def _columns_of(validation: Json) -> list[str]:
    """Return the names of the columns in the JSON of a validation."""
    columns = [*validation.get("columns", ()), *validation.get("types", ())]
    column = validation.get("column")
    return columns if column is None else [*columns, column]
