"""The environment of user code, in a process that is root as it starts.

Python, the loader of programs and libraries act upon some variables, and would run as root what the
user of runs has written. So the process starts with other names for all but a few of them, and
gives the variables their own names when it has its user.
"""

import os
import sys
import tempfile
import time
from collections.abc import Mapping

from slicewise import plugins

_PREFIX = "SLICEWISE_HELD_BACK_"
# By these no process loads what user code may have written.
_HARMLESS = frozenset(
    {
        *("PATH", "LANG", "LC_ALL", "TZ", "OPENBLAS_NUM_THREADS"),
        *("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"),
    }
)


def held_back(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which nothing has code run."""
    return {name if name in _HARMLESS else f"{_PREFIX}{name}": value for name, value in env.items()}


def take_environment() -> None:
    """Give the variables that were held back their own names, and act upon them as a new Python
    does.

    Variables that this process has got since it started are removed.
    """
    variables = {
        name.removeprefix(_PREFIX): value
        for name, value in os.environ.items()
        if name in _HARMLESS or name.startswith(_PREFIX)
    }
    os.environ.clear()
    os.environ |= variables
    time.tzset()
    tempfile.tempdir = None  # where it was found before
    # Python reads the rest of its variables when it starts, and that was before.
    places = [place for place in variables.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[1:1] = places
    plugins.look_also_in(places)
