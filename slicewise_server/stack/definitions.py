"""`slicewise definitions check PATH`: load definition files, print the specs; needs no server."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from slicewise.declaring import is_read_in_zone, pairing_notes, schedule_text, unused_options
from slicewise.partitions import PartitionDefinition, exclusion_warnings
from slicewise.texts import counted, masked_json, masked_text, spelling_hint, terminal_text
from slicewise_server.stack.definition_loading import load_definitions


def main(arguments: Sequence[str]) -> int:
    """Check a path; return 0 if every file loads, 1 if a file does not, 2 for bad usage."""
    parser = argparse.ArgumentParser(prog="slicewise definitions")
    parser.add_argument("action", choices=["check"])
    parser.add_argument(
        "path", type=Path, help="the bundle, a folder of definition files, or one file of a bundle"
    )
    parser.add_argument("--json", action="store_true", help="print the declarations as JSON")
    options = parser.parse_args(arguments)
    path: Path = options.path
    if not path.is_dir() and not (path.is_file() and path.suffix == ".py"):
        parser.error(f"{path} is neither a folder nor a Python file")

    report = load_definitions(path)
    declared: dict[str, Any] = report.declared
    if report.output:
        _say(masked_text(report.output), to_errors=True)

    for declaration in [*declared["producers"], *declared["assets"]]:
        spec = declaration["partition"]
        exclusion_texts = list(exclusion_warnings(spec and PartitionDefinition.from_json(spec)))
        for asset in declaration.get("outlets", [declaration]):
            asset["warnings"] += exclusion_texts
    for producer in declared["producers"]:
        producer["outlets"][0]["warnings"] += unused_options(producer)
    declared["notes"] = [
        {"file": producer["file"], "line": producer["line"], "note": sentence}
        for producer, sentence in pairing_notes(declared)
    ]
    if options.json:
        masked_lists = {name: masked_json(declared[name]) for name in ("errors", "files")}
        output = {**declared, **masked_lists}
        print(json.dumps(output, indent=1))
    else:
        _print(declared)
    return 1 if declared["errors"] else 0


def _say(text: str, *, to_errors: bool = False) -> None:
    """Print text that may contain text of user code, without terminal control characters."""
    print(terminal_text(text), file=sys.stderr if to_errors else sys.stdout)


def _print(declared: dict[str, Any]) -> None:
    for producer in declared["producers"]:
        _say("\n".join(_producer_lines(producer)))
    for asset in declared["assets"]:
        _say("\n".join(_asset_lines(asset)))
    for asset in _all_assets(declared):
        for warning in asset["warnings"]:
            line_of_warning = f"{_site(asset)}: asset {asset['name']!r}: warning: {warning}"
            _say(line_of_warning, to_errors=True)
    if not declared["errors"]:  # a file that does not load may declare the name
        for warning in _reference_warnings(declared):
            _say(warning, to_errors=True)
    for note in declared["notes"]:
        _say(f"{_site(note)}: note: {note['note']}", to_errors=True)
    for error in declared["errors"]:
        line = f":{error['line']}" if error["line"] else ""
        _say(f"{error['path']}{line}: {masked_text(error['message'])}", to_errors=True)
    count = len(declared["errors"])
    error_text = f"{counted(count, 'error')}" if count else "no error"
    total = sum(len(producer["outlets"]) for producer in declared["producers"])
    print(
        f"{counted(len(declared['files']), 'file')}, {counted(total, 'asset')} with a function,"
        f" {len(declared['assets'])} without, {error_text}",
        file=sys.stderr if count else sys.stdout,
    )


def _reference_warnings(declared: dict[str, Any]) -> Iterator[str]:
    """Yield a warning for each name that no file of the bundle declares."""
    names = [asset["name"] for asset in _all_assets(declared)]
    for producer in declared["producers"]:
        for name in producer["references"]:
            other_names = [other_name for other_name in names if other_name != producer["name"]]
            yield (
                f"{_site(producer)}: asset {producer['name']!r}: warning: no file here declares"
                f" {name!r}{spelling_hint(name, other_names)}; a server looks for it in its"
                " other bundles"
            )


def _producer_lines(producer: dict[str, Any]) -> Iterator[str]:
    yield f"{_site(producer)}: {', '.join(outlet['name'] for outlet in producer['outlets'])}"
    yield f"    partition: {_partition(producer['partition'])}"
    yield f"    schedule:  {schedule_text(producer['schedule'])}{_zone(producer)}"
    if producer["inlets"]:
        yield f"    reads:     {', '.join(producer['inlets'])}"


def _asset_lines(asset: dict[str, Any]) -> Iterator[str]:
    yield f"{_site(asset)}: {asset['name']}"
    yield f"    partition: {_partition(asset['partition'])}"
    yield "    schedule:  written by another program"


def _partition(spec: dict[str, Any] | None) -> str:
    return "none" if spec is None else repr(PartitionDefinition.from_json(spec))


def _zone(producer: dict[str, Any]) -> str:
    is_local = producer["timezone"] != "UTC" and is_read_in_zone(producer["schedule"])
    return f" ({producer['timezone']})" if is_local else ""


def _all_assets(declared: dict[str, Any]) -> list[dict[str, Any]]:
    outlets = [
        {**outlet, "file": producer["file"], "line": producer["line"]}
        for producer in declared["producers"]
        for outlet in producer["outlets"]
    ]
    return [*outlets, *declared["assets"]]


def _site(entry: dict[str, Any]) -> str:
    return f"{entry['file']}:{entry['line']}"
