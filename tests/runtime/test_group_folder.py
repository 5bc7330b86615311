"""The control group for runs: chosen by the setting or as delegated, refused with a sentence.

The folders here have the shape of those of the kernel.
"""

import os
from pathlib import Path

import pytest

from slicewise.process.cgroup_mounts import Mount, cgroup_mounts, own_cgroup
from slicewise.process.cgroups import Cgroup
from slicewise.runner.group_folder import GroupFolderError, group_folder
from slicewise.runner.processes import become
from slicewise.runner.run_groups import RunGroup
from slicewise.runner.run_limits import RunLimits
from tests.attacks.users import open_folder

HYBRID = """\
23 28 0:21 / /proc rw,nosuid shared:14 - proc proc rw
31 30 0:27 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw,nsdelegate
"""
UNIT = "0::/system.slice/slicewise.service/worker\n"


class Tree:
    """A hierarchy of groups in a folder, as the kernel shows one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        point = str(root).replace(" ", "\\040")
        self.mountinfo = f"30 23 0:26 / {point} rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"
        self.unit = root / "system.slice" / "slicewise.service"
        for path in (root, root / "system.slice", self.unit):
            self.add(path)
        self.worker = self.add(self.unit / "worker", processes="4711\n")

    def add(self, path: Path, *, controllers: str = "cpu memory pids", processes: str = "") -> Path:
        path.mkdir(parents=True, exist_ok=True)
        (path / "cgroup.controllers").write_text(f"{controllers}\n")
        (path / "cgroup.subtree_control").write_text("")
        (path / "cgroup.procs").write_text(processes)
        return path

    def delegate(self) -> None:
        os.setxattr(self.unit, "user.delegate", b"1")

    def delegated(self, membership: str = UNIT) -> tuple[Path | None, str]:
        folder = group_folder("", self.mountinfo, membership)
        return folder.path, folder.reason

    def refusal(self, setting: Path | str) -> str:
        with pytest.raises(GroupFolderError) as caught:
            group_folder(str(setting), self.mountinfo, UNIT)
        text = str(caught.value)
        assert text.startswith(f"SLICEWISE_RUN_CGROUP is {setting}, and ")
        return text


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "a cgroup")


def test_mounts_are_those_of_version_2() -> None:
    assert cgroup_mounts(HYBRID) == [Mount(Path("/sys/fs/cgroup/unified"), "/")]
    escaped = "30 23 0:26 /a\\134b /mnt/a\\040cgroup rw - cgroup2 none rw"
    assert cgroup_mounts(escaped) == [Mount(Path("/mnt/a cgroup"), "/a\\b")]
    assert cgroup_mounts("") == []


@pytest.mark.parametrize(
    ("root", "membership", "folder"),
    [
        ("/", UNIT, "/cg/system.slice/slicewise.service/worker"),
        ("/", "4:memory:/elsewhere\n0::/a\n", "/cg/a"),
        ("/", "0::/\n", "/cg"),
        ("/system.slice", UNIT, "/cg/slicewise.service/worker"),
        ("/other.slice", UNIT, None),
        ("/", "0::/../outside\n", None),
        ("/", "4:memory:/elsewhere\n", None),
    ],
)
def test_the_own_group_is_found_below_its_mount(
    root: str, membership: str, folder: str | None
) -> None:
    own = own_cgroup([Mount(Path("/cg"), root)], membership)
    assert own == (None if folder is None else Path(folder))


def test_a_delegated_unit_with_a_group_for_the_worker_is_used(tree: Tree) -> None:
    assert tree.delegated() == (None, "no group was delegated, and SLICEWISE_RUN_CGROUP is not set")
    tree.delegate()
    assert tree.delegated() == (tree.unit, "")


def test_a_delegated_unit_that_is_of_no_use_is_left_alone_with_the_reason(tree: Tree) -> None:
    tree.delegate()
    tree.add(tree.unit, processes="12\n")
    path, reason = tree.delegated()
    assert path is None
    assert str(tree.unit) in reason
    assert "has processes of its own" in reason
    tree.add(tree.unit, controllers="cpu pids")
    assert "lacks the controllers memory:" in tree.delegated()[1]


def test_without_version_2_runs_have_no_group(tree: Tree) -> None:
    folder = group_folder("", "", UNIT)
    assert folder.path is None
    assert folder.sentence() == (
        "the worker checks its runs ten times a second: this host has no control groups of"
        " version 2 for this process"
    )


def test_a_group_above_the_mount_is_never_used(tree: Tree) -> None:
    os.setxattr(tree.root.parent, "user.delegate", b"1")
    assert tree.delegated("0::/\n")[0] is None


def test_the_setting_names_a_group_or_none(tree: Tree) -> None:
    tree.delegate()
    runs = tree.add(tree.root / "runs")
    folder = group_folder(str(runs), tree.mountinfo, UNIT)
    assert (folder.path, folder.is_by_setting) == (runs, True)
    assert folder.sentence() == f"the kernel limits each run by a control group below {runs}"
    assert group_folder("none", tree.mountinfo, UNIT).path is None


def test_a_setting_that_is_of_no_use_is_refused_with_the_reason(tree: Tree, tmp_path: Path) -> None:
    assert "is no folder" in tree.refusal(tree.root / "absent")
    assert "is no folder" in tree.refusal("system.slice")
    assert "no control group of version 2" in tree.refusal(tmp_path)
    assert "has processes of its own" in tree.refusal(tree.worker)
    bare = tree.add(tree.root / "bare", controllers="")
    assert "lacks the controllers memory and pids:" in tree.refusal(bare)
    (bare / "cgroup.controllers").unlink()
    assert "the group cannot be read" in tree.refusal(bare)


def test_a_link_out_of_the_hierarchy_is_refused(tree: Tree, tmp_path: Path) -> None:
    outside = Tree(tmp_path / "outside").root
    (tree.root / "link").symlink_to(outside)
    assert "no control group of version 2" in tree.refusal(tree.root / "link")


def test_a_group_of_another_user_is_refused() -> None:
    with open_folder() as folder:
        tree = Tree(folder / "cgroup")
        paths = [tree.root, *tree.root.rglob("*")]
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            assert ": give that user the folder" in refusal_for_another(tree)
        finally:
            for path in paths:
                path.chmod(0o755 if path.is_dir() else 0o644)


def refusal_for_another(tree: Tree) -> str:
    """The refusal that a user gets who does not own the tree."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if os.geteuid() == 0:
                become((65_533, 65_533))
            os.write(writing, tree.refusal(tree.unit).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return text


@pytest.fixture
def group(tmp_path: Path) -> Cgroup:
    return Cgroup(tmp_path)


def reached(group: Cgroup, limits: RunLimits, **files: str) -> str | None:
    """The sentence about the limit, given the kernel's files."""
    for name, text in files.items():
        (group.path / name.replace("_", ".")).write_text(text)
    return RunGroup(group, limits, lambda _: None).excess()


def test_memory_is_exceeded_where_the_limit_of_the_run_was_reached(group: Cgroup) -> None:
    limits = RunLimits(memory=2**30, memory_by="memory= of the asset")
    assert reached(group, limits) is None
    assert reached(group, limits, memory_events="low 0\nmax 7\noom 1\noom_kill 0\n") is None
    above = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 3\noom_group_kill 1\n"
    assert reached(group, limits, memory_events=above) is None
    said = reached(group, limits, memory_events="max 7\noom 1\noom_kill 3\n")
    assert said == (
        "The run asked for more memory than it may have, and its limit is 1 GiB (memory= of the"
        " asset); the run was stopped."
    )


def test_processes_are_exceeded_where_the_limit_of_the_run_was_reached(group: Cgroup) -> None:
    limits = RunLimits(processes=60)
    assert reached(group, limits, pids_events="max 0\n", pids_current="60\n") is None
    assert reached(group, limits, pids_events="max 1\n", pids_current="20\n") is None
    said = (
        "The run had 60 processes and threads, and its limit is 60 (setting"
        " SLICEWISE_RUN_PROCESSES of the server); the run was stopped."
    )
    assert reached(group, limits, pids_current="60\n") == said
    assert reached(group, limits, pids_current="1\n", pids_peak="60\n") == said
    assert reached(group, RunLimits(), pids_current="60\n") is None


def test_a_run_in_a_group_is_not_looked_at() -> None:
    limits = RunLimits(memory=1, processes=1)
    assert limits.needs_memory_checks
    assert limits.excess(os.getpid()) is not None
    in_group = RunLimits.of({**limits.to_json(), "in_group": True})
    assert not in_group.needs_memory_checks
    assert in_group.excess(os.getpid()) is None
