"""Assets: declared with `Asset`, or materialized by a function under `@asset` (AIP-75)."""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

from slicewise.declaring.declaration_sites import AssetDefinitionError
from slicewise.declaring.declared_asset import Asset, AssetColumn, AssetReference
from slicewise.declaring.multi_asset import MultiAsset, multi
from slicewise.declaring.option_checks import Columns
from slicewise.declaring.options import RunOptions
from slicewise.declaring.producers import (
    CheckedProducer,
    checked_name,
    function_site,
    refuse_call,
    refused_arguments,
)
from slicewise.declaring.specs import ProducerSpec
from slicewise.declaring.work_around import WorkAround
from slicewise.io.option_fitness import check_kept

__all__ = ["Asset", "AssetColumn", "AssetReference", "MultiAsset", "ProducedAsset", "asset"]

# In the body of `asset` the name `multi` means the class attribute.
_multi = multi


class ProducedAsset(WorkAround, Asset):
    """An asset with the function that materializes the asset; the result of `@asset`."""

    def __init__(self, function: Callable[..., Any], options: "asset") -> None:
        function_name, site = checked_name(function), function_site(function)
        name: Any = function_name if options.name is None else options.name
        self.function, self.name = function, name
        try:
            self.declare(options)
        except ValueError as error:
            raise AssetDefinitionError(str(error), site=site, asset=str(name)) from error
        super().__init__(
            name,
            uri=options.uri,
            kind=options.kind,
            format=options.format,
            columns=options.columns,
            partition=self.production.timing.partition,
            outlet_validations=options.outlet_validations,
            _site=site,
        )
        self.made_by = self
        try:
            is_partitioned = self.partition is not None
            check_kept(
                self.canonical_uri,
                options.write_mode,
                partitioned=is_partitioned,
                validated=bool(self.validations),
            )
        except ValueError as error:
            raise self.refused(str(error)) from error

    def declare(self, options: RunOptions) -> None:
        """Check the function with these options, and take the options over."""
        self.production = CheckedProducer(self.function, options, [self.name])
        self.options = options
        self.inlets = self.production.inlets

    if not TYPE_CHECKING:  # so type checkers report a call as an error

        def __call__(self, *args: object, **kwargs: object) -> NoReturn:
            """Raise DefinitionError: other functions name the asset as a parameter, and only runs
            call the asset's function.
            """
            refuse_call(self.name)

    @property
    def producer_spec(self) -> ProducerSpec:
        """The declaration of the producer."""
        return self.production.spec(self.name, self.site, [self.outlet_spec], multi=False)

    def to_json(self) -> dict[str, Any]:
        """Return the producer in the form of the loader's report."""
        return self.producer_spec.to_json() | {"source": self.production.source}


@dataclass(frozen=True, kw_only=True)
class asset(RunOptions):
    """A decorator, which declares the asset that the function materializes. All arguments are by
    keyword.

    The function's parameters are filled in by name: ``self`` (this asset), ``context``, ``spark``,
    and any other name is an upstream asset. Without arguments the parentheses may be left out.
    Raises DefinitionError with file, line and asset. ``asset.multi`` declares several assets that
    one function materializes.
    """

    multi: ClassVar[type[multi]] = _multi

    name: str | None = None
    uri: str | PathLike[str] | None = None
    kind: str | None = None
    format: str | None = None
    columns: Columns = None

    def __new__(cls, *args: object, **options: object) -> "asset":
        """Check the arguments first, for errors that say more than a TypeError of Python."""
        if len(args) == 1 and not options and (callable(args[0]) or isinstance(args[0], Asset)):
            # Written without parentheses: the argument is the decorated function.
            return cast("asset", cls()(cast("Callable[..., Any]", args[0])))
        refusal = refused_arguments("@asset", cls, args, options)
        return super().__new__(cls) if refusal is None else cast("asset", refusal)

    def __call__(self, function: Callable[..., Any]) -> ProducedAsset:
        """Return the asset that ``function`` materializes."""
        return ProducedAsset(function, self)
