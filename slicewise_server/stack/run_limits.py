"""The sentence of `slicewise doctor` about what limits memory and processes of runs."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple


class WayOfLimits(NamedTuple):
    """How runs are limited, as a clause, or the reason why workers would not start."""

    clause: str
    problem: str = ""


def way_of_limits(env: Mapping[str, str]) -> WayOfLimits:
    """Return how a worker that is started like this process limits runs.

    The group is looked at, and nothing is created.
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
