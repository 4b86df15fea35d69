"""Experiments: the same methods on the same tables, with keys, secret and noise from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.protect.draws import SeededDraws
from discreet.protect.publish import built, in_unit, run
from discreet.tables.method import Method
from discreet.tables.public import Experiment
from discreet.tables.truth import TrueTable


def simulate(
    table: TrueTable,
    method: Method | str,
    parameters: Mapping[str, Any],
    *,
    seed: int,
    unit: str | None = None,
    name: str = "simulate",
) -> Experiment:
    """A trial of the method on the table; see `Table.simulate`.

    Neither ledger nor register is touched, and neither the table's keys nor its secret are used.

    Args:
      table: The table.
      method: A method, or the name of a registered one.
      parameters: Parameters of a method that is given by name.
      seed: Root of the streams.
      unit: What is published.
      name: What tells this experiment from others under the same seed.
    """
    chosen, draws = built(method, parameters), SeededDraws(seed, name)
    return Experiment.wrap(run(chosen, draws.table(in_unit(table, chosen, unit)), draws))
