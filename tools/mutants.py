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
      old: The formula. It occurs exactly once in all sources, so it need not be said where.
      new: What it becomes.
      tests: Arguments of pytest that should notice.
    """

    name: str
    old: str
    new: str
    tests: str


_THREE = "tests/studies/test_three_approaches.py"
_SMALL = "tests/studies/test_eliminating_small_cells.py"
_MECHANISMS = "tests/noise/test_mechanisms.py"
_DEVIATIONS = "tests/noise/test_perturbed_deviations.py"
_LAWS = "tests/protect/test_laws_of_noise.py"
_INVARIANT = "tests/noise/test_invariant.py"
_REGRESSION = "tests/studies/test_regression_microdata.py -k every_sentence"
_DECIMALS = "tests/studies/test_regression_decimals.py -k every_figure"
_UTILITY = "tests/assess/microdata/test_utility_of_records.py"
_BETRAYED = "tests/assess/microdata/test_risk_of_records.py"
_COSTS = "tests/test_accounting.py"
_RULES = "tests/protect/suppress/test_rules.py"
_DOMINANCE = "tests/protect/suppress/test_dominance.py"
_POLICY = "tests/serve/test_policy.py"
_GUARD = "tests/attacks/test_guard.py"

MUTANTS = (
    Mutant(
        "strength of post-randomisation in the study",
        "ALPHA = 0.8",
        "ALPHA = 0.75",
        f"{_THREE} -k perturbed_cells",
    ),
    Mutant(
        "mean weight, total over total",
        "float((people / n).mean())",
        "float(people.sum() / n.sum())",
        f"{_THREE} -k every_figure",
    ),
    Mutant(
        "effects of the population",
        "EFFECT = 1.0",
        "EFFECT = 0.9",
        f"{_THREE} -k law_of_the_totals",
    ),
    Mutant(
        "a population that is too large",
        "return rng.poisson(mean).reshape(tables, -1)",
        "return rng.poisson(1.05 * mean).reshape(tables, -1)",
        f"{_THREE} -k every_figure",
    ),
    Mutant(
        "six times the interaction",
        "alpha + beta + association * gamma",
        "alpha + beta + 6 * association * gamma",
        f"{_THREE} -k every_figure",
    ),
    Mutant(
        "variance of the cell key method in the study",
        "VARIANCE = 3\n",
        "VARIANCE = 2.6\n",
        "tests/studies/test_fair_comparison.py -k every_figure",
    ),
    Mutant(
        "decimals that are not scaled",
        "fitted + self.scale * (_scores(",
        "fitted + (_scores(",
        _DECIMALS,
    ),
    Mutant(
        "modulo residual of full length",
        "loadings = _loadings(true_residual)",
        "loadings = _loadings(free_part(system.equations, truth))",
        _DECIMALS,
    ),
    Mutant(
        "root mean square over dimensions",
        "unit * self.rmse * math.sqrt(dimensions)",
        "unit * self.rmse * dimensions",
        _DECIMALS,
    ),
    Mutant(
        "adjustment with squared loss",
        "power=1,\n        weights=_weights(frame, perturbed, weights, value_weights),",
        "power=2,\n        weights=_weights(frame, perturbed, weights, value_weights),",
        f"{_SMALL} -k nearest_in_absolute",
    ),
    Mutant(
        "adjustment with other weights",
        "weights=_weights(frame, perturbed, weights, value_weights),",
        "weights=np.where(frame.design.orders == 3, 1.0, 4.0),",
        f"{_SMALL} -k nearest_in_absolute",
    ),
    Mutant(
        "mixture of original and draws",
        "mixture *= (1 - d) * lengths(centred)",
        "mixture *= (1 - d) ** 2 * lengths(centred)",
        _REGRESSION,
    ),
    Mutant(
        "tolerance of a stand-in, widened",
        'TOLERANCES = {"utility": 0.012, "deviation": 0.05}',
        'TOLERANCES = {"utility": 0.025, "deviation": 0.08}',
        "tests/studies/test_frozen.py",
    ),
    Mutant(
        "shape of a stand-in",
        "skews=(0.9, 3.3, 0.9, 0.0, 0.675),",
        "skews=(0.2, 3.8, 0.2, 0.0, 0.15),",
        "tests/studies/test_frozen.py",
    ),
    Mutant(
        "generator of a stand-in",
        "effect = -skew * np.log1p(rng.permutation(n))",
        "effect = -1.1 * skew * np.log1p(rng.permutation(n))",
        "tests/studies/test_frozen.py",
    ),
    Mutant(
        "limits of shares",
        "a, b, k = paper * share + 0.5, paper * (1 - share) + 0.5",
        "a, b, k = 1e9 * share + 0.5, 1e9 * (1 - share) + 0.5",
        "tests/studies/test_model.py",
    ),
    Mutant(
        "matrix of Table 6",
        "q=STEP, alpha=STRENGTH, rng",
        "q=2 * STEP, alpha=STRENGTH, rng",
        f"{_SMALL} -k matrix_of_example_1",
    ),
    Mutant(
        "error of the paper's own draws",
        "math.sqrt(1 / len(drawn) + 1 / paper)",
        "math.sqrt(1 / len(drawn))",
        "tests/studies/test_model.py",
    ),
    Mutant(
        "strength of perturbed deviations",
        "alpha: float = 0.4,",
        "alpha: float = 0.5,",
        _DEVIATIONS,
    ),
    Mutant(
        "which cells of a state move",
        "np.lexsort((order_by, old))",
        'np.argsort(old, kind="stable")',
        _DEVIATIONS,
    ),
    Mutant(
        "rate of the discrete Laplace law",
        "np.exp(-rate * reach)",
        "np.exp(-0.9 * rate * reach)",
        _MECHANISMS,
    ),
    Mutant(
        "negative counts set to zero",
        "law[: zero + 1].sum()",
        "law[zero] + law[:zero].sum() * 0.999",
        _MECHANISMS,
    ),
    Mutant(
        "reach of drop/add",
        "int((q - 1) / exact) + 1 for",
        "int((q - 1) / exact) + 2 for",
        _MECHANISMS,
    ),
    Mutant(
        "mass beyond the small table",
        "P[i, i - 1 if i < top else 0] += below",
        "P[i, i - 1] += below",
        _MECHANISMS,
    ),
    Mutant(
        "mass beyond the large table",
        "outward = m - 1 if m < cap else m + 1",
        "outward = m + 1 if m < cap else m - 1",
        _MECHANISMS,
    ),
    Mutant(
        "strength of the invariant form",
        "return alpha * R + (1 - alpha) * np.eye(len(t))",
        "return (1 - alpha) * R + alpha * np.eye(len(t))",
        _INVARIANT,
    ),
    Mutant(
        "first state of the starting matrix",
        "P[0, 1] = q if first is None else first",
        "P[0, 1] = q",
        _INVARIANT,
    ),
    Mutant(
        "ones and twos that become threes",
        "(k + 1 + bias) / 3",
        "(k + 1) / 3",
        _INVARIANT,
    ),
    Mutant(
        "variance of a realised mean",
        "(law @ v**2 - mean**2) / cells",
        "(law @ v**2) / cells",
        _DEVIATIONS,
    ),
    Mutant(
        "variance of a biased law",
        "matrix.law @ matrix.deviations**2 - mean**2",
        "matrix.law @ matrix.deviations**2",
        _LAWS,
    ),
    Mutant(
        "weighted counts below zero",
        "np.maximum(weight + change * mean_weight, 0.0)",
        "weight + change * mean_weight",
        f"{_THREE} -k equations",
    ),
    Mutant(
        "weighted counts of empty cells",
        "np.full(len(weight), float(mean_weight))",
        "np.zeros(len(weight))",
        f"{_THREE} -k equations",
    ),
    Mutant(
        "variance of discrete Laplace noise",
        "2 * (1 - stays) / stays**2",
        "2 / stays**2",
        _LAWS,
    ),
    Mutant(
        "sensitivity of Gaussian noise",
        "self.times * self.most**2",
        "self.times * self.most",
        _LAWS,
    ),
    Mutant(
        "scale of Gaussian noise",
        "math.sqrt(self.squared_sensitivity / (2 * self.budget))",
        "math.sqrt(self.squared_sensitivity / self.budget)",
        _LAWS,
    ),
    Mutant(
        "seeded Laplace noise",
        "stop = -math.expm1(-1 / scale)",
        "stop = -math.expm1(-1.1 / scale)",
        _LAWS,
    ),
    Mutant(
        "seeded Gaussian noise",
        "(np.abs(drawn) - scale**2 / t) ** 2",
        "np.abs(drawn) ** 2",
        _LAWS,
    ),
    Mutant(
        "what a quality costs",
        "1 + self.n_classes * self.keep / (1 - self.keep)",
        "self.n_classes * self.keep / (1 - self.keep)",
        "tests/protect/test_quality.py -k bounded_as_stated",
    ),
    Mutant(
        "delta of a replaced person",
        "self.delta(cap) * self.replaced_cells / self.times",
        "self.delta(cap)",
        _LAWS,
    ),
    Mutant(
        "nearest controlled rounding",
        "milp(1 - 2 * fraction",
        "milp(2 * fraction - 1",
        "tests/noise/test_transport.py",
    ),
    Mutant(
        "systematic rounding",
        "np.cumsum(probability) - rng.random()",
        "np.cumsum(probability) - 0.5",
        "tests/solve/integer/test_rounding.py -k with_their_probability",
    ),
    Mutant(
        "components between the original and the drawn ones",
        "np.sqrt(1 - d[changed] ** 2)",
        "(1 - d[changed])",
        _REGRESSION,
    ),
    Mutant(
        "residuals by addition",
        "(old.T, added.alpha * old.W * d)",
        "(old.T, old.W * d)",
        _REGRESSION,
    ),
    Mutant(
        "size of the noise of orthogonal matrices",
        "Yg *= lambda_",
        "Yg *= 1.01 * lambda_",
        _REGRESSION,
    ),
    Mutant(
        "scale between clusters",
        'between *= details["alpha"]',
        'between *= 0.5 * details["alpha"]',
        _REGRESSION,
    ),
    Mutant(
        "size of residuals of new records",
        "np.sqrt(freedom[0] / freedom[1])",
        "np.sqrt(len(X_new) / len(X))",
        "tests/synthesize/test_mixed.py -k coefficients",
    ),
    Mutant(
        "expected propensity error",
        "(1 - c) ** 2 * c / N",
        "(1 - c) * c / N",
        f"{_UTILITY} -k expected",
    ),
    Mutant(
        "ties of distances",
        "below - 0.5 * equal",
        "below - equal",
        f"{_BETRAYED} -k pairs",
    ),
    Mutant(
        "certain guesses",
        "return low == high,",
        "return low <= high,",
        f"{_BETRAYED} -k attribution",
    ),
    Mutant(
        "distance of different codes",
        "b / np.sqrt(2)",
        "b / 2",
        f"{_BETRAYED} -k slow_reference",
    ),
    Mutant(
        "range of cell keys",
        "np.asarray(sums, dtype=np.int64) % self.modulus",
        "np.asarray(sums, dtype=np.int64) % (self.modulus - 1)",
        "tests/design/test_table.py tests/tabulate/test_tabulate.py",
    ),
    Mutant(
        "buckets of the high part of keys",
        "keys * buckets // rule.modulus",
        "keys * buckets // rule.modulus // 2",
        "tests/design/test_uniform_keys.py",
    ),
    Mutant(
        "one who went and one who came count as two in a sketch",
        "return (moved + abs(self.total - other.total)) // 2",
        "return moved + abs(self.total - other.total)",
        "tests/ledger/test_sketch.py",
    ),
    Mutant(
        "sketches of cells have no key",
        "state = hashlib.blake2b(key=key, digest_size=_WORD_BYTES)",
        "state = hashlib.blake2b(digest_size=_WORD_BYTES)",
        "tests/ledger/test_sketch.py",
    ),
    Mutant(
        "variables that move are not moved back in sketches of cells",
        "str(int(c) - shift) for c in codes",
        "str(int(c)) for c in codes",
        _GUARD,
    ),
    Mutant(
        "variables that move are not moved back in sketches of records",
        'return lang.coalesce((whole - shift).cast("string"), text)',
        'return lang.coalesce(whole.cast("string"), text)',
        "tests/microdata/test_sketch.py -k older",
    ),
    Mutant(
        "the larger number of changes counts",
        "changed = of_cells if of_records is None else min(of_cells, of_records)",
        "changed = of_cells if of_records is None else max(of_cells, of_records)",
        _GUARD,
    ),
    Mutant(
        "sketches that look unrelated are compared",
        "_ALIKE = 0.5",
        "_ALIKE = -1.0",
        _GUARD,
    ),
    Mutant(
        "epsilon as a concentrated cost",
        "_exact(cost.epsilon) ** 2 / 2",
        "_exact(cost.epsilon) / 2",
        _COSTS,
    ),
    Mutant(
        "concentrated cost of a replacement",
        "_round_up(4 * _exact(self.rho))",
        "_round_up(2 * _exact(self.rho))",
        "tests/protect/test_exact_privacy.py",
    ),
    Mutant(
        "cells that a replacement moves",
        "return 2 * moved + (self.times - moved)",
        "return moved",
        "tests/protect/test_exact_privacy.py",
    ),
    Mutant(
        "steps that a weight can move",
        "math.floor(bounds.weight / (grid or 1.0) + _FLOATING) + 1",
        "math.floor(bounds.weight / (grid or 1.0) + _FLOATING)",
        "tests/protect/test_exact_privacy.py",
    ),
    Mutant(
        "delta that costs have used up",
        "_exact(delta) - self._delta()",
        "_exact(delta)",
        _COSTS,
    ),
    Mutant(
        "deviance of the Poisson fit",
        "self.weights, z * log_ratio - z + mu",
        "self.weights, z * log_ratio + z - mu",
        "tests/solve/likelihood/test_poisson.py",
    ),
    Mutant(
        "variances of fitted margins in closed form",
        "np.where(seen, (w**2 * v) @ gains, 0.0)",
        "np.where(seen, (w * v) @ gains, 0.0)",
        "tests/release/test_uncertainty.py",
    ),
    Mutant(
        "released zeros of the additive fit",
        "low | ((targets == 0) & (w > 0))",
        "low",
        "tests/solve/least_squares/test_additive.py",
    ),
    Mutant(
        "bounds of sums of cells",
        "low = plus.T @ self.floor - minus.T @ self.ceiling",
        "low = plus.T @ self.floor - minus.T @ self.floor",
        "tests/solve/linear/test_intervals.py",
    ),
    Mutant(
        "records of one person that are counted",
        "numbered[place] < bounds.max_records",
        "numbered[place] <= bounds.max_records",
        "tests/tabulate/test_engines.py -k battery",
    ),
    Mutant(
        "largest contributions that are kept",
        'ranked["rank"] < of.largest',
        'ranked["rank"] + 1 < of.largest',
        "tests/tabulate/test_contributions.py",
    ),
    Mutant(
        "order of the largest contributions",
        '[some["x"].abs().desc(), some[HOLDING]',
        '[some["x"].desc(), some[HOLDING]',
        "tests/tabulate/test_engines.py -k contributions",
    ),
    Mutant(
        "lower ends of classes",
        "number < change.points[0], change.below",
        "number <= change.points[0], change.below",
        "tests/microdata/test_recode.py",
    ),
    Mutant(
        "counts below a threshold",
        "(table.z <= self.max) & (self.zeros",
        "(table.z < self.max) & (self.zeros",
        _RULES,
    ),
    Mutant(
        "the dominance rule",
        "100.0 / self.k * top - cells.absolute",
        "100.0 / self.k * top - cells.absolute + top",
        _DOMINANCE,
    ),
    Mutant(
        "what is left for the p% rule",
        "self.p / self.q * target - rest",
        "self.p / 100.0 * target - rest",
        _DOMINANCE,
    ),
    Mutant(
        "what a cell of few contributors needs",
        "self.range / 100.0 * cells.absolute",
        "self.range / 50.0 * cells.absolute",
        _DOMINANCE,
    ),
    Mutant(
        "protection that an interval must reach",
        "reach < need - self.subject.rounding(self.subject.values)",
        "2 * reach < need - self.subject.rounding(self.subject.values)",
        "tests/assess/audit/test_audit.py",
    ),
    Mutant(
        "distance of distributions in order",
        "np.abs(np.cumsum(gap, axis=1)[:, :-1]).sum(axis=1) / steps",
        "np.abs(np.cumsum(gap, axis=1)[:, :-1]).max(axis=1) / steps",
        "tests/assess/risk/test_disclosure.py -k closeness",
    ),
    Mutant(
        "precision and recall in one number",
        "(beta**2 * self.a + self.b) if self.c",
        "(self.a + beta**2 * self.b) if self.c",
        "tests/assess/risk/test_disclosure.py",
    ),
    Mutant(
        "Hellinger utility",
        "1 - hellinger(pair.f, pair.g) / math.sqrt(total)",
        "1 - hellinger(pair.f, pair.g) / total",
        "tests/assess/utility/test_utility.py",
    ),
    Mutant(
        "chi-square per degree of freedom",
        "abs(g.statistic - f.statistic) / f.freedom",
        "abs(g.statistic - f.statistic)",
        "tests/assess/utility/test_association.py",
    ),
    Mutant(
        "chi-square of noisy counts",
        "scale, effective = variance / (2 * mean), 2 * mean**2 / variance",
        "scale, effective = variance / mean, 2 * mean**2 / variance",
        "tests/release/test_inference.py",
    ),
    Mutant(
        "reach of discrete Laplace noise",
        "math.log((1 - level) * (1 + math.exp(log_q)) / 2)",
        "math.log((1 - level) * (1 + math.exp(log_q)))",
        "tests/release/test_uncertainty.py",
    ),
    Mutant(
        "sums that hold a hidden cell",
        "np.where(np.isin(status, HIDDEN).any(dimension), CellStatus.suppressed, found)",
        "np.where(np.isin(status, HIDDEN).all(dimension), CellStatus.suppressed, found)",
        "tests/release/test_cube.py",
    ),
    Mutant(
        "cells that a released zero empties",
        "np.flatnonzero(design.adjoint(zero.astype(np.int64)) == 0)",
        "np.flatnonzero(design.adjoint(zero.astype(np.int64)) <= 1)",
        "tests/release/test_zeros.py",
    ),
    Mutant(
        "areas with too many small cells",
        "possible & (values < case.policy.sparse_below)",
        "possible & (values <= case.policy.sparse_below)",
        _POLICY,
    ),
    Mutant(
        "closeness of groups in the builder",
        "0.5 * np.abs(shares - everybody)",
        "np.abs(shares - everybody)",
        _POLICY,
    ),
    Mutant(
        "requests that a visitor may make",
        "level + (now - then) * self.rate",
        "level + (now - then)",
        "tests/office/test_reception.py",
    ),
    Mutant(
        "round numbers of an axis",
        "math.ceil(largest / step - 1e-9) + 1",
        "math.ceil(largest / step - 1e-9)",
        "tests/serve/web/test_texts.py",
    ),
    Mutant(
        "permissions of a file that is being written",
        "os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode",
        "os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666",
        "tests/test_ground.py",
    ),
    Mutant(
        "a name that nothing answers to",
        "        if name not in known:\n            raise UnknownNameError(kind, name, known)",
        "        if name in known:\n            raise UnknownNameError(kind, name, known)",
        "tests/test_ground.py",
    ),
    Mutant(
        "streams of one seed",
        "spawn_key=(word,)",
        "spawn_key=()",
        "tests/test_ground.py",
    ),
    Mutant(
        "code lists that were reviewed",
        "if out.exists():",
        "if not out.parent.exists():",
        "tests/cli/test_codes.py",
    ),
    Mutant(
        "tolerance of the privacy check",
        "least = p - 5 * np.sqrt(p * (1 - p) / n) - 15 / n",
        "least = p - 50 * np.sqrt(p * (1 - p) / n) - 15 / n",
        "tests/testing/test_laws.py",
    ),
    Mutant(
        "records that stay beside added residuals",
        "left[: len(sizes)] -= (chosen * sizes) ** 2",
        "left[: len(sizes)] -= chosen * sizes ** 2",
        "tests/synthesize/test_laws.py",
    ),
    Mutant(
        "an average of one release alone",
        "np.mean([np.asarray(each.z, dtype=np.float64) for each in every], axis=0)",
        "np.mean([np.asarray(each.z, dtype=np.float64) for each in every[-1:]], axis=0)",
        "tests/attack/test_planted.py -k averages",
    ),
    Mutant(
        "what guessing leaves open",
        "(success - guess) / (1 - guess)",
        "success - guess",
        "tests/attack/test_scoring.py",
    ),
    Mutant(
        "what other records predict for a unit",
        "np.maximum(1 - self.leverage, _NEARLY_ONE)",
        "np.maximum(1 + self.leverage, _NEARLY_ONE)",
        "tests/attacks/test_large_units.py",
    ),
    Mutant(
        "the lift that a gate allows",
        "if each.stops and low > self.rules.lift:",
        "if each.stops and low > 1:",
        "tests/publication/test_gate.py",
    ),
    Mutant(
        "false stops that all looks at an attack share",
        "1 - _FALSE_STOPS / _MOST_DRAWS",
        "1 - _FALSE_STOPS",
        "tests/publication/test_gate.py -k looks",
    ),
    Mutant(
        "whom the difference of two releases holds",
        "if outside or other not in inside:",
        "if outside or other in inside:",
        "tests/attack/test_differencing.py -k one_block",
    ),
    Mutant(
        "weights of margins that are not in use",
        "_LIGHT * lightest",
        "_LIGHT",
        "tests/solve/margins/test_from_margins.py -k other_units",
    ),
    Mutant(
        "an excuse without words",
        "if not self.accept.strip():",
        "if not self.accept:",
        "tests/publication/test_gate.py",
    ),
    Mutant(
        "periods that are published already",
        "if not (folder / period / MANIFEST).is_file()]",
        "if (folder / period).name]",
        "tests/publication/test_periods.py",
    ),
    Mutant(
        "what blocks hand on in the adjoint",
        "target += self.spread_into(",
        "target = target + self.spread_into(",
        "tests/design/test_design.py",
    ),
    Mutant(
        "inner cells in each published cell",
        "size = size * along(in_groups,",
        "size = size + along(in_groups,",
        "tests/design/test_design.py",
    ),
    Mutant(
        "shares of effects in a margin",
        "share = 1 / math.prod(self.sizes[a] for a in axes if a not in s)",
        "share = 1 / math.prod(self.sizes[a] for a in axes)",
        "tests/solve/margins",
    ),
    Mutant(
        "a table's price grows with its variables",
        "_PER_ROW[kind] * rows * len(asked)",
        "_PER_ROW[kind] * rows",
        "tests/serve/test_price.py",
    ),
    Mutant(
        "whose turn it is for a seat",
        "return self._held[visitor], self._last_turn.get(visitor, 0)",
        "return 0, self._last_turn.get(visitor, 0)",
        "tests/serve/test_cache.py",
    ),
    Mutant(
        "what levels leave out, from totals",
        "values=2 * total.values - cube.values.sum(axis=dimension)",
        "values=total.values - cube.values.sum(axis=dimension)",
        "tests/attacks/test_builder_policy.py -k leaves_out",
    ),
    Mutant(
        "sums that the dominance rule keeps from contributors",
        "Closeness(100.0 / rule.k - 1.0,",
        "Closeness(1.0 - rule.k / 100.0,",
        "tests/protect/suppress/test_unions.py -k dominance",
    ),
    Mutant(
        "what others have in a hidden sum",
        "found.data = np.maximum(total - found.data, 0.0)",
        "found.data = np.maximum(total, 0.0)",
        "tests/protect/suppress/test_attackers.py",
    ),
    Mutant(
        "the coarsest area where somebody is rare",
        "for level in reversed(range(levels)):",
        "for level in range(levels):",
        "tests/synthesize/test_swap.py",
    ),
    Mutant(
        "households of the same make-up",
        "parts = np.split(people.profile[members], starts[1:])",
        "parts = np.split(people.unit[members], starts[1:])",
        "tests/synthesize/test_swap.py",
    ),
    Mutant(
        "mass that an outcome lends to another",
        "open_mass[row, rich] -= 1 - open_mass[row, poor]",
        "open_mass[row, rich] -= open_mass[row, poor]",
        "tests/microdata/demo",
    ),
    Mutant(
        "columns of numbers in displays",
        "left = [j - 1 for j in range(1, len(head)) if j not in right]",
        "left = [j for j in range(1, len(head)) if j not in right]",
        "tests/display",
    ),
    Mutant(
        "the mean weight of a table of counts",
        "DataSet(name, edition, editions, Bounds(mean_weight=mean_weight))",
        "DataSet(name, edition, editions, Bounds())",
        "tests/protect/test_mean_weight.py -k frames_of",
    ),
    Mutant(
        "tables with more variables than allowed",
        "if used > policy.max_variables:",
        "if used > policy.max_variables + 1:",
        "tests/serve/test_policy.py",
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
        _say(f"  {mutant.name}: {mutant.old} -> {mutant.new}")
    return 1 if survivors or broken else 0


def place_of(mutant: Mutant, sources: Path) -> Path:
    """The one file that holds the formula of a mutant."""
    found = [
        (path, number)
        for path in sorted(sources.rglob("*.py"))
        if (number := path.read_text(encoding="utf-8").count(mutant.old))
    ]
    if sum(number for _, number in found) != 1:
        places = ", ".join(f"{path.relative_to(sources)} ({n})" for path, n in found) or "nowhere"
        raise SystemExit(f"{mutant.name}: {mutant.old!r} must occur once; it occurs: {places}.")
    return found[0][0]


def _dies(sources: Path, mutant: Mutant) -> bool:
    """Whether a test fails with the changed formula."""
    path = place_of(mutant, sources)
    text = path.read_text(encoding="utf-8")
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
