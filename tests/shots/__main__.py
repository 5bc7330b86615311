"""``python -m tests.shots``: take pictures of all pages, and write an index.html beside them.

Each catalogue has a process, a database and a web server of its own; there is no Spark and no
worker.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from time import monotonic

from rich.console import Console

from bench.served import prepared_database, served
from tests.browser import chromium
from tests.shots.catalogues import SETTINGS, fill
from tests.shots.index_page import write_index
from tests.shots.pictures import Photographer, PicturedPage

_PAGES = "pages.json"
_console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """Take the pictures; the exit status says whether there is a remark about a page."""
    parser = argparse.ArgumentParser(prog="python -m tests.shots", description=__doc__)
    parser.add_argument(
        "--catalogue",
        action="append",
        choices=SETTINGS,
        help="one of the catalogues; all unless given",
    )
    parser.add_argument("--only", default="", help="pages whose address contains this text")
    parser.add_argument("--folder", type=Path, default=Path("build/shots"))
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    catalogues: list[str] = options.catalogue or list(SETTINGS)
    if options.alone:
        _take(catalogues[0], options.folder / catalogues[0], options.only)
        return 0
    for catalogue in catalogues:
        # In a process of its own: Django has one database for the life of a process.
        arguments = ["--alone", "--catalogue", catalogue, "--only", options.only]
        command = [sys.executable, "-m", "tests.shots", *arguments, "--folder", options.folder]
        subprocess.run(command, check=True)
    pages = {name: _read(options.folder / name) for name in SETTINGS}
    _console.print(f"Open {write_index(options.folder, pages).resolve().as_uri()}")
    return int(any(pictured.remarks for listed in pages.values() for pictured in listed))


def _take(catalogue: str, folder: Path, only: str) -> None:
    """Fill a catalogue and take the pictures of its pages."""
    began = monotonic()
    with prepared_database(**SETTINGS[catalogue]):
        from accounts_app.models import User
        from bench.graph_catalogue import browser_client
        from tests.pages.page_list import ADMIN, PAGES, SIGNED_OUT, addresses
        from tests.shots.heartbeats import keep_alive

        client = browser_client()
        things = fill(catalogue, User.objects.get(username="admin"))
        _console.print(f"{catalogue}: filled in {monotonic() - began:.0f} s")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        signed_in = [a for a in addresses({**PAGES, **ADMIN}, things) if only in a]
        signed_out = [a for a in addresses(SIGNED_OUT, things) if only in a]
        session = client.cookies["sessionid"].value
        pages: list[PicturedPage] = []
        with served() as home, chromium() as browser:
            photographer = Photographer(browser, home, folder)
            pages += photographer.take(signed_in, session, before=keep_alive)
            pages += photographer.take(signed_out, before=keep_alive)
    (folder / _PAGES).write_text(json.dumps([asdict(pictured) for pictured in pages]))
    for pictured in pages:
        for remark in pictured.remarks:
            _console.print(f"{catalogue} {pictured.address}: {remark}")
    _console.print(f"{catalogue}: {len(pages)} pages in {monotonic() - began:.0f} s")


def _read(folder: Path) -> list[PicturedPage]:
    """Return the pages of a catalogue, from this call or an earlier one."""
    file = folder / _PAGES
    return (
        [PicturedPage(**facts) for facts in json.loads(file.read_text())] if file.exists() else []
    )


if __name__ == "__main__":
    sys.exit(main())
