"""The Spark of a run, and the end of work that the run has left there."""

import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock, patch
from uuid import uuid4

import pytest

from accounts_app.models import User
from assets_app.execution.attempt import attempts, engines
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.engines import WorkMayContinueError, engine_of
from assets_app.execution.gateway import supervision
from assets_app.execution.gateway.concurrent_runs import ConcurrentRuns
from assets_app.execution.queue.dispatch import dispatch
from assets_app.execution.request.requests import MaterializeRequest, materialize
from assets_app.models import Gateway, ProducerVersion, Run, RunAttempt, RunState
from tests.attacks.users import open_folder
from tests.factories import DAILY_2013, asset

STOPS = '#!/bin/sh\necho "$@" >> {said}\necho {answer} >&2\nexit {status}\n'


@pytest.fixture
def run(alice: User, gateway: Gateway, settings: Any, tmp_path: Path) -> Run:
    """Create a run of an asset that wants an application for each run."""
    settings.SPARK_MASTER, settings.SPARK_SUBMIT_CONF = "yarn", {"spark.yarn.queue": "etl"}
    settings.DATA_FOLDER = tmp_path
    flights = asset("raw_flights", DAILY_2013)
    version = ProducerVersion.objects.get()
    version.definition |= {"engine": "submit", "spark_conf": {"spark.executor.memory": "3g"}}
    version.save()
    request = MaterializeRequest(asset=flights, selection="2013-01-01")
    queued_run: Run = materialize(request, user=alice).runs.get()
    dispatch()
    return queued_run


@pytest.fixture
def attempt(run: Run, gateway: Gateway) -> Attempt:
    begun_attempt = attempts.begin(run.pk, gateway)
    assert begun_attempt is not None
    return begun_attempt


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the only folder with commands."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def command(folder: Path, name: str, *, answer: str = "done", status: int = 0) -> Path:
    """Write a command that logs its calls, and return the log file."""
    call_log = folder / f"{name}.said"
    (folder / name).write_text(STOPS.format(said=call_log, answer=answer, status=status))
    (folder / name).chmod(0o755)
    return call_log


def test_the_runner_is_told_of_the_application_that_its_asset_wants(attempt: Attempt) -> None:
    assert attempt.row.engine == "submit"
    facts = engine_of(attempt.row).facts(attempt)
    assert (facts["engine"], facts["master"]) == ("submit", "yarn")
    assert facts["name"] == f"slicewise-run-{attempt.run.pk}-1"
    assert facts["conf"]["spark.yarn.queue"] == "etl"
    assert facts["conf"]["spark.executor.memory"] == "3g"
    assert facts["conf"]["spark.sql.session.timeZone"] == "UTC"
    assert (Path(facts["spark_home"]) / "bin/spark-submit").exists()


def test_an_asset_overrules_the_server_and_that_one_only_what_is_not_needed(
    settings: Any,
) -> None:
    settings.SPARK_SUBMIT_CONF = {
        "spark.executor.memory": "1g",
        "spark.log.level": "INFO",
        "spark.sql.session.timeZone": "Europe/Rome",
    }
    conf = engines.submit_conf({"spark.executor.memory": "3g"})
    assert conf["spark.executor.memory"] == "3g"
    assert conf["spark.log.level"] == "INFO"
    assert conf["spark.sql.session.timeZone"] == "UTC"


def test_the_environment_names_the_cluster_and_no_secret(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SPARK_MASTER, settings.JAVA_HOME = "yarn", "/usr/lib/java"
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    monkeypatch.setenv("SPARK_LOCAL_IP", "")
    assert engines.submit_environment() == {
        "HADOOP_CONF_DIR": "/etc/hadoop",
        "JAVA_HOME": "/usr/lib/java",
        "SPARK_HOME": str(engines.spark_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    settings.SPARK_MASTER, settings.SPARK_HOME = "local[2]", "/opt/spark"
    local = engines.submit_environment()
    assert local["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert local["SPARK_HOME"] == "/opt/spark"


def test_a_server_without_a_master_fails_the_run_with_the_name_of_the_setting(
    run: Run, gateway: Gateway, settings: Any
) -> None:
    settings.SPARK_MASTER = ""
    worker = MagicMock(
        gateway=gateway, concurrent_runs=ConcurrentRuns(gateway.slots, suspect_after=2)
    )
    worker.going_down.is_set.return_value = False
    worker.spark_away.is_set.return_value = False
    with patch.object(supervision, "current", lambda: worker):
        supervision.execute(run.pk)
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "SPARK_MASTER" in run.error
    worker.parent.launch.assert_not_called()


def test_users_without_names_are_refused_what_spark_submit_refuses_them(
    attempt: Attempt, settings: Any
) -> None:
    settings.RUNNER_USERS = "20000-20031"
    with pytest.raises(ValueError, match=r'engine="submit".*SLICEWISE_RUNNER_USERS'):
        engine_of(attempt.row).facts(attempt)


def test_an_application_on_yarn_is_killed_by_its_id(attempt: Attempt, bin_folder: Path) -> None:
    call_log = command(bin_folder, "yarn", answer=f'"  Application-Name : {attempt.tag}"')
    # Recorded when the driver said it, after the attempt was read.
    RunAttempt.objects.update(application_id="application_1_0001")
    stop(attempt.row)
    commands = ["application -status application_1_0001", "application -kill application_1_0001"]
    assert call_log.read_text().splitlines() == commands


def test_the_pods_of_an_application_on_kubernetes_are_deleted(
    attempt: Attempt, bin_folder: Path, settings: Any
) -> None:
    settings.SPARK_MASTER = "k8s://https://cluster:6443"
    settings.SPARK_SUBMIT_CONF = {"spark.kubernetes.namespace": "data"}
    call_log = command(bin_folder, "kubectl")
    RunAttempt.objects.update(application_id="spark-7f")
    stop(attempt.row)
    assert "--namespace data delete pods" in call_log.read_text()
    selector = f"spark-app-selector=spark-7f,slicewise-attempt={attempt.tag}"
    assert f"--selector {selector}\n" in call_log.read_text()
    conf = engine_of(attempt.row).facts(attempt)["conf"]
    assert conf["spark.kubernetes.executor.label.slicewise-attempt"] == attempt.tag


@pytest.mark.parametrize("answer", ["ApplicationNotFoundException: no", "it doesn't exist in RM"])
def test_an_application_that_has_gone_has_ended(
    attempt: Attempt, bin_folder: Path, answer: str
) -> None:
    call_log = command(bin_folder, "yarn", answer=f'"{answer}"', status=255)
    RunAttempt.objects.update(application_id="application_1_0001")
    stop(attempt.row)
    assert call_log.exists()


def test_a_cluster_that_does_not_end_an_application_leaves_it_open_whether_it_goes_on(
    attempt: Attempt, bin_folder: Path
) -> None:
    command(bin_folder, "yarn", answer="Connection refused", status=1)
    RunAttempt.objects.update(application_id="application_1_0001")
    with pytest.raises(WorkMayContinueError, match="Connection refused"):
        stop(attempt.row)


def test_without_the_clusters_command_the_end_of_the_driver_has_to_do(
    attempt: Attempt, bin_folder: Path
) -> None:
    RunAttempt.objects.update(application_id="application_1_0001")
    assert list(bin_folder.iterdir()) == []
    stop(attempt.row)


def test_an_attempt_without_an_application_runs_no_stop_command(
    attempt: Attempt, bin_folder: Path
) -> None:
    call_log = command(bin_folder, "yarn")
    stop(attempt.row)
    assert not call_log.exists()


def test_the_folder_of_an_attempt_is_removed_once_it_has_ended(
    attempt: Attempt, bin_folder: Path
) -> None:
    folder = Path(engine_of(attempt.row).facts(attempt)["folder"])
    (folder / "scratch").mkdir(parents=True)
    other_folder = folder.with_name(str(uuid4()))
    other_folder.mkdir()
    stop(attempt.row)
    assert not folder.exists()
    assert other_folder.exists()


def test_files_of_ended_attempts_on_a_lost_host_are_removed_when_the_host_is_back(
    attempt: Attempt,
) -> None:
    engines.tidy_host()  # nothing was ever submitted here
    folder = Path(engine_of(attempt.row).facts(attempt)["folder"])
    lost = folder.with_name(str(uuid4()))
    for submit_folder in (folder, lost):
        (submit_folder / "scratch").mkdir(parents=True)
    engines.tidy_host()
    assert folder.exists()
    assert not lost.exists()


def stop(attempt: RunAttempt) -> None:
    engine_of(attempt).stop(Mock(), attempt)


@pytest.fixture
def commands_of_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make the only folder with commands; every user may write to the folder."""
    with open_folder() as folder:
        folder.chmod(0o777)
        monkeypatch.setenv("PATH", str(folder))
        yield folder


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone may become another user")
def test_commands_about_applications_have_the_user_of_runs(
    attempt: Attempt, commands_of_others: Path, settings: Any
) -> None:
    settings.RUNNER_USER = "nobody"
    arguments = command(commands_of_others, "yarn", answer=f'"  Application-Name : {attempt.tag}"')
    RunAttempt.objects.filter(pk=attempt.row.pk).update(application_id="application_1_0001")
    engine_of(attempt.row).stop(Mock(), attempt.row)
    assert "application -kill application_1_0001" in arguments.read_text()
    assert arguments.stat().st_uid == pwd.getpwnam("nobody").pw_uid


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone may become another user")
def test_a_command_that_the_user_of_runs_cannot_start_leaves_the_end_open(
    attempt: Attempt, commands_of_others: Path, settings: Any
) -> None:
    settings.RUNNER_USER = "nobody"
    command(commands_of_others, "yarn")
    (commands_of_others / "yarn").chmod(0o700)
    RunAttempt.objects.filter(pk=attempt.row.pk).update(application_id="application_1_0001")
    with pytest.raises(WorkMayContinueError, match="yarn cannot be started by the user of runs"):
        engine_of(attempt.row).stop(Mock(), attempt.row)
