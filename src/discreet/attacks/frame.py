"""What an attack is: it sees a release and knowledge, and returns claims with confidences.

An attack never sees the truth, so it cannot cheat; the judge (`games.py`, `scoring.py`) compares
its claims with the truth afterwards. One attack is one file here and one line in the registry.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from discreet.arrays import Mask, Real
from discreet.errors import ParameterError

About = Literal[
    "cells", "records", "hidden", "inner", "attributes", "differences", "leavers",
    "sensitive", "units", "clusters", "members",
]  # fmt: skip
"""What claims are about, which says how they are judged; see `games.GAMES`."""


@dataclass(frozen=True)
class Knowledge:
    """What an intruder knows beside the release; nothing here is looked up in the truth.

    Attributes:
      earlier: Earlier releases of the same data set, oldest first, or other ones that overlap it.
      people: People whose remaining variable is looked for: what is known of each, by variable.
        The judge draws them where an attack claims attributes.
      own: Records of the intruder and of those who help, as codes by variable.
      parameters: Whether the parameters of the method are known. They are unless an attack is
        measured without them: protection must not rest on hiding them.
      extra: Anything else, by a name that the attack documents.
    """

    earlier: tuple[Any, ...] = ()
    people: tuple[Mapping[str, str], ...] = ()
    own: tuple[Mapping[str, str], ...] = ()
    parameters: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Claims:
    """What an attack says, the surest claim first.

    Attributes:
      targets: What each claim is about: a cell, a record, a profile.
      values: What is claimed of each target; `True` where the claim is that it exists.
      confidence: How sure the attack is, in any scale that orders the claims.
      proven: Which claims follow from the release with certainty; none when absent.
      undecided: How many cells might be certain too, where proofs were not looked for to the end.
    """

    targets: tuple[Hashable, ...]
    values: tuple[Any, ...]
    confidence: Real
    proven: Mask | None = None
    undecided: int = 0

    @classmethod
    def ranked(
        cls,
        targets: Sequence[Hashable],
        values: Sequence[Any],
        confidence: Sequence[float] | Real,
        *,
        most: int | None = None,
        proven: Sequence[bool] | Mask | None = None,
        undecided: int = 0,
    ) -> Claims:
        """Claims in order of confidence, at most as many as asked for; ties keep their order."""
        sure = np.asarray(confidence, dtype=np.float64)
        if not len(targets) == len(values) == len(sure):
            raise ParameterError(
                "claims need one value and one confidence for each target, got "
                f"{len(targets)} targets, {len(values)} values and {len(sure)} confidences."
            )
        order = np.argsort(-sure, kind="stable")[:most]
        said = None if proven is None else np.asarray(proven, dtype=bool)[order]
        found = tuple(targets[i] for i in order), tuple(values[i] for i in order)
        return cls(*found, sure[order], said, undecided)

    def __len__(self) -> int:
        return len(self.targets)


class Attack(Protocol):
    """Tries to learn something from the public side; its options are its fields.

    An attack may also have the members of `PublicAttack`, which say what its claims are about; what
    it lacks is as there.
    """

    @property
    def name(self) -> str:
        """The attack's name in the registry."""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Claims about people or cells, from the release and what is known beside it."""


class PublicAttack:
    """What attacks have beside their name, where they say nothing else.

    Attributes:
      about: What targets are, and so how claims are judged.
      beside: What the baseline is: the same attack on releases drawn without the target's record
        (`"without"`), on the release without earlier ones and other knowledge (`"alone"`), or
        without its classes of quality (`"bare"`).
      remedy: The setting that would stop it.
    """

    about: ClassVar[About] = "cells"
    beside: ClassVar[Literal["without", "alone", "bare"]] = "without"
    remedy: ClassVar[str] = "protect with more noise, or publish fewer tables"

    def refusal(self, release: Any, knowledge: Knowledge) -> str:
        """Why there is nothing to attack here, in words; empty where there is."""
        return ""
