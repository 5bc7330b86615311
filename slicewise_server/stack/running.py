"""The settings of the running stack, without imports of modules that start a stack."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from pathlib import Path

from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import DataFolder, default_folder

NEEDED = ("DATABASE_URL", "REDIS_URL", "SPARK_REMOTE", "SECRET_KEY", "SLICEWISE_DATA")

# Settings that can be read, and that no server answers to: enough to print the help of a command.
_OF_NO_SERVER = {
    "DATABASE_URL": "postgres://nobody@127.0.0.1:9/nothing",
    "REDIS_URL": "redis://127.0.0.1:9/0",
    "SPARK_REMOTE": "sc://127.0.0.1:9",
    "SECRET_KEY": "unused",
    "SLICEWISE_DATA": "/nonexistent",
}


def find_settings_for(words: Sequence[str], env: MutableMapping[str, str]) -> None:
    """Add the settings that a command needs to `env`: its help needs no running stack."""
    try:
        find_settings(env)
    except StackError:
        if not {"-h", "--help"}.intersection(words):
            raise
        for name, value in _OF_NO_SERVER.items():
            env.setdefault(name, value)


def find_settings(env: MutableMapping[str, str]) -> None:
    """Add the settings of the running stack to `env`; values that `env` has are kept."""
    if all(env.get(name) for name in NEEDED):
        return
    data = default_folder(env)
    environment = running_environment(data)
    if environment is None:
        raise StackError(
            f"Nothing is running on {data}. Start Slicewise with `slicewise up`. If Slicewise runs"
            " on another data folder, set SLICEWISE_DATA to that folder. To use servers of your"
            f" own, set {', '.join(NEEDED)}."
        )
    for name, value in environment.items():
        env.setdefault(name, value)


def running_environment(data: Path) -> dict[str, str] | None:
    """Return the settings of the stack that runs on a data folder, or None."""
    folder = DataFolder(data)
    if folder.in_use():
        environment: dict[str, str] = folder.state().get("environment", {})
        return environment or None
    return None
