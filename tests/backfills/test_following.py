"""The cost of the end of many runs for their backfill."""

import pytest
from django.db import connection

from accounts_app.models import User
from assets_app.models import Run, RunPartition
from backfills_app.services.advance.advancing import advance
from backfills_app.services.bookkeeping.following import _FOLLOW
from tests.backfills.driven_backfills import ask
from tests.factories import DAILY_2013, asset
from tests.query_plans import nodes_of

pytestmark = pytest.mark.django_db


def test_the_list_of_ended_runs_is_gone_through_once_whatever_statistics_say(alice: User) -> None:
    """The statistics are of a moment at which no run had ended. A list that is gone through for
    each of its runs took a minute for 50,000 runs.
    """
    asset("raw_flights", DAILY_2013)
    ask(alice, "raw_flights", selection="2013", max_active_runs=365)
    for _ in range(3):
        advance()
    runs = list(Run.objects.values_list("pk", flat=True))
    assert len(runs) == 365
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    RunPartition.objects.update(state=RunPartition.State.CANCELED)
    lists = [
        node
        for node in nodes_of(_FOLLOW, {"runs": runs})
        if "ANY" in node.get("Index Cond", "") + node.get("Filter", "")
    ]
    assert [node["Actual Loops"] for node in lists] == [1]
