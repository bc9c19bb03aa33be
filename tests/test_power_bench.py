"""`deminat bench power` with several columns a side, and the level of that test."""

from dataclasses import replace

import numpy as np

from deminat.studies.bench import BENCHES, trust
from deminat.studies.bench.runner import with_filter


def row(**changes):
    fixed = {"simulation": "linear", "n": 100, "columns": 3, "seed": 0, "samples": 9}
    return {**fixed, "power": 0.9, "milliseconds": 1.0, **changes}


def test_power_is_stored_beside_that_of_peers(tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(3, 40, 3))
    np.savez(tmp_path / "40_3.npz", linear_x=x, linear_y=x)
    lines = [
        "n,columns,simulation,peer,samples,power",
        "40,3,linear,mgc,9,0.5",
        "40,9,linear,mgc,9,1",
    ]
    (tmp_path / "peers.csv").write_text("\n".join(lines))
    monkeypatch.setenv("DEMINAT_HYPPO", str(tmp_path))
    found = BENCHES["power"].run({"simulation": "linear", "n": 40, "columns": 3, "seed": 0})
    assert found["mgc"] == 0.5
    assert found["power"] == 1
    assert "hsic" not in found


def test_each_peer_must_be_exceeded_on_the_simulations_it_was_run_on():
    rows = [row(mgc=0.8, kmerf=0.95), row(simulation="cubic", power=0.7, mgc=0.8, kmerf="")]
    independent = row(simulation="multimodal_independence", power=0.05, mgc=1.0, kmerf=1.0)
    own, mgc, kmerf = BENCHES["power"].verdict([*rows, independent])
    assert "mean power 0.800" in own
    assert "5.0% of independent samples" in own
    assert mgc == "MISS n=100, 3 + 3 columns: 0.800, above 0.800 of MGC, 2 simulations"
    assert kmerf == "MISS n=100, 3 + 3 columns: 0.900, above 0.950 of KMERF, 1 simulations"
    assert BENCHES["power"].verdict([row(mgc=0.8)])[1].startswith("ok")


def test_the_level_of_several_columns_can_be_measured(monkeypatch):
    few = replace(trust._PROMISES["columns"], batches=1, runs=2)
    monkeypatch.setitem(trust._PROMISES, "columns", few)
    cells = with_filter(BENCHES["trust"], ["promise=columns"]).cells([0])
    found = BENCHES["trust"].run({**cells[0], "n": 50})
    assert found["runs"] == 2
    assert 0 <= found["rejected"] <= 2
