"""Control groups for workers of tests, on the kernel's own files."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from slicewise.process.cgroup_mounts import cgroup_mounts
from slicewise.process.cgroups import Cgroup
from slicewise.runner.parent_client import WarmParent
from slicewise.runner.run_groups import RunGroups
from tests.attacks.users import environment, open_folder, other_user
from tests.runtime.runs import Runs
from tests.waiting import wait_until

MOUNTS = [mount.point for mount in cgroup_mounts() if os.access(mount.point, os.W_OK)]


def has_controllers() -> bool:
    """Whether the kernel limits groups below the mount."""
    enabled = [Path(mount, "cgroup.subtree_control").read_text().split() for mount in MOUNTS]
    return bool(enabled) and {"memory", "pids"} <= set(enabled[0])


@contextmanager
def workers_folder() -> Iterator[Path]:
    """A group for workers, as it is delegated to them."""
    path = MOUNTS[0] / f"slicewise-test-{uuid4().hex[:8]}"
    path.mkdir()
    try:
        yield path
    finally:
        assert wait_until(Cgroup(path).remove)


@contextmanager
def started_groups(folder: Path, controllers: Sequence[str]) -> Iterator[RunGroups]:
    """The groups of a worker."""
    groups = RunGroups(folder, controllers)
    groups.start()
    try:
        yield groups
    finally:
        groups.close()


@contextmanager
def runs_in_groups(groups: RunGroups, folder: Path) -> Iterator[Runs]:
    """Runs of which each has a group and, for root, another user than the worker."""
    with open_folder() as open_to_all:
        parent = WarmParent(
            env=environment(), cache=open_to_all / "cache", user=other_user(), groups=groups
        )
        parent.start()
        try:
            yield Runs(parent, folder)
        finally:
            parent.close()


def groups_below(folder: Path) -> list[str]:
    """The names of groups at any depth."""
    return [name for _, names, _ in os.walk(folder) for name in names]
