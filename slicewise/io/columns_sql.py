"""The columns of a table of PostgreSQL."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from psycopg import Connection

# A domain is followed down to the type that it is made of: to cast to a domain of a short text cuts
# off what is too long, as to cast to the short text does.
_KINDS = """
WITH RECURSIVE kinds AS (
    SELECT attnum, attname, format_type(atttypid, atttypmod) AS declared, atttypid AS kind
    FROM pg_attribute
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attnum, attname, declared, typbasetype
    FROM kinds JOIN pg_type ON oid = kind WHERE typtype = 'd'
)
SELECT attname, declared, format_type(kind, -1)
FROM kinds JOIN pg_type ON oid = kind WHERE typtype <> 'd' ORDER BY attnum
"""


class Kind(NamedTuple):
    """The type of a column."""

    declared: str
    plain: str
    """Without a length, and not a domain."""


def kinds_of(connection: "Connection[Any]", table: str) -> dict[str, Kind]:
    """Return the types of a table's columns, by name and in their order. None where there
    is no table.
    """
    rows = connection.execute(_KINDS, [table]).fetchall()
    return {column: Kind(declared, plain) for column, declared, plain in rows}
