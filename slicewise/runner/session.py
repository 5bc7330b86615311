"""The Spark session of a run."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slicewise import spark
from slicewise.runner.channel import Channel
from slicewise.runner.wire import Message

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as ClassicSession
    from pyspark.sql.connect.session import SparkSession

SUBMIT = "submit"


class NoSparkError(RuntimeError):
    """A run without Spark has asked for a Spark session."""


def _stop_nothing() -> None:
    sys.stdout.write("spark.stop() has stopped nothing: the run needs its session to the end.\n")


def is_submitted(request: Message) -> bool:
    """Return whether a Spark application executes the run, and not a shared server."""
    return (request.get("spark") or {}).get("engine") == SUBMIT


class LazySession:
    """A Spark session that is opened at the first use; a submitted application exists before."""

    def __init__(self, request: Message, worker: Channel) -> None:
        self._facts: Mapping[str, Any] | None = request.get("spark")
        self.is_submitted = is_submitted(request)
        self._worker = worker
        self._session: SparkSession | ClassicSession | None = None
        self.conf: Mapping[str, str] = {}
        """The asset's Spark options. An application gets the options when it is submitted."""

    def prepare(self) -> None:
        """Prepare for the import of a definition file, which may create columns at the top
        level.
        """
        if self.is_submitted:
            self.get()
        elif self._facts is not None:
            spark.use_connect()

    def get(self) -> Any:
        """Return the session, opened if need be. Raises NoSparkError in a run without Spark."""
        if self._session is None:
            if self._facts is None:
                raise NoSparkError("this run has no Spark server")
            # Sent first: a worker that ends this run knows then that there may be a session to end.
            self._worker.say({"type": "spark", "application_id": None, "ui": None})
            self._session, ui = self._opened(self._facts)
            # So a session that is closed during a run was closed by Spark: its server is gone.
            vars(self._session)["stop"] = _stop_nothing
            application = spark.application_id(self._session)
            self._worker.say({"type": "spark", "application_id": application, "ui": ui})
        return self._session

    @property
    def opened(self) -> "SparkSession | ClassicSession | None":
        """The session; None if it is not open."""
        return self._session

    def close(self) -> None:
        """Free the session's memory on the server, or end the application."""
        if self._session is not None:
            vars(self._session).pop("stop", None)
            spark.close_session(self._session)

    def _opened(
        self, facts: Mapping[str, Any]
    ) -> tuple["SparkSession | ClassicSession", str | None]:
        """Return (session, address): the opened session, and the address of
        the session's pages or None.
        """
        if self.is_submitted:
            application = spark.open_application(facts.get("tag"))
            return application, spark.application_ui(application)
        remote, session_id = str(facts["remote"]), str(facts["session_id"])
        return spark.open_session(remote, session_id, tag=facts.get("tag"), conf=self.conf), None
