"""The examples in the API's description."""

from drf_spectacular.utils import OpenApiExample

REQUEST_EXAMPLE = OpenApiExample(
    "A year of days",
    {
        "asset": "raw_flights",
        "start": "2013-01-01",
        "end": "2013-12-31",
        "description": "Flights of 2013",
        "max_active_runs": 3,
        "strategy": 30,
    },
    request_only=True,
)
WITH_DOWNSTREAM_EXAMPLE = OpenApiExample(
    "A selection, with all that follows, newest first, tonight",
    {
        "asset": "raw_flights",
        "selection": "2013-01..2013-03",
        "existing": "stale",
        "downstream": "all",
        "order": "newest",
        "start_at": "2026-11-21T22:00",
    },
    request_only=True,
)
SEVERAL_EXAMPLE = OpenApiExample(
    "Missing partitions of two assets in the same month",
    {
        "assets": ["raw_flights", "delays_by_origin"],
        "start": "2013-01",
        "end": "2013-01",
        "existing": "missing",
    },
    request_only=True,
)
UPSTREAM_EXAMPLE = OpenApiExample(
    "A group with all upstream assets",
    {"asset_group": "reports", "start": "2013-01", "end": "2013-03", "upstream": True},
    request_only=True,
)
CLONE_EXAMPLE = OpenApiExample(
    "The same, also materialized partitions",
    {"existing": "all", "max_active_runs": 5},
    request_only=True,
)
CHANGE_EXAMPLE = OpenApiExample(
    "More at once, and before others", {"max_active_runs": 8, "priority": 5}, request_only=True
)
CODE_EXAMPLE = OpenApiExample("By the newest code", {"code": "newest"}, request_only=True)
BULK_EXAMPLE = OpenApiExample(
    "Pause two", {"action": "pause", "backfills": [12, 13]}, request_only=True
)
PLAN_EXAMPLE = OpenApiExample(
    "A plan",
    {
        "total": 365,
        "to_materialize": 364,
        "runs": 13,
        "estimate": {"seconds": 160.0, "low": 120.0, "high": 210.0, "runs_seen": 40},
        "first_key": "2013-01-01",
        "last_key": "2013-12-31",
        "first_label": "2013-01-01",
        "last_label": "2013-12-31",
        "selection": "2013-01-01..2013-12-31",
        "materialized": 1,
        "failed": 0,
        "in_flight": 0,
        "start_date": "2013-01-01T00:00:00Z",
        "end_date": "2014-01-01T00:00:00Z",
        "strategy": 30,
        "code_version": {"id": 4, "digest": "5f0c"},
        "refused": [],
        "assets": [
            {
                "asset": "raw_flights",
                "version": "9a1b",
                "role": "chosen",
                "layer": 1,
                "selection": "2013-01-01..2013-12-31",
                "total": 365,
                "to_materialize": 364,
                "runs": 13,
                "existing": 1,
                "in_flight": 0,
                "in_flight_by": [],
                "upstream_missing": 0,
                "missing_by_asset": [],
                "upstream_nonexistent": 0,
                "upstream_gaps": [],
                "not_ended": 0,
                "materialized": 1,
                "failed": 0,
                "stale": 0,
                "older_code": 0,
                "strategy": 30,
                "params": {},
                "estimate": {"seconds": 160.0, "low": 120.0, "high": 210.0, "runs_seen": 40},
                "materialized_with": [],
            }
        ],
    },
    response_only=True,
    status_codes=["200"],
)
OUTCOME_EXAMPLE = OpenApiExample(
    "Two that failed alike, one that another backfill had",
    {
        "failures": [
            {
                "error": "ValueError: no flights on 2013-01-02",
                "runs": 2,
                "examples": [
                    {"run": 31, "selection": "2013-01-02"},
                    {"run": 35, "selection": "2013-01-06"},
                ],
            }
        ],
        "skipped": [
            {
                "asset": "raw_flights",
                "reason": "in_flight",
                "partitions": 1,
                "others": [{"backfill": 7, "name": "backfill_raw_flights_20261121T060000"}],
                "upstream_gaps": [],
                "hint": "",
            }
        ],
    },
    response_only=True,
)
BULK_RESULT_EXAMPLE = OpenApiExample(
    "One of two",
    {
        "done": [12],
        "refused": [{"backfill": 13, "reason": "backfill_raw_flights_2 is paused already."}],
    },
    response_only=True,
)
