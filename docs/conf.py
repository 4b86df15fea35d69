"""Sphinx settings. Tutorials are run; a script beside the pages draws formulas, also offline."""

import re
import shutil
import sys
from pathlib import Path

from sphinx.util.inspect import TypeAliasForwardRef

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

project = "discreet"
author = "The discreet maintainers"
project_copyright = author
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "tutorials",
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
default_role = "code"
# arrays under the names of `discreet.arrays`, which the front page of the reference explains
_ARRAYS = ("ArrayLike", "npt.ArrayLike", "Array", "Real", "Whole", "Mask", "Index")
autodoc_type_aliases = {name: name.removeprefix("npt.") for name in _ARRAYS}
TypeAliasForwardRef.__repr__ = lambda self: self.name  # where an array is one of several types
maximum_signature_line_length = 90  # longer ones have a line for each argument
html_theme = "furo"
html_title = "discreet"
exclude_patterns = ["examples", "_build"]
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False
# What the theme leaves out for readers who listen, or have keys alone.
BARRIERS = {
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    "<pre>": '<pre tabindex="0">',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}
# A signature with a line for each argument: Sphinx makes a list of definitions without terms.
SIGNATURE = re.compile(r'(<span class="sig-paren">[(\[]</span>)\s*<dl>\s*(<dd>.*?)</dl>', re.DOTALL)
# Flags of commands are not broken after their hyphens, as browsers would.
FLAG, WHOLE_FLAG = '<span class="pre">--', '<span class="pre flag">--'
# Paths and long names may be broken after a stroke: tables would be wider than the page.
STROKES = re.compile(r'(?<=<span class="pre">)[^<]*[/_][^<]*(?=</span>)')
FORMULAS = Path(__file__).parents[1] / "tests/browser/node_modules/mathjax/es5/tex-svg.js"
if FORMULAS.exists():  # `make docs` brings it; without it formulas stay in TeX
    mathjax_path = FORMULAS.name


def setup(app):
    """Put the script of the formulas beside the pages, and take barriers away from these."""
    app.connect("build-finished", _copy_formulas)
    app.connect("build-finished", _remove_barriers)


def _remove_barriers(app, error):
    if error is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            for found, mended in BARRIERS.items():
                text = text.replace(found, mended)
            text = SIGNATURE.sub(_as_lines, text).replace(FLAG, WHOLE_FLAG)
            text = STROKES.sub(lambda code: re.sub("([/_])", r"\1<wbr>", code[0]), text)
            page.write_text(text, encoding="utf-8")


def _as_lines(signature):
    lines = signature[2].replace("<dd>", '<span class="argument">').replace("</dd>", "</span>")
    return f'{signature[1]}<span class="arguments">{lines}</span>'


def _copy_formulas(app, error):
    if error is None and FORMULAS.exists():
        shutil.copy(FORMULAS, Path(app.outdir) / "_static" / FORMULAS.name)
