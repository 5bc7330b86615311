"""The names of tables in which rows wait for publication, and the texts in partitions' paths."""

from hashlib import sha256

from slicewise.storage.layout import UNPARTITIONED, unescape

_STAGED = "_slicewise"


def staging_table(attempt: str, fence: int) -> str:
    """Return the name of the table of an attempt's staged rows.

    ``fence`` is the fencing number of the attempt's holder.
    """
    return f"{_STAGED}{fence if fence > 1 else ''}_{_words(attempt)}"


def fence_of(name: str) -> int:
    """Return the fencing number in the name of a table of staged rows."""
    return int(name.removeprefix(_STAGED).partition("_")[0] or 1)


def staged_pattern(attempt: str) -> str:
    """Return the regular expression that the names of an attempt's tables match."""
    return rf"^{_STAGED}[0-9]*_{_words(attempt)}(_[0-9a-f]{{8}})?$"


def staged_suffix(name: str, attempt: str) -> str:
    """Return the end of a table's name that says which partition is staged alone in the table."""
    return name.partition(f"_{_words(attempt)}")[2]


def _words(attempt: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in attempt)


def single_partition_table(name: str, path: str) -> str:
    """Return the name of the table in which one partition is staged alone."""
    return f"{name}_{sha256(path.encode()).hexdigest()[:8]}"


def texts_of(path: str) -> dict[str, str]:
    """Return the texts of the dimensions' columns, read from a partition's path."""
    if path == UNPARTITIONED:
        return {}
    pairs = (folder.partition("=") for folder in path.split("/"))
    return {unescape(name): unescape(value) for name, _, value in pairs}
