import pytest

import discreet as dc
from discreet.assessment.compare.contestants import build_from, contestants, label_of, parameters_of
from discreet.errors import ParameterError, UnknownNameError

PTABLE = dc.perturbation_table(D=5, V=3, js=2)


def test_labels_show_what_was_chosen():
    found = contestants([dc.CellKey(PTABLE), dc.Pram(), dc.DropAdd(share=0.1, cap=3)])
    assert [c.label for c in found] == [
        "cell-key D=5 V=3 js=2",
        "pram",
        "drop-add share=0.1 cap=3",
    ]
    assert found[0].parameters == {"D": 5, "V": 3.0, "js": 2}
    assert found[1].parameters == {}


def test_labels_can_be_given():
    found = contestants({"weak": dc.Laplace(epsilon=9.0), "strong": "laplace:epsilon=0.1"})
    assert [c.label for c in found] == ["weak", "strong"]
    assert found[1].method == dc.Laplace(epsilon=0.1)


def test_one_method_alone_will_do():
    assert [c.label for c in contestants("pram")] == ["pram"]
    assert [c.label for c in contestants(dc.Pram())] == ["pram"]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("pram", dc.Pram()),
        ("pram:invariant=true,alpha=0.5", dc.Pram(invariant=True, alpha=0.5)),
        ("drop-add:margins=summed, share=0.2", dc.DropAdd(margins="summed", share=0.2)),
        (
            'laplace:epsilon=1,known=["a", "b:c"],margins=own',
            dc.Laplace(epsilon=1, known=["a", "b:c"]),
        ),
        ('laplace:epsilon=1,split={"a": 0.5, "1": 0.5}',
         dc.Laplace(epsilon=1, split={"a": 0.5, "1": 0.5})),
    ],
)  # fmt: skip
def test_texts_are_read_as_parameters(text, made):
    assert build_from("method", text) == made


def test_a_perturbation_table_is_made_from_its_parameters():
    made = build_from("method", "cell-key:D=5,V=3,js=2")
    assert parameters_of(made) == {"D": 5, "V": 3.0, "js": 2}


@pytest.mark.parametrize("text", ["pram:alpha", "pram:alpha=", "pram:alpha 0.5"])
def test_a_parameter_needs_a_value(text):
    with pytest.raises(ParameterError, match="NAME=VALUE"):
        build_from("method", text)


def test_unknown_names_are_refused():
    with pytest.raises(UnknownNameError, match="'pram'"):
        contestants("prams")
    with pytest.raises(UnknownNameError, match="alpha"):
        contestants("pram:alpa=1")


def test_equal_labels_and_no_methods_are_refused():
    with pytest.raises(ParameterError, match="labels"):
        contestants([dc.Pram(), dc.Pram()])
    with pytest.raises(ParameterError, match="no method"):
        contestants([])


def test_a_matrix_of_another_origin_has_its_name():
    matrix = dc.TransitionMatrix.from_law("made by hand", [[0, 1, 0], [0.2, 0.6, 0.2]])
    assert label_of(dc.CellKey(matrix)) == "cell-key matrix=made by hand"


def test_defaults_are_not_named_even_where_names_became_objects():
    assert (
        label_of(dc.solve.Chain())
        == label_of(dc.solve.Chain(["non-negative", "log-linear"]))
        == "chain"
    )
    named = label_of(dc.solve.Chain([dc.NonNegative(tolerance=1e-2), "log-linear"]))
    assert named == 'chain fitters=["non-negative tolerance=0.01", "log-linear"]'
