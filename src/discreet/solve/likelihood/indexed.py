"""What a likelihood fit knows of its design, found when it is first needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.design.base import Design
from discreet.design.membership import Membership
from discreet.solve.inputs import checked_start


@dataclass(frozen=True, eq=False)
class Indexed:
    """A fitter's options with what depends on the design alone.

    Attributes:
      options: The fitter.
      design: The design.
    """

    options: Any
    design: Design

    def __post_init__(self) -> None:
        if self.options.start is not None:
            checked_start(self.design, self.options.start)

    @cached_property
    def members(self) -> Membership:
        """The published cells of every inner cell."""
        return Membership.of(self.design)

    @cached_property
    def start(self) -> NDArray[np.float64]:
        """The starting table."""
        return checked_start(self.design, self.options.start)
