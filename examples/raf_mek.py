"""How much does the protein raf tell about mek? 7,466 human immune cells, Sachs et al. (2005).

Run it: `python examples/raf_mek.py [FOLDER]`. It prints three estimates and saves a figure and a
report to open in a browser.
"""

import sys
from pathlib import Path

import polars as pl

import deminat
from deminat.report import About, render, save
from deminat.report.plots import save_comparison


def main(folder: Path) -> None:
    """Estimate, print, draw, report."""
    cells = deminat.datasets.sachs()
    cells = cells.sample(fraction=1, shuffle=True, seed=0)  # the file is sorted by experiment
    raf, mek = cells.select(pl.col("raf", "mek").log())

    print("estimating raf-mek by DEMI (5 critics, each scores held-out cells) ...", flush=True)
    results = deminat.compare(raf, mek, methods=["demi", "ksg", "gaussian"], n_jobs=2)
    for result in results:
        print(result)
    for caution in dict.fromkeys(w for result in results for w in result.warnings):
        print(f"warning: {caution}")

    folder.mkdir(parents=True, exist_ok=True)
    figure = folder / "raf_mek.png"
    save_comparison(figure, raf, mek, results, ("log raf", "log mek"))
    print(f"figure: {figure}")

    about = About(source="Sachs et al. (2005)", command=f"python examples/raf_mek.py {folder}")
    report = folder / "report.html"
    save(report, render(results, about=about))
    print(f"report: {report}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
