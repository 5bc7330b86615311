"""Addresses of databases in a Redis server, written as REDIS_URL is."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from django.core.exceptions import ImproperlyConfigured

_CACHE_DATABASE = 1


def databases_named(url: str, setting: str = "REDIS_URL") -> set[int]:
    """Return the databases that readers of the URL take it to name.

    Celery reads the path; redis-py reads `?db=` before the path. Without either it is 0.
    """
    parts = urlsplit(url)
    path = "" if parts.scheme == "unix" else unquote(parts.path).strip("/")
    named = {text for text in (path, *parse_qs(parts.query).get("db", [])) if text}
    if not all(text.isascii() and text.isdecimal() for text in named):
        raise ImproperlyConfigured(f"{setting} ends with the number of a database, such as /0.")
    return {int(text) for text in named} or {0}


def with_database(url: str, database: int) -> str:
    """Return the URL of another database of the same server."""
    parts = urlsplit(url)
    kept = [item for item in parts.query.split("&") if item and not item.startswith("db=")]
    if parts.scheme == "unix":
        return f"{url.partition('?')[0]}?{'&'.join([*kept, f'db={database}'])}"
    return urlunsplit(parts._replace(path=f"/{database}", query="&".join(kept)))


def cache_url(broker_url: str, database: int | None, named: str = "") -> str:
    """Return where the cache lies: beside the messages, never among them.

    To clear a cache empties its whole database. `database` and `named` (CACHE_URL) are what the
    environment says, if it says anything. Raises ImproperlyConfigured where the messages lie there.
    """
    taken = databases_named(broker_url)
    if named:
        return _checked_cache_url(broker_url, database, named)
    if database is None:
        database = next(n for n in range(_CACHE_DATABASE, 16) if n not in taken)
    if database < 0 or database in taken:
        raise ImproperlyConfigured(
            f"CACHE_REDIS_DB is {database}: give the number of a Redis database that REDIS_URL"
            " does not name. The cache would otherwise lie among the messages."
        )
    return with_database(broker_url, database)


def _checked_cache_url(broker_url: str, database: int | None, named: str) -> str:
    if urlsplit(named).scheme not in ("redis", "rediss", "unix"):
        raise ImproperlyConfigured("CACHE_URL starts with redis://, rediss:// or unix://.")
    if database is not None:
        raise ImproperlyConfigured(
            "Set CACHE_URL or CACHE_REDIS_DB, not both: CACHE_URL ends with its database."
        )
    is_shared = _server(named) == _server(broker_url)
    if is_shared and databases_named(named, "CACHE_URL") & databases_named(broker_url):
        raise ImproperlyConfigured(
            "CACHE_URL names the database of REDIS_URL, which holds the messages: give another"
            " database or another server."
        )
    return named


def _server(url: str) -> tuple[str | None, int | str]:
    parts = urlsplit(url)
    return parts.hostname, parts.path if parts.scheme == "unix" else parts.port or 6379
