"""A folder for PYTHONPATH: each Python that starts with this folder hides the server's packages.

For Pythons that other programs start for user code, such as the Python workers of Spark.
"""

import os
from pathlib import Path


def python_path(others: str = "") -> str:
    """Return a PYTHONPATH of this folder, and of the folders of another PYTHONPATH."""
    return os.pathsep.join([str(Path(__file__).parent), *filter(None, [others])])
