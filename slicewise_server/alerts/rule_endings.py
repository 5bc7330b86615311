"""The last messages of a rule as it is, before the rule changes or is deleted."""

import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from django.db import OperationalError, transaction

from assets_app.queries.clock import database_now
from slicewise_server.alerts.matching import (
    FeedReader,
    close,
    close_messages,
    known_position,
    read_on,
)
from slicewise_server.alerts.messages import unlisted_message
from slicewise_server.alerts.models import AlertRule, Delivery, DeliveryState
from slicewise_server.events.feed import end_of_feed, publish_first

T = TypeVar("T")

log = logging.getLogger(__name__)

# One transaction matches so many events for all rules that it ends. A webhook has a message for
# each event, which takes a millisecond.
_MOST_MATCHED, _AT_ONCE = 1_000, 100
# So many events are read again for the texts of open messages, 50 in a millisecond.
_MOST_LISTED = 10_000
_DETACHED_AT_ONCE = 5_000
_NOT_READ = (
    "The rule was changed or deleted. The events of this message are not listed: there were more"
    f" than {_MOST_LISTED:,}, or an error prevented the reading. An error is in the log of the"
    " server."
)


class RuleEndings:
    """Messages of rules that one transaction is about to change or delete.

    Create the value before the transaction locks channels and rules: events that were committed
    until then belong to the rules as they are. Each rule can be changed or deleted at once: an
    error is logged and keeps no rule from its change, and of many unread events, the later
    ones go to the changed rule.
    """

    def __init__(self) -> None:
        publish_first(_MOST_MATCHED)
        self._feed, self._now = FeedReader(_AT_ONCE), database_now()
        self._to_match, self._to_list = _MOST_MATCHED, _MOST_LISTED

    def end(self, alert_rule: AlertRule) -> None:
        """Write deliveries for the events until now of a locked rule, and close its open message. A
        paused rule has no message of events of the pause.
        """
        while alert_rule.active and self._to_match > 0:
            count = _attempt(alert_rule, partial(read_on, alert_rule, self._feed, self._now))
            if not count:
                break
            self._to_match -= count
        if alert_rule.active and alert_rule.position < end_of_feed():
            log.warning("a changed rule has unread events", extra={"alert_rule": alert_rule.pk})
        self._close_message(alert_rule)

    def _close_message(self, alert_rule: AlertRule) -> None:
        delivery = alert_rule.deliveries.filter(state=DeliveryState.GATHERING).first()
        if delivery is None:
            return
        first, last = (
            known_position(position)
            for position in (delivery.first_position, delivery.last_position)
        )
        event_count = last - first + 1
        if event_count <= self._to_list:
            self._to_list -= event_count
            _attempt(alert_rule, partial(close_messages, alert_rule))
        delivery.refresh_from_db()
        if delivery.state == DeliveryState.GATHERING:
            close(delivery, unlisted_message(delivery.event_count, _NOT_READ))


def detach_closed_messages(alert_rule: AlertRule) -> None:
    """Detach the closed messages from a rule that is about to be deleted: a webhook may have a
    message for each of a million events, and each batch is a transaction that ends soon. Call
    without a transaction.

    Messages that other transactions have locked, and later ones, are left to the deletion.
    """
    closed = Delivery.objects.filter(rule=alert_rule).exclude(state=DeliveryState.GATHERING)
    free = closed.order_by().select_for_update(skip_locked=True, no_key=True)
    while True:
        with transaction.atomic():
            ids = list(free.values_list("pk", flat=True)[:_DETACHED_AT_ONCE])
            Delivery.objects.filter(pk__in=ids).update(rule=None)
        if len(ids) < _DETACHED_AT_ONCE:
            return


def _attempt(alert_rule: AlertRule, work: Callable[[], T]) -> T | None:
    """Return the result of the work; undo the work and log the error if the work fails. Raise
    errors of the connection and of locks: the caller repeats the whole request.
    """
    try:
        with transaction.atomic():
            return work()
    except OperationalError:
        raise
    except Exception:
        log.exception("messages of a rule not ended", extra={"alert_rule": alert_rule.pk})
        return None
