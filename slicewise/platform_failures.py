"""Tells failures of the platform from those of an asset's code."""

import sys
from types import TracebackType

# The Spark server is gone or was replaced, or lost the session: not the fault of the asset's code.
_PLATFORM_CONDITIONS = {
    "INVALID_HANDLE.SESSION_NOT_FOUND",
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.OPERATION_NOT_FOUND",
    "INVALID_HANDLE.OPERATION_ABANDONED",
    "INVALID_CURSOR.NOT_REATTACHABLE",
    # The client's own: what it waits for is not known to the server that answers now.
    "RESPONSE_ALREADY_RECEIVED",
    # The client has closed the session, because another server answers now. Code cannot close that
    # of its run: see `slicewise.runner.session`.
    "NO_ACTIVE_SESSION",
    "CANNOT_LOAD_STATE_STORE",
    # A read planned before a partition was swapped: its files have gone.
    "FAILED_READ_FILE.FILE_NOT_EXIST",
}
# A server that is being stopped refuses calls, and says no more of it than "unknown".
_PLATFORM_GRPC_CODES = {"UNAVAILABLE", "UNAUTHENTICATED", "DEADLINE_EXCEEDED", "UNKNOWN"}
# What Java says of work that was under way then; it comes with no condition.
_STOPPING = ("Cannot call methods on a stopped SparkContext", "SparkContext was shut down")
# By name, since pyspark is imported in one place only. The first: the JVM of an application.
_BROKEN_OFF = {"Py4JNetworkError", "RetriesExceeded"}

_SPARK_PACKAGES = frozenset({"pyspark", "py4j"})
# What they reach their server with. Whose call it was is told by the frames around these.
_CARRIERS = sys.stdlib_module_names | {"grpc"}


class PlatformError(ConnectionError):
    """What a run needs of the platform is gone, or was never there."""


def is_platform_failure(error: BaseException) -> bool:
    """Return whether an error, or what it was raised from, is the platform's: the same code
    may succeed later.

    User code that cannot reach a service of its own fails by itself. So does what it raises while
    it handles another error, unless it says ``from``; Spark's own errors often do not say so.
    """
    chain: BaseException | None = error
    while chain is not None:
        if _is_platform_error(chain):
            return True
        chain = chain.__cause__ or (chain.__context__ if _is_of_spark(chain) else None)
    return False


def _is_platform_error(error: BaseException) -> bool:
    if isinstance(error, PlatformError):
        return True
    if not (_is_of_spark(error) or _is_raised_in_spark(error.__traceback__)):
        return False
    if isinstance(error, ConnectionError) or type(error).__name__ in _BROKEN_OFF:
        return True
    if any(sentence in str(error) for sentence in _STOPPING):
        return True
    condition = getattr(error, "getCondition", lambda: None)()
    if condition in _PLATFORM_CONDITIONS:
        return True
    code = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    return getattr(code() if callable(code) else code, "name", None) in _PLATFORM_GRPC_CODES


def _is_of_spark(error: BaseException) -> bool:
    return _package(type(error).__module__) in _SPARK_PACKAGES


def _is_raised_in_spark(place: TracebackType | None) -> bool:
    """Whether Spark's client was at work, not user code that it has called or that has called
    something else.
    """
    innermost = ""
    while place is not None:
        package = _package(str(place.tb_frame.f_globals.get("__name__", "")))
        if package not in _CARRIERS:
            innermost = package
        place = place.tb_next
    return innermost in _SPARK_PACKAGES


def _package(module: str) -> str:
    return module.partition(".")[0]
