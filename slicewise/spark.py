"""The only module that uses pyspark, which is imported when it is first needed."""

import json
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from slicewise.platform_failures import PlatformError, is_platform_failure
from slicewise.texts.spark_advice import CONNECT_MODE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as ClassicSession
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.session import SparkSession
    from pyspark.sql.types import StructType

USER_ID = "slicewise"
SESSION_CONF: dict[str, str | int | bool] = {
    # Instants are UTC everywhere; zones belong to partition definitions.
    "spark.sql.session.timeZone": "UTC",
    # A segment 02 stays the text 02.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    # By default Spark starts one task per folder to list more than 32 folders: a year of days
    # took 8 s to list, in the driver 0.7 s.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
    # Hundreds of lines of the server's own code do not help the author of an asset.
    "spark.sql.connect.serverStacktrace.enabled": "false",
    "spark.sql.pyspark.jvmStacktrace.enabled": "false",
}

_PRELOADED = (
    "pyarrow.fs",
    "pyarrow.parquet",
    "pyspark.sql.connect.functions",
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.client.retries",
    "pyspark.sql.functions",
    "pyspark.sql.types",
)

# A server that is gone is noticed after some ten seconds, not after pyspark's ten minutes: the run
# is retried on another server, and the worker decides about the retry of a whole run.
_MAX_RETRIES, _MAX_BACKOFF_MS = 6, 4000

# Messages of Java for a configuration that fails in every attempt.
_REFUSED_CONF = (
    "IllegalArgumentException",
    "NumberFormatException",
    "Could not parse Master URL",
)


class ApplicationNotStartedError(PlatformError):
    """The cluster has started no Spark application. The asset's code is not the cause."""


def preload() -> None:
    """Import the modules that runs need, in the process that forks runners. Opens no channel."""
    for name in _PRELOADED:
        import_module(name)


def use_connect() -> None:
    """Make ``pyspark.sql.functions`` use Spark Connect, before a session is opened.

    A definition file may call ``functions.col("origin")`` at its top level.
    """
    os.environ[CONNECT_MODE] = "1"


def open_session(
    remote: str, session_id: str, *, tag: str | None = None, conf: Mapping[str, str] | None = None
) -> "SparkSession":
    """Return the session with this id on a Spark Connect server, opened on first use.

    ``tag`` marks every operation. Raises ValueError for a ``conf`` that a session cannot change.
    """
    session = _connect(remote, session_id)
    try:
        if tag is not None:
            session.addTag(tag)
        session.conf._set_all(configs=SESSION_CONF, silent=False)  # one round trip
        for name, value in (conf or {}).items():
            _set_conf(session, name, value)
    except BaseException as error:
        # No other code can close the session, and pyspark would go on using it for later ones. The
        # session does not wait a second time for a server that is gone, nor on a channel that a
        # stop of the run has cut short; the worker closes the session of a stopped run.
        is_of_use = isinstance(error, Exception) and not is_platform_failure(error)
        session.release_session_on_close = is_of_use
        close_session(session)
        raise
    return session


def open_application(tag: str | None = None) -> "ClassicSession":
    """Return the session of the Spark application for which spark-submit has started this process.

    ``tag`` marks every job. Raises ValueError for a configuration that Spark refuses, and
    ApplicationNotStartedError if the cluster starts no application.
    """
    from pyspark.sql import SparkSession

    os.environ.pop(CONNECT_MODE, None)
    try:
        session = SparkSession.builder.getOrCreate()
    except Exception as error:
        reason = _java_reason(error)
        if any(name in reason for name in _REFUSED_CONF):
            raise ValueError(f"Spark refuses its configuration: {reason}") from error
        if "stopped SparkContext" in reason:
            reason = "the master does not answer or has refused the application; see the log"
        raise ApplicationNotStartedError(
            f"no Spark application could be started: {reason}"
        ) from error
    if tag is not None:
        session.addTag(tag)
    return session


def close_session(session: "SparkSession | ClassicSession") -> None:
    """Release the session's memory on the server, or end the process's own application."""
    session.stop()


def renew_connection(session: "SparkSession | ClassicSession") -> None:
    """Have a session of this process use another channel to its Spark Connect server.

    An exception that a signal raises inside gRPC may leave the channel with a lock held, or without
    the thread that receives responses: each further call would wait for ever. pyspark 4.3 has no
    public function for this.
    """
    client: Any = getattr(session, "_client", None)
    if client is not None:  # an application of its own has no channel
        channel = client._builder.toChannel()
        client._channel, client._stub = channel, type(client._stub)(channel)
        client._artifact_manager._stub = client._stub


def interrupt_work(session: "SparkSession | ClassicSession") -> bool:
    """Interrupt all work of a session of this process, which stays open; return whether there was
    some.
    """
    return bool(session.interruptAll())


def interrupt(remote: str, session_id: str) -> None:
    """Interrupt all work of a session that another process opened, and close the session."""
    session = _connect(remote, session_id)
    try:
        session.interruptAll()
    except Exception as error:
        if "SESSION_CLOSED" not in str(error):
            raise
    close_session(session)


def application_id(session: "SparkSession | ClassicSession") -> str | None:
    """Return the id of the Spark application behind a session."""
    return session.conf.get("spark.app.id", None)


def application_ui(session: "ClassicSession") -> str | None:
    """Return the address of the pages of the process's own application, or None."""
    return session.sparkContext.uiWebUrl


def is_frame(value: object) -> bool:
    """Return whether a value is a Spark DataFrame, with or without Spark Connect."""
    from pyspark.sql import DataFrame

    return isinstance(value, DataFrame)


def functions() -> Any:
    """Return the module ``pyspark.sql.functions``."""
    from pyspark.sql import functions as module

    return module


def is_time(frame: "DataFrame", column: str) -> bool:
    """Return whether a column holds timestamps or dates; False for texts.

    Raises ValueError for other types.
    """
    from pyspark.sql import types

    column_type = frame.schema[column].dataType
    if isinstance(column_type, types.DateType | types.TimestampNTZType | types.TimestampType):
        return True
    if isinstance(column_type, types.StringType):
        return False
    raise ValueError(
        f"the column {column!r} is of type {column_type.simpleString()}; it holds texts of keys, or"
        " timestamps or dates inside the windows"
    )


def as_text(frame: "DataFrame", column: str) -> Any:
    """Return a column as text, with numbers written like keys: 1, 1.0 and true are all ``1``."""
    from pyspark.sql import functions, types

    kind, value = frame.schema[column].dataType, functions.col(f"`{column}`")
    if isinstance(kind, types.BooleanType):
        return value.cast("int").cast("string")
    if isinstance(kind, types.DecimalType):
        value = value.cast("double")
    if isinstance(kind, types.FractionalType):
        integer = value.try_cast("bigint")
        return functions.when(value == integer, integer.cast("string")).otherwise(
            value.cast("string")
        )
    return value.cast("string")


def schema_of(text: str | bytes) -> "StructType":
    """Return a schema from its JSON."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(text))


def schema_from(columns: Sequence[Mapping[str, Any]]) -> str:
    """Return the schema of declared columns in Spark's DDL; a column without a type holds texts."""
    return ", ".join(
        f"`{str(column['name']).replace('`', '``')}` {column.get('type') or 'string'}"
        for column in columns
    )


def _java_reason(error: Exception) -> str:
    """Return the line with Java's exception, or else the first line."""
    lines = [line.strip(": ") for line in str(error).splitlines()] or [type(error).__name__]
    return next((line for line in lines if "Exception:" in line), lines[0])


def _connect(remote: str, session_id: str) -> "SparkSession":
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    _refuse_token_in_the_clear(remote)
    separator = "" if remote.endswith(";") else ";" if "/;" in remote else "/;"
    address = f"{remote}{separator}user_id={USER_ID};session_id={session_id}"
    session = SparkSession(connection=address)
    session.client.set_retry_policies(
        [DefaultPolicy(max_retries=_MAX_RETRIES, max_backoff=_MAX_BACKOFF_MS)]
    )
    # `SparkSession.getActiveSession()` and functions that need a session find this one.
    SparkSession._set_default_and_active_session(session)
    use_connect()
    return session


def _refuse_token_in_the_clear(remote: str) -> None:
    """Raise ValueError for a token without TLS and a host other than ``localhost``.

    gRPC sends such a token to the name ``localhost`` only, and else fails with an obscure error.
    """
    host = urlsplit(remote).hostname
    if "token=" in remote and "use_ssl=true" not in remote.lower() and host != "localhost":
        raise ValueError(
            f"SPARK_REMOTE has a token and the host {host!r}: without use_ssl=true it must say"
            " localhost"
        )


def _set_conf(session: "SparkSession", name: str, value: str) -> None:
    try:
        session.conf.set(name, value)
    except Exception as error:
        if is_platform_failure(error):
            raise
        raise ValueError(
            f"spark_conf {name!r} cannot be set for one session; it needs a Spark application of"
            f' its own, that is engine="submit": {error}'
        ) from error
