"""Declared assets, written by a function or by another program (AIP-73, AIP-75)."""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

from slicewise.declaring.active_registry import active_registry
from slicewise.declaring.declaration_sites import AssetDefinitionError, declaring_site
from slicewise.declaring.freshness import Freshness, check_freshness
from slicewise.declaring.iterables import read_once
from slicewise.declaring.option_checks import (
    Columns,
    check_name,
    check_text,
    check_texts,
    columns_json,
)
from slicewise.declaring.options import Validations
from slicewise.declaring.per_asset_options import outlet_validations_json, validations
from slicewise.declaring.schedule_terms import Schedulable
from slicewise.declaring.specs import ExternalSpec, OutletSpec
from slicewise.declaring.timing import check_partition
from slicewise.errors import DefinitionError
from slicewise.io.option_fitness import format_at
from slicewise.partitions.definition import PartitionDefinition
from slicewise.texts.hints import name_hint, unknown_argument
from slicewise.texts.sites import Site
from slicewise.uris.canonical import checked_location


class AssetReference(Schedulable):
    """An asset known by name only, for schedules and as a key of ``upstream``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def schedule_json(self) -> dict[str, Any]:
        """Return ``{"kind": "asset", "name": ...}``."""
        return {"kind": "asset", "name": self.name}

    def asset_names(self) -> Iterator[str]:
        """Yield the asset's name."""
        yield self.name


@dataclass(frozen=True)
class AssetColumn:
    """A declared column of an asset, for validations. The text of a column is the column's name."""

    asset: str
    name: str

    def __str__(self) -> str:
        return self.name


class Asset(AssetReference):
    """An asset that another program writes, declared at the top of a file.

    ``uri`` is a text or a path; ``format`` is the format of the files, ``"parquet"``, ``"csv"``,
    ``"json"`` or ``"orc"``, where the extension of the uri does not say the format; ``columns`` are
    names, or names with types (texts). ``description``, ``owners``, ``tags`` and ``group`` are
    facts for the catalogue, and ``freshness`` says when partitions are overdue; an outlet without
    such a fact takes the fact of the outlet's function.
    A declared column is an attribute, ``raw_sales.sales``; a column that an attribute of Asset
    hides (``uri``, ``kind``) is ``raw_sales.column("uri")``. Raises DefinitionError with file and
    line.
    """

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Check the arguments first, for errors that say more than a TypeError of Python."""
        if cls is Asset:
            _check_arguments(args, options)
        return super().__new__(cls)

    def __init__(
        self,
        name: str,
        *,
        uri: str | PathLike[str] | None = None,
        kind: str | None = None,
        format: str | None = None,
        columns: Columns = None,
        partition: PartitionDefinition | None = None,
        outlet_validations: Validations = (),
        description: str | None = None,
        owners: Iterable[str] = (),
        tags: Iterable[str] = (),
        group: str | None = None,
        freshness: Freshness | None = None,
        _site: Site | None = None,
    ) -> None:
        super().__init__(name)
        self.site = _site or declaring_site()
        self.made_by: Any = None
        """The ProducedAsset or MultiAsset of the asset; None for data of another program."""
        try:
            check_name(name)
            check_partition(partition)
            if partition == "auto":
                raise DefinitionError(
                    'partition="auto" follows a schedule, and an Asset has none;'
                    " write a partition definition"
                )
            for option, text in (("kind", kind), ("description", description), ("group", group)):
                check_text(option, text)
            self.owners, self.tags = check_texts("owners", owners), check_texts("tags", tags)
            self.uri = _uri_text(uri)
            self.canonical_uri, self.warnings = _canonical(self.uri, self.site)
            check_text("format", format)
            self.format = format_at(self.canonical_uri, format)
            self.columns = columns_json(read_once(columns))
            self.validations = validations("outlet_validations", outlet_validations)
            self.outlet_validations = outlet_validations_json(name, self.validations)
            check_freshness(freshness)
        except ValueError as error:
            raise self.refused(str(error)) from error
        self.kind, self.description, self.group = kind, description, group
        self.freshness, self.partition = freshness, partition
        registry = active_registry()
        if registry is not None:
            registry.add(self)

    def __getattr__(self, name: str) -> AssetColumn:
        # Called only for missing attributes; copy and pickle call it before any attribute is set.
        if name.startswith("_") or "columns" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.column(name)

    def column(self, name: str) -> AssetColumn:
        """Return a declared column, also a column whose name an attribute hides.

        Raises AttributeError.
        """
        column_names = [str(column["name"]) for column in self.columns or ()]
        if name in column_names:
            return AssetColumn(self.name, name)
        if name in ("setup", "teardown"):
            raise AttributeError(
                f"another program writes the asset {self.name!r}, so no run can have a {name}"
            )
        if not column_names:
            raise AttributeError(
                f"the asset {self.name!r} declares no columns, so it has no column {name!r};"
                f" write columns=[{name!r}]"
            )
        raise AttributeError(
            f"the asset {self.name!r} has no column {name!r}; {name_hint(name, column_names)}"
        )

    @staticmethod
    def ref(name: str) -> AssetReference:
        """Return an asset of another file or bundle, by name. Raises DefinitionError."""
        try:
            check_name(name)
        except DefinitionError as error:
            raise AssetDefinitionError(str(error), site=declaring_site(), asset=None) from None
        registry = active_registry()
        if registry is not None:
            registry.references.add(name)
        return AssetReference(name)

    @property
    def outlet_spec(self) -> OutletSpec:
        """The asset's own facts for the catalogue."""
        return OutletSpec(**self._spec_values())

    def to_json(self) -> dict[str, Any]:
        """Return the declaration in the form of the loader's report."""
        return ExternalSpec(
            **self._spec_values(), file=self.site.file, line=self.site.line
        ).to_json()

    def _spec_values(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "uri": self.uri,
            "canonical_uri": self.canonical_uri,
            "kind": self.kind,
            "format": self.format,
            "columns": self.columns,
            "partition": self.partition.to_json() if self.partition else None,
            "outlet_validations": self.outlet_validations,
            "warnings": self.warnings,
            "description": self.description,
            "owners": self.owners,
            "tags": self.tags,
            "group": self.group,
            "freshness": None if self.freshness is None else self.freshness.to_json(),
        }

    def refused(self, message: str) -> AssetDefinitionError:
        """Return an error that names this asset and the site of the declaration."""
        return AssetDefinitionError(message, site=self.site, asset=str(self.name))


_ARGUMENTS = (
    *("name", "uri", "kind", "format", "columns", "partition", "outlet_validations"),
    *("description", "owners", "tags", "group", "freshness"),
)


def _check_arguments(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    unknown = [name for name in options if name not in _ARGUMENTS and not name.startswith("_")]
    if unknown:
        message = unknown_argument("Asset", unknown[0], _ARGUMENTS)
    elif len(args) > 1:
        message = "write Asset(name, uri=..., ...), all but the name as keyword arguments"
    elif options and not args and "name" not in options:  # copy and pickle pass nothing at all
        message = 'an asset has a name; write Asset("name", ...)'
    else:
        return
    name = args[0] if args else options.get("name")
    shown = name if isinstance(name, str) else None
    raise AssetDefinitionError(message, site=declaring_site(), asset=shown)


def _uri_text(uri: object) -> str | None:
    if uri is None or isinstance(uri, str):
        return uri
    text = fspath(uri) if isinstance(uri, PathLike) else None
    if not isinstance(text, str):
        raise DefinitionError(f"uri is a text or a path, not {uri!r}")
    if "://" in text:
        return text  # a path object of an object store
    path = Path(text)
    if not path.is_absolute():
        raise DefinitionError(f"uri={text!r} is a relative path; write an absolute one")
    return path.as_uri()


def _canonical(uri: str | None, site: Site) -> tuple[str | None, list[str]]:
    """Return (uri, messages): the canonical URI, and the messages of the warnings issued here."""
    if uri is None:
        return None, []
    canonical, problem = checked_location(uri)
    if problem is None:
        return canonical, []
    message = f"{canonical!r} stays as written: {problem}"
    warnings.warn_explicit(message, UserWarning, site.file, site.line)
    return canonical, [message]
