"""Redis, the broker: loopback only, with a password, keeping nothing on disk.

Messages are nudges and all state is in the database: the loss of all messages costs a second or
two.
"""

from __future__ import annotations

import os
import signal

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from slicewise_server.stack import machine, ports
from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import DataFolder
from slicewise_server.stack.process import Process, scrubbed, write_private

# Commands that write files, load code or follow another server. No process of ours sends these
# commands, so the password alone does not give access to these commands either.
_REFUSED_COMMANDS = (
    "BGREWRITEAOF", "BGSAVE", "CONFIG", "DEBUG", "MIGRATE", "MODULE", "REPLICAOF", "SAVE",
    "SLAVEOF",
)  # fmt: skip

GUARDS = (
    # Otherwise unread answers fill the memory, even before sign-in.
    "client-output-buffer-limit normal 64mb 16mb 60",
    *(f'rename-command {command} ""' for command in _REFUSED_COMMANDS),
)
"""Lines of a configuration; docker-compose.yml has the same lines."""


class RedisServer:
    """One Redis on one port of loopback."""

    name = "redis"

    def __init__(self, folder: DataFolder, port: int) -> None:
        self.folder = folder.path / "redis"
        self.port = port
        self._password = folder.credentials().redis_password

    @property
    def url(self) -> str:
        """The value of REDIS_URL."""
        return f"redis://:{self._password}@{ports.HOST}:{self.port}/0"

    def prepare(self) -> None:
        """Write the configuration; the password is not on the command line."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        lines = [
            f"bind {ports.HOST}",
            f"port {self.port}",
            f"requirepass {self._password}",
            "daemonize no",
            'save ""',
            "appendonly no",
            *GUARDS,
        ]
        write_private(self.folder / "redis.conf", "\n".join(lines) + "\n")

    def process(self) -> Process:
        """Return the description of the server's process."""
        binary = machine.find_redis(os.environ)
        if binary is None:
            raise StackError(
                "There is no redis-server: none came with the installation, none is on the PATH. "
                "Install Redis 6.2 or newer, or set REDIS_URL to one of your own."
            )
        return Process(
            name=self.name,
            argv=[str(binary), "redis.conf"],
            env=scrubbed(os.environ),
            cwd=self.folder,
            death_signal=signal.SIGKILL,
        )

    def is_ready(self) -> bool:
        """Return whether the server answers."""
        try:
            once = Retry(NoBackoff(), retries=0)
            with redis.Redis.from_url(self.url, socket_timeout=2, retry=once) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def settle(self) -> None:
        """Do nothing: Redis needs no preparation."""
