"""Advice about errors of Spark; imports no pyspark."""

import os

CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The environment variable by which pyspark uses Spark Connect."""

# The prefix of causes in Java's stack traces, and the most characters of a cause in a message.
_CAUSE, _CAUSE_LENGTH = "Caused by: ", 300

_OWN_APPLICATION = (
    '@asset(engine="submit") gives the run a Spark application of its own, with sparkContext, RDDs'
    " and the JVM."
)
# Advice by pyspark's names of error conditions.
_ADVICE = {
    **dict.fromkeys(
        (
            "JVM_ATTRIBUTE_NOT_SUPPORTED",
            "CONTEXT_UNAVAILABLE_FOR_REMOTE_CLIENT",
            "NOT_IMPLEMENTED",
            "SESSION_OR_CONTEXT_EXISTS",
        ),
        f"This run reaches Spark by Spark Connect. {_OWN_APPLICATION}",
    ),
    **dict.fromkeys(
        ("CANNOT_MODIFY_STATIC_CONFIG", "CANNOT_MODIFY_CONFIG"),
        "The setting belongs to the Spark server that runs share. Set it in spark_conf of an asset"
        ' with engine="submit", which has a Spark application of its own.',
    ),
    "PATH_NOT_FOUND": (
        "Spark does not find the file or folder: the data may have been removed"
        " since, or the host of the Spark server does not have the folder. A relative path begins"
        " at that server's folder, and with"
        ' engine="submit" at the bundle; write full paths.'
    ),
}


def engine_advice(error: BaseException) -> str | None:
    """Return advice if the code needs a feature that only ``engine="submit"`` has.

    None for other errors, and in a process that has an application of its own.
    """
    if CONNECT_MODE not in os.environ:
        return None
    chain: BaseException | None = error
    while chain is not None:
        condition = getattr(chain, "getCondition", lambda: None)()
        if condition in _ADVICE:
            return _ADVICE[condition]
        chain = chain.__cause__ or chain.__context__
    return None


def write_cause(error: BaseException) -> str | None:
    """Return why rows could not be written, such as a full disk, if Spark's message names only the
    target.

    None for other errors, and if the server reported no cause.
    """
    chain: BaseException | None = error
    while chain is not None:
        if getattr(chain, "getCondition", lambda: None)() == "TASK_WRITE_FAILED":
            stack_trace = getattr(chain, "getStackTrace", lambda: None)() or ""
            causes = [line for line in stack_trace.splitlines() if line.startswith(_CAUSE)]
            return causes[-1][:_CAUSE_LENGTH] if causes else None
        chain = chain.__cause__ or chain.__context__
    return None
