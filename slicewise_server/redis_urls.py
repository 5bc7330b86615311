"""URLs of databases in a Redis server, in the form of REDIS_URL."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

from django.core.exceptions import ImproperlyConfigured

_CACHE_DATABASE = 1


def databases_named(url: str, setting: str = "REDIS_URL") -> set[int]:
    """Return the databases that Celery and redis-py read from the URL.

    Celery reads the path; redis-py reads `?db=` before the path. Without both, the database is 0.
    """
    split_url = urlsplit(url)
    path = "" if split_url.scheme == "unix" else unquote(split_url.path).strip("/")
    database_texts = {text for text in (path, *parse_qs(split_url.query).get("db", [])) if text}
    if not all(text.isascii() and text.isdecimal() for text in database_texts):
        raise ImproperlyConfigured(f"{setting} ends with the number of a database, such as /0.")
    return {int(text) for text in database_texts} or {0}


def with_database(url: str, database: int) -> str:
    """Return the URL of another database of the same server."""
    split_url = urlsplit(url)
    options = [item for item in split_url.query.split("&") if item and not item.startswith("db=")]
    if split_url.scheme == "unix":
        return f"{url.partition('?')[0]}?{'&'.join([*options, f'db={database}'])}"
    return urlunsplit(split_url._replace(path=f"/{database}", query="&".join(options)))


def cache_url(broker_url: str, database: int | None, named: str = "") -> str:
    """Return the URL of the cache's database, which is never the database of the messages.

    Clearing a cache empties the whole database. `database` (CACHE_REDIS_DB) and `named` (CACHE_URL)
    come from the environment. Raise ImproperlyConfigured if the database holds the messages.
    """
    broker_databases = databases_named(broker_url)
    if named:
        return _checked_cache_url(broker_url, database, named)
    if database is None:
        database = next(n for n in range(_CACHE_DATABASE, 16) if n not in broker_databases)
    if database < 0 or database in broker_databases:
        raise ImproperlyConfigured(
            f"CACHE_REDIS_DB is {database}: give the number of a Redis database that REDIS_URL"
            " does not name. The cache and the messages need different databases."
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
    split_url = urlsplit(url)
    return (
        split_url.hostname,
        split_url.path if split_url.scheme == "unix" else split_url.port or 6379,
    )
