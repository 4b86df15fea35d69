"""Charts beside a table, drawn as SVG: bars, lines, a heat map and an age–sex pyramid.

Each chart is one file with a function that draws a `Picture`; `CHARTS` lists them by the name that
an address uses. Colours are told apart by lightness and patterns as well, so that charts can be
read on paper and by colour-blind people.
"""
