"""The settings of the running stack, without imports of modules that start a stack."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

from slicewise_server.stack.errors import StackError
from slicewise_server.stack.folder import DataFolder, default_folder

NEEDED = ("DATABASE_URL", "REDIS_URL", "SPARK_REMOTE", "SECRET_KEY", "SLICEWISE_DATA")


def find_settings(env: MutableMapping[str, str]) -> None:
    """Add the settings of the running stack to `env`; values that `env` has are kept."""
    if all(env.get(name) for name in NEEDED):
        return
    data = default_folder(env)
    environment = running_environment(data)
    if environment is None:
        raise StackError(
            f"Nothing is running on {data}. Start it with `slicewise up`, or set "
            f"{', '.join(NEEDED)} to use servers of your own."
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
