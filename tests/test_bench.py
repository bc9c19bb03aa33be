"""Benches: rows are resumed, verdicts can fail, and the cells are what the claims say."""

import pytest
import torch

from deminat.bench import BENCHES, run_bench
from deminat.bench.runner import Bench
from deminat.bench.speed import _shifted


def square(cell):
    return {"square": cell["seed"] ** 2}


TOY = Bench(
    "squares", lambda seeds: [{"seed": s} for s in seeds], square, lambda rows: [], runs=2, jobs=1
)


def test_rows_are_written_as_they_come_and_taken_up_again(tmp_path, monkeypatch):
    out = tmp_path / "new" / "rows.csv"
    stream = run_bench(TOY, range(3), out, jobs=1)
    next(stream)
    assert len(out.read_text().splitlines()) == 2  # a header and the first row
    stream.close()
    rows = list(run_bench(TOY, range(4), out, jobs=1))
    assert [row["square"] for row in rows] == [0, 1, 4, 9]
    assert len(out.read_text().splitlines()) == 5
    again = list(run_bench(TOY, range(4), out, jobs=1))
    assert [row["seed"] for row in again] == [0, 1, 2, 3]
    assert len(out.read_text().splitlines()) == 5


ROWS = {
    "speed": ({"limit_ms": 0.8, "deminat_ms": 1.0, "plain_ms": 2.5}, {"deminat_ms": 5.0}),
    "gaussian": ({"estimate": None, "seed": 0}, {"estimate": 1.0}),
    "cap": ({"estimate": 7.0, "batch": 16}, {"estimate": 2.0}),
    "alpha": ({"estimate": 2.0, "standard_error": 0.1, "seed": 0}, {"estimate": 3.0}),
    "independent": ({"estimate": 0.001}, {"estimate": 0.5}),
}


def rows_of(name, **changed):
    from deminat.bench.accuracy import RELEASED

    row = {**ROWS[name][0], **changed}
    if name == "gaussian":
        return [
            {**row, "truth": t, "estimate": changed.get("estimate", v)} for t, v in RELEASED.items()
        ]
    if name == "alpha":
        return [{**ROWS[name][0], "alpha": 0.5}, {**row, "alpha": 0.9}]
    return [row]


@pytest.mark.parametrize("name", BENCHES)
def test_every_verdict_can_hold_and_can_fail(name):
    good, bad = (
        BENCHES[name].verdict(rows_of(name)),
        BENCHES[name].verdict(rows_of(name, **ROWS[name][1])),
    )
    assert all(line.startswith("ok") for line in good)
    assert any(line.startswith("MISS") for line in bad)


def test_the_plain_loop_pairs_each_row_with_the_next():
    y = torch.randn(7, 3)
    assert torch.equal(_shifted(y), y.roll(-1, 0))


def test_cells_are_numbers_and_differ():
    for bench in BENCHES.values():
        cells = bench.cells(range(3))
        assert len({tuple(cell.items()) for cell in cells}) == len(cells)
        assert all(isinstance(v, int | float) for cell in cells for v in cell.values())
