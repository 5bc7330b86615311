"""The module that Python imports as it starts: hides the server's packages, then runs the module of
this name that Python would have imported without this folder.
"""

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_HIDING = "slicewise.process.hidden_packages"


def _hide() -> None:
    # By its file: the package of the SDK imports much, and has to be imported later, if at all.
    file = _FOLDER.parent / "hidden_packages.py"
    spec = importlib.util.spec_from_file_location(_HIDING, file)
    if spec is not None and spec.loader is not None:
        module = sys.modules[_HIDING] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.hide_server_packages()


def _run_next() -> None:
    folders = [folder for folder in sys.path if Path(folder).resolve() != _FOLDER]
    spec = PathFinder.find_spec("sitecustomize", folders)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


_hide()
_run_next()
