"""A run looks into the processes of other runs and of the warm parent, under its own user."""

import json
import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

from slicewise.runner.parent_client import WarmParent
from tests.attacks.process_inspection import REFUSED, SPY, read_pid, spied
from tests.attacks.users import FIRST_USER, GROUP, environment, open_folder, other_user
from tests.reachable_python import reaching_python
from tests.runtime.runs import Runs


def test_nobody_looks_into_another_run_or_the_warm_parent(runs: Runs) -> None:
    user, answers = spied(runs)
    assert user != 0
    if (expected := other_user()) is not None:
        assert user == expected[0]
    assert answers == {"victim": REFUSED, "parent": REFUSED}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts what becomes others")
def test_root_does_not_run_files_that_user_code_may_write(tmp_path: Path) -> None:
    note = "import os; open('{}/was-{}', 'a').write(str(os.getuid()))\n"
    with open_folder() as folder:
        own_base = folder / "own"
        site_packages = own_base / Path(site.getusersitepackages()).relative_to(
            site.USER_BASE or "/"
        )
        site_packages.mkdir(parents=True)
        (own_base / "sitecustomize.py").write_text(note.format(folder, "sitecustomize"))
        (site_packages / "a.pth").write_text(note.format(folder, "pth"))
        (own_base / "theirs.py").write_text("")
        env = environment() | {
            "PYTHONPATH": str(own_base), "HOME": str(own_base),
            "PYTHONUSERBASE": str(own_base), "OWN": "a",
        }  # fmt: skip
        parent = WarmParent(env=env, cache=folder / "cache", user=other_user())
        parent.start()
        try:
            spied_runs = Runs(parent, tmp_path)
            spied_runs.define("""
                @asset()
                def own():
                    import theirs
                    print(theirs.__file__, os.environ["OWN"], os.environ["HOME"])
            """)
            assert spied_runs.run("own").log == f"{own_base}/theirs.py a {own_base}\n"
        finally:
            parent.close()
        assert list(folder.glob("was-*")) == []


# As where a worker is not root: parent and runners have its user.
UNDER_ONE_USER = """
import json, os, sys
from pathlib import Path
from slicewise.runner.parent_client import WarmParent
from tests.attacks.process_inspection import spied
from tests.attacks.users import environment
from tests.runtime.runs import Runs
folder, user = Path(sys.argv[1]), int(sys.argv[2])
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
os.umask(0o077)
parent = WarmParent(env=environment(), cache=folder / "cache")
print(json.dumps(spied(Runs(parent, folder))))
parent.close()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="shown by the test above for who is not root")
def test_nor_where_a_worker_that_is_not_root_gives_all_its_own_user(tmp_path: Path) -> None:
    command = [*reaching_python(tmp_path), sys.executable, "-c", UNDER_ONE_USER]
    with open_folder() as folder:
        os.chown(folder, FIRST_USER, GROUP)
        result = subprocess.run(
            [*command, str(folder), str(FIRST_USER)],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout.splitlines()[-1]) == [
        FIRST_USER,
        {"victim": REFUSED, "parent": REFUSED},
    ]


def test_the_warm_parent_has_no_right_but_over_users(runs: Runs) -> None:
    if other_user() is None:
        pytest.skip("who is not root has no rights to give up")
    with open(f"/proc/{runs.parent.pid}/status") as status:
        facts = dict(line.rstrip("\n").split(":\t") for line in status if ":\t" in line)
    over_users = f"{1 << 5 | 1 << 6 | 1 << 7:016x}"
    sets = {name: facts[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")}
    no_capability = f"{0:016x}"
    assert sets == {
        "CapPrm": over_users,
        "CapEff": over_users,
        "CapBnd": over_users,
        "CapInh": no_capability,
        "CapAmb": no_capability,
    }
    assert facts["NoNewPrivs"] == "1"


def test_a_run_has_no_right_of_root_and_gets_none(runs: Runs) -> None:
    runs.define("""
        @asset()
        def climber():
            print([os.getresuid(), os.getresgid(), os.getgroups()])
            for change in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0])):
                try:
                    change()
                    print("became root")
                except PermissionError:
                    print("refused")
            with open("/proc/self/status") as status:
                print([line.split()[1] for line in status if line.startswith(("CapEff", "CapPrm"))])
    """)
    log = runs.run("climber").log
    assert "became root" not in log
    assert log.count("refused") == 3
    assert str([f"{0:016x}"] * 2) in log or other_user() is None
    if (user := other_user()) is not None:
        assert str([(user[0],) * 3, (user[1],) * 3, []]) in log


def test_a_run_ends_with_its_parent_though_it_became_another_user(runs: Runs) -> None:
    runs.define(SPY)
    _, messages = read_pid(runs.launch("victim"))
    runs.parent.close()
    assert list(messages)[-1]["signal"] == 9
