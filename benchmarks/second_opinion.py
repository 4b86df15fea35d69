"""A second opinion on synthetic records: anonymeter's risks beside our lifts, on the same files.

`python -m benchmarks.second_opinion` makes an environment in `.deps/anonymeter`, since that
program needs an older NumPy, and writes files of firms made synthetic in several ways. Both then
say how well the sales of a firm are told within a twentieth: anonymeter by the nearest synthetic
firm, beside firms that were not in the file; ours by the own line, beside the file without it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA, PLACE = ROOT / "docs" / "withstands.json", ROOT / ".deps" / "anonymeter"
WANTED = "anonymeter==1.1.0"
FIRMS, ATTACKS, WITHIN = 400, 400, 0.05  # anonymeter's own tolerance for numbers
MODEL = "sales ~ size + staff"
WAYS: dict[str, dict[str, Any] | None] = {
    "a copy": None,
    "romm, λ = 0.01": {"method": "romm", "lambda_": 0.01},
    "romm, λ = 0.1": {"method": "romm", "lambda_": 0.1},
    "residual-correlation, 0.9": {"method": "residual-correlation", "correlations": 0.9},
    "from-residuals, 0.5": {"method": "from-residuals", "share": 0.5},
    "ipso": {"method": "ipso"},
}


def judged_elsewhere(folder: Path) -> dict[str, Any]:
    """What anonymeter says of the files of a folder; runs in its environment."""
    import pandas as pd  # that environment has this package, and nothing of ours
    from anonymeter.evaluators import InferenceEvaluator

    original, control = (pd.read_csv(folder / f"{n}.csv") for n in ("original", "control"))
    found = {}
    for file in sorted(folder.glob("way-*.csv")):
        judge = InferenceEvaluator(
            ori=original,
            syn=pd.read_csv(file),
            control=control,
            aux_cols=["size", "staff"],
            secret="sales",
            regression=True,
            n_attacks=ATTACKS,
        )
        judge.evaluate()
        told = judge.results()
        risk, (low, high) = told.risk().value, told.risk().ci
        rates = told.attack_rate.value, told.control_rate.value
        found[file.stem] = {"success": rates[0], "baseline": rates[1], "risk": risk}
        found[file.stem] |= {"low": low, "high": high}
    return found


def firms(seed: int) -> Any:
    """Firms with sales, size and staff, none of them large."""
    import numpy as np  # not at the head: the other environment reads this file too
    import pandas as pd

    from discreet.randomness import stream

    rng = stream(seed, "second opinion")
    size = np.exp(rng.normal(3, 0.5, FIRMS))
    staff = size * np.exp(rng.normal(0, 0.3, FIRMS))
    sales = 10 * size * np.exp(rng.normal(0, 0.4, FIRMS))
    return pd.DataFrame({"sales": sales, "size": size, "staff": staff})


def measure(folder: Path) -> list[dict[str, Any]]:
    """Both judgements of every file."""
    import discreet as dc  # as above
    from discreet.attacks.leverage import Copies
    from discreet.synthesis.result import Synthesized
    from discreet.tables.statement import Statement, step_of

    original, rows = firms(1), []
    original.to_csv(folder / "original.csv", index=False)
    firms(2).to_csv(folder / "control.csv", index=False)
    for k, (label, options) in enumerate(WAYS.items()):
        if options is None:
            said = Statement((step_of("synthesize:copy", {"missing": "refuse"}, []),))
            made: Any = Synthesized(original, said, ("sales",), MODEL, "copy")
        else:
            made = dc.synthesize(original, MODEL, simulate=True, seed=1, **options)
        made.frame.to_csv(folder / f"way-{k}.csv", index=False)
        ours = dc.attack(original, made, [Copies(WITHIN)])["copies"]
        low, high = ours.lift_interval()
        row = {"file": label, "success": ours.success, "baseline": ours.guess}
        rows.append(row | {"lift": ours.lift, "low": low, "high": high})
    command = [PLACE / "bin" / "python", __file__, "--inside", folder]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    for k, row in enumerate(rows):
        row["anonymeter"] = told[f"way-{k}"]
    return rows


def main() -> int:
    """Make the environment, measure, and store the figures beside those of our attacks."""
    if sys.argv[1:2] == ["--inside"]:
        sys.stdout.write(json.dumps(judged_elsewhere(Path(sys.argv[2]))))
        return 0
    python = PLACE / "bin" / "python"
    if not python.exists():
        venv.create(PLACE, with_pip=True)
    if subprocess.run([python, "-c", "import anonymeter"], capture_output=True).returncode:
        install = [python, "-m", "pip", "install", "--quiet", WANTED]
        if subprocess.run(install).returncode:
            sys.stderr.write(f"{WANTED} cannot be installed here, so nothing is compared.\n")
            return 1
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder))
    data = json.loads(DATA.read_text(encoding="utf-8"))
    data["second opinion"] = {"program": WANTED, "firms": FIRMS, "within": WITHIN, "rows": rows}
    DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for row in rows:
        other = row["anonymeter"]
        sys.stdout.write(
            f"{row['file']}: lift {row['lift']:.2f} ({row['low']:.2f} to {row['high']:.2f}), "
            f"anonymeter {other['risk']:.2f} ({other['low']:.2f} to {other['high']:.2f})\n"
        )
    sys.stdout.write(f"{time.process_time() - began:.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
