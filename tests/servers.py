"""Real servers for the tests: started on free ports, stopped by their ids."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PASSWORD = "only-for-tests"


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _postgres_bin() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise RuntimeError("PostgreSQL's server is missing: sudo apt-get install postgresql")
    return found[-1].parent


def _as_postgres(command: list[str]) -> list[str]:
    """PostgreSQL refuses to run as root; then it runs as its own user."""
    return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


class Postgres:
    """A temporary cluster on a free port, with a log of every query."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="discreet-pg-"))
        self.port = free_port()
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Address with user and password."""
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Make the cluster and wait until it answers."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:
            for path in (self.folder, secret):
                shutil.chown(path, "postgres")
        initdb = [str(_postgres_bin() / "initdb"), "-D", str(self.data), "-U", "postgres"]
        initdb += ["-A", "scram-sha-256", f"--pwfile={secret}"]
        initdb += ["--encoding=UTF8", "--locale=C.UTF-8"]
        subprocess.run(_as_postgres(initdb), check=True, stdout=subprocess.DEVNULL)
        self.serve()

    def serve(self) -> None:
        """Start the server process on the cluster."""
        options = ["-p", str(self.port), "-k", str(self.folder), "-h", "127.0.0.1"]
        options += ["-c", "log_statement=all", "-c", "fsync=off"]
        command = [str(_postgres_bin() / "postgres"), "-D", str(self.data), *options]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(_as_postgres(command), stdout=log, stderr=log)
        self._wait()

    def _wait(self, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        ready = [str(_postgres_bin() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready).returncode:
            if time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start: {self.log.read_text()[-2000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the server process, and nothing else."""
        pid_file = self.data / "postmaster.pid"
        if pid_file.exists():
            stop = [str(_postgres_bin() / "pg_ctl"), "-D", str(self.data)]
            stop += ["-m", "immediate", "stop"]
            subprocess.run(_as_postgres(stop), stdout=subprocess.DEVNULL)
        if self.process is not None:
            self.process.wait(timeout=30)

    def remove(self) -> None:
        """Remove the cluster."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """A running PostgreSQL for the length of the block."""
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.stop()
        server.remove()


@contextlib.contextmanager
def spark(workers: int = 2) -> Iterator[object]:
    """A Spark session whose executors are worker processes of their own."""
    if shutil.which("java") is None:
        raise RuntimeError("Spark needs Java: sudo apt-get install default-jre-headless")
    import pyspark
    from pyspark.sql import SparkSession

    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    folder = tempfile.mkdtemp(prefix="discreet-spark-")
    session = (
        SparkSession.builder.master(f"local-cluster[{workers},1,1024]")
        .appName("discreet-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.executor.memory", "1g")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.local.dir", folder)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    try:
        session.sparkContext.setLogLevel("ERROR")
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)
