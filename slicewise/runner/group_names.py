"""Which control groups are those of workers, and not of other programs."""

import os
import re
from pathlib import Path

from slicewise.process.cgroup_mounts import cgroup_mounts, own_cgroup

# No name that a unit of systemd, or the group of a service, has.
WORKER_NAME = re.compile(r"run-worker\.[0-9]+\.[0-9a-f]{8}")
_RUN_NAME = re.compile(r"run-.+-[0-9]+")


def groups_around_this_process() -> set[tuple[int, int]]:
    """Return which folders are this process's group and the groups above."""
    own_group = own_cgroup(cgroup_mounts())
    folders = [] if own_group is None else [own_group, *own_group.parents]
    return {identity for folder in folders if (identity := identity_of(folder)) is not None}


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return what a folder has at every mount; None if the folder is gone."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def has_runs_alone(path: Path) -> bool:
    """Return whether all groups below a worker's group are groups of runs."""
    try:
        names = [entry.name for entry in os.scandir(path) if entry.is_dir()]
    except OSError:
        return False  # gone
    return all(_RUN_NAME.fullmatch(name) for name in names)
