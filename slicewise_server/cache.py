"""The cache in Redis, stored as JSON: an entry is data and never code that Python executes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient

_UNREADABLE = object()


class JsonSerializer:
    """A serializer in place of Django's, pickle, by which a writer to Redis could run code here."""

    def dumps(self, value: Any) -> int | bytes:
        """Return the stored form of a value; raise TypeError if JSON cannot express the value."""
        # Redis can increment a bare number.
        return value if type(value) is int else json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """Return the stored value, or a marker for bytes that are not JSON."""
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return _UNREADABLE


class _JsonClient(RedisCacheClient):
    """A client for which unreadable entries, of an older version or forged, count as absent."""

    def get(self, key: Any, default: Any) -> Any:
        value = super().get(key, default)
        return default if value is _UNREADABLE else value

    def get_many(self, keys: Iterable[Any]) -> dict[Any, Any]:
        values = super().get_many(keys)
        return {key: value for key, value in values.items() if value is not _UNREADABLE}


class JsonRedisCache(RedisCache):
    """A cache of numbers, text, and lists and objects of numbers and text."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        options = {**params.get("OPTIONS", {}), "serializer": JsonSerializer}
        super().__init__(server, {**params, "OPTIONS": options})
        self._class = _JsonClient
