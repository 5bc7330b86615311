"""The start of a worker: nothing is imported that a worker does not need."""

import subprocess
import sys
from pathlib import Path

START = """
import sys
from slicewise_server.celery import app
app.loader.import_default_modules()
print([name for name in ("slicewise_server.urls", "openlineage") if name in sys.modules])
print("slicewise_server.lineage.tasks.send" in app.tasks)
"""


def test_a_worker_starts_without_pages_and_without_the_client_of_lineage() -> None:
    """Celery would import all pages to run Django's checks, whose answers it drops."""
    command = [sys.executable, "-W", "ignore", "-c", START]
    process = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert process.stdout.splitlines() == ["[]", "True"]
