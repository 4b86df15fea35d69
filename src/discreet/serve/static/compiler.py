"""Jinja's templates as one JavaScript module: the pages of files and of servers have one source.

Jinja's own parser reads a template, white space included, and each node of its tree is written as
JavaScript, in terms of `client/runtime.js`. A node that the pages do not use is refused when a site
is built, never drawn wrongly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jinja2 import Environment, nodes

from discreet.errors import DataError

PAGES = (
    *("about", "base", "builder", "catalogue", "dataset", "editor", "error", "icons", "notes"),
    *("panel", "refusal", "table", "take"),
)
"""The templates of public pages."""
_BINARY = {nodes.Add: "add", nodes.Sub: "sub", nodes.Mul: "mul"}
_COMPARED = {"eq": "r.eq(%s, %s)", "ne": "!r.eq(%s, %s)", "in": "r.contains(%s, %s)"}
_COMPARED |= {"notin": "!r.contains(%s, %s)", "gt": "%s > %s", "lt": "%s < %s"}


def compile_templates(environment: Environment, names: Iterable[str] = PAGES) -> str:
    """The module that draws some templates: `templates`, by the names of their files."""
    parts = []
    for name in names:
        file = f"{name}.html"
        source, _, _ = environment.loader.get_source(environment, file)  # type: ignore[union-attr]
        parts.append(
            f"  {_text(file)}: {_TemplateWriter(file).template(environment.parse(source))}"
        )
    listed = ",\n".join(parts)
    return f'import * as r from "./runtime.js";\n\nexport const templates = {{\n{listed}\n}};\n'


def _text(value: Any) -> str:
    """A constant in JavaScript."""
    # Both separators end a line in older JavaScript, and are plain characters in JSON.
    told = json.dumps(value, ensure_ascii=False)
    return told.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


class _TemplateWriter:
    """Writes the nodes of one template; `c0`, `c1`, … are the scopes that names are found in."""

    def __init__(self, file: str) -> None:
        self._file, self._depth = file, 0

    def template(self, tree: nodes.Template) -> str:
        parent = next((self._value(n.template) for n in tree.find_all(nodes.Extends)), "null")
        blocks = {block.name: self._function(block.body) for block in tree.find_all(nodes.Block)}
        listed = ", ".join(f"{_text(name)}: {body}" for name, body in blocks.items())
        body = [n for n in tree.body if not isinstance(n, nodes.Extends)]
        if parent != "null":  # what a child says outside its blocks is not shown
            body = [n for n in body if not isinstance(n, (nodes.Block, nodes.Output))]
        root = self._function(body)
        return f"{{ parent: {parent}, blocks: {{ {listed} }}, root: {root} }}"

    def _function(self, body: Sequence[nodes.Node]) -> str:
        return f"(c{self._depth}, o, t) => {{ {self._lines(body)} }}"

    def _lines(self, body: Sequence[nodes.Node]) -> str:
        return " ".join(self._line(node) for node in body)

    @property
    def _scope(self) -> str:
        return f"c{self._depth}"

    def _within(self, body: Callable[[], str]) -> str:
        """What is written in a scope of its own."""
        self._depth += 1
        try:
            return body()
        finally:
            self._depth -= 1

    # Statements

    def _line(self, node: nodes.Node) -> str:
        write = getattr(self, f"_line_{type(node).__name__.lower()}", None)
        if write is None:
            raise self._refusal(node)
        found: str = write(node)
        return found

    def _refusal(self, node: nodes.Node) -> DataError:
        kind = type(node).__name__
        return DataError(
            f"{self._file}, line {node.lineno}: pages of files cannot say {kind}. Write the "
            "template without it, or teach discreet.serve.static.compiler to write it."
        )

    def _line_output(self, node: nodes.Output) -> str:
        return " ".join(
            f"o.push({_text(part.data)});"
            if isinstance(part, nodes.TemplateData)
            else f"o.push(r.shown({self._value(part)}));"
            for part in node.nodes
        )

    def _line_if(self, node: nodes.If) -> str:
        found = f"if (r.truth({self._value(node.test)})) {{ {self._lines(node.body)} }}"
        for other in node.elif_:
            found += (
                f" else if (r.truth({self._value(other.test)})) {{ {self._lines(other.body)} }}"
            )
        return f"{found} else {{ {self._lines(node.else_)} }}" if node.else_ else found

    def _line_for(self, node: nodes.For) -> str:
        targets = _text(self._names(node.target))
        within, listed = self._scope, self._value(node.iter)

        def body() -> str:
            test = "null" if node.test is None else f"({self._scope}) => {self._value(node.test)}"
            return f"{test}, ({self._scope}) => {{ {self._lines(node.body)} }}"

        parts = self._within(body)
        otherwise = f"() => {{ {self._lines(node.else_)} }}"
        return f"r.loop({within}, {targets}, {listed}, {parts}, {otherwise});"

    def _names(self, target: nodes.Node) -> list[str]:
        if isinstance(target, nodes.Tuple):
            return [name for item in target.items for name in self._names(item)]
        if not isinstance(target, nodes.Name):
            raise self._refusal(target)
        return [target.name]

    def _line_assign(self, node: nodes.Assign) -> str:
        names, value = self._names(node.target), self._value(node.node)
        if isinstance(node.target, nodes.Tuple):
            return f"r.assign({self._scope}, {_text(names)}, {value});"
        return f"{self._scope}[{_text(names[0])}] = {value};"

    def _line_macro(self, node: nodes.Macro) -> str:
        outer = self._scope

        def body() -> str:
            n_plain = len(node.args) - len(node.defaults)
            usual = ", ".join(
                f"{_text(a.name)}: ({self._scope}) => {self._value(d)}"
                for a, d in zip(node.args[n_plain:], node.defaults, strict=True)
            )
            names = _text([a.name for a in node.args])
            return f"{names}, {{ {usual} }}, ({self._scope}, o) => {{ {self._lines(node.body)} }}"

        return f"{outer}[{_text(node.name)}] = r.macro({outer}, {self._within(body)});"

    def _line_block(self, node: nodes.Block) -> str:
        return f"t.block({_text(node.name)}, {self._scope}, o);"

    def _line_include(self, node: nodes.Include) -> str:
        return f"t.include({self._value(node.template)}, {self._scope}, o);"

    def _line_fromimport(self, node: nodes.FromImport) -> str:
        names = [n if isinstance(n, tuple) else (n, n) for n in node.names]
        around = self._scope if node.with_context else "null"
        return f"t.take({self._value(node.template)}, {around}, {self._scope}, {_text(names)});"

    # Expressions

    def _value(self, node: nodes.Node) -> str:
        if isinstance(node, nodes.BinExpr) and type(node) in _BINARY:
            return f"r.{_BINARY[type(node)]}({self._value(node.left)}, {self._value(node.right)})"
        write = getattr(self, f"_value_{type(node).__name__.lower()}", None)
        if write is None:
            raise self._refusal(node)
        found: str = write(node)
        return found

    def _write_list(self, items: Iterable[nodes.Node]) -> str:
        return f"[{', '.join(map(self._value, items))}]"

    def _value_const(self, node: nodes.Const) -> str:
        return _text(node.value)

    def _value_name(self, node: nodes.Name) -> str:
        return f"r.name({self._scope}, {_text(node.name)})"

    def _value_list(self, node: nodes.List) -> str:
        return self._write_list(node.items)

    _value_tuple = _value_list

    def _value_dict(self, node: nodes.Dict) -> str:
        pairs = (f"[{self._value(p.key)}, {self._value(p.value)}]" for p in node.items)
        return f"new Map([{', '.join(pairs)}])"

    def _value_getattr(self, node: nodes.Getattr) -> str:
        return f"r.attr({self._value(node.node)}, {_text(node.attr)})"

    def _value_getitem(self, node: nodes.Getitem) -> str:
        if isinstance(node.arg, nodes.Slice):
            ends = (node.arg.start, node.arg.stop)
            first, last = ("null" if end is None else self._value(end) for end in ends)
            return f"r.slice({self._value(node.node)}, {first}, {last})"
        return f"r.item({self._value(node.node)}, {self._value(node.arg)})"

    def _value_not(self, node: nodes.Not) -> str:
        return f"!r.truth({self._value(node.node)})"

    def _value_neg(self, node: nodes.Neg) -> str:
        return f"-{self._value(node.node)}"

    def _value_and(self, node: nodes.And) -> str:
        return f"r.and({self._value(node.left)}, () => {self._value(node.right)})"

    def _value_or(self, node: nodes.Or) -> str:
        return f"r.or({self._value(node.left)}, () => {self._value(node.right)})"

    def _value_condexpr(self, node: nodes.CondExpr) -> str:
        other = '""' if node.expr2 is None else self._value(node.expr2)
        return f"(r.truth({self._value(node.test)}) ? {self._value(node.expr1)} : {other})"

    def _value_compare(self, node: nodes.Compare) -> str:
        if len(node.ops) != 1 or node.ops[0].op not in _COMPARED:
            raise self._refusal(node)
        pair = self._value(node.expr), self._value(node.ops[0].expr)
        return f"({_COMPARED[node.ops[0].op] % pair})"

    def _value_concat(self, node: nodes.Concat) -> str:
        return f"r.concat({self._write_list(node.nodes)})"

    def _value_call(self, node: nodes.Call) -> str:
        given = f"{self._write_list(node.args)}, {self._write_names(node.kwargs)}"
        if isinstance(node.node, nodes.Getattr):
            return f"r.method({self._value(node.node.node)}, {_text(node.node.attr)}, {given})"
        return f"r.call({self._value(node.node)}, {given})"

    def _write_names(self, kwargs: Sequence[nodes.Keyword | nodes.Pair]) -> str:
        named = ", ".join(f"{_text(k.key)}: {self._value(k.value)}" for k in kwargs)
        return f"{{ {named} }}" if kwargs else "null"

    def _value_filter(self, node: nodes.Filter) -> str:
        if node.node is None:
            raise self._refusal(node)
        given = f"{self._write_list(node.args)}, {self._write_names(node.kwargs)}"
        return f"r.filter({_text(node.name)}, {self._value(node.node)}, {given})"

    def _value_test(self, node: nodes.Test) -> str:
        if node.name == "defined":
            if not isinstance(node.node, nodes.Name):
                raise self._refusal(node)
            return f"({_text(node.node.name)} in {self._scope})"
        return (
            f"r.test({_text(node.name)}, {self._value(node.node)}, {self._write_list(node.args)})"
        )
