"""Which way of limits a worker takes: groups by the setting, groups as delegated, or looks."""

import logging
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from assets_app.execution.gateway import run_cgroups
from slicewise.runner.group_folder import GroupFolder
from slicewise.runner.run_groups import RunGroups


def started_with(monkeypatch: pytest.MonkeyPatch, folder: GroupFolder) -> RunGroups | None:
    """The groups of a worker that has this folder."""
    monkeypatch.setattr(run_cgroups, "group_folder", lambda _: folder)
    return run_cgroups.run_groups()


def test_a_worker_asked_for_looks_makes_no_groups_and_says_so(
    settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.RUN_CGROUP = "none"
    with caplog.at_level(logging.INFO):
        assert run_cgroups.run_groups() is None
    (record,) = caplog.records
    assert record.getMessage() == "limits of runs"
    assert record.__dict__["by"] == (
        "the worker checks its runs ten times a second: SLICEWISE_RUN_CGROUP is none"
    )


def test_a_setting_that_is_no_group_stops_the_start(settings: Any, tmp_path: Path) -> None:
    settings.RUN_CGROUP = str(tmp_path)
    with pytest.raises(ImproperlyConfigured, match="the folder is no control group of version 2"):
        run_cgroups.run_groups()


def test_a_setting_under_which_no_group_can_be_made_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"no run can have a group there: .*No such"):
        started_with(monkeypatch, GroupFolder(tmp_path, is_by_setting=True))
    assert list(tmp_path.iterdir()) == []


def test_a_delegated_group_that_is_of_no_use_is_left_alone_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    assert started_with(monkeypatch, GroupFolder(tmp_path)) is None
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "the worker checks its runs ten times a second" in record.getMessage()


def test_a_worker_with_groups_says_where(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    started: list[RunGroups] = []
    monkeypatch.setattr(RunGroups, "start", lambda groups: started.append(groups))
    with caplog.at_level(logging.INFO):
        assert started_with(monkeypatch, GroupFolder(tmp_path)) is not None
    assert len(started) == 1
    (record,) = caplog.records
    assert record.__dict__["by"] == (
        f"the kernel limits each run by a control group below {tmp_path}"
    )
