"""Ends what an attempt has left behind: its work on Spark, and data that nobody will publish."""

import errno
import socket
from urllib.parse import urlsplit

import structlog
from django.conf import settings

from assets_app.execution.publishing import discard_staging
from assets_app.models import ProducerVersion, RunAttempt
from slicewise.runner.client import WarmParent, WarmParentError

log = structlog.get_logger(__name__)

_SPARK_PORT = 15002
_CONNECT_SECONDS = 2.0


def clear_away(
    parent: WarmParent, attempt: RunAttempt, version: ProducerVersion, *, has_session: bool = True
) -> None:
    """Stop the attempt's Spark session, if it may have one, and remove what it has staged for
    whatever the version of its run makes.

    With the Spark server its work has gone. Raises WarmParentError where a server that is there
    does not say that the session has ended.
    """
    try:
        if has_session:
            _stop_session(parent, attempt)
    finally:
        discard_staging(attempt, version)


def _stop_session(parent: WarmParent, attempt: RunAttempt) -> None:
    # Asked before as well: an interruption takes its whole time to find that nobody is there.
    if not _is_server_gone():
        try:
            parent.interrupt(settings.SPARK_REMOTE, str(attempt.spark_session_id))
            return
        except WarmParentError:
            if not _is_server_gone():
                raise
    log.warning("no Spark server to stop a session of", run=attempt.run_id, attempt=attempt.number)


def _is_server_gone() -> bool:
    """Whether nobody listens at the server's address. One that only keeps silent may be at work."""
    address = urlsplit(settings.SPARK_REMOTE)
    host, port = address.hostname or "localhost", address.port or _SPARK_PORT
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except (ConnectionRefusedError, ConnectionResetError):
        return True
    except socket.gaierror as error:
        return error.errno == socket.EAI_NONAME  # a container's name goes with it
    except OSError as error:
        return error.errno == errno.EHOSTUNREACH
    return False
