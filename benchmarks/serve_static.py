"""A site of files beside the server of the same site: random questions, page by page, cell by cell.

Figures are compared with DuckDB's sums of the Parquet files as well, and so are files of whole
numbers with those of the server: sums of decimals hang on their order, in the last digit.

`python -m benchmarks.serve_static [QUESTIONS] [SEED]`; 10,000 questions take some four minutes.
`python -m benchmarks.static_sizes questions` puts the result on the page.
"""

import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

from discreet.serve.site.site import Site
from discreet.serve.static.build import write_site
from tests.serve.static.asking import ENDINGS, Client, difference, file_difference
from tests.serve.static.parquet_sums import ParquetSums
from tests.serve.static.questions import Questions
from tests.serve.static.sites import odd_site, server_of, static_site


def compare(n: int, seed: int) -> dict[str, int]:
    """Compare so many pages: how many were tables and pages, refusals, and different."""
    site = static_site()
    site = Site(site.config, {**site.datasets, **odd_site().datasets})
    server, seen = server_of(site), Counter()
    with tempfile.TemporaryDirectory() as folder:
        write_site(site, Path(folder), parquet=True)
        client, sums = Client(folder), ParquetSums(Path(folder))
        for k, (address, lang) in enumerate(Questions(site.datasets, seed).some(n)):
            if k % 1_000 == 0 and k > 0:
                print(f"{k:,} questions: {seen['different']} differ", flush=True)
            found = difference(server, client, site, address, lang, sums)
            status, ending = client.status, ENDINGS[k % len(ENDINGS)]
            is_table = status == 200 and re.match("/d/(?!decimals)[^/]+/table", address)
            if k % 7 == 0 and is_table and found is None:
                found = file_difference(server, client, address, lang, ending)
                seen["files"] += 1
            seen["pages" if status == 200 else "refusals"] += 1
            seen["different"] += found is not None
            if found is not None:
                print(found)
        client.close()
    told = {name: seen[name] for name in ("pages", "refusals", "files", "different")}
    return {"questions": n, "data sets": len(site.datasets), **told}


if __name__ == "__main__":
    numbers = [int(given) for given in sys.argv[1:]] + [10_000, 1][len(sys.argv) - 1 :]
    result = compare(*numbers)
    print(result)
    sys.exit(result["different"] > 0)
