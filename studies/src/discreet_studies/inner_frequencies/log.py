"""How the stand-in and the tolerances of this study came about, oldest entry first."""

from __future__ import annotations

from discreet_studies.model import LogEntry

LOG = (
    LogEntry(
        "2026-11-16",
        "Skews of the stand-in (0.9, 3.3, 0.9, 0, 0.675) became (0.2, 3.8, 0.2, 0, 0.15).",
        "None was written down. The sentence on Table 9 came with the same change, and the earlier "
        "stand-in contradicted it.",
    ),
    LogEntry(
        "2026-11-16",
        "Tolerances became 8 % for deviations, from 5 %, and 0.025 for utilities, from 0.012.",
        "None was written down. The new stand-in misses printed utilities of noisy margins by up "
        "to 0.021, the earlier one by 0.007.",
    ),
    LogEntry(
        "2026-11-18",
        "Both changes are withdrawn, and stand-in, tolerances and seeds 1 to 20 are frozen. "
        "Deviations that are noise alone are judged by chance, other figures of noisy margins "
        "count as true by construction, and the sentence on Table 9 is not judged.",
        "Sizes and sparsity are all that the paper prints about its file, and the earlier "
        "stand-in comes nearer to its noisy margins. A mean of 2,961 absolute Laplace draws has "
        "a relative standard error of 1.8 %, so 5 % and 8 % were both too narrow for two-way "
        "margins and too wide for the others. Utilities of noisy margins depend on how uneven "
        "the records are, which is our choice; so does the sentence on Table 9.",
        "608637d30b6e7bae",
        "370e47fccae34519",
    ),
)
