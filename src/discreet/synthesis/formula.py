"""Model formulas: which columns are confidential, and what is preserved about them.

`"income + tax ~ age + C(region)"` has the confidential columns on the left. The right side is read
by formulaic: factors, `a:b` and `a*b`, `poly(age, 2)`, `log(turnover)`. Some words are ours:
`weights(w)` names the column of survey weights, and `cells(a*b)` a table whose publishable cells
have their sums preserved. For hybrid data, `local(…)` is preserved within
every cluster, `shared(…)` over all rows, `groups(…)` within groups of clusters and `pieces(…)`
within pieces of clusters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.design.formula import parse as parse_margins
from discreet.errors import MissingDependencyError, ParameterError, UnknownNameError, check_known

CONSTANT = "1"
NUMBER, ROOT = "number", "sqrt"  # functions of our own: codes read as numbers, and square roots
_SPLINES = {"bs", "cc", "cr", "cs"}
_LOGARITHMS = {"exp", "exp10", "exp2", "log", "log10", "log2", ROOT}


# What may be called in a formula: nothing that depends on the order of records, as lags do, since
# models are evaluated in canonical order.
FUNCTIONS = {"C", "I", "center", "contr", "poly", "scale", NUMBER, *_SPLINES, *_LOGARITHMS}
_CALL = re.compile(r"[\w.]+\([^()]*\)")
_BACKTICKS = re.compile(r"`([^`]*)`")
PLAIN, LOCAL, SHARED, GROUPS, PIECES = "", "local", "shared", "groups", "pieces"
_WORD = re.compile(r"\s*(local|shared|groups|pieces|weights|cells)\s*\((.*)\)\s*", re.DOTALL)
_OPENING, _CLOSING, _QUOTES = "([{", ")]}", "'\"`"


@dataclass(frozen=True)
class ModelFormula:
    """A formula taken apart."""

    text: str  # the formula in one spelling: terms in alphabetical order, blanks left out
    confidential: tuple[str, ...]  # the columns on the left, in their order
    parts: Mapping[str, str]  # sums of terms as formulaic reads them, by where they are preserved
    weights: str | None = None  # column of survey weights
    cells: str | None = None  # the table whose publishable cells have their sums preserved

    @property
    def is_hybrid(self) -> bool:
        """Whether terms are marked for hybrid data."""
        return PLAIN not in self.parts

    def sources(self, known: Iterable[str]) -> tuple[str, ...]:
        """The known columns that the right side is made from, weights left out.

        Raises:
          UnknownNameError: A name is neither a column nor one of the functions.
        """
        columns = list(known)
        check_known("column", self.cell_variables, columns)
        return tuple(dict.fromkeys([*self.term_sources(columns), *self.cell_variables]))

    def term_sources(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns that terms are made from, those of `cells(…)` left out."""
        found: dict[str, None] = {}
        for part in self.parts.values():
            for name in names_in(_read_part(part)):
                if name in columns:
                    found[name] = None
                elif name not in FUNCTIONS:
                    raise UnknownNameError("column", name, columns)
        return tuple(found)

    @property
    def cell_variables(self) -> tuple[str, ...]:
        """The columns that make up the table in `cells(…)`."""
        terms = [] if self.cells is None else parse_margins(self.cells)
        return tuple(dict.fromkeys(name for term in terms for name in term))


def parse(formula: str) -> ModelFormula:
    """A formula taken apart; see the module for what it may hold."""
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise ParameterError(
            f"a model is written as 'confidential columns ~ other columns', got {formula!r}. "
            "An example: 'income + tax ~ age + region'."
        )
    left, right = formula.split("~")
    factors = [list(term.factors) for term in _read(f"{left} - 1")] if left.strip() else []
    if not factors:
        raise ParameterError(
            "the left side of the model is empty; it names the confidential columns."
        )
    if any(len(each) != 1 or each[0].eval_method.value != "lookup" for each in factors):
        raise ParameterError(
            "the left side of a model names columns, joined by +. Make a column of the "
            "transformed values first and name that one."
        )
    confidential = tuple(str(each[0].expr) for each in factors)
    words: dict[str, list[str]] = {}
    for piece in _split_sum(right) if right.strip() else ():
        marked = _WORD.fullmatch(piece)
        words.setdefault(marked[1] if marked else PLAIN, []).append(marked[2] if marked else piece)
    weights = None
    if named := words.pop("weights", []):
        columns = [str(term) for text in named for term in _read(f"{text} - 1")]
        if len(columns) != 1:
            raise ParameterError(f"weights(…) takes one column, got {' + '.join(columns)!r}.")
        weights = columns[0]
    # One spelling: `a*b` and `b*a` are one table.
    pieces = (each for text in words.pop("cells", []) for each in _split_sum(text))
    crossed = ("*".join(sorted(each.replace(" ", "").split("*"))) for each in pieces)
    cells = " + ".join(sorted(crossed)) or None
    parts = {word: " + ".join(terms) for word, terms in sorted(words.items())} or {PLAIN: CONSTANT}
    if len(parts) > 1 and parts.get(PLAIN) == CONSTANT:
        del parts[PLAIN]
    if len(parts) > 1 and PLAIN in parts:
        raise ParameterError(
            f"some terms of {formula!r} are marked and {parts[PLAIN]!r} is not. Mark every term: "
            "local(…) is preserved within each cluster, shared(…) over all rows."
        )
    # One spelling for one model: the same request has the same draw, however it was written.
    shown = []
    for word, part in parts.items():
        inner = " + ".join(t for t in _term_names(part) if t != CONSTANT) or CONSTANT
        shown.append(f"{word}({inner})" if word else inner)
    shown += [f"cells({cells})"] if cells else []
    shown += [f"weights({_quote(weights)})"] if weights else []
    text = " ~ ".join([" + ".join(map(_quote, confidential)), " + ".join(shown)])
    return ModelFormula(text, confidential, parts, weights, cells)


def names_in(terms: Any) -> list[str]:
    """The names of columns and functions in some terms, in alphabetical order."""
    return sorted({name for term in terms for factor in term.factors for name in names_of(factor)})


def names_of(factor: Any) -> set[str]:
    """The names of columns and functions in one factor of a term."""
    match factor.eval_method.value:
        case "lookup":
            return {str(factor.expr)}
        case "python":
            quoted = _BACKTICKS.findall(str(factor.expr))
            tree = ast.parse(_BACKTICKS.sub("1", str(factor.expr)), mode="eval")
            return {*quoted, *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))}
    return set()


def _term_names(part: str) -> list[str]:
    """The terms of one part of a right side, in alphabetical order, as they can be read again."""

    def text_of(factor: Any) -> str:
        text = str(factor.expr)
        if factor.eval_method.value == "lookup":
            return _quote(text)
        is_plain = factor.eval_method.value == "literal" or _CALL.fullmatch(text)
        return text if is_plain else f"{{{text}}}"

    return sorted(":".join(map(text_of, term.factors)) for term in _read_part(part))


def _quote(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _read_part(part: str) -> Any:
    found = _read(part or CONSTANT)
    if CONSTANT not in [str(term) for term in found]:
        raise ParameterError(
            "the formula removes the constant, but means are always preserved. Leave out '- 1' "
            "and '0 +'."
        )
    return found


def _read(part: str) -> Any:
    formulaic = load_formulaic()
    try:
        found: Any = formulaic.Formula(part)
        reason = ""
    except (formulaic.errors.FormulaicError, SyntaxError, ValueError) as error:
        found, reason = None, f": {str(error).splitlines()[0].rstrip('.')}"
    if not isinstance(found, formulaic.SimpleFormula):
        raise ParameterError(
            f"{part.strip()!r} cannot be read as a sum of terms{reason}. Examples: 'age + region', "
            "'age*sex', 'poly(age, 2)', 'C(size_class)'."
        )
    return found


def load_formulaic() -> Any:
    """The reader of formulas, which makes the matrix of a model with pandas.

    Raises:
      MissingDependencyError: It is not installed.
    """
    try:
        import formulaic
        import formulaic.errors
    except ImportError as error:
        raise MissingDependencyError("a model formula", "formulaic", "synthesis") from error
    return formulaic


def _split_sum(right: str) -> Iterator[str]:
    # By hand and not by formulaic: our words are no functions, and it would look for columns in
    # them. Plus signs in brackets and quotes belong to a term.
    depth, quote, start = 0, "", 0
    for place, sign in enumerate(right):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in _QUOTES:
            quote = sign
        elif sign == "+" and not depth:
            yield right[start:place].strip()
            start = place + 1
        else:
            depth += (sign in _OPENING) - (sign in _CLOSING)
    yield right[start:].strip()
