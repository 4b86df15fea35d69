"""Sphinx settings. Tutorials are run; a script beside the pages draws formulas, also offline."""

import shutil
import sys
from pathlib import Path

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
html_theme = "furo"
html_title = "discreet"
exclude_patterns = ["examples", "_build"]
html_static_path = ["_static"]
html_css_files = ["pages.css"]
FORMULAS = Path(__file__).parents[1] / "tests/browser/node_modules/mathjax/es5/tex-svg.js"
if FORMULAS.exists():  # `make docs` brings it; without it formulas stay in TeX
    mathjax_path = FORMULAS.name


def setup(app):
    """Put the script of the formulas beside the pages."""
    app.connect("build-finished", _copy_formulas)


def _copy_formulas(app, error):
    if error is None and FORMULAS.exists():
        shutil.copy(FORMULAS, Path(app.outdir) / "_static" / FORMULAS.name)
