"""A folder for PYTHONPATH: each Python that starts with this folder hides the server's packages.

For Pythons that other programs start for user code, such as the Python workers of Spark.
"""

import os
from pathlib import Path


def python_path(others: str = "") -> str:
    """Return a PYTHONPATH of this folder, and of the folders of another PYTHONPATH."""
    own_folder = str(Path(__file__).parent)
    folders = [folder for folder in others.split(os.pathsep) if folder not in ("", own_folder)]
    return os.pathsep.join([own_folder, *folders])


def hide_from_started_pythons() -> None:
    """Have the Pythons that this process starts hide the server's packages, as far as such a Python
    reads PYTHONPATH.
    """
    os.environ["PYTHONPATH"] = python_path(os.environ.get("PYTHONPATH", ""))
