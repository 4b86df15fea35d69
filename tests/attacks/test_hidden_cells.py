"""What a release says beside its values must not sort the cells it hides."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.protect.keyed_noise import moments
from discreet.release import write_csv, writers
from discreet.tables.storage import save_release
from tests.attacks.victims import PTABLE, flat_axes, keyed_table

HIDES = dc.CellKey(PTABLE, threshold=10)
AXES = flat_axes(region=8, age=6)
HIDDEN_TRUTHS = ([1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [0, 0, 0, 4, 4, 4], [2, 2, 2, 2, 2, 2])


def table_with(hidden):
    """Tables that differ in the cells of one region alone, all of them hidden."""
    counts = 40 + np.arange(48).reshape(8, 6) % 17
    counts[3] = hidden
    return keyed_table(counts, AXES, [("region", "age")])


def public_bytes(release, folder):
    """Every form in which the release leaves the house."""
    return {
        "parquet": save_release(release, folder / "z.parquet").read_bytes(),
        "csv file": write_csv(release, folder / "z.csv").read_bytes(),
        "statement": (folder / "z.statement.txt").read_bytes(),
        "statement for programs": (folder / "z.statement.json").read_bytes(),
        **{
            f"as {writer.name}": release.write(folder / f"w{writer.ending}").read_bytes()
            for writer in writers()
            if writer.name != "xlsx"  # it holds the time at which it was written
        },
        "text": repr(release).encode(),
        "html": release._repr_html_().encode(),
        "pandas": release.to_pandas().to_json().encode(),
    }


@pytest.mark.parametrize(
    "method", [HIDES, dc.protect.Quality(HIDES)], ids=["cell-key", "quality of cell-key"]
)
def test_no_byte_depends_on_a_hidden_cell(method, tmp_path):
    releases = [table_with(hidden).protect(method) for hidden in HIDDEN_TRUTHS]
    assert all(r.hidden.sum() == 6 for r in releases)
    first, *others = (public_bytes(r, tmp_path) for r in releases)
    assert all(other == first for other in others)


def test_a_precision_of_the_true_count_would_sort_hidden_cells(tmp_path):
    """The planted fault: one over the variance of the row that each count was looked up in."""
    law, seen = dc.DropAdd(0.5).law, set()
    for hidden in HIDDEN_TRUTHS:
        table = table_with(hidden)
        precision = 1 / np.maximum(moments(law)[1][law.row_of(table.z)], 0.1)
        leaking = replace(table.protect(HIDES), precision=precision)
        seen.add(public_bytes(leaking, tmp_path)["parquet"])
        assert len(np.unique(precision[leaking.hidden])) == len({(n + 1) // 2 for n in hidden})
    assert len(seen) == len(HIDDEN_TRUTHS)


@pytest.mark.parametrize(
    "method",
    [
        dc.CellKey(PTABLE),
        HIDES,
        dc.DropAdd(0.05),
        dc.Pram(),
        dc.Pram(invariant=True),
        dc.DiscreteLaplace(0.5),
        dc.Laplace(0.5),
        dc.DiscreteGaussian(0.05),
        dc.DiscreteLaplace(0.5, nonnegative=False, population=1000, cap=60),
    ],
    ids=repr,
)
def test_precision_is_a_function_of_method_and_design(method):
    found = [table_with(hidden).protect(method).precision for hidden in HIDDEN_TRUTHS]
    if found[0] is None:
        assert all(precision is None for precision in found)
    else:
        assert all(np.array_equal(precision, found[0]) for precision in found)


def test_cells_outside_an_occurring_support_do_not_show():
    """A support read from the records is lifted before anything is published."""
    frame = {"a": ["x", "x", "y"], "b": ["u", "v", "u"], "n": [50, 60, 70], "k": [9**9, 7, 8**9]}
    for method in (dc.CellKey(PTABLE), dc.DropAdd(0.05), dc.DiscreteLaplace(1.0), dc.Laplace(1.0)):
        release = dc.Table.from_counts(
            frame, "n", "a*b", key="k", support="occurring", declared=True
        ).protect(method)
        assert len(release.z) == 9
        if release.precision is not None:
            assert len(set(release.precision.tolist())) == 1
