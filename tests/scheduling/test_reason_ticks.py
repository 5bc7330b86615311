"""The tick that a reason names is the tick at which the scheduler makes the partition due."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from assets_app.models import Asset, AssetPartition, Schedule
from assets_app.queries.reason_texts import Reason
from assets_app.queries.schedule_ticks import next_tick
from assets_app.queries.trigger_causes import cause_of
from assets_app.queries.untriggered import untriggered_reason
from assets_app.queries.upstream_needs import UpstreamNeed, UpstreamPartition
from assets_app.scheduling.evaluations import Case, Evaluation, UpstreamStatus
from assets_app.scheduling.late_inputs import FRESH_AGAIN
from assets_app.scheduling.tick_terms import MOMENT, NEVER_MADE, TickTerms
from slicewise.declaring import is_after, schedule_terms, time_terms
from slicewise.partitions import PartitionRow
from tests.scheduling.scheduled_assets import (
    DAILY,
    after,
    all_of,
    any_of,
    at,
    by,
    cron,
    fresh,
)

ENDED = at(2024, 7, 10)
WINDOW = PartitionRow("2024-07-09", at(2024, 7, 9), ENDED, "", at(2024, 7, 9).date())
WHOLE = PartitionRow("", None, None, "", None)
_HORIZON = at(2024, 7, 16)
_ASSETS = {name: Asset(pk=number, name=name) for number, name in enumerate("abcf", 1)}
_TICK = re.compile(r"ue at the tick of the schedule at (\d{4}-\d\d-\d\d \d\d:\d\d) UTC")
_AT_TICK, _WHEN_FRESH = " at a tick after the write", " when f is fresh"
_WRITE = re.compile(
    "The next write of a needed partition of ([abc, or]+) by a schedule, a person or a report"
    rf" makes the partition due({_AT_TICK})?({_WHEN_FRESH})?\."
)
_HOURS = timedelta(hours=1)


class ReasonCase(NamedTuple):
    """A partition, a schedule at a moment, and when each asset was materialized."""

    row: PartitionRow
    schedule: Schedule
    now: datetime
    newest_at: Mapping[str, datetime | None]
    # Until when the scheduler has put the partition off.
    mark: datetime | None = None
    # The names of the assets of which no partition is needed.
    unneeded: frozenset[str] = frozenset()


def names_of(schedule: Schedule) -> list[str]:
    """Return the names of all assets of a schedule."""
    terms = schedule_terms(schedule.expression)
    return sorted({term["name"] for term in terms if "name" in term})


def evaluated(case: ReasonCase, times: TickTerms, now: datetime) -> Evaluation:
    """Return what the scheduler finds at a moment."""
    statuses = {
        name: UpstreamStatus(0, 0, is_newer=False, needs_none=True)
        if name in case.unneeded
        else UpstreamStatus(1, int(at_ is not None), is_newer=at_ is not None, newest_at=at_)
        for name, at_ in case.newest_at.items()
    }
    ids = {name: _ASSETS[name].pk for name in statuses}
    expression = case.schedule.expression
    return Case(expression, case.row, statuses, now, times, NEVER_MADE, ids, set()).evaluate()


def queued_at(case: ReasonCase) -> datetime | None:
    """Return the tick at which the scheduler queues the partition if nothing else happens."""
    schedule, mark = case.schedule, case.mark
    rule, handled = schedule.rule or {}, schedule.handled_until
    while (tick := next_tick(rule, handled)) is not None and tick <= _HORIZON:
        is_released = mark is not None and mark <= tick
        since = handled + MOMENT
        since_by_key = {case.row.key: min(since, mark)} if mark and is_released else {}
        times = TickTerms(
            rule=rule, began_at=schedule.began_at, now=tick, since=since, since_by_key=since_by_key
        )
        mark = None if is_released else mark
        definition = None if case.row.end is None else DAILY
        ended = times.ended_since(definition, handled)
        if is_released or case.row.key in {key.text for key in ended}:
            evaluation = evaluated(case, times, tick)
            if evaluation.is_due and (evaluation.is_due_by_tick or is_released):
                return tick
            next_at = times.next_of(case.row) if evaluation.waits_for_tick else None
            if next_at is not None and case.row.end is not None:
                mark = min(filter(None, [mark, next_at]))
        handled = times.ticks_after(handled).last
    return None


def reason_of(case: ReasonCase) -> Reason:
    """Return the reason that pages show."""
    marked = None if case.mark is None else AssetPartition(due_again=True, due_at=case.mark)
    needs = tuple(
        UpstreamNeed(_ASSETS[name], 0, 0, needs_none=True)
        if name in case.unneeded
        else UpstreamNeed(
            _ASSETS[name], 1, int(at_ is not None),
            () if at_ else (UpstreamPartition(_ASSETS[name], "2024-07-09", "missing", None),),
            newest_at=at_, recorded_at=at_,
        )
        for name, at_ in case.newest_at.items()
    )  # fmt: skip
    return untriggered_reason(
        Asset(pk=99, name="x"), case.schedule, case.row.key, marked, case.row.end, needs, case.now
    )


def named_tick(reason: Reason) -> datetime | None:
    """Return the tick that the sentence of a reason names."""
    found = _TICK.search(reason.text)
    return datetime.strptime(found[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC) if found else None


def schedule_of(expression: Mapping[str, Any], began_at: datetime, now: datetime) -> Schedule:
    """Return a schedule whose ticks until now are handled."""
    rule: dict[str, Any] = {"schedule": expression, "timezone": None, "start": None, "end": None}
    if any(map(is_after, time_terms(expression))):
        rule["windows"] = DAILY.to_json()
    last = TickTerms(rule=rule, began_at=began_at, now=now).last_tick
    handled = began_at if last is None else max(last, began_at)
    return Schedule(rule=rule, by_time=False, handled_until=handled, began_at=began_at)


def drawn_expression(chance: random.Random, leaves: Sequence[Any], depth: int) -> Any:
    """Return an expression of some of the leaves."""
    if depth == 0 or chance.random() < 0.35:
        return chance.choice(leaves)
    operands = [
        drawn_expression(chance, leaves, depth - 1) for _ in range(chance.choice([2, 2, 3]))
    ]
    return chance.choice([all_of, any_of])(*operands)


def drawn_cases(row: PartitionRow, seed: int, number: int) -> Iterator[ReasonCase]:
    """Yield cases of a partition: as they are after a backfill, or after a write by a run."""
    chance = random.Random(seed)
    leaves = [
        *(by(name) for name in "abc"),
        *(cron(rule) for rule in ("0 6 * * *", "0 12 * * *", "0 */5 * * *")),
        *(fresh("f", span * _HOURS) for span in (2, 8, 500)),
        *([after(hours * _HOURS) for hours in (2, 6, 12)] if row.end else []),
    ]
    while number:
        expression = drawn_expression(chance, leaves, chance.choice([2, 2, 3]))
        moment = ENDED + timedelta(minutes=chance.randrange(0, 40 * 60, 7))
        began_at = chance.choice(
            [at(2024, 7, 1), ENDED - _HOURS, ENDED, ENDED + _HOURS, ENDED + 7 * _HOURS]
        )
        if not time_terms(expression) or "of" not in expression or began_at > moment:
            continue
        number -= 1
        schedule = schedule_of(expression, began_at, moment)
        if schedule.rule is not None and chance.random() < 0.2:
            ends_in = chance.choice([-2, 3, 20]) * _HOURS
            schedule.rule["end"] = (moment + ends_in).isoformat()
        ages = [None, timedelta(minutes=10), 5 * _HOURS]
        drawn = {name: chance.choice(ages) for name in names_of(schedule)}
        newest_at = {name: None if age is None else moment - age for name, age in drawn.items()}
        unneeded = frozenset(name for name in drawn if chance.random() < 0.15)
        case = ReasonCase(row, schedule, moment, newest_at, unneeded=unneeded)
        if chance.random() < 0.5:
            times = TickTerms(rule=schedule.rule or {}, began_at=began_at, now=moment)
            written = evaluated(case, times, moment)
            if written.is_due:
                continue
            if written.waits_for_tick and row.end is not None:
                case = case._replace(mark=times.next_of(row))
        yield case


@pytest.mark.parametrize("row", [WINDOW, WHOLE], ids=["window", "whole"])
@pytest.mark.parametrize("seed", range(4))
def test_a_reason_names_the_tick_at_which_the_scheduler_queues(
    row: PartitionRow, seed: int
) -> None:
    ticks = 0
    for case in drawn_cases(row, seed, 500):
        reason, expected = reason_of(case), queued_at(case)
        ticks += expected is not None
        assert named_tick(reason) == expected, (
            case,
            case.schedule.expression,
            reason,
        )
    assert ticks > 30


@pytest.mark.parametrize("row", [WINDOW, WHOLE], ids=["window", "whole"])
def test_the_next_write_makes_the_partition_due_as_the_reason_says(row: PartitionRow) -> None:
    promises: Counter[tuple[str, str]] = Counter()
    for case in drawn_cases(row, 5, 1_500):
        for names, at_tick, when_fresh in _WRITE.findall(reason_of(case).text):
            promises[at_tick, when_fresh] += 1
            for name in re.findall("[abc]", names.replace(" or ", " ")):
                written = written_case(case, [name, "f"] if when_fresh else [name])
                times = TickTerms(
                    rule=case.schedule.rule or {},
                    began_at=case.schedule.began_at,
                    now=written.now,
                    since=written.now,
                )
                evaluation = evaluated(written, times, written.now)
                # The fresh asset may make the partition due by another way, without a tick.
                is_early = bool(when_fresh) and evaluation.is_due
                effect = (evaluation.is_due, evaluation.waits_for_tick)
                assert is_early or effect == (not at_tick, bool(at_tick)), (
                    case,
                    case.schedule.expression,
                    reason_of(case),
                )
    # A partition without a window waits for the ticks since its last run.
    kinds = [("", ""), ("", _WHEN_FRESH), (_AT_TICK, ""), (_AT_TICK, _WHEN_FRESH)]
    assert set(promises) == set(kinds if row.end else kinds[:2]), promises


def written_case(case: ReasonCase, names: Sequence[str]) -> ReasonCase:
    """Return the case a minute later, when a run has written the assets."""
    written_at = case.now + timedelta(minutes=1)
    newest_at = {**case.newest_at, **dict.fromkeys(names, written_at)}
    return case._replace(now=written_at, newest_at=newest_at)


@pytest.mark.parametrize("row", [WINDOW, WHOLE], ids=["window", "whole"])
def test_a_reason_names_the_tick_until_the_scheduler_has_handled_the_tick(
    row: PartitionRow,
) -> None:
    ticks = 0
    for case in drawn_cases(row, 4, 500):
        if (tick := queued_at(case)) is not None:
            ticks += 1
            late = case._replace(now=tick + timedelta(seconds=90))
            assert named_tick(reason_of(late)) == tick, (case, reason_of(late))
    assert ticks > 50


SIX, NOON = cron("0 6 * * *"), cron("0 12 * * *")
BEGAN, ONE = at(2024, 7, 1), ENDED + _HOURS
NEXT_STEP = "Materialize the partition now, or start a backfill."


@pytest.mark.parametrize(
    ("expression", "present", "tick"),
    [
        (all_of(by("a"), after(6 * _HOURS), NOON), "a", at(2024, 7, 10, 12)),
        (
            any_of(
                all_of(by("a"), by("b")), all_of(by("a"), after(6 * _HOURS)), after(24 * _HOURS)
            ),
            "b",
            at(2024, 7, 11),
        ),
        (
            any_of(all_of(by("a"), by("b"), after(2 * _HOURS)), all_of(by("a"), after(6 * _HOURS))),
            "a",
            at(2024, 7, 10, 6),
        ),
        (any_of(all_of(by("a"), SIX), all_of(by("b"), NOON)), "b", at(2024, 7, 10, 12)),
    ],
)
def test_a_partition_that_was_put_off_names_the_tick_that_makes_it_due(
    expression: Mapping[str, Any], present: str, tick: datetime
) -> None:
    schedule = schedule_of(expression, BEGAN, ONE)
    newest_at = {name: ONE if name == present else None for name in names_of(schedule)}
    case = ReasonCase(WINDOW, schedule, ONE, newest_at)
    times = TickTerms(rule=schedule.rule or {}, began_at=BEGAN, now=ONE)
    assert evaluated(case, times, ONE).waits_for_tick
    case = case._replace(mark=times.next_of(WINDOW))
    assert case.mark is not None
    assert case.mark <= tick
    assert (named_tick(reason_of(case)), queued_at(case)) == (tick, tick)


def test_many_ready_ways_hide_no_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{group}{number}" for group in "gh" for number in range(8)]
    for number, name in enumerate(names, 100):
        monkeypatch.setitem(_ASSETS, name, Asset(pk=number, name=name))
    pairs = all_of(any_of(*map(by, names[:8])), any_of(*map(by, names[8:])))
    schedule = schedule_of(any_of(pairs, all_of(by("c"), NOON)), BEGAN, ONE)
    case = ReasonCase(WINDOW, schedule, ONE, dict.fromkeys(names_of(schedule), ENDED))
    assert named_tick(reason_of(case)) == queued_at(case) == at(2024, 7, 10, 12)


@pytest.mark.parametrize(
    ("expression", "moment", "backfilled", "code"),
    [
        # The tick at noon has failed, and is examined again.
        (all_of(by("a"), NOON), at(2024, 7, 10, 12), "a", "evaluated_again"),
        # The write of b has failed, and is examined again.
        (all_of(by("a"), by("b"), after(_HOURS)), ENDED + 2 * _HOURS, "a", "evaluated_again"),
        (all_of(by("a"), by("b"), after(_HOURS)), ENDED + 2 * _HOURS, "ab", "not_triggered"),
    ],
)
def test_a_failing_schedule_examines_its_tick_and_the_writes_again(
    expression: Mapping[str, Any], moment: datetime, backfilled: str, code: str
) -> None:
    schedule = schedule_of(expression, BEGAN, moment - timedelta(minutes=30))
    schedule.failing_since, schedule.error = moment, "KeyError: x"
    schedule.retry_at = moment + timedelta(minutes=1)
    needs = tuple(
        UpstreamNeed(_ASSETS[name], 1, 1, newest_at=ENDED, backfilled=int(name in backfilled))
        for name in names_of(schedule)
    )
    reason = untriggered_reason(
        Asset(pk=99, name="x"), schedule, WINDOW.key, None, ENDED, needs,
        moment + timedelta(seconds=30),
    )  # fmt: skip
    assert reason.code == code
    assert (code == "evaluated_again") == ("is evaluated again at" in reason.text)


def test_an_examination_puts_a_window_off_once_the_fresh_asset_of_a_true_way_is_too_old() -> None:
    schedule = schedule_of(
        any_of(
            all_of(by("a"), after(2 * _HOURS), fresh("f", 8 * _HOURS)),
            all_of(by("b"), after(12 * _HOURS), cron("0 */5 * * *")),
        ),
        BEGAN,
        ENDED + 7 * _HOURS,
    )
    newest_at = dict.fromkeys("abf", ENDED + 3 * _HOURS)
    case = ReasonCase(WINDOW, schedule, ENDED + 7 * _HOURS, newest_at)
    assert named_tick(reason_of(case)) == queued_at(case) == at(2024, 7, 10, 15)


@pytest.mark.parametrize("time", [NOON, after(30 * _HOURS)])
@pytest.mark.parametrize("newest_at", [None, ENDED - _HOURS])
def test_nothing_is_promised_where_one_of_the_times_can_no_longer_be_met(
    time: dict[str, Any], newest_at: datetime | None
) -> None:
    """The schedule ends before noon."""
    schedule = schedule_of(all_of(by("a"), cron("0 */5 * * *"), time), ENDED, ENDED + 3 * _HOURS)
    schedule.rule = {**(schedule.rule or {}), "end": (ENDED + 11 * _HOURS).isoformat()}
    case = ReasonCase(WINDOW, schedule, ENDED + 3 * _HOURS, {"a": newest_at})
    reason = reason_of(case)
    assert reason.code == "not_triggered"
    assert reason.text.startswith("The schedule has no tick to come. ")
    assert "next write" not in reason.text
    written_at = case.now + timedelta(minutes=1)
    times = TickTerms(rule=schedule.rule, began_at=ENDED, now=written_at, since=written_at)
    evaluation = evaluated(case._replace(newest_at={"a": written_at}), times, written_at)
    assert not evaluation.is_due
    assert not evaluation.waits_for_tick


def test_nothing_is_promised_by_a_schedule_that_has_ended_or_that_needs_nothing() -> None:
    schedule = schedule_of(all_of(by("a"), NOON), BEGAN, ONE)
    unneeded = ReasonCase(WINDOW, schedule, ONE, {"a": None}, unneeded=frozenset("a"))
    assert reason_of(unneeded).text == (
        "The partition needs no upstream partition, so that no write makes the partition due."
        f" {NEXT_STEP}"
    )
    schedule.rule = {**(schedule.rule or {}), "end": ENDED.isoformat()}
    for newest_at in (None, ENDED):
        reason = reason_of(ReasonCase(WINDOW, schedule, ONE, {"a": newest_at}))
        assert reason.text == (
            "The schedule has no tick to come. No write of an upstream partition has made the"
            f" partition due. {NEXT_STEP}"
        )


def test_a_tick_at_which_an_asset_is_too_old_is_no_promise() -> None:
    schedule = schedule_of(all_of(by("a"), fresh("f", _HOURS), SIX), BEGAN, ENDED)
    half_past = ENDED + timedelta(minutes=30)
    newest_at = {"a": half_past, "f": half_past}
    case = ReasonCase(WINDOW, schedule, half_past, newest_at, mark=at(2024, 7, 10, 6))
    reason = reason_of(case)
    assert (reason.code, reason.text) == (
        "waiting_for_fresh",
        "Waiting for fresh data of f: at the next tick for the partition, at 2024-07-10 06:00 UTC,"
        " the data of f is too old.",
    )
    assert reason.has_times
    assert queued_at(case) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (after(6 * _HOURS), NEXT_STEP),
        (all_of(fresh("f", 500 * _HOURS), SIX), NEXT_STEP),
        (
            any_of(all_of(by("a"), by("b")), after(24 * _HOURS)),
            "Waiting for 1 of 1 partition of a: a 2024-07-09.",
        ),
    ],
)
def test_a_window_from_before_the_schedule_is_promised_nothing_by_times_alone(
    expression: Mapping[str, Any], expected: str
) -> None:
    began_at = ENDED + 24 * _HOURS
    schedule = schedule_of(expression, began_at, began_at + _HOURS)
    newest_at = {name: ENDED if name == "f" else None for name in names_of(schedule)}
    reason = reason_of(ReasonCase(WINDOW, schedule, began_at + _HOURS, newest_at))
    if expected == NEXT_STEP:
        expected = (
            "The time window ended before the schedule began at 2024-07-11 00:00 UTC: a time alone"
            f" does not make the partition due. {NEXT_STEP}"
        )
    assert reason.text == expected


def test_a_window_from_before_the_schedule_waits_for_no_fresh_data() -> None:
    began_at = ENDED + 24 * _HOURS
    closed = (
        "The time window ended before the schedule began at 2024-07-11 00:00 UTC: a time alone does"
        f" not make the partition due. {NEXT_STEP}"
    )
    schedule = schedule_of(all_of(fresh("f", _HOURS), SIX), began_at, began_at + _HOURS)
    for newest_at in (None, ENDED, began_at + _HOURS):
        case = ReasonCase(WINDOW, schedule, began_at + _HOURS, {"f": newest_at})
        assert reason_of(case).text == closed
        fresh_case = written_case(case, "f")
        times = TickTerms(rule=schedule.rule or {}, began_at=began_at, now=fresh_case.now)
        assert not evaluated(fresh_case, times, fresh_case.now).is_due


def test_data_of_a_backfill_that_lacks_fresh_data_is_not_examined() -> None:
    schedule = schedule_of(all_of(by("a"), fresh("f", _HOURS), after(_HOURS)), BEGAN, ENDED)
    schedule.handled_until = ENDED + 2 * _HOURS
    needs = tuple(UpstreamNeed(_ASSETS[name], 1, 1, newest_at=ENDED, backfilled=1) for name in "af")
    asset, now = Asset(pk=99, name="x"), ENDED + 3 * _HOURS
    reason = untriggered_reason(asset, schedule, WINDOW.key, None, ENDED, needs, now)
    assert (reason.code, reason.text) == (
        "not_triggered",
        "The upstream partitions came from a backfill, which triggers nothing. The next write of a"
        " needed partition of a by a schedule, a person or a report makes the partition due when f"
        f" is fresh. {NEXT_STEP}",
    )
    marked = AssetPartition(due_again=True, due_at=FRESH_AGAIN)
    reason = untriggered_reason(asset, schedule, WINDOW.key, marked, ENDED, needs, now)
    assert reason.text == "Waiting for fresh data of f."


def test_a_failing_schedule_without_writes_promises_no_evaluation() -> None:
    began_at = ENDED + 24 * _HOURS
    schedule = schedule_of(any_of(after(6 * _HOURS), NOON), began_at, began_at + _HOURS)
    schedule.failing_since, schedule.error = began_at, "KeyError: x"
    schedule.retry_at = began_at + 2 * _HOURS
    reason = reason_of(ReasonCase(WINDOW, schedule, began_at + _HOURS, {}))
    assert reason.code == "not_triggered"
    assert "evaluated again" not in reason.text
    assert reason.text.endswith(NEXT_STEP)


def test_a_write_of_an_asset_of_which_any_partition_suffices_may_be_examined_again() -> None:
    schedule = schedule_of(all_of(by("a"), by("b"), after(_HOURS)), BEGAN, ENDED)
    schedule.failing_since, schedule.error = ENDED, "KeyError: x"
    schedule.retry_at = ENDED + 4 * _HOURS
    needs = (UpstreamNeed(_ASSETS["a"], 1, 1, newest_at=ENDED, backfilled=1),)
    assert not cause_of(schedule, needs, ENDED).is_whole
    assert cause_of(schedule, needs, ENDED).text.startswith("Upstream partitions of a came from")
    both = (*needs, UpstreamNeed(_ASSETS["b"], 1, 0))
    assert cause_of(schedule, both, ENDED).is_whole


def test_a_way_that_fresh_data_alone_completes_is_no_reason_to_wait_beside_another_way() -> None:
    schedule = schedule_of(any_of(all_of(by("a"), fresh("f", _HOURS)), by("b")), BEGAN, ENDED)
    schedule.handled_until = ENDED + 2 * _HOURS
    case = ReasonCase(WINDOW, schedule, ENDED + 3 * _HOURS, {"a": ENDED, "b": None, "f": ENDED})
    assert reason_of(case).text == "Waiting for 1 of 1 partition of b: b 2024-07-09."
    marked = case._replace(mark=FRESH_AGAIN)
    assert reason_of(marked).text.startswith("Waiting for fresh data of f.")
