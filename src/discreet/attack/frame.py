"""What an attack is: it sees a release and knowledge, and returns claims with confidences.

An attack never sees the truth, so it cannot cheat; `scoring.judge` compares its claims with the
truth afterwards. One attack is one file here and one line in the registry.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from discreet.arrays import Real
from discreet.errors import ParameterError


@dataclass(frozen=True)
class Knowledge:
    """What an intruder knows beside the release; nothing here is looked up in the truth.

    Attributes:
      earlier: Earlier releases of the same data set, oldest first.
      own: Records of the intruder and of those who help, as rows of codes by variable.
      others: Records that the intruder knows in full, such as all but one.
      totals: Figures known from elsewhere, by cell.
      parameters: Whether the parameters of the method are known. They are unless an attack is
        measured without them: protection must not rest on hiding them.
      extra: Anything else, by a name that the attack documents.
    """

    earlier: tuple[Any, ...] = ()
    own: tuple[Mapping[str, str], ...] = ()
    others: tuple[Mapping[str, str], ...] = ()
    totals: Mapping[Any, float] = field(default_factory=dict)
    parameters: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Claims:
    """What an attack says, the surest claim first.

    Attributes:
      targets: What each claim is about: a cell, a record, a profile.
      values: What is claimed of each target; `True` where the claim is that it exists.
      confidence: How sure the attack is, in any scale that orders the claims.
    """

    targets: tuple[Hashable, ...]
    values: tuple[Any, ...]
    confidence: Real

    @classmethod
    def ranked(
        cls,
        targets: Sequence[Hashable],
        values: Sequence[Any],
        confidence: Sequence[float] | Real,
        *,
        most: int | None = None,
    ) -> Claims:
        """Claims in order of confidence, at most as many as asked for; ties keep their order."""
        sure = np.asarray(confidence, dtype=np.float64)
        if not len(targets) == len(values) == len(sure):
            raise ParameterError(
                "claims need one value and one confidence for each target, got "
                f"{len(targets)} targets, {len(values)} values and {len(sure)} confidences."
            )
        order = np.argsort(-sure, kind="stable")[:most]
        return cls(tuple(targets[i] for i in order), tuple(values[i] for i in order), sure[order])

    def __len__(self) -> int:
        return len(self.targets)


class Attack(Protocol):
    """Tries to learn something from the public side; its options are its fields."""

    @property
    def name(self) -> str:
        """The attack's name in the registry."""

    def __call__(self, release: Any, knowledge: Knowledge, *, rng: np.random.Generator) -> Claims:
        """Claims about people or cells, from the release and what is known beside it."""
