"""Records in an object store, against the server of moto, which the tests start as its own process.

moto's dependencies contradict our pins, so `make system` puts it into an environment of its own.
"""

import gzip
import io
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import discreet as dc
from discreet.errors import DataError, EngineError, ParameterError

PROGRAM = Path(__file__).parents[2] / ".deps" / "moto" / "bin" / "moto_server"
pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="`make system` was not run")
FRAME = pa.table({"id": ["a", "b", "c"], "place": ["x", "y", "x"]})
PASSWORD = "PASSWORD-OF-THE-STORE"


class Store:
    """A store of its own, with a bucket `records`."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [PROGRAM, "-H", "127.0.0.1", "-p", str(self.port)]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        self._wait()
        self.system = fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{self.port}", scheme="http", allow_bucket_creation=True
        )
        self.system.create_dir("records")

    def _wait(self):
        for _ in range(200):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/moto-api/"):
                    return
            except OSError:
                time.sleep(0.05)
        self.end()
        raise RuntimeError("moto's server did not start")

    def put(self, name, content):
        with self.system.open_output_stream(f"records/{name}", compression=None) as stream:
            stream.write(content)
        return self.address(name)

    def address(self, name):
        here = f"endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1"
        return f"s3://user:{PASSWORD}@records/{name}?{here}"

    def ask_for_credentials(self):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/moto-api/reset-auth",
            data=b"0",
            method="POST",
            headers={"Content-Type": "text/plain"},
        )
        urllib.request.urlopen(request).close()

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module", autouse=True)
def environment():
    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_ACCESS_KEY_ID", "user")
    patch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD)
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield
    patch.undo()


@pytest.fixture(scope="module")
def store(environment):
    store = Store()
    yield store
    store.end()


def parquet(frame=FRAME):
    stream = io.BytesIO()
    pq.write_table(frame, stream)
    return stream.getvalue()


def counts(data):
    return data.tabulate("place").z.tolist()


GERMAN = "id;place;v\na;x;1,5\nb;y;2,5\nc;x;1.234,5\n".encode("cp1252")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("people.parquet", parquet()),
        ("people.csv", b"id,place\na,x\nb,y\nc,x\n"),
        ("german.csv", GERMAN),
        ("german.csv.gz", gzip.compress(GERMAN)),
    ],
    ids=["parquet", "csv", "german", "packed"],
)
def test_objects_are_read_like_files(store, name, content):
    data = dc.open(store.put(name, content), id="id")
    assert counts(data) == [2, 1, 3]
    assert data.data_set.name == name.split(".")[0]
    assert PASSWORD not in repr(data)
    assert "?" not in data.origin


def test_all_objects_below_a_prefix_are_read(store):
    for k in (0, 1):
        store.put(f"parts/{k}.parquet", parquet())
    assert counts(dc.open(store.address("parts"))) == [4, 2, 6]


@pytest.mark.parametrize(
    ("name", "content", "kind", "said"),
    [
        ("absent.parquet", None, DataError, "there is no object s3://records/absent.parquet"),
        ("half.parquet", parquet()[:-99], DataError, "cut off or damaged"),
        ("half.csv.gz", gzip.compress(GERMAN)[:-20], DataError, "cut off or damaged"),
        ("book.xlsx", b"PK", ParameterError, "copy other files here"),
    ],
    ids=["absent", "half a file", "half a packed text", "a book"],
)
def test_objects_that_cannot_be_read_end_in_a_named_error(store, name, content, kind, said):
    address = store.address(name) if content is None else store.put(name, content)
    with pytest.raises(kind, match=said) as caught:
        dc.open(address)
    assert PASSWORD not in str(caught.value)


def test_an_address_that_cannot_be_read_does_not_print_the_password():
    with pytest.raises(ParameterError, match="s3://records/a.csv") as caught:
        dc.open(f"s3://user:{PASSWORD}@records/a.csv?speed=high")
    assert PASSWORD not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.slow
def test_refused_credentials_and_lost_connections_are_named():
    store = Store()
    try:
        address = store.put("people.parquet", parquet())
        data = dc.open(address)
        store.ask_for_credentials()
        with pytest.raises(EngineError, match="refused the credentials") as refused:
            dc.open(address)
    finally:
        store.end()
    with pytest.raises(EngineError, match="connection to the object store was lost") as lost:
        counts(data)
    for caught in (refused, lost):
        assert PASSWORD not in str(caught.value)
        assert PASSWORD not in str(caught.value.__cause__)
