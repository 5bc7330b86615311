"""`slicewise up` and `slicewise exec`: a stack for people, and commands beside it."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from slicewise_server.stack.code_account import default_account
from slicewise_server.stack.code_environment import code_environment, with_code_account
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import PROJECT, default_folder
from slicewise_server.stack.protection import unprotected
from slicewise_server.stack.running import find_settings
from slicewise_server.stack.services import Services
from slicewise_server.stack.stack import ADMIN, CODE_SETTINGS, Stack

EXAMPLE = PROJECT / "examples" / "nyc_flights"
PORT = 8000
BAD_USAGE = 2


def main(arguments: Sequence[str]) -> int:
    """Start everything, print the address of the pages, and wait for Ctrl-C or SIGTERM."""
    options = _parser().parse_args(arguments)
    stack = embedded(dict(options.bundle), slots=options.slots, port=options.port)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: _interrupt(ended))
    try:
        print(f"Starting Slicewise on {stack.data} …", flush=True)
        stack.start()
        announce(stack)
        return _stay(stack, ended)
    except KeyboardInterrupt:
        return 0
    finally:
        stack.stop()


def embedded(
    bundles: dict[str, Path] | None = None, *, slots: int = 3, port: int | None = None
) -> Stack:
    """Return the stack of this project's data folder, with the flights example, or with
    `bundles`.

    A given `port` is claimed or refused; without `port` the port is 8000, or another port if 8000
    is taken. LAKE, the folder of the example's data, is below the data folder unless the
    environment has LAKE. A stack of root runs code of assets as another user, if that user can
    reach all needed files.
    """
    data = default_folder(os.environ)
    env, code = code_environment(os.environ, data)
    names = [name for name in env.get("SLICEWISE_RUNNER_ENV", "").split(",") if name]
    env["SLICEWISE_RUNNER_ENV"] = ",".join(dict.fromkeys([*names, "LAKE"]))
    return Stack(
        data,
        bundles or _named_bundles(env),
        env,
        slots,
        port or PORT,
        port_is_fixed=port is not None,
        code=code,
    )


def announce(stack: Stack) -> None:
    """Print the address of the pages and the way to sign in.

    The password is printed at the first start, and to terminals: later output may go to a log that
    other people read.
    """
    moved = stack.taken_port
    folder = stack.services.folder
    is_shown = sys.stdout.isatty() or not folder.state().get("password_printed")
    password = stack.admin_password if is_shown else f"in {folder.path / 'credentials.json'}"
    folder.note(password_printed=True)
    print(
        "" if moved is None else f"\nPort {moved} is taken: the pages are on another one.",
        f"\nSlicewise is at {stack.web_url}\n"
        f"  sign in as  {ADMIN}\n"
        f"  password    {password}\n"
        f"  logs        {stack.services.folder.logs}\n"
        f"{_warning(stack)}"
        "Ctrl-C ends it.",
        sep="",
        flush=True,
    )


def _warning(stack: Stack) -> str:
    """Return a paragraph about data in reach of the code of assets."""
    env = stack.services.env
    text = unprotected(env, stack.code or default_account(env, stack.data))
    return "\n" + textwrap.fill(text, 88) + "\n\n" if text else ""


def execute(command: Sequence[str]) -> int:
    """Run a command with the running stack's settings, or with servers started for the command."""
    if not command:
        print("usage: slicewise exec -- COMMAND…", file=sys.stderr)
        return BAD_USAGE
    try:
        find_settings(os.environ)
    except StackError:
        data = default_folder(os.environ)
        env = with_code_account(os.environ, data)
        services = Services(data, env)
        code_user = {name: env[name] for name in CODE_SETTINGS if name in env}
        try:
            services.start()
            return _run(command, {**services.environment(), **code_user})
        finally:
            services.stop()
    return _run(command, {})


def _run(command: Sequence[str], more: dict[str, str]) -> int:
    try:
        return subprocess.run(command, env={**os.environ, **more}, check=False).returncode
    except FileNotFoundError:
        raise StackError(f"There is no command {command[0]!r}.") from None


def _interrupt(ended: threading.Event) -> None:
    """End the wait, or the start while the stack is starting."""
    if ended.is_set():
        return
    ended.set()
    raise KeyboardInterrupt


def _stay(stack: Stack, ended: threading.Event) -> int:
    while not ended.wait(timeout=1):
        if not stack.services.supervisor.is_alive():
            raise StackError(f"The supervisor was killed. Logs: {stack.services.folder.logs}")
    return 0


def _named_bundles(env: MutableMapping[str, str]) -> dict[str, Path]:
    named = env.get("SLICEWISE_BUNDLES", "")
    if not named:
        return {EXAMPLE.name: EXAMPLE}
    try:
        return dict(_bundle(text) for text in named.split(","))
    except argparse.ArgumentTypeError as error:
        raise StackError(f"SLICEWISE_BUNDLES: {error}.") from None


def _bundle(text: str) -> tuple[str, Path]:
    name, separator, folder = text.partition("=")
    if not separator or not name or not Path(folder).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FOLDER with a folder that exists")
    return name, Path(folder).resolve()


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 65_536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, a whole number from 1 to 65535")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slicewise up", description=main.__doc__)
    parser.add_argument(
        "--bundle",
        action="append",
        default=[],
        type=_bundle,
        metavar="NAME=FOLDER",
        help="a folder of definition files; repeatable",
    )
    parser.add_argument(
        "--port",
        type=_port,
        metavar="PORT",
        help=f"port of the pages; by default {PORT}, or another port if {PORT} is taken",
    )
    parser.add_argument(
        "--slots", type=int, default=3, help="number of runs at the same time, per worker"
    )
    return parser
