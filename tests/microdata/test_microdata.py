import dataclasses
import pickle

import pyarrow as pa
import pytest

import discreet as dc
from discreet.errors import DiscreetError, KeysError, UnknownNameError

FRAME = pa.table(
    {"person": [1, 2], "region": ["Atlantis", "Lemuria"], "w": [1.25, 2.5], "k": [77, 88]}
)


@pytest.fixture
def people():
    return dc.open(FRAME, id="person", weight="w", key="k")


def test_roles_and_dimensions(people):
    assert people.columns == ("person", "region", "w", "k")
    assert people.dimensions == ("region",)
    bare = dc.open(FRAME)
    assert bare.dimensions == bare.columns
    assert bare.with_roles(weight="w").with_roles(key="k").dimensions == ("person", "region")
    with pytest.raises(UnknownNameError):
        bare.with_roles(weight="v")


def test_columns_in_a_role_cannot_be_tabulated(people):
    for name in ("person", "w", "k"):
        with pytest.raises(UnknownNameError, match="region"):
            people.tabulate(name)


def test_it_is_frozen_and_methods_leave_it_alone(people):
    with pytest.raises(dataclasses.FrozenInstanceError):
        people.weight = "k"
    tree = dc.Hierarchy.flat(["Atlantis", "Lemuria", "Mu"])
    more = people.with_hierarchies(region=tree).with_structural_zeros([{"region": ["Mu"]}])
    assert people.hierarchies == {}
    assert people.structural_zeros == ()
    assert more.hierarchies == {"region": (tree,)}
    assert people.with_hierarchies({"region": tree}).hierarchies == more.hierarchies


def test_structural_zeros_name_columns(people):
    with pytest.raises(UnknownNameError, match="region"):
        people.with_structural_zeros([{"regin": ["Mu"]}])


def test_the_text_shows_schema_and_roles_but_no_record(people):
    text = repr(people.with_hierarchies(region=dc.Hierarchy.flat(["Atlantis", "Lemuria"])))
    for expected in ("confidential", "region", "string", "weight", "record key", "id", "2 codes"):
        assert expected in text
    for record in ("Atlantis", "77", "1.25"):
        assert record not in text


def test_the_text_never_shows_the_secret(people):
    keyed = people.with_keys(dc.Secret(b"swordfish, and what else nobody guesses"))
    assert "side table" in repr(keyed)
    for text in (repr(keyed), str(keyed), f"{keyed.__dict__}"):
        assert "swordfish" not in text


def test_records_with_a_secret_are_not_pickled(people):
    keyed = people.with_keys(dc.Secret.generate())
    with pytest.raises((KeysError, TypeError, pickle.PicklingError, AttributeError)):
        pickle.dumps(dataclasses.replace(keyed, table=None, backend=None, record_keys=None))


def test_errors_are_of_one_family(people):
    with pytest.raises(DiscreetError):
        people.tabulate("region*nothing")
