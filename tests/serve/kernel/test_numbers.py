"""Numbers and texts in the browser are those of Python, sign by sign."""

import random
import struct
import unicodedata
from urllib.parse import parse_qsl, quote, urlencode

import numpy as np
import pytest
from markupsafe import escape

from discreet.release.cube import drop_float_noise
from discreet.release.formats.columns import decimals_of
from discreet.serve import texts
from discreet.serve.answer import _as_read
from tests.serve.kernel.node import CLIENT, run_node

_DRAWS = random.Random(35)
_EDGES = [0.0, -0.0, 0.5, 1.5, 2.5, 0.25, 0.75, -0.25, 0.05, 0.15, 1e15, 1e16, 1e21, 1e22, 5e-324]
_EDGES += [1e-5, 1e-4, 0.1 + 0.2, 999.5, 999.95, 2.0**53, 1e300, -1234567.5]
ODD = [float("nan"), float("inf"), float("-inf")]


def numbers(n):
    """Numbers of many sizes: whole ones, halves and quarters, decimals, and any bits at all."""
    found = list(_EDGES)
    for _ in range(n):
        kind = _DRAWS.randrange(5)
        whole = _DRAWS.randint(-(10**6), 10**6)
        found.append(
            (
                float(whole),
                whole / 8,
                whole / 10 ** _DRAWS.randint(0, 8),
                whole * 10.0 ** _DRAWS.randint(-30, 30),
                struct.unpack("d", _DRAWS.randbytes(8))[0],
            )[kind]
        )
    return [x for x in found if np.isfinite(x)]


def signs(n):
    """Texts of letters of many scripts, spaces, signs, and what lies beyond U+FFFF."""
    kept = [c for c in map(chr, range(0x20000)) if unicodedata.category(c) not in ("Cn", "Cs")]
    plain = "aAbBzZ  \t\n'\"\\|&=+%/~.-_[]{}<>éßİıẞſΣς\x85\u00a0\ufeff\u200b\U0001f600"
    return [
        "".join(_DRAWS.choice(plain if _DRAWS.random() < 0.7 else kept) for _ in range(length))
        for length in (_DRAWS.randint(0, 9) for _ in range(n))
    ]


FIXED = """
const n = await client("numbers.js");
return data.map(([x, d]) => [n.format_fixed(x, d), n.format_grouped(x, d), n.format_general(x),
  n.format_general(x, true), n.repr_float(x), n.repr_float(n.spacing(x)),
  n.repr_float(n.round_even(x)), n.repr_float(n.round_to(x, d))]);
"""


def written_by_python(x, d):
    rint, scaled = float(np.rint(x)), float(np.round(x, d))
    return [
        f"{x:.{d}f}",
        f"{x:,.{d}f}",
        f"{x:g}",
        f"{x:,g}",
        repr(x),
        repr(float(abs(np.spacing(x)))),
        repr(rint),
        repr(scaled),
    ]


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_numbers_are_written_and_rounded_as_python_does():
    asked = [(x, _DRAWS.randint(0, 6)) for x in numbers(6_000)] + [(x / 2, 0) for x in range(99)]
    found = run_node(FIXED, asked)
    expected = [written_by_python(x, d) for x, d in asked]
    wrong = [(a, e, f) for a, e, f in zip(asked, expected, found, strict=True) if e != f]
    assert wrong == []


def test_a_wrong_rounding_is_found(tmp_path):
    """`toFixed` alone, which is what the module is there to mend."""
    (tmp_path / "numbers.js").write_text(
        (CLIENT / "numbers.js")
        .read_text(encoding="utf-8")
        .replace("return is_tie &&", "return false &&")
    )
    found = run_node(FIXED, [(0.25, 1), (0.5, 0)], folder=tmp_path)
    assert [line[0] for line in found] == ["0.3", "1"]
    assert [f"{0.25:.1f}", f"{0.5:.0f}"] == ["0.2", "0"]


def test_numbers_that_are_none_have_their_names():
    found = run_node(FIXED, [(x, 1) for x in ODD])
    assert [line[0] for line in found] == [f"{x:.1f}" for x in ODD]


@pytest.mark.parametrize("language", ["en", "nb"])
def test_numbers_have_the_signs_of_a_language(language):
    made = texts(language).numbers
    asked = [(x, _DRAWS.randint(0, 2)) for x in [*numbers(300), -0.04, -0.4]]
    body = """const { Numbers } = await client("numbers.js");
    const made = new Numbers(data.signs);
    return data.asked.map(([x, d]) => [made.format(x, d), made.in_percent(x, d)]);"""
    found = run_node(body, {"signs": vars(made) | {"_signs": None}, "asked": asked})
    assert found == [[made.format(x, d), made.in_percent(x, d)] for x, d in asked]


def test_sums_of_decimals_are_as_they_were_meant():
    asked = []
    for _ in range(400):
        decimals, size = _DRAWS.randint(0, 8), 10.0 ** _DRAWS.randint(-3, 12)
        parts = [round(_DRAWS.uniform(-size, size), decimals) for _ in range(12)]
        asked.append([parts[0] + parts[1] + parts[2], *parts[3 : _DRAWS.randint(4, 12)]])
    body = """const { drop_float_noise, decimals_of } = await client("numbers.js");
    return data.map((x) => [drop_float_noise(x), drop_float_noise(x, true), decimals_of(x),
      decimals_of(x, false, 6)]);"""
    expected = []
    for x in map(np.array, asked):
        dropped = [drop_float_noise(x, as_largest=largest).tolist() for largest in (False, True)]
        expected.append([*dropped, decimals_of(x), decimals_of(x, 6)])
    assert run_node(body, asked) == expected


STRINGS = """
const s = await client("strings.js");
return { order: s.sorted(data), each: data.map((t) => [s.repr(t), s.as_read(t), s.casefold(t),
  s.strip(t), s.strip_end(t), s.words(t), s.size(t), s.quote(t), s.urlencode([[t, t]]),
  s.urlencode([[t, t]], "[]|"), s.escape(t)]) };
"""


def read_by_python(text):
    return [
        *(repr(text), _as_read(text), text.casefold(), text.strip(), text.rstrip(), text.split()),
        *(len(text), quote(text), urlencode([(text, text)]), urlencode([(text, text)], safe="[]|")),
        str(escape(text)),
    ]


def test_texts_are_read_ordered_and_quoted_as_python_does():
    asked = signs(5_000)
    found = run_node(STRINGS, asked)
    assert found["order"] == sorted(asked)
    expected = map(read_by_python, asked)
    assert [
        (a, e, f) for a, e, f in zip(asked, expected, found["each"], strict=True) if e != f
    ] == []


def test_every_letter_is_folded_as_python_does():
    known = [
        c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cn", "Cs", "Co")
    ]
    body = """const { casefold } = await client("strings.js"); return [...data].map(casefold);"""
    found = run_node(body, "".join(known))
    assert [(c, f) for c, f in zip(known, found, strict=True) if c.casefold() != f] == []


def test_addresses_are_read_back():
    asked = [urlencode([(t, t), ("a", ""), ("a", t)]) for t in signs(500)] + [
        "?a=1&&b",
        "x",
        "=",
        "",
    ]
    body = 'const { parse_query } = await client("strings.js"); return data.map(parse_query);'
    expected = [
        [list(p) for p in parse_qsl(a.removeprefix("?"), keep_blank_values=True)] for a in asked
    ]
    assert run_node(body, asked) == expected


def test_texts_are_filled_as_python_does():
    body = """const { fill } = await client("strings.js");
    return [fill("{} of {}", 3, "x{}"), fill("{b}, {a}: {{}}", {a: 1, b: "$&"})];"""
    assert run_node(body) == ["{} of {}".format(3, "x{}"), "{b}, {a}: {{}}".format(a=1, b="$&")]
