"""Expressions that choose codes: `*`, `01*`, `?`, `top(n)`, `range(a,b)`, `from(x)` and so on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from discreet.errors import suggest
from discreet.serve.refusals import Refusal

_CALL = re.compile(r"(top|bottom|range|from|to)\((.*)\)", re.IGNORECASE | re.DOTALL)
_PARTS = re.compile(r"\[[^\]]*\]|[^,\[(]*\([^)]*\)|[^,]+")


def split(text: str) -> list[str]:
    """The expressions of a list with commas; those within brackets do not separate."""
    found = [part.strip() for part in _PARTS.findall(text)]
    return [part[1:-1] if part[:1] == "[" and part[-1:] == "]" else part for part in found if part]


def chosen(variable: str, codes: Sequence[str], expressions: Sequence[str]) -> list[str]:
    """The codes that any of the expressions means, in the order of the list.

    Args:
      variable: The variable's name, for errors.
      codes: Its codes, in their order.
      expressions: Codes, patterns with `*` and `?`, or calls such as `top(5)`.
    """
    known, found = set(codes), set()
    for expression in expressions:
        if expression in known:
            found.add(expression)
            continue
        meant = _meant(variable, codes, expression)
        if not meant:
            message = f"Value {expression!r} is not valid for variable {variable!r}. "
            message += suggest(expression, list(codes))
            raise Refusal("unknown_code", message, "See the metadata of the table.")
        found |= set(meant)
    return [code for code in codes if code in found]


def _meant(variable: str, codes: Sequence[str], expression: str) -> Sequence[str]:
    call = _CALL.fullmatch(expression.strip())
    if call is not None:
        name, given = call[1].lower(), [part.strip() for part in call[2].split(",")]
        return _CALLS[name](variable, codes, given)
    if "*" not in expression and "?" not in expression:
        return ()
    parts = ("." if c == "?" else ".*" if c == "*" else re.escape(c) for c in expression)
    pattern = re.compile("".join(parts), re.DOTALL)
    return [code for code in codes if pattern.fullmatch(code)]


def _top(variable: str, codes: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    count, offset = _numbers(variable, given)
    return codes[offset : offset + count]


def _bottom(variable: str, codes: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    count, offset = _numbers(variable, given)
    return codes[::-1][offset : offset + count]


def _range(variable: str, codes: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    if len(given) != 2:
        raise _unreadable(variable, "range(FIRST,LAST)")
    return codes[_place(variable, codes, given[0]) : _place(variable, codes, given[1]) + 1]


def _from(variable: str, codes: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    return codes[_place(variable, codes, ",".join(given)) :]


def _to(variable: str, codes: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    return codes[: _place(variable, codes, ",".join(given)) + 1]


_CALLS: dict[str, Callable[[str, Sequence[str], Sequence[str]], Sequence[str]]] = {
    "top": _top,
    "bottom": _bottom,
    "range": _range,
    "from": _from,
    "to": _to,
}


def _numbers(variable: str, given: Sequence[str]) -> tuple[int, int]:
    """How many, and how many are passed over before."""
    if not 1 <= len(given) <= 2 or not all(re.fullmatch(r"[0-9]{1,9}", part) for part in given):
        raise _unreadable(variable, "top(N), top(N,OFFSET), bottom(N) or bottom(N,OFFSET)")
    return int(given[0]), int(given[1]) if len(given) == 2 else 0


def _place(variable: str, codes: Sequence[str], code: str) -> int:
    if code not in codes:
        message = f"Value {code!r} is not valid for variable {variable!r}. "
        raise Refusal("unknown_code", message + suggest(code, list(codes)), "See the metadata.")
    return list(codes).index(code)


def _unreadable(variable: str, allowed: str) -> Refusal:
    return Refusal("unreadable", f"A selection of {variable!r} cannot be read.", f"{allowed}.")
