"""Where control groups of version 2 are mounted, and the group of this process."""

import os
from pathlib import Path
from typing import NamedTuple

_MOUNTS = Path("/proc/self/mountinfo")
_GROUPS = Path("/proc/self/cgroup")


class Mount(NamedTuple):
    """A mount point of the hierarchy, as a whole or from a group on."""

    point: Path
    root: str
    """The path of the mounted group in the hierarchy, "/" for all."""


def cgroup_mounts(mountinfo: str | None = None) -> list[Mount]:
    """Return the mounts of `cgroup2` that a process sees, given the `mountinfo` of the process, by
    default of this process.
    """
    lines = (_MOUNTS.read_text() if mountinfo is None else mountinfo).splitlines()
    mounts = []
    for line in lines:
        mount_fields, _, kind = line.partition(" - ")
        if kind.split()[:1] == ["cgroup2"]:
            root, point = mount_fields.split()[3:5]
            mounts.append(Mount(Path(_unescaped(point)), _unescaped(root)))
    return mounts


def own_cgroup(mounts: list[Mount], membership: str | None = None) -> Path | None:
    """Return the folder of a process's group, given the file `cgroup` of the process in `/proc`, by
    default of this process; None where no mount shows the group.
    """
    lines = (_GROUPS.read_text() if membership is None else membership).splitlines()
    for line in lines:
        hierarchy, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if hierarchy != "0" or controllers:
            continue  # of version 1
        for mount in mounts:
            relative = os.path.relpath(group, mount.root)
            if ".." not in (*Path(relative).parts, *Path(group).parts):
                return mount.point / relative
    return None


def _unescaped(text: str) -> str:
    """Return a path of `mountinfo`, in which the kernel writes blanks as octal numbers."""
    for character in " \t\n\\":
        text = text.replace(f"\\{ord(character):03o}", character)
    return text
