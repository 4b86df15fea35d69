"""Real servers for the tests: started on free ports, stopped by their ids."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PASSWORD = "only-for-tests"
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # short lives need no careful compiler


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
    """A temporary cluster on a free port, with a log of every query unless set otherwise."""

    def __init__(self, **settings: str) -> None:
        self.settings = {"log_statement": "all", "fsync": "off", **settings}
        self.folder = Path(tempfile.mkdtemp(prefix="discreet-pg-"))
        self.port = free_port()
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Address with user and password."""
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    @property
    def environment(self) -> dict[str, str]:
        """The same for libpq, as people give it."""
        who = {"PGUSER": "postgres", "PGPASSWORD": PASSWORD, "PGDATABASE": "postgres"}
        return {**who, "PGHOST": "127.0.0.1", "PGPORT": str(self.port)}

    def start(self) -> None:
        """Make the cluster and wait until it answers."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if os.geteuid() == 0:
            for path in (self.folder, secret):
                shutil.chown(path, "postgres")
        initdb = [str(_postgres_bin() / "initdb"), "-D", str(self.data), "-U", "postgres"]
        initdb += ["-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync"]
        initdb += ["--encoding=UTF8", "--locale=C.UTF-8"]
        subprocess.run(_as_postgres(initdb), check=True, stdout=subprocess.DEVNULL)
        self.serve()

    @property
    def is_running(self) -> bool:
        """Whether the server process is there."""
        return self.process is not None and self.process.poll() is None

    def serve(self) -> None:
        """Start the server process on the cluster."""
        options = ["-p", str(self.port), "-k", str(self.folder), "-h", "127.0.0.1"]
        for name, value in self.settings.items():
            options += ["-c", f"{name}={value}"]
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
def postgres(**settings: str) -> Iterator[Postgres]:
    """A running PostgreSQL for the length of the block."""
    server = Postgres(**settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        server.remove()


def _spark_home() -> Path:
    if shutil.which("java") is None:
        raise RuntimeError("Spark needs Java: sudo apt-get install default-jre-headless")
    with quiet_pyspark():
        import pyspark
    home = Path(pyspark.__file__).parent
    os.environ["SPARK_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    return home


@contextlib.contextmanager
def quiet_pyspark() -> Iterator[None]:
    """PySpark warns of every pandas after 2; what we use of it is Arrow."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
        yield


@contextlib.contextmanager
def spark(workers: int = 2, cores: int = 1, **settings: str) -> Iterator[Any]:
    """A Spark session whose executors are worker processes of their own."""
    _spark_home()
    with quiet_pyspark():
        from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="discreet-spark-")
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": folder,
        "spark.driver.extraJavaOptions": _QUICK,
        "spark.executor.extraJavaOptions": _QUICK,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        **settings,
    }
    builder = SparkSession.builder.master(f"local-cluster[{workers},{cores},1024]")
    with quiet_pyspark():
        session = builder.appName("discreet-tests").config(map=chosen).getOrCreate()
    try:
        session.sparkContext.setLogLevel("OFF")
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)


def executors(parent: int) -> list[int]:
    """Ids of the executor processes that descend from a process."""
    listed = subprocess.run(["ps", "-ewwo", "pid=,ppid=,args="], capture_output=True, text=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    family, found = {parent}, []
    for _ in rows:  # parents may be listed after their children
        family |= {int(pid) for pid, above, _ in rows if int(above) in family}
    for pid, _, command in rows:
        if int(pid) in family and "CoarseGrainedExecutorBackend" in command:
            found.append(int(pid))
    return found


@contextlib.contextmanager
def standalone_spark() -> Iterator[str]:
    """The address of a Spark cluster of one worker, both processes of their own."""
    launcher = str(_spark_home() / "bin" / "spark-class")
    folder = Path(tempfile.mkdtemp(prefix="discreet-spark-"))
    port, address = free_port(), "127.0.0.1"
    package = "org.apache.spark.deploy"
    master = [f"{package}.master.Master", "--host", address, "--port", str(port)]
    worker = [f"{package}.worker.Worker", "--cores", "1", "--memory", "1g"]
    worker += ["--work-dir", str(folder), f"spark://{address}:{port}"]
    running = []
    os.environ["JDK_JAVA_OPTIONS"] = _QUICK  # for whoever uses the cluster, too
    try:
        for command in (master, worker):
            options = [*command, "--webui-port", "0"]
            running.append(_logged([launcher, *options], folder / "spark.log"))
        _wait_for("Registering worker", folder / "spark.log")
        yield f"spark://{address}:{port}"
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(timeout=30)
        del os.environ["JDK_JAVA_OPTIONS"]
        shutil.rmtree(folder, ignore_errors=True)


def _logged(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as file:
        return subprocess.Popen(command, stdout=file, stderr=file)


def _wait_for(words: str, log: Path, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while words not in log.read_text():
        if time.monotonic() > deadline:
            raise RuntimeError(f"Spark did not start: {log.read_text()[-2000:]}")
        time.sleep(0.2)
