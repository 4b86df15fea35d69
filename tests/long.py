"""The order in which files are run: the longest first, so that no worker waits at the end.

What needs Spark is one scope: the server starts once.
"""

from collections import Counter

LONG = (
    "tests/test_docs.py",
    "tests/engines/",
    "tests/attacks/",
    "tests/browser/",
    "tests/serve/",
    "tests/office/",
    "tests/attack/",
    "tests/publication/",
    "tests/studies/",
    "tests/test_",
)
"""Pages, servers, browsers and attacks: few tests that take long. Others follow, many and quick."""


def scope_of(nodeid: str) -> str:
    """What one worker runs without a break: a file, or all that need Spark."""
    engines = "tests/engines/"
    return engines if nodeid.startswith(engines) else nodeid.split("::", 1)[0]


def in_order(items):
    """The tests in the order in which workers take them: as listed, then by number of tests."""
    scopes = [scope_of(item.nodeid) for item in items]
    tests = Counter(scopes)
    listed = {s: next((k for k, p in enumerate(LONG) if s.startswith(p)), len(LONG)) for s in tests}
    rank = {scope: (listed[scope], -n, scope) for scope, n in tests.items()}
    return [items[i] for i in sorted(range(len(items)), key=lambda i: rank[scopes[i]])]
