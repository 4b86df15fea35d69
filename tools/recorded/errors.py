"""Texts of errors: wrong input through public names, each of which must stay as it is."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import discreet as dc
from recorded import inputs
from recorded.text import normalised, outcome

T = inputs.flat
FRAME = {"a": ["x", "y"], "n": [1, 2]}


def answers(only: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Every wrong call with the text of its error."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="recordings-") as place:
        for name, call in _calls(Path(place)).items():
            if f"errors/{name}".startswith(only):
                yield f"errors/{name}", normalised(outcome(call), Path(place))


def _calls(folder: Path) -> dict[str, Callable[[], Any]]:
    return {
        **_tables(),
        **_methods(),
        **_releases(folder),
        **_records(folder),
        **_designs(),
        **_matrices(),
        **_others(folder),
    }


def _tables() -> dict[str, Callable[[], Any]]:
    def counts(frame: Any = FRAME, count: str = "n", margins: Any = "a", **options: Any) -> Any:
        return dc.Table.from_counts(frame, count, margins, **options)

    sums = dc.Table.from_contributions
    return {
        "no column of counts": lambda: counts(count="m"),
        "no variable": lambda: counts(margins="b"),
        "no level": lambda: counts(margins="a[b]"),
        "negative counts": lambda: counts({"a": ["x"], "n": [-1]}),
        "fractions": lambda: counts({"a": ["x"], "n": [1.5]}),
        "missing counts": lambda: counts({"a": ["x", "y"], "n": [1, None]}),
        "missing codes": lambda: counts({"a": ["x", None], "n": [1, 2]}),
        "formula": lambda: counts(margins="a*("),
        "empty formula": lambda: counts(margins=""),
        "support": lambda: counts(support="some"),
        "convention": lambda: counts(convention="mine"),
        "key column": lambda: counts(key="k"),
        "keys out of range": lambda: counts({**FRAME, "k": [-1, 2**40]}, key="k"),
        "weights": lambda: counts({**FRAME, "w": [-1.0, 2.0]}, weight="w"),
        "hierarchy": lambda: counts(hierarchies={"a": dc.Hierarchy.flat(["x"])}),
        "hierarchy of nothing": lambda: counts(hierarchies={"b": dc.Hierarchy.flat(["x"])}),
        "structural zeros": lambda: counts(structural_zeros=[{"a": ["x"]}], declared=True),
        "zeros of nothing": lambda: counts(structural_zeros=[{"b": ["x"]}]),
        "zeros of no code": lambda: counts(structural_zeros=[{"a": ["q"]}]),
        "declared": lambda: counts(declared=["b"]),
        "no frame": lambda: counts(3),
        "total as code": lambda: counts({"a": ["Total", "y"], "n": [1, 2]}),
        "no inner cells": lambda: dc.Table.from_frame(T().to_arrow(), "age + job").y,
        "published cells missing": lambda: dc.Table.from_frame(
            T().to_arrow().slice(0, 3), "age*job"
        ),
        "inner cells of another number": lambda: dc.Table.from_inner(T().design, [1, 2]),
        "no value": lambda: sums(inputs.firms(), "region", value="v", contributor="enterprise"),
        "no contributor": lambda: sums(inputs.firms(), "region", value="turnover", contributor="e"),
        "negative values": lambda: sums(
            inputs.firms().assign(turnover=-1), "region", value="turnover", contributor="id"
        ),
        "no weights of a table": lambda: T().weights,
        "no contributions": lambda: T().require_contributions(),
    }


def _methods() -> dict[str, Callable[[], Any]]:
    ptable = dc.perturbation_table(D=5, V=3, js=2)
    no_secret = dc.Table.from_inner(T().design, T().y)
    return {
        "unknown method": lambda: T().protect("cellkey"),
        "method is a number": lambda: T().protect(3),
        "unknown parameter": lambda: T().protect("cell-key", E=5),
        "old parameter": lambda: T().protect("cell-key", ptable="x.csv"),
        "missing parameter": lambda: T().protect("discrete-laplace"),
        "no keys": lambda: no_secret.protect(dc.CellKey(ptable)),
        "no secret": lambda: no_secret.protect(dc.Safe()),
        "found codes": lambda: inputs.flat(declared=False).protect("laplace", epsilon=1.0),
        "unit needed": lambda: inputs.weighted().protect(dc.CellKey(ptable)),
        "unknown unit": lambda: inputs.weighted().protect(dc.CellKey(ptable), unit="euro"),
        "no weights to publish": lambda: T().protect(dc.CellKey(ptable), unit="weight"),
        "grid without weights": lambda: T().protect(dc.CellKey(ptable, grid=10)),
        "epsilon": lambda: dc.DiscreteLaplace(-1),
        "rho": lambda: dc.DiscreteGaussian(0),
        "cap": lambda: T().protect(dc.DiscreteLaplace(0.1, cap=1)),
        "split": lambda: T().protect(dc.Laplace(1.0, split={"age": 0.5})),
        "known": lambda: T().protect(dc.Laplace(1.0, known="height")),
        "clock": lambda: T().protect(dc.Safe(seconds=1)),
        "bounds": lambda: T().protect(dc.Safe(bounds={1: 0, 2: 0})),
        "min count": lambda: dc.Safe(min_count=0),
        "share": lambda: dc.DropAdd(share=2.0),
        "base": lambda: dc.ControlledRounding(1),
        "base of rounding": lambda: dc.SmallCountRounding(0),
        "margins": lambda: dc.CellKey(ptable, margins="any"),
        "no matrix": lambda: dc.CellKey("ptable"),
        "quality edges": lambda: dc.protect.Quality(dc.CellKey(ptable), edges=(4, 1)),
        "quality of suppression": lambda: T().protect(dc.protect.Quality(dc.Suppress())),
        "adjust what adds up": lambda: T().protect(dc.Adjust(dc.Safe())),
        "threshold": lambda: dc.rules.Threshold(-1),
        "rule": lambda: dc.Suppress("treshold(3)"),
        "rule's parameter": lambda: dc.Suppress("threshold(3, nought)"),
        "secondary": lambda: dc.Suppress(secondary="magic"),
        "rule of sums": lambda: T().protect(dc.Suppress("p%(10)")),
        "forced cell": lambda: T().protect(dc.Suppress(forced=[{"age": "9"}])),
        "dominance": lambda: dc.rules.Dominance(0, 200),
        "pre-rounded": lambda: T().protect(dc.SmallCountRounding(pre_rounded=np.array([1, 2]))),
        "seed": lambda: T().simulate(dc.CellKey(ptable), seed=-1),
        "invariance": lambda: dc.Pram(alpha=2.0),
    }


def _releases(folder: Path) -> dict[str, Callable[[], Any]]:
    def release() -> Any:
        return T().protect("cell-key", D=5, V=3, js=2)

    trial = T().simulate("drop-add", seed=1)
    return {
        "unknown fitter": lambda: release().fit("best"),
        "zeros of a fit": lambda: release().fit("auto", zeros="some"),
        "round without fit": lambda: release().round(seed=1),
        "unknown rounding": lambda: release().fit().round("up", seed=1),
        "records without fit": lambda: release().to_microdata(),
        "unknown ending": lambda: release().write(folder / "x.doc"),
        "unknown option": lambda: release().write(folder / "x.csv", colour="red"),
        "unknown layout": lambda: release().write(folder / "x.csv", layout="tall"),
        "unknown column": lambda: release().write(folder / "x.xlsx", columns=("height",)),
        "save as xlsx": lambda: release().save(folder / "x.xlsx"),
        "table as csv": lambda: T().save(folder / "x.csv"),
        "level of intervals": lambda: release().intervals(2.0),
        "errors of suppression": lambda: T().protect(dc.Suppress()).standard_errors(),
        "unknown cell": lambda: release().fit().exact_sum({"height": "1"}),
        "unknown code": lambda: release().fit().exact_sum({"age": "1"}),
        "tabulate what is not there": lambda: release().tabulate("height"),
        "a trial is not written": lambda: trial.write(folder / "x.csv"),
        "a trial is not saved": lambda: trial.save(folder / "x.parquet"),
        "read nothing": lambda: dc.read(folder / "none.parquet"),
        "read a table as a release": lambda: dc.facade.read_release(T().save(folder / "t.parquet")),
        "read a release as a table": lambda: dc.facade.read_table(
            release().save(folder / "r.parquet")
        ),
        "read another file": lambda: dc.read(_other_parquet(folder)),
        "read a text": lambda: dc.read(_text(folder, "text.parquet", "no")),
        "csv without statement": lambda: dc.facade.read_release(
            _text(folder, "bare.csv", "a,count\n")
        ),
        "few steps": lambda: release().fit(dc.NonNegative(max_steps=1, tolerance=1e-12)).z,
        "records of a table": lambda: dc.synthesis.records_from(T(), seed=1),
        "unknown draw": lambda: dc.synthesis.records_from(release().fit(), "any", seed=1),
        "number of records": lambda: dc.synthesis.records_from(
            release().fit(), "total", seed=1, n=3
        ),
    }


def _other_parquet(folder: Path) -> Path:
    pd.DataFrame({"a": [1]}).to_parquet(folder / "other.parquet")
    return folder / "other.parquet"


def _text(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def _records(folder: Path) -> dict[str, Callable[[], Any]]:
    people = inputs.people(30)

    def opened(**options: Any) -> Any:
        return dc.open(people, **options)

    short = _text(folder, "short.toml", '[region]\ncodes = ["north"]\n')
    wrong = _text(folder, "wrong.toml", "[region]\ncode = 1\n")
    return {
        "no file": lambda: dc.open(folder / "none.csv"),
        "unknown kind of file": lambda: dc.open(_text(folder, "x.doc", "a")),
        "no records": lambda: dc.open(3),
        "no id": lambda: opened(id="nobody"),
        "ids twice": lambda: opened(id="sex", secret=inputs.SECRET).tabulate("region"),
        "no weight column": lambda: opened(weight="nothing"),
        "weights are codes": lambda: opened(weight="sex").tabulate("region"),
        "codes not listed": lambda: opened(codes=short).tabulate("region"),
        "code list": lambda: opened(codes=wrong),
        "no column": lambda: opened().tabulate("height"),
        "keys of nobody": lambda: opened().with_keys(inputs.SECRET),
        "editions": lambda: opened(id="pid", secret=inputs.SECRET, editions="any"),
        "weight bound": lambda: opened(weight="w").with_roles(weight_bound=-1),
        "recode": lambda: opened().recode(height={"a": "b"}),
        "recode to a level": lambda: opened().recode(region="province"),
        "cut": lambda: opened().recode(age=dc.records.cut([50, 30])),
        "engine": lambda: opened().tabulate("region", engine="abacus"),
        "value": lambda: opened().tabulate("region", value="sex", contributor="pid"),
        "short secret": lambda: dc.Secret(b"short"),
        "no secret file": lambda: dc.Secret.from_file(folder / "none.secret"),
        "no secret in the environment": lambda: dc.Secret.from_env("NOT_SET_ANYWHERE"),
        "secret for others": lambda: dc.Secret.from_file(_text(folder, "open.secret", "0" * 64)),
        "formula of synthesis": lambda: dc.synthesize(people, "income"),
        "column of synthesis": lambda: dc.synthesize(
            people, "income ~ height", secret=inputs.SECRET
        ),
        "text is synthesized": lambda: dc.synthesize(people, "sex ~ age", secret=inputs.SECRET),
        "synthesizer": lambda: dc.synthesize(people, "income ~ age", "magic"),
        "clusters": lambda: dc.synthesize(people, "income ~ age", clusters="region"),
        "too many terms": lambda: dc.synthesize(
            people.head(3), "income ~ age + children", secret=inputs.SECRET
        ),
        "keep": lambda: dc.synthesize(people, "income ~ age", keep=["height"]),
    }


def _designs() -> dict[str, Callable[[], Any]]:
    design = inputs.designs()["pairs"]
    return {
        "size": lambda: dc.Design.product({"a": 0}, "a"),
        "variable": lambda: dc.Design.product({"a": 2}, "b"),
        "aggregate": lambda: design.aggregate(np.ones(3)),
        "adjoint": lambda: design.adjoint(np.ones(3)),
        "cell": lambda: design.position({"a": "9"}),
        "cell of nothing": lambda: design.position({"q": "1"}),
        "matrix of twos": lambda: dc.Design.from_matrix(np.full((2, 2), 2)),
        "fit of another size": lambda: dc.LeastSquares()(design, np.ones(3)),
        "fit of nothing": lambda: dc.NonNegative()(design, np.full(design.n_published, np.nan)),
        "inconsistent": lambda: dc.LogLinear()(
            design, np.arange(1.0, design.n_published + 1)
        ).require(),
        "tolerance": lambda: dc.NonNegative(tolerance=-1),
        "chain of nothing": lambda: dc.solve.Chain([]),
        "chain of unknown": lambda: dc.solve.Chain(["best"]),
        "hierarchy in a circle": lambda: dc.Hierarchy("A", {"B": "C", "C": "B"}),
        "two parents": lambda: dc.Hierarchy.from_dict({"All": {"n": ["x"], "s": ["x"]}}),
        "digits": lambda: dc.Hierarchy.from_digits(["01", "1"], "11"),
        "level": lambda: inputs.REGION.level("town"),
        "children": lambda: inputs.REGION.children("Q"),
        "prune": lambda: inputs.REGION.prune(["Q"]),
        "check": lambda: inputs.REGION.check(["N1", "Q"], "region"),
        "file of a hierarchy": lambda: dc.Hierarchy.read("none.hrc"),
        "axis": lambda: dc.design.Axis.flat("a", ["x", "x"]),
    }


def _matrices() -> dict[str, Callable[[], Any]]:
    return {
        "variance": lambda: dc.perturbation_table(D=2, V=20),
        "largest move": lambda: dc.perturbation_table(D=0, V=1),
        "variant": lambda: dc.perturbation_table(D=3, V=1, variant="mine"),
        "blocked": lambda: dc.perturbation_table(D=2, V=1, js=9),
        "stay": lambda: dc.perturbation_table(D=3, V=2, pstay=2.0),
        "json": lambda: dc.TransitionMatrix.from_json("{}"),
        "targets": lambda: dc.TransitionMatrix.from_targets("x", [[0.5, 0.2]]),
        "file": lambda: dc.TransitionMatrix.from_ptable_csv("none.csv"),
        "noise": lambda: dc.perturbation_table(D=3, V=1).noise([1], [300], 256),
    }


def _others(folder: Path) -> dict[str, Callable[[], Any]]:
    release = T().protect("cell-key", D=5, V=3, js=2)
    suppressed = T().protect(dc.Suppress())
    return {
        "name of the package": lambda: dc.nothing,
        "measure": lambda: dc.assess(T(), release, ["nothing"]),
        "option of a measure": lambda: dc.assess(T(), release, colour="red"),
        "sensitive": lambda: dc.assess(T(), release, ["exact-disclosure"], sensitive="height"),
        "another table": lambda: dc.assess(inputs.linked(), release),
        "audit of noise": lambda: dc.audit(release),
        "audit intervals": lambda: dc.audit(suppressed, intervals="some"),
        "audit of another table": lambda: dc.audit(suppressed, inputs.linked()),
        "compare nothing": lambda: dc.compare(T(), []),
        "compare unknown": lambda: dc.compare(T(), ["magic"]),
        "replicates": lambda: dc.compare(T(), ["drop-add"], replicates=0),
        "frontier": lambda: dc.assessment.frontier("drop-add", {"colour": [1]}, T()),
        "select margins": lambda: dc.assessment.select_margins(T()),
        "chi-square": lambda: dc.inference.chi_square(release, "height"),
        "matrix of suppression": lambda: dc.inference.matrix_of(suppressed),
        "budget": lambda: dc.Ledger(folder / "l.db", epsilon=-1),
        "ledger is no ledger": lambda: dc.Ledger(_text(folder, "no.db", "text")).rows(),
        "budget spent": lambda: T().protect(
            "laplace", epsilon=2.0, ledger=dc.Ledger(folder / "b.db", epsilon=1.0)
        ),
        "pattern": lambda: dc.suppress.Pattern.from_labels(T(), T().to_pandas()),
        "consistent": lambda: dc.suppress.consistent([]),
    }
