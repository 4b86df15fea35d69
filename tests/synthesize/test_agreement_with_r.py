"""Agreement with the R package RegSDC on draws recorded from it."""

import json
from pathlib import Path

import numpy as np
import pytest

from discreet.synthesis import from_residuals, ipso, residual_correlation, romm, score_correlation
from discreet.synthesis.decompose import fit, scores
from tests.synthesize.cases import Recorded

FILES = sorted(Path(__file__).parents[1].joinpath("golden").glob("regsdc_n*.json"))


class Golden:
    """One file: inputs as matrices, wishes in our words."""

    def __init__(self, path):
        self.stored = json.loads(path.read_text())
        self.n = len(self.stored["y"])
        self.Y = self.matrix("y")
        constant = np.ones((self.n, 1))
        x = self.stored["x"]
        self.X = constant if x is None else np.hstack([constant, self.matrix("x")])
        self.rank = scores(fit(self.Y, self.X).residuals).rank

    def matrix(self, name):
        return np.array(self.stored[name], dtype=float).reshape(self.n, -1)

    def wishes(self, name):
        wished = np.atleast_1d(np.array(self.stored[name], dtype=object))
        return ["redraw" if wish is None else wish for wish in wished]

    def components(self, name):
        return self.wishes(name)[: self.rank]

    def draws(self, name="random_source"):
        return Recorded(self.matrix(name))


CALLS = {
    "ipso": lambda g: ipso(g.Y, g.X, rng=g.draws()),
    "gen_yNew": lambda g: from_residuals(g.Y, g.X, g.matrix("yNew"), rng=None),
    "gen_yNew_SVD": lambda g: from_residuals(g.Y, g.X, g.matrix("yNew"), rng=None, how="svd"),
    "new_yStart": lambda g: from_residuals(g.Y, g.X, g.matrix("yStart"), rng=None),
    "gen_lambda_yNew": lambda g: romm(g.Y, g.X, 0.3, rng=g.draws("yNew")),
    "romm_0.1": lambda g: romm(g.Y, g.X, 0.1, rng=g.draws()),
    "romm_2": lambda g: romm(g.Y, g.X, 2, rng=g.draws()),
    "romm_0.5_SVD": lambda g: romm(g.Y, g.X, 0.5, rng=g.draws(), how="svd"),
    "comp": lambda g: score_correlation(g.Y, g.X, g.components("compCorr"), rng=g.draws()),
    "comp_SVD": lambda g: score_correlation(
        g.Y, g.X, g.components("compCorr"), rng=g.draws(), how="svd"
    ),
    "comp_fixed": lambda g: score_correlation(
        g.Y, g.X, g.components("compCorrFixed"), rng=g.draws()
    ),
    "add": lambda g: residual_correlation(
        g.Y, g.X, g.wishes("resCorr"), rng=g.draws(), alpha="largest"
    ),
    "add_yStart": lambda g: from_residuals(
        g.Y, g.X, g.matrix("yStart"), rng=g.draws(), by="addition", alpha="largest"
    ),
}
PAIRS = [
    pytest.param(path, name, id=f"{path.stem.removeprefix('regsdc_')}-{name}")
    for path in FILES
    for name in CALLS
    if name in json.loads(path.read_text())["outputs"]
]


def test_all_recorded_files_are_here():
    assert len(FILES) == 4
    assert len(PAIRS) == 4 * len(CALLS) - 1


@pytest.mark.parametrize(("path", "name"), PAIRS)
def test_the_same_draws_give_the_same_values(path, name):
    golden = Golden(path)
    expected = np.array(golden.stored["outputs"][name], dtype=float).reshape(golden.Y.shape)
    result = CALLS[name](golden)
    np.testing.assert_allclose(result.Y, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    if name in golden.stored["alpha"]:
        assert result.details["alpha"] == pytest.approx(golden.stored["alpha"][name], rel=1e-8)
