"""A site of files says what it consists of; whatever is missing, damaged or exchanged is named."""

import hashlib
import json
import shutil
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.errors import DataError, ParameterError
from discreet.serve import InnerSource, Site, SiteConfig, write_site
from discreet.serve.static.manifest import check_files
from tests.serve.sites import inner_table, once


def site_of(table=None, title="Small site"):
    dataset = once()
    if table is not None:
        dataset = replace(dataset, source=InnerSource(table))
    return Site(SiteConfig(title), {"once": dataset})


def next_edition():
    """The same table a year later, with other figures."""
    table = inner_table()
    return replace(table, edition="2027", values=table.values + 1)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    write_site(site_of(), folder, parquet=True)
    return folder


@pytest.fixture
def out(built, tmp_path):
    shutil.copytree(built, tmp_path / "out")
    return tmp_path / "out"


def tree(folder):
    files = (p for p in folder.rglob("*") if p.is_file())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


def keys(folder, name="key"):
    """A pair of keys as openssl writes them."""
    made = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.public.pem"
    form, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    private.write_bytes(made.private_bytes(form, serialization.PrivateFormat.PKCS8, plain))
    known = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(made.public_key().public_bytes(form, known))
    return private, public


def test_a_whole_site_has_no_fault(out):
    found = check_files(out)
    assert found.faults == ()
    assert found.editions == {"once": "2026"}
    assert found.files == len(tree(out)) - 2  # but for site.json and the manifest
    assert found.older == 0
    assert not found.is_signed


def a_cell_file(out):
    return max((out / "files").glob("*.bin"), key=lambda path: path.stat().st_size)


def test_every_single_file_is_looked_at(out):
    for path, content in tree(out).items():
        if path == "site.json":
            continue
        (out / path).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        try:
            faults = check_files(out).faults
        except DataError as error:  # the manifest itself
            faults = (str(error),)
        assert any(path in fault for fault in faults), path
        (out / path).write_bytes(content)
    assert check_files(out).faults == ()


def test_what_is_missing_truncated_exchanged_or_unknown_is_named(out):
    cells = a_cell_file(out)
    name, content = cells.relative_to(out).as_posix(), cells.read_bytes()
    cells.unlink()
    assert check_files(out).faults == (f"{name} is missing.",)
    cells.write_bytes(content[:-1])
    assert f"{name} has" in check_files(out).faults[0]
    other = next(p for p in (out / "files").glob("*.bin") if p != cells)
    cells.write_bytes(other.read_bytes())
    assert check_files(out).faults[0].startswith(name)
    cells.write_bytes(content)
    (out / "extra.html").write_text("hello")
    assert check_files(out).faults == ("extra.html is no file of this site.",)


def test_files_that_no_edition_has_are_named_however_they_are_called(out):
    """Somebody puts pages of his own into the folder, under names such as the site's own."""
    write_site(site_of(next_edition()), out, parquet=True)
    page = b"<script>alert(1)</script>"
    name = hashlib.sha256(page).hexdigest()[:32]
    planted = sorted(["app/" + "0" * 32 + "/x.html", f"files/{name}.html", "d/other/index.html"])
    for path in planted:
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(page)
    assert check_files(out).faults == tuple(f"{path} is no file of this site." for path in planted)


def test_links_to_elsewhere_are_named(out, tmp_path):
    """File servers follow them, and what lies there would be handed out."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "keys.secret").write_text("1")
    (out / "app" / "more").symlink_to(tmp_path / "secret")
    (out / "files" / "gone").symlink_to(tmp_path / "nowhere")
    expected = ("app/more is no file of this site.", "files/gone is no file of this site.")
    assert check_files(out).faults == expected


def test_a_data_set_that_is_taken_off_leaves_with_the_edition_after_the_next(tmp_path):
    site = site_of()
    both = {"once": site.datasets["once"], "more": replace(once(), name="more")}
    write_site(Site(site.config, both), tmp_path)
    for is_there in (True, False):
        write_site(site_of(next_edition()), tmp_path)
        assert check_files(tmp_path).faults == ()
        assert (tmp_path / "d" / "more" / "index.html").exists() is is_there
    assert not (tmp_path / "d" / "more").exists()


def test_a_head_that_names_other_files_is_found(out):
    head = json.loads((out / "site.json").read_text(encoding="utf-8"))
    head["client"][1] = "sha256-AAAA"
    (out / "site.json").write_text(json.dumps(head))
    assert check_files(out).faults == ("site.json does not say what the manifest says of it.",)


def test_two_truths_with_one_release_are_the_same_bytes(tmp_path):
    """Files follow from published values and codes; the order of cells in a build is no matter."""
    table = inner_table()
    back = slice(None, None, -1)
    codes = tuple(column[back] for column in table.codes)
    turned = replace(table, codes=codes, values=table.values[back])
    write_site(site_of(table), tmp_path / "one", parquet=True)
    write_site(site_of(turned), tmp_path / "other", parquet=True)
    assert tree(tmp_path / "one") == tree(tmp_path / "other")
    write_site(site_of(next_edition()), tmp_path / "third", parquet=True)
    assert tree(tmp_path / "third") != tree(tmp_path / "one")


def test_an_edition_stays_until_the_one_after_the_next(out):
    manifest = json.loads((out / "site.json").read_text(encoding="utf-8"))["manifest"]
    first = set(tree(out)) - {manifest}
    write_site(site_of(next_edition()), out, parquet=True)
    assert first <= set(tree(out))
    found = check_files(out)
    assert (found.editions, found.faults) == ({"once": "2027"}, ())
    assert found.older > 0
    third = replace(next_edition(), edition="2028", values=inner_table().values + 2)
    write_site(site_of(third), out, parquet=True)
    gone = first - set(tree(out))
    assert gone
    assert all(path.startswith(("files/", "app/")) for path in gone)
    head = json.loads((out / "site.json").read_text(encoding="utf-8"))
    assert {head["site"], head["manifest"]} <= set(tree(out))


def test_an_edition_that_could_not_be_written_leaves_the_one_before(out, monkeypatch):
    before = (out / "site.json").read_bytes()
    monkeypatch.setattr("discreet.serve.static.build.seal", _stopped)
    with pytest.raises(KeyboardInterrupt):
        write_site(site_of(next_edition()), out)
    assert (out / "site.json").read_bytes() == before
    faults = check_files(out).faults  # of the edition that is not published
    assert {fault.partition(" ")[2] for fault in faults} == {"is no file of this site."}
    monkeypatch.undo()
    write_site(site_of(next_edition()), out)
    assert check_files(out).faults == ()


def _stopped(*_):
    raise KeyboardInterrupt


FORGED = [
    *("[]", "5", "{}", '{"files": [], "head": {}, "editions": {}}', "no JSON"),
    '{"files": {"a": 5}, "head": {}, "editions": {}}',
    '{"files": {"a": {"sha256": "0", "bytes": "1"}}, "head": {}, "editions": {}}',
    '{"files": {"../a": {"sha256": "0", "bytes": 1}}, "head": {}, "editions": {}}',
    '{"files": {"/etc/hosts": {"sha256": "0", "bytes": 1}}, "head": {}, "editions": {}}',
    '{"files": {}, "head": {}, "editions": {"once": {}}}',
]


@pytest.mark.parametrize("text", FORGED)
def test_a_manifest_that_somebody_else_wrote_is_told(out, text):
    name = f"files/{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
    (out / name).write_text(text)
    head = json.loads((out / "site.json").read_text(encoding="utf-8"))
    (out / "site.json").write_text(json.dumps({**head, "manifest": name}))
    with pytest.raises(DataError, match="is no manifest of a site"):
        check_files(out)


def test_a_page_is_no_manifest(out):
    head = json.loads((out / "site.json").read_text(encoding="utf-8"))
    for name in ("d/once/index.html", "../site.json", "files/", ""):
        (out / "site.json").write_text(json.dumps({**head, "manifest": name}))
        with pytest.raises(DataError, match="missing or not as it was written"):
            check_files(out)


def test_a_signature_is_of_this_key_and_this_manifest(tmp_path):
    out = tmp_path / "out"
    private, public = keys(tmp_path)
    _, other = keys(tmp_path, "other")
    write_site(site_of(), out, sign=private)
    assert check_files(out, public).faults == ()
    assert check_files(out).is_signed
    assert "was not made with this key" in check_files(out, other).faults[0]
    signed = json.loads((out / "site.json").read_text(encoding="utf-8"))["signature"]
    write_site(site_of(next_edition()), out)
    assert check_files(out, public).faults == ("site.json carries no ed25519 signature.",)
    head = json.loads((out / "site.json").read_text(encoding="utf-8"))
    (out / "site.json").write_text(json.dumps({**head, "signature": signed}))
    assert "for this manifest" in check_files(out, public).faults[0]


def test_a_key_of_another_kind_is_refused(tmp_path):
    form, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    wrong = tmp_path / "x.pem"
    x25519 = X25519PrivateKey.generate()
    wrong.write_bytes(x25519.private_bytes(form, serialization.PrivateFormat.PKCS8, plain))
    with pytest.raises(ParameterError, match="no private Ed25519 key"):
        write_site(site_of(), tmp_path / "out", sign=wrong)
    assert not (tmp_path / "out" / "site.json").exists()
    with pytest.raises(ParameterError, match="cannot read the key"):
        check_files(tmp_path, tmp_path / "absent.pem")


def test_a_folder_that_is_no_site_is_refused(tmp_path):
    with pytest.raises(DataError, match="no site of files"):
        check_files(tmp_path)


def test_parquet_has_the_cells_of_the_table(out):
    head = json.loads((out / "site.json").read_text(encoding="utf-8"))
    told = json.loads((out / head["site"]).read_text(encoding="utf-8"))
    found = pq.read_table(out / told["datasets"]["once"]["parquet"])
    assert found.column_names == ["region", "age", "sex", "count"]
    assert sum(found["count"].to_pylist()) == inner_table().values.sum()


def test_the_command_says_what_it_found(out):
    done = CliRunner().invoke(app, ["check", "site", str(out)])
    assert done.exit_code == 0, done.output
    assert "once (2026)" in done.output
    cells = a_cell_file(out)
    cells.unlink()
    done = CliRunner().invoke(app, ["check", "site", str(out)])
    assert done.exit_code != 0
    assert cells.name in done.output
