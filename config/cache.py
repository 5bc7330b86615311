"""The cache in Redis, as JSON: what lies there is data, and nothing that Python would execute."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from django.core.cache.backends.redis import RedisCache, RedisCacheClient

_UNREADABLE = object()


class JsonSerializer:
    """Django's own serializer is pickle: whoever writes into Redis would run code here."""

    def dumps(self, value: Any) -> int | bytes:
        """Return what is stored. Raises TypeError for what JSON cannot express."""
        # A bare number can be counted up by Redis.
        return value if type(value) is int else json.dumps(value).encode()

    def loads(self, data: bytes) -> Any:
        """Return what was stored, and a mark for bytes that this class has not written."""
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return _UNREADABLE


class _JsonClient(RedisCacheClient):
    """What cannot be read counts as absent: an entry of an older version, or a forged one."""

    def get(self, key: Any, default: Any) -> Any:
        value = super().get(key, default)
        return default if value is _UNREADABLE else value

    def get_many(self, keys: Iterable[Any]) -> dict[Any, Any]:
        found = super().get_many(keys)
        return {key: value for key, value in found.items() if value is not _UNREADABLE}


class JsonRedisCache(RedisCache):
    """Keeps numbers, text, and lists and objects of these."""

    def __init__(self, server: str, params: dict[str, Any]) -> None:
        options = {**params.get("OPTIONS", {}), "serializer": JsonSerializer}
        super().__init__(server, {**params, "OPTIONS": options})
        self._class = _JsonClient
