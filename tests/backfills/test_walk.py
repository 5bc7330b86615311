"""The walk through the modules of the servers from the request of a backfill to its rows.

`pytest tests/backfills/test_walk.py -n 0 -s` prints the walk. The limits only sink.
"""

import sys

import pytest

import slicewise
from accounts_app.models import User
from backfills_app.services import check_backfill, request_from_text
from tests.backfills.driven_backfills import following
from tests.created_backfills import create_backfill
from tests.factories import asset
from tests.house.walk import Walk, walk_of

FEWER = "-s prints the walk; a module counts at its first function, and at its first dataclass too"
HOURLY = slicewise.PartitionByInterval("@hourly", start="2024-01-01")
DAILY = slicewise.PartitionByInterval("@daily", start="2024-01-01")
MONTHLY = slicewise.PartitionByInterval("@monthly", start="2024-01-01")


@pytest.mark.parametrize(
    ("fields", "most_modules", "most_returns"),
    [
        pytest.param({"asset": "hours", "downstream": "all"}, 24, 31, id="with downstream assets"),
        pytest.param({"asset": "months", "upstream": True}, 24, 30, id="with upstream assets"),
        pytest.param(
            {"assets": ["days", "months"], "upstream": True, "downstream": "all"}, 24, 30,
            id="several assets with all others",
        ),
    ],
)  # fmt: skip
def test_the_walk_of_creating_a_backfill(
    alice: User, sent: object, fields: dict[str, object], most_modules: int, most_returns: int
) -> None:
    asset("hours", HOURLY)
    following("days", DAILY, of={"hours": None})
    following("months", MONTHLY, of={"days": None})
    request = request_from_text(start="2024-01", end="2024-03", **fields)
    show("create_backfill", walk := walk_of(lambda: create_backfill(request, user=alice)))
    assert walk.modules <= most_modules, FEWER
    assert walk.returns <= most_returns, FEWER


def test_the_walk_of_a_preview(alice: User, sent: object) -> None:
    asset("hours", HOURLY)
    following("days", DAILY, of={"hours": None})
    request = request_from_text("hours", "2024-01", "2024-03", downstream="all")
    show("check_backfill", walk := walk_of(lambda: check_backfill(request, user=alice)))
    assert walk.modules <= 28, FEWER
    assert walk.returns <= 49, FEWER


def show(name: str, walk: Walk) -> None:
    """Print a walk for a developer."""
    sys.stdout.write(f"{name}: {walk.modules} modules, {walk.returns} returns\n")
    sys.stdout.writelines(f"  {module}\n" for module in walk.visits)
