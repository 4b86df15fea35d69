"""Differential privacy that is none: labels, odds, weights and a δ that betrays."""

import math

import numpy as np
import pyarrow as pa
import pytest

import discreet as dc
from discreet.design import Axis, ProductDesign
from discreet.errors import ParameterError
from tests.attacks.victims import PTABLE, SECRET

EVERY_PRIVATE = [dc.DiscreteLaplace(0.1), dc.Laplace(0.1), dc.DiscreteGaussian(0.01)]
N = 300


def name_of(method):
    return method.name


# A record that brings a label


def patients(*more):
    diag = ["flu", "cold", "none"] * (N // 3) + list(more)
    return pa.table(
        {"pid": np.arange(len(diag)), "diag": diag, "sex": (["f", "m"] * N)[: len(diag)]}
    )


def codes(tmp_path, rule):
    path = tmp_path / "codes.toml"
    path.write_text(
        f'[diag]\ncodes = ["flu", "cold", "none", "other"]\nother = "{rule}"\n'
        '[sex]\ncodes = ["f", "m"]\n'
    )
    return path


def labels(release):
    return release.to_pandas()[["diag", "sex"]].astype(str).to_numpy().tolist()


@pytest.mark.parametrize("method", EVERY_PRIVATE, ids=name_of)
def test_a_single_record_adds_no_label(tmp_path, method):
    for rule in ("other", "drop"):
        listed = codes(tmp_path, rule)
        without, with_hiv = (
            dc.open(frame, id="pid", codes=listed).tabulate("diag*sex").protect(method)
            for frame in (patients(), patients("HIV"))
        )
        assert labels(without) == labels(with_hiv)
        assert without.statement.to_json() == with_hiv.statement.to_json()
        assert "HIV" not in str(with_hiv.statement.to_json()) + repr(with_hiv)


@pytest.mark.parametrize("method", EVERY_PRIVATE, ids=name_of)
def test_found_codes_are_refused_in_the_same_public_words(method):
    refused = []
    for frame in (patients(), patients("HIV")):
        table = dc.open(frame, id="pid").tabulate("diag*sex")
        with pytest.raises(ParameterError, match="discreet codes") as error:
            table.protect(method)
        refused.append(error.value.public())
    assert refused[0] == refused[1]


def test_without_a_code_list_the_label_would_show():
    """The control: a method that takes found codes shows who came."""
    shown = [
        dc.open(frame, id="pid", secret=SECRET).tabulate("diag*sex").protect(dc.CellKey(PTABLE))
        for frame in (patients(), patients("HIV"))
    ]
    assert "HIV" not in str(labels(shown[0]))
    assert "HIV" in str(labels(shown[1]))


def test_a_record_outside_a_refusing_list_is_in_no_public_error(tmp_path):
    data = dc.open(patients("HIV"), id="pid", codes=codes(tmp_path, "refuse"))
    with pytest.raises(dc.DiscreetError) as error:
        data.tabulate("diag")
    assert "HIV" not in error.value.public()


# Female or male


def two_sexes(counts):
    axis = Axis.flat("sex", ["f", "m"])
    return dc.Table.from_inner(ProductDesign([axis], [("sex",)]), np.array(counts))


def shifted(law, count):
    """The probability of each published value."""
    noise, chance = law
    return dict(zip((noise + count).tolist(), chance.tolist(), strict=True))


def test_female_or_male_is_hidden_up_to_what_is_stated():
    """At ε = 1 a person's sex changes the odds by e² = 7.39 at most, and so says the statement."""
    method = dc.DiscreteLaplace(1.0, nonnegative=False)
    laws = [
        [shifted(method.cell_law(two_sexes(counts), k), counts[k]) for k in range(2)]
        for counts in ([4, 3], [3, 4])
    ]
    grid = [(a, b) for a in range(-5, 15) for b in range(-5, 15)]
    odds = [laws[0][0][a] * laws[0][1][b] / (laws[1][0][a] * laws[1][1][b]) for a, b in grid]
    assert max(odds) == pytest.approx(math.exp(2))
    statement = two_sexes([4, 3]).protect(method).statement
    assert statement.privacy.epsilon == pytest.approx(1)
    assert statement.privacy.epsilon_replace == pytest.approx(2)
    assert "2.718 times as likely with it as without it" in statement.text
    assert "female or male, ε is 2" in statement.text
    assert "more than e^ε = 7.389 times" in statement.text


# Weights


def weighted(weight, bound=None):
    frame = pa.table({"pid": np.arange(N), "sex": ["f", "m"] * (N // 2), "w": weight})
    sexes = dc.Hierarchy.from_dict({"T": ["f", "m"]})
    people = dc.open(frame, id="pid", hierarchies={"sex": sexes})
    return people.with_roles(weight="w", weight_bound=bound)


@pytest.mark.parametrize("bad", [-1_000.0, np.nan, np.inf])
def test_weights_below_zero_or_missing_do_not_get_round_the_bound(bad):
    weight = np.where(np.arange(N) == 0, bad, 1.0)
    try:
        total = weighted(weight, bound=2).tabulate("sex").published.weight.max()
    except dc.DiscreetError:
        return
    assert N - 1 <= total <= N + 1


# δ


def test_a_delta_that_betrays_is_refused_and_a_small_one_names_its_cap():
    table = two_sexes([40, 30])
    with pytest.raises(ParameterError, match="δ = 0") as error:
        table.protect(dc.DiscreteLaplace(0.1, cap=1))
    needed = int(str(error.value).split("cap=")[1].split()[0])
    table.protect(dc.DiscreteLaplace(0.1, cap=needed))
    with pytest.raises(ParameterError, match="δ ="):
        table.protect(dc.DiscreteLaplace(0.1, cap=needed - 1))
    with pytest.raises(ParameterError, match="δ ="):
        table.protect(dc.DiscreteLaplace(0.1, cap=50, population=1_000_000))
    accepted = table.protect(dc.DiscreteLaplace(0.1, cap=1, accept_delta=0.5))
    assert accepted.statement.privacy.delta > 0.3


def test_delta_is_judged_under_the_unit_it_is_stated_for():
    """With known margins only a replacement is hidden, and its δ is larger."""
    axes = [Axis.flat("a", ["x", "y"]), Axis.flat("b", ["u", "v"])]
    table = dc.Table.from_inner(ProductDesign(axes, "a*b"), np.array([9, 8, 7, 6]))
    for cap in range(5, 40):
        for known in ((), ("1",)):
            method = dc.DiscreteLaplace(2.0, cap=cap, known=known, population=1_000)
            try:
                stated = table.protect(method).statement.privacy
            except ParameterError:
                continue
            assert stated.delta <= 1e-4
