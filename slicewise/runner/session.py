"""The Spark session of a run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from slicewise import spark
from slicewise.runner.channel import Channel
from slicewise.runner.wire import Message

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


class NoSparkError(RuntimeError):
    """Spark was asked for in a run that has none."""


class LazySession:
    """The session, opened when it is first asked for."""

    def __init__(self, request: Message, worker: Channel) -> None:
        self._facts = request.get("spark")
        self._worker = worker
        self._session: SparkSession | None = None
        self.conf: Mapping[str, str] = {}

    def get(self) -> "SparkSession":
        """Raises NoSparkError when the run was given no server."""
        if self._session is None:
            if self._facts is None:
                raise NoSparkError("this run was given no Spark server")
            # Said before: whoever ends this run knows then that there may be a session to end.
            self._worker.say({"type": "spark", "application_id": None, "ui": None})
            self._session = spark.open_session(
                str(self._facts["remote"]),
                str(self._facts["session_id"]),
                tag=self._facts.get("tag"),
                conf=self.conf,
            )
            application = spark.application_id(self._session)
            self._worker.say({"type": "spark", "application_id": application, "ui": None})
        return self._session

    def close(self) -> None:
        """Gives the session's memory on the server back."""
        if self._session is not None:
            spark.close_session(self._session)
