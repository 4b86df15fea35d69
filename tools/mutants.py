"""Change one formula at a time and see whether the tests notice: `python tools/mutants.py`.

Every mutant is applied to a copy of the sources, never to the working tree. It dies when one of its
tests fails; survivors are listed, and the exit code is 1. `python tools/mutants.py weight` runs
those whose name contains a word.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "src" / "discreet", ROOT / "studies" / "src" / "discreet_studies")
_LONGEST = 900


@dataclass(frozen=True)
class Mutant:
    """One changed formula.

    Attributes:
      name: What is changed.
      file: Where, below `src/discreet`; a file of the studies begins with `discreet_studies/`.
      old: The formula; it must occur exactly once.
      new: What it becomes.
      tests: Arguments of pytest that should notice.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str

    def path(self, sources: Path) -> Path:
        """The file in a folder that holds both packages."""
        own = any(self.file.startswith(f"{package.name}/") for package in PACKAGES)
        return sources / self.file if own else sources / PACKAGES[0].name / self.file


_THREE = "tests/studies/test_three_approaches.py"
_SMALL = "tests/studies/test_eliminating_small_cells.py"
_MECHANISMS = "tests/noise/test_mechanisms.py"
_DEVIATIONS = "tests/noise/test_perturbed_deviations.py"
_LAWS = "tests/protect/test_laws_of_noise.py"
_INVARIANT = "tests/noise/test_invariant.py"
_REGRESSION = "tests/studies/test_regression_microdata.py -k every_sentence"
_UTILITY = "tests/assess/microdata/test_utility_of_records.py"
_BETRAYED = "tests/assess/microdata/test_risk_of_records.py"

MUTANTS = (
    Mutant(
        "strength of post-randomisation in the study",
        "discreet_studies/three_approaches/simulation.py",
        "ALPHA = 0.8",
        "ALPHA = 0.75",
        f"{_THREE} -k perturbed_cells",
    ),
    Mutant(
        "mean weight, total over total",
        "discreet_studies/three_approaches/simulation.py",
        "float((people / n).mean())",
        "float(people.sum() / n.sum())",
        f"{_THREE} -k every_figure",
    ),
    Mutant(
        "effects of the population",
        "discreet_studies/three_approaches/simulation.py",
        "EFFECT = 1.0",
        "EFFECT = 0.9",
        f"{_THREE} -k law_of_the_totals",
    ),
    Mutant(
        "variance of the population",
        "discreet_studies/three_approaches/simulation.py",
        "2 * (SIDE - 1) * line",
        "(SIDE - 1) * line",
        f"{_THREE} -k law_of_the_totals",
    ),
    Mutant(
        "matrix of Table 6",
        "discreet_studies/eliminating_small_cells/tables.py",
        "q=STEP, alpha=STRENGTH, rng",
        "q=2 * STEP, alpha=STRENGTH, rng",
        f"{_SMALL} -k matrix_of_example_1",
    ),
    Mutant(
        "error of the paper's own draws",
        "discreet_studies/chance.py",
        "math.sqrt(1 / len(drawn) + 1 / paper)",
        "math.sqrt(1 / len(drawn))",
        "tests/studies/test_model.py",
    ),
    Mutant(
        "strength of perturbed deviations",
        "noise/allocate.py",
        "alpha: float = 0.4,",
        "alpha: float = 0.5,",
        _DEVIATIONS,
    ),
    Mutant(
        "which cells of a state move",
        "noise/allocate.py",
        "np.lexsort((order_by, old))",
        'np.argsort(old, kind="stable")',
        _DEVIATIONS,
    ),
    Mutant(
        "rate of the discrete Laplace law",
        "noise/laplace.py",
        "np.exp(-rate * reach)",
        "np.exp(-0.9 * rate * reach)",
        _MECHANISMS,
    ),
    Mutant(
        "negative counts set to zero",
        "noise/laplace.py",
        "law[: zero + 1].sum()",
        "law[zero] + law[:zero].sum() * 0.999",
        _MECHANISMS,
    ),
    Mutant(
        "reach of drop/add",
        "noise/drop_add.py",
        "int((q - 1) / exact) + 1 for",
        "int((q - 1) / exact) + 2 for",
        _MECHANISMS,
    ),
    Mutant(
        "mass beyond the small table",
        "noise/pram.py",
        "P[i, i - 1 if i < top else 0] += below",
        "P[i, i - 1] += below",
        _MECHANISMS,
    ),
    Mutant(
        "mass beyond the large table",
        "noise/pram.py",
        "outward = m - 1 if m < cap else m + 1",
        "outward = m + 1 if m < cap else m - 1",
        _MECHANISMS,
    ),
    Mutant(
        "strength of the invariant form",
        "noise/invariant.py",
        "return alpha * R + (1 - alpha) * np.eye(len(t))",
        "return (1 - alpha) * R + alpha * np.eye(len(t))",
        _INVARIANT,
    ),
    Mutant(
        "first state of the starting matrix",
        "noise/invariant.py",
        "P[0, 1] = q if first is None else first",
        "P[0, 1] = q",
        _INVARIANT,
    ),
    Mutant(
        "ones and twos that become threes",
        "noise/small_cells.py",
        "(k + 1 + bias) / 3",
        "(k + 1) / 3",
        _INVARIANT,
    ),
    Mutant(
        "variance of a realised mean",
        "noise/bias.py",
        "(law @ v**2 - mean**2) / cells",
        "(law @ v**2) / cells",
        _DEVIATIONS,
    ),
    Mutant(
        "variance of a biased law",
        "protect/frame/keyed_noise.py",
        "matrix.law @ matrix.deviations**2 - mean**2",
        "matrix.law @ matrix.deviations**2",
        _LAWS,
    ),
    Mutant(
        "weighted counts below zero",
        "protect/weights.py",
        "np.maximum(weight + change * mean_weight, 0.0)",
        "weight + change * mean_weight",
        f"{_THREE} -k equations",
    ),
    Mutant(
        "weighted counts of empty cells",
        "protect/weights.py",
        "np.full(len(weight), float(mean_weight))",
        "np.zeros(len(weight))",
        f"{_THREE} -k equations",
    ),
    Mutant(
        "variance of discrete Laplace noise",
        "protect/frame/budget.py",
        "2 * (1 - stays) / stays**2",
        "2 / stays**2",
        _LAWS,
    ),
    Mutant(
        "sensitivity of Gaussian noise",
        "protect/frame/budget.py",
        "self.times * self.most**2",
        "self.times * self.most",
        _LAWS,
    ),
    Mutant(
        "scale of Gaussian noise",
        "protect/frame/budget.py",
        "math.sqrt(self.squared_sensitivity / (2 * self.budget))",
        "math.sqrt(self.squared_sensitivity / self.budget)",
        _LAWS,
    ),
    Mutant(
        "seeded Laplace noise",
        "protect/seeded_noise.py",
        "stop = -math.expm1(-1 / scale)",
        "stop = -math.expm1(-1.1 / scale)",
        _LAWS,
    ),
    Mutant(
        "seeded Gaussian noise",
        "protect/seeded_noise.py",
        "(np.abs(drawn) - scale**2 / t) ** 2",
        "np.abs(drawn) ** 2",
        _LAWS,
    ),
    Mutant(
        "what a quality costs",
        "protect/quality.py",
        "1 + self.n_classes * self.keep / (1 - self.keep)",
        "self.n_classes * self.keep / (1 - self.keep)",
        "tests/protect/test_quality.py -k bounded_as_stated",
    ),
    Mutant(
        "delta of a replaced person",
        "protect/frame/privacy.py",
        "min(1.0, (1 + math.exp(min(epsilon, 700.0))) * delta)",
        "min(1.0, 2 * delta)",
        _LAWS,
    ),
    Mutant(
        "nearest controlled rounding",
        "noise/transport.py",
        "milp(1 - 2 * fraction",
        "milp(2 * fraction - 1",
        "tests/noise/test_transport.py",
    ),
    Mutant(
        "systematic rounding",
        "solve/integer/rounding.py",
        "rng.random()",
        "0.5",
        "tests/solve/integer/test_rounding.py -k with_their_probability",
    ),
    Mutant(
        "components between the original and the drawn ones",
        "synthesize/score_correlation.py",
        "np.sqrt(1 - d[changed] ** 2)",
        "(1 - d[changed])",
        _REGRESSION,
    ),
    Mutant(
        "residuals by addition",
        "synthesize/residual_correlation.py",
        "(old.T, added.alpha * old.W * d)",
        "(old.T, old.W * d)",
        _REGRESSION,
    ),
    Mutant(
        "size of the noise of orthogonal matrices",
        "synthesize/romm.py",
        "Yg *= lambda_",
        "Yg *= 1.01 * lambda_",
        _REGRESSION,
    ),
    Mutant(
        "scale between clusters",
        "synthesize/hybrid/method.py",
        'between *= details["alpha"]',
        'between *= 0.5 * details["alpha"]',
        _REGRESSION,
    ),
    Mutant(
        "size of residuals of new records",
        "synthesize/mixed.py",
        "np.sqrt(freedom[0] / freedom[1])",
        "np.sqrt(len(X_new) / len(X))",
        "tests/synthesize/test_mixed.py -k coefficients",
    ),
    Mutant(
        "expected propensity error",
        "assess/microdata/propensity.py",
        "(1 - c) ** 2 * c / N",
        "(1 - c) * c / N",
        f"{_UTILITY} -k expected",
    ),
    Mutant(
        "ties of distances",
        "assess/microdata/membership.py",
        "below - 0.5 * equal",
        "below - equal",
        f"{_BETRAYED} -k pairs",
    ),
    Mutant(
        "certain guesses",
        "assess/microdata/attribution.py",
        "return low == high,",
        "return low <= high,",
        f"{_BETRAYED} -k attribution",
    ),
    Mutant(
        "distance of different codes",
        "assess/microdata/nearest.py",
        "b / np.sqrt(2)",
        "b / 2",
        f"{_BETRAYED} -k slow_reference",
    ),
)


def main(words: list[str]) -> int:
    """Run the mutants whose name contains one of the words; all of them without words."""
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "src"
        for package in PACKAGES:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(package, sources / package.name, ignore=ignored)
        healthy = {tests: _passes(sources, tests) for tests in sorted({m.tests for m in chosen})}
        broken = [tests for tests, passed in healthy.items() if not passed]
        for tests in broken:
            _say(f"fails without any mutant: {tests}")
        survivors = [m for m in chosen if healthy[m.tests] and not _dies(sources, m)]
    _say(f"{len(chosen)} mutants, {len(survivors)} survivors")
    for mutant in survivors:
        _say(f"  {mutant.name}: {mutant.file}: {mutant.old} -> {mutant.new}")
    return 1 if survivors or broken else 0


def _dies(sources: Path, mutant: Mutant) -> bool:
    """Whether a test fails with the changed formula."""
    path = mutant.path(sources)
    text = path.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.name}: {mutant.old!r} does not occur once in {mutant.file}.")
    began = time.perf_counter()
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        dead = not _passes(sources, mutant.tests)
    finally:
        path.write_text(text, encoding="utf-8")
    seconds = time.perf_counter() - began
    _say(f"{'killed  ' if dead else 'SURVIVED'} {mutant.name} ({seconds:.0f} s)")
    return dead


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _passes(sources: Path, tests: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests.split()]
    paths = {"PYTHONPATH": str(sources), "PYTHONDONTWRITEBYTECODE": "1"}
    found = subprocess.run(  # noqa: S603
        command, cwd=ROOT, env={**os.environ, **paths}, capture_output=True, timeout=_LONGEST
    )
    if found.returncode not in (0, 1):
        raise SystemExit(f"pytest could not run {tests}:\n{found.stdout.decode()[-2000:]}")
    return found.returncode == 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
