"""What only all files of a bundle together can show: unknown names, and schedules in a circle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slicewise.arguments import near
from slicewise.assets import MultiAsset, ProducedAsset
from slicewise.errors import DefinitionError
from slicewise.registry import AssetDefinitionError, Registry
from slicewise.schedules import cycle_from, scheduling_assets
from slicewise.tracebacks import asset_at, file_lines, one_line, user_site, user_traceback

Errors = dict[str, list[dict[str, Any]]]
"""By file, in the order of loading, what is wrong with it: message, traceback, line and asset."""

Producer = ProducedAsset | MultiAsset


def check_declared(registry: Registry, errors: Errors) -> None:
    """Adds what is wrong, one error for each producer, and forgets the files that are broken."""
    found = [] if any(errors.values()) else _unknown_names(registry)
    # A broken file may declare what others ask for: names are judged when all files are loaded.
    for error in [*found, *_wrong_mappings(registry), *_cycles(registry)]:
        errors.setdefault(error.site.file, []).append(
            error_json(error, registry.folder, error.site.file)
        )
    registry.drop_files({file for file, broken in errors.items() if broken})


def error_json(error: BaseException, root: Path, file: str) -> dict[str, Any]:
    """An error of a file as the loader reports it; the file itself is told beside it."""
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
    message, asset = one_line(error), asset_at(root / file, lines)
    if asset is not None:
        message = f"asset {asset!r}: {message.removeprefix('DefinitionError: ')}"
    raised = user_site(error, root)
    if raised is not None and raised.file != file and not isinstance(error, SyntaxError):
        message += f" ({raised})"
    return message, asset


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
    hints = "; ".join(f"{near(name, known)}" for name in unknown[:3]) if known else "there are none"
    return f"{names}; {hints} (one of another bundle is declared by Asset.ref({name!r}))"


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
            except DefinitionError as error:
                sentence = f"upstream={{{asset.name!r}: {mapping!r}}} cannot be: {error}"
                found.append(producer.refused(sentence))
                break
    return found


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
