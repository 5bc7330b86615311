"""The locale of processes that name files."""

from collections.abc import Mapping

_SAID_BY = ("LC_ALL", "LC_CTYPE", "LANG")  # the first that is set decides
_UTF8 = ("utf-8", "utf8")


def with_utf8_names(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which a Java can name a file by any text.

    It encodes names as the locale says: where that is ASCII, as on a machine that sets none, it
    cannot write the folder of a partition ``city=Zürich``.
    """
    said = next((env[name] for name in _SAID_BY if env.get(name)), "")
    is_utf8 = said.lower().partition("@")[0].endswith(_UTF8)
    return dict(env) if is_utf8 else {**env, "LC_ALL": "C.UTF-8"}
