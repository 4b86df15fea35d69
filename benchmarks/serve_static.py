"""A site of files beside the server of the same site: random questions, page by page, cell by cell.

Figures are compared with DuckDB's sums of the Parquet files as well.

`python -m benchmarks.serve_static [QUESTIONS] [SEED]`; 10,000 questions take some four minutes.
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from discreet.serve.static.build import write_site
from tests.serve.static.asking import Client, difference
from tests.serve.static.parquet_sums import ParquetSums
from tests.serve.static.questions import Questions
from tests.serve.static.sites import server_of, static_site


def main(n: int, seed: int) -> int:
    """Compare so many pages; the number of those that differ."""
    site = static_site()
    server, seen, began = server_of(site), Counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        written = write_site(site, Path(folder), parquet=True)
        client, sums = Client(folder), ParquetSums(Path(folder))
        for k, (address, lang) in enumerate(Questions(site.datasets, seed).some(n)):
            if k % 1_000 == 0 and k > 0:
                print(f"{k:,} questions: {seen['different']} differ", flush=True)
            found = difference(server, client, site, address, lang, sums)
            seen[client.status] += 1
            seen["different"] += found is not None
            if found is not None:
                print(found)
        client.close()
    print(f"{n:,} questions of seed {seed}: {seen[200]:,} tables and pages, {seen[400]:,} refusals")
    print(f"{seen['different']} differ; {time.process_time() - began:.0f} s of this process")
    print(f"{written.files} files, {written.bytes:,} bytes")
    return seen["different"]


if __name__ == "__main__":
    numbers = [int(given) for given in sys.argv[1:]] + [10_000, 1][len(sys.argv) - 1 :]
    sys.exit(main(*numbers) > 0)
