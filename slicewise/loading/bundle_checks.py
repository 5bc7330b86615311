"""Checks that need all files of a bundle: unknown names, wrong mappings, schedules in a circle,
and definitions over a limit.
"""

import inspect
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slicewise.declaring.declaration_sites import AssetDefinitionError
from slicewise.declaring.decorator import MultiAsset, ProducedAsset
from slicewise.declaring.freshness import check_has_windows
from slicewise.declaring.registry import Registry
from slicewise.declaring.schedules import (
    cycle_from,
    fresh_names,
    has_ticks,
    schedule_json,
    schedule_names,
)
from slicewise.declaring.signatures import wanted_names
from slicewise.declaring.step_functions import setup_name
from slicewise.errors import DefinitionError
from slicewise.loading.alert_limit import excess_alerts
from slicewise.loading.hidden_columns import mistaken_columns
from slicewise.partitions.limits import Limits, limit_error
from slicewise.texts.hints import name_hint
from slicewise.texts.tracebacks import (
    asset_at,
    error_text,
    file_lines,
    one_line,
    user_site,
    user_traceback,
)

_UNEXPECTED = re.compile(
    r"(?P<name>\w+)\.__init__\(\) got an unexpected keyword argument '(?P<argument>\w+)'"
)

Errors = dict[str, list[dict[str, Any]]]
"""The errors of each file, in the order of loading: message, traceback, line and asset."""

Producer = ProducedAsset | MultiAsset


def check_declarations(registry: Registry, errors: Errors, limits: Limits) -> None:
    """Check all declarations, add the errors found, and drop the declarations of broken files."""
    name_errors = [] if any(errors.values()) else _unknown_names(registry)
    # A broken file may declare an asset that other files name, so names are checked only if every
    # file was loaded.
    for error in [
        *name_errors,
        *_ambiguous_steps(registry),
        *_wrong_mappings(registry),
        *_unmapped_fresh(registry),
        *_cycles(registry),
        *_windowless_freshness(registry),
        *mistaken_columns(registry),
        *_excesses(registry, limits),
        *excess_alerts(registry),
    ]:
        add_error(errors, error, registry.folder)
    registry.drop_files({file for file, file_errors in errors.items() if file_errors})


def add_error(errors: Errors, error: AssetDefinitionError, root: Path) -> None:
    """Add the error of a declaration to the errors of the declaration's file."""
    file = error.site.file
    errors.setdefault(file, []).append(error_json(error, root, file))


def error_json(error: BaseException, root: Path, file: str) -> dict[str, Any]:
    """Return an error of a file for the loader's report, which names the file beside the error."""
    lines = file_lines(error, root / file)
    line = lines[-1] if lines else None
    if not isinstance(error, AssetDefinitionError):
        message, asset = _message_and_asset(error, root, file, lines)
    elif error.site.file == file:
        message, line, asset = error.sentence, error.site.line, error.asset
    else:  # the error of a file that this file imports; the message names that file
        message, asset = str(error), error.asset
    traceback = user_traceback(error, root)
    return {"message": message, "traceback": traceback, "line": line, "asset": asset}


def _message_and_asset(
    error: BaseException, root: Path, file: str, lines: Sequence[int]
) -> tuple[str, str | None]:
    """Return the message of an error that was raised before an asset was declared, and the asset's
    name if known.
    """
    message, asset = one_line(error) + _near_argument(error), asset_at(root / file, lines)
    if asset is not None:
        message = f"asset {asset!r}: {message.removeprefix('DefinitionError: ')}"
    raising_site = user_site(error, root)
    if (
        raising_site is not None
        and raising_site.file != file
        and not isinstance(error, SyntaxError)
    ):
        message += f" ({raising_site})"
    return message, asset


def _near_argument(error: BaseException) -> str:
    """Return a hint with the arguments of a class of Slicewise that was called with an unknown
    argument; else the empty text.
    """
    call_match = _UNEXPECTED.match(error_text(error)) if isinstance(error, TypeError) else None
    cls = call_match and vars(sys.modules["slicewise"]).get(call_match["name"])
    if call_match is None or not isinstance(cls, type):
        return ""
    parameter_names = [name for name in inspect.signature(cls).parameters if name != "self"]
    no_arguments = f"{call_match['name']} takes no arguments"
    return f"; {name_hint(call_match['argument'], parameter_names, otherwise=no_arguments)}"


def _unknown_names(registry: Registry) -> list[AssetDefinitionError]:
    known_names = registry.assets.keys() | registry.references
    errors = []
    for producer in registry.producers():
        unknown = [name for name in producer.inlets if name not in known_names]
        if unknown:
            other_names = known_names - {producer.name}
            errors.append(producer.refused(_unknown_sentence(unknown, other_names, registry)))
    return errors


def _unknown_sentence(unknown: list[str], known_names: set[str], registry: Registry) -> str:
    name = unknown[0]
    multi_asset = registry.multis.get(name)
    if multi_asset is not None:
        outlets = ", ".join(outlet.name for outlet in multi_asset.outlets)
        return (
            f"the parameter {name!r} names a function with several outlets; name one of {outlets}"
        )
    shown = " and ".join(repr(name) for name in unknown)
    names = (
        f"the parameters {shown} name no assets"
        if len(unknown) > 1
        else (f"the parameter {shown} names no asset")
    )
    hints = (
        "; ".join(_hint(name, known_names) for name in unknown[:3])
        if known_names
        else "no other asset is declared"
    )
    return f"{names}; {hints} (declare an asset of another bundle with Asset.ref({name!r}))"


def _hint(name: str, known_names: set[str]) -> str:
    """Return a hint for a parameter that names no asset."""
    unwritable_name = next(
        (known_name for known_name in sorted(known_names) if _identifier(known_name) == name), None
    )
    if unwritable_name is not None:  # that asset's name is no identifier
        return f"write inlets={{{name!r}: Asset.ref({unwritable_name!r})}}"
    return name_hint(name, known_names)


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _ambiguous_steps(registry: Registry) -> list[AssetDefinitionError]:
    """Return an error for each function that may mean a set-up or an asset by a parameter."""
    errors = []
    for producer in registry.producers():
        name = setup_name(producer.options)
        if name in registry.assets and name in wanted_names(producer.function):
            errors.append(
                producer.refused(
                    f"{name!r} is the name of the setup and of an asset, and the function has a"
                    " parameter of this name; rename the setup"
                )
            )
    return errors


def _wrong_mappings(registry: Registry) -> list[AssetDefinitionError]:
    """Return an error for each producer with a mapping that does not fit the definitions of the two
    assets; only for the first such mapping.
    """
    errors = []
    for producer in registry.producers():
        for upstream, mapping in producer.options.upstream.items():
            asset = registry.assets.get(getattr(upstream, "name", upstream))
            if asset is None:
                continue  # an asset of another bundle
            try:
                mapping.check(producer.partition, asset.partition)
            except Exception as error:  # the mapping may come from an installed package
                reason = error if isinstance(error, DefinitionError) else one_line(error)
                sentence = f"upstream={{{asset.name!r}: {mapping!r}}} is not possible: {reason}"
                errors.append(producer.refused(sentence))
                break
    return errors


def _unmapped_fresh(registry: Registry) -> list[AssetDefinitionError]:
    """Return an error for each producer with a `Fresh` of an asset by time without a mapping.

    By the overlap rule a partition would need the windows of its own time, which may be made long
    after: the newest ones are meant.
    """
    errors = []
    for producer in registry.producers():
        for name in fresh_names(schedule_json(producer.options.schedule)):
            asset = registry.assets.get(name)
            definition = None if asset is None else asset.partition
            if definition is None or definition.time_dimension is None:
                continue
            if name not in producer.production.mappings and producer.partition is not None:
                errors.append(
                    producer.refused(
                        f"Fresh({name}) does not say which partitions of {name!r} count; write"
                        f" upstream={{{name}: Latest()}}, or another mapping"
                    )
                )
                break
    return errors


def _windowless_freshness(registry: Registry) -> list[AssetDefinitionError]:
    """Return an error for each asset of another program that has a freshness and no windows."""
    errors = []
    for declared in registry.external():
        try:
            check_has_windows(declared.freshness, declared.partition)
        except DefinitionError as error:
            errors.append(declared.refused(str(error)))
    return errors


def _excesses(registry: Registry, limits: Limits) -> list[AssetDefinitionError]:
    """Return an error for each declaration that exceeds a limit of the server."""
    sentences: dict[tuple[object, bool, int], str | None] = {}  # many assets share a definition
    errors = []
    for declared in [*registry.producers(), *registry.external()]:
        options = getattr(declared, "options", None)
        by_time = has_ticks(getattr(options, "schedule", None))
        refresh = getattr(options, "refresh", 0)
        cache_key = (id(declared.partition), by_time, refresh)
        if cache_key not in sentences:
            sentences[cache_key] = limit_error(
                declared.partition, limits, by_time=by_time, refresh=refresh
            )
        sentence = sentences[cache_key]
        if sentence is not None:
            errors.append(declared.refused(sentence))
    return errors


def _cycles(registry: Registry) -> list[AssetDefinitionError]:
    """Return one error for each circle of schedules, at the circle's first producer."""
    producers = registry.producers()
    scheduling_names = {
        name: schedule_names(schedule_json(producer.options.schedule))
        for producer in producers
        for name in _outlet_names(producer)
    }
    errors: list[AssetDefinitionError] = []
    reported_names: set[str] = set()
    for producer in producers:
        for name in _outlet_names(producer):
            cycle = None if name in reported_names else cycle_from(name, scheduling_names)
            if cycle is not None:
                reported_names.update(cycle)
                shown = " -> ".join(cycle)
                errors.append(
                    producer.refused(
                        f"the schedule is a circle of assets: {shown}; give one asset a"
                        " schedule by time, or no schedule"
                    )
                )
    return errors


def _outlet_names(producer: Producer) -> list[str]:
    if isinstance(producer, MultiAsset):
        return [outlet.name for outlet in producer.outlets]
    return [producer.name]
