"""Fixtures of all tests: real servers (`slicewise_server.stack.pytest_plugin`), one whole stack."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from weakref import WeakValueDictionary

import pytest
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.db.backends.base.operations import BaseDatabaseOperations
from hypothesis import HealthCheck, settings
from whitenoise.base import WhiteNoise
from whitenoise.responders import StaticFile
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from slicewise_server.stack.process import scrubbed
from slicewise_server.stack.pytest_plugin import BRIEF, OURS
from slicewise_server.stack.services import Services
from slicewise_server.stack.stack import Stack
from slicewise_server.static_collection import collect_static_files
from tests import spark_classes
from tests.flushing import flush
from tests.folders import reachable_folder

PROJECT = Path(__file__).resolve().parent.parent
# Helpers are no test modules: without this, a failed assertion of a helper would show no values.
_names = (f"tests.{entry.stem}" for entry in (PROJECT / "tests").iterdir())
pytest.register_assert_rewrite(*(name for name in _names if name not in sys.modules))
# Tests that break, load or time a whole stack, and those with Spark servers of their own: each of
# the two stays in one process, so that no server is started twice.
STACK = ("tests/e2e/", "tests/faults/")
SPARK = (
    *("tests/runtime/", "tests/stack/", "tests/docs/test_samples.py"),
    "tests/execution/test_engines.py",
    "tests/sdk/test_plugin_storage.py",
)
# Files of few tests that take long: the last of all tests are to be short ones.
LONG = (
    *("tests/simulation/", "tests/attacks/"),
    *("tests/pages/test_every_page.py", "tests/pages/test_graph"),
)
SERVER_FIXTURES = ("services", "db", "transactional_db", "live_server", "stack", "folder")
# These start servers of their own, or processes that live for long.
WITH_SERVERS = (*STACK, "tests/runtime/", "tests/attacks/", "tests/docs/test_samples.py")

_CLASSES = pytest.StashKey[subprocess.Popen[bytes] | None]()

# An example that takes long says something of the machine, and nothing of what is tested. The same
# commit has the same result: `--hypothesis-profile=search` takes examples that no run has tried.
for _profile, _is_same in {"any machine": True, "search": False}.items():
    settings.register_profile(
        _profile,
        deadline=None,
        derandomize=_is_same,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("any machine")


class OneAfterTheOther(LoadScopeScheduling):  # type: ignore[misc]
    """A scheduler that shares tests by file, and keeps tests with heavy servers together."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        if file.startswith(STACK):
            return "stack"
        return "spark" if file.startswith(SPARK) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneAfterTheOther:
    """Use that scheduler, with files in the order of the collection.

    Groups by mark do not work: pytest 9.2 reads no id that pytest-xdist 3.8 writes.
    """
    config.option.loadscopereorder = False
    return OneAfterTheOther(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make check`."""
    parser.addoption(
        "--without-servers", action="store_true", help="only tests that need no server"
    )


def pytest_xdist_node_collection_finished(node: WorkerController, ids: list[str]) -> None:
    """Let a process create the archive of Spark's classes while the first tests run."""
    stash = node.config.stash
    if _CLASSES not in stash and OURS in os.environ and any(map(_uses_spark, ids)):
        stash[_CLASSES] = spark_classes.start()


def _uses_spark(nodeid: str) -> bool:
    return nodeid.startswith((*STACK, *SPARK))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End that process, if it has not ended."""
    if creation := session.config.stash.get(_CLASSES, None):
        creation.terminate()
        creation.wait()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort tests with heavy servers first, then long tests, so that short tests fill the rest of
    the time.

    With the option, deselect the tests that need a server.
    """
    if config.getoption("without_servers"):
        by_need: dict[bool, list[pytest.Item]] = {True: [], False: []}
        for item in items:
            by_need[needs_server(item)].append(item)
        config.hook.pytest_deselected(items=by_need[True])
        items[:] = by_need[False]
    items.sort(key=_turn)


def pytest_collection() -> None:
    """Collect tests without looking for garbage, which takes half of the time: there is none."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Let garbage collection leave out what is loaded by now, and look for garbage less often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def _turn(item: pytest.Item) -> int:
    kinds = (STACK, SPARK, LONG)
    return next((at for at, kind in enumerate(kinds) if item.nodeid.startswith(kind)), len(kinds))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the whole stack after the last test that uses it: its processes would take time from
    all tests after it.
    """
    is_last = nextitem is None or not nextitem.nodeid.startswith(STACK)
    if item.nodeid.startswith(STACK) and is_last:
        _stop_stacks()


def needs_server(item: pytest.Item) -> bool:
    """Return whether a test starts a server, or uses a server that other tests share."""
    names = set(getattr(item, "fixturenames", ()))
    is_marked = any(item.get_closest_marker(name) for name in ("django_db", "slow", "fault"))
    return (
        is_marked or not names.isdisjoint(SERVER_FIXTURES) or item.nodeid.startswith(WITH_SERVERS)
    )


@pytest.fixture(autouse=True)
def no_key_class(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the key classes of other tests, as a server does, for a test with a database.

    A server never has a key class of a bundle. Other tests of the process declare key classes of
    the same names.
    """
    if "db" in request.fixturenames or "transactional_db" in request.fixturenames:
        monkeypatch.setattr("slicewise.keys.key_types._declared", WeakValueDictionary())


@pytest.fixture(autouse=True)
def gateways_heard_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count a gateway that a test has put on record as alive for as long as the test lasts.

    A gateway sends no heartbeat in most tests, and a test may take more than 10 s on a busy
    machine. Tests of silent gateways make the gateways silent for a minute.
    """
    is_marked = request.node.get_closest_marker("django_db") is not None
    if is_marked or {"db", "transactional_db"} & set(request.fixturenames):
        for module in (
            "assets_app.execution.queue.dispatch",
            "assets_app.models.gateways",
            "backfills_app.services.request.estimates",
            "slicewise_server.events.feed",
        ):
            monkeypatch.setattr(f"{module}.GATEWAY_SILENCE", timedelta(seconds=50))


@pytest.fixture(scope="session", autouse=True)
def flushes_as_owner() -> Iterator[None]:
    """Let Django remove rows between tests as their owner: no other may shorten the audit trail."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseDatabaseOperations, "execute_sql_flush", flush)
        yield


@pytest.fixture(scope="session", autouse=True)
def static_files() -> None:
    """Collect static files under hashed names, which each page writes; the web server makes its
    own.
    """
    # Django's own server of tests would look for hashed names among the sources.
    StaticFilesHandler._should_handle = lambda self, path: False  # type: ignore[method-assign]
    collect_static_files()
    _list_static_files_once()


def _list_static_files_once() -> None:
    """Let the clients of the tests share the list of static files: each client would list the
    hundreds of files again, which takes longer than most requests.
    """
    list_files = WhiteNoise.update_files_dictionary
    listed: dict[tuple[str, str], dict[str, StaticFile]] = {}

    def list_once(self: WhiteNoise, root: str, prefix: str) -> None:
        if (root, prefix) not in listed:
            list_files(self, root, prefix)
            listed[root, prefix] = dict(self.files)
        self.files.update(listed[root, prefix])

    WhiteNoise.update_files_dictionary = list_once


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    services: Services, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """Start PostgreSQL: pytest-django asks for this fixture before it makes the test database."""


@pytest.fixture(scope="session")
def data_folder() -> Iterator[Path]:
    """Make a folder for a stack of the tests, which PostgreSQL's user can reach even below root."""
    with reachable_folder("slicewise-stack-") as folder:
        yield folder


_started_stacks: list[Stack] = []


def _stop_stacks() -> None:
    while _started_stacks:
        _started_stacks.pop().stop()


@pytest.fixture(scope="session")
def stack(data_folder: Path) -> Iterator[Stack]:
    """Start a whole stack, as separate processes, on the flights example and the trials.

    The trials are a copy below `stack.data`, which a test may change, and so are the assets of the
    tests of faults; the bundle `hostile` is empty. The stack shares nothing with the servers of
    other tests. Assets of the stack lie below `stack.data / "lake"`.
    """
    trials = shutil.copytree(PROJECT / "tests" / "e2e" / "trials", data_folder / "trials")
    faults = shutil.copytree(PROJECT / "tests" / "faults" / "bundle", data_folder / "faults")
    hostile = data_folder / "hostile"
    hostile.mkdir()
    connections = data_folder / "connections.json"
    connections.write_text("{}")
    examples = PROJECT / "examples" / "nyc_flights"
    whole_stack = Stack(
        data_folder,
        bundles={
            "nyc_flights": examples,
            "trials": trials,
            "faults": faults,
            "hostile": hostile,
        },
        env={
            **scrubbed(os.environ),
            "LAKE": str(data_folder / "lake"),
            **BRIEF,
            "SLICEWISE_RUNNER_ENV": f"LAKE,{BRIEF['SLICEWISE_RUNNER_ENV']}",
            "SLICEWISE_CONNECTIONS": str(connections),
            "SPARK_MASTER": "local[1]",
        },
    )
    _started_stacks.append(whole_stack)
    whole_stack.start()
    yield whole_stack
    _stop_stacks()
