"""From a formula and columns to the matrices of a regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from discreet.arrays import Real
from discreet.errors import DataError, ParameterError
from discreet.frames import without_values
from discreet.synthesize.model.columns import Column, Factor, Missing, column_of, numbers_of
from discreet.synthesize.model.formula import (
    CONSTANT,
    LOCAL,
    NUMBER,
    PLAIN,
    ROOT,
    ModelFormula,
    names_in,
    names_of,
)
from discreet.synthesize.records import Records
from discreet.synthesize.tolerances import LARGEST_MODEL

Names = tuple[str, ...]
Crossings = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, eq=False)
class Model:
    """**Confidential.** The matrices of a model on some records.

    Attributes:
      formula: The formula.
      Y: The confidential values, n×k.
      X: The columns of the right side with the constant, n×m; for hybrid data those that are
        crossed with clusters.
      others: For hybrid data, the columns that are not crossed with clusters, or with other sets
        of rows; by the word that marks them.
      weights: Survey weights, all positive.
      columns: What the right side is made from, by name.
      crossings: The factors that terms are made of, each crossing as the names of its columns.
      names: Names of the columns of `X` and `others` together.
    """

    formula: ModelFormula
    Y: Real
    X: Real
    others: Mapping[str, Real]
    weights: Real | None
    columns: Mapping[str, Column]
    crossings: Crossings
    names: Names

    @property
    def all_columns(self) -> Real:
        """The columns of `X` and `others` side by side, crossed with nothing."""
        return np.hstack([self.X, *self.others.values()]) if self.others else self.X

    @property
    def scaled(self) -> Model:
        r"""The same model with rows multiplied by :math:`\sqrt{w}`, and no weights.

        What is preserved of them are the weighted moments :math:`X^\top W Y` and
        :math:`Y^\top W Y`.
        """
        if self.weights is None:
            return self
        root = np.sqrt(self.weights)[:, None]
        others = {word: matrix * root for word, matrix in self.others.items()}
        return replace(self, Y=self.Y * root, X=self.X * root, others=others, weights=None)

    def unscaled(self, Y: Real) -> Real:
        """The inverse of `scaled` for synthetic values."""
        return Y if self.weights is None else Y / np.sqrt(self.weights)[:, None]


def read_columns(
    records: Records, formula: ModelFormula, missing: Missing
) -> tuple[Real, dict[str, Column], Real | None]:
    """Confidential values, columns of the right side, and weights.

    Raises:
      UnknownNameError: A column is not there; the nearest names are named.
      ParameterError: A confidential column stands on the right side as well.
      DataError: Values are missing, infinite, or of a kind that no model takes.
    """
    table = records.table
    records.require([*formula.confidential, *([formula.weights] if formula.weights else [])])
    sources = formula.sources(records.columns)
    for name in (*sources, formula.weights):
        if name in formula.confidential:
            raise ParameterError(
                f"column {name!r} stands on both sides of the model. What is on the right is "
                "published as it is; leave it out there."
            )
    if not len(table):
        raise DataError("there are no records.")
    Y = [
        numbers_of(name, table.column(name), "confidential, on the left side of the model,")
        for name in formula.confidential
    ]
    columns: dict[str, Column] = {}
    for name in sources:
        columns |= column_of(name, table.column(name), missing)
    return np.column_stack(Y), columns, _weights(records, formula.weights)


def build(
    formula: ModelFormula,
    Y: Real,
    columns: Mapping[str, Column],
    weights: Real | None = None,
) -> Model:
    """The matrices of a formula.

    Raises:
      ParameterError: There are more parameters than rows, or a term cannot be evaluated.
    """
    parts = dict(formula.parts)
    first = parts.pop(PLAIN, "") or parts.pop(LOCAL, "")
    X, names, crossings = _matrix(first, columns, len(Y))
    others = {}
    for word, part in parts.items():
        matrix, more, further = _matrix(part, columns, len(Y))
        others[word] = matrix[:, 1:]
        names, crossings = (*names, *more[1:]), (*crossings, *further)
    return Model(formula, Y, X, others, weights, columns, tuple(dict.fromkeys(crossings)), names)


def _matrix(part: str, columns: Mapping[str, Column], n: int) -> tuple[Real, Names, Crossings]:
    """Columns of a sum of terms, the constant first; their names, and the factors that cross."""
    from formulaic import Formula

    parsed: Any = Formula(part or CONSTANT)
    used = names_in(parsed)
    marks = [name for name in columns if name.startswith("missing(") and name[8:-1] in used]
    _check_size(len(marks) + sum(_width(term, columns) for term in parsed), n)
    found = _evaluated(parsed, columns, n)
    _check_size(len(marks) + found.shape[1], n)
    names = ("constant", *map(str, found.model_spec.column_names[1:]), *marks)
    marked = [column for m in marks if isinstance(column := columns[m], np.ndarray)]
    matrix = np.column_stack([np.asarray(found, dtype=np.float64), *marked])
    for name, column in zip(names, matrix.T, strict=True):
        if not np.isfinite(column).all():
            raise DataError(
                f"term {name!r} has no finite value for some records; a logarithm of zero, say."
            )
    return matrix, names, _crossings(parsed, found.model_spec, columns)


def _evaluated(parsed: Any, columns: Mapping[str, Column], n: int) -> Any:
    """The model matrix by formulaic; what went wrong is said without quoting a record."""
    import pandas as pd

    values = {k: c.as_pandas() if isinstance(c, Factor) else c for k, c in columns.items()}
    frame = pd.DataFrame(values, index=range(n))
    try:
        return parsed.get_model_matrix(frame, context=_OWN, output="numpy")
    except Exception as error:  # formulaic passes on whatever a transformation raises
        reason = without_values(error).splitlines()[0].rstrip(".")
        raise ParameterError(f"the right side of the model failed: {reason}.") from None


def _number(values: Any) -> Any:
    """The function `number(…)` of formulas: codes that are numbers, as numbers."""
    import pandas as pd

    return pd.to_numeric(pd.Series(values).astype(str))


_OWN = {NUMBER: _number, ROOT: np.sqrt}


def _check_size(m: int, n: int) -> None:
    """Refuse a model with more parameters than rows, or one that no memory holds."""
    if m > n:
        raise ParameterError(
            f"the model has {m:,} parameters or more, but there are {n:,} rows. Leave out terms, "
            "use coarser codes, or read codes that are numbers as numbers: number(age)."
        )
    if m * n > LARGEST_MODEL:
        raise ParameterError(
            f"the model matrix would have {n:,} rows and {m:,} columns. Use coarser codes, or "
            "make the cells clusters: method='hybrid' with clusters='cell'."
        )


def _width(term: Any, columns: Mapping[str, Column]) -> int:
    """The least number of columns that a term has."""
    factors = [columns.get(str(factor.expr)) for factor in term.factors]
    return prod(max(len(f.levels) - 1, 1) for f in factors if isinstance(f, Factor))


def _crossings(parsed: Any, spec: Any, columns: Mapping[str, Column]) -> Crossings:
    """For each term the columns of its factors, those that are codes and those made so by C(…)."""
    found = []
    for term in parsed:
        crossed: set[str] = set()
        for factor in term.factors:
            kind = spec.encoder_state.get(factor.expr, (None,))[0]
            if kind is not None and kind.value == "categorical":
                crossed |= names_of(factor) & set(columns)
        found.append(tuple(sorted(crossed)))
    return tuple(filter(None, found))


def _weights(records: Records, name: str | None) -> Real | None:
    if name is None:
        return None
    weights = numbers_of(name, records.table.column(name), "the column of weights")
    if (weights <= 0).any():
        raise DataError(
            f"column {name!r} holds weights that are not positive; leave such records out."
        )
    return weights
