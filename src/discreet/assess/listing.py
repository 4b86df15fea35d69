"""Results for people: frames of other libraries, aligned columns, things by what they share."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from discreet.design import show

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing", bound=Hashable)


class Framed:
    """Something that is a table; any library that reads Arrow takes it as one."""

    if TYPE_CHECKING:

        @property
        def frame(self) -> pa.Table:
            """The table."""

    def to_pandas(self) -> pd.DataFrame:
        """The frame for pandas."""
        return show.to_pandas(self.frame)

    def to_polars(self) -> pl.DataFrame:
        """The frame for polars."""
        return show.to_polars(self.frame)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Columns under each other; some of them to the right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    side = [">" if j in right else "<" for j in range(len(widths))]
    return [
        (
            "  " + "  ".join(f"{c:{a}{w}}" for c, a, w in zip(row, side, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def grouped(pairs: Iterable[tuple[Key, Thing]]) -> dict[Key, list[Thing]]:
    """Things by key, in order and each once.

    >>> grouped([("b", 1), ("a", 2), ("b", 3), ("b", 1)])
    {'b': [1, 3], 'a': [2]}
    """
    found: dict[Key, dict[Thing, None]] = {}
    for key, thing in pairs:
        found.setdefault(key, {})[thing] = None
    return {key: list(things) for key, things in found.items()}
