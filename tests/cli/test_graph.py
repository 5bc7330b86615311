"""``assets graph``: the edges between assets on the command line."""

import pytest

from assets_app.models import AssetDependency
from slicewise import Offset
from tests.cli.commands import json_of, output_of, refusal
from tests.factories import DAILY_2013, asset

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def three(db: None) -> None:
    """Create raw, clean and report, each read by the next one."""
    assets = [asset(name, DAILY_2013) for name in ("raw", "clean", "report")]
    for upstream, downstream in ((0, 1), (1, 2)):
        AssetDependency.objects.create(
            upstream=assets[upstream],
            downstream=assets[downstream],
            inlet=True,
            mapping=Offset(-upstream).to_json(),
        )


def test_edges_are_printed_with_their_mapping() -> None:
    lines = [line.split() for line in output_of("assets", "graph").splitlines()]
    assert ["clean", "report", "1", "window", "earlier"] in lines
    assert ["raw", "clean", "same", "window"] in lines


def test_the_graph_of_one_asset_is_small() -> None:
    assert "report" not in output_of("assets", "graph", "raw")
    assert "report" in output_of("assets", "graph", "raw", "--depth", "2")


def test_json_is_that_of_the_api() -> None:
    graph = json_of("assets", "graph", "raw")
    assert [node["name"] for node in graph["assets"]] == ["clean", "raw"]
    assert graph["edges"] == [[1, 0, 0]]


def test_an_unknown_asset_and_a_wrong_depth_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert refusal(capsys, "assets", "graph", "raww")[0] == 2
    status, text = refusal(capsys, "assets", "graph", "raw", "--depth", "0")
    assert status == 2
    assert "from 1 to 100" in text
