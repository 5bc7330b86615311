"""The control group below which a worker makes groups for runs: by a setting, or delegated.

A group belongs to a worker if the group was delegated to the worker: no other program changes the
groups below.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from slicewise.process.cgroup_mounts import Mount, cgroup_mounts, own_cgroup
from slicewise.process.cgroups import PROCESSES, Cgroup

CGROUP_SETTING = "SLICEWISE_RUN_CGROUP"
NONE = "none"
"""The value of the setting that says: no groups."""
CONTROLLERS = ("memory", "pids")
# systemd marks a group that it has delegated; the second name is readable by root alone.
_DELEGATION_MARKS = ("user.delegate", "trusted.delegate")
_WRITTEN_FILES = ("", PROCESSES, "cgroup.subtree_control")


class GroupFolderError(Exception):
    """The group that the setting names cannot be used."""


@dataclass(frozen=True, slots=True)
class GroupFolder:
    """The group below which runs get groups, or the reason why runs get none."""

    path: Path | None
    reason: str = ""
    is_by_setting: bool = False

    def sentence(self) -> str:
        """Return a sentence about the way in which memory and processes of runs are limited."""
        if self.path is not None:
            return f"the kernel limits each run by a control group below {self.path}"
        return f"the worker checks its runs ten times a second: {self.reason}"


def group_folder(
    setting: str, mountinfo: str | None = None, membership: str | None = None
) -> GroupFolder:
    """Return the group for the value of SLICEWISE_RUN_CGROUP, and without a value the group that
    systemd has delegated to this process. Raises GroupFolderError.

    ``mountinfo`` and ``membership`` are the files of `/proc` that are read by default.
    """
    if setting == NONE:
        return GroupFolder(None, f"{CGROUP_SETTING} is {NONE}")
    mounts = cgroup_mounts(mountinfo)
    if not setting:
        return _delegated(mounts, membership)
    path = Path(setting)
    if obstacle := obstacle_of(path, mounts):
        raise GroupFolderError(f"{CGROUP_SETTING} is {setting}, and {obstacle}.")
    return GroupFolder(path, is_by_setting=True)


def _delegated(mounts: list[Mount], membership: str | None) -> GroupFolder:
    own_group = own_cgroup(mounts, membership)
    if own_group is None:
        return GroupFolder(None, "this host has no control groups of version 2 for this process")
    if own_group in [mount.point for mount in mounts] or not _is_delegated(own_group.parent):
        return GroupFolder(None, f"no group was delegated, and {CGROUP_SETTING} is not set")
    if obstacle := obstacle_of(own_group.parent, mounts):
        return GroupFolder(None, f"of the delegated group {own_group.parent}: {obstacle}")
    return GroupFolder(own_group.parent)


def obstacle_of(path: Path, mounts: list[Mount]) -> str:
    """Return the reason why runs cannot have groups below a folder, as a clause; empty if runs
    can.
    """
    if not path.is_absolute() or not path.is_dir():
        return "the path is no folder: write the absolute path of a control group's folder"
    folder = path.resolve()
    if not any(folder.is_relative_to(mount.point) for mount in mounts):
        return "the folder is no control group of version 2: it is in no file system cgroup2"
    group = Cgroup(folder)
    try:
        missing = sorted(set(CONTROLLERS) - group.controllers())
        has_own_processes = group.has_own_processes()
    except OSError as error:
        return f"the group cannot be read: {error}"
    if missing:
        return (
            f"the group lacks the controllers {' and '.join(missing)}: enable them in"
            f" cgroup.subtree_control of the groups above; {' and '.join(CONTROLLERS)} are needed"
        )
    if not all(os.access(folder / name, os.W_OK) for name in _WRITTEN_FILES):
        return (
            f"the user {os.geteuid()} may not write in {folder}: give that user the folder,"
            " cgroup.procs and cgroup.subtree_control, on a file system that is mounted for writing"
        )
    if has_own_processes:
        return (
            "the group has processes of its own: the kernel gives controllers to the groups below"
            " only where all processes are in groups below"
        )
    return ""


def _is_delegated(path: Path) -> bool:
    for mark in _DELEGATION_MARKS:
        try:
            if os.getxattr(path, mark) == b"1":
                return True
        except OSError:
            continue  # not set, or not for this user to see
    return False
