"""Independent components: what was mixed is unmixed, also where tails are heavy."""

import numpy as np
import pytest
from scipy.linalg import qr

from deminat.critics.baselines.ica import independent_frames


def mixed(sources, seed):
    """Return sources (n, d) turned, and the rotation."""
    d = sources.shape[1]
    turn = qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    return sources @ turn.T, turn


def leak(frame, turn):
    """Return what is left of other sources in each component: the largest share."""
    shares = np.abs(frame @ turn)
    shares /= shares.max(axis=1, keepdims=True)
    return np.sort(shares, axis=1)[:, -2].max()


SOURCES = {
    "cubes": lambda rng, shape: rng.normal(size=shape) ** 3,
    "Laplace": lambda rng, shape: rng.laplace(size=shape),
    "uniform": lambda rng, shape: rng.uniform(size=shape),
    "Student": lambda rng, shape: rng.standard_t(3, size=shape),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kind", "most"), [("cubes", 0.01), ("Laplace", 0.1), ("uniform", 0.1)])
def test_mixed_sources_are_separated(kind, most, seed):
    sources = SOURCES[kind](np.random.default_rng(seed), (5_000, 6))
    a, turn = mixed(sources, seed)
    frames = independent_frames(a, a[::-1])
    assert leak(frames.x, turn) < most
    assert leak(frames.y, turn) < most


def test_heavy_tails_do_not_leak_as_much_as_their_covariance_would_have_it():
    sources = SOURCES["cubes"](np.random.default_rng(0), (4_000, 8))
    a, turn = mixed(sources, 0)
    frame = independent_frames(a, a).x
    correlations = np.corrcoef(sources, rowvar=False) - np.eye(8)
    assert leak(frame, turn) < 0.2 * np.abs(correlations).max()


@pytest.mark.parametrize("kind", SOURCES)
def test_frames_are_invertible_and_finite(kind):
    sources = SOURCES[kind](np.random.default_rng(1), (300, 4))
    frame = independent_frames(sources * [1, 1e6, 1e-6, 1], sources).x
    assert np.isfinite(frame).all()
    assert np.linalg.matrix_rank(frame / np.abs(frame).max(axis=0)) == 4


def test_columns_that_are_mostly_one_value_are_left_to_fast_ica():
    rng = np.random.default_rng(2)
    a = rng.normal(size=(1_000, 3)) * (rng.uniform(size=(1_000, 3)) < 0.3)
    assert np.isfinite(independent_frames(a, a).x).all()
