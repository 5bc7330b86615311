"""Sending of deliveries: claimed, sent outside of any transaction, and recorded.

A worker that dies while sending leaves a claim that runs out: the same delivery is sent again under
the same id. So a receiver may get an id twice, and never two messages under one id.
"""

import logging
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial

from django.db import connection, transaction
from django.db.models import F, Min, Q

from assets_app.queries.clock import database_now
from slicewise_server.alerts.models import Channel, Delivery, DeliveryState
from slicewise_server.alerts.sending import Answer, failure, send
from slicewise_server.web.deletion import delete_oldest

log = logging.getLogger(__name__)

_CLAIM = timedelta(minutes=2)
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=10)
_CHANNELS_AT_ONCE = 8
# A round over all channels ends soon, so that a channel that has come back is tried.
_ROUND_SECONDS = 20.0
_DELETED_AT_ONCE = 5_000


def send_due() -> int:
    """Send the deliveries that are due, side by side for different channels; return how many.

    The deliveries of one channel are sent one after the other, the oldest first, until one fails.
    """
    give_up(database_now())
    ids = _channels_to_send()
    if not ids:
        return 0
    send_channel = partial(_send_channel, latest=time.monotonic() + _ROUND_SECONDS)
    # Each send has a deadline of its own, so that the end of the pool is near.
    with ThreadPoolExecutor(_CHANNELS_AT_ONCE, thread_name_prefix="alerts") as pool:
        return sum(pool.map(send_channel, ids))


def give_up(now: datetime) -> int:
    """Mark deliveries whose time is over as failed; return the number of deliveries.

    A delivery that can be sent at once has its first try nevertheless.
    """
    held_back = Channel.objects.filter(Q(active=False) | Q(retry_at__gt=now))
    over = Delivery.objects.filter(_is_free(now), state=DeliveryState.WAITING, give_up_at__lte=now)
    tried_or_held = Q(tries__gt=0) | Q(channel__in=held_back.values("pk"))
    return over.filter(tried_or_held).update(state=DeliveryState.FAILED, claimed_until=None)


def _channels_to_send() -> list[int]:
    """Return the channels with due deliveries, healthy channels first."""
    now = database_now()
    ready = Q(channel__retry_at__isnull=True) | Q(channel__retry_at__lte=now)
    due = Delivery.objects.filter(_is_due(now), ready, channel__active=True)
    rows = due.order_by().values_list("channel", "channel__failures", "channel__retry_at")
    waiting = sorted(
        (failures > 0, retry_at or oldest, channel)
        for channel, failures, retry_at, oldest in rows.annotate(oldest=Min("send_at"))
    )
    return [channel for _failing, _since, channel in waiting]


def pause_after(failures: int) -> timedelta:
    """Return the pause after so many failures in a row, doubled each time up to ten minutes."""
    factor: int = 2 ** min(max(failures - 1, 0), 20)
    return min(_FIRST_PAUSE * factor, _LONGEST_PAUSE)


def _send_channel(channel_id: int, *, latest: float) -> int:
    """Send the due deliveries of one channel in this thread; return the number of tries."""
    tries = 0
    try:
        while time.monotonic() < latest and (delivery := _claim(channel_id)) is not None:
            tries += 1
            answer = send(delivery.channel, str(delivery.key), delivery.body or {})
            if not _record_any(delivery, answer):
                break
    except Exception:  # one channel keeps no other from its messages
        log.exception("deliveries of a channel not sent", extra={"channel": channel_id})
    finally:
        connection.close()
    return tries


def _is_free(now: datetime) -> Q:
    return Q(claimed_until__isnull=True) | Q(claimed_until__lt=now)


def _is_due(now: datetime) -> Q:
    return Q(state=DeliveryState.WAITING, send_at__lte=now) & _is_free(now)


def _claim(channel_id: int) -> Delivery | None:
    """Claim the oldest due delivery of a channel that is free to try."""
    with transaction.atomic():
        now = database_now()
        channel = (
            Channel.objects.select_for_update(no_key=True)
            .filter(pk=channel_id, active=True)
            .first()
        )
        if channel is None or (channel.retry_at is not None and channel.retry_at > now):
            return None
        # While one worker sends to the channel, no other worker does.
        if channel.deliveries.filter(state=DeliveryState.WAITING, claimed_until__gte=now).exists():
            return None
        # The lock keeps the delivery from being given up meanwhile.
        due = channel.deliveries.select_for_update().filter(_is_due(now))
        delivery = due.order_by("send_at", "id").first()
        if delivery is None:
            return None
        delivery.claimed_until, delivery.channel = now + _CLAIM, channel
        delivery.tries += 1
        delivery.save(update_fields=["claimed_until", "tries"])
        return delivery


def _record_any(delivery: Delivery, answer: Answer) -> bool:
    """Record the answer, or the failure to record it: the channel pauses in any case."""
    try:
        return _record(delivery, answer)
    except Exception as error:
        log.exception("answer of a channel not recorded", extra={"delivery": delivery.pk})
        return _record(delivery, failure(error))


@transaction.atomic
def _record(delivery: Delivery, answer: Answer) -> bool:
    """Record the answer; return whether the channel accepted the message."""
    now = database_now()
    fields: dict[str, object] = {
        "claimed_until": None,
        "status": answer.status,
        "answer": storable(answer.text),
    }
    if answer.accepted:
        fields |= {"state": DeliveryState.DELIVERED, "delivered_at": now}
    elif now >= delivery.give_up_at:
        fields |= {"state": DeliveryState.FAILED}
    else:
        fields |= {"send_at": now + pause_after(delivery.tries)}
    claimed = Delivery.objects.filter(pk=delivery.pk, claimed_until=delivery.claimed_until)
    if not claimed.update(**fields):
        return False
    channel = Channel.objects.filter(pk=delivery.channel_id)
    if answer.accepted:
        channel.exclude(failures=0).update(failures=0, error="", retry_at=None)
    else:
        failures = delivery.channel.failures + 1
        error = storable(answer.text)
        retry_at = now + pause_after(failures)
        channel.update(failures=F("failures") + 1, error=error, retry_at=retry_at)
    return answer.accepted


def storable(text: str) -> str:
    """Return the text without the characters that PostgreSQL does not store."""
    return text.replace("\0", "").encode(errors="ignore").decode()


def forget_deliveries(before: datetime) -> int:
    """Delete deliveries that have ended before a time; return the number of deleted rows."""
    ended = (DeliveryState.DELIVERED, DeliveryState.FAILED)
    too_old = Delivery.objects.filter(state__in=ended, created_at__lt=before)
    return delete_oldest(too_old, _DELETED_AT_ONCE)
