"""Tests that distinguish failures of the platform from failures of an asset's code."""

import sys
from collections.abc import Iterator
from types import TracebackType

# The Spark server is gone or was replaced, or lost the session: not the fault of the asset's code.
_LOST_CONDITIONS = {
    "INVALID_HANDLE.SESSION_NOT_FOUND",
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.OPERATION_NOT_FOUND",
    "INVALID_HANDLE.OPERATION_ABANDONED",
    "INVALID_CURSOR.NOT_REATTACHABLE",
    # A condition of the client: the server that answers now does not know the awaited response.
    "RESPONSE_ALREADY_RECEIVED",
    # The client has closed the session, because another server answers now. Code of a run cannot
    # close the session of the run: see `slicewise.runner.session`.
    "NO_ACTIVE_SESSION",
}
_PLATFORM_CONDITIONS = _LOST_CONDITIONS | {
    "CANNOT_LOAD_STATE_STORE",
    # A read was planned before a partition was swapped: the planned files are gone.
    "FAILED_READ_FILE.FILE_NOT_EXIST",
}
# A server that is being stopped refuses calls, and gives no other reason than "unknown".
_PLATFORM_GRPC_CODES = {"UNAVAILABLE", "UNAUTHENTICATED", "DEADLINE_EXCEEDED", "UNKNOWN"}
# Messages of Java for work that was under way during the stop; such errors have no condition.
_STOPPING = ("Cannot call methods on a stopped SparkContext", "SparkContext was shut down")
# By name, because only one module imports pyspark. The first is about the JVM of an application.
_BROKEN_OFF = {"Py4JNetworkError", "RetriesExceeded"}

_SPARK_PACKAGES = frozenset({"pyspark", "py4j"})
# Modules by which Spark's packages reach the server. The frames around them tell who called.
_CARRIERS = sys.stdlib_module_names | {"grpc"}


class PlatformError(ConnectionError):
    """A service of the platform that a run needs is gone, or never existed."""


def is_spark_lost(error: BaseException) -> bool:
    """Return whether an error says that the connection to Spark, the server or the session was lost
    during a run.

    A session that could not be opened is no such error.
    """
    return any(
        not isinstance(cause, PlatformError)
        and _is_platform_error(cause)
        and _condition(cause) not in _PLATFORM_CONDITIONS - _LOST_CONDITIONS
        for cause in _causes(error)
    )


def is_platform_failure(error: BaseException) -> bool:
    """Return whether an error, or a cause of the error, is a platform failure: a retry may succeed.

    User code that cannot reach a service of its own is not a platform failure. Neither is an error
    that user code raises while it handles another error, unless the code writes ``from``; Spark's
    own errors often lack a ``from``.
    """
    return any(map(_is_platform_error, _causes(error)))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    chain: BaseException | None = error
    while chain is not None:
        yield chain
        chain = chain.__cause__ or (chain.__context__ if _is_of_spark(chain) else None)


def _condition(error: BaseException) -> object:
    return getattr(error, "getCondition", lambda: None)()


def _is_platform_error(error: BaseException) -> bool:
    if isinstance(error, PlatformError):
        return True
    if not (_is_of_spark(error) or _is_raised_in_spark(error.__traceback__)):
        return False
    if isinstance(error, ConnectionError) or type(error).__name__ in _BROKEN_OFF:
        return True
    if any(sentence in str(error) for sentence in _STOPPING):
        return True
    if _condition(error) in _PLATFORM_CONDITIONS:
        return True
    code = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    return getattr(code() if callable(code) else code, "name", None) in _PLATFORM_GRPC_CODES


def _is_of_spark(error: BaseException) -> bool:
    return _package(type(error).__module__) in _SPARK_PACKAGES


def _is_raised_in_spark(traceback: TracebackType | None) -> bool:
    """Return whether the innermost code was Spark's client.

    User code that Spark's client has called does not count, and neither does another library.
    """
    innermost = ""
    while traceback is not None:
        package = _package(str(traceback.tb_frame.f_globals.get("__name__", "")))
        if package not in _CARRIERS:
            innermost = package
        traceback = traceback.tb_next
    return innermost in _SPARK_PACKAGES


def _package(module: str) -> str:
    return module.partition(".")[0]
