"""Answers of the library: methods, fitters, formats, measures, audits, synthesis, files."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet import registry
from recorded import inputs
from recorded.text import folder_text, normalised, outcome, sqlite_text, text_of

Named = Iterator[tuple[str, Callable[[], Any]]]
PTABLE = dc.perturbation_table(D=5, V=3, js=2)
NOISE = dc.CellKey(PTABLE)
SMALL: dict[str, dict[str, Any]] = {
    "adjust": {"method": NOISE},
    "cell-key": {"D": 5, "V": 3, "js": 2},
    "discrete-gaussian": {"rho": 2.0},
    "discrete-laplace": {"epsilon": 3.0},
    "laplace": {"epsilon": 3.0},
    "quality": {"method": NOISE},
    "safe": {},
    "small-count-rounding": {},
}
"""Parameters of methods that need some, or that would search for long."""
VARIANTS = {
    "cell-key threshold": dc.CellKey(PTABLE, threshold=10),
    "cell-key summed": dc.CellKey(PTABLE, margins="summed"),
    "cell-key adjusted": dc.CellKey(PTABLE, margins="adjusted"),
    "cell-key grid": dc.CellKey(PTABLE, grid=10),
    "cell-key folded": dc.CellKey(PTABLE, folded=True),
    "drop-add often": dc.DropAdd(share=0.1, cap=3),
    "drop-add grid": dc.DropAdd(grid=10),
    "invariant pram": dc.Pram(invariant=True),
    "realised pram": dc.Pram(invariant=True, realised=True),
    "quality of safe": dc.protect.Quality(dc.Safe()),
    "forced rounding": dc.SmallCountRounding(3, force_inner=True),
    "controlled rounding 5": dc.ControlledRounding(5),
    "summed laplace": dc.DiscreteLaplace(3.0, margins="summed"),
    "gaussian open": dc.DiscreteGaussian(2.0, nonnegative=False),
    "laplace known": dc.Laplace(3.0, known="1"),
    "suppress zeros": dc.Suppress(dc.rules.Threshold(2, zeros=True)),
    "suppress optimal": dc.Suppress(dc.rules.Threshold(2), secondary="optimal"),
    "suppress decimals": dc.Suppress(decimals=dc.suppress.Decimals()),
    "suppress differences": dc.Suppress([dc.rules.DirectDisclosure(0), dc.rules.KDisclosure(1)]),
    "suppress groups": dc.Suppress([dc.rules.GroupDisclosure(0.9)]),
    "suppress p%": dc.Suppress(["p%(10)", "few-contributors(3)"]),
    "suppress dominance": dc.Suppress([dc.rules.Dominance(1, 80), dc.rules.PQ(10, 80)]),
    "suppress texts": dc.Suppress("threshold(3, zeros)"),
}
ROUNDINGS = ("margins", "unbiased", "total", "cube")
ENDINGS = (".csv", ".parquet", ".xlsx", ".json", ".jsonstat.json", ".sdmx.csv", ".px", ".html")


def answers(only: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Every answer of the library; a call that fails answers with its error."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="recordings-") as place:
        folder = Path(place)
        for group in (_methods, _releases, _tables, _fitters, _designs, _matrices, _hierarchies):
            yield from _named(group(), only, folder)
        for group in (_measures, _audits, _comparisons, _synthesis, _inference, _demo, _records):
            yield from _named(group(), only, folder)
        for group in (_files, _ledgers, _reports):
            yield from _named(group(folder), only, folder)


def _named(calls: Named, only: tuple[str, ...], folder: Path) -> Iterator[tuple[str, str]]:
    for name, call in calls:
        if f"library/{name}".startswith(only):
            yield f"library/{name}", normalised(outcome(call), folder)


def _method(name: str) -> Any:
    return registry.build("method", name, SMALL.get(name, {}))


def _methods_by_name() -> dict[str, Callable[[], Any]]:
    """Every registered method, whatever is added, and variants of some."""
    found = {name: (lambda name=name: _method(name)) for name in registry.names("method")}
    return {**found, **{name: (lambda m=m: m) for name, m in VARIANTS.items()}}


def _protected(release: Any) -> dict[str, Any]:
    return {
        "z": release.z,
        "y": release.y,
        "unit": release.unit,
        "status": release.status,
        "hidden": release.hidden,
        "precision": release.precision,
        "quality": release.quality,
        "text": release.statement.text,
        "plain": release.statement.plain,
        "statement": release.statement.to_json(),
    }


def _unit(table: str) -> dict[str, Any]:
    return {"unit": "count"} if table == "weighted" else {}


def _methods() -> Named:
    for (name, make), (of, table) in itertools.product(
        _methods_by_name().items(), inputs.TABLES.items()
    ):
        for seed in (1, 2):
            yield (
                f"simulate/{name}/{of}/{seed}",
                lambda make=make, table=table, of=of, seed=seed: _protected(
                    table().simulate(make(), seed=seed, **_unit(of))
                ),
            )
        yield (
            f"protect/{name}/{of}",
            lambda make=make, table=table, of=of: _released(make(), table(), of),
        )
    for name in ("cell-key grid", "drop-add grid", "cell-key threshold"):
        yield (
            f"simulate/{name}/weighted/weight",
            lambda name=name: _protected(
                inputs.weighted().simulate(VARIANTS[name], seed=1, unit="weight")
            ),
        )


def _released(method: Any, table: Any, of: str) -> dict[str, Any]:
    """A release; of noise from the operating system only what is said of it."""
    release = table.protect(method, **_unit(of))
    if method.source == "system":
        return {"text": release.statement.text, "plain": release.statement.plain}
    shown = {"repr": repr(release), "html": release._repr_html_(), "arrow": release.to_arrow()}
    return {**_protected(release), **shown}


def _release(of: str = "hierarchical", method: Any = None) -> Any:
    """A release of a table; by cell keys where it is one of counts."""
    usual = VARIANTS["suppress p%"] if of == "magnitude" else NOISE
    return inputs.TABLES[of]().protect(method or usual, **_unit(of))


def _releases() -> Named:
    """What can be done with a release: fits, whole numbers, further tables, errors, sums."""
    for of, fitter in itertools.product(("flat", "hierarchical", "linked"), _fitters_by_name()):
        yield f"fit/{fitter}/{of}", lambda of=of, f=fitter: _protected(_fitted(of, f))
        yield (
            f"fit/{fitter}/{of}/zeros",
            lambda of=of, f=fitter: _protected(
                _release(of).fit(_fitters_by_name()[f], zeros="margins")
            ),
        )
    for of, rounding in itertools.product(("flat", "hierarchical", "linked"), ROUNDINGS):
        yield (
            f"round/{rounding}/{of}",
            lambda of=of, r=rounding: _protected(_fitted(of, "non-negative").round(r, seed=3)),
        )
        yield (
            f"microdata/{rounding}/{of}",
            lambda of=of, r=rounding: _fitted(of, "non-negative").round(r, seed=3).to_microdata(),
        )
    for of in inputs.TABLES:
        yield f"errors of cells/{of}", lambda of=of: _private(of).standard_errors()
        yield f"errors of fits/{of}", lambda of=of: _private(of).fit("additive").standard_errors()
        yield f"intervals/{of}", lambda of=of: list(_private(of).intervals(0.9))
        yield f"pandas/{of}", lambda of=of: _release(of).to_pandas()
        yield f"polars/{of}", lambda of=of: _release(of).to_polars()
        yield f"tabulate/{of}", lambda of=of: _protected(_further(of))
    for cell in ({"region": "N"}, {"region": "N", "age": "65+"}, {}, {"sex": "q"}):
        yield f"sums/{cell}", lambda cell=cell: _release(method=dc.Suppress()).exact_sum(cell)


def _private(of: str) -> Any:
    """Private noise from a seed, since releases draw it from the operating system."""
    return inputs.TABLES[of]().simulate(dc.Laplace(3.0), seed=1, **_unit(of))


def _further(of: str) -> Any:
    names = {"flat": "age", "weighted": "sex", "magnitude": "region", "linked": "age*sex"}
    return _release(of, dc.Safe()).tabulate(names.get(of, "region[part]*sex"))


def _fitters_by_name() -> dict[str, Any]:
    few = {"whole-number": {"proposals": 1e5}}
    names = registry.names("fitter")
    return {name: registry.build("fitter", name, few.get(name, {})) for name in names}


def _fitted(of: str, fitter: str) -> Any:
    return _release(of).fit(_fitters_by_name()[fitter], require=False)


def _tables() -> Named:
    for of, table in inputs.TABLES.items():
        yield f"table/{of}", lambda t=table: _table(t())
        yield f"table/{of}/html", lambda t=table: t()._repr_html_()
        yield f"table/{of}/pandas", lambda t=table: t().to_pandas()
        yield f"table/{of}/polars", lambda t=table: t().to_polars()
    published = inputs.flat().to_arrow()
    yield (
        "table/from published cells",
        lambda: _table(dc.Table.from_frame(published, "age*job", key="cell_key")),
    )
    yield "table/found codes", lambda: _table(inputs.flat(declared=False))
    yield "table/occurring", lambda: _table(inputs.flat(support="occurring"))


def _table(table: Any) -> dict[str, Any]:
    found = {"repr": repr(table), "z": table.z, "y": table.y, "arrow": table.to_arrow()}
    parts = {"keys": lambda: table.cell_keys, "weights": lambda: table.weights}
    found |= {name: outcome(part) for name, part in parts.items()}
    return {**found, "inner": outcome(table.inner_to_arrow)}


def _targets(design: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    counts = rng.poisson(4.0, design.n_inner)
    exact = design.aggregate(counts).astype(float)
    return {
        "exact": exact,
        "noisy": exact + rng.integers(-3, 4, design.n_published),
        "rough": exact + rng.normal(0, 5, design.n_published),
        "zero": np.zeros(design.n_published),
    }


def _fitters() -> Named:
    for (name, fitter), (of, design) in itertools.product(
        _fitters_by_name().items(), inputs.designs().items()
    ):
        for target, z in _targets(design).items():
            yield (
                f"fitter/{name}/{of}/{target}",
                lambda fitter=fitter, design=design, z=z: _fit(fitter(design, z)),
            )
    X = inputs.designs()["pairs"]
    z = _targets(X)["noisy"]
    variants = {
        "ridge": dc.NonNegative(ridge=0.1),
        "exact": dc.NonNegative(exact="a"),
        "tight": dc.NonNegative(tolerance=1e-8),
        "variance": dc.LeastSquares(variance=np.arange(1.0, X.n_inner + 1)),
        "few steps": dc.LogLinear(max_steps=2),
        "nonzero": dc.solve.WholeNumber(max_nonzero=5, proposals=1e5),
        "chain": dc.solve.Chain(["least-squares", "poisson"]),
    }
    for name, fitter in variants.items():
        yield f"fitter/variant/{name}", lambda fitter=fitter: _fit(fitter(X, z))


def _fit(fit: Any) -> dict[str, Any]:
    return {
        "y": fit.y,
        "z": fit.z,
        "status": fit.status,
        "certificate": fit.certificate,
        "said": str(fit.certificate),
    }


def _designs() -> Named:
    for name, design in inputs.designs().items():
        z, y = np.arange(float(design.n_published)), np.arange(float(design.n_inner))
        calls: dict[str, Callable[[Any], Any]] = {
            "matrix": lambda d: d.matrix(),
            "aggregate": lambda d, y=y: d.aggregate(y),
            "adjoint": lambda d, z=z: d.adjoint(z),
            "residual": lambda d, y=y, z=z: d.residual(y, z),
            "labels": lambda d: d.label_columns(),
            "inner labels": lambda d: d.inner_label_columns(),
            "cells": lambda d: [dict(d.cell(k)) for k in range(d.n_published)],
            "inner cells": lambda d: [dict(d.inner_cell(k)) for k in range(d.n_inner)],
            "sensitivity": lambda d: d.sensitivity(),
            "repr": repr,
        }
        for what, call in calls.items():
            yield f"design/{name}/{what}", lambda call=call, design=design: call(design)
    sizes = {"a": 2, "b": 3, "c": 2}
    for text in ("a*b", "a + b*c", "a[x]*b", "(a + b)*c", "a*a", "", "a*", "1", "a*b - a", "a:b"):
        yield f"formula/{text}", lambda text=text: repr(dc.Design.product(sizes, text).terms)
    for order in (0, 1, 2, 3, 4):
        yield f"margins/{order}", lambda order=order: repr(dc.margins(["a", "b[x]", "c"], order))


def _matrices() -> Named:
    made: dict[str, dict[str, Any]] = {
        "discrete-laplace": {"epsilon": 1.0, "cap": 5},
        "linear-table": {"D": 4, "V": 2.0},
        "perturbation-table": {"D": 5, "V": 3, "js": 2},
    }
    for name in registry.names("matrix"):
        if name != "file":
            yield (
                f"matrix/{name}",
                lambda name=name: _matrix(registry.build("matrix", name, made.get(name, {}))),
            )
    for D, V, js in itertools.product((2, 4, 5), (1.0, 2.0, 3.0), (0, 1, 2)):
        yield (
            f"ptable/{D},{V},{js}",
            lambda D=D, V=V, js=js: _matrix(dc.perturbation_table(D, V, js)),
        )
    yield "ptable/as ptable", lambda: _matrix(dc.perturbation_table(3, 2, variant="ptable"))
    yield "ptable/stay", lambda: _matrix(dc.perturbation_table(3, 2, pstay=0.5))


def _matrix(matrix: Any) -> dict[str, Any]:
    keys = np.arange(0, 256, 5)
    return {
        "repr": repr(matrix),
        "json": matrix.to_json(),
        "frame": matrix.to_frame(),
        "dense": matrix.dense(12),
        "noise": matrix.noise(np.arange(len(keys)) % 9, keys, 256),
        "audit": text_of(str(matrix.audit())),
        "ons": outcome(lambda: matrix.to_ons().slice(0, 300)),
        "modified": outcome(lambda: matrix.modified(seed=1).dense(8)),
    }


def _hierarchies() -> Named:
    trees = {"region": inputs.REGION, **dc.demo.hierarchies()}
    for name, tree in trees.items():
        yield f"hierarchy/{name}", lambda tree=tree: _hierarchy(tree)
    yield (
        "hierarchy/digits",
        lambda: _hierarchy(dc.Hierarchy.from_digits(["011", "012", "021", "100"], "111")),
    )
    yield (
        "hierarchy/dict",
        lambda: _hierarchy(
            dc.Hierarchy.from_dict({"All": {"north": ["n1", "n2"], "south": ["s1"]}})
        ),
    )
    yield "hierarchy/pruned", lambda: _hierarchy(inputs.REGION.prune(["N1", "S1", "S2"]))
    yield "hierarchy/grouped", lambda: _hierarchy(inputs.REGION.grouped("part"))
    frame = inputs.people()[["region", "sex"]].assign(half=lambda f: f["region"].str[:1])
    yield "hierarchy/found", lambda: repr(dc.Hierarchy.find(frame, ["half", "region"]))


def _hierarchy(tree: Any) -> dict[str, Any]:
    return {
        "repr": repr(tree),
        "codes": tree.codes,
        "leaves": tree.leaves,
        "dict": repr(tree.to_dict()),
        "hrc": tree.to_hrc(),
        "parents": tree.to_parent_child(),
        "levels": tree.level_names,
    }


def _measures() -> Named:
    releases = {
        "keyed": lambda of: _release(of),
        "safe": lambda of: _release(of, dc.Safe()),
        "suppressed": lambda of: _release(of, dc.Suppress()),
        "fitted": lambda of: _fitted(of, "non-negative"),
    }
    sensitive = {"flat": "job", "hierarchical": "age", "weighted": "sex", "linked": "job"}
    for (of, about), (kind, make) in itertools.product(sensitive.items(), releases.items()):
        yield (
            f"assess/{of}/{kind}",
            lambda of=of, about=about, make=make: _assessment(
                dc.assess(inputs.TABLES[of](), make(of), sensitive=about, mechanism=PTABLE)
            ),
        )
        for measure in registry.names("measure") if of == "linked" else ():
            yield (
                f"measure/{measure}/{kind}",
                lambda m=measure, make=make: _assessment(
                    dc.assess(inputs.linked(), make("linked"), [m])
                ),
            )
    records, others = inputs.people(), inputs.people(200, 9)
    for method in ("ipso", "romm"):
        yield (
            f"assess/records/{method}",
            lambda method=method: _assessment(
                dc.assess(
                    records,
                    _synthetic(method).frame,
                    control=others,
                    target="sex",
                    codes=("region",),
                )
            ),
        )


def _assessment(found: Any) -> dict[str, Any]:
    return {"repr": repr(found), "html": found._repr_html_(), "frame": found.frame}


def _audits() -> Named:
    for of, method in itertools.product(
        ("flat", "hierarchical", "linked", "magnitude"),
        ("suppress zeros", "suppress optimal", "suppress p%"),
    ):
        for seen in ("public", "true"):
            yield (
                f"audit/{of}/{method}/{seen}",
                lambda of=of, method=method, seen=seen: _audit(of, VARIANTS[method], seen),
            )
    labels = inputs.flat().to_pandas().assign(status=".")
    labels.loc[[0, 3], "status"] = ["p", "s"]
    yield (
        "audit/labels",
        lambda: _said(
            dc.audit(dc.suppress.Pattern.from_labels(inputs.flat(), labels), intervals="all")
        ),
    )
    yield (
        "audit/signs",
        lambda: _said(
            dc.audit(_release("flat", dc.Suppress()), inputs.flat(), lone="signs", intervals="all")
        ),
    )


def _audit(of: str, method: Any, seen: str) -> Any:
    table = inputs.TABLES[of]()
    return _said(dc.audit(table.protect(method), table if seen == "true" else None))


def _said(found: Any) -> str:
    html = getattr(found, "_repr_html_", lambda: "")()
    return f"{found!r}\n{found}\n{html}"


def _comparisons() -> Named:
    methods = {"keyed": NOISE, "safe": dc.Safe(), "rounded": "controlled-rounding"}
    table = inputs.linked()
    yield (
        "compare",
        lambda: _comparison(dc.compare(table, methods, replicates=4, sensitive="job", workers=1)),
    )
    yield (
        "frontier",
        lambda: _said(
            dc.assessment.frontier(
                "cell-key", {"D": [5], "V": [2, 3], "js": [1, 2]}, table, replicates=3, workers=1
            )
        ),
    )
    yield (
        "equal risk",
        lambda: _comparison(
            dc.compare(
                table,
                ["drop-add", "discrete-laplace"],
                replicates=3,
                equal_risk=("unchanged-small-cells", 0.4),
                workers=1,
            )
        ),
    )
    design = inputs.designs()["pairs"]
    yield "select margins", lambda: dc.assessment.select_margins(design, epsilon=1.0).frame
    yield (
        "select margins of a table",
        lambda: dc.assessment.select_margins(table, variance=3.0).frame,
    )


def _comparison(found: Any) -> dict[str, Any]:
    return {"said": _said(found), "frame": found.frame, "ranking": repr(found.ranking())}


SYNTHESIS: dict[str, tuple[str, dict[str, Any]]] = {
    "ipso": ("income + tax ~ age + region", {}),
    "residual-correlation": (
        "income + tax ~ age + region",
        {"correlations": [0.6, 0.5], "alpha": "largest"},
    ),
    "score-correlation": ("income + tax ~ age", {"correlations": [0.9, "redraw"]}),
    "from-residuals": ("income + tax ~ age + region", {"share": 0.5}),
    "romm": ("income + tax ~ age*sex", {"lambda_": 0.3}),
    "hybrid": ("income + tax ~ local(age) + shared(sex)", {"clusters": "region"}),
    "mixed": ("income + tax ~ region + sex", {"counts": "controlled-rounding"}),
}


def _synthetic(method: str, **options: Any) -> Any:
    model, parameters = SYNTHESIS[method]
    options = {"secret": inputs.SECRET, **options}
    return dc.synthesize(inputs.people(), model, method, **parameters, **options)


def _synthesis() -> Named:
    for method in registry.names("synthesizer"):
        if method not in SYNTHESIS:
            continue
        yield f"synthesize/{method}", lambda method=method: _made(_synthetic(method))
        for seed in (1, 2):
            yield (
                f"synthesize/{method}/{seed}",
                lambda method=method, seed=seed: (
                    _synthetic(method, simulate=True, seed=seed, secret=None).frame
                ),
            )
        yield (
            f"preserved/{method}",
            lambda method=method: _said(
                dc.synthesis.Preserved.of(inputs.people(), _synthetic(method))
            ),
        )
    yield (
        "synthesize/similar",
        lambda: _made(
            dc.synthesize(
                inputs.people(),
                "income + tax ~ local(age) + shared(sex)",
                "hybrid",
                clusters=30,
                outliers=0.99,
                secret=inputs.SECRET,
            )
        ),
    )
    for draw in ("multinomial", "unbiased", "total", "cube", "margins"):
        yield (
            f"records/{draw}",
            lambda draw=draw: _made(
                dc.synthesis.records_from(_fitted("linked", "non-negative"), draw, seed=2)
            ),
        )


def _made(synthetic: Any) -> dict[str, Any]:
    return {
        "frame": synthetic.to_arrow(),
        "text": synthetic.statement.text,
        "plain": synthetic.statement.plain,
        "statement": synthetic.statement.to_json(),
        "repr": repr(synthetic),
    }


def _inference() -> Named:
    for of, margin in (("flat", "age*job"), ("linked", "age*sex"), ("hierarchical", "region*sex")):
        yield f"chi-square/{of}", lambda of=of, m=margin: dc.inference.chi_square(_release(of), m)
        yield (
            f"frequencies/{of}",
            lambda of=of, m=margin: dc.inference.count_frequencies(_release(of), m, PTABLE),
        )
    yield (
        "goodness",
        lambda: dc.inference.goodness_of_fit(_release("flat"), "age*job", np.full((3, 4), 1 / 12)),
    )
    yield "law", lambda: _matrix(dc.inference.matrix_of(_release("flat")))


def _demo() -> Named:
    yield "demo/census", lambda: _column_digests(dc.demo.census(2000))
    yield "demo/sample", lambda: _column_digests(dc.demo.sample(20_000))
    yield "demo/table", lambda: _table(dc.demo.census(2000).tabulate("region[province]*sex"))
    yield "demo/weighted", lambda: _table(dc.demo.sample(20_000).tabulate("age[broad_age]*sex"))
    yield (
        "demo/release",
        lambda: _protected(
            dc.demo.census(2000).tabulate("region[district]*sex + age*sex").protect(NOISE)
        ),
    )


def _column_digests(records: Any) -> dict[str, Any]:
    table = records.tabulate([(name,) for name in records.dimensions])
    return {"repr": repr(records), "columns": records.columns, "table": table.to_arrow()}


def _records() -> Named:
    """Records that are opened, keyed, recoded and counted."""
    frame = inputs.people()

    def opened(**options: Any) -> Any:
        return dc.open(frame, id="pid", secret=inputs.SECRET, **options)

    yield "open/repr", lambda: repr(opened())
    yield "open/html", lambda: getattr(opened(), "_repr_html_", str)()
    for engine in registry.names("engine"):
        yield (
            f"open/{engine}",
            lambda e=engine: _table(opened().tabulate("region*sex + children", engine=e)),
        )
    yield "open/weighted", lambda: _table(opened(weight="w").tabulate("region*sex"))
    yield (
        "open/cut",
        lambda: _table(
            opened()
            .recode(age=dc.records.cut([30, 50, 65]))
            .tabulate("age*sex", support="occurring")
        ),
    )
    yield (
        "open/sums",
        lambda: _table(opened().tabulate("region", value="income", contributor="pid")),
    )
    yield (
        "open/redrawn",
        lambda: _table(
            dc.open(frame, id="pid", secret=inputs.SECRET, editions="redrawn").tabulate("region")
        ),
    )


def _files(folder: Path) -> Named:
    """Every format, and files that can be read again."""
    options = {
        "plain": {},
        "wide": {"layout": "wide", "labels": "both"},
        "about": {"title": "People", "source": "An office", "footnotes": ("Invented.",)},
    }
    releases = {
        "keyed": lambda: _release("hierarchical"),
        "suppressed": lambda: _release("flat", dc.Suppress()),
        "fitted": lambda: _fitted("linked", "non-negative"),
        "sums": lambda: _release("magnitude", VARIANTS["suppress p%"]),
        "quality": lambda: _release("flat", dc.protect.Quality(NOISE)),
    }
    places = itertools.count()

    def written(write: Callable[[Path], Any]) -> str:
        place = folder / f"files{next(places)}"
        place.mkdir()
        write(place)
        return folder_text(place)

    for (kind, make), ending, (way, chosen) in itertools.product(
        releases.items(), ENDINGS, options.items()
    ):
        yield (
            f"write/{kind}/{ending}/{way}",
            lambda make=make, e=ending, o=chosen: written(
                lambda place: make().write(place / f"table{e}", **o)
            ),
        )
    for kind, make in releases.items():
        for ending in (".csv", ".parquet"):
            yield (
                f"save/{kind}/{ending}",
                lambda make=make, e=ending: written(
                    lambda place: make().save(place / f"release{e}")
                ),
            )
            yield (
                f"read/{kind}/{ending}",
                lambda make=make, e=ending: _protected(
                    dc.facade.read_release(make().save(folder / f"again{e}"))
                ),
            )
    for of, table in inputs.TABLES.items():
        yield f"save/table/{of}", lambda t=table: written(lambda p: t().save(p / "t.parquet"))
        yield f"read/table/{of}", lambda t=table: _table(dc.read(t().save(folder / "t.parquet")))
    yield "write/ptable.csv", lambda: written(lambda p: PTABLE.to_ptable_csv(p / "p.csv"))
    for ending in (".csv", ".parquet"):
        yield (
            f"save/synthetic/{ending}",
            lambda e=ending: written(
                lambda place: _synthetic("ipso").save(place / f"synthetic{e}")
            ),
        )
    yield (
        "write/transmission",
        lambda: written(
            lambda place: dc.suppress.write_transmission(
                _release("magnitude", VARIANTS["suppress p%"]), place / "transmission.csv"
            )
        ),
    )


def _ledgers(folder: Path) -> Named:
    def spent() -> dict[str, Any]:
        ledger = dc.Ledger(folder / "ledger.db", epsilon=2.0)
        table = inputs.flat()
        table.protect(dc.Safe(), ledger=ledger)
        table.protect(dc.DiscreteLaplace(0.5), ledger=ledger)
        refused = outcome(lambda: table.protect(dc.Safe(4), ledger=ledger))
        above = outcome(lambda: table.protect(dc.DiscreteLaplace(1.9), ledger=ledger))
        return {
            "text": ledger.text(),
            "rows": ledger.rows(),
            "summary": ledger.summary(),
            "refused": refused,
            "above": above,
            "file": sqlite_text(ledger.path),
        }

    yield "ledger", spent


def _reports(folder: Path) -> Named:
    def report() -> str:
        methods = {"keyed": NOISE, "safe": dc.Safe()}
        found = dc.compare(inputs.linked(), methods, replicates=3, sensitive="job", workers=1)
        path = found.report(folder / "out.html", {"hellinger-utility": 0.5})
        return path.read_text()

    yield "report", report
    yield "plot/ptable", lambda: PTABLE.plot().to_json()
