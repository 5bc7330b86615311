"""Multi-assets: several assets that one function materializes together (AIP-75, "Multi-Assets")."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from slicewise.declaring.active_registry import active_registry
from slicewise.declaring.declaration_sites import AssetDefinitionError
from slicewise.declaring.declared_asset import Asset
from slicewise.declaring.freshness import check_has_windows
from slicewise.declaring.option_checks import check_name
from slicewise.declaring.options import RunOptions
from slicewise.declaring.producers import (
    CheckedProducer,
    RefusedDecorator,
    checked_name,
    function_site,
    refuse_call,
    refused_arguments,
)
from slicewise.declaring.specs import ProducerSpec
from slicewise.declaring.work_around import WorkAround
from slicewise.errors import DefinitionError
from slicewise.io import find_storage
from slicewise.io.option_fitness import check_kept
from slicewise.texts.hints import OUTLET_ARGUMENTS


@dataclass(frozen=True, kw_only=True)
class multi(RunOptions):
    """A decorator, ``@asset.multi(...)``, which declares the assets that the function materializes
    together.

    ``outlets`` are Asset objects, each with its own name, uri, kind, format, columns, freshness and
    outlet_validations, and if given its own description, owners, tags and group; schedule,
    partition and all other options are shared. No asset may have the function's name. The function
    returns ``{name: DataFrame}`` or writes the outlets; one run materializes all outlets or
    none.

    In the function ``self`` maps the names of the outlets to handles:
    ``self["bus_trip_1"].write(frame)``. Raises DefinitionError with file, line and name.
    """

    outlets: Sequence[Asset]

    def __new__(cls, *args: object, **options: object) -> "multi":
        """Check the arguments first, for errors that say more than a TypeError of Python."""
        refusal = None if args else _refused(options)
        refusal = refusal or refused_arguments("@asset.multi", cls, args, options)
        return super().__new__(cls) if refusal is None else cast("multi", refusal)

    def __call__(self, function: Callable[..., Any]) -> "MultiAsset":
        """Return the assets that ``function`` materializes."""
        return MultiAsset(function, self)


class MultiAsset(WorkAround):
    """Several assets with the function that materializes the assets; the result of `@asset.multi`.

    Other functions and schedules name the outlets; each outlet is an ordinary asset.
    """

    def __init__(self, function: Callable[..., Any], options: multi) -> None:
        self.name, self.site = checked_name(function), function_site(function)
        self.function = function
        try:
            check_name(self.name)
            self.outlets = _checked_outlets(options.outlets)
            self.declare(options)
            self.partition = self.production.timing.partition
            self._check_partitions()
            _check_on_partial(options)
            self._check_kept(options)
        except ValueError as error:
            raise self.refused(str(error)) from error
        registry = active_registry()
        if registry is not None:
            registry.add_multi(self)
        for outlet in self.outlets:
            outlet.made_by, outlet.partition = self, self.partition

    def declare(self, options: RunOptions) -> None:
        """Check the function with these options, and take the options over."""
        outlet_names = [outlet.name for outlet in self.outlets]
        self.production = CheckedProducer(self.function, options, outlet_names)
        self.options = options
        self.inlets = self.production.inlets

    def __repr__(self) -> str:
        return f"MultiAsset({self.name!r})"

    if not TYPE_CHECKING:  # so type checkers report a call as an error

        def __call__(self, *args: object, **kwargs: object) -> NoReturn:
            """Raise DefinitionError, like a call of any asset."""
            refuse_call(self.name)

    @property
    def producer_spec(self) -> ProducerSpec:
        """The declaration of the producer."""
        outlets = [outlet.outlet_spec for outlet in self.outlets]
        return self.production.spec(self.name, self.site, outlets, multi=True)

    def to_json(self) -> dict[str, Any]:
        """Return the producer in the form of the loader's report."""
        return self.producer_spec.to_json() | {"source": self.production.source}

    def refused(self, message: str) -> AssetDefinitionError:
        """Return an error that names this function and the site of the declaration."""
        return AssetDefinitionError(message, site=self.site, asset=self.name)

    def _check_partitions(self) -> None:
        for outlet in self.outlets:
            if outlet.partition not in (None, self.partition):
                raise DefinitionError(
                    f"the outlet {outlet.name!r} has the partition definition {outlet.partition!r},"
                    f" and the function has {self.partition or 'none'}; outlets share a"
                    " definition: write partition= in @asset.multi only"
                )
            try:
                check_has_windows(outlet.freshness, self.partition)
            except DefinitionError as error:
                raise DefinitionError(f"the outlet {outlet.name!r}: {error}") from None

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
            'on_partial="publish" cannot be combined with several outlets: a run publishes all'
            " outlets or none; leave on_partial out"
        )


def _refused(options: dict[str, object]) -> RefusedDecorator | None:
    name = next((name for name in OUTLET_ARGUMENTS if name in options), None)
    if name is not None:
        written = 'Asset("...")' if name == "name" else f'Asset("...", {name}=...)'
        return RefusedDecorator(f"{name} belongs to each outlet; write outlets=[{written}, ...]")
    if "outlets" not in options:
        return RefusedDecorator('has no outlets; write outlets=[Asset("..."), Asset("...")]')
    return None


def _checked_outlets(outlets: object) -> tuple[Asset, ...]:
    if isinstance(outlets, str) or not isinstance(outlets, Sequence):
        raise DefinitionError(f"outlets is a list of Asset objects, not {outlets!r}")
    if not outlets:
        raise DefinitionError(
            'an empty list of outlets; write outlets=[Asset("..."), Asset("...")]'
        )
    names: set[str] = set()
    for outlet in outlets:
        if not isinstance(outlet, Asset):
            name = outlet if isinstance(outlet, str) else getattr(outlet, "name", "...")
            raise DefinitionError(
                f"an outlet is an Asset object, not {outlet!r}; write Asset({name!r}, uri=...)"
            )
        if outlet.made_by is not None:
            raise DefinitionError(
                f"the outlet {outlet.name!r} belongs to {outlet.made_by.name!r} already"
                f" ({outlet.made_by.site})"
            )
        if outlet.name in names:
            raise DefinitionError(
                f"the outlet {outlet.name!r} is named twice; name each outlet once"
            )
        names.add(outlet.name)
    _refuse_shared_location(outlets)
    return tuple(outlets)


def _refuse_shared_location(outlets: Sequence[Asset]) -> None:
    """Refuse two outlets at one location: equal keys would replace each other's partitions."""
    names_by_uri: dict[str, str] = {}
    for outlet in outlets:
        if outlet.canonical_uri is None or find_storage(outlet.canonical_uri) is None:
            continue
        other_name = names_by_uri.setdefault(outlet.canonical_uri, outlet.name)
        if other_name != outlet.name:
            raise DefinitionError(
                f"the outlets {other_name!r} and {outlet.name!r} have the same uri, so that one"
                " outlet would replace the data of the other; give each outlet a uri of its own"
            )
