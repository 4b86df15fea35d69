"""Synthetic and hybrid microdata that keep regression fits and covariances exactly.

The package can be called: `discreet.synthesize(data, "income ~ age + region")`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.synthesize.result import Synthetic, SyntheticTrial


class _CallablePackage(ModuleType):
    """A package that stands for its main function, so that both share the public name."""

    def __call__(self, data: Any, formula: str, *args: Any, **options: Any) -> Any:
        """Synthetic records; see `discreet.synthesize.synthesize`."""
        from discreet.synthesize.synthesize import synthesize  # start-up time: SciPy

        made: Synthetic | SyntheticTrial = synthesize(data, formula, *args, **options)
        return made


sys.modules[__name__].__class__ = _CallablePackage
