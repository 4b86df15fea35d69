"""Plain text for the terminal: aligned columns, and things listed under what they share."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing", bound=Hashable)


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Columns under each other; some of them to the right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    return [
        ("  " + "  ".join(_padded(c, widths[j], j in right) for j, c in enumerate(row))).rstrip()
        for row in rows
    ]


def _padded(cell: str, width: int, right: bool) -> str:
    return cell.rjust(width) if right else cell.ljust(width)


def grouped(pairs: Iterable[tuple[Key, Thing]]) -> dict[Key, list[Thing]]:
    """Things by key, in order and each once.

    >>> grouped([("b", 1), ("a", 2), ("b", 3), ("b", 1)])
    {'b': [1, 3], 'a': [2]}
    """
    found: dict[Key, dict[Thing, None]] = {}
    for key, thing in pairs:
        found.setdefault(key, {})[thing] = None
    return {key: list(things) for key, things in found.items()}
