"""The objectives as losses, Deep InfoMax, probes; across processes and after kills."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel
from typer.testing import CliRunner

from deminat import CCMI, DEMI, JSD, MINE, NWJ, SMILE, DataError, InfoNCE
from deminat.cli import app
from deminat.infomax import ConcatCritic, DeepInfoMax, DotCritic, Encoder, InfoMaxLoss, losses
from deminat.infomax import partners as strangers_of
from deminat.infomax.probes import probed
from deminat.persistence.serialise import pack, unpack
from deminat.runtime.atomic import sha256_of
from deminat.studies.paper.experiments import EXPERIMENTS
from deminat.studies.paper.infomax import InfoMaxStudy, run_infomax, training_for
from deminat.studies.paper.snapshots import Snapshots

OBJECTIVES = [DEMI(), DEMI(0.2), JSD(), SMILE(1.0), CCMI(), MINE(), NWJ(), InfoNCE()]
N, PLACES, RANK = 12, 3, 5
scaled_critic = partial(DotCritic, scaled=True)


def embeddings(n=N, places=PLACES, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    anchors = torch.randn(n, RANK, generator=generator, dtype=dtype)
    partners = torch.randn(n, places, RANK, generator=generator, dtype=dtype)
    return anchors.requires_grad_(), partners.requires_grad_()


def table_of(anchors, partners):
    return torch.einsum("ir,jlr->ijl", anchors, partners)


def by_definition(objective, table):
    """Return the loss with loops: pairs on the diagonal, all else unpaired."""
    n, _, places = table.shape
    joint = torch.stack([table[i, i] for i in range(n)])
    product = torch.stack([table[i, [j for j in range(n) if j != i]].flatten() for i in range(n)])
    if isinstance(objective, InfoNCE):
        each = [
            torch.cat([joint[i, place, None], product[i]]).log_softmax(0)[0]
            for i in range(n)
            for place in range(places)
        ]
        return -(torch.stack(each).mean() + math.log(1 + product.shape[1]))
    return objective.loss(joint.flatten(), product)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
class TestLosses:
    def test_a_table_is_read_by_definition(self, objective):
        table = table_of(*embeddings()).detach()
        loss = InfoMaxLoss(objective).eval()
        assert loss(table) == pytest.approx(float(by_definition(objective, table)))
        flat = table[:, :, 0]
        assert loss(flat) == pytest.approx(float(by_definition(objective, flat[..., None])))

    def test_pairs_and_tables_agree(self, objective):
        table = table_of(*embeddings()).detach()
        rows = torch.arange(N)
        others = torch.stack([rows[rows != i] for i in rows])
        joint = table[rows, rows]
        product = table[rows[:, None], others]
        loss = InfoMaxLoss(objective)
        assert loss.eval()(joint, product) == pytest.approx(float(loss(table)))
        assert loss.estimate(joint, product) == pytest.approx(float(loss.estimate(table)))
        alone = loss(joint[:, 0], product[:, :, 0])
        assert alone == pytest.approx(float(loss(table[:, :, 0])))

    def test_normalised_scores_do_not_depend_on_what_anchors_add(self, objective):
        table = table_of(*embeddings()).detach()
        louder = table + torch.randn(N, 1, 1, dtype=table.dtype)
        loss = InfoMaxLoss(objective, normalise=True).eval()
        assert loss(louder) == pytest.approx(float(loss(table)))
        assert loss.estimate(louder) == pytest.approx(float(loss.estimate(table)))
        plain = InfoMaxLoss(objective).eval()
        if isinstance(objective, InfoNCE):  # which never did
            assert loss(table) == pytest.approx(float(plain(table)))
        rows = torch.arange(N)
        others = torch.stack([table[i, rows != i].exp().mean() for i in rows])
        by_hand = table - others.log()[:, None, None]
        assert loss(table) == pytest.approx(float(by_definition(objective, by_hand)))

    def test_tiles_change_nothing(self, objective, monkeypatch):
        anchors, partners = embeddings()
        whole = InfoMaxLoss(objective)(table_of(anchors, partners))
        wanted = torch.autograd.grad(whole, [anchors, partners])
        monkeypatch.setattr(losses, "_AT_ONCE", 5 * N * PLACES)  # 5, 5 and 2 anchors
        tiled = InfoMaxLoss(objective).all_pairs(anchors, partners)
        assert tiled.item() == pytest.approx(whole.item())
        for found, right in zip(
            torch.autograd.grad(tiled, [anchors, partners]), wanted, strict=True
        ):
            torch.testing.assert_close(found, right)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_large_scores_do_no_harm(self, objective, dtype):
        if isinstance(objective, NWJ):
            pytest.skip("exp f is its loss")
        table = (40 * table_of(*embeddings())).detach().to(dtype).requires_grad_()
        loss = InfoMaxLoss(objective)(table)
        loss.backward()
        assert loss.dtype == torch.float32
        assert loss.isfinite()
        assert table.grad.isfinite().all()

    def test_low_precision_is_near(self, objective):
        table = table_of(*embeddings()).detach()
        loss = InfoMaxLoss(objective)
        assert loss(table.bfloat16()).item() == pytest.approx(
            loss(table).item(), rel=0.02, abs=0.02
        )


def test_donsker_varadhan_has_only_pairs_in_its_first_term():
    table = torch.tensor([[3.0, 0.0], [0.0, 5.0]])
    assert -InfoMaxLoss(MINE()).eval()(table) == pytest.approx(4.0)  # (3 + 5) / 2 - log exp 0


def test_the_moving_average_is_part_of_a_checkpoint():
    tables = [table_of(*embeddings(n)).detach().requires_grad_() for n in (6, 8, 10)]
    loss = InfoMaxLoss(MINE())
    loss(tables[0])
    loss(tables[1])
    other = InfoMaxLoss(MINE())
    other.load_state_dict(loss.state_dict())
    found, wanted = (torch.autograd.grad(one(tables[2]), tables[2])[0] for one in (other, loss))
    torch.testing.assert_close(found, wanted)
    fresh = torch.autograd.grad(InfoMaxLoss(MINE())(tables[2]), tables[2])[0]
    assert not torch.allclose(fresh, wanted)


def test_a_memory_does_not_move_while_judging():
    loss = InfoMaxLoss(MINE())
    loss(table_of(*embeddings()).detach())
    before = loss.log_average.clone()
    loss.eval()(3 * table_of(*embeddings()).detach())
    assert loss.log_average == before


@pytest.mark.parametrize("shape", [(4,), (5, 4), (1, 1), (2, 2, 2, 2)])
def test_what_is_no_table_is_refused(shape):
    with pytest.raises(ValueError, match="a table of scores is"):
        InfoMaxLoss()(torch.zeros(shape))


def test_scores_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="joint and product"):
        InfoMaxLoss()(torch.zeros(4), torch.zeros(5, 3))
    with pytest.raises(ValueError, match="draw"):
        InfoMaxLoss(DEMI(draw=True))


class TwoViews(nn.Module):
    """Somebody's own encoder and critic."""

    def __init__(self, objective):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, RANK)).double()
        self.loss = InfoMaxLoss(objective)

    def forward(self, one, other, as_table):
        u, v = self.net(one), self.net(other)
        if as_table:
            return self.loss(u @ losses.gathered(v).T)
        return self.loss.all_pairs(u, v)


def gradients(model, parallel, views, as_table):
    """Return loss and gradients of a second step, so that MINE has a memory."""
    for _ in range(2):
        model.zero_grad()
        loss = parallel(*views, as_table)
        loss.backward()
    return loss.item(), torch.cat([p.grad.flatten() for p in model.parameters()])


def views_of_all():
    generator = torch.Generator().manual_seed(1)
    one = torch.randn(N, 4, generator=generator, dtype=torch.float64)
    return one, one + 0.3 * torch.randn(N, 4, generator=generator, dtype=torch.float64)


def images_of_all():
    return torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(5))


def deep_gradients(wrapped, images):
    """Return loss and gradient of Deep InfoMax, with batch norms that do not look at the batch."""
    torch.manual_seed(0)
    model = DeepInfoMax(Encoder(), DotCritic(units=16), InfoMaxLoss()).eval()
    trained = wrapped(model)  # which must live until the gradients are exchanged
    with patch.object(losses, "_AT_ONCE", 3 * 8 * 64):  # in tiles of 3
        loss = trained(images)
        loss.backward()
    return loss.item(), torch.cat([p.grad.flatten() for p in model.parameters()])


def one_of_two(rank, folder):
    """Take half of the batch; write what was found."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
    )
    views = [view.chunk(2)[rank] for view in views_of_all()]
    found = []
    for objective in OBJECTIVES:
        for as_table in (True, False):
            model = TwoViews(objective)
            found.append(gradients(model, DistributedDataParallel(model), views, as_table))
    images = images_of_all().chunk(2)[rank]
    found.append(deep_gradients(DistributedDataParallel, images))
    torch.save(found, folder / f"{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_have_the_gradient_of_the_joined_batch(tmp_path):
    spawn(one_of_two, (tmp_path,), nprocs=2)
    alone = []
    for objective in OBJECTIVES:
        for as_table in (True, False):
            model = TwoViews(objective)
            alone.append(gradients(model, model, views_of_all(), as_table))
    alone.append(deep_gradients(lambda model: model, images_of_all()))
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        for (loss, gradient), (wanted, right) in zip(found, alone, strict=True):
            assert loss == pytest.approx(wanted)
            torch.testing.assert_close(gradient, right)


def _plain(critic):
    """Return the critic that shares the nets of a scaled one."""
    plain = DotCritic(units=256)
    plain.load_state_dict(critic.state_dict(), strict=False)
    return plain


class TestDeepInfoMax:
    def test_the_encoder_has_the_sizes_of_the_paper(self):
        features = Encoder()(torch.zeros(2, 3, 32, 32))
        shapes = [tuple(f.shape) for f in features]
        assert shapes == [(2, 64, 128), (2, 256, 4, 4), (2, 1024), (2, 64)]

    @pytest.mark.parametrize("critic", [DotCritic, scaled_critic, ConcatCritic])
    def test_scores_of_strangers_are_entries_of_the_table(self, critic):
        torch.manual_seed(0)
        features, scorer = Encoder()(torch.randn(6, 3, 32, 32)), critic(units=16)
        (table,) = scorer(features, None)
        assert table.shape == (6, 6, 64)
        strangers = strangers_of(6, 2, torch.Generator().manual_seed(0))
        joint, product = scorer(features, strangers)
        rows = torch.arange(6)
        torch.testing.assert_close(joint, table[rows, rows])
        torch.testing.assert_close(product, table[rows[:, None], strangers])

    def test_the_scaled_critic_begins_calm_and_has_offsets(self):
        torch.manual_seed(0)
        features = Encoder()(torch.randn(32, 3, 32, 32))
        loud, calm = DotCritic(units=256), scaled_critic(units=256)
        assert loud(features, None)[0].std() > 5
        (table,) = calm(features, None)
        assert table.std() < 2
        with torch.no_grad():
            for offset in calm.offsets:
                offset.weight.zero_()
            calm.offsets[0].bias.fill_(7)
        (bare,), (inner,) = calm(features, None), _plain(calm)(features, None)
        torch.testing.assert_close(bare, inner / 16 + 7)

    @pytest.mark.parametrize("critic", [DotCritic, scaled_critic, ConcatCritic])
    @pytest.mark.parametrize("k", [0, 1, 3])
    def test_every_weight_learns(self, critic, k):
        torch.manual_seed(0)
        model = DeepInfoMax(Encoder(), critic(units=16), InfoMaxLoss())
        strangers = strangers_of(6, k, torch.Generator().manual_seed(0)) if k else None
        model(torch.randn(6, 3, 32, 32), strangers).backward()
        assert all(p.grad.abs().sum() > 0 for p in model.parameters())

    def test_all_pairs_of_the_concat_critic_keep_no_hidden_layers(self):
        features, kept = Encoder()(torch.randn(16, 3, 32, 32)), {}

        def count(tensor):
            kept[tensor.data_ptr()] = tensor.nbytes
            return tensor

        critic = ConcatCritic(units=64)
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            (table,) = critic(features, None)
        assert sum(kept.values()) < 0.5 * 4 * table.numel() * 64  # bytes of one layer

    def test_information_is_found(self):
        torch.manual_seed(0)
        images = torch.randn(64, 3, 1, 1).expand(-1, -1, 32, 32)
        model = DeepInfoMax(Encoder(), DotCritic(units=32), InfoMaxLoss())
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for _ in range(40):
            optimizer.zero_grad()
            model(images).backward()
            optimizer.step()
        assert model.loss.estimate(model.scores(images)) > 1

    def test_a_batch_of_1024_fits_in_4_gigabytes(self):
        code = (
            "import torch, resource\n"
            "from deminat.infomax import DeepInfoMax, DotCritic, Encoder, InfoMaxLoss\n"
            "model = DeepInfoMax(Encoder(), DotCritic(units=256), InfoMaxLoss())\n"
            "model(torch.rand(1024, 3, 32, 32)).backward()\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        )
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        kilobytes = int(told.stdout) / (1024 if sys.platform == "darwin" else 1)
        assert kilobytes < 4e9 / 1024


def test_a_probe_reads_what_is_there():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (600,), generator=generator)
    features = torch.randn(600, 8, generator=generator)
    sets = (features[:400], labels[:400]), (features[400:], labels[400:])
    assert probed(*sets, 3, epochs=3, batch=32) < 0.5
    features[torch.arange(600), labels] += 6
    assert probed(*sets, 3, epochs=3, batch=32) > 0.95


@pytest.fixture
def images(tmp_path, monkeypatch):
    """Write 256 + 256 images in the form of CIFAR-10 whose colour is their class."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "data" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for name in ("data_batch_1", "test_batch"):
        labels = rng.integers(0, 10, (256, 1))
        tone = (25 * labels)[:, :, None].repeat(3, 1).repeat(1024, 2).reshape(256, -1)
        pixels = np.clip(tone + rng.integers(0, 30, (256, 3072)), 0, 255)
        np.hstack([labels, pixels]).astype(np.uint8).tofile(folder / f"{name}.bin")
    monkeypatch.setenv("DEMINAT_DATA", str(tmp_path / "data"))


TINY = InfoMaxStudy(epochs=2, units=8, probe_epochs=2, batch=32, check=False)


def cell_of(training):
    (cell,) = [c for c in TINY.cells() if c["training"] == training]
    return cell


def without_time(rows):
    return [{k: v for k, v in row.items() if k != "images_per_second"} for row in rows]


@pytest.mark.usefixtures("images")
class TestExperiment:
    def test_a_training_gives_a_row_for_each_epoch_and_readout(self):
        rows = run_infomax(cell_of("demi"))
        assert [r["epoch"] for r in rows] == [e for e in range(3) for _ in range(4)]
        assert {r["method"] for r in rows} == {"demi", "jsd", "smile(tau=1)", "smile(tau=5)"}
        last = rows[-4:]
        assert len({r["conv"] for r in last}) == 1  # one training
        assert all(0 <= r[key] <= 1 for r in last for key in ("conv", "fc", "output"))
        assert rows[0]["loss"] is None
        assert last[0]["images_per_second"] > 0

    def test_labels_teach_the_encoder_too(self):
        rows = run_infomax({**cell_of("supervised"), "epochs": 4})
        assert {r["method"] for r in rows} == {"supervised"}
        assert rows[-1]["conv"] > rows[0]["conv"]
        assert rows[-1]["estimate"] is None

    @pytest.mark.parametrize(
        "change", [{"critic": "concat", "negatives": 2}, {"precision": "bfloat16"}]
    )
    def test_other_settings(self, change, request):
        if "precision" in change:
            request.getfixturevalue("bfloat16")
        rows = run_infomax({**cell_of("demi"), "epochs": 1, **change})
        assert math.isfinite(rows[-1]["loss"])

    @pytest.mark.parametrize("training", ["mine", "supervised"])
    def test_a_killed_training_goes_on(self, training, tmp_path):
        cell = {**cell_of(training), "epochs": 6, "probe_every": 6}
        wanted = without_time(run_infomax(cell))
        code = (
            "import json, sys, pathlib\n"
            "from deminat.studies.paper.infomax import run_infomax\n"
            "run_infomax(json.loads(sys.argv[1]), pathlib.Path(sys.argv[2]))\n"
        )
        argv = [sys.executable, "-c", code, json.dumps(cell), str(tmp_path)]
        with subprocess.Popen(argv) as process:
            deadline = time.monotonic() + 120
            while not list(tmp_path.glob("*.safetensors")) and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        kept = sorted(tmp_path.glob("*.safetensors"))
        assert 1 <= unpack(kept[-1].read_bytes())["epoch"] < 6
        assert without_time(run_infomax(cell, tmp_path)) == wanted

    def test_two_epochs_are_kept_and_in_the_end_one(self, tmp_path, monkeypatch):
        cell, there = {**cell_of("mine"), "epochs": 4}, []
        keep = Snapshots.save

        def counted(self, run):
            keep(self, run)
            there.append([p.name.split("-")[3] for p in sorted(tmp_path.glob("*.safetensors"))])

        monkeypatch.setattr(Snapshots, "save", counted)
        run_infomax(cell, tmp_path)
        assert there == [["0001"], ["0001", "0002"], ["0002", "0003"], ["0004"]]

    @pytest.mark.parametrize("damage", ["bit", "cut", "junk", "of another"])
    def test_a_damaged_checkpoint_gives_way_to_the_one_before(self, tmp_path, monkeypatch, damage):
        cell = {**cell_of("mine"), "epochs": 3, "probe_every": 3}
        wanted = without_time(run_infomax(cell))

        def interrupted(self, run):
            keep(self, run)
            if run.epoch == 2:
                raise KeyboardInterrupt

        keep = Snapshots.save
        monkeypatch.setattr(Snapshots, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_infomax(cell, tmp_path)
        monkeypatch.setattr(Snapshots, "save", keep)
        _, last = sorted(tmp_path.glob("*.safetensors"))
        data = bytearray(last.read_bytes())
        if damage == "bit":
            data[len(data) // 2] ^= 1
        elif damage == "cut":
            del data[1000:]
        elif damage == "junk":
            data[:] = b"nothing"
        else:  # whole, and under the name that it should have
            data[:] = pack({**unpack(bytes(data)), "of": "something else"})
            stem = last.name.rsplit("-", 1)[0]
            last = last.rename(tmp_path / f"{stem}-{sha256_of(bytes(data))}.safetensors")
        last.write_bytes(data)
        with pytest.warns(UserWarning, match="is damaged .* continuing from before it"):
            assert without_time(run_infomax(cell, tmp_path)) == wanted
        assert not last.exists()

    def test_torchrun_trains_one_model_with_two_processes(self, tmp_path):
        part = ["--objective", "demi", "--epochs", "3", "--units", "8", "--batch", "32"]
        options = [*part, "--probe-every", "3", "--no-check"]
        ends = []
        # A process of torch may abort while it ends, after its rows are stored: it is started
        # again, and finds them.
        torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1"]
        for start in (["-m"], [*torchrun, "-m"]):
            out = tmp_path / str(len(start))
            argv = [sys.executable, *start, "deminat", "paper", "infomax", *options, "--out", out]
            subprocess.run(argv, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
            rows = pl.read_csv(out / "infomax.csv")
            assert len(rows) == 4 * 4  # by one process only
            ends.append(rows.filter(pl.col("method") == "demi", pl.col("epoch") == 3))
            assert (out / "infomax.png").exists()
        assert [int(end["processes"][0]) for end in ends] == [1, 2]
        alone, both = (float(end["loss"][0]) for end in ends)
        # Batch norm sees half of the images. Half a batch, or another seed, is off by over .08.
        assert both == pytest.approx(alone, rel=0.05)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--device", "gpu"], "device must be cpu or cuda, got gpu"),
            (["--device", "cuda"], "torch finds no GPU here"),
        ],
    )
    def test_devices_that_are_not_there(self, options, message, tmp_path, monkeypatch):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        argv = ["paper", "infomax", "--epochs", "1", "--out", str(tmp_path), *options]
        assert message in str(CliRunner().invoke(app, argv).exception)

    def test_processes_that_train_together_have_no_jobs(self, tmp_path, monkeypatch):
        monkeypatch.setenv("WORLD_SIZE", "2")
        argv = ["paper", "infomax", "--jobs", "2", "--out", str(tmp_path)]
        assert "leave out --jobs" in str(CliRunner().invoke(app, argv).exception)


def test_the_study_is_the_papers():
    study = EXPERIMENTS["infomax"].study
    assert (study.units, study.batch, study.critic, study.negatives) == (2048, 64, "dot", 0)
    assert {training_for(name) for name in ("demi", "jsd", "smile(tau=1)", "smile(tau=5)")} == {
        "demi"
    }
    assert training_for("demi(alpha=0.1)") == "demi(alpha=0.1)"
    assert training_for("demi(alpha=0.5)") == "demi"
    for wrong in ("nothing", "demi(alpha=1.5)", "demi(alpha=0.0)"):
        with pytest.raises(
            DataError, match=f"no objective '{re.escape(wrong)}'; there are demi, jsd"
        ):
            training_for(wrong)
    with pytest.raises(DataError, match="dataset must be cifar10 or cifar100"):
        InfoMaxStudy(dataset="imagenet")


def test_normalised_scores_stand_beside_the_others_under_a_name_of_their_own():
    infomax = EXPERIMENTS["infomax"]
    study = InfoMaxStudy(trainings=("demi(alpha=0.015625)",), epochs=1, critic="scaled")
    seen = {"estimate": 1.0, "epoch": 1, "loss": 0.1, "conv": 0.6, "fc": 0.5, "output": 0.4}
    rows = [
        {**cell, "method": cell["training"], **seen}
        for cell in (*study.cells(), *replace(study, critic="normalised").cells())
    ]
    found = infomax.derived(rows)
    names = ["demi(alpha=0.015625)", "demi(alpha=0.015625), normalised"]
    assert [row["method"] for row in found] == names
    assert infomax.derived(found) == found  # as when rows of a file are taken up
    (table,) = infomax.all_tables(found)
    assert [name for name, _ in table.lines] == names
    figure = infomax.draw(found)
    assert figure.axes[0].get_legend_handles_labels()[1] == names
