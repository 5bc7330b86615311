"""Revisions of sets of runtime keys.

A revision holds a digest of the set beside a random part. So a process that has an older state of
the set reads only the keys that were added since, and can tell whether the result is the whole
set: keys may be removed and restored, added in a transaction that is rolled back, and committed in
another order than that of their ids.
"""

import secrets
from collections.abc import Iterable
from functools import reduce
from hashlib import blake2b
from operator import xor
from uuid import UUID

# RFC 9562: version 8 has bits of one's own in the other places, 60 before the variant, 62 after.
_VERSION = 8
_DIGEST_BITS, _RANDOM_BITS = 60, 62
EMPTY = 0
"""The digest of a set without keys."""


def digest_of(row_ids: Iterable[int], digest: int = EMPTY) -> int:
    """Return the digest of the set after these rows have joined or left a set of that digest.

    The row of a key never changes its key, and keeps its id when the key is removed and restored.
    """
    return reduce(xor, map(_row_digest, row_ids), digest)


def new_revision(digest: int) -> UUID:
    """Return a revision of a set with this digest, another one each time."""
    high, low = divmod(digest, 1 << 12)
    bits = (high << 16 | _VERSION << 12 | low) << 64 | 0b10 << _RANDOM_BITS
    return UUID(int=bits | secrets.randbits(_RANDOM_BITS))


def digest_in(revision: UUID | None) -> int | None:
    """Return the digest that a revision holds; None for a revision of an earlier release."""
    if revision is None:  # no key was ever added
        return EMPTY
    if revision.version != _VERSION:
        return None
    high = revision.int >> 64
    return (high >> 16) << 12 | (high & 0xFFF)


def _row_digest(row_id: int) -> int:
    digest = blake2b(row_id.to_bytes(8), digest_size=8).digest()
    return int.from_bytes(digest) & ((1 << _DIGEST_BITS) - 1)
