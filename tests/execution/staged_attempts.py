"""Attempts whose data is staged in folders and is about to be published."""

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import pytest

from accounts_app.models import User
from assets_app.execution.attempt.attempts import Attempt, intend_to_publish
from assets_app.execution.attempt.intending import PartialFailure
from assets_app.execution.gateway import publishing
from assets_app.execution.gateway.recovery import recover
from assets_app.models import Gateway, RunAttempt
from slicewise import storage
from tests.attempts import begun, staged
from tests.execution.conftest import at_work, lose_the_worker
from tests.factories import DAILY_2013, asset, outlet_of


def finish_publication(attempt: RunAttempt, gateway: Gateway) -> None:
    """Have a gateway finish the publication of an attempt whose worker is lost."""
    lose_the_worker()
    recover()
    with patch.object(publishing, "current", lambda: at_work(gateway)):
        publishing.finish_publishing(attempt.pk, str(RunAttempt.objects.get().token))


class Ready:
    """An attempt at three days whose data is staged and is going to be published."""

    def __init__(
        self,
        attempt: Attempt,
        root: Path,
        *,
        without: Sequence[str] = (),
        partly: PartialFailure | None = None,
    ) -> None:
        self.attempt = attempt.row
        self.root = root
        self.staged = [
            partition for partition in staged(attempt) if partition["key"] not in without
        ]
        names = (attempt.run.pk, attempt.row.name_on_disk)
        self.staging = storage.staging_path(root, *names, attempt.row.fence, partitioned=True)
        for partition in self.staged:
            folder = self.staging / partition["path"]
            folder.mkdir(parents=True)
            (folder / storage.marker_name(*names)).touch()
        self.outlet = outlet_of(attempt, self.staged, root=str(root), staging=str(self.staging))
        assert intend_to_publish(attempt.row, [self.outlet], partly=partly)

    def publish(self) -> None:
        publishing.publish(self.attempt, [self.outlet])

    def finish(self, gateway: Gateway) -> None:
        """Have a gateway finish the publication, as after the loss of the worker."""
        finish_publication(self.attempt, gateway)


@pytest.fixture
def ready(alice: User, gateway: Gateway, tmp_path: Path) -> Ready:
    flights = asset("raw_flights", DAILY_2013)
    attempt = begun(flights, alice, gateway, "2013-01-01..2013-01-03", strategy="range")
    root = tmp_path / "lake"
    root.mkdir()
    return Ready(attempt, root)
