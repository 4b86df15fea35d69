"""What every reader of a hierarchy returns, the checks every tree passes, and nested dicts.

Trees are walked with a list of what waits, not by recursion: a chain of ten thousand codes is a
hierarchy too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from discreet.design.codes import canonical
from discreet.errors import CodeError


class CodeTree(NamedTuple):
    """A tree as it was read: pairs (code, parent code) in the order given, not yet checked.

    `level_names` may name more levels than the tree turns out to have.
    """

    root: str
    pairs: Sequence[tuple[str, str]]
    labels: Mapping[str, str] = {}
    level_names: tuple[str, ...] = ()


def reading_order(root: str, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Code to parent, depth first from the root, siblings in the order given.

    Raises:
        CodeError: An empty or repeated code, a code under two parents or equal to the root, a
            parent that is no code, or codes that lie under one another in a circle.
    """
    if not root.strip():
        raise CodeError("the root has an empty code; give the total a code such as 'Total'")
    parents: dict[str, str] = {}
    for code, parent in pairs:
        if code in parents or code == root or not code.strip():
            raise CodeError(_misplaced_message(root, code, parent, parents.get(code)))
        parents[code] = parent
    for code, parent in parents.items():
        if parent not in parents and parent != root:
            raise CodeError(
                f"parent {parent!r} of code {code!r} is neither a code itself nor the root "
                f"{root!r}; list {parent!r} with its own parent"
            )
    children = children_of(parents)
    ordered: dict[str, str] = {}
    waiting = list(reversed(children.get(root, ())))
    while waiting:
        code = waiting.pop()
        ordered[code] = parents[code]
        waiting.extend(reversed(children.get(code, ())))
    if len(ordered) < len(parents):  # a circle hangs under no root, so the walk never entered it
        raise CodeError(_circle_message(parents, ordered))
    return ordered


def children_of(parents: Mapping[str, str]) -> dict[str, list[str]]:
    """Parent to its children, in the order of `parents`; leaves are absent."""
    children: dict[str, list[str]] = {}
    for code, parent in parents.items():
        children.setdefault(parent, []).append(code)
    return children


def depths_of(root: str, parents: Mapping[str, str]) -> dict[str, int]:
    """Code to its depth, for parents in reading order; the root has depth 0."""
    depths = {root: 0}
    for code, parent in parents.items():
        depths[code] = depths[parent] + 1
    return depths


def plant(pairs: Sequence[tuple[str, str | None]], root: str | None) -> CodeTree:
    """A tree from codes of which some name no parent.

    Args:
        pairs: Codes and their parents; None for a code at the top.
        root: Code of the total, which takes the codes at the top as children. By default the one
            code at the top, or the one parent that is not listed as a code itself.

    Raises:
        CodeError: The root was left open and cannot be told from the pairs.
    """
    tops = [code for code, parent in pairs if parent is None]
    if root is None:
        root = _only_root(tops, pairs)
    below = [(code, parent) for code, parent in pairs if (code, parent) != (root, None)]
    return CodeTree(root, [(code, root if parent is None else parent) for code, parent in below])


def quote_codes(codes: Iterable[str], limit: int = 5) -> str:
    """Codes for a message, the first few of many."""
    listed = [repr(code) for code in codes]
    return ", ".join(listed[:limit]) + (", …" if len(listed) > limit else "")


def _misplaced_message(root: str, code: str, parent: str, earlier: str | None) -> str:
    if not code.strip():
        return f"an empty code stands under {parent!r}; every category needs a code"
    if code == root:
        return (
            f"code {code!r} is the root and cannot stand under {parent!r}; "
            "choose another code for the total (root=...)"
        )
    if parent == earlier:
        return f"code {code!r} is listed twice under {parent!r}; list every code once"
    return (
        f"code {code!r} stands under {earlier!r} and under {parent!r}; a hierarchy is a tree, "
        "so give groups that overlap a hierarchy each (two files: "
        "hierarchies={'region': ['one.hrc', 'two.hrc']}); where it means two things, write them "
        f"apart, e.g. {parent + '_' + code!r}"
    )


def _circle_message(parents: Mapping[str, str], reached: Mapping[str, str]) -> str:
    code = next(code for code in parents if code not in reached)
    path: dict[str, None] = {}
    while code not in path:
        path[code] = None
        code = parents[code]
    walked = list(path)
    circle = [*walked[walked.index(code) :], code]
    shown = " under ".join(map(repr, circle[:8])) + (" under …" if len(circle) > 8 else "")
    return f"codes lie under one another in a circle: {shown}; give one of them another parent"


def _only_root(tops: Sequence[str], pairs: Sequence[tuple[str, str | None]]) -> str:
    if len(tops) == 1:
        return tops[0]
    listed = {code for code, _ in pairs}
    unlisted = list(dict.fromkeys(p for _, p in pairs if p is not None and p not in listed))
    if not tops and len(unlisted) == 1:
        return unlisted[0]
    if not pairs:
        message = "there are no codes; give at least the root, or pass root=..."
    elif tops or unlisted:
        message = (
            f"several codes stand at the top ({quote_codes(tops or unlisted)}) and none is above "
            "all; list them without a parent and pass root=... to put them under one total"
        )
    else:
        message = _circle_message({c: p for c, p in pairs if p is not None}, {})
    raise CodeError(message)


def read_nested(nested: Mapping[Any, Any], root: str | None) -> CodeTree:
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
        raise CodeError(f"{owner} holds {below!r:.60}; expected a dict or a list of codes")


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
