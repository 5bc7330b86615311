"""Names of folders: partitions as Spark (and Hive) writes them, and an attempt's staging folder."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

STAGING_PREFIX = "_slicewise-staging-"
LINKS_PREFIX = "_slicewise-links-"
DISCARDED_PREFIX = "_slicewise-discarded-"
TRIAL_PREFIX = "_slicewise-trial-"
"""Prefix of folders in which `fitness` tries a file system; an interrupted trial leaves one."""
_VERSIONS = "_slicewise-versions"
UNPARTITIONED = "."
"""The relative folder of the one partition of an asset that is not partitioned."""

NULL_FOLDER_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Spark's text for a null, and for an empty text, in a partition column."""

# The characters that ExternalCatalogUtils of Spark escapes on every platform but Windows. The rule
# is followed to the letter, so that one key is one folder whichever program wrote it.
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^") | {chr(code) for code in (*range(1, 32), 127)}
_ESCAPE_SEQUENCE = re.compile("%([0-9A-Fa-f]{2})")


def escape(text: str) -> str:
    """Return ``text`` escaped for a folder name by Spark's rule: ``a/b`` becomes ``a%2Fb``."""
    if not text:
        return NULL_FOLDER_VALUE
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


def unescape(text: str) -> str:
    """Return the text that `escape` has escaped."""
    return _ESCAPE_SEQUENCE.sub(lambda match: chr(int(match.group(1), 16)), text)


def partition_folder(values: Iterable[tuple[str, str]]) -> str:
    """Return the folder of a partition, relative to its asset: ``day=2013-01-01/airport=JFK``.

    ``values`` contains a name and a key text per dimension, in order; none for an asset without
    partitions.
    """
    return "/".join(f"{escape(name)}={escape(text)}" for name, text in values) or UNPARTITIONED


def folder_texts(path: str) -> list[tuple[str, str]]:
    """Return the names and texts from which `partition_folder` made a folder."""
    if path == UNPARTITIONED:
        return []
    pairs = (folder_name.partition("=") for folder_name in path.split("/"))
    return [(unescape(name), unescape(value)) for name, _, value in pairs]


def staging_home(root: Path, *, partitioned: bool) -> Path:
    """Return the folder for staging folders: the asset's own or, unpartitioned, the one above.

    An asset without partitions is exchanged as a whole, so that the staging folder cannot lie
    inside.
    """
    return root if partitioned else root.parent


def staging_path(root: Path, run_id: int, attempt: str, fence: int, *, partitioned: bool) -> Path:
    """Return the staging folder of an attempt, with the fencing number of the holder in its name.

    ``attempt`` is the attempt's name on disk, which no other attempt has, of any database. Numbers
    alone come again with a new or a restored database, and with a second installation.
    """
    home = staging_home(root, partitioned=partitioned)
    return home / f"{STAGING_PREFIX}{run_id}-{attempt}-{fence}"


def marker_name(run_id: int, attempt: str) -> str:
    """Return the name of the file that says which attempt wrote a partition; the underscore
    hides the file from Spark.
    """
    return f"_slicewise-{run_id}-{attempt}"


def versions_home(root: Path, *, partitioned: bool) -> Path:
    """Return the folder of the versions of an asset's partitions, hidden from Spark."""
    return root / _VERSIONS if partitioned else root.parent / f"{_VERSIONS}-{root.name}"


def versions_of(root: Path, path: str) -> Path:
    """Return the folder of the versions of one partition, each a folder named by number."""
    home = versions_home(root, partitioned=path != UNPARTITIONED)
    return home if path == UNPARTITIONED else home / path


def version_of(root: Path, path: str) -> int | None:
    """Return the version that a partition links to; None if the partition is no link to one."""
    try:
        linked = Path(os.readlink(root / path))
    except OSError:
        return None
    return int(linked.name) if linked.name.isdecimal() else None
