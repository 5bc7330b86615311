"""The data of attempts in an object store: names, fencing numbers, versions."""

from slicewise.io.base import Writer
from slicewise.io.object_log import LogState
from slicewise.storage.layout import UNPARTITIONED
from slicewise.storage.modes import MissingVersionError
from slicewise.storage.storage_errors import StagingLostError

ATTEMPT_COLUMN = "_slicewise_attempt"
"""The name in folders `name=attempt`, which Spark reads as a column."""


def attempt_name(writer: Writer) -> str:
    return f"{writer.run_id}-{writer.attempt}"


def data_folder(attempt: str, path: str) -> str:
    folder = f"{ATTEMPT_COLUMN}={attempt}"
    return folder if path == UNPARTITIONED else f"{folder}/{path}"


def fenced(state: LogState, path: str, writer: Writer) -> LogState | None:
    """Return the state with the writer's fencing number; None if the state has or needs none."""
    attempt = attempt_name(writer)
    if state.has(attempt):
        return None
    refuse_fenced(state, path, writer)
    is_known = state.fences.get(attempt, 1) == writer.fence
    return None if is_known else state.fenced(attempt, writer.fence)


def refuse_fenced(state: LogState, path: str, writer: Writer) -> None:
    attempt = attempt_name(writer)
    if state.fences.get(attempt, 1) > writer.fence:
        raise StagingLostError(f"another worker has taken over the staged data of {path}")
    if attempt in state.old:
        raise StagingLostError(f"{path} was published, and a later run has replaced the data")


def attempt_of_version(state: LogState, number: int, path: str) -> str:
    if number not in state.versions:
        shown = ", ".join(map(str, sorted(state.versions))) or "none"
        raise MissingVersionError(
            f"version {number} of {path} does not exist; the versions are {shown}"
        )
    return state.versions[number]
