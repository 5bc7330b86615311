"""What only all files of a bundle together can show: unknown names, and schedules in a circle."""

import inspect
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slicewise.arguments import near
from slicewise.assets import MultiAsset, ProducedAsset
from slicewise.errors import DefinitionError
from slicewise.limits import Limits, excess
from slicewise.registry import AssetDefinitionError, Registry
from slicewise.schedules import cycle_from, has_ticks, scheduling_assets
from slicewise.tracebacks import (
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
"""By file, in the order of loading, what is wrong with it: message, traceback, line and asset."""

Producer = ProducedAsset | MultiAsset


def check_declared(registry: Registry, errors: Errors, limits: Limits) -> None:
    """Add what is wrong, one error for each producer, and forget the files that are broken."""
    found = [] if any(errors.values()) else _unknown_names(registry)
    # A broken file may declare what others ask for: names are judged when all files are loaded.
    for error in [
        *found,
        *_wrong_mappings(registry),
        *_cycles(registry),
        *_excesses(registry, limits),
    ]:
        add_error(errors, error, registry.folder)
    registry.drop_files({file for file, broken in errors.items() if broken})


def add_error(errors: Errors, error: AssetDefinitionError, root: Path) -> None:
    """Add the error of a declaration to those of the file that holds it."""
    file = error.site.file
    errors.setdefault(file, []).append(error_json(error, root, file))


def error_json(error: BaseException, root: Path, file: str) -> dict[str, Any]:
    """Return an error of a file as the loader reports it; the file itself is told beside it."""
    lines = file_lines(error, root / file)
    line = lines[-1] if lines else None
    if not isinstance(error, AssetDefinitionError):
        message, asset = _undeclared(error, root, file, lines)
    elif error.site.file == file:
        message, line, asset = error.sentence, error.site.line, error.asset
    else:  # of a file that this one imports, which is told in the message
        message, asset = str(error), error.asset
    traceback = user_traceback(error, root)
    return {"message": message, "traceback": traceback, "line": line, "asset": asset}


def _undeclared(
    error: BaseException, root: Path, file: str, lines: Sequence[int]
) -> tuple[str, str | None]:
    """What an error says that was raised before an asset could be, and the asset's name if any."""
    message, asset = one_line(error) + _near_argument(error), asset_at(root / file, lines)
    if asset is not None:
        message = f"asset {asset!r}: {message.removeprefix('DefinitionError: ')}"
    raised = user_site(error, root)
    if raised is not None and raised.file != file and not isinstance(error, SyntaxError):
        message += f" ({raised})"
    return message, asset


def _near_argument(error: BaseException) -> str:
    """Say which arguments a class of Slicewise's has, where it was called with another one."""
    called = _UNEXPECTED.match(error_text(error)) if isinstance(error, TypeError) else None
    cls = called and vars(sys.modules["slicewise"]).get(called["name"])
    if called is None or not isinstance(cls, type):
        return ""
    known = [name for name in inspect.signature(cls).parameters if name != "self"]
    return f"; {near(called['argument'], known, otherwise='it has none')}"


def _unknown_names(registry: Registry) -> list[AssetDefinitionError]:
    known = registry.assets.keys() | registry.references
    found = []
    for producer in registry.producers():
        unknown = [name for name in producer.inlets if name not in known]
        if unknown:
            others = known - {producer.name}
            found.append(producer.refused(_unknown_sentence(unknown, others, registry)))
    return found


def _unknown_sentence(unknown: list[str], known: set[str], registry: Registry) -> str:
    name = unknown[0]
    several = registry.multis.get(name)
    if several is not None:
        outlets = ", ".join(outlet.name for outlet in several.outlets)
        return f"the parameter {name!r} names a function that makes several assets: {outlets}"
    shown = " and ".join(repr(name) for name in unknown)
    names = (
        f"the parameters {shown} name no assets"
        if len(unknown) > 1
        else (f"the parameter {shown} names no asset")
    )
    hints = "; ".join(_hint(name, known) for name in unknown[:3]) if known else "there are none"
    return f"{names}; {hints} (one of another bundle is declared by Asset.ref({name!r}))"


def _hint(name: str, known: set[str]) -> str:
    """Return what to write for a parameter that names no asset."""
    spaced = next((other for other in sorted(known) if _identifier(other) == name), None)
    if spaced is not None:  # no parameter can be called like that asset
        return f"write inlets={{{name!r}: Asset.ref({spaced!r})}}"
    return near(name, known)


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _wrong_mappings(registry: Registry) -> list[AssetDefinitionError]:
    """Mappings that make no sense between the definitions of the two assets; the first of each."""
    found = []
    for producer in registry.producers():
        for upstream, mapping in producer.options.upstream.items():
            asset = registry.assets.get(getattr(upstream, "name", upstream))
            if asset is None:
                continue  # of another bundle
            try:
                mapping.check(producer.partition, asset.partition)
            except Exception as error:  # a package may bring the mapping
                reason = error if isinstance(error, DefinitionError) else one_line(error)
                sentence = f"upstream={{{asset.name!r}: {mapping!r}}} cannot be: {reason}"
                found.append(producer.refused(sentence))
                break
    return found


def _excesses(registry: Registry, limits: Limits) -> list[AssetDefinitionError]:
    """Return an error for each declaration whose ticks, or windows, have too many partitions."""
    sentences: dict[tuple[object, bool, int], str | None] = {}  # many assets share a definition
    errors = []
    for declared in [*registry.producers(), *registry.external()]:
        options = getattr(declared, "options", None)
        by_time = has_ticks(getattr(options, "schedule", None))
        refresh = getattr(options, "refresh", 0)
        terms = (id(declared.partition), by_time, refresh)
        if terms not in sentences:
            sentences[terms] = excess(declared.partition, limits, by_time=by_time, refresh=refresh)
        sentence = sentences[terms]
        if sentence is not None:
            errors.append(declared.refused(sentence))
    return errors


def _cycles(registry: Registry) -> list[AssetDefinitionError]:
    """One error for each circle, at the first of its producers."""
    producers = registry.producers()
    after = {
        name: scheduling_assets(producer.options.schedule)
        for producer in producers
        for name in _made_by(producer)
    }
    found: list[AssetDefinitionError] = []
    told: set[str] = set()
    for producer in producers:
        for name in _made_by(producer):
            cycle = None if name in told else cycle_from(name, after)
            if cycle is not None:
                told.update(cycle)
                shown = " -> ".join(cycle)
                found.append(
                    producer.refused(
                        f"its schedule waits for itself: {shown}; one of these follows a time, or"
                        " none"
                    )
                )
    return found


def _made_by(producer: Producer) -> list[str]:
    if isinstance(producer, MultiAsset):
        return [outlet.name for outlet in producer.outlets]
    return [producer.name]
