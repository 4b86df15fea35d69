"""Expressions that choose codes: `*`, `01*`, `?`, `top(n)`, `range(a,b)`, `from(x)` and so on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from discreet.errors import suggest
from discreet.serve.refusals import Refusal

_CALL = re.compile(r"(top|bottom|range|from|to)\((.*)\)", re.IGNORECASE | re.DOTALL)
_MOST_PATTERNS = 100


def split(text: str) -> list[str]:
    """The expressions of a list with commas; those within brackets do not separate."""
    found, closing = [""], ""
    for sign in text:
        if sign == "," and not closing:
            found.append("")
            continue
        if not closing and (sign == "(" or (sign == "[" and not found[-1].strip())):
            closing = ")" if sign == "(" else "]"
        elif sign == closing:
            closing = ""
        found[-1] += sign
    parts = [part.strip() for part in found]
    return [part[1:-1] if part[0] == "[" and part[-1] == "]" else part for part in parts if part]


def chosen(variable: str, codes: Sequence[str], expressions: Sequence[str]) -> list[str]:
    """The codes that any of the expressions means, in the order of the list.

    Args:
      variable: The variable's name, for errors.
      codes: Its codes, in their order.
      expressions: Codes, patterns with `*` and `?`, or calls such as `top(5)`.
    """
    known = set(codes)
    found = {expression for expression in expressions if expression in known}
    others = list(dict.fromkeys(e for e in expressions if e not in known))
    if len(others) > _MOST_PATTERNS:
        message = f"{len(others):,} selections of {variable!r} are no codes of it."
        raise Refusal("too_many_patterns", message, f"At most {_MOST_PATTERNS} expressions.")
    for expression in others:
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
    return [code for code in codes if matches(code, expression)]


def matches(text: str, pattern: str) -> bool:
    """Whether a pattern with `*` and `?` describes a text; no pattern takes long."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))


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
