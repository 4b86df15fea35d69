import numpy as np
import pytest

import discreet as dc
from discreet.demo import code_lists


@pytest.fixture(scope="module")
def people():
    return dc.demo.census(persons=3_000, seed=2)


def test_it_comes_with_everything(people):
    assert people.id == "person_id"
    assert set(people.hierarchies) == set(code_lists())
    assert people.hierarchies["region"][0].level_names[0] == "country"
    assert people.hierarchies["sex"][0].labels["F"] == "Female"
    assert people.structural_zeros


def test_the_first_lines_of_the_readme_run(people, tmp_path):
    secret = dc.Secret.from_file(tmp_path / "keys.secret", create=True)
    table = people.with_keys(secret).tabulate("region*age + region*sex")
    assert table.z[table.design.position({})] == 3_000
    assert len(table.cell_keys) == len(table.z)
    assert table.secret is secret


def test_it_has_a_name_and_keys_of_a_public_secret(people):
    assert (people.data_set.name, people.data_set.edition) == ("tarvenia-census", "1")
    assert people.data_set.keys == "phased"
    assert people.secret.is_public
    table = people.tabulate("sex")
    assert len(table.cell_keys) == len(table.z)
    assert table.data_set == people.data_set
    sample = dc.demo.sample(2_000)
    assert sample.data_set.name == "tarvenia-sample"
    assert sample.has_keys


def test_structural_zeros_shape_the_support(people):
    table = people.tabulate("age*marital")
    full = people.tabulate("age*marital", structural_zeros=[])
    assert table.design.n_inner < full.design.n_inner
    assert table.z.sum() == full.z.sum()


def test_many_variables_without_inner_cells(people):
    table = people.tabulate(dc.margins(list(code_lists()), order=2))
    assert table.inner is None
    assert table.z[table.design.position({})] == 3_000


def test_a_census_on_disk_is_the_same(people, tmp_path):
    on_disk = dc.demo.census(3_000, 2, path=tmp_path / "census.parquet")
    margins = "region*age + sex*occupation"
    np.testing.assert_array_equal(on_disk.tabulate(margins).z, people.tabulate(margins).z)


def test_the_sample_has_weights():
    table = dc.demo.sample(20_000, 1).tabulate("sex")
    total = table.design.position({})
    assert table.z[total] < 5_000
    assert table.weights[total] == pytest.approx(20_000, rel=0.2)
