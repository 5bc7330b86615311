"""An unforeseen error tells strangers nothing, and the log has all facts."""

import logging
from typing import Any

import pytest
from rest_framework.test import APIClient

SECRET = "the innards"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break a list in its own code."""

    def fail(*arguments: Any, **named: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("assets_app.api.runs.RunsView.list", fail)
    monkeypatch.setattr("assets_app.views.run_list._listed", fail)


def test_below_api_it_is_a_problem_and_is_logged(
    viewer_api: APIClient, broken: None, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = viewer_api.get("/api/v1/runs/")
    assert answer.status_code == 500
    assert answer["Content-Type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Internal Server Error",
        "status": 500,
        "detail": "The server failed on this request. The server's log has the error.",
    }
    traced = [record for record in caplog.records if record.exc_info]
    assert [str(record.exc_info[1]) for record in traced if record.exc_info] == [SECRET]


def test_elsewhere_it_is_a_page(viewer_api: APIClient, broken: None) -> None:
    answer = viewer_api.get("/runs/")
    assert answer.status_code == 500
    assert answer["Content-Type"].startswith("text/html")
    assert "Something went wrong" in answer.content.decode()
    assert SECRET not in answer.content.decode()


def test_a_foreign_host_is_a_problem_below_api(viewer_api: APIClient) -> None:
    answer = viewer_api.get("/api/v1/runs/", HTTP_HOST="elsewhere.example")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert "elsewhere" not in answer.content.decode()


@pytest.mark.parametrize("address", ["/api/v1/a%0Ab/", "/api/%0A", "/api/v1/runs/1%0A/"])
def test_an_address_of_two_lines_is_a_problem(viewer_api: APIClient, address: str) -> None:
    answer = viewer_api.get(address)
    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"
