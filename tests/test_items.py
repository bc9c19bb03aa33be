"""Datasets of pairs, and folders of arrays: one row an item."""

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset
from typer.testing import CliRunner

import deminat
from deminat import DataError, files
from deminat.cli import app

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)).astype(np.float32)
Y = X[:, 0] + RNG.normal(size=200).astype(np.float32)


class Pairs(Dataset):
    """A dataset that counts what it is asked for."""

    def __init__(self, change=lambda i, item: item, n=200):
        self.asked, self.change, self.n = [], change, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.asked.append(i)
        return self.change(i, (torch.from_numpy(X[i]), float(Y[i])))


def test_a_dataset_is_both_sides():
    plain = deminat.estimate(X, Y, method="gaussian")
    for dataset in (Pairs(), TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))):
        assert deminat.estimate(dataset, method="gaussian").mi == plain.mi
    assert deminat.estimate(Pairs(), None, method="gaussian").mi == plain.mi
    assert deminat.independence_test(Pairs()).p_value == deminat.independence_test(X, Y).p_value
    assert deminat.compare(Pairs(), methods=["ksg"])[0].n == 200


def test_an_item_is_asked_for_once_and_only_if_it_is_drawn():
    dataset = Pairs()
    result = deminat.estimate(dataset, method="gaussian", max_rows=50)
    assert sorted({*dataset.asked} - {0}) == [r for r in result.rows.tolist() if r]
    assert len(dataset.asked) == len(set(dataset.asked))
    assert result.mi == deminat.estimate(X, Y, method="gaussian", max_rows=50).mi


def test_images_and_labels_keep_their_shapes():
    images = RNG.normal(size=(30, 1, 4, 4))
    dataset = TensorDataset(torch.from_numpy(images), torch.arange(30) % 3)
    assert deminat.estimate(dataset, method="copula").diagnostics["run"]["x"]["shape"] == [1, 4, 4]


def bad(where, instead):
    return lambda i, item: instead(item) if i == where else item


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (bad(7, lambda item: (item[0][:2], item[1])), "item 7 .* x of shape .2,. where item 0 has"),
        (bad(7, lambda item: (*item, 3)), "item 7 of the dataset is 3 things"),
        (bad(7, lambda item: item[0]), "item 7 of the dataset is one Tensor"),
        (bad(0, lambda item: {"x": 1}), "item 0 of the dataset is one dict"),
        (bad(7, lambda item: (item[0], "cat")), "y of item 7 of the dataset holds <U3"),
        (bad(7, lambda item: (item[0], None)), "y of item 7 of the dataset holds object"),
        (bad(7, lambda item: ([[1], [2, 3]], 1.0)), "x of item 7 of the dataset is no array"),
        (bad(7, lambda item: (item[0] + 1j, 1.0)), "x of item 7"),
        (bad(7, lambda item: 1 / 0), "item 7 of the dataset cannot be had: division by zero"),
        (bad(7, lambda item: (item[0] * np.nan, 1.0)), "NaN or inf in 1 of 200"),
    ],
)
def test_bad_items_are_refused(change, says):
    with pytest.raises(DataError, match=says):
        deminat.estimate(Pairs(change), method="gaussian")


class Stream(IterableDataset):
    def __iter__(self):
        return iter([])


def test_other_things_are_no_datasets():
    with pytest.raises(DataError, match="has no length"):
        deminat.estimate(Stream())
    with pytest.raises(DataError, match="has no items"):
        deminat.estimate(Pairs(n=0))
    for value in (X, X.tolist(), torch.from_numpy(X), "abc", 5, None, {"a": 1}):
        with pytest.raises(DataError):
            deminat.estimate(value)


# Folders


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "images"
    path.mkdir()
    for i in range(40):
        np.save(path / f"cell{i}.npy", RNG.normal(size=(2, 3)))
    (path / "notes.txt").write_text("not a row")
    return path


def rows_of(path):
    return np.stack([np.load(path / f"cell{i}.npy") for i in range(40)])


def test_a_folder_is_a_row_a_file_in_natural_order(folder, tmp_path):
    np.save(tmp_path / "y.npy", np.arange(40.0))
    x, _ = files.scan_pair(folder, tmp_path / "y.npy")
    assert (len(x), x.breadth) == (40, 6)
    np.testing.assert_array_equal(x.take(), rows_of(folder))
    np.testing.assert_array_equal(x.take(np.array([2, 10])), rows_of(folder)[[2, 10]])
    np.testing.assert_array_equal(np.vstack(list(x.pieces())), rows_of(folder))


def test_a_folder_goes_with_columns_of_a_file(folder, tmp_path):
    (tmp_path / "t.csv").write_text("age\n" + "".join(f"{i % 7}.5\n" for i in range(40)))
    np.save(tmp_path / "y.npy", np.arange(40) % 7 + 0.5)
    answers = set()
    for words in (
        [tmp_path / "t.csv", "--x", f"{folder}/", "--y", "age"],
        [folder, tmp_path / "y.npy"],
    ):
        told = CliRunner().invoke(app, ["estimate", *map(str, words), "--method", "ksg"])
        assert told.exit_code == 0, told.exception
        answers.add(told.stdout)
    assert len(answers) == 1


def refused(*words):
    done = CliRunner().invoke(app, ["estimate", *map(str, words), "--method", "ksg"])
    assert isinstance(done.exception, DataError), done.exception
    assert str(done.exception).isprintable()
    return str(done.exception)


def test_bad_folders_are_refused(folder, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("age\n" + "".join(f"{i % 7}.5\n" for i in range(40)))
    words = table, "--x", f"{folder}/", "--y", "age"
    assert "is on both sides" in refused(table, "--x", f"{folder}/", "--y", f"{folder}/")
    assert "say what y is" in refused(table, "--x", f"{folder}/")
    assert "no column" in refused(table, "--x", f"{tmp_path}/nowhere/", "--y", "age")
    np.save(folder / "cell3.npy", np.zeros((3, 2)))
    assert "cell3.npy has shape (3, 2) where cell0.npy has (2, 3)" in refused(*words)
    (folder / "cell3.npy").write_bytes((folder / "cell4.npy").read_bytes()[:-8])
    assert "declares 48 bytes of values and holds 40" in refused(*words)
    np.save(folder / "cell3.npy", np.array([{}], dtype=object))
    assert "could run code" in refused(*words)
    (folder / "cell3.npy").unlink()
    assert "x has 39, y has 40 rows" in refused(*words)
    (folder / "cell3.npy").mkdir()
    assert "is a directory" in refused(*words)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "without .npy files" in refused(empty, folder)
