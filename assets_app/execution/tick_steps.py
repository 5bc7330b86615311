"""The steps of a tick in execution: waiting runs, recovery, repeated messages, dispatch."""

from datetime import datetime

from assets_app.execution.gateway import recovery
from assets_app.execution.gateway.clearing import ask_to_clear
from assets_app.execution.queue.coalescing import tick_step
from assets_app.execution.queue.dispatch import dispatch, resend_dispatched
from assets_app.execution.queue.hooks import resend_hooks
from assets_app.execution.queue.queue_heads import check_heads
from assets_app.execution.queue.waiting import wake_waiting

_wake_waiting, _recover = tick_step(wake_waiting), tick_step(recovery.recover)
_resend_dispatched, _resend_hooks = tick_step(resend_dispatched), tick_step(resend_hooks)
_ask_to_clear, _dispatch = tick_step(ask_to_clear), tick_step(dispatch)
_check_heads = tick_step(check_heads)


def request_steps(now: datetime) -> None:
    """Request all steps: check waiting runs, recover lost runs, repeat messages without an answer,
    dispatch queued runs.
    """
    _wake_waiting.request(now)
    for step in (_recover, _resend_dispatched, _resend_hooks, _ask_to_clear, _dispatch):
        step.request()


def request_waiting_and_dispatch(now: datetime) -> None:
    """Request a check of waiting runs, and the dispatch of queued runs."""
    _wake_waiting.request(now)
    _dispatch.request()


def request_dispatch() -> None:
    """Request the dispatch of queued runs."""
    _dispatch.request()


def request_head_check() -> None:
    """Request a comparison of the heads of the queues with the queued runs."""
    _check_heads.request()
