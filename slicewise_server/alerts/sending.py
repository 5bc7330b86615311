"""The ways out: a signed request to a webhook, and Apprise for all other services."""

import hashlib
import hmac
import json
import logging
import os
import time
from dataclasses import dataclass
from typing import Any

import apprise
import requests

from slicewise.texts import masked_text
from slicewise_server.alerts.models import Channel, ChannelKind
from slicewise_server.alerts.secrets import SecretUnreadable, decrypt

CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 5.0, 10.0, 15.0
ANSWER_LENGTH = 1_000
_CHUNK = 1_024


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
            return post_signed(address, key, delivery_id, body)
        return notify(address, body)
    except SecretUnreadable as error:
        return Answer(False, str(error))


def address_of(channel: Channel) -> str:
    """Return the address; raise SecretUnreadable where there is none or no key fits."""
    if not channel.variable:
        return decrypt(channel.address)
    address = os.environ.get(channel.variable, "")
    if not address:
        raise SecretUnreadable(f"The worker's environment has no variable {channel.variable}.")
    return address


def signature(key: str, timestamp: str, body: bytes) -> str:
    """Return the value of X-Slicewise-Signature: HMAC-SHA256 of "timestamp.body"."""
    digest = hmac.new(key.encode(), timestamp.encode() + b"." + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"


def post_signed(address: str, key: str, delivery_id: str, body: dict[str, Any]) -> Answer:
    """Post the body as JSON; the answer has to come within 15 seconds, and redirects fail."""
    data, timestamp = json.dumps({"delivery": delivery_id, **body}).encode(), str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Slicewise",
        "X-Slicewise-Delivery": delivery_id,
        "X-Slicewise-Timestamp": timestamp,
        "X-Slicewise-Signature": signature(key, timestamp, data),
    }
    latest = time.monotonic() + TOTAL_SECONDS
    try:
        with requests.post(
            address,
            data=data,
            headers=headers,
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            allow_redirects=False,
            stream=True,
        ) as response:
            text = _start_of(response, latest)
            accepted = 200 <= response.status_code < 300
            return Answer(accepted, masked_text(text), response.status_code)
    except (requests.RequestException, ValueError, UnicodeError) as error:
        return Answer(False, _without_address(error, address))


def notify(address: str, body: dict[str, Any]) -> Answer:
    """Send title and text by Apprise, with Apprise's own limits of time."""
    service = apprise.Apprise()
    if not service.add(address):
        return Answer(False, "Apprise knows no service with such an address.")
    errors = apprise.LogCapture(level=logging.WARNING, fmt="%(message)s")  # type: ignore[no-untyped-call]
    with errors as output:
        try:
            accepted = bool(service.notify(title=body["title"], body=body["text"]))
        except Exception as error:  # a plug-in may raise anything
            return Answer(False, _without_address(error, address))
        text = "" if accepted else output.getvalue().strip().rsplit("\n", 1)[-1]
    return Answer(accepted, masked_text(text.replace(address, "***"))[:ANSWER_LENGTH])


def _start_of(response: requests.Response, latest: float) -> str:
    """Read the first characters of the answer, until the time is over."""
    data = b""
    for chunk in response.iter_content(_CHUNK):
        data += chunk
        if len(data) >= ANSWER_LENGTH or time.monotonic() > latest:
            break
    return data[:ANSWER_LENGTH].decode(errors="replace").replace("\0", "")


def _without_address(error: Exception, address: str) -> str:
    """Return an error's text, without the address, which may hold secrets."""
    text = f"{type(error).__name__}: {error}".replace(address, "***")
    # Libraries name host and path apart.
    path = "/" + address.split("://", 1)[-1].partition("/")[2]
    if len(path) > 1:
        text = text.replace(path, "/***")
    return masked_text(text)[:ANSWER_LENGTH]
