"""What a visitor asks for, and its address."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.serve import Query, Refusal, View

NAMES = st.text("abcæ[] &=%|.", min_size=1, max_size=5)
PLAIN = st.text("abc &=%ø", min_size=1, max_size=5).filter(str.strip).map(str.strip)
CODES = st.lists(NAMES, min_size=1, max_size=3).map(lambda c: tuple(sorted(set(c))))


@given(
    rows=st.lists(NAMES, max_size=2).map(tuple),
    picked=st.dictionaries(NAMES, CODES, max_size=2),
    where=st.dictionaries(NAMES, CODES, max_size=2),
    groups=st.dictionaries(
        NAMES,
        st.dictionaries(
            PLAIN,
            st.lists(PLAIN, min_size=1, max_size=2).map(lambda c: tuple(sorted(set(c)))),
            min_size=1,
            max_size=2,
        ),
        max_size=1,
    ),
    show=st.sampled_from(["count", "row", "column", "total"]),
    totals=st.booleans(),
)
def test_an_address_says_what_was_asked(rows, picked, where, groups, show, totals):
    view = View(show=show, totals=totals)
    query = Query(rows=rows, picked=picked, where=where, groups=groups, view=view)
    assert Query.parse(query.address) == query


def test_equal_questions_have_one_address():
    one = Query.parse("columns=sex&rows=age&where.age=b&where.age=a&where.age=b&show=count")
    other = Query.parse("rows=age&columns=sex&where.age=a&where.age=b")
    assert one == other
    assert one.address == other.address == "rows=age&columns=sex&where.age=a&where.age=b"


def test_parts_of_a_query_are_changed_by_their_names():
    query = Query.parse("rows=age&show=row&totals=0&chart=bars&fold.age=x&layer.sex=f&sort=-a")
    assert query.changed(show="count").view.show == "count"
    assert query.changed(rows=("sex",)).rows == ("sex",)


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("row=age", "unknown_parameter"),
        ("where.=a", "unknown_parameter"),
        ("show=percent", "unknown_value"),
        ("totals=yes", "unknown_value"),
        ("chart=pie", "unknown_value"),
        ("group.age=young", "unreadable_group"),
        ("group.age=|a", "unreadable_group"),
        ("group.age=x|a&group.age=x|b", "unreadable_group"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_is_allowed(address, code):
    with pytest.raises(Refusal) as caught:
        Query.parse(address)
    assert caught.value.code == code
    assert caught.value.allowed
