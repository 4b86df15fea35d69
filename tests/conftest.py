"""Shared settings of the test suite, and a limit on what its processes hold in memory."""

import os
import resource

import pytest
from hypothesis import settings

from tests.fast import is_checked, is_checked_whole
from tests.long import in_order, scope_of

# One thread of linear algebra in a process, and in those that it starts: the cores are taken by
# the workers. OpenBLAS' threads wait for each other by turning in circles, and where cores are
# short a Cholesky factor of 210 rows takes 80 ms instead of 0.3. It reads this when NumPy loads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Laws that need more than fifty examples say so.
settings.register_profile("discreet", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("discreet")

MOST_MEMORY = 2 * 2**30
"""Bytes that a process of the tests, or one that a test starts, may hold at its peak."""
TOO_LARGE = pytest.StashKey[list[str]]()


def peak() -> int:
    """The most bytes that this process, or one of those it started and waited for, has held."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) * 1024


def pytest_addoption(parser):
    parser.addoption("--unchecked", action="store_true", help="leave out what `make check` runs")


def pytest_ignore_collect(collection_path, config):
    """Files of which nothing is left to run are not even read."""
    if config.getoption("unchecked") and is_checked_whole(collection_path):
        return True
    return None


def pytest_collection_modifyitems(config, items):
    if config.getoption("unchecked"):
        known = [is_checked(item.nodeid, "slow" in item.keywords) for item in items]
        config.hook.pytest_deselected(items=[i for i, k in zip(items, known, strict=True) if k])
        items[:] = [item for item, is_known in zip(items, known, strict=True) if not is_known]
    if hasattr(config, "workerinput"):
        items[:] = in_order(items)


def pytest_configure(config):
    config.stash[TOO_LARGE] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note the test in which a process grew beyond the limit; the next ones inherit its peak."""
    before = peak()
    result = yield
    if before <= MOST_MEMORY < (after := peak()):
        item.config.stash[TOO_LARGE].append(f"{item.nodeid}: {after / 2**30:.1f} GB")
    return result


def pytest_sessionfinish(session):
    found = session.config.stash[TOO_LARGE]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["too large"] = found
    elif found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files by worker, the longest first, and all that need Spark in one: it is started once."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByServer(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return scope_of(nodeid)

    config.option.loadscopereorder = False  # by number of tests; they come in the order they run
    return ByServer(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """What a worker of pytest-xdist has noted."""
    node.config.stash[TOO_LARGE] += getattr(node, "workeroutput", {}).get("too large", [])


def pytest_terminal_summary(terminalreporter, config):
    if found := config.stash[TOO_LARGE]:
        terminalreporter.section(f"more than {MOST_MEMORY / 2**30:g} GB in memory", red=True)
        for line in found:
            terminalreporter.line(line)
