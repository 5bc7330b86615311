"""PostgreSQL from the binaries in a wheel, with a cluster of our own.

The wheel's Python part is not used: that part trusts every connection and, as root, changes
the modes of every parent folder. Here PostgreSQL requires passwords, listens only on loopback, and
has no socket file.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import psycopg
from psycopg import sql

from slicewise_server.stack import machine, ports
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import DataFolder
from slicewise_server.stack.process import Process
from slicewise_server.stack.server_account import server_account

SUPERUSER = "postgres"
NAME = "slicewise"  # of the role and of the database
# As in docker-compose.yml: room for the pools of all processes, and for backfills of millions.
OPTIONS = {"max_connections": "200", "shared_buffers": "256MB", "max_wal_size": "4GB"}
STOP_SECONDS = 30
LOCALE = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]


class PostgreSQL:
    """One cluster below the data folder, on one port of loopback.

    `options` are settings of the server beside the settings of this class.
    """

    name = "postgresql"

    def __init__(
        self, folder: DataFolder, port: int, options: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder.path / "postgresql"
        self.port = port
        self._options = dict(options or {})
        self._credentials = folder.credentials()
        self._account = server_account()

    @property
    def url(self) -> str:
        """The value of DATABASE_URL."""
        password = self._credentials.database_password
        return f"postgres://{NAME}:{password}@{ports.HOST}:{self.port}/{NAME}"

    @cached_property
    def home(self) -> Path:
        """Binaries that the server's account can execute: the binaries of the wheel, or a copy."""
        carried = machine.find_postgresql()
        if carried is None:
            raise StackError(
                "No PostgreSQL for this machine came with the installation. "
                "Set DATABASE_URL to a PostgreSQL 15 or newer of your own."
            )
        if self._account is None:
            return carried
        return self._copy_of(carried)

    def prepare(self) -> None:
        """Create the cluster on first use; remove files of a killed server."""
        self.folder.mkdir(mode=0o711, exist_ok=True)
        self._check_reach()
        cluster = self.folder / "cluster"
        if not cluster.exists():
            self._make_cluster(cluster)
        self._clear_stale_pid(cluster)

    def process(self) -> Process:
        """Return the description of the server's process."""
        settings = {
            "listen_addresses": ports.HOST,
            "port": str(self.port),
            "unix_socket_directories": "",
            **OPTIONS,
            "timezone": "UTC",
            "log_timezone": "UTC",
            **self._options,
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return Process(
            name=self.name,
            argv=[str(self.home / "bin" / "postgres"), "-D", str(self._cluster), *options],
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
            cwd=self.folder,
            account=self._account,
            death_signal=signal.SIGINT,  # "fast shutdown": connections are closed, data is kept
            stop_signal=signal.SIGINT,
            stop_seconds=STOP_SECONDS,
        )

    def is_ready(self) -> bool:
        """Return whether the server answers queries."""
        try:
            self._connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def settle(self) -> None:
        """Create the role, no superuser, and the database that the role owns, if missing."""
        with self._connect("postgres") as connection:
            if not _exists(connection, "pg_roles", "rolname"):
                connection.execute(
                    sql.SQL("CREATE ROLE {} LOGIN CREATEDB PASSWORD {}").format(
                        sql.Identifier(NAME), sql.Literal(self._credentials.database_password)
                    )
                )
            if not _exists(connection, "pg_database", "datname"):
                connection.execute(
                    sql.SQL("CREATE DATABASE {0} OWNER {0}").format(sql.Identifier(NAME))
                )

    @property
    def _cluster(self) -> Path:
        return self.folder / "cluster"

    def _copy_of(self, carried: Path) -> Path:
        """Return the wheel's binaries in a folder for all accounts; a venv is often below /root."""
        package = carried.parent
        copy = self.folder / "server"
        if not copy.exists():
            half = self.folder / "server.new"
            shutil.rmtree(half, ignore_errors=True)
            _copy(carried, half / package.name / carried.name)
            # The binaries look for their libraries by a path relative to their own.
            libraries = package.with_name(f"{package.name}.libs")
            if libraries.exists():
                _copy(libraries, half / libraries.name)
            half.rename(copy)
        return copy / package.name / carried.name

    def _connect(self, database: str) -> psycopg.Connection:
        return psycopg.connect(
            host=ports.HOST,
            port=self.port,
            user=SUPERUSER,
            password=self._credentials.superuser_password,
            dbname=database,
            connect_timeout=5,
            autocommit=True,
        )

    def _make_cluster(self, cluster: Path) -> None:
        """Run initdb beside the final folder, so that no incomplete cluster is ever used."""
        fresh = self.folder / "cluster.new"
        password = self.folder / "password"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        password.unlink(missing_ok=True)
        with open(os.open(password, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(self._credentials.superuser_password)
        if self._account:
            for path in (fresh, password):
                os.chown(path, self._account.uid, self._account.gid)
        try:
            self._run_initdb(fresh, password)
        finally:
            password.unlink()
        fresh.rename(cluster)

    def _run_initdb(self, cluster: Path, password: Path) -> None:
        account = self._account
        done = subprocess.run(
            [
                *[str(self.home / "bin" / "initdb"), "-D", str(cluster), *LOCALE],
                *[f"--username={SUPERUSER}", f"--pwfile={password}", "--auth=scram-sha-256"],
                *["--no-instructions", "--data-checksums"],
            ],
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"},
            cwd=self.folder,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise StackError(f"initdb failed:\n{done.stdout}{done.stderr}")

    def _clear_stale_pid(self, cluster: Path) -> None:
        """Remove postmaster.pid unless the process is PostgreSQL: process ids are reused."""
        file = cluster / "postmaster.pid"
        try:
            pid = int(file.read_text().split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:  # ended, or a hidden process of another user: not our server
            command = b""
        if b"postgres" not in command:
            file.unlink(missing_ok=True)

    def _check_reach(self) -> None:
        """Raise StackError, as root, if the server's account cannot enter the data folder."""
        if self._account is None:
            return
        for parent in self.folder.parents:
            if not parent.stat().st_mode & 0o001:
                raise StackError(
                    f"PostgreSQL does not run as root, and the user {self._account.name}, under "
                    f"whom it runs instead, cannot enter {parent}. Set SLICEWISE_DATA to a folder "
                    f"that others may enter, run `chmod o+x {parent}`, or do not run as root."
                )


def _copy(folder: Path, to: Path) -> None:
    """Copy a folder; the files are hard links where `to` is on the same file system, so that a
    change of an owner or a mode changes the original, too.
    """
    shutil.copytree(folder, to, symlinks=True, copy_function=_link_or_copy)


def _link_or_copy(file: str, to: str) -> None:
    try:
        os.link(file, to)
    except OSError:
        shutil.copy2(file, to)


def _exists(connection: psycopg.Connection, catalogue: str, column: str) -> bool:
    query = sql.SQL("SELECT 1 FROM {} WHERE {} = %s").format(
        sql.Identifier(catalogue), sql.Identifier(column)
    )
    return connection.execute(query, [NAME]).fetchone() is not None
