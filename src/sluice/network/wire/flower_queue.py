"""How much of Flower's queue on disk belongs to a node.

The SuperLink keeps a reply and its objects until the coordinator has received them. Its database is
read here, and never written.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from flwr.supercore.utils import uint64_to_int64

__all__ = ["stored_bytes"]

ROW_BYTES = 1_024
"""Bytes that count for each object beside its content, so that empty objects are not free."""

QUERY = """
WITH RECURSIVE own (id) AS (
    SELECT message_id FROM message_res WHERE src_node_id = :node
    UNION
    SELECT child_id FROM object_children JOIN own ON parent_id = own.id)
SELECT COALESCE(SUM(LENGTH(content)), 0), COUNT(*) FROM objects WHERE object_id IN own
"""


def stored_bytes(database: Path, node: int) -> int:
    """Return how many bytes of replies from a node Flower holds on disk."""
    if not database.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)) as base:
            row = base.execute(QUERY, {"node": uint64_to_int64(node)}).fetchone()
    except sqlite3.Error as error:
        raise OSError(f"Flower's queue {database} cannot be read: {error}") from error
    return int(row[0]) + ROW_BYTES * int(row[1])
