"""Results for people: frames of other libraries, aligned columns, things by what they share."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from discreet.tables import show

if TYPE_CHECKING:
    import pyarrow as pa

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing", bound=Hashable)


class Framed(show.Frames):
    """Something that is a table; any library that reads Arrow takes it as one."""

    if TYPE_CHECKING:

        @property
        def frame(self) -> pa.Table:
            """The table."""

    def to_arrow(self) -> pa.Table:
        """The table."""
        return self.frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Columns under each other, indented; some of them to the right."""
    return [f"  {line}" for line in show.aligned(rows, right)]


def grouped(pairs: Iterable[tuple[Key, Thing]]) -> dict[Key, list[Thing]]:
    """Things by key, in order and each once.

    >>> grouped([("b", 1), ("a", 2), ("b", 3), ("b", 1)])
    {'b': [1, 3], 'a': [2]}
    """
    found: dict[Key, dict[Thing, None]] = {}
    for key, thing in pairs:
        found.setdefault(key, {})[thing] = None
    return {key: list(things) for key, things in found.items()}
