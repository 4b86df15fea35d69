"""Plain dictionaries and lists: ``{"Total": {"A": ["A1", "A2"], "B": []}}``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discreet.design.codes import canonical
from discreet.design.formats.tree import Tree, plant
from discreet.errors import CodeError


def read_nested(nested: Mapping[Any, Any], root: str | None) -> Tree:
    """Every key is a code over its value: a dict, a list of codes (or dicts), or nothing."""
    pairs: list[tuple[str, str | None]] = []
    waiting: list[tuple[str | None, Iterator[tuple[object, object]]]]
    waiting = [(None, _entries("the hierarchy", nested))]
    while waiting:
        parent, entries = waiting[-1]
        entry = next(entries, None)
        if entry is None:
            waiting.pop()
            continue
        code, below = canonical(entry[0]), entry[1]
        pairs.append((code, parent))
        if below is not None:
            waiting.append((code, _entries(f"code {code!r}", below)))
    return plant(pairs, root)


def _entries(owner: str, below: object) -> Iterator[tuple[object, object]]:
    """Pairs (code, what lies below it) of a dict or list."""
    if isinstance(below, Mapping):
        yield from below.items()
    elif isinstance(below, Sequence) and not isinstance(below, (str, bytes)):
        for item in below:
            yield from item.items() if isinstance(item, Mapping) else [(item, None)]
    else:
        message = f"{owner} holds {below!r:.60}; expected a dict or a list of codes"
        raise CodeError(message)


def write_nested(root: str, children: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Dicts of dicts, with a list where all children are leaves."""
    nested: dict[str, Any] = {}
    waiting: list[tuple[str, dict[str, Any]]] = [(root, nested)]
    while waiting:
        code, place = waiting.pop()
        below = children.get(code, ())
        if any(child in children for child in below):
            place[code] = dict.fromkeys(below)
            waiting.extend((child, place[code]) for child in below)
        else:
            place[code] = list(below)
    return nested
