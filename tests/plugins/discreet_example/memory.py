"""A connection of another package: `memory://people` is a table with the columns id, a and b."""

import ibis
import pyarrow as pa


def connect(address):
    """A back end, a text that names it, and the table in the address."""
    backend = ibis.duckdb.connect()
    people = range(240)
    columns = {
        "id": [str(k) for k in people],
        "a": ["xyz"[k % 3] for k in people],
        "b": ["u" if k < 80 else "v" for k in people],
    }
    name = address.removeprefix("memory://")
    backend.create_table(name, pa.table(columns))
    return backend, "memory", name
