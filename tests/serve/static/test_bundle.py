"""The client is one file, small enough for a slow line, and loses nothing of its modules."""

import gzip
import json

import pytest

from discreet.errors import DataError
from discreet.serve import write_site
from discreet.serve.static.build import START, bundle_modules, client_file, client_files
from discreet.serve.static.manifest import check_files
from tests.serve.kernel.node import run_node
from tests.serve.static.sites import static_site

MODULES = {
    "b.js": b"""import { two as second, next } from "./deep/a.js";
import * as all from "./deep/a.js";
export const [ONE, TWO] = [1, second];
export async function found() {
  return [ONE, TWO, next(TWO), all.two];
}
""",
    "deep/a.js": b"""export const two = 2;
export class Kept {}
export const next = (n) => n + 1;
""",
}


def test_modules_in_one_file_do_what_they_do_alone(tmp_path):
    (tmp_path / "client.js").write_text(bundle_modules(MODULES))
    body = 'const { modules } = await client("client.js"); return modules["b.js"].found();'
    assert run_node(body, folder=tmp_path) == [1, 2, 3, 2]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b'import "./deep/a.js";', "import"),
        (b"export default 1;", "export default"),
        (b'export { two } from "./deep/a.js";', "export"),
        (b'import { found } from "./b.js";', "need each other: b.js → b.js"),
    ],
)
def test_what_would_be_lost_is_refused(text, named):
    with pytest.raises(DataError, match=named):
        bundle_modules({**MODULES, "b.js": text})


def test_the_client_is_at_most_300_kb_when_it_is_compressed(tmp_path):
    write_site(static_site(), tmp_path)
    head = json.loads((tmp_path / "site.json").read_text(encoding="utf-8"))
    programs = [(tmp_path / head[part][0]).read_bytes() for part in ("client", "script")]
    assert sum(len(gzip.compress(one)) for one in programs) < 300_000
    assert check_files(tmp_path).faults == ()


def test_the_client_can_be_read():
    for name, content in {**client_files(), START: client_file(START)}.items():
        lines = content.decode().splitlines()
        assert lines[0].startswith("// "), name
        assert len(lines) <= 400, name
        assert max(map(len, lines)) <= 120, name
