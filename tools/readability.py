"""Words per sentence of every page: `python tools/readability.py [--long 40]`.

Only running text counts: no code, tables, headings, formulas or lists of references. The second
form prints the sentences that are longer.
"""

import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FRONT = [
    f"{name}.md"
    for name in ("README", "CHANGELOG", "ARCHITECTURE", "CONTRIBUTING", "SECURITY", "GOVERNANCE")
]
_SKIPPED = re.compile(
    r"```.*?```|\$\$.*?\$\$|<!--.*?-->|^\|.*?$|^#.*?$|^ {4,}\S.*?$|^!\[.*?$",
    re.DOTALL | re.MULTILINE,
)
_END = re.compile(r"(?<![A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)(?<=[.!?:])[)\"*_]*\s+(?=[\"`*_(\[A-ZÀ-Þ])")


def pages() -> list[Path]:
    """Everything that is written for readers.

    Lists of references are not running text, and the notes under `examples` are what the
    program wrote and what a reader answered.
    """
    front = [ROOT / name for name in FRONT]
    found = [*front, *sorted((ROOT / "docs").rglob("*.md"))]
    left_out = {"_build", "notes"}
    return [p for p in found if not left_out & {*p.parts} and p.name != "references.md"]


def sentences(page: Path) -> list[str]:
    """The sentences of a page's running text; items of lists are sentences of their own."""
    text = _SKIPPED.sub("\n\n", page.read_text(encoding="utf-8"))
    parts = re.split(r"\n\s*\n|^\s*(?:[-*]|\d+\.)\s+", text, flags=re.MULTILINE)
    found = [s.strip() for part in parts for s in _END.split(" ".join(part.split()))]
    return [s for s in found if words(s) > 2]


def words(sentence: str) -> int:
    """How many words a sentence has; a formula, a code or a link counts as one."""
    plain = re.sub(r"\]\([^)]*\)", "]", sentence)
    plain = re.sub(r"`[^`]*`|\$[^$]*\$", "x", plain)
    return len(re.findall(r"[^\W_][\w'’-]*", plain))


def measure(page: Path) -> tuple[float, int]:
    """Median and largest number of words of a page's sentences."""
    counts = [words(s) for s in sentences(page)] or [0]
    return statistics.median(counts), max(counts)


def main() -> None:
    """Print the pages, the hardest first, or their long sentences."""
    if "--long" in sys.argv:
        most = int(sys.argv[sys.argv.index("--long") + 1])
        for page in pages():
            for sentence in sentences(page):
                if (n := words(sentence)) > most:
                    sys.stdout.write(f"{page.relative_to(ROOT)}: {n} words: {sentence}\n")
        return
    for page in sorted(pages(), key=measure, reverse=True):
        median, longest = measure(page)
        sys.stdout.write(f"{median:5.1f} {longest:4d}  {page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
