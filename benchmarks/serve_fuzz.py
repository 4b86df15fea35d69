"""A hundred thousand odd requests to the table builder: no failure, no trace, no true count.

The requests are those of the tests, with other seeds, sent to the application in this process. The
data set on the fly has counts that are easy to recognise in pages, files, headers and logs.

Run: python -m benchmarks.serve_fuzz --requests 100000
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any


async def sent(app: Any, requests: Any, secret_counts: frozenset[int]) -> tuple[Any, list[Any]]:
    """How often each status came, and every request whose answer is at fault."""
    import httpx

    from tests.office import fuzz

    statuses: Counter[int] = Counter()
    faults = []
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        for method, path, headers, content in requests:
            answer = await client.request(method, path, headers=headers, content=content)
            statuses[answer.status_code] += 1
            if found := fuzz.faults(answer, secret_counts):
                faults.append((method, path, headers, content, found))
    return statuses, faults


def main() -> int:
    """Send the requests, print what came."""
    from discreet.serve.app import make_app
    from discreet.serve.office.database import OfficeDatabase
    from discreet.serve.office.office import Office
    from tests.office import fuzz

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=2)
    options = parser.parse_args()
    logging.disable()
    site, secret_counts = fuzz.recognisable_site()
    with tempfile.TemporaryDirectory() as folder:
        office = Office(None, OfficeDatabase(Path(folder) / "office.db"))
        app = make_app(site, office)
        office.rate_limiter.rate = 0
        began = time.perf_counter()
        asked = itertools.islice(fuzz.requests(options.seed), options.requests)
        statuses, faults = asyncio.run(sent(app, asked, secret_counts))
        office.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{options.requests:,} requests in {time.perf_counter() - began:.0f} s, {peak:.0f} MiB")
    print(f"Statuses: {dict(sorted(statuses.items()))}")
    print(f"Answers at fault: {len(faults)}")
    for fault in faults[:20]:
        print(f"  {fault}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
