"""Run the commands whose output the documentation shows, and record the output: `make outputs`.

A file of `docs/outputs` begins with its command, `$ deminat ...` or `$ python examples/...`; the
rest is overwritten. Figures and the report that the commands write are stored beside it. To run
only some, name them: `python docs/record.py estimate test`. It takes minutes. `spikes` needs
`small/s1_data.mat` in the folder that DEMINAT_DATA names.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import deminat

DOCS = Path(__file__).parent
OUTPUTS = DOCS / "outputs"
RECORDED = "report.html", "demo/*.png", "pairs/heat_map.png"


def record(path: Path, folder: Path) -> None:
    """Run the command of a file in a folder and write its output to the file."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    program, *words = shlex.split(first.removeprefix("$ "))
    run = [sys.executable, *(["-m", "deminat"] if program == "deminat" else []), *words]
    done = subprocess.run(
        run, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode not in (0, 1):  # 1: a law of `deminat check` failed
        sys.exit(f"{first}\n{done.stdout}")
    path.write_text(f"{first}\n{done.stdout}", encoding="utf-8")
    for pattern in RECORDED:
        for file in folder.glob(pattern):
            shutil.copy(file, OUTPUTS / file.name)


def main(names: list[str]) -> None:
    """Record the commands of all files, or of those named."""
    os.environ["PYTHONWARNINGS"] = "ignore"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(DOCS.parent / "examples", Path(folder) / "examples")
        cells = deminat.datasets.sachs()
        cells.sample(fraction=1, shuffle=True, seed=0).write_csv(Path(folder) / "cells.csv")
        for path in sorted(OUTPUTS.glob("*.txt")):
            if not names or path.stem in names:
                record(path, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
