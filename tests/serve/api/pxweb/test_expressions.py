"""Expressions of PxWebApi 2 that choose codes."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.serve import Refusal
from discreet.serve.api.pxweb.selection import (
    choose_codes,
    compile_pattern,
    split_expressions,
)

CODES = ["0", "01", "0114", "0192", "02", "a,b", "top(2)x"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*", CODES),
        ("01*", ["01", "0114", "0192"]),
        ("*2", ["0192", "02"]),
        ("0?", ["01", "02"]),
        ("????", ["0114", "0192"]),
        ("top(2)", ["0", "01"]),
        ("TOP(2,1)", ["01", "0114"]),
        ("bottom(1)", ["top(2)x"]),
        ("bottom(2,1)", ["02", "a,b"]),
        ("range(01,0192)", ["01", "0114", "0192"]),
        ("range(0192,01)", ["01", "0114", "0192"]),
        ("A,B", ["a,b"]),
        ("A*", ["a,b"]),
        ("from(A,B)", ["a,b", "top(2)x"]),
        ("x*", []),
        ("from(02)", ["02", "a,b", "top(2)x"]),
        ("from(a,b)", ["a,b", "top(2)x"]),
        ("to(01)", ["0", "01"]),
        ("0114", ["0114"]),
        ("top(2)x", ["top(2)x"]),
    ],
)
def test_an_expression_means_these_codes(expression, expected):
    assert choose_codes("v", CODES, [expression]) == expected


def test_the_latest_periods_are_the_top():
    years = ["2022", "2023", "2024"]
    assert choose_codes("v", years, ["top(2)"], is_time=True) == ["2023", "2024"]
    assert choose_codes("v", years, ["bottom(1)"], is_time=True) == ["2022"]


def test_a_code_that_is_written_exactly_is_that_one_alone():
    assert choose_codes("v", ["a", "A", "b"], ["A"]) == ["A"]
    assert choose_codes("v", ["aa", "Aa", "b"], ["AA"]) == ["aa", "Aa"]


def test_codes_come_in_the_order_of_the_list():
    assert choose_codes("v", CODES, ["02", "top(1)", "02"]) == ["0", "02"]


@pytest.mark.parametrize(
    "expression", ["03", "top()", "top(x)", "top(1,2,3)", "range(0)", "from(9)", "top(-1)"]
)
def test_what_means_nothing_is_refused(expression):
    with pytest.raises(Refusal):
        choose_codes("v", CODES, [expression])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b", ["a", "b"]),
        ("range(a,b),c", ["range(a,b)", "c"]),
        ("[a,b],c", ["a,b", "c"]),
        ("", []),
        ("*", ["*"]),
        ("top(1,2)", ["top(1,2)"]),
        (" a , b ,, c ", ["a", "b", "c"]),
        ("(a,b", ["(a,b"]),
        ("a[1],b", ["a[1]", "b"]),
    ],
)
def test_lists_are_split_at_their_commas(text, expected):
    assert split_expressions(text) == expected


@given(st.text("ab*?", max_size=6), st.text("ab", max_size=7))
def test_patterns_mean_what_regular_expressions_mean(pattern, text):
    regular = "".join({"*": ".*", "?": "."}.get(sign, sign) for sign in pattern)
    assert bool(compile_pattern(pattern).match(text)) == bool(re.fullmatch(regular, text))


def test_no_pattern_takes_long():
    began = time.perf_counter()
    assert not compile_pattern("*a" * 40 + "b").match("a" * 60)
    assert split_expressions("(," * 4_000)
    assert time.perf_counter() - began < 1


def test_long_patterns_cost_little():
    """As regular expressions, which were kept, each half megabyte took seconds and 20 MB."""
    began, longest = time.process_time(), 490_000
    for pattern in ("*a" * (longest // 2), "?" * longest, "*" * longest):
        expected = CODES if not pattern.strip("*") else []
        assert choose_codes("v", CODES, [pattern]) == expected
    many = [f"code{k}" for k in range(1_000)]
    choose_codes("v", many, [f"*{k % 10}*?{k // 10}*" for k in range(100)])
    assert time.process_time() - began < 0.5


def test_a_program_cannot_send_thousands_of_patterns():
    with pytest.raises(Refusal, match="are no codes"):
        choose_codes("v", CODES, [f"{k}*" for k in range(101)])
    assert choose_codes("v", CODES, CODES * 500) == CODES
