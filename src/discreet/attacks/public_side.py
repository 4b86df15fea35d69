"""What an attack is handed, and what is taken from it: the public side, and plain claims.

No object that an attack is handed leads to the truth (`tests/attack/test_public_side.py` follows
all of them), arrays can be read only, and claims are numbers and names, each target once. A claim
that is equal to everything, or that is made a hundred times, would be right without being so.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from discreet.attacks.frame import Attack, Claims, Knowledge
from discreet.errors import ParameterError
from discreet.frames import Frame
from discreet.protect.keyed_noise import without_parameters
from discreet.synthesis.result import Synthesized

_PLAIN = frozenset([bool, int, float, str, type(None), *np.sctypeDict.values()])


def ask(
    attack: Attack,
    release: Any,
    knowledge: Knowledge,
    *,
    rng: np.random.Generator,
    plain: Iterable[type] = (),
) -> Claims:
    """The claims of an attack, from what everybody sees.

    Args:
      attack: The attack.
      release: What is attacked.
      knowledge: What the intruder knows beside it.
      rng: The attack's source of chance.
      plain: Classes of claims that the judge takes beside numbers and names.

    Raises:
      ParameterError: The claims cannot be judged.
    """
    seen, known = public_side(release, knowledge)
    claims = attack(seen, known, rng=rng)
    if not isinstance(claims, Claims):
        raise ParameterError(
            f"attack {attack.name!r} returned {type(claims).__name__}; Claims are expected."
        )
    for what, given in {"target": claims.targets, "value": claims.values}.items():
        if others := _kinds(given) - _PLAIN - set(plain):
            raise ParameterError(
                f"attack {attack.name!r} has {others.pop().__name__} as the {what} of a claim; "
                "claims are numbers, texts, and tuples of these."
            )
    if len(set(claims.targets)) < len(claims):
        raise ParameterError(f"attack {attack.name!r} makes several claims about the same target.")
    return claims


def public_side(release: Any, knowledge: Knowledge) -> tuple[Any, Knowledge]:
    """A release and what is known beside it as an attack sees them."""
    earlier = tuple(_as_seen(each, knowledge) for each in knowledge.earlier)
    return _as_seen(release, knowledge), replace(knowledge, earlier=earlier)


def _as_seen(release: Any, knowledge: Knowledge) -> Any:
    """The release with arrays that cannot be written to, and without its law if that is kept.

    Frames of records that can be changed in place are copied.
    """
    if isinstance(release, Synthesized):
        is_fixed = isinstance(release.frame, Frame)
        return release if is_fixed else replace(release, frame=copy.copy(release.frame))
    held = {each.name: getattr(release, each.name) for each in fields(release)}
    parts = {name: _read_only(x) for name, x in held.items() if isinstance(x, np.ndarray)}
    if not knowledge.parameters:
        parts["statement"] = without_parameters(release.statement)
    return replace(release, **parts)


def _read_only(values: Any) -> Any:
    view = values.view()
    view.flags.writeable = False
    return view


def _kinds(values: Iterable[Any]) -> set[type]:
    """The classes of some values, and of what stands in tuples."""
    kinds = set(map(type, values))
    while tuple in kinds:
        values = [part for value in values if type(value) is tuple for part in value]
        kinds = kinds - {tuple} | set(map(type, values))
    return kinds
