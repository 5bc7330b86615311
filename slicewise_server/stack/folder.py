"""The data folder: all files of the embedded stack.

The data folder of an ordinary user is `.slicewise/` in the project. The data folder of root is
outside the clone: PostgreSQL refuses to run as root, so another user must reach the data of
PostgreSQL, and a clone is often below /root.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from slicewise_server.stack.errors import StackError
from slicewise_server.stack.process import write_private

PROJECT = Path(__file__).resolve().parent.parent.parent


def default_folder(env: Mapping[str, str]) -> Path:
    """Return the data folder of this project: SLICEWISE_DATA, or a default for the user."""
    if chosen := env.get("SLICEWISE_DATA"):
        return Path(chosen).expanduser().resolve()
    if os.geteuid() != 0:
        return PROJECT / ".slicewise"
    digest = hashlib.sha256(str(PROJECT).encode()).hexdigest()[:8]
    return Path("/var/lib/slicewise") / f"{PROJECT.name}-{digest}"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """Passwords, created once for a data folder; people type only the last one."""

    secret_key: str
    superuser_password: str
    database_password: str
    redis_password: str
    spark_token: str
    admin_password: str


class DataFolder:
    """A data folder, with the lock of the stack that uses the folder."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.logs = self.path / "logs"
        self.processes = self.path / "processes"
        self._state = self.path / "running.json"
        self._lock: int | None = None

    def create(self) -> None:
        """Create the folder. Other users (PostgreSQL's) may enter but not list the folder."""
        # Not above: `slicewise doctor` reads this module where no package is installed yet.
        from slicewise.process.own_folders import make_passable

        try:
            if os.geteuid() == 0:
                make_passable(self.path)
                self.path.chmod(0o711)
            self.path.mkdir(mode=0o711, parents=True, exist_ok=True)
            for folder in (self.logs, self.processes):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StackError(
                f"The data folder {self.path} cannot be made: {error.strerror or error}. "
                "Set SLICEWISE_DATA to a folder that you may write to."
            ) from error

    def take(self) -> None:
        """Lock the folder for this stack, until `release` or the end of this process."""
        self.create()
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            where = self.state().get("web_url")
            raise StackError(
                f"Slicewise is already running on {self.path}"
                + (f", at {where}" if where else "")
                + ". End that one first, or set SLICEWISE_DATA to another folder."
            ) from None
        self._lock = lock

    def release(self) -> None:
        """Release the lock, so that another stack can use the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def in_use(self) -> bool:
        """Return whether a stack is running on this folder, in this process or another process."""
        if self._lock is not None:
            return True
        try:
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def credentials(self) -> Credentials:
        """Return the credentials of this folder; create the credentials on first use."""
        file = self.path / "credentials.json"
        with contextlib.suppress(FileNotFoundError):
            return Credentials(**json.loads(file.read_text()))
        made = Credentials(
            **{name: secrets.token_urlsafe(24) for name in Credentials.__dataclass_fields__}
        )
        write_private(file, json.dumps(asdict(made), indent=1))
        return made

    def state(self) -> dict[str, Any]:
        """Return the state that the latest stack wrote; the stack may have ended."""
        try:
            noted = json.loads(self._state.read_text())
        except FileNotFoundError:
            return {}
        return noted if isinstance(noted, dict) else {}

    def note(self, **facts: Any) -> None:
        """Add entries to the state."""
        write_private(self._state, json.dumps(self.state() | facts, indent=1))
