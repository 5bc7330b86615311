"""Multi-assets: several assets that one function makes together (AIP-75, "Multi-Assets")."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from slicewise.arguments import SPOKEN_OF_OUTLETS
from slicewise.declared import Asset
from slicewise.errors import DefinitionError
from slicewise.io import find_storage
from slicewise.io.declaring import check_kept
from slicewise.option_checks import check_name
from slicewise.options import RunOptions
from slicewise.producers import (
    Production,
    Refusal,
    checked_name,
    function_site,
    refuse_call,
    refused_arguments,
)
from slicewise.registry import AssetDefinitionError, active_registry


@dataclass(frozen=True, kw_only=True)
class multi(RunOptions):
    """Declares the assets that the decorated function makes together: ``@asset.multi(...)``.

    ``outlets`` are Asset objects, each with its own name, uri, kind, format, columns and
    outlet_validations; schedule, partition and everything else is shared. The function is called
    by no asset's name: its own is taken from the same namespace. It returns ``{name: DataFrame}``
    or writes by itself; one run makes all outlets or none.

    In the function ``self`` maps the names of the outlets to their handles:
    ``self["bus_trip_1"].write(frame)``. Raises DefinitionError with file, line and name.
    """

    outlets: Sequence[Asset]

    def __new__(cls, *args: object, **options: object) -> "multi":
        """Says what is wrong with the arguments before a TypeError would."""
        refusal = None if args else _refused(options)
        refusal = refusal or refused_arguments("@asset.multi", cls, args, options)
        return super().__new__(cls) if refusal is None else cast("multi", refusal)

    def __call__(self, function: Callable[..., Any]) -> "MultiAsset":
        """The assets that ``function`` makes."""
        return MultiAsset(function, self)


class MultiAsset:
    """Several assets and the function that makes them; what `@asset.multi` returns.

    Other functions and schedules name the outlets, each an asset like any other.
    """

    def __init__(self, function: Callable[..., Any], options: multi) -> None:
        self.name, self.site = checked_name(function), function_site(function)
        try:
            check_name(self.name)
            self.outlets = _checked_outlets(options.outlets)
            self.production = Production(function, options, [one.name for one in self.outlets])
            self.partition = self.production.timing.partition
            self._check_partitions()
            _check_on_partial(options)
            self._check_kept(options)
        except ValueError as error:
            raise self.refused(str(error)) from error
        self.function, self.options = function, options
        self.inlets = self.production.inlets
        registry = active_registry()
        if registry is not None:
            registry.add_multi(self)
        for outlet in self.outlets:
            outlet.made_by, outlet.partition = self, self.partition

    def __repr__(self) -> str:
        return f"MultiAsset({self.name!r})"

    if not TYPE_CHECKING:  # to a type checker, what is always an error is not there

        def __call__(self, *args: object, **kwargs: object) -> NoReturn:
            """Always a DefinitionError, like calling any asset."""
            refuse_call(self.name)

    def to_json(self) -> dict[str, Any]:
        """Return the producer as the loader reports it."""
        return {
            "name": self.name,
            "file": self.site.file,
            "line": self.site.line,
            "multi": True,
            "outlets": [outlet.facts_json() for outlet in self.outlets],
            **self.production.to_json(),
        }

    def refused(self, message: str) -> AssetDefinitionError:
        """Return the error that names this function and where it is declared."""
        return AssetDefinitionError(message, site=self.site, asset=self.name)

    def _check_partitions(self) -> None:
        for outlet in self.outlets:
            if outlet.partition not in (None, self.partition):
                raise DefinitionError(
                    f"the outlet {outlet.name!r} is cut by {outlet.partition!r} and the function"
                    f" makes {self.partition or 'no partitions'}; outlets share the partition:"
                    " write it in @asset.multi(partition=...) only"
                )

    def _check_kept(self, options: multi) -> None:
        for outlet in self.outlets:
            try:
                check_kept(
                    outlet.canonical_uri,
                    options.write_mode,
                    partitioned=self.partition is not None,
                    validated=bool(outlet.validations),
                )
            except DefinitionError as error:
                raise DefinitionError(f"the outlet {outlet.name!r}: {error}") from error


def _check_on_partial(options: multi) -> None:
    if options.on_partial == "publish" and len(options.outlets) > 1:
        raise DefinitionError(
            'on_partial="publish" does not go with several outlets: one run makes all of them or'
            " none; leave it out"
        )


def _refused(options: dict[str, object]) -> Refusal | None:
    name = next((name for name in SPOKEN_OF_OUTLETS if name in options), None)
    if name is not None:
        written = 'Asset("...")' if name == "name" else f'Asset("...", {name}=...)'
        return Refusal(f"{name} belongs to each outlet; write outlets=[{written}, ...]")
    if "outlets" not in options:
        return Refusal('has no outlets; write outlets=[Asset("..."), Asset("...")]')
    return None


def _checked_outlets(given: object) -> tuple[Asset, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise DefinitionError(f"outlets is a list of Asset objects, not {given!r}")
    if not given:
        raise DefinitionError(
            'an empty list of outlets; write outlets=[Asset("..."), Asset("...")]'
        )
    names: set[str] = set()
    for outlet in given:
        if not isinstance(outlet, Asset):
            name = outlet if isinstance(outlet, str) else getattr(outlet, "name", "...")
            raise DefinitionError(
                f"an outlet is an Asset object, not {outlet!r}; write Asset({name!r}, uri=...)"
            )
        if outlet.made_by is not None:
            raise DefinitionError(
                f"the outlet {outlet.name!r} is made by {outlet.made_by.name!r} already"
                f" ({outlet.made_by.site})"
            )
        if outlet.name in names:
            raise DefinitionError(f"the outlet {outlet.name!r} is named twice")
        names.add(outlet.name)
    _refuse_one_place(given)
    return tuple(given)


def _refuse_one_place(outlets: Sequence[Asset]) -> None:
    """Two outlets at one place would replace each other's partitions: they have the same keys."""
    places: dict[str, str] = {}
    for outlet in outlets:
        if outlet.canonical_uri is None or find_storage(outlet.canonical_uri) is None:
            continue
        other = places.setdefault(outlet.canonical_uri, outlet.name)
        if other != outlet.name:
            raise DefinitionError(
                f"the outlets {other!r} and {outlet.name!r} have the same uri, so that one would"
                " replace the other; give each its own"
            )
