"""The order in which files are run: the longest first, so that no worker waits at the end.

Seconds are those of one run on two cores, rounded; a file that is not named here comes after
those that are, by its number of tests. What needs Spark is one scope: the server starts once.
"""

from collections import Counter

SECONDS = {
    "tests/engines/": 85,
}


def scope_of(nodeid: str) -> str:
    """What one worker runs without a break: a file, or all that need Spark."""
    engines = "tests/engines/"
    return engines if nodeid.startswith(engines) else nodeid.split("::", 1)[0]


def in_order(items):
    """The tests in the order in which workers should take them."""
    scopes = [scope_of(item.nodeid) for item in items]
    tests = Counter(scopes)
    rank = {scope: (-SECONDS.get(scope, 0), -n) for scope, n in tests.items()}
    places = sorted(range(len(items)), key=lambda i: (*rank[scopes[i]], scopes[i]))
    return [items[i] for i in places]
