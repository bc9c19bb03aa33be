"""The embedded data are those that were published."""

import hashlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from deminat import datasets

SOURCE = Path(__file__).parents[2] / "shared/data/small/sachs.2005.continuous.txt"
SHA256 = "9b3f895c1652f9230a3356d76d7a320c88494feee9c6df509b001ccef8eae484"


def test_sachs_has_the_published_values():
    frame = datasets.sachs()
    assert frame.shape == (7466, 11)
    assert " ".join(frame.columns) == "raf mek plc pip2 pip3 erk akt pka pkc p38 jnk"
    assert set(frame.dtypes) == {pl.Float64}
    values = np.ascontiguousarray(frame.to_numpy(), "<f8")
    assert hashlib.sha256(values.tobytes()).hexdigest() == SHA256


def test_sachs_is_a_fresh_frame_each_time():
    assert datasets.sachs() is not datasets.sachs()


@pytest.mark.skipif(not SOURCE.exists(), reason="the source text is not on this machine")
def test_sachs_equals_the_source_text():
    header, *lines = SOURCE.read_text().splitlines()
    frame = datasets.sachs()
    assert header.split("\t") == frame.columns
    assert [[float(v) for v in line.split("\t")] for line in lines] == frame.to_numpy().tolist()
