"""What do the top rows of an image tell about the whole image? 900 digits of 8 x 8 pixels.

Run it: `python examples/top_rows.py [FOLDER]`. Images (n, channels, height, width) of one size are
scored by a convolutional critic. Pixels below the top rows are set to zero. More rows never tell
less (appendix A of the paper). The top rows are a function of the image, so the information is more
than n images can show: read the order and the lower bound, not the digits of the estimate.
"""

import math
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import deminat

IMAGES, ROWS = 900, (1, 4, 8)


def main(folder: Path) -> None:
    """Estimate what the top rows tell about the image, and draw it."""
    images = np.random.default_rng(0).permutation(load_digits().images)[:IMAGES, None]
    results = []
    for rows in ROWS:
        top = images.copy()
        top[:, :, rows:] = 0
        result = deminat.estimate(images, top, preset="quick", folds=2)
        results.append(result)
        print(f"top {rows} rows: {result}", flush=True)

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    ax = figure.subplots()
    ax.plot(ROWS, [result.mi for result in results], "o-", label="estimates")
    ax.plot(ROWS, [result.lower_bound for result in results], "v--", label="at least")
    ax.axhline(math.log(len(images)), color="grey", label="log n: identifies one image")
    ax.set_xlabel("rows seen, from the top")
    ax.set_ylabel("nats")
    ax.set_ylim(0)
    ax.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "top_rows.png", dpi=150)
    print(f"figure: {folder / 'top_rows.png'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
