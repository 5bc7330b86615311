"""The sentence of `slicewise doctor` about the limits of memory and processes of runs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple


class WayOfLimits(NamedTuple):
    """Return a clause about the limits of runs, or the reason why workers would not start."""

    clause: str
    problem: str = ""


def way_of_limits(env: Mapping[str, str]) -> WayOfLimits:
    """Return the limits of runs under a worker that is started like this process.

    The function reads the control group and creates nothing.
    """
    try:
        # The SDK needs installed packages, and `slicewise doctor` needs none.
        folders = importlib.import_module("slicewise.runner.group_folder")
    except ImportError:
        return WayOfLimits("not known before `make setup`")
    setting = env.get(folders.CGROUP_SETTING, "")
    try:
        folder = folders.group_folder(setting)
    except folders.GroupFolderError as error:
        return WayOfLimits(f"{folders.CGROUP_SETTING} is {setting}", str(error))
    return WayOfLimits(folder.sentence())
