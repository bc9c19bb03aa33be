"""Memory stays flat as a file grows: the peak of the real command, in a process of its own."""

import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

COLUMNS = 8
BLOCK = np.random.default_rng(0).normal(size=(1 << 15, COLUMNS))
BLOCK[:, 4:] += BLOCK[:, :4]
PEAK = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "deminat", *sys.argv[1:]], capture_output=True)
sys.stderr.buffer.write(done.stderr)
sys.stdout.buffer.write(done.stdout)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


def write(path, size):
    """Write so many bytes of numbers that do not repeat: the same blocks, each moved a little."""
    count = round(size / BLOCK.nbytes)
    if path.suffix == ".npy":
        with path.open("wb") as file:
            shape = count * len(BLOCK), COLUMNS
            header = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for i in range(count):
                file.write((BLOCK + i * 1e-9).tobytes())
    elif path.suffix == ".csv":
        text = pl.DataFrame(BLOCK, schema=[str(j) for j in range(COLUMNS)])
        lines = text.write_csv(float_precision=9).partition("\n")
        with path.open("w") as file:
            file.write(lines[0] + "\n")
            for _ in range(round(size / len(lines[2]))):
                file.write(lines[2])
    else:
        frame = pl.DataFrame(BLOCK, schema=[str(j) for j in range(COLUMNS)])
        parts = [frame.lazy().with_columns(pl.all() + i * 1e-9) for i in range(count)]
        pl.concat(parts).sink_parquet(path, compression="uncompressed", row_group_size=len(BLOCK))
    assert path.stat().st_size > 0.95 * size
    return path


def peak(path, *words):
    """Return the peak of memory of an estimate in MB, and what it answered."""
    command = ["estimate", path, "--x", "0,1", "--y", "4,5", "--method", "copula", "--json", *words]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, command)], capture_output=True, text=True
    )
    answer, _, megabytes = done.stdout.rstrip().rpartition("\n")
    assert answer, done.stderr
    return int(megabytes), json.loads(answer)


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".csv"])
def test_memory_is_flat(tmp_path, suffix):
    small, large = (
        peak(write(tmp_path / f"t{size}{suffix}", size * 10**6), "--max-rows", "5000")
        for size in (40, 160)
    )
    assert small[1]["n"] == large[1]["n"] == 5_000
    assert large[0] < small[0] + 40  # MB, of 120 more


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_eight_gigabytes_take_the_memory_of_one(tmp_path, suffix):
    found = []
    for size in (1, 8):
        path = write(tmp_path / f"t{suffix}", size * 10**9)
        megabytes, answer = peak(path)
        sys.stdout.write(f"{size} GB of {suffix}: {megabytes} MB\n")  # seen with -s
        path.unlink()
        assert [w["code"] for w in answer["warnings"]] == ["subsampled"]
        assert answer["n"] == 200_000
        found.append(megabytes)
    assert found[1] < found[0] + 300
