"""`discreet.synthesize(…, method="mixed")`: codes and amounts are both synthetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from discreet.design.release import COUNT, Protected
from discreet.design.statement import Statement, step_of
from discreet.design.table import Table
from discreet.errors import ConfidentialError, ParameterError, UnknownNameError
from discreet.ledger import Ledger
from discreet.microdata.microdata import Microdata
from discreet.microdata.open import open as open_records
from discreet.microdata.secret import Secret
from discreet.protect.publish import built
from discreet.synthesize.algebra.matrices import Matrix
from discreet.synthesize.mixed import mixed, mixed_within
from discreet.synthesize.model.columns import Column, Factor, Missing
from discreet.synthesize.model.formula import ModelFormula, parse
from discreet.synthesize.model.model import Model, build, read_columns
from discreet.synthesize.model.rows import Rows
from discreet.synthesize.publish import draws
from discreet.synthesize.publish.mixed_sentences import mixed_sentences
from discreet.synthesize.publish.request import Merge
from discreet.synthesize.publish.sentences import Said
from discreet.synthesize.records import Records, read_records
from discreet.synthesize.result import Synthetic, SyntheticTrial
from discreet.synthesize.safety.safe_model import safe_model
from discreet.synthesize.safety.sets import LEAST_FREEDOM, Unsafe, cells_of, refuse
from discreet.synthesize.synthesis import Synthesis

MIXED = "mixed"
Within = Literal["model", "cells"]
_SEEDS = 2**31


@dataclass(frozen=True)
class MixedRequest:
    """What is asked for; all of it is public.

    Attributes:
      formula: The model; its right side holds codes only.
      counts: The method that protects the counts of the codes.
      within: Whether the model alone, or each cell's own covariances are preserved.
      missing: What happens to missing values.
      merge: What happens to small cells.
    """

    formula: ModelFormula
    counts: Any
    within: Within = "model"
    missing: Missing = "refuse"
    merge: Merge | None = None

    def __post_init__(self) -> None:
        if self.within not in ("model", "cells"):
            raise ParameterError(f"within must be 'model' or 'cells', got {self.within!r}.")
        if self.formula.is_hybrid or self.formula.weights:
            raise ParameterError(
                "a mixed model has neither weights(…) nor terms in local(…), shared(…), groups(…) "
                "and pieces(…); write the terms as they are."
            )

    @property
    def public(self) -> dict[str, Any]:
        """The request as a statement shows it."""
        chosen = {"within": self.within, "missing": self.missing, "merge": self.merge}
        return {"model": self.formula.text, "counts": self.counts.name, **chosen}


def check_mixed(parameters: Mapping[str, Any], **others: Any) -> None:
    """Refuse what a mixed request cannot have, and one without a method for counts.

    Args:
      parameters: Parameters of the method.
      **others: Options of other methods, which must not be given.
    """
    for name, value in others.items():
        if value is not None:
            raise ParameterError(f"{name}= does not go with method={MIXED!r}.")
    known = ("counts", "within")
    for name in parameters:
        if name not in known:
            raise UnknownNameError(f"parameter of synthesizer {MIXED!r}", name, known)
    if "counts" not in parameters:
        raise ParameterError(
            "mixed records need a method that protects their counts, e.g. counts=dc.Safe()."
        )


def synthesize_mixed(
    data: Any,
    formula: str,
    counts: Any,
    *,
    within: Within = "model",
    missing: Missing = "refuse",
    merge: Merge | None = None,
    secret: Secret | str | Path | None = None,
    name: str | None = None,
    edition: str | None = None,
    ledger: Ledger | str | Path | None = None,
    again: bool = False,
    seed: int | None = None,
) -> Synthetic | SyntheticTrial:
    """New records with protected counts of codes, and amounts by the model of the original.

    Args:
      data: `Microdata`, or a frame.
      formula: `"income + hours ~ region*sex"`: amounts on the left, codes on the right.
      counts: A method that protects counts, or its name; see `Table.protect`.
      within: `"model"` preserves the regression on the codes with one covariance of residuals,
        `"cells"` means and covariances of each combination of codes.
      missing: `"refuse"` missing values, or make missing codes a `"category"`.
      merge: `"pool"` merges cells with fewer than two residual degrees of freedom; by default they
        are refused.
      secret: The custodian's secret or its file, for a plain frame.
      name: Name of the data set, for a plain frame.
      edition: Changes whenever the records do, for a plain frame.
      ledger: The custodian's ledger.
      again: Allow a second, different release of this edition.
      seed: Seed of a trial, which cannot be published.
    """
    request = MixedRequest(parse(formula), built(counts, {}), within, missing, merge)
    records = read_records(data, secret=secret, name=name, edition=edition, ledger=ledger)
    Y, columns, _ = read_columns(records, request.formula, missing)
    _check_codes(columns)
    rows = Rows(Y, columns)
    rows = rows.in_order(rows.canonical_order())
    model = safe_model(request.formula, rows, merge)
    _check_cells(model, request)
    shown = draws.release_digest(records, MIXED, request.public, request.counts, rows.contents())
    if seed is None:
        step = {"method": f"synthesize {MIXED}", "model": request.formula.text}
        draws.registered(records, shown, step, again=again)
    rng = draws.publication(records, shown) if seed is None else draws.experiment(seed, MIXED)
    whole = _whole(_protected(data, records, tuple(columns), request, seed), rng)
    made, labels = _made(request, model, rows.columns, whole, rng)
    frame = _frame(records, labels, dict(zip(request.formula.confidential, made.Y.T, strict=True)))
    parts = {
        "frame": frame,
        "statement": _statement(request, whole.statement, records.secret is not None),
        "confidential": (*labels, *request.formula.confidential),
        "model": request.formula.text,
        "method": MIXED,
    }
    if seed is not None:
        return SyntheticTrial(**parts, details=made.details)
    return Synthetic(**parts)


def _check_codes(columns: Mapping[str, Column]) -> None:
    numbers = [name for name, column in columns.items() if not isinstance(column, Factor)]
    if numbers:
        raise ParameterError(
            f"column {numbers[0]!r} holds numbers, and a mixed model counts the combinations of "
            "its right side. Make it codes, e.g. with `dc.cut`, or leave it out."
        )
    if not columns:
        raise ParameterError("a mixed model needs columns of codes on its right side.")


def _check_cells(model: Model, request: MixedRequest) -> None:
    """Refuse cells of their own that are too small."""
    if request.within == "cells":
        cells = cells_of(tuple(model.columns), model.columns)
        small = np.bincount(cells)[cells] <= LEAST_FREEDOM
        where = f"cells of {' × '.join(model.columns)}"
        found = [Unsafe(where, np.flatnonzero(small))] if small.any() else []
        refuse(found, len(model.Y), 0)


def _protected(
    data: Any, records: Records, codes: tuple[str, ...], request: MixedRequest, seed: int | None
) -> Protected:
    """The protected table of all combinations of codes.

    The release of the records is in the ledger already, and the counts are part of it.
    """
    if not isinstance(data, Microdata):
        named, secret = records.data_set, cast("Secret | None", records.secret)
        chosen = records.frame.select(list(codes)).to_native()
        data = open_records(chosen, name=named.name, edition=named.edition, secret=secret)
    table: Table = data.tabulate("*".join(codes))
    if seed is not None:
        return table.simulate(request.counts, seed=seed, unit=COUNT)
    return table.protect(request.counts, unit=COUNT, ledger=records.ledger, again=True)


def _whole(protected: Protected, rng: np.random.Generator) -> Protected:
    """Protected counts as whole numbers of records in each cell, none negative."""
    if protected.y is None or (np.asarray(protected.y) < 0).any():
        protected = protected.fit()
    y = np.asarray(protected.y)
    if (y != np.rint(y)).any():
        protected = protected.round("total", seed=int(rng.integers(_SEEDS)))
    return protected


def _made(
    request: MixedRequest,
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
    if request.within == "cells":
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


def _frame(records: Records, labels: dict[str, list[str]], values: dict[str, Matrix]) -> Any:
    """The new records in the frame library of the original ones."""
    import narwhals as nw

    columns = {**labels, **values}
    ordered = {name: columns[name] for name in records.columns if name in columns}
    return nw.from_dict(ordered, backend=records.frame.implementation).to_native()


def _statement(request: MixedRequest, counted: Statement, has_secret: bool) -> Statement:
    """What is said of the counts, then of the amounts; a guarantee for counts alone is none."""
    formula = request.formula
    repeats = has_secret and request.counts.source != "system"
    said = Said(
        method=MIXED,
        confidential=formula.confidential,
        published=(),
        model=formula.text,
        weights=None,
        parameters=request.public,
        has_secret=repeats,
        has_missing=request.missing == "category",
        has_merged=request.merge is not None,
    )
    step = step_of(f"synthesize:{MIXED}", request.public, mixed_sentences(said))
    return replace(counted.then(step, changes_values=False), privacy=None)
