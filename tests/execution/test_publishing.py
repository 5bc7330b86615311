"""Putting data in place: a passing error is tried again, a lasting error is not."""

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from django.db import OperationalError, connection

from assets_app.execution.attempt.outputs import StagedOutlet
from assets_app.execution.gateway import publishing
from assets_app.models import AssetPartition, Gateway, Run, RunAttempt, RunState
from slicewise import storage
from tests.execution.conftest import at_work, make_gateway
from tests.execution.staged_attempts import Ready, ready
from tests.partition_records import counts_agree_with_partitions

__all__ = ["ready"]


def states() -> dict[str, str]:
    return dict(AssetPartition.objects.order_by("key").values_list("key", "state"))


def test_a_partition_that_cannot_be_published_fails_the_run_and_others_are_recorded(
    ready: Ready,
) -> None:
    (ready.root / "partition=2013-01-02").write_text("a file, not a folder")
    ready.publish()
    run = Run.objects.get()
    assert (run.state, run.error_kind) == (RunState.FAILED, "platform")
    assert "could not be published" in run.error
    assert states() == {
        "2013-01-01": "materialized",
        "2013-01-02": "failed",
        "2013-01-03": "failed",
    }
    assert counts_agree_with_partitions()
    assert not list(ready.root.glob("_slicewise*")), "staging was left behind"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EXDEV, errno.EINVAL, errno.EROFS])
def test_an_error_that_will_not_pass_ends_the_run(ready: Ready, number: int) -> None:
    with patch.object(storage, "publish", side_effect=OSError(number, os.strerror(number))):
        ready.publish()
    assert Run.objects.get().state == RunState.FAILED
    assert set(states().values()) == {"failed"}


@pytest.mark.parametrize("names", [["publish"], ["publish", "published", "discard"]])
def test_an_error_that_nobody_foresaw_ends_the_run_and_says_which(
    ready: Ready, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def surprise(*args: Any, **more: Any) -> None:
        raise KeyError("surprise")

    for name in names:
        monkeypatch.setattr(storage, name, surprise)
    ready.publish()
    run = Run.objects.get()
    assert (run.state, run.error_kind) == (RunState.FAILED, "platform")
    assert run.error == "The data could not be published: KeyError: 'surprise'."
    assert set(states().values()) == {"failed"}


def test_a_scheme_that_nothing_here_keeps_any_more_ends_the_run(ready: Ready) -> None:
    ready.outlet = replace(ready.outlet, root="pos://mitte/till-3")
    ready.publish()
    run = Run.objects.get()
    assert run.state == RunState.FAILED
    assert "no installed storage reads and writes pos: URIs" in run.error


@pytest.mark.parametrize("mode", ["replace", "append"])
def test_an_error_of_slicewises_own_database_does_not_end_the_run(
    ready: Ready, mode: Any, gateway: Gateway
) -> None:
    def lost(*query: Any) -> None:
        raise OperationalError("the connection is lost")

    ready.outlet = replace(ready.outlet, write_mode=mode)
    with connection.execute_wrapper(lost), pytest.raises(OperationalError):
        ready.publish()
    assert Run.objects.get().state == RunState.PUBLISHING
    ready.finish(gateway)
    assert set(states().values()) == {"materialized"}


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED)),
        ConnectionError("the server restarts"),
        TimeoutError("the server did not answer"),
    ],
)
def test_an_error_that_may_pass_is_tried_again(
    ready: Ready, gateway: Gateway, error: OSError
) -> None:
    with patch.object(storage, "publish", side_effect=error):
        ready.publish()
    assert Run.objects.get().state == RunState.PUBLISHING
    assert (error.strerror or str(error)) in RunAttempt.objects.get().error
    ready.finish(gateway)
    assert set(states().values()) == {"materialized"}


def test_who_finishes_a_publication_holds_it_meanwhile(ready: Ready, gateway: Gateway) -> None:
    worker = at_work(gateway)
    tokens: list[Any] = []
    publish = publishing.publish

    def watch(attempt: RunAttempt, outlets: Sequence[StagedOutlet]) -> None:
        tokens.extend(attempt.token for attempt in worker.watched)
        publish(attempt, outlets)

    with (
        patch.object(publishing, "current", lambda: worker),
        patch.object(publishing, "publish", watch),
    ):
        publishing.finish_publishing(ready.attempt.pk, str(ready.attempt.token))
    assert tokens == [RunAttempt.objects.get().token]
    assert worker.watched == []


def test_an_attempt_is_on_the_gateway_that_finishes_its_publication(
    ready: Ready, gateway: Gateway
) -> None:
    other = make_gateway("scheduled", name="other@test")
    publish, gateways = publishing.publish, []

    def watch(attempt: RunAttempt, outlets: Sequence[StagedOutlet]) -> None:
        gateways.append(attempt.gateway)
        publish(attempt, outlets)

    assert ready.attempt.gateway == gateway
    with patch.object(publishing, "publish", watch):
        ready.finish(other)
    assert gateways == [RunAttempt.objects.get().gateway] == [other]


def test_unreadable_partitions_count_as_not_published(ready: Ready) -> None:
    refused = OSError(errno.EACCES, os.strerror(errno.EACCES))
    real = storage.published

    def published(root: str, paths: list[str], **names: Any) -> list[str]:
        if "partition=2013-01-01" in paths:
            raise refused
        return real(root, paths, **names)

    (ready.root / "partition=2013-01-03").write_text("a file, not a folder")
    with patch.object(storage, "published", published):
        ready.publish()
    assert list(states().values()) == ["failed", "materialized", "failed"]


def test_partitions_that_cannot_be_read_now_are_read_later(ready: Ready, gateway: Gateway) -> None:
    (ready.root / "partition=2013-01-03").write_text("a file, not a folder")
    away = OSError(errno.ESTALE, os.strerror(errno.ESTALE))
    with patch.object(storage, "published", side_effect=away):
        ready.publish()
    assert Run.objects.get().state == RunState.PUBLISHING
    ready.finish(gateway)
    assert list(states().values()) == ["materialized", "materialized", "failed"]
