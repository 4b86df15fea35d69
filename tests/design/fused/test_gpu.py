"""Passes on a graphics processor: in emulation here, on a card where there is one."""

import itertools
import shutil

import numpy as np
import pytest

import discreet as dc
from discreet.design.fused import gpu, null_space
from discreet.design.fused import links as devices
from discreet.design.fused.gpu import GpuPass
from discreet.design.fused.links import LINKS
from discreet.errors import DesignError, MissingDependencyError, ParameterError
from tests.design.fused.emulated_cupy import EmulatedCupy
from tests.design.fused.test_passes import STORED, tables

SIZES = {"a": 2, "b": 3, "c": 4, "d": 37}
DESIGNS = {
    "pairs": lambda: dc.Design.product(SIZES, list(itertools.combinations(SIZES, 2))),
    "triples": lambda: dc.Design.product(SIZES, list(itertools.combinations(SIZES, 3))),
    "long axis alone": lambda: dc.Design.product(SIZES, "a*b + c + d"),
    "no long axis": lambda: dc.Design.product(SIZES, "a*b + b*c"),
    "another order": lambda: dc.Design.product(
        {"d": 37, "b": 3, "a": 2}, [("d", "b"), ("d", "a"), ("b", "a")]
    ),
    "hierarchy": lambda: dc.Design.product(_with_tree(), "region*sex + region*age"),
    "zeros in margins": lambda: _with_zeros("a*b + b*c + c*d"),
    "zeros beside margins": lambda: _with_zeros("a*c + b*d"),
}


def _with_zeros(margins):
    """Some codes of `a` exclude some of `b`, and some of `c` some of `d`."""
    possible = np.ones(tuple(SIZES.values()), dtype=bool)
    possible[0, 1:] = False
    possible[:, :, 1, 5:9] = False
    return dc.Design.sparse(SIZES, margins, np.nonzero(possible))


def _with_tree():
    tree = dc.Hierarchy.from_dict({"All": {"north": ["n1", "n2", "n3"], "south": ["s1", "s2"]}})
    region = dc.design.Axis.from_hierarchies("region", [tree])
    return [
        region,
        dc.design.Axis.flat("sex", ["f", "m"]),
        dc.design.Axis.flat("age", [str(i) for i in range(9)]),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def emulated(folder, monkeypatch):
    if shutil.which("g++") is None:
        pytest.skip("the emulation of graphics processors needs g++")
    module = EmulatedCupy(folder)
    monkeypatch.setattr(gpu, "cupy", lambda: module)
    monkeypatch.setattr(devices, "cupy", lambda: module)
    monkeypatch.setattr(null_space.NullSpace, "on_gpu", lambda self: self)
    gpu._module.cache_clear()
    yield module
    gpu._module.cache_clear()


@pytest.fixture
def card():
    if not devices.has_gpu():
        pytest.skip("there is no graphics processor here")


def agree(design, link, tolerance, stored=()):
    rng = np.random.default_rng(1)
    nu, direction = rng.standard_normal((2, design.n_published))
    given = tables(design, link, stored)
    here, there = design.fused(link, **given), design.fused(link, device="gpu", **given)
    on, by = there.to_device(nu), there.to_device(direction)
    expected, found = here.table(nu), there.table(on)
    np.testing.assert_allclose(there.to_host(found.margins), expected.margins, rtol=tolerance)
    assert found.potential == pytest.approx(expected.potential, rel=tolerance)
    for name in ("slope", "change"):
        points = (nu,) if name == "slope" else (nu, direction)
        moved = (on,) if name == "slope" else (on, by)
        np.testing.assert_allclose(
            there.to_host(getattr(there, name)(*moved)),
            getattr(here, name)(*points),
            rtol=tolerance,
            atol=tolerance * float(np.abs(expected.margins).max()),
        )
    top, place = there.steepest_cell(on, by)
    assert top == pytest.approx(here.largest_gradient(nu, direction), rel=tolerance)
    cell = design.inner_at(np.ravel_multi_index(place, design.shape))
    assert abs(design.adjoint(direction)[cell]) == pytest.approx(top, rel=tolerance)


@pytest.mark.parametrize(
    ("name", "link"),
    [
        *((name, "positive") for name in DESIGNS),
        ("pairs", "exponential"),
        ("zeros beside margins", "exponential"),
        ("zeros beside margins", "linear"),
    ],
)
def test_the_text_of_the_kernels_gives_the_margins_of_the_processor(emulated, name, link):
    agree(DESIGNS[name](), link, 1e-12)


@pytest.mark.parametrize("link", list(LINKS))
@pytest.mark.parametrize("name", DESIGNS)
def test_a_card_gives_the_margins_of_the_processor(card, name, link):
    agree(DESIGNS[name](), link, 1e-12)


WITH_TABLES = [
    ("pairs", "positive", "both"),
    ("pairs", "exponential", "start"),
    ("another order", "positive", "variance"),
    ("hierarchy", "positive", "start"),
    ("zeros beside margins", "linear", "both"),
    ("no long axis", "positive", "both"),
]


@pytest.mark.parametrize(("name", "link", "stored"), WITH_TABLES)
def test_kernels_read_starting_tables_and_variances(emulated, name, link, stored):
    agree(DESIGNS[name](), link, 1e-12, STORED[stored])


@pytest.mark.parametrize("stored", ["start", "variance", "both"])
@pytest.mark.parametrize("link", list(LINKS))
@pytest.mark.parametrize("name", DESIGNS)
def test_a_card_reads_starting_tables_and_variances(card, name, link, stored):
    agree(DESIGNS[name](), link, 1e-12, STORED[stored])


def noisy(design):
    rng = np.random.default_rng(5)
    counts = rng.poisson(rng.gamma(0.3, 3.0, design.n_inner)).astype(float)
    truth = design.aggregate(counts)
    return truth, truth + rng.laplace(scale=4.0, size=design.n_published)


def fits_agree(monkeypatch, fitter, options, unused=()):
    from discreet.solve.least_squares import dual_fit
    from discreet.solve.likelihood import log_linear
    from discreet.solve.non_negative import non_negative

    monkeypatch.setattr(dual_fit, "MOST_DEGENERATE", 10_000)
    monkeypatch.setattr(non_negative, "NEVER_STORED", 0)
    monkeypatch.setattr(log_linear, "NEVER_STORED", 0)
    monkeypatch.setattr(log_linear, "MOST_PUBLISHED", np.inf)
    design = dc.Design.product({"a": 2, "b": 3, "c": 11}, [("a", "b"), ("a", "c"), ("b", "c")])
    truth, z = noisy(design)
    z[: design.offsets[1]] = truth[: design.offsets[1]]
    targets = truth if fitter is dc.LogLinear else z
    w = np.ones(design.n_published)
    w[list(unused)] = 0.0
    here, there = (
        fitter(device=device, **options)(design, targets, weights=w).require()
        for device in ("cpu", "gpu")
    )
    assert here.notes["device"] == "cpu"
    assert there.notes["device"] == "gpu"
    allowed = 1e-7 if options or unused else 1e-9  # weights and inverses magnify rounding
    np.testing.assert_allclose(there.z, here.z, rtol=0, atol=allowed * np.abs(z).max())


START = np.random.default_rng(3).gamma(1.0, size=66)
FITS = {
    "plain": (dc.NonNegative, {}),
    "exact": (dc.NonNegative, {"exact": [("a", "b")]}),
    "started": (dc.NonNegative, {"start": START}),
    "unused": (dc.NonNegative, {}, (7, 20, 21)),
    "log-linear": (dc.LogLinear, {}),
    "raking": (dc.LogLinear, {"start": START}),
    "unused, log-linear": (dc.LogLinear, {}, (7, 20, 21)),
}


@pytest.mark.parametrize("name", FITS)
def test_whole_fits_agree_in_emulation(emulated, monkeypatch, name):
    fits_agree(monkeypatch, *FITS[name])


@pytest.mark.parametrize("name", FITS)
def test_whole_fits_agree_on_a_card(card, monkeypatch, name):
    fits_agree(monkeypatch, *FITS[name])


def test_designs_with_too_many_sums_beside_the_long_axis_have_no_kernel(emulated):
    design = dc.Design.product({"a": 90, "b": 95, "c": 100}, "a*b*c")
    assert not GpuPass.suits(design)
    with pytest.raises(DesignError, match="device='cpu'"):
        design.fused("positive", device="gpu")
    assert DESIGNS["pairs"]().fused("positive", device="gpu").device == "gpu"


@pytest.mark.skipif(devices.has_gpu(), reason="there is a graphics processor here")
def test_without_a_card_auto_means_the_processor():
    assert DESIGNS["pairs"]().fused("positive", device="auto").device == "cpu"


def test_a_card_is_taken_for_large_tables_by_itself(emulated, monkeypatch):
    monkeypatch.setattr(gpu, "has_gpu", lambda: True)
    design = DESIGNS["pairs"]()
    assert design.fused("positive", device="auto").device == "cpu"
    monkeypatch.setattr(gpu, "WORTH_A_GPU", design.n_inner)
    assert design.fused("positive", device="auto").device == "gpu"


def test_a_missing_cupy_is_a_clear_error(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    with pytest.raises(MissingDependencyError, match=r"CuPy.*pip install 'discreet\[gpu\]'"):
        DESIGNS["pairs"]().fused("positive", device="gpu")


@pytest.mark.parametrize("make", [dc.NonNegative, dc.LogLinear])
def test_an_unknown_device_is_refused(make):
    with pytest.raises(ParameterError, match="'auto', 'cpu', 'gpu'"):
        make(device="tpu")
