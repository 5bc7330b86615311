"""A backfill of six days that can be brought into each state."""

from accounts_app.models import User
from assets_app.execution.attempt import attempts, ending
from assets_app.execution.attempt.attempts import Attempt
from assets_app.execution.attempt.ending import Failure
from assets_app.execution.queue.dispatch import dispatch
from assets_app.models import Gateway, Run, RunState
from backfills_app.services import cancel_backfill, delete_backfill, pause_backfill, resume_backfill
from backfills_app.services.advance.advancing import advance
from tests.backfills.driven_backfills import run_all, start
from tests.factories import DAILY_2013, asset

ENDING = {
    "succeeded": (),
    "deleted": (),
    "partially_failed": ("2013-01-03",),
    "failed": tuple(f"2013-01-0{day}" for day in range(1, 7)),
}
LAST_STEPS = {
    "scheduled": (pause_backfill, resume_backfill),
    "paused": (pause_backfill,),
    "paused while creating": (pause_backfill,),
    "canceling": (cancel_backfill,),
    "canceled": (cancel_backfill,),
    "deleted": (delete_backfill,),
}


class Desk:
    """A backfill of six days, two at once, and the worker that executes the runs."""

    def __init__(self, alice: User, worker: Gateway) -> None:
        self.alice, self.worker = alice, worker
        asset("raw_flights", DAILY_2013)
        self.backfill = start(alice, end="2013-01-06", max_active_runs=2)

    def run_some(self, number: int = 2) -> list[Attempt]:
        advance()
        dispatch()
        sent = Run.objects.filter(state=RunState.DISPATCHED).order_by("id")[:number]
        begun_attempts = [attempts.begin(run.pk, self.worker) for run in sent]
        return [attempt for attempt in begun_attempts if attempt is not None]

    def end_all(self, *failing: str) -> None:
        run_all(self.worker, failing=failing)

    def bring_to(self, state: str) -> None:
        """Bring the backfill into a state; in the states on the way two runs are at work."""
        begin = state in ("running", "running with failures", "paused", "canceling")
        begun_attempts = self.run_some() if begin else []
        if state == "running with failures":
            ending.fail(begun_attempts[0].row, Failure(error="ValueError: no"))
        if state in ("scheduled", "canceled"):
            advance()
        if state in ENDING:
            self.end_all(*ENDING[state])
        for act in LAST_STEPS.get(state, ()):
            act(self.backfill, user=self.alice)
        self.backfill.refresh_from_db()
