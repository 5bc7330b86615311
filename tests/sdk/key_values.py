"""Plain values of keys to draw from."""

from datetime import UTC, timedelta, timezone
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from slicewise import PartitionKey
from slicewise.storage.layout import NULL_FOLDER_VALUE

# Texts that look like other values, and those of which key texts are made.
_UUID = "00000000-0000-0000-0000-000000000005"
_LOOKING = ["1", "-0.5", "1e-07", "0.1d", "inf", "True", "2024-01-01", "06:30:00", "PT5S", "_1"]
_LOOKING += ["__", _UUID, "2024-01-01T06:00:00Z", "@whole()", "Position(1)"]
_words = st.one_of(
    st.text("ab1_~-.%(){}|,;*/ ü", max_size=4),
    st.sampled_from(_LOOKING),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=6),
).filter(lambda text: text != NULL_FOLDER_VALUE)
_zones = st.sampled_from([None, UTC, timezone(timedelta(hours=-5)), ZoneInfo("America/New_York")])
_offsets = st.sampled_from([None, UTC, timezone(timedelta(hours=-5)), timezone(timedelta(hours=2))])
_seldom_equal = st.one_of(
    st.floats(-1e60, 1e60, allow_nan=False),
    st.sampled_from([float("inf"), float("-inf")]),
    st.integers(-(10**40), 10**40),
    st.decimals(-1000, 1000, allow_nan=False),
    st.dates(),
    st.datetimes(timezones=_zones).filter(lambda moment: 1 < moment.year < 9999),
    st.times(timezones=_offsets),
    st.timedeltas(),
    st.uuids(),
)
_often_equal = st.sampled_from([0, 1, -1, True, False, 0.0, -0.0, 1.0, 0.1, 0.5, "", "1", "0.5"])
scalars = st.one_of(_often_equal, _words, _seldom_equal)
plain_values = st.recursive(
    scalars,
    lambda items: st.one_of(
        st.lists(items, max_size=3).map(tuple), st.frozensets(items, max_size=3)
    ),
    max_leaves=4,
)

keys = plain_values.filter(lambda value: value != "")
distinct_values = st.lists(
    keys, min_size=1, max_size=4, unique_by=lambda value: PartitionKey.of(value).text
)
