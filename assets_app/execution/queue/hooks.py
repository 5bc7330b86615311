"""Functions that are to be called after a run: rows that the end of a run stores, and messages.

`calling` makes the calls. The row is the truth, the message a nudge.
"""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q

from assets_app.execution.queue import messages
from assets_app.execution.queue.dispatch import live_gateways
from assets_app.models import HookOption, Queue, RunAttempt, RunHook
from assets_app.queries.clock import database_now

# Until then the message may be lost. A message never expires: behind long runs it waits for a free
# thread.
RESEND_AFTER = timedelta(minutes=1)
_SENT_AT_ONCE = 500


def leave_hook(attempt: RunAttempt, option: HookOption) -> None:
    """Record that the asset's function is to be called, in the transaction that ends the run."""
    run = attempt.run
    if not run.producer_version.spec.hook_name(option):
        return
    hook = RunHook.objects.create(attempt=attempt, option=option, sent_at=database_now())
    transaction.on_commit(
        lambda: messages.send(messages.CALL_HOOK, hook.pk, queue=run.queue), robust=True
    )


def resend_hooks() -> int:
    """Send messages again about calls that no worker has begun; return the number of messages."""
    now = database_now()
    # A message with a time in the future was sent before the clock was set back.
    late = Q(sent_at__lt=now - RESEND_AFTER) | Q(sent_at__gt=now + RESEND_AFTER)
    unheard = RunHook.objects.filter(late, begun_at__isnull=True)
    if not unheard.exists():
        return 0
    sent = 0
    for queue in Queue.values:
        if not live_gateways(queue):
            continue  # no worker would take a message, and messages would heap up
        rows = unheard.filter(attempt__run__queue=queue).order_by("pk")
        hook_ids = list(rows.values_list("pk", flat=True)[:_SENT_AT_ONCE])
        RunHook.objects.filter(pk__in=hook_ids).update(sent_at=now)
        for hook_id in hook_ids:
            messages.send(messages.CALL_HOOK, hook_id, queue=queue)
        sent += len(hook_ids)
    return sent
