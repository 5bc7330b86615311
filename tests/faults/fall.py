"""Starts a process of Slicewise that falls, by SIGKILL or SIGSTOP, at the moments it is told.

A file in FOLDER named after a run, or ``any``, holds a moment and a signal:
``before:publishing-succeeded SIGKILL``. The moments are before and after the commit of a step of
the table of states, before and after each exchange of a partition's folder, and before and after
the commit that makes runs. The file is renamed before the process falls: it falls once for each.

``python -m tests.faults.fall FOLDER celery -A config worker …``: one that was killed is started
anew, forked from here, where everything is imported already. ``python -m tests.faults.fall FOLDER``
reads commands of ``manage.py``, each a JSON list in a line, and answers each with its exit code.
"""

import functools
import importlib
import json
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import django
from django.conf import settings

from slicewise.runner.processes import die_with_parent

FELL = ".fell"
ANY = "any"
_RUN_OF_STAGING = re.compile(r"_slicewise-staging-(\d+)-")


def arm(folder: Path, run: int | str, moment: str, number: signal.Signals) -> None:
    """Have the process fall at this moment of this run."""
    folder.mkdir(exist_ok=True)
    fresh = folder / f"{run}.new"
    fresh.write_text(f"{moment} {number.name}")
    fresh.rename(folder / str(run))


def has_fallen(folder: Path, run: int | str) -> float | None:
    """When it fell, by the clock; None if it has not yet."""
    try:
        return (folder / f"{run}{FELL}").stat().st_mtime
    except FileNotFoundError:
        return None


class Moments:
    """The moments at which this process is to fall."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def reach(self, moment: str, runs: Iterable[int]) -> None:
        """Fall, if that was asked for."""
        for name in (*map(str, runs), ANY):
            armed, fell = self._folder / name, self._folder / f"{name}{FELL}"
            try:
                asked, number = armed.read_text().split()
                if asked != moment:
                    continue
                os.rename(armed, fell)
            except FileNotFoundError:
                continue
            os.utime(fell)
            os.kill(os.getpid(), signal.Signals[number])


class Commits:
    """Sees which steps each transaction makes, and when it is committed."""

    def __init__(self, moments: Moments) -> None:
        self._moments = moments
        self._here = threading.local()

    def watch(self) -> None:
        """From now on, in this process."""
        from django.db.backends.base.base import BaseDatabaseWrapper

        from assets_app.execution import claims, transitions

        real_commit, real_rollback = BaseDatabaseWrapper.commit, BaseDatabaseWrapper.rollback

        def commit(wrapper: Any) -> None:
            made, self._here.made = getattr(self._here, "made", []), []
            for step, runs in made:
                self._moments.reach(f"before:{step}", runs)
            real_commit(wrapper)
            for step, runs in made:
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

            done = real(*arguments, **fields)
            made = made_by(done, *arguments)
            if made is not None and connection.in_atomic_block:
                self._here.made = [*getattr(self._here, "made", []), made]
            elif made is not None:  # committed by itself
                self._moments.reach(f"after:{made[0]}", made[1])
            return done

        return noting

    @staticmethod
    def _one_moved(done: bool, run: int, old: str, new: str) -> tuple[str, list[int]] | None:
        return (f"{old}-{new}", [run]) if done else None

    @staticmethod
    def _many_moved(
        done: list[int], runs: Iterable[int], old: str, new: str
    ) -> tuple[str, list[int]] | None:
        return (f"{old}-{new}", done) if done else None


def watch_exchanges(moments: Moments) -> None:
    """Before and after the first, second … exchange of a publication: ``before:exchange-1``."""
    from slicewise.storage import exchange

    numbers: dict[int, Iterator[int]] = {}

    def watching(real: Callable[[Path, Path], bool]) -> Callable[[Path, Path], bool]:
        def put_in_place(source: Path, target: Path) -> bool:
            found = _RUN_OF_STAGING.search(str(source))
            assert found is not None, f"what is exchanged lies in a staging folder, not {source}"
            run = int(found[1])
            number = next(numbers.setdefault(run, count(1)))
            moments.reach(f"before:exchange-{number}", [run])
            was_there = real(source, target)
            moments.reach(f"after:exchange-{number}", [run])
            return was_there

        return put_in_place

    replace(exchange.put_in_place, watching)


def replace(real: Callable[..., Any], made: Callable[[Any], Callable[..., Any]]) -> None:
    """Put something in the place of a function, wherever it was imported by name."""
    replacement, name = made(real), real.__name__
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
    watch_exchanges(moments)
    if not program:
        for line in sys.stdin:
            sys.stdout.write(f"{_end_of(['manage.py', *json.loads(line)])}\n")
            sys.stdout.flush()
        return
    while (code := _end_of(list(program))) == -signal.SIGKILL:
        continue  # as its supervisor would
    sys.exit(abs(code))


def _end_of(words: list[str]) -> int:
    """The exit code of a child that runs a program."""
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
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    main(*sys.argv[1:])
