"""Assets: declared with `Asset`, or made by a function under `@asset` (AIP-75)."""

import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

from slicewise.definitions import PartitionDefinition
from slicewise.options import RunOptions, check_name, check_options, options_json, partition_json
from slicewise.registry import (
    AssetDefinitionError,
    Site,
    active_registry,
    caller_site,
    declaring_site,
)
from slicewise.schedules import Schedulable
from slicewise.signatures import inlet_names
from slicewise.uris import normalize_uri

__all__ = ["Asset", "AssetReference", "ProducedAsset", "asset"]

Columns = Sequence[str] | Mapping[str, str | None] | None


class AssetReference(Schedulable):
    """An asset known by its name only; stands in schedules and as a key of ``upstream``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def schedule_json(self) -> dict[str, Any]:
        """``{"kind": "asset", "name": ...}``."""
        return {"kind": "asset", "name": self.name}

    def asset_names(self) -> Iterator[str]:
        """Its own name."""
        yield self.name


class Asset(AssetReference):
    """An asset that something else writes, declared at the top of a file.

    ``uri`` is a text or a path; ``columns`` names, or names with types. Raises DefinitionError
    with file and line.
    """

    def __init__(
        self,
        name: str,
        *,
        uri: str | PathLike[str] | None = None,
        kind: str | None = None,
        columns: Columns = None,
        partition: PartitionDefinition | None = None,
        outlet_validations: Sequence[Any] = (),
        _site: Site | None = None,
    ) -> None:
        super().__init__(name)
        self.site = _site or declaring_site()
        try:
            check_name(name)
            check_options(RunOptions(partition=partition, outlet_validations=outlet_validations))
            self.uri = _uri_text(uri)
            self.canonical_uri = None if self.uri is None else normalize_uri(self.uri)
            self.columns = _columns_json(columns)
        except ValueError as error:
            raise self._refused(str(error)) from error
        self.kind = kind
        self.partition = partition
        registry = active_registry()
        if registry is not None:
            registry.add(self)

    @staticmethod
    def ref(name: str) -> AssetReference:
        """An asset of another file or bundle, by its name."""
        registry = active_registry()
        if registry is not None:
            registry.references.add(name)
        return AssetReference(name)

    def facts_json(self) -> dict[str, Any]:
        """What the catalogue knows of the asset itself, as JSON."""
        return {
            "name": self.name,
            "uri": self.uri,
            "canonical_uri": self.canonical_uri,
            "kind": self.kind,
            "columns": self.columns,
            "partition": partition_json(self.partition),
        }

    def to_json(self) -> dict[str, Any]:
        """The declaration as the loader reports it."""
        return {**self.facts_json(), "file": self.site.file, "line": self.site.line}

    def _refused(self, message: str) -> AssetDefinitionError:
        return AssetDefinitionError(message, site=self.site, asset=str(self.name))


class ProducedAsset(Asset):
    """An asset and the function that makes it; what `@asset` returns."""

    def __init__(self, function: Callable[..., Any], options: "asset") -> None:
        code = getattr(function, "__code__", None)
        name = function.__name__ if options.name is None else options.name
        site = declaring_site(code and code.co_filename, code.co_firstlineno if code else 0)
        try:
            check_options(options)
            self.inlets = inlet_names(function)
        except ValueError as error:
            raise AssetDefinitionError(str(error), site=site, asset=str(name)) from error
        self.function = function
        self.options = options
        super().__init__(
            name,
            uri=options.uri,
            kind=options.kind,
            columns=options.columns,
            partition=options.partition if options.partition != "auto" else None,
            _site=site,
        )

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Always a DefinitionError: other assets name it as a parameter, and runs call it."""
        raise AssetDefinitionError(
            "is an asset and is not called; name it as a parameter to read it, or try it with"
            " slicewise.testing.materialize",
            site=caller_site(),
            asset=self.name,
        )

    def to_json(self) -> dict[str, Any]:
        """The producer as the loader reports it."""
        return {
            "name": self.name,
            "file": self.site.file,
            "line": self.site.line,
            "source": _source(self.function),
            "description": self.options.description or inspect.getdoc(self.function) or "",
            "outlets": [self.facts_json()],
            "inlets": self.inlets,
            **options_json(self.options),
        }


@dataclass(frozen=True, kw_only=True)
class asset(RunOptions):
    """Declares the asset that the decorated function makes; all arguments by keyword.

    The function's parameters are filled in by name: ``self`` (this asset), ``context``, ``spark``,
    and any other name is an upstream asset. Raises DefinitionError with file, line and asset.
    """

    name: str | None = None
    uri: str | PathLike[str] | None = None
    kind: str | None = None
    columns: Columns = None

    def __new__(cls, *args: object, **options: object) -> "asset":
        """Says what is wrong with the arguments before a TypeError would."""
        if args:
            _refuse_arguments("write @asset(...), with keyword arguments only")
        if "at" in options:
            _refuse_arguments("there is no 'at'; write partition=... and schedule=...")
        known = [option.name for option in fields(cls)]
        for name in options.keys() - known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(known)}"
            _refuse_arguments(f"@asset has no argument {name!r}{hint}")
        return super().__new__(cls)

    def __call__(self, function: Callable[..., Any]) -> ProducedAsset:
        """The asset that ``function`` makes."""
        return ProducedAsset(function, self)


def _refuse_arguments(message: str) -> NoReturn:
    raise AssetDefinitionError(message, site=caller_site(), asset=None)


def _uri_text(uri: str | PathLike[str] | None) -> str | None:
    if uri is None or isinstance(uri, str):
        return uri
    path = Path(fspath(uri))
    if not path.is_absolute():
        raise ValueError(f"uri={str(path)!r} is a relative path; write an absolute one")
    return path.as_uri()


def _columns_json(columns: Columns) -> list[dict[str, str | None]] | None:
    if columns is None:
        return None
    if isinstance(columns, str):
        raise ValueError("columns is a list of names, or maps names to types")
    pairs = columns.items() if isinstance(columns, Mapping) else [(name, None) for name in columns]
    return [{"name": str(name), "type": type_} for name, type_ in pairs]


def _source(function: Callable[..., Any]) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""  # made by exec, or not written in Python: there is no text to show
