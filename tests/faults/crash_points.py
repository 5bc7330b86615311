"""Start a process of Slicewise that falls, by SIGKILL or SIGSTOP, at given moments.

A file in FOLDER named after a run, or ``any``, holds a moment and a signal:
``before:publishing-succeeded SIGKILL``. The moments are before and after the commit of a step of
the table of states, before and after each exchange of a publication, and before and after the
commit that makes runs. The file is renamed before the process falls: the process falls once for
each file. In the place of a signal ``HOLD`` has the run's threads wait at the moment until the test
releases the threads, so that several runs of one process can be stopped together, each at its
moment.

An exchange is the exchange of a partition's folder, or the entry in the log of a partition in an
object store. Of a table, in which one transaction puts all partitions in place, the first exchange
is the move of the rows and the second the mark that records the move; after the second is after the
commit.

``python -m tests.faults.crash_points FOLDER celery -A slicewise_server worker …``: a killed process
starts anew, forked from this process, which has imported everything.
``python -m tests.faults.crash_points FOLDER`` reads commands of ``manage.py``, each a JSON list in
a line, and answers each command with its exit code.
"""

import functools
import importlib
import json
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import django
from django.conf import settings

from slicewise.runner.processes import die_with_parent

FELL, LET_GO = ".fell", ".go"
ANY = "any"
HOLD = "HOLD"
_LOOK_SECONDS = 0.02
_RUN_OF_STAGING = re.compile(r"_slicewise-staging-(\d+)-")


def arm(folder: Path, run: int | str, moment: str, number: signal.Signals | None) -> None:
    """Have the process fall at this moment of this run; without a signal the run is held there."""
    folder.mkdir(exist_ok=True)
    fresh = folder / f"{run}.new"
    fresh.write_text(f"{moment} {HOLD if number is None else number.name}")
    fresh.rename(folder / str(run))


def let_go(folder: Path, run: int) -> None:
    """Have a run that is held go on."""
    (folder / f"{run}{LET_GO}").touch()


def has_fallen(folder: Path, run: int | str) -> float | None:
    """Return the time of the fall, by the clock; None before the fall."""
    try:
        return (folder / f"{run}{FELL}").stat().st_mtime
    except FileNotFoundError:
        return None


class Moments:
    """The moments at which this process is to fall."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: set[str] = set()

    def reach(self, moment: str, runs: Iterable[int]) -> None:
        """Fall, if a file asks for a fall at this moment."""
        for name in (*map(str, runs), ANY):
            self._reach(moment, name)
            while name in self._held and not (self._folder / f"{name}{LET_GO}").exists():
                time.sleep(_LOOK_SECONDS)

    def _reach(self, moment: str, name: str) -> None:
        armed, fell = self._folder / name, self._folder / f"{name}{FELL}"
        try:
            armed_moment, number = armed.read_text().split()
            if armed_moment != moment:
                return
            if number == HOLD:
                self._held.add(name)
            os.rename(armed, fell)
        except FileNotFoundError:
            return
        os.utime(fell)
        if number != HOLD:
            # This thread takes the signal before it goes on. One sent to the process is left to any
            # of its threads, and this one would go on until that is scheduled.
            signal.pthread_kill(threading.get_ident(), signal.Signals[number])


class Commits:
    """A watch on transactions: the steps of each transaction, and its commit."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._here = threading.local()

    def watch(self) -> None:
        """Watch all transactions of this process from now on."""
        from django.db.backends.base.base import BaseDatabaseWrapper

        from assets_app.execution.queue import claims, transitions

        real_commit, real_rollback = BaseDatabaseWrapper.commit, BaseDatabaseWrapper.rollback

        def commit(wrapper: Any) -> None:
            moves, self._here.made = getattr(self._here, "made", []), []
            for step, runs in moves:
                self._moments.reach(f"before:{step}", runs)
            real_commit(wrapper)
            for step, runs in moves:
                self._moments.reach(f"after:{step}", runs)

        def rollback(wrapper: Any) -> None:
            self._here.made = []
            real_rollback(wrapper)

        for name, method in (("commit", commit), ("rollback", rollback)):
            setattr(BaseDatabaseWrapper, name, method)
        replace(transitions.move, lambda move: self._noting(move, self._one_moved))
        replace(transitions.move_all, lambda move: self._noting(move, self._many_moved))
        replace(claims.claim, lambda claim: self._noting(claim, lambda *_: ("made", [])))

    def _noting(
        self, real: Callable[..., Any], made_by: Callable[..., tuple[str, list[int]] | None]
    ) -> Callable[..., Any]:
        @functools.wraps(real)
        def noting(*arguments: Any, **fields: Any) -> Any:
            from django.db import connection

            outcome = real(*arguments, **fields)
            move = made_by(outcome, *arguments)
            if move is not None and connection.in_atomic_block:
                self._here.made = [*getattr(self._here, "made", []), move]
            elif move is not None:  # committed by itself
                self._moments.reach(f"after:{move[0]}", move[1])
            return outcome

        return noting

    @staticmethod
    def _one_moved(has_moved: bool, run: int, old: str, new: str) -> tuple[str, list[int]] | None:
        return (f"{old}-{new}", [run]) if has_moved else None

    @staticmethod
    def _many_moved(
        moved_runs: list[int], runs: Iterable[int], old: str, new: str
    ) -> tuple[str, list[int]] | None:
        return (f"{old}-{new}", moved_runs) if moved_runs else None


class Exchanges:
    """Before and after the first, second … exchange of a publication: ``before:exchange-1``."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._numbers: dict[int, Iterator[int]] = {}
        self._here = threading.local()

    def watch(self) -> None:
        """Watch all publications of this process from now on, for every kind of storage."""
        self._watch_folders()
        self._watch_logs()
        self._watch_tables()

    @contextmanager
    def _one(self, run: int) -> Iterator[None]:
        number = next(self._numbers.setdefault(run, count(1)))
        self._moments.reach(f"before:exchange-{number}", [run])
        yield
        self._moments.reach(f"after:exchange-{number}", [run])

    def _watch_folders(self) -> None:
        from slicewise.storage import exchange

        def watching(real: Callable[[Path, Path], bool]) -> Callable[[Path, Path], bool]:
            def put_in_place(source: Path, target: Path) -> bool:
                match = _RUN_OF_STAGING.search(str(source))
                if match is None:  # no publication: a file system is tried
                    return real(source, target)
                with self._one(int(match[1])):
                    return real(source, target)

            return put_in_place

        replace(exchange.put_in_place, watching)

    def _watch_logs(self) -> None:
        from slicewise.io.object_store import Store
        from slicewise.io.objects import ObjectStorage

        publish, create = ObjectStorage._publish, Store.create

        def publishing(storage: Any, path: str, writer: Any) -> Any:
            self._here.run = writer.run_id
            try:
                return publish(storage, path, writer)
            finally:
                self._here.run = None

        def creating(store: Any, path: str, content: bytes) -> bool:
            run = getattr(self._here, "run", None)
            if run is None:  # what takes a publication over
                return create(store, path, content)
            with self._one(run):
                return create(store, path, content)

        for cls, name, method in (
            (ObjectStorage, "_publish", publishing),
            (Store, "create", creating),
        ):
            setattr(cls, name, method)

    def _watch_tables(self) -> None:
        from slicewise.io.publishing_sql import Tables

        def reaching(name: str, before: str = "", after: str = "") -> None:
            real = getattr(Tables, name)

            def method(tables: Any, *arguments: Any, **options: Any) -> Any:
                runs = [int(tables._attempt.partition("-")[0])]
                self._moments.reach(before, runs)
                outcome = real(tables, *arguments, **options)
                self._moments.reach(after, runs)
                return outcome

            setattr(Tables, name, method)

        reaching("_insert", before="before:exchange-1", after="after:exchange-1")
        reaching("_mark", before="before:exchange-2")
        reaching("publish", after="after:exchange-2")


def replace(real: Callable[..., Any], replacement_of: Callable[[Any], Callable[..., Any]]) -> None:
    """Replace a function wherever a module has imported the function by name."""
    replacement, name = replacement_of(real), real.__name__
    places = [m for m in list(sys.modules.values()) if vars(m).get(name) is real]
    assert places, f"nobody has {name}"
    for place in places:
        setattr(place, name, replacement)


def main(folder: str, *program: str) -> None:
    """Import everything, then run the program, or the commands that come in."""
    django.setup()
    for module in settings.CELERY_IMPORTS:
        importlib.import_module(module)

    moments = Moments(Path(folder))
    Commits(moments).watch()
    Exchanges(moments).watch()
    if not program:
        for line in sys.stdin:
            sys.stdout.write(f"{_end_of(['manage.py', *json.loads(line)])}\n")
            sys.stdout.flush()
        return
    while (code := _end_of(list(program))) == -signal.SIGKILL:
        continue  # as its supervisor would
    sys.exit(abs(code))


def _end_of(words: list[str]) -> int:
    """Return the exit code of a child that runs a program."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        die_with_parent(parent)
        sys.argv = words
        _become(words[0])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _become(program: str) -> NoReturn:
    from celery.__main__ import main as celery
    from django.core.management import execute_from_command_line

    status = 0
    try:
        celery() if program == "celery" else execute_from_command_line(sys.argv)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        status = 1
    os._exit(status)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slicewise_server.settings")
    main(*sys.argv[1:])
