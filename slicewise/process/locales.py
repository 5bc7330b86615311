"""The locale of processes that name files."""

from collections.abc import Mapping

_LOCALE_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")  # the first variable that is set decides
_UTF8 = ("utf-8", "utf8")


def with_utf8_names(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which Java can name a file by any text.

    Java encodes names as the locale says: with ASCII, as on a machine that sets no locale, Java
    cannot write the folder of a partition ``city=Zürich``.
    """
    locale = next((env[name] for name in _LOCALE_VARIABLES if env.get(name)), "")
    is_utf8 = locale.lower().partition("@")[0].endswith(_UTF8)
    return dict(env) if is_utf8 else {**env, "LC_ALL": "C.UTF-8"}
