"""Set-up and tear-down around an asset's function, in the run's own process."""

import math
import time
from typing import Any

import pytest

from tests.runtime.runs import Outcome, Runs

Message = dict[str, Any]


def run_steps(
    runs: Runs,
    name: str,
    *args: Any,
    outcome: str | None = None,
    stop_at: str | None = None,
    **more: Any,
) -> Outcome:
    """Run to the end as a worker does; ask the run to stop once its log has ``stop_at`` in a whole
    line: `print` may write the end of a line apart.
    """
    followed = Outcome(runs.request(name, *args, **more))
    runner = runs.parent.launch(followed.request)
    asked_at = math.inf
    for message in runner.messages(0.2):
        runner.ping()
        followed.messages.append(message)
        if message["type"] == "step":
            runner.answer({"type": "answer", "outcome": outcome})
        elif message["type"] == "ask":
            runner.answer({"type": "answer", "keys": [], "next": None})
        is_reached = stop_at is not None and stop_at in followed.log.rpartition("\n")[0]
        # As a worker does, again after some time: a signal that meets the begin of a wait is late.
        if is_reached and (asked_at == math.inf or time.monotonic() > asked_at + 2):
            asked_at = time.monotonic()
            runner.stop()
    return followed


def steps_of(outcome: Outcome) -> list[str]:
    """Return the reported steps, each with the state."""
    return [f"{message['step']} {message['state']}" for message in outcome.of_type("step")]


CLUSTER = """
    DAYS = PartitionByInterval("@daily", start="2024-01-01")

    @asset(partition=DAYS)
    def flights(cluster, context):
        print("function", cluster, context["partition"], "outcome" in context)
        if context["params"].get("fails"):
            raise ValueError("fog")

    @flights.setup
    def cluster(self, context):
        print("setup", self.name, context["partition"], get_current_context() is context)
        return "four nodes"

    @flights.teardown
    def close(self, context, cluster):
        print("teardown", cluster, context["outcome"], context["error"], context["partition"])
        print(get_current_context() is context, os.getpid() == int(os.environ["PID"]))
"""
PID = """
    os.environ["PID"] = str(os.getpid())
"""
ALL = [
    "setup running", "setup succeeded", "function running", "function succeeded",
    "teardown running", "teardown succeeded",
]  # fmt: skip


def test_they_are_called_before_and_after_the_function(runs: Runs) -> None:
    runs.define(PID + CLUSTER)
    outcome = run_steps(runs, "flights", ["2024-01-01"])
    assert outcome.log.splitlines() == [
        "setup flights 2024-01-01 True",
        "function four nodes 2024-01-01 False",
        "teardown four nodes succeeded None 2024-01-01",
        "True True",
    ]
    assert steps_of(outcome) == ALL
    # The end of the run is told before the tear-down begins.
    kinds = [message["type"] for message in outcome.messages if message["type"] != "log"]
    assert kinds.index("finished") < len(kinds) - 1 - kinds[::-1].index("step")
    assert outcome.messages[-1]["status"] == 0


def test_the_tear_down_of_a_failed_function_knows_the_error(runs: Runs) -> None:
    runs.define(PID + CLUSTER)
    outcome = run_steps(runs, "flights", ["2024-01-01"], params={"fails": True})
    assert outcome.failure["error"] == "ValueError: fog"
    assert "teardown four nodes failed ValueError: fog 2024-01-01" in outcome.log
    assert steps_of(outcome)[-3:] == ["function failed", "teardown running", "teardown succeeded"]


def test_a_set_up_that_fails_fails_the_run_and_is_torn_down(runs: Runs) -> None:
    runs.define("""
        def cluster(): raise OSError("no room")
        def close(cluster, context): print(cluster, context["outcome"], context["error"])

        @asset(setup=cluster, teardown=close)
        def flights(cluster): print("never")
    """)
    outcome = run_steps(runs, "flights")
    assert outcome.failure["error"] == "OSError: no room"
    assert outcome.log == "None failed OSError: no room\n"
    assert steps_of(outcome) == [
        "setup running", "setup failed", "teardown running", "teardown succeeded",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "ends", ["raise OSError('stuck')", "sys.exit(3)", "raise BaseException('x')"]
)
def test_a_tear_down_that_fails_changes_nothing_else(runs: Runs, ends: str) -> None:
    runs.define(f"""
        @asset
        def flights(): ...

        @flights.teardown
        def close():
            {ends}
    """)
    outcome = run_steps(runs, "flights")
    assert outcome.types[-1] == "exited"
    assert outcome.of_type("finished")
    assert not outcome.of_type("failed")
    assert steps_of(outcome)[-1] == "teardown failed"
    assert 'File "assets.py", line' in outcome.log
    assert outcome.messages[-1]["status"] == 0


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("self.write(1)", "RuntimeError: flights cannot be written: a tear-down runs after"),
        ("FOUND.add_partition(key='EWR')", "RuntimeError: no partition can be added"),
    ],
)
def test_a_tear_down_adds_nothing_to_the_output(runs: Runs, does: str, message: str) -> None:
    runs.define(f"""
        FOUND = PartitionAtRuntime("airports")

        @asset(uri=f"{{LAKE}}/flights", partition=FOUND)
        def flights(): ...

        @flights.teardown
        def close(self):
            {does}
    """)
    outcome = run_steps(runs, "flights", [])
    (failed,) = [m for m in outcome.of_type("step") if m["state"] == "failed"]
    assert failed["error"].startswith(message)
    assert outcome.of_type("finished")


def test_output_of_a_step_is_sent_between_the_messages_of_the_step(runs: Runs) -> None:
    runs.define("""
        @asset
        def flights():
            os.write(1, b"in the function\\n")

        @flights.setup
        def cluster():
            print("in the setup, unflushed", end="")

        @flights.teardown
        def close(): print("in the teardown")
    """)
    outcome = run_steps(runs, "flights")
    told = [
        message["text"] if message["type"] == "log" else f"{message['step']} {message['state']}"
        for message in outcome.messages
        if message["type"] in ("log", "step")
    ]
    assert told == [
        "setup running", "in the setup, unflushed", "setup succeeded",
        "function running", "in the function\n", "function succeeded",
        "teardown running", "in the teardown\n", "teardown succeeded",
    ]  # fmt: skip


def test_several_outlets_have_one_set_up_and_one_tear_down(runs: Runs) -> None:
    runs.define("""
        @asset.multi(outlets=[Asset("a", uri="x-a"), Asset("b", uri="x-b")])
        def both(prefix): print(prefix)

        @both.setup
        def prefix(self): return "-".join(self)

        @both.teardown
        def close(prefix, self): print("closes", prefix, sorted(self))
    """)
    outcome = run_steps(runs, "both")
    assert outcome.log == "a-b\ncloses a-b ['a', 'b']\n"
    assert steps_of(outcome) == ALL


def test_nothing_is_told_of_an_asset_without_them(runs: Runs) -> None:
    runs.define("""
        @asset
        def flights(): print("made")
    """)
    assert runs.run("flights").types == ["started", "finished", "exited"]


STOPPED = """
    @asset
    def flights():
        try:
            print("at work", flush=True)
            {work}
        finally:
            print("cut short", flush=True)

    @flights.teardown
    def close(context):
        print("teardown", context["outcome"], context["error"])
        time.sleep(0.2)
        print("closed", flush=True)
"""


@pytest.mark.parametrize(
    "work",
    [
        "time.sleep(600)",
        "subprocess.run(['sleep', '600'])",
        "threading.Event().wait()",
        "next(get_current_context()['partition'].iter_past_partitions(), None); time.sleep(600)",
        "[None for _ in iter(int, 1)]",
    ],
)
def test_a_run_that_is_stopped_is_torn_down(runs: Runs, work: str) -> None:
    runs.define(STOPPED.format(work=work))
    outcome = run_steps(runs, "flights", outcome="canceled", stop_at="at work")
    assert outcome.log.splitlines()[1:] == ["cut short", "teardown canceled None", "closed"]
    assert steps_of(outcome) == [
        "function running", "function stopped", "teardown running", "teardown succeeded",
    ]  # fmt: skip
    # The worker knows why, and the end looks as if nothing had caught the signal.
    assert outcome.types[-1] == "exited"
    assert not outcome.of_type("failed")
    assert not outcome.of_type("finished")
    assert outcome.messages[-1]["signal"] == 15


def test_code_that_swallows_the_stop_is_stopped_at_its_end(runs: Runs) -> None:
    work = """
            try:
                print("deep in it", flush=True)
                time.sleep(600)
            except BaseException:
                print("swallowed")
    """.strip()
    runs.define(STOPPED.format(work=work))
    outcome = run_steps(runs, "flights", outcome="timed_out", stop_at="deep in it")
    assert "swallowed" in outcome.log
    assert "teardown timed_out None" in outcome.log
    assert not outcome.of_type("finished")


def test_a_child_that_the_function_has_forked_can_still_be_terminated(runs: Runs) -> None:
    runs.define("""
        import multiprocessing

        @asset
        def flights():
            child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
            child.start()
            child.terminate()
            child.join()
            print(child.exitcode)

        @flights.teardown
        def close(): ...
    """)
    outcome = run_steps(runs, "flights")
    assert outcome.log == "-15\n"
    assert outcome.of_type("finished")


def test_a_run_without_tear_down_is_ended_by_the_signal(runs: Runs) -> None:
    runs.define("""
        @asset
        def flights():
            print("at work", flush=True)
            time.sleep(600)
    """)
    outcome = run_steps(runs, "flights", stop_at="at work")
    assert outcome.messages[-1]["signal"] == 15


def test_a_question_that_a_stop_meets_is_answered_before_the_tear_down(runs: Runs) -> None:
    runs.define("""
        DAYS = PartitionByInterval("@daily", start="2024-01-01")

        @asset(partition=DAYS)
        def flights(context):
            print("at work", flush=True)
            while True:
                list(context["partition"].iter_past_partitions())

        @flights.teardown
        def close(context):
            print(list(context["partition"].iter_past_partitions()), context["outcome"])
    """)
    for _ in range(5):
        outcome = run_steps(runs, "flights", ["2024-01-02"], outcome="canceled", stop_at="at work")
        assert outcome.log.splitlines()[-1] == "[] canceled"
        assert steps_of(outcome)[-1] == "teardown succeeded"


@pytest.mark.parametrize("met", ALL[:4])
def test_a_stop_that_meets_a_report_leaves_no_step_open(runs: Runs, met: str) -> None:
    runs.define(PID + CLUSTER)
    followed = Outcome(runs.request("flights", ["2024-01-01"]))
    runner = runs.parent.launch(followed.request)
    for message in runner.messages(0.2):
        followed.messages.append(message)
        if message["type"] == "step":
            if f"{message['step']} {message['state']}" == met:
                runner.stop()
                time.sleep(0.1)
            runner.answer({"type": "answer", "outcome": "canceled"})
    reported = steps_of(followed)
    for begun, ended in zip(reported[::2], reported[1::2], strict=True):
        assert begun == f"{ended.split()[0]} running"
        assert not ended.endswith("running")
    assert reported[-1] == "teardown succeeded"
    assert followed.messages[-1]["signal"] == 15


STEPS_WITH_A_VIEW = """
        @flights.setup
        def names(spark):
            spark.range(3).createOrReplaceTempView("airports")
            return "airports"

        @flights.teardown
        def close(spark, names, context):
            print(spark.table(names).count(), context["outcome"])
"""


def test_a_tear_down_after_a_stop_has_the_runs_own_session(spark_runs: Runs) -> None:
    spark_runs.define(
        """
        from pyspark.sql import functions as F

        @asset(uri=f"{LAKE}/flights")
        def flights(spark, names):
            print("at work", flush=True)
            slow = F.udf(lambda value: time.sleep(600))
            spark.range(1).select(slow("id")).collect()
    """
        + STEPS_WITH_A_VIEW
    )
    began = time.monotonic()
    outcome = run_steps(spark_runs, "flights", outcome="canceled", stop_at="at work")
    assert outcome.log.splitlines()[-1] == "3 canceled"
    # The function by itself would take 600 s.
    assert time.monotonic() - began < 300


def test_a_tear_down_after_a_stop_needs_no_channel_that_the_function_has_used(
    spark_runs: Runs,
) -> None:
    spark_runs.define(
        """
        @asset(uri=f"{LAKE}/flights")
        def flights(spark, names):
            # A channel may be of no use after an exception inside of gRPC.
            spark.client._channel.close()
            print("at work", flush=True)
            time.sleep(600)
    """
        + STEPS_WITH_A_VIEW
    )
    outcome = run_steps(spark_runs, "flights", outcome="canceled", stop_at="at work")
    assert outcome.log.splitlines()[-1] == "3 canceled"


def test_a_stop_during_a_tear_down_interrupts_nothing(spark_runs: Runs) -> None:
    spark_runs.define("""
        from pyspark.sql import functions as F

        @asset(uri=f"{LAKE}/flights")
        def flights(spark):
            raise ValueError("fog")

        @flights.teardown
        def close(spark, context):
            slow = F.udf(lambda value: time.sleep(8) or value)
            # While Spark is at work.
            threading.Timer(3, print, ["closing"], {"flush": True}).start()
            print(spark.range(1).select(slow("id")).collect(), context["outcome"])
    """)
    outcome = run_steps(spark_runs, "flights", stop_at="closing")
    assert "Row(" in outcome.log.splitlines()[-1]
    assert outcome.log.splitlines()[-1].endswith("failed")
    assert steps_of(outcome)[-1] == "teardown succeeded"
    assert outcome.failure["error"] == "ValueError: fog"


def test_a_thread_that_goes_on_keeps_no_tear_down_waiting(spark_runs: Runs) -> None:
    spark_runs.define("""
        from threading import Thread
        from pyspark.sql import functions as F

        def work_again_and_again(spark):
            while True:
                try:
                    spark.range(1).select(F.udf(lambda value: time.sleep(600))("id")).collect()
                except Exception:
                    pass

        @asset(uri=f"{LAKE}/flights")
        def flights(spark):
            Thread(target=work_again_and_again, args=(spark,), daemon=True).start()
            time.sleep(1)
            print("at work", flush=True)
            time.sleep(600)

        @flights.teardown
        def close(spark, context):
            print(spark.range(3).count(), context["outcome"])
    """)
    outcome = run_steps(spark_runs, "flights", outcome="canceled", stop_at="at work")
    assert "3 canceled" in outcome.log.splitlines()
    assert outcome.messages[-1]["signal"] == 15


def test_a_submitted_run_is_stopped_and_torn_down(submitted_runs: Runs) -> None:
    submitted_runs.define("""
        @asset(uri=f"{LAKE}/flights", engine="submit")
        def flights(spark, names):
            print("at work", flush=True)
            spark.range(1).rdd.map(lambda value: time.sleep(600)).collect()

        @flights.setup
        def names(spark):
            spark.range(3).createOrReplaceTempView("airports")
            return "airports"

        @flights.teardown
        def close(spark, names, context):
            print(spark.table(names).count(), context["outcome"], flush=True)
    """)
    outcome = run_steps(submitted_runs, "flights", outcome="canceled", stop_at="at work")
    assert "3 canceled" in outcome.log.splitlines()
    assert steps_of(outcome)[-1] == "teardown succeeded"
    assert outcome.messages[-1]["signal"] == 15


def test_a_call_of_the_jvm_keeps_no_tear_down_waiting(submitted_runs: Runs) -> None:
    submitted_runs.define("""
        @asset(uri=f"{LAKE}/flights", engine="submit")
        def flights(spark):
            print("at work", flush=True)
            # Nothing interrupts such a call, as nothing does a change of a table's definition.
            spark._jvm.java.lang.Thread.sleep(600_000)

        @flights.teardown
        def close(spark, context):
            print(spark.range(3).count(), context["outcome"], flush=True)
    """)
    began = time.monotonic()
    outcome = run_steps(submitted_runs, "flights", outcome="canceled", stop_at="at work")
    assert "3 canceled" in outcome.log.splitlines()
    assert time.monotonic() - began < 300


def test_a_message_of_no_step_ends_the_run(runs: Runs) -> None:
    runs.define("""
        @asset
        def flights():
            message = b'{"type": "step", "step": "publish", "state": "running", "error": ""}'
            os.write(3, message + bytes([10]))
            time.sleep(600)

        @flights.teardown
        def close(): ...
    """)
    outcome = run_steps(runs, "flights")
    assert outcome.failure["error"].startswith("the run's channel got an invalid message")
