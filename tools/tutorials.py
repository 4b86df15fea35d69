"""Tutorials are run when the documentation is built: outputs, pictures, and notebooks to download.

A page is plain Markdown. Each `python` and `sh` block is run in turn, in one folder. What it
prints, the value of its last line and the pictures that it writes are shown below it. Results are
kept in `docs/_build/executed` until the page or the program changes. As a Sphinx extension this
file does so for `docs/tutorials`; `python tools/tutorials.py PAGE` runs one page.
"""

import ast
import base64
import contextlib
import hashlib
import html
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Pages run side by side, and what they compare in processes of its own: threads of linear algebra
# on top of that wait for each other (see tests/conftest.py).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
KEPT = ROOT / "docs" / "_build" / "executed"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}
EXTRAS = "pip install 'discreet[plot,private,synthesis,serve]'"
"""What all tutorials together need."""
_FULL = range(85, 101)
"""How long a line of words is that was broken at a hundred signs."""
WORKERS = 2
"""Pages that are run at a time: the machines that build the pages have two cores."""


def results(page):
    """What each block of a page shows, from the last run if nothing changed since."""
    kept = KEPT / f"{page.stem}-{_state(page)}.json"
    if not kept.exists():
        subprocess.run([sys.executable, __file__, page], check=True)
    return json.loads(kept.read_text(encoding="utf-8"))


def execute(page, namespace=None):
    """Run a page in the current folder and keep what each block shows."""
    namespace = {"__name__": "__main__"} if namespace is None else namespace
    text = page.read_text(encoding="utf-8")
    shown = []
    for number, (kind, block) in enumerate(BLOCK.findall(text), 1):
        name = f"{page.name}, block {number}"
        shown.append(_type(block) if kind == "sh" else _run(block, name, namespace))
    KEPT.mkdir(parents=True, exist_ok=True)
    for old in KEPT.glob(f"{page.stem}-*.json"):
        old.unlink()
    (KEPT / f"{page.stem}-{_state(page)}.json").write_text(json.dumps(shown), encoding="utf-8")


def page_with_results(page, text):
    """The page with results below the blocks, and a link to the notebook below the title."""
    shown = iter(results(page))
    text = BLOCK.sub(lambda block: block[0] + "".join(map(_as_html, next(shown))), text)
    link = (
        f'<p class="notebook"><a href="{page.stem}.ipynb" download>Download as a notebook</a>. '
        f"The tutorials need <code>{html.escape(EXTRAS)}</code>.</p>"
    )
    title, rest = text.split("\n", 1)
    return f"{title}\n\n{_raw(link)}\n{rest}"


def notebook(page):
    """The page as a Jupyter notebook, with its results."""
    shown, cells, last = iter(results(page)), [], 0
    text = page.read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        cells += _markdown_cell(text[last : block.start()])
        outputs = [_as_output(item) for item in next(shown)]
        code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": outputs}
        source = block[2] if block[1] == "python" else f"%%bash\n{block[2]}"
        cells.append(code | {"source": source.rstrip("\n").splitlines(keepends=True)})
        last = block.end()
    cells += _markdown_cell(text[last:])
    cells[0]["source"].append(f"\nInstall what is needed with `{EXTRAS}`.\n")
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def setup(app):
    """Run the tutorials of a build, and put the notebooks beside the pages."""
    app.connect("builder-inited", _run_pages)
    app.connect("source-read", _show_results)
    app.connect("build-finished", _write_notebooks)
    return {"parallel_read_safe": True}


def _state(page):
    """A digest of everything that a page's results depend on: the page, the program, this file."""
    digest = hashlib.sha256()
    for path in [page, Path(__file__), *sorted((ROOT / "src" / "discreet").rglob("*.py"))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _run(block, name, namespace):
    """Run one block; what it printed, the value of its last line, the pictures it wrote."""
    before = {p: p.stat().st_mtime_ns for p in Path().glob("*.*")}
    tree = ast.parse(block, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), namespace)
        value = None if last is None else _value(last, name, namespace)
    shown = [{"text": printed.getvalue()}] if printed.getvalue().strip() else []
    # a path says where a file was written: nothing for a reader, and another one at each run
    shown += [] if value is None or isinstance(value, Path) else [_display(value)]
    for path in sorted(Path().glob("*.*")):
        if path.suffix in PICTURES and before.get(path) != path.stat().st_mtime_ns:
            shown.append(_picture(path.read_bytes(), path.suffix, path.stem))
    return shown


def _type(block):
    """What commands print when they are typed in a shell."""
    words = ["bash", "-e", "-c", block]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    where = os.environ | {"PATH": programs}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=where)
    if done.returncode:
        raise RuntimeError(f"{block}{done.stdout}{done.stderr}")
    return [{"text": done.stdout}] if done.stdout.strip() else []


def _value(expression, name, namespace):
    return eval(compile(ast.Expression(expression.value), name, "eval"), namespace)


def _display(value):
    """A value as a notebook shows it: a chart, a table in HTML, or its text."""
    if type(value).__module__.startswith("altair"):
        from discreet.assessment import plots  # with a chart at hand the package is there

        return _picture(plots.to_svg(value).encode(), ".svg", "chart")
    as_html = getattr(value, "_repr_html_", None)
    shown = None if as_html is None else as_html()
    return {"text": f"{value!r}\n"} if shown is None else {"html": shown, "text": f"{value!r}\n"}


def _picture(content, ending, name):
    return {"picture": base64.b64encode(content).decode(), "kind": PICTURES[ending], "name": name}


def _as_html(item):
    if "html" in item:
        return _raw(f'<div class="output output-html">{item["html"]}</div>')
    if "text" in item:
        lines = "".join(map(_line, _unfold(item["text"].splitlines())))
        return _raw(f'<div class="output"><pre>{lines}</pre></div>')
    source = f"data:{item['kind']};base64,{item['picture']}"
    words = html.escape(item["name"].replace("_", " ").replace("-", " "))
    return _raw(f'<div class="output"><img src="{source}" alt="Picture: {words}"></div>')


def _unfold(lines):
    """Lines in which a statement was broken to fit a terminal, as one: pages fold by themselves."""
    whole, last = [], ""
    for line in lines:
        in_list = bool(whole) and whole[-1].startswith("- ") and line.startswith("  ")
        words = line.removeprefix("  ") if in_list else line
        is_rest = not words.startswith((" ", "-", "*")) and "  " not in words
        if words and is_rest and len(last) in _FULL and _is_sentence(last):
            whole[-1] += f" {words}"
        else:
            whole.append(line)
        last = line
    return whole


def _is_sentence(text):
    return len(text) > 40 and "  " not in text.strip()


def _line(text):
    """A line of output; sentences are folded to the page, lines of tables stay whole."""
    plain = html.escape(text)
    return f'<span class="words">{plain}</span>' if _is_sentence(text) else f"{plain}\n"


def _raw(content):
    return f"\n`````{{raw}} html\n{content}\n`````\n"


def _as_output(item):
    if "html" in item:
        data = {"text/html": item["html"], "text/plain": item["text"]}
    elif "text" in item:
        return {"output_type": "stream", "name": "stdout", "text": item["text"]}
    elif item["kind"] == "image/svg+xml":
        data = {item["kind"]: base64.b64decode(item["picture"]).decode()}
    else:
        data = {item["kind"]: item["picture"]}
    return {"output_type": "display_data", "data": data, "metadata": {}}


def _markdown_cell(text):
    """Text without links between pages, which lead nowhere once the file is downloaded."""
    plain = re.sub(r"\[([^\]]+)\]\((?![a-z]+:)[^)]*\)", r"\1", text).strip()
    lines = plain.splitlines(keepends=True)
    return [{"cell_type": "markdown", "metadata": {}, "source": lines}] if plain else []


def _run_pages(_app):
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(results, PAGES))


def _show_results(_app, docname, source):
    page = ROOT / "docs" / f"{docname}.md"
    if page in PAGES:
        source[0] = page_with_results(page, source[0])


def _write_notebooks(app, error):
    if error is None and app.builder.format == "html":
        for page in PAGES:
            path = Path(app.outdir) / "tutorials" / f"{page.stem}.ipynb"
            path.write_text(json.dumps(notebook(page), ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    chosen = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        execute(chosen)
