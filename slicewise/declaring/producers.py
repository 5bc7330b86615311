"""Producers of assets: a function, its options, and checks of both together."""

import inspect
import textwrap
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields
from datetime import timedelta
from typing import Any, NoReturn

from slicewise.declaring.alerts import alerts_json
from slicewise.declaring.declaration_sites import AssetDefinitionError, caller_site, declaring_site
from slicewise.declaring.declared_asset import Asset
from slicewise.declaring.freshness import check_freshness, check_has_windows
from slicewise.declaring.lateness_terms import check_lateness
from slicewise.declaring.option_checks import check_options
from slicewise.declaring.option_pairs import check_pairs, with_plain_time
from slicewise.declaring.options import RunOptions, hooks_of
from slicewise.declaring.per_asset_options import inlet_validations_json, mappings_json
from slicewise.declaring.schedules import schedule_json
from slicewise.declaring.signatures import check_function, check_hook
from slicewise.declaring.specs import OutletSpec, ProducerSpec
from slicewise.declaring.step_functions import (
    check_step_functions,
    function_name,
    parameters_of_inlets,
)
from slicewise.declaring.timing import resolve
from slicewise.errors import DefinitionError
from slicewise.texts.hints import unknown_argument
from slicewise.texts.memory_sizes import memory_bytes
from slicewise.texts.sites import Site

Function = Callable[..., Any]


class CheckedProducer:
    """A function and its options, checked. Raises DefinitionError for an invalid combination.

    ``made`` are the names of the assets that the function materializes; the function may read none
    of them.
    """

    def __init__(self, function: Function, options: RunOptions, made: Collection[str]) -> None:
        options = with_plain_time(options)
        check_options(options)
        for name, hook in hooks_of(options).items():
            check_hook(name, hook)
        check_step_functions(function, options)
        self.function, self.options = function, options
        self.timing = resolve(options)
        check_pairs(options, self.timing.partition)
        check_lateness(options.schedule, self.timing.partition, made)
        check_freshness(options.freshness)
        check_has_windows(options.freshness, self.timing.partition)
        parameters = parameters_of_inlets(function, options)
        self.inlets = list(parameters.values())
        for parameter, name in parameters.items():
            if name in made:
                raise DefinitionError(
                    f"the parameter {parameter!r} names the asset that the run writes; write self"
                )
        self.mappings = mappings_json(options, self.inlets)
        self.inlet_validations = inlet_validations_json(options, self.inlets)
        self.alerts = alerts_json(options.alerts)

    def spec(
        self, name: str, site: Site, outlets: Iterable[OutletSpec], *, multi: bool
    ) -> ProducerSpec:
        """Return the declaration as the loader reports it, with resolved times."""
        options, timing = self.options, self.timing
        return ProducerSpec(
            name=name,
            file=site.file,
            line=site.line,
            multi=multi,
            outlets=tuple(outlets),
            description=options.description or inspect.getdoc(self.function) or "",
            inlets=self.inlets,
            mappings=self.mappings,
            inlet_validations=self.inlet_validations,
            partition=timing.partition.to_json() if timing.partition else None,
            schedule=schedule_json(options.schedule),
            timezone=timing.timezone,
            start_date=timing.start.isoformat() if timing.start else None,
            end_date=timing.end.isoformat() if timing.end else None,
            strategy=options.strategy,
            refresh=options.refresh,
            pending=options.pending,
            write_mode=options.write_mode,
            group=options.group,
            owners=list(options.owners),
            tags=list(options.tags),
            alerts=self.alerts,
            retries=options.retries,
            retry_delay=_seconds(options.retry_delay),
            timeout=None if options.timeout is None else _seconds(options.timeout),
            memory=None if options.memory is None else memory_bytes(options.memory),
            params=dict(options.params),
            priority=options.priority,
            max_active_runs=options.max_active_runs,
            depends_on_past=options.depends_on_past,
            engine=options.engine,
            spark_conf=dict(options.spark_conf),
            paused=options.paused,
            on_partial=options.on_partial,
            outside=options.outside,
            on_success=_function_name(options.on_success),
            on_failure=_function_name(options.on_failure),
            setup=function_name(options.setup),
            teardown=function_name(options.teardown),
            freshness=None if options.freshness is None else options.freshness.to_json(),
        )

    @property
    def source(self) -> str:
        """The text of the function, between the texts of set-up and tear-down; empty for a
        function without a text.
        """
        functions = (self.options.setup, self.function, self.options.teardown)
        texts = [_text_of(function) for function in functions if function is not None]
        return "\n\n".join(filter(None, texts))


def function_site(function: Any) -> Site:
    """Return the site where the decorated function is declared."""
    code = getattr(function, "__code__", None)
    return declaring_site(code and code.co_filename, code.co_firstlineno if code else 0)


def checked_name(function: Any) -> str:
    """Return the function's name. Raises AssetDefinitionError if it cannot be decorated."""
    if isinstance(function, Asset):
        raise function.refused("is decorated twice; a function materializes one asset")
    try:
        return check_function(function)
    except DefinitionError as error:
        name = getattr(function, "__name__", None)
        raise AssetDefinitionError(str(error), site=function_site(function), asset=name) from None


def refuse_call(name: str) -> NoReturn:
    """Raise the error for calling an asset, which names the alternatives (AIP-75)."""
    raise AssetDefinitionError(
        "is an asset and cannot be called; name the asset as a parameter to read its data, or try"
        " the function with slicewise.testing.materialize",
        site=caller_site(),
        asset=name,
    )


class RefusedDecorator:
    """A stand-in for a decorator with wrong arguments: raises the error when the asset is known."""

    def __init__(self, message: str, name: object = None) -> None:
        self.message, self.name = message, name

    def __call__(self, function: Any) -> NoReturn:
        """Raise AssetDefinitionError."""
        name = self.name if isinstance(self.name, str) else getattr(function, "__name__", None)
        raise AssetDefinitionError(self.message, site=function_site(function), asset=name)


def refused_arguments(
    called: str, cls: type[RunOptions], args: tuple[Any, ...], options: dict[str, Any]
) -> RefusedDecorator | None:
    """Return a refusal of a decorator's wrong arguments, or None; a TypeError would say less."""
    known_names = [option.name for option in fields(cls)]
    unknown_names = [name for name in options if name not in known_names]
    if args:
        refusal = RefusedDecorator(f"write {called}(...), with keyword arguments only")
        if not options and len(args) == 1 and callable(args[0]):
            refusal(args[0])  # a decorator without parentheses: the argument is the function
        return refusal
    if unknown_names:
        message = unknown_argument(called, unknown_names[0], known_names)
        return RefusedDecorator(message, options.get("name"))
    return None


def _text_of(function: Function) -> str:
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return ""  # created by exec, or not written in Python


def _seconds(span: timedelta | float) -> float:
    return span.total_seconds() if isinstance(span, timedelta) else float(span)


def _function_name(function: Function | None) -> str | None:
    if function is None:
        return None
    return str(getattr(function, "__qualname__", type(function).__qualname__))
