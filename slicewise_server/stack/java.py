"""The Java that Spark runs on, and the steps that prepare Java for Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from slicewise_server.stack import machine
from slicewise_server.stack.errors import StackError

# Spark's launcher always asks for this module, which the carried Java was built without.
MISSING_MODULE = "--add-modules=jdk.incubator.vector"
JAVA_WRAPPER = """#!/bin/sh
for word do
    shift
    [ "$word" = "{module}" ] || set -- "$@" "$word"
done
exec "{java}" "$@"
"""


def java_home(folder: Path, env: Mapping[str, str]) -> Path:
    """Return JAVA_HOME for Spark: the machine's Java, or a wrapper of the wheel's below `folder`.

    Raises StackError where there is none.
    """
    java = machine.find_java(env)
    if java is None:
        raise StackError(
            f"There is no Java {machine.OLDEST_JAVA} or newer. Install one, set JAVA_HOME to "
            "it, or set SPARK_REMOTE to a Spark Connect server."
        )
    if not java.from_wheel:
        return java.home
    wrapper = folder / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    for closed in (wrapper.parent, wrapper.parent.parent):
        closed.chmod(0o755)  # whatever the umask: Spark may run as another user
    fresh = wrapper.with_name(f"java.{os.getpid()}.new")
    fresh.write_text(JAVA_WRAPPER.format(module=MISSING_MODULE, java=java.binary))
    fresh.chmod(0o755)
    fresh.replace(wrapper)
    return wrapper.parent.parent
