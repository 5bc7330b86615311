"""The environment of user code, in a process that is root as it starts.

Python and the loader of programs and libraries act upon some variables, and would execute as root
files that the user of runs has written. So the process starts with other names for all but a few
variables, and gives the variables their own names when the process has its user.
"""

import os
import sys
import tempfile
import time
from collections.abc import Mapping

from slicewise import plugins

_PREFIX = "SLICEWISE_HELD_BACK_"
# Variables by which no process loads a file that user code may have written.
_HARMLESS = frozenset(
    {
        *("PATH", "LANG", "LC_ALL", "TZ", "OPENBLAS_NUM_THREADS"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
    }
)


def with_held_back_names(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with other names for all variables by which code could be executed."""
    return {name if name in _HARMLESS else f"{_PREFIX}{name}": value for name, value in env.items()}


def take_environment() -> None:
    """Give the variables that were held back their own names, and act upon
    them as a new Python does.

    Variables that were added to this process's environment since it started are removed.
    """
    variables = {
        name.removeprefix(_PREFIX): value
        for name, value in os.environ.items()
        if name in _HARMLESS or name.startswith(_PREFIX)
    }
    os.environ.clear()
    os.environ |= variables
    time.tzset()
    tempfile.tempdir = None  # the folder found before
    # Python reads the rest of its variables when it starts, and that was before.
    folders = [folder for folder in variables.get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[1:1] = folders
    plugins.look_also_in(folders)
