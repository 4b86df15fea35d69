"""Records drawn from released tables."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from discreet.errors import ConfidentialError, DesignError, ParameterError
from discreet.protect.sentences import adds_up, not_negative, process, whole_numbers
from discreet.randomness import stream
from discreet.release.fitting import round_cells
from discreet.release.tabulate import to_microdata
from discreet.synthesis.result import Synthetic
from discreet.tables.protected import COUNT, PublicTable
from discreet.tables.statement import step_of

Draw = Literal["multinomial", "unbiased", "total", "margins", "cube"]
METHOD = "from-tables"
LARGEST_DRAW = 500_000_000  # records that are drawn at most; a frame of them fills a large server


def records_from(
    release: PublicTable, draw: Draw = "total", *, seed: int, n: int | None = None
) -> Synthetic:
    """Made-up people whose tables are those of a release.

    Everything is made from what is public already, so that the draw needs no secret.

    Args:
      release: A release of counts with inner cells, none negative; fit it first.
      draw: `"multinomial"` draws each record by itself, with the shares of the inner cells. The
        others round inner cells down or up: `"unbiased"` independently, `"total"` with the total
        kept, `"cube"` with published sums kept as far as possible, all without bias; `"margins"`
        with every published cell rounded down or up wherever that is possible.
      seed: Seed of the draw.
      n: Number of records of a multinomial draw; by default the total, rounded.
    """
    if not isinstance(release, PublicTable):
        raise ConfidentialError("records are drawn from a release; protect the table first.")
    if draw not in get_args(Draw):
        known = ", ".join(map(repr, get_args(Draw)))
        raise ParameterError(f"draw must be one of {known}, got {draw!r}.")
    if n is not None and draw != "multinomial":
        raise ParameterError("n= goes with draw='multinomial'; other draws keep the total.")
    if release.unit != COUNT:
        raise DesignError(f"records are drawn from counts; this is a release of {release.unit}s.")
    if draw == "multinomial":
        drawn = _multinomial(release, n, stream(seed, "records:multinomial"))
    else:
        drawn = round_cells(release, draw, seed)
    names = tuple(axis.name for axis in release.design.axes)
    said = process(
        "records",
        "Each record was drawn from released counts; nothing else was used to make it.",
        "The rows are not people. They were made up so that they give the published tables.",
    )
    step = step_of("records", {"draw": draw, "n": n}, [said])
    return Synthetic(
        frame=to_microdata(drawn),
        statement=drawn.statement.then(step, changes_values=False),
        confidential=names,
        model=" * ".join(names),
        method=METHOD,
    )


def _multinomial(release: PublicTable, n: int | None, rng: np.random.Generator) -> PublicTable:
    if release.y is None:
        raise DesignError("inner cells are not part of this release; fit them first.")
    y = np.asarray(release.y, dtype=np.float64)
    if (y < 0).any():
        raise DesignError("inner cells are negative; fit them without negative values first.")
    total = float(y.sum())
    size = round(total) if n is None else n
    if not total > 0 or not 0 <= size <= LARGEST_DRAW:
        raise ParameterError(
            f"a draw needs a positive total and at most {LARGEST_DRAW:,} records, got {total:g} "
            f"and {size:,}."
        )
    counts = rng.multinomial(size, y / total).astype(np.int64)
    text = (
        "Records were drawn independently of each other, with the shares of released inner cells."
    )
    said = [process("drawn", text, "The figures were drawn at random from published shares.")]
    said += [adds_up(), whole_numbers(), not_negative()]
    return release.with_parts(
        z=release.design.aggregate(counts),
        y=counts,
        precision=None,
        fit_result=None,
        statement=release.statement.then(step_of("draw:multinomial", {"n": n}, said)),
    )
