"""The command `slicewise`.

`up`, `demo`, `doctor`, `exec` and `definitions check` need no Django; everything else is a
`manage.py` command, run with the settings of the stack that is running on the data folder.
"""

from __future__ import annotations

import gc
import os
import select
import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module

from slicewise_server.stack.errors import StackError

USAGE = """\
slicewise: partition-aware data assets

  slicewise up [--bundle NAME=FOLDER]… [--port PORT] [--slots N]
                                  start everything on this machine; Ctrl-C ends it
  slicewise demo [--once]         backfill the flights of 2013, print the result, serve the pages
  slicewise doctor [--json]       check this machine, with advice for missing parts
  slicewise exec -- COMMAND…      run a command with the settings of the running stack
  slicewise definitions check FOLDER
                                  print the declared assets or the errors; needs no server

  slicewise sync | assets … | partitions … | backfill … | runs …
                                  commands of the running stack; each has --help

  slicewise --version

The data folder is .slicewise/ in the project (for root, below /var/lib/slicewise); SLICEWISE_DATA
names another one. DATABASE_URL, REDIS_URL and SPARK_REMOTE name servers to use instead of
embedded ones.
"""
BAD_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code: 0, 1 for failed work, 2 for bad usage."""
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _leave_closed_pipes():
            raise
        return 1


def _leave_closed_pipes() -> bool:
    """Redirect output pipes without a reader, as after `head`; return whether any was.

    Otherwise Python writes to such a pipe again at exit, and prints an error.
    """
    printed = (sys.stdout.fileno(), sys.stderr.fileno())
    closed = [number for number in printed if _has_no_reader(number)]
    for number in closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return bool(closed)


def _has_no_reader(number: int) -> bool:
    look = select.poll()
    look.register(number, 0)
    return any(event & select.POLLERR for _, event in look.poll(0))


def _run(arguments: Sequence[str] | None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in {"help", "-h", "--help"}:
        print(USAGE, end="")
        return 0 if words else BAD_USAGE
    command, *rest = words
    if command in {"version", "--version", "-V"}:
        from importlib.metadata import version

        print(f"slicewise {version('slicewise')}")
        return 0
    command_function = OWN.get(command)
    try:
        if command_function is not None:
            return command_function(rest)
        return _show(words) if command in COMMANDS else _manage(words)
    except StackError as error:
        print(f"slicewise: {error}", file=sys.stderr)
        return 1


def _up(rest: list[str]) -> int:
    from slicewise_server.stack import up

    return up.main(rest)


def _demo(rest: list[str]) -> int:
    from slicewise_server.stack.demo.main import main as demo

    return demo(rest)


def _doctor(rest: list[str]) -> int:
    from slicewise_server.stack import doctor

    return doctor.main(rest)


def _exec(rest: list[str]) -> int:
    from slicewise_server.stack import up

    return up.execute(rest[1:] if rest[:1] == ["--"] else rest)


def _definitions(rest: list[str]) -> int:
    from slicewise_server.stack import definitions

    return definitions.main(rest)


def _manage(words: list[str]) -> int:
    """Run a Django command with the settings of the running stack."""
    import django
    from django.core.management import ManagementUtility, get_commands

    from slicewise_server.stack.running import find_settings

    try:
        find_settings(os.environ)
    except StackError:
        if words[0] in {*get_commands(), *OF_APPS}:
            raise
        return _refuse_unknown(words[0], get_commands())
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slicewise_server.settings")
    # Before the settings are loaded, Django lists no command of an app, and keeps its first list.
    django.setup()
    if words[0] not in get_commands():
        return _refuse_unknown(words[0], get_commands())
    ManagementUtility(["slicewise", *words]).execute()
    return 0


def _show(words: list[str]) -> int:
    """Run a command of `COMMANDS`; Django loads only the apps with tables."""
    from slicewise_server.stack.running import find_settings_for

    find_settings_for(words, os.environ)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "slicewise_server.settings")
    os.environ["SLICEWISE_COMMAND"] = words[0]
    import django

    # Imports leave no garbage; collecting would take a tenth of the time of a short command.
    gc.disable()
    django.setup()
    module = import_module(f"{COMMANDS[words[0]]}.management.commands.{words[0]}")
    gc.freeze()
    gc.enable()
    module.Command().run_from_argv(["slicewise", *words])
    return 0


def _refuse_unknown(word: str, django_commands: Iterable[str]) -> int:
    similar_commands = get_close_matches(word, [*OWN, *COMMANDS, *django_commands], n=1)
    question = f" Did you mean {similar_commands[0]!r}?" if similar_commands else ""
    print(
        f"slicewise: There is no command {word!r}.{question} See: slicewise --help", file=sys.stderr
    )
    return BAD_USAGE


# Commands of the running stack, by the app of each command.
COMMANDS = {
    "assets": "assets_app",
    "backfill": "backfills_app",
    "partitions": "assets_app",
    "runs": "assets_app",
    "sync": "assets_app",
}
# Django's commands that exist only when settings are loaded.
OF_APPS = ("changepassword", "createsuperuser")

OWN: dict[str, Callable[[list[str]], int]] = {
    "up": _up,
    "demo": _demo,
    "doctor": _doctor,
    "exec": _exec,
    "definitions": _definitions,
}

if __name__ == "__main__":
    sys.exit(main())
