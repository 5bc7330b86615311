"""Zones, cadences and definitions to draw from."""

from datetime import UTC, date, datetime, timedelta

from hypothesis import strategies as st

from slicewise import PartitionByInterval, PartitionByProduct, PartitionBySequence
from slicewise.calendar.zones import zone

ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "America/St_Johns",
    "Pacific/Chatham",
    "America/Sao_Paulo",
    "America/Havana",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Europe/Dublin",
    "Pacific/Apia",
    "Antarctica/Troll",
]
CRONS = [
    "@hourly",
    "@daily",
    "@weekly",
    "@monthly",
    "@quarterly",
    "@yearly",
    "30 * * * *",
    "*/7 * * * *",
    "*/5 * * * *",
    "15,45 * * * *",
    "0 */2 * * *",
    "30 1-3 * * *",
    "0 0,12 * * *",
    "59 23 * * *",
    "0 * * * 1-5",
    "0 0 * * 1-5",
    "30 2 * * 0",
    "0 0 13 * 5",
    "0 6 L * *",
    "0 0 * * 5#2",
    "0 0 * * L5",
    "0 0 15W * *",
    "0 0 29 2 *",
    "30 1 * * 0#1,0#2",
    "0 2 * 3,10 L0",
    "0-23/2 22-3 * * *",
    "0 3 1-7 3,10 *",
]
STEPS = [timedelta(minutes=15), timedelta(hours=1), timedelta(hours=7), timedelta(days=10)]

zones = st.sampled_from(ZONES)
crons = st.sampled_from(CRONS)
cadences = st.one_of(crons, st.sampled_from(STEPS))
instants = st.datetimes(datetime(1990, 1, 1), datetime(2035, 12, 31)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)
exclusions = st.sampled_from(
    [(), ("0 0 * * 6,0",), ("0 2 * * *",), (date(2024, 3, 10), "0 0 1 * *"), ("30 1 * * *",)]
)
SEGMENTS = ["marketing-dwh", "engineering-dwh", "eng..2", "a b|c,d", "Zürich", "*"]


# A span drawn from all of time would rarely meet a change: half of them lie around one.
CHANGES = {
    name: [start for start in zone(name).near.starts if 631_152_000 <= start < 2_082_758_400]
    for name in ZONES
}


@st.composite
def spans(draw: st.DrawFn, days: int = 12, name: str = "") -> tuple[datetime, datetime]:
    """Draw a span of some days, half of the time around a change of an offset, of the zone if
    given.
    """
    start = draw(instants)
    change_times = CHANGES[name or draw(zones)]
    around = draw(st.booleans())
    if change_times and around:
        change = datetime.fromtimestamp(draw(st.sampled_from(change_times)), UTC)
        start = change - timedelta(minutes=draw(st.integers(0, days * 1440)))
    return start, start + timedelta(minutes=draw(st.integers(0, days * 1440)))


@st.composite
def intervals(draw: st.DrawFn) -> PartitionByInterval:
    """Draw a definition bounded to some weeks."""
    name = draw(zones)
    start, end = draw(spans(days=40, name=name))
    return PartitionByInterval(
        draw(cadences.filter(lambda cadence: cadence != "*/5 * * * *")),
        timezone=name,
        start=start,
        end=end,
        exclude=draw(exclusions),
    )


sequences = st.lists(st.sampled_from(SEGMENTS), min_size=1, unique=True).map(PartitionBySequence)
products = st.one_of(
    st.builds(
        lambda time, dwh: PartitionByProduct({"day": time, "dwh": dwh}), intervals(), sequences
    ),
    st.builds(lambda first, second: PartitionByProduct([first, second]), sequences, sequences),
    st.builds(
        lambda first, time, second: PartitionByProduct({"a": first, "day": time, "b": second}),
        sequences,
        intervals(),
        sequences,
    ),
)
definitions = st.one_of(intervals(), sequences, products)
