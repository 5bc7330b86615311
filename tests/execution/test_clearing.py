"""What is removed of attempts that came to nothing."""

from unittest.mock import patch

import pytest

from assets_app.execution import publishing
from assets_app.execution.clearing import clear_failed_publications
from assets_app.models import ProducerVersion, Run, RunState
from tests.execution.test_publishing import Ready, ready

__all__ = ["ready"]


@pytest.fixture
def failed(ready: Ready) -> Ready:
    """A publication that has failed; its worker was killed before it had cleared away."""
    version = ProducerVersion.objects.get()
    version.definition["outlets"] = [{"name": "raw_flights", "uri": f"file:{ready.root}"}]
    version.save()
    (ready.root / "partition=2013-01-02").write_text("a file, not a folder")
    with patch.object(publishing, "_discard"):
        ready.publish()
    assert Run.objects.get().state == RunState.FAILED
    assert list(ready.root.glob("_slicewise-staging*"))
    return ready


def test_a_worker_that_starts_removes_what_a_failed_publication_has_left(failed: Ready) -> None:
    clear_failed_publications()
    assert not list(failed.root.glob("_slicewise*"))


def test_what_is_being_published_is_left_alone(ready: Ready) -> None:
    clear_failed_publications()
    assert ready.staging.exists()
