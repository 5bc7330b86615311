"""The columns of a table of PostgreSQL."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from psycopg import Connection

# A domain is followed down to its base type: a cast to a domain of a short text cuts off a text
# that is too long, as a cast to the short text does.
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
    """The declared type without a length; for a domain the type that the domain is based on."""


def kinds_of(connection: "Connection[Any]", table: str) -> dict[str, Kind]:
    """Return the types of a table's columns, by name and in the order of the table; an empty dict
    if there is no such table.
    """
    rows = connection.execute(_KINDS, [table]).fetchall()
    return {column: Kind(declared, plain) for column, declared, plain in rows}
