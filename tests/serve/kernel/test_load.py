"""A file is what its name says, or it is named as a fault; no figure is shown in its place."""

import hashlib
import random

from tests.serve.kernel.node import run_node

LOADED = """
const { Folder, FileFault } = await client("load.js");
const asked = [];
const read = async (path) => {
  asked.push(path);
  if (!(path in data.files)) throw new FileFault("missing", path);
  return Uint8Array.from(data.files[path]);
};
const folder = new Folder(read);
const found = [];
for (const path of data.paths) {
  const said = await folder.bytes(path).then((b) => [...b], (e) => `${e.kind}: ${e.message}`);
  found.push(said);
}
return [found, asked];
"""


def named(content):
    return f"files/{hashlib.sha256(content).hexdigest()[:32]}.bin"


def loaded(files, paths):
    return run_node(LOADED, {"files": {p: list(c) for p, c in files.items()}, "paths": paths})


def test_a_file_that_is_not_what_its_name_says_is_a_fault():
    right, other = b"figures of 2026", b"figures of 2027"
    path = named(right)
    flipped = bytes([right[0] ^ 1]) + right[1:]
    for content in (flipped, right[:-1], other, b""):
        (said,), _ = loaded({path: content}, [path])
        assert said == f"damaged: The file {path} of this site is not as it was published."
    (said,), _ = loaded({}, [path])
    assert said == f"missing: The file {path} of this site is missing."
    (said,), _ = loaded({path: right}, [path])
    assert bytes(said) == right


def test_a_file_without_its_content_in_its_name_is_never_taken():
    (said,), _ = loaded({"files/figures.bin": b"x"}, ["files/figures.bin"])
    assert said.startswith("damaged:")


def test_a_file_is_read_once_and_a_fault_is_asked_for_again():
    right = b"abc"
    path, gone = named(right), named(b"gone")
    _, asked = loaded({path: right}, [path, path, gone, gone])
    assert asked == [path, gone, gone]


def test_the_digest_for_plain_http_is_sha256():
    draws = random.Random(4)
    sizes = [*range(130), 1000, 4096, 100_001]
    asked = [draws.randbytes(n) for n in sizes]
    body = """const { sha256 } = await client("sha256.js");
    return data.map((one) => Buffer.from(sha256(Buffer.from(one, "hex"))).toString("hex"));"""
    expected = [hashlib.sha256(one).hexdigest() for one in asked]
    assert run_node(body, [one.hex() for one in asked]) == expected
