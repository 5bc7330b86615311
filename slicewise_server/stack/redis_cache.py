"""Check that the cache has a Redis database of its own: some servers have only one database."""

from __future__ import annotations

from collections.abc import Mapping

_PATIENCE_SECONDS = 5


def problem_of_cache(env: Mapping[str, str]) -> str:
    """Return the problem of the cache's database, and the remedy; empty without a problem."""
    try:
        import redis

        from slicewise_server.redis_urls import cache_url
    except ImportError:  # other findings name the missing packages
        return ""
    try:
        database = env.get("CACHE_REDIS_DB")
        url = cache_url(
            env["REDIS_URL"], int(database) if database else None, env.get("CACHE_URL", "")
        )
    except Exception as error:  # as at the start of every process
        return f"The settings of the cache cannot be used: {error}"
    setting = "CACHE_URL" if env.get("CACHE_URL") else "CACHE_REDIS_DB"
    try:
        with redis.Redis.from_url(
            url, socket_timeout=_PATIENCE_SECONDS, socket_connect_timeout=_PATIENCE_SECONDS
        ) as client:
            client.ping()
    except redis.AuthenticationError:
        return f"The cache's server refuses the password. Look at {setting} and REDIS_URL."
    except redis.ResponseError as error:
        return (
            f"The cache's database cannot be selected ({error}). Set CACHE_REDIS_DB to the number"
            " of a database that the server has. If it has one only, set CACHE_URL to another"
            " server."
        )
    except (redis.RedisError, OSError) as error:
        return f"The cache's server does not answer: {type(error).__name__}. Look at {setting}."
    return ""
