"""Which control groups are those of workers, and not of other programs."""

import os
import re
from pathlib import Path

from slicewise.process.cgroup_mounts import cgroup_mounts, own_cgroup
from slicewise.process.cgroups import Cgroup

# No name that a unit of systemd, or the group of a service, has.
_WORKER_NAME = re.compile(r"run-worker\.[0-9]+\.[0-9a-f]{8}")
# Of earlier versions. Another program may have such a name.
_OLD_WORKER_NAME = re.compile(r"slicewise-[0-9]+-[0-9a-f]{8}")
_RUN_NAME = re.compile(r"run-.+-[0-9]+")


def is_worker_group(path: Path) -> bool:
    """Return whether a group was made by a worker; by a worker of an earlier version only once the
    group has no process.
    """
    if _OLD_WORKER_NAME.fullmatch(path.name):
        return Cgroup(path).counts("cgroup.events").get("populated") == 0
    return bool(_WORKER_NAME.fullmatch(path.name))


def groups_around_this_process() -> set[tuple[int, int]]:
    """Return which folders are this process's group and the groups above."""
    own_group = own_cgroup(cgroup_mounts())
    folders = [] if own_group is None else [own_group, *own_group.parents]
    return {identity for folder in folders if (identity := identity_of(folder)) is not None}


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return the identity of a folder, equal at every mount; None if the folder is gone."""
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
