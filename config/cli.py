"""The command `slicewise`.

`up`, `demo`, `doctor`, `exec` and `definitions check` need no Django; everything else is a
`manage.py` command, run with the settings of the stack that is running on the data folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

USAGE = """\
slicewise: partition-aware data assets

  slicewise up [--bundle NAME=FOLDER]… [--port PORT] [--slots N]
                                  start everything on this machine; Ctrl-C ends it
  slicewise demo [--once]         backfill the flights of 2013, show what was made, serve the pages
  slicewise doctor [--json]       what is there, and what to do about what is not
  slicewise exec -- COMMAND…      run a command with the settings of the running stack
  slicewise definitions check FOLDER
                                  what a bundle declares, or its errors; needs no server

  slicewise sync | assets … | partitions … | backfill … | runs …
                                  commands of the running stack; each has --help

The data folder is .slicewise/ in the project (for root, below /var/lib/slicewise); SLICEWISE_DATA
names another one. DATABASE_URL, REDIS_URL and SPARK_REMOTE name servers to use instead of
embedded ones.
"""
BAD_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0, 1 for failed work, 2 for bad usage."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in {"help", "-h", "--help"}:
        print(USAGE, end="")
        return 0 if words else BAD_USAGE
    command, *rest = words
    from config.stack.errors import StackError

    own = OWN.get(command)
    try:
        return own(rest) if own else _manage(words)
    except StackError as error:
        print(f"slicewise: {error}", file=sys.stderr)
        return 1


def _up(rest: list[str]) -> int:
    from config import up

    return up.main(rest)


def _demo(rest: list[str]) -> int:
    from config.demo.main import main as demo

    return demo(rest)


def _doctor(rest: list[str]) -> int:
    from config import doctor

    return doctor.main(rest)


def _exec(rest: list[str]) -> int:
    from config import up

    return up.execute(rest[1:] if rest[:1] == ["--"] else rest)


def _definitions(rest: list[str]) -> int:
    from config import definitions

    return definitions.main(rest)


def _manage(words: list[str]) -> int:
    from config import up

    up.find_settings(os.environ)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.core.management import ManagementUtility

    ManagementUtility(["slicewise", *words]).execute()
    return 0


OWN: dict[str, Callable[[list[str]], int]] = {
    "up": _up,
    "demo": _demo,
    "doctor": _doctor,
    "exec": _exec,
    "definitions": _definitions,
}

if __name__ == "__main__":
    sys.exit(main())
