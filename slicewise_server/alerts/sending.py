"""The ways out: a signed request to a webhook, and Apprise for all other services.

Nothing that a library says of an error is stored, since libraries name addresses, and addresses
hold secrets: each error has a sentence of ours.
"""

import hashlib
import hmac
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import apprise
import requests

from slicewise_server.alerts.channel_addresses import (
    CONNECT_SECONDS,
    READ_SECONDS,
    UnfitAddress,
    service_of,
    web_address,
)
from slicewise_server.alerts.models import Channel, ChannelKind
from slicewise_server.alerts.receiver_networks import (
    BLOCKED_SENTENCE,
    BlockedAddress,
    guarded_connections,
)
from slicewise_server.alerts.secrets import SecretUnreadable, decrypt
from slicewise_server.alerts.stragglers import StillUnderWay, result_within
from slicewise_server.alerts.watched_sockets import ending_after

# Until when an answer is waited for; the claim of a delivery lasts longer.
WEBHOOK_SECONDS, MESSAGE_SECONDS = 15.0, 30.0
# The first sentence whose types have an error of the chain is the one that is shown.
_SENTENCES: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((BlockedAddress,), BLOCKED_SENTENCE),
    ((StillUnderWay,), "An earlier message to the channel is still under way."),
    ((requests.exceptions.SSLError, ssl.SSLError), "TLS failed: check the certificate."),
    ((socket.gaierror,), "The name of the host is not known."),
    ((ConnectionRefusedError,), "The connection was refused."),
    ((requests.Timeout, TimeoutError), "The request timed out."),
    ((requests.ConnectionError, ConnectionError), "The connection failed."),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a channel: a status where there is one, and a text without secrets."""

    accepted: bool
    text: str
    status: int | None = None


def send(channel: Channel, delivery_id: str, body: dict[str, Any]) -> Answer:
    """Send one message; every failure is an answer, and no exception."""
    try:
        address = address_of(channel)
        if channel.kind == ChannelKind.WEBHOOK:
            key = decrypt(channel.signing_key)
            work = partial(post_signed, address, key, delivery_id, body)
            return result_within(WEBHOOK_SECONDS, channel.pk, work)
        return result_within(MESSAGE_SECONDS, channel.pk, partial(notify, address, body))
    except (SecretUnreadable, UnfitAddress) as error:  # the texts of both are ours
        return Answer(False, str(error))
    except Exception as error:  # a plug-in may raise anything
        return failure(error)


def failure(error: Exception) -> Answer:
    """Return the answer for an error: a sentence, at most with the error's type."""
    chain = tuple(_chain(error))
    for types, sentence in _SENTENCES:
        if any(isinstance(link, types) for link in chain):
            return Answer(False, sentence)
    return Answer(False, f"The message could not be sent: {type(error).__name__}.")


def address_of(channel: Channel) -> str:
    """Return the address; raise SecretUnreadable where there is none or no key fits."""
    if not channel.variable:
        return decrypt(channel.address)
    address = os.environ.get(channel.variable, "").strip()
    if not address:
        raise SecretUnreadable(f"The worker's environment has no variable {channel.variable}.")
    return address


def signature(key: str, timestamp: str, body: bytes) -> str:
    """Return the value of X-Slicewise-Signature: HMAC-SHA256 of "timestamp.body"."""
    digest = hmac.new(key.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"


def post_signed(address: str, key: str, delivery_id: str, body: dict[str, Any]) -> Answer:
    """Post the body as JSON; of the answer only the status counts, and redirects fail."""
    web_address(address)
    data, timestamp = json.dumps({"delivery": delivery_id, **body}).encode(), str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Slicewise",
        "X-Slicewise-Delivery": delivery_id,
        "X-Slicewise-Timestamp": timestamp,
        "X-Slicewise-Signature": signature(key, timestamp, data),
    }
    with (
        guarded_connections(),
        requests.Session() as session,
        ending_after(WEBHOOK_SECONDS, session),
    ):
        # No proxy and no password of the worker's environment goes along.
        session.trust_env = False
        with session.post(
            address,
            data=data,
            headers=headers,
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            allow_redirects=False,
            stream=True,
        ) as response:
            return _answer_of(response.status_code)


def notify(address: str, body: dict[str, Any]) -> Answer:
    """Send title and text by Apprise."""
    service = apprise.Apprise()
    service.add(service_of(address))
    with guarded_connections() as guard:
        accepted = bool(service.notify(title=body["title"], body=body["text"]))
    if accepted:
        return Answer(True, "")
    text = BLOCKED_SENTENCE if guard.has_blocked else "The service did not accept the message."
    return Answer(False, text)


def _answer_of(status: int) -> Answer:
    if 200 <= status < 300:
        return Answer(True, "", status)
    if 300 <= status < 400:
        return Answer(False, f"Status {status}: redirects are not followed.", status)
    return Answer(False, f"The receiver answered with status {status}.", status)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors behind it; urllib3 keeps causes in arguments and as reasons."""
    link_ids, open_links = set(), [error]
    while open_links:
        link = open_links.pop()
        if id(link) in link_ids:
            continue
        link_ids.add(id(link))
        yield link
        causes = (link.__cause__, link.__context__, getattr(link, "reason", None), *link.args)
        open_links += [cause for cause in causes if isinstance(cause, BaseException)]
