"""The example package of plug-ins, really installed into a folder, and processes that have the
package.
"""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "examples" / "slicewise_retail"


def install(source: Path, target: Path) -> Path:
    """Build and install a package as people do, without downloads."""
    copy = target.with_suffix(".source")
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    if find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", "--quiet"]
    else:
        command = [sys.executable, "-m", "uv", "pip", "install", "--quiet"]
        command += ["--python", sys.executable]
    command += ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
    subprocess.run([*command, str(copy)], check=True, capture_output=True, text=True, timeout=600)
    return target


def run(script: str, *path: Path) -> Any:
    """Run a script in a process with these folders on its path, and return its JSON."""
    python_path = os.pathsep.join(map(str, (*path, PROJECT)))
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": python_path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def pretend_installed(folder: Path, name: str, entries: str, **modules: str) -> Path:
    """Write a package as an installer does: the modules, and entry points beside them."""
    facts = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(entries)
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    return folder
