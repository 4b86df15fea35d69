"""Records from released inner cells."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet.errors import DesignError
from discreet.release import tabulate as microdata
from tests.release.test_rounding import release


def test_one_record_for_each_person():
    whole = release((3, 4)).round(seed=1)
    records = whole.to_microdata()
    assert records.column_names == ["a", "b"]
    counted = Counter(zip(*(records[name].to_pylist() for name in "ab"), strict=True))
    for cell in whole.inner_to_arrow().to_pylist():
        assert counted.pop((cell["a"], cell["b"])) == cell["count"]
    assert not counted


def test_tabulating_the_records_gives_the_release_again():
    whole = release((3, 4)).round(seed=1)
    again = dc.open(whole.to_microdata()).tabulate("a*b")
    np.testing.assert_array_equal(
        [again.z[again.design.position(whole.design.cell(k))] for k in np.flatnonzero(whole.z)],
        whole.z[whole.z > 0],
    )


def test_releases_without_whole_inner_cells_say_what_to_do():
    fitted = release()
    with pytest.raises(DesignError, match="round them first"):
        fitted.to_microdata()
    with pytest.raises(DesignError, match="not part of this release"):
        replace(fitted, y=None).to_microdata()
    with pytest.raises(DesignError, match="negative"):
        replace(fitted, y=np.full(30, -1)).to_microdata()


def test_too_many_records_are_refused(monkeypatch):
    monkeypatch.setattr(microdata, "_LARGEST", 10)
    with pytest.raises(DesignError, match="inner_to_frame"):
        release().round(seed=1).to_microdata()
