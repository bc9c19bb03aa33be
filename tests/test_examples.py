"""Every example runs and is short."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_are_short(path):
    assert len(path.read_text().splitlines()) <= 60


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_run(path, tmp_path):
    files = [recording(tmp_path / "made_up.mat")] if path.name == "spikes.py" else []
    assert "nats" in printed(path, tmp_path, *files)


@pytest.mark.slow
def test_spikes_of_the_recording(tmp_path):
    """The recording is not part of the repository."""
    file = Path(os.environ.get("DEMINAT_DATA", "")) / "small" / "s1_data.mat"
    if "DEMINAT_DATA" not in os.environ or not file.exists():
        pytest.skip("there is no small/s1_data.mat in the folder that DEMINAT_DATA names")
    assert "velocity" in printed(EXAMPLES[0].with_name("spikes.py"), tmp_path, file)


def printed(path, *words):
    done = subprocess.run(
        [sys.executable, path, *words], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def recording(path, rows=800, neurons=6):
    """Write a short recording of neurons that prefer different directions of a slow movement."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(rows + 20, 2)).cumsum(0)
    velocity = 4 * (steps[20:] - steps[:-20]) / np.sqrt(20)
    angles = np.linspace(0, 2 * np.pi, neurons, endpoint=False)
    preferred = np.stack([np.cos(angles), np.sin(angles)])
    spikes = rng.poisson(np.exp(np.clip(velocity @ preferred / 5, -3, 2)))
    savemat(path, {"spikes": spikes.astype(np.uint8), "vel": velocity})
    return path
