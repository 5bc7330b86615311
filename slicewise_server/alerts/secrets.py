"""Encryption of addresses and keys with a key derived from SECRET_KEY."""

from base64 import urlsafe_b64encode
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

_PURPOSE = b"slicewise alerts: addresses of channels"


class SecretUnreadable(Exception):
    """A stored secret was encrypted with a SECRET_KEY that the settings no longer name."""


def encrypt(text: str) -> bytes:
    """Return the text encrypted with the key in force."""
    return _cipher().encrypt(text.encode())


def decrypt(stored: bytes | memoryview) -> str:
    """Return the text; raise SecretUnreadable if no key of the settings fits."""
    try:
        return _cipher().decrypt(bytes(stored)).decode()
    except InvalidToken:
        raise SecretUnreadable(
            "The address cannot be read: SECRET_KEY has changed since it was stored. Store the"
            " address again, or name the earlier key in SECRET_KEY_FALLBACKS."
        ) from None


def _cipher() -> MultiFernet:
    return _cipher_of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@cache
def _cipher_of(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_derived(key)) for key in keys])


def _derived(key: str) -> bytes:
    derivation = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE)
    return urlsafe_b64encode(derivation.derive(key.encode()))
