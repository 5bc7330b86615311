"""Which upstream partitions a run reads."""

import slicewise
from accounts_app.models import User
from assets_app.execution.inputs import read_inputs
from tests.cast import DAILY_2013, asset
from tests.execution.test_past import made, run_of


def test_what_is_not_partitioned_may_map_the_partitions_that_it_reads(alice: User) -> None:
    days = asset("days", DAILY_2013)
    made(days, "2013-01-01..2013-01-02")
    picked = slicewise.Keys(["2013-01-02", "2013-01-03"])
    whole = asset("whole", upstream={"days": picked})
    (read,) = read_inputs(run_of(whole, None, alice), [""])
    assert [piece.key for piece in read.slices] == ["2013-01-02"]
    assert read.missing == ["2013-01-03"]
