"""Whatever the builder says to visitors is translated: refusals, notes and plain statements."""

import ast
from pathlib import Path

import pytest

import discreet.protect
import discreet.serve
from discreet.serve import texts
from discreet.serve.web.texts import languages
from discreet.suppress.sentences import suppressed_cells

SERVE = Path(discreet.serve.__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FOR_PROGRAMS = ("api", "cli")
OTHERS = [language for language in languages() if language != "en"]


def sample(node):
    """A text as it may come out, with a number wherever something is put in; else nothing."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.replace("{}", "7")
    if isinstance(node, ast.JoinedStr):
        parts = [p.value if isinstance(p, ast.Constant) else put_in(p) for p in node.values]
        return "".join(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = sample(node.left), sample(node.right)
        return None if None in parts else "".join(parts)
    if isinstance(node, ast.Call):  # self.said("Figures below {} are not shown.")
        return sample(node.args[0]) if node.args else None
    return None


def put_in(node):
    """What stands in a text's place: a number, but for signs that are always the same."""
    return "|" if getattr(node.value, "id", "") == "_SEPARATOR" else "7"


def refusals(tree):
    """Messages and advice of every refusal in a file, whether named before or not."""
    functions = [n for n in ast.walk(tree) if isinstance(n, FUNCTIONS)]
    for function in [n for n in functions if n.name != "no_such"]:
        named = {
            target.id: node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call in [n for n in ast.walk(function) if isinstance(n, ast.Call)]:
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name == "no_such":  # no_such("variable", name, known, "Variables")
                yield f"There is no {sample(call.args[0])} 7. 7"
                yield f"{sample(call.args[3])}: 7."
            places = {"Refusal": (1, 2), "refusal": (1, 2), "with_note": (0,)}.get(name, ())
            for node in [call.args[k] for k in places if k < len(call.args)]:
                found = named.get(node.id) if isinstance(node, ast.Name) else node
                text = sample(found) if found is not None else None
                if text:
                    yield text


def said_to_visitors():
    found = set()
    for path in SERVE.rglob("*.py"):
        if not set(path.relative_to(SERVE).parts) & set(FOR_PROGRAMS):
            found |= set(refusals(ast.parse(path.read_text(encoding="utf-8"))))
    return sorted(found)


def test_the_search_finds_refusals():
    found = said_to_visitors()
    assert len(found) > 40
    assert "The table would have 7 cells, totals included." in found
    assert "Figures below 7 are not shown." in found
    assert "There is no variable or level 7. 7" in found


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("text", said_to_visitors())
def test_every_refusal_is_translated(text, language):
    assert texts(language).translate(text).language == language


def plain_sentences():
    """The third text of every sentence that a method of this package says."""
    folder = Path(discreet.protect.__file__).parent
    files = [*folder.rglob("*.py"), *(folder.parent / "release").rglob("*.py")]
    for path in files:
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(call, "func", None), "id", "")
            if name in ("Sentence", "process", "limit") and len(call.args) > 2:
                text = sample(call.args[2])
                if text:
                    yield text


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("text", sorted(set(plain_sentences())))
def test_every_plain_sentence_is_translated(text, language):
    assert texts(language).translate(text).language == language


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("decimals", [None, "rmse"])
def test_everything_plain_of_suppression_is_translated(language, decimals):
    method = discreet.Suppress("threshold(3)", decimals=decimals)
    said = method._statement().sentences
    for text in filter(None, (sentence.plain for sentence in said)):
        assert texts(language).translate(text).language == language


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("units", ["people", "contributors"])
def test_what_is_hidden_of_sums_is_translated(language, units):
    said = suppressed_cells([], units, has_decimals=False)
    for sentence in said:
        found = texts(language).translate(sentence.plain)
        assert found.language == language
        assert not set(found.text.split()) & {"figures", "contributors", "people"}
