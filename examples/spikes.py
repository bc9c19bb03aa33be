"""What do spikes tell about the movement of a hand, and when? 52 neurons, rows 50 ms apart.

Run it: `python examples/spikes.py [FOLDER] [s1_data.mat]`. Without a path, the file is read from
the folder `small` of the data folder, which DEMINAT_DATA names. Rows are a time series, so
`order=True`: neighbours in time are never split between training and scoring. A shift is the number
of rows by which the velocity is later than the spikes.
"""

import os
import sys
from pathlib import Path

from matplotlib.figure import Figure
from scipy.io import loadmat

import deminat

FIRST, ROWS, NEURONS, SHIFTS = 100, 6_000, 12, (-8, -4, -2, 0, 2, 4, 8)
FILE = Path(os.environ.get("DEMINAT_DATA", ".")) / "small" / "s1_data.mat"


def main(folder: Path, path: Path) -> None:
    """Estimate the information at several shifts, and draw it."""
    recording = loadmat(path)
    spikes, velocity = recording["spikes"], recording["vel"]
    busy = spikes.sum(0).argsort()[::-1][:NEURONS]  # the neurons that fire most
    rows = min(ROWS, len(spikes) - 2 * FIRST)
    counts = spikes[FIRST : FIRST + rows, busy].astype(float)

    results = []
    for shift in SHIFTS:
        shifted = velocity[FIRST + shift : FIRST + shift + rows]
        result = deminat.estimate(counts, shifted, order=True, preset="quick", folds=3)
        results.append(result)
        print(f"velocity {50 * shift:+5} ms: {result}", flush=True)

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    ax = figure.subplots()
    times = [50 * shift for shift in SHIFTS]
    low, high = zip(*(result.interval for result in results), strict=True)
    ax.fill_between(times, low, high, alpha=0.25, label="95% intervals")
    ax.plot(times, [result.mi for result in results], "o-", label="estimates")
    ax.set_xlabel("velocity after the spikes (ms)")
    ax.set_ylabel(f"nats, {NEURONS} neurons and velocity")
    ax.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "spikes.png", dpi=150)
    print(f"figure: {folder / 'spikes.png'}")


if __name__ == "__main__":
    paths = [Path(word) for word in sys.argv[1:]]
    main(*paths, *(Path("demo"), FILE)[len(paths) :])
