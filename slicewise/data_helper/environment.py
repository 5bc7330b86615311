"""The environment of the helper, which is root as it starts.

It is user code's. Python, the loader of programs and libraries act upon some of it, and would run
what the user of runs has written. So the helper starts with other names for that, and gives those
variables their own names when it has its user.
"""

import os
from collections.abc import Mapping

_PREFIX = "SLICEWISE_HELD_BACK_"
# Variables whose names begin so may name code, or folders with code or settings.
_ACTED_UPON = (
    *("PYTHON", "LD_", "HOME", "PATH", "XDG_", "TMPDIR", "VIRTUAL_ENV", "CONDA"),
    *("GLIBC_", "GCONV_", "LOCPATH", "NLSPATH", "MALLOC_", "OPENSSL_", "SSL_", "BASH_ENV"),
    *("JAVA_", "JDK_", "_JAVA", "CLASSPATH", "HADOOP_", "ARROW_", "SPARK_"),
)


def held_back(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which nothing has code run."""
    return {
        f"{_PREFIX}{name}" if name.startswith(_ACTED_UPON) else name: value
        for name, value in env.items()
    }


def take_environment() -> None:
    """Give the variables that were held back their own names."""
    for name in [name for name in os.environ if name.startswith(_PREFIX)]:
        os.environ[name.removeprefix(_PREFIX)] = os.environ.pop(name)
