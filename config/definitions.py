"""`slicewise definitions check FOLDER`: loads a bundle and prints what it declares; no server."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 when every file loads, 1 when one does not, 2 for bad usage."""
    parser = argparse.ArgumentParser(prog="slicewise definitions")
    parser.add_argument("action", choices=["check"])
    parser.add_argument("folder", type=Path, help="the bundle: a folder of definition files")
    parser.add_argument("--json", action="store_true", help="print the whole declaration")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder} is not a folder")
    from slicewise.bundles import load_bundle

    declared = load_bundle(options.folder)
    broken = [file for file in declared["files"] if file["error"]]
    if options.json:
        print(json.dumps(declared, indent=1))
    else:
        _print(declared, broken)
    return 1 if broken else 0


def _print(declared: dict[str, Any], broken: list[dict[str, Any]]) -> None:
    for producer in declared["producers"]:
        inlets = f"  from {', '.join(producer['inlets'])}" if producer["inlets"] else ""
        made = ", ".join(outlet["name"] for outlet in producer["outlets"])
        print(f"{producer['file']}:{producer['line']}  {made}{inlets}")
    for file in broken:
        error = file["error"]
        line = f":{error['line']}" if error["line"] else ""
        print(f"{file['path']}{line}: {error['message']}", file=sys.stderr)
    if not broken:
        print(f"{len(declared['files'])} files, {len(declared['producers'])} producers, no error")
