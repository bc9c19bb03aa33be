"""Columns that matter only together: two of fifty, whose product has the sign of y.

Run it: `python examples/together.py`. No single column tells anything about y, so scores of single
columns rank them at random. `MISelector` also screens all pairs of columns, here those of fifty.
"""

import numpy as np
from sklearn.feature_selection import SelectKBest, mutual_info_regression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from deminat import MISelector

N, TRAINING = 1_600, 800


def main() -> None:
    """Score columns in two ways, and fit a regression on the columns that are selected."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 50))
    y = np.sign(x[:, 1] * x[:, 40]) + 0.5 * rng.normal(size=N)

    together = MISelector(n_features_to_select=2)
    alone = SelectKBest(lambda x, y: mutual_info_regression(x, y, random_state=0), k=2)
    for name, selector in (("MISelector", together), ("mutual_info_regression", alone)):
        model = make_pipeline(selector, KNeighborsRegressor(20))
        model.fit(x[:TRAINING], y[:TRAINING])
        explained = model.score(x[TRAINING:], y[TRAINING:])
        selected = ", ".join(map(str, selector.get_support(indices=True)))
        print(f"{name} keeps columns {selected}; they explain {explained:.0%} of the variance of y")

    for pair in together.pairs_:
        print(f"columns {pair.columns}: {pair.mi:.2f} nats together, p = {pair.p_value:.1g}")
        for j in pair.columns:
            single, ksg = together.alone_[j], alone.scores_[j]
            print(f"column {j:2}: {single:.2f} nats alone, {ksg:.2f} by mutual_info_regression")


if __name__ == "__main__":
    main()
