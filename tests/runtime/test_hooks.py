"""Functions that are called after a run, in a runner of their own."""

import time
from typing import Any

import pytest

from tests.runtime.runs import Outcome, Runs


def call(runs: Runs, name: str, *args: Any, hook: str = "on_success", **more: Any) -> Outcome:
    """Return the outcome of a call of the function after a run of these partitions."""
    request = runs.request(name, *args, hook=hook, **{"error": None, **more})
    # As its worker sends it: nothing of Spark, and nothing to write with.
    for fact in ("spark", "fence", "attempt_name", "upstreams", "strategy"):
        del request[fact]
    outcome = Outcome(request)
    runner = runs.parent.call_hook(request)
    for message in runner.messages(0.5):
        runner.ping()
        outcome.messages.append(message)
    return outcome


def test_it_is_given_the_asset_and_the_context_of_the_run(runs: Runs) -> None:
    runs.define("""
        DAYS = PartitionByInterval("@daily", start="2024-01-01")

        def tell(self, context, channel="ops"):
            print(self.name, self.uri == f"{LAKE}/flights", [str(key) for key in self.partitions])
            print(context["asset"] is self, context["partition"], context["attempt"])
            print(context["trigger"], context["params"], context["error"], channel)
            print(get_current_context() is context, context["run_id"])

        @asset(uri=f"{LAKE}/flights", partition=DAYS, on_failure=tell)
        def flights(): ...
    """)
    days = ["2024-01-01", "2024-01-02"]
    more = {"params": {"a": 1}, "attempt": 3, "error": "ValueError: fog"}
    outcome = call(runs, "flights", days, hook="on_failure", **more)
    assert outcome.types == ["started", "finished", "exited"]
    assert outcome.log.splitlines() == [
        "flights True ['2024-01-01', '2024-01-02']",
        "True 2024-01-01..2024-01-02 3",
        "manual {'a': 1} ValueError: fog ops",
        f"True {outcome.request['run_id']}",
    ]


def test_of_several_outlets_it_is_given_all_by_name(runs: Runs) -> None:
    runs.define("""
        def tell(self):
            print({name: handle.uri.rpartition("/")[2] for name, handle in self.items()})

        @asset.multi(outlets=[Asset("a", uri=f"{LAKE}/x"), Asset("b", uri=f"{LAKE}/y")],
                     on_success=tell)
        def both(): ...
    """)
    outcome = call(runs, "both")
    assert outcome.log == "{'a': 'x', 'b': 'y'}\n"


def test_one_that_asks_for_nothing_is_called_with_nothing(runs: Runs) -> None:
    runs.define("""
        @asset(on_success=lambda: print("made"))
        def flights(): raise ValueError("it is not made once more")
    """)
    outcome = call(runs, "flights")
    assert (outcome.types, outcome.log) == (["started", "finished", "exited"], "made\n")


def test_its_failure_comes_with_the_lines_of_its_author(runs: Runs) -> None:
    runs.define("""
        def tell(context):
            raise ConnectionError("nobody takes mail")

        @asset(on_success=tell)
        def flights(): ...
    """)
    outcome = call(runs, "flights")
    assert outcome.types == ["started", "failed", "exited"]
    assert outcome.failure["error"] == "ConnectionError: nobody takes mail"
    lines = outcome.failure["traceback"].splitlines()
    assert lines[1].startswith('  File "assets.py", line ')
    assert lines[-1] == "ConnectionError: nobody takes mail"


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("self.read()", "NoSparkError: a function that is called after a run gets no Spark"),
        ("self.write(1)", "AfterRunError: the run has ended, and flights"),
        ("FOUND.add_partition(key='EWR')", "AfterRunError: the run has ended, and no partition"),
        (
            "context['partition'].upstream('raw')",
            "AfterRunError: the run has ended, and its data of 'raw'",
        ),
        (
            "next(context['partition'].iter_past_partitions())",
            "AfterRunError: the run has ended, and past partitions",
        ),
    ],
)
def test_a_hook_cannot_use_features_of_a_run(runs: Runs, does: str, message: str) -> None:
    runs.define(f"""
        FOUND = PartitionAtRuntime("airports")

        def tell(self, context):
            {does}

        @asset(uri=f"{{LAKE}}/flights", on_success=tell)
        def flights(): ...
    """)
    assert call(runs, "flights").failure["error"].startswith(message)


def test_a_file_that_makes_columns_at_its_top_is_imported_for_it(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # as loaders have it; runners do not
    runs.define("""
        from pyspark.sql import functions
        WHERE = functions.col("origin") == "EWR"

        @asset(engine="submit", on_success=lambda: print("made", WHERE is not None))
        def flights(): ...
    """)
    assert call(runs, "flights").log == "made True\n"


def test_a_call_that_is_not_watched_any_more_is_ended(runs: Runs) -> None:
    runs.define("""
        @asset(on_success=lambda: time.sleep(600))
        def flights(): ...
    """)
    request = runs.request("flights", hook="on_success", error=None, spark=None, watchdog=1)
    began = time.monotonic()
    *_, exited = runs.parent.call_hook(request).messages(0.5)
    assert (exited["signal"], time.monotonic() - began < 120) == (9, True)
