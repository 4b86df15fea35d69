"""`discreet.synthesize(…, method="mixed")`: codes and amounts are both synthetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from discreet.errors import ConfidentialError, ParameterError
from discreet.microdata.records import UnitRecords
from discreet.microdata.secret import Secret
from discreet.microdata.sources import records_of_frame
from discreet.protect.publish import publish
from discreet.protect.simulate import simulate
from discreet.release.fitting import fitted
from discreet.release.rounding import rounded_by_seed
from discreet.synthesize.mixed import mixed, mixed_within
from discreet.synthesize.model.columns import Column, Factor
from discreet.synthesize.model.model import Model, build
from discreet.synthesize.model.rows import Rows
from discreet.synthesize.publish.draws import Chance
from discreet.synthesize.publish.mixed_sentences import mixed_sentences
from discreet.synthesize.publish.request import Request
from discreet.synthesize.publish.sentences import Said
from discreet.synthesize.result import Synthetic, SyntheticTrial
from discreet.synthesize.safety.sets import Unsafe, cells_of, refuse
from discreet.synthesize.synthesis import Synthesis
from discreet.synthesize.tolerances import LEAST_FREEDOM
from discreet.tables.protected import COUNT, Protected
from discreet.tables.statement import Statement, step_of
from discreet.tabulate.tabulate import tabulate

_SEEDS = 2**31


def mixed_records(
    data: Any, chance: Chance, model: Model, rows: Rows
) -> Synthetic | SyntheticTrial:
    """New records with protected counts of codes, and amounts by the model of the original.

    Codes may be merged in the model; the rows are the original ones.
    """
    request, records = chance.request, chance.records
    chance.register()
    rng = chance.generator()
    whole = _whole(_protected(data, chance, tuple(rows.columns)), rng)
    made, labels = _made(request, model, rows.columns, whole, rng)
    names = request.formula.confidential
    values = dict(zip(names, made.Y.T, strict=True))
    frame = records.frame_of({**labels, **values})
    statement = _statement(request, whole.statement, records.secret is not None)
    about = (*labels, *names), request.formula.text, request.method
    if chance.seed is not None:
        return SyntheticTrial(frame, statement, *about, details=made.details)
    return Synthetic(frame, statement, *about)


def check_codes(columns: Mapping[str, Column]) -> None:
    """Refuse a right side that holds anything but codes."""
    numbers = [name for name, column in columns.items() if not isinstance(column, Factor)]
    if numbers:
        raise ParameterError(
            f"column {numbers[0]!r} holds numbers, and a mixed model counts the combinations of "
            "its right side. Make it codes, e.g. with `dc.cut`, or leave it out."
        )
    if not columns:
        raise ParameterError("a mixed model needs columns of codes on its right side.")


def check_cells(model: Model, request: Request) -> None:
    """Refuse cells with covariances of their own that are too small."""
    if request.parameters["within"] == "cells":
        cells = cells_of(tuple(model.columns), model.columns)
        small = np.bincount(cells)[cells] <= LEAST_FREEDOM
        where = f"cells of {' × '.join(model.columns)}"
        found = [Unsafe(where, np.flatnonzero(small))] if small.any() else []
        refuse(found, len(model.Y), 0)


def _protected(data: Any, chance: Chance, codes: tuple[str, ...]) -> Protected:
    """The protected table of all combinations of codes.

    The release of the records is in the ledger already, and the counts are part of it.
    """
    records, counts = chance.records, chance.request.parameters["counts"]
    if not isinstance(data, UnitRecords):
        named, secret = records.data_set, cast("Secret | None", records.secret)
        chosen = records.frame.select(list(codes)).to_native()
        data = records_of_frame(chosen, named, secret)
    data.check_keys()
    table = tabulate(data, "*".join(codes))
    if chance.seed is not None:
        return simulate(table, counts, {}, seed=chance.seed, unit=COUNT)
    return publish(table, counts, {}, unit=COUNT, ledger=records.ledger, again=True)


def _whole(protected: Protected, rng: np.random.Generator) -> Protected:
    """Protected counts as whole numbers of records in each cell, none negative."""
    if protected.y is None or (np.asarray(protected.y) < 0).any():
        protected = fitted(protected, "auto")
    y = np.asarray(protected.y)
    if (y != np.rint(y)).any():
        protected = rounded_by_seed(protected, "total", int(rng.integers(_SEEDS)))
    return protected


def _made(
    request: Request,
    model: Model,
    original: Mapping[str, Column],
    whole: Protected,
    rng: np.random.Generator,
) -> tuple[Synthesis, dict[str, list[str]]]:
    """Amounts of the new records, and their codes."""
    y = np.rint(np.asarray(whole.y)).astype(np.int64)
    some = np.flatnonzero(y)
    found = whole.design.inner_label_columns(np.repeat(some, y[some]))
    labels = {name: found[name].to_pylist() for name in original}
    both = {name: _stacked(original[name], model.columns[name], labels[name]) for name in original}
    n = len(model.Y)
    if request.parameters["within"] == "cells":
        cells = cells_of(tuple(both), both)
        return mixed_within(model.Y, cells[:n], cells[n:], rng=rng), labels
    stacked = build(request.formula, np.zeros((n + int(y.sum()), 1)), both)
    return mixed(model.Y, stacked.X[:n], stacked.X[n:], rng=rng), labels


def _stacked(original: Column, used: Column, labels: list[str]) -> Factor:
    """Codes of original and new records, merged where those of the original are."""
    if not isinstance(original, Factor) or not isinstance(used, Factor):
        raise ParameterError("a mixed model needs codes on its right side.")
    place = dict(zip(original.codes.tolist(), used.codes.tolist(), strict=True))
    known = {level: place[code] for code, level in enumerate(original.levels) if code in place}
    if lacking := set(labels) - set(known):
        raise ConfidentialError(
            f"the protected counts fill {len(lacking)} codes that no original record has. Declare "
            "fewer codes, or protect counts by a method that keeps zeros."
        )
    new = np.array([known[label] for label in labels], dtype=np.int64)
    return Factor(used.levels, np.concatenate([used.codes, new]))


def _statement(request: Request, counted: Statement, has_secret: bool) -> Statement:
    """What is said of the counts, then of the amounts; a guarantee for counts alone is none."""
    repeats = has_secret and request.parameters["counts"].source != "system"
    said = Said(request, request.public, (), repeats)
    step = step_of(f"synthesize:{request.method}", request.public, mixed_sentences(said))
    return replace(counted.then(step, changes_values=False), privacy=None)
