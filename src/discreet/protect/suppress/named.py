"""Rules by their names, as recipes and the command line write them: `p%(10)`, `threshold(3)`."""

from __future__ import annotations

import re
from collections.abc import Callable

from discreet import registry
from discreet.errors import DiscreetError, ParameterError, UnknownNameError
from discreet.protect.suppress.rules import Rule

_NAME = re.compile(r"([^\s()]+)\s*(?:\(([^()]*)\))?")


def rule_named(name: str) -> Rule:
    """The rule of a name; numbers in brackets are its first parameters.

    `threshold(3, zeros)` calls empty cells sensitive as well.
    """
    match = _NAME.fullmatch(name.strip())
    if match is None and name.count("(") != name.count(")"):
        raise ParameterError(f"rule {name!r} has a bracket that is not closed.")
    if match is None:
        raise UnknownNameError("rule", name.partition("(")[0].strip(), registry.names("rule"))
    make: Callable[..., Rule] = registry.load("rule", match[1])
    texts = [text.strip() for text in (match[2] or "").split(",") if text.strip()]
    options = {"zeros": True} if texts[-1:] == ["zeros"] else {}
    try:
        numbers = [_number(text) for text in texts[: len(texts) - len(options)]]
        return make(*numbers, **options)
    except DiscreetError:
        raise
    except (TypeError, ValueError):
        raise ParameterError(
            f"rule {name!r} cannot be read; write it with its numbers, e.g. 'p%(10)', "
            "'dominance(2, 90)' or 'threshold(3, zeros)'."
        ) from None


def _number(text: str) -> float | int:
    return int(text) if text.isdigit() else float(text)
