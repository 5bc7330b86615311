"""The labels below the chart of runs of the overview."""

from datetime import UTC, datetime, timedelta

import pytest

from slicewise_server.home.run_chart import SPANS, run_chart

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("hour", [0, 5, 11, 12, 23])
def test_each_day_has_its_label_at_the_column_in_which_it_begins(hour: int) -> None:
    now = datetime(2026, 11, 26, hour, 28, tzinfo=UTC)
    starts = [column.start for column in run_chart(SPANS["7d"], now).columns if column.label_form]
    today = datetime(2026, 11, 26, tzinfo=UTC)
    assert starts[-7:] == [today - timedelta(days=days) for days in range(6, -1, -1)]
    assert all(start.hour == 0 for start in starts)


def test_the_chart_of_a_day_has_a_label_for_every_six_columns() -> None:
    columns = run_chart(SPANS["24h"], datetime(2026, 11, 26, 11, 28, tzinfo=UTC)).columns
    labelled = [index for index, column in enumerate(columns) if column.label_form]
    assert labelled == [0, 6, 12, 18]
