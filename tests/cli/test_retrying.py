"""Ended runs once more, from the command line."""

import pytest

from accounts_app.models import AuditEntry
from assets_app.models import Run, RunState
from tests.cli.commands import json_of, notes_of, output_of, refusal
from tests.pages.run_records import renewed_code

pytestmark = pytest.mark.usefixtures("ada", "raw_flights")


@pytest.fixture
def canceled() -> list[int]:
    """Return two canceled runs of one request."""
    output_of("assets", "materialize", "raw_flights", "--partition", "2013-01-01..2013-01-02")
    ids = list(Run.objects.order_by("id").values_list("id", flat=True))
    for pk in ids:
        output_of("runs", "cancel", str(pk))
    return ids


def test_runs_are_retried(canceled: list[int]) -> None:
    first, second = map(str, canceled)
    assert output_of("runs", "retry", first, second) == (
        f"Run {first} is queued again.\nRun {second} is queued again.\n"
    )
    entry = AuditEntry.objects.filter(action="retry").first()
    assert entry
    assert entry.actor_name == "ada"


def test_runs_that_cannot_be_retried_are_named_and_the_command_exits_with_1(
    capsys: pytest.CaptureFixture[str], canceled: list[int]
) -> None:
    first, second = map(str, canceled)
    output_of("runs", "retry", first)
    status, text = refusal(capsys, "runs", "retry", first, second)
    assert status == 1
    assert f"Run {first} is queued: it has not ended yet." in text
    assert Run.objects.filter(state=RunState.QUEUED).count() == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Name the runs by number"),
        (["1", "--group", "1"], "Name the runs by number"),
        (["--group", "999999"], "There is no group 999999."),
        (["--group", "0"], "There is no group 0."),
        (["999999"], "There is no run 999999."),
        (["1", "--code", "older"], "invalid choice"),
    ],
)
def test_nonsense_is_refused_and_exits_with_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    status, text = refusal(capsys, "runs", "retry", *arguments)
    assert status == 2
    assert sentence in text


def test_the_failed_runs_of_a_request_are_retried(canceled: list[int]) -> None:
    first, second = canceled
    Run.objects.filter(pk=first).update(state=RunState.QUEUED, ended_at=None)
    run = Run.objects.get(pk=first)
    Run.objects.filter(pk=first).update(state=RunState.FAILED, ended_at=run.created_at)
    answer = json_of("runs", "retry", "--group", str(run.group_id), "--code", "newest")
    assert answer == {"runs": [first], "refused": []}
    assert Run.objects.get(pk=second).state == RunState.CANCELED


def test_a_run_is_run_again(canceled: list[int]) -> None:
    text = output_of("runs", "rerun", str(canceled[0]))
    new = Run.objects.order_by("-id").first()
    assert new
    assert text == f"Run {new.pk} materializes the partitions of run {canceled[0]} again.\n"
    assert json_of("runs", "rerun", str(canceled[1]))["run_count"] == 1


def test_a_retry_with_the_original_code_says_that_newer_code_is_loaded(
    canceled: list[int],
) -> None:
    first, second = map(str, canceled)
    assert notes_of("runs", "rerun", first) == ""
    renewed_code(Run.objects.get(pk=first).asset)
    output_of("runs", "cancel", str(Run.objects.latest("id").pk))
    sentence = "raw_flights has newer code: --code newest runs that code."
    assert sentence in notes_of("runs", "rerun", first)
    assert sentence in notes_of("runs", "retry", second)
    output_of("runs", "cancel", second)
    assert notes_of("runs", "retry", second, "--code", "newest") == ""


def test_a_viewer_retries_nothing(
    capsys: pytest.CaptureFixture[str], canceled: list[int], vera: object
) -> None:
    for verb in ("retry", "rerun"):
        status, text = refusal(capsys, "runs", verb, str(canceled[0]), "--as", "vera")
        assert status == 2
        assert "needs the role operator" in text
