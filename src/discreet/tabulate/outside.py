"""Codes that a code list does not cover, sent where the list says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.arrays import Whole, Whole32
from discreet.design.axis import Axis
from discreet.errors import CodeError, suggest
from discreet.microdata.code_list import Outside


def leaf_positions(axis: Axis, codes: Sequence[str], index: Whole32, rule: Outside) -> Whole:
    """The leaf position of each row; records that are dropped are not among them any more.

    Args:
      axis: The variable, with the codes of its list.
      codes: The codes found.
      index: The place of each row's code among them, -1 where it is missing.
      rule: Where other codes and missing values go.

    Raises:
      CodeError: The list refuses a code, or a missing value, that was found.
    """
    leaf, other, missing = axis.leaf_position, rule.code_for_other(), rule.code_for_missing()
    unlisted = next((code for code in codes if code not in leaf), None)
    if unlisted is not None and other is None:
        raise CodeError(
            f"code {unlisted!r} of variable {axis.name!r} is not in its code list. "
            f"{suggest(unlisted, list(axis.leaves))} Correct the records, add the code, or say in "
            'the list where such records go: other = "drop", or one of its codes.'
        )
    if missing is None and (index < 0).any():
        raise CodeError(
            f"variable {axis.name!r} has records without a value, which its code list refuses. "
            'Say in the list where they go: missing = "drop", or one of its codes.'
        )
    found = [leaf[code] if code in leaf else leaf[other or ""] for code in codes]
    at_the_end = -1 if missing is None else leaf[missing]  # where index -1 points
    return np.array([*found, at_the_end], dtype=np.int64)[index]
