"""What processes of the loader's user can learn of a loader, and how many there may be."""

from assets_app.catalogue.loading import load, snapshot
from slicewise.runner.loader_users import has_loader_users
from tests.catalogue.conftest import Bundle

LOOK = """
import ctypes, resource
raise ValueError(
    f"dumpable {ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)},"
    f" processes {resource.getrlimit(resource.RLIMIT_NPROC)[0]}"
)
"""


def test_a_loader_is_closed_to_processes_of_its_user(bundle: Bundle) -> None:
    (file,) = load(*snapshot(bundle(look=LOOK))).declared["files"]
    assert "dumpable 0" in file["error"]["message"]
    if has_loader_users():
        assert "processes 512" in file["error"]["message"]
