"""Datasets of pairs and folders of arrays: one row per item."""

import numpy as np
import polars as pl
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset
from typer.testing import CliRunner

import deminat
from deminat import DataError
from deminat.cli import app
from deminat.data import files

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)).astype(np.float32)
Y = X[:, 0] + RNG.normal(size=200).astype(np.float32)


class Pairs(Dataset):
    """A dataset that records which items are loaded."""

    def __init__(self, change=lambda i, item: item, n=200):
        self.loaded, self.change, self.n = [], change, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.loaded.append(i)
        return self.change(i, (torch.from_numpy(X[i]), float(Y[i])))


def test_a_dataset_is_both_sides():
    plain = deminat.estimate(X, Y, method="gaussian")
    for dataset in (Pairs(), TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))):
        assert deminat.estimate(dataset, method="gaussian").mi == plain.mi
    assert deminat.estimate(Pairs(), None, method="gaussian").mi == plain.mi
    assert deminat.independence_test(Pairs()).p_value == deminat.independence_test(X, Y).p_value
    assert deminat.compare(Pairs(), methods=["ksg"])[0].n == 200


def test_an_item_is_loaded_once_and_only_if_it_is_drawn():
    dataset = Pairs()
    result = deminat.estimate(dataset, method="gaussian", max_rows=50)
    assert sorted({*dataset.loaded} - {0}) == [r for r in result.rows.tolist() if r]
    assert len(dataset.loaded) == len(set(dataset.loaded))
    assert result.mi == deminat.estimate(X, Y, method="gaussian", max_rows=50).mi


def test_images_and_labels_keep_their_shapes():
    images = RNG.normal(size=(30, 1, 4, 4))
    dataset = TensorDataset(torch.from_numpy(images), torch.arange(30) % 3)
    run = deminat.estimate(dataset, method="copula").diagnostics["run"]
    assert tuple(run.x.shape) == (1, 4, 4)


def bad(where, instead):
    return lambda i, item: instead(item) if i == where else item


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (bad(7, lambda item: (item[0][:2], item[1])), "item 7 .* x of shape .2,. where item 0 has"),
        (bad(7, lambda item: (*item, 3)), "item 7 of the dataset is a sequence of length 3"),
        (bad(7, lambda item: item[0]), "item 7 of the dataset is a single Tensor"),
        (bad(0, lambda item: {"x": 1}), "item 0 of the dataset is a single dict"),
        (bad(7, lambda item: (item[0], "cat")), "y of item 7 of the dataset holds <U3"),
        (bad(7, lambda item: (item[0], None)), "y of item 7 of the dataset holds object"),
        (bad(7, lambda item: ([[1], [2, 3]], 1.0)), "x of item 7 of the dataset is not an array"),
        (bad(7, lambda item: (item[0] + 1j, 1.0)), "x of item 7"),
        (bad(7, lambda item: 1 / 0), "item 7 of the dataset cannot be loaded: division by zero"),
        (bad(7, lambda item: (item[0] * np.nan, 1.0)), "NaN or inf in 1 of 200"),
    ],
)
def test_bad_items_are_refused(change, says):
    with pytest.raises(DataError, match=says):
        deminat.estimate(Pairs(change), method="gaussian")


class Stream(IterableDataset):
    def __iter__(self):
        return iter([])


def test_other_values_are_not_datasets():
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


def test_a_folder_has_one_row_per_file_in_natural_order(folder, tmp_path):
    np.save(tmp_path / "y.npy", np.arange(40.0))
    x, _ = files.scan_pair(folder, tmp_path / "y.npy")
    assert (len(x), x.row_width) == (40, 6)
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
    assert "choose y with --y NAME" in refused(table, "--x", f"{folder}/")
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


# Folders beside a column that names their files


def beside(tmp_path, cells, name="t.csv"):
    frame = pl.DataFrame({"age": [i % 7 + 0.5 for i in range(len(cells))], "file": cells})
    (frame.write_csv if name.endswith("csv") else frame.write_parquet)(tmp_path / name)
    return tmp_path / name


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("form", ["cell{}.npy", "cell{}", "images/cell{}.npy"])
@pytest.mark.parametrize("long", [False, True])
def test_files_that_a_column_names_in_another_order_are_refused(
    folder, tmp_path, monkeypatch, name, form, long
):
    if long:
        monkeypatch.setattr("deminat.data.files.text_stream.LONG", 0)
    names = [form.format(i) for i in range(40)]
    table = beside(tmp_path, sorted(names), name)
    words = "--x", f"{folder}/", "--y", "age"
    message = refused(table, *words)
    assert "column 'file' has cell10" in message
    assert "in row 3 where" in message
    assert f"{folder}/ has cell2" in message
    assert "sort the rows by that column" in message
    with pytest.raises(DataError, match="column 'file' has cell10"):
        files.scan_pair(folder, table)
    table = beside(tmp_path, names, name)
    done = CliRunner().invoke(app, ["estimate", str(table), *words, "--method", "ksg"])
    assert done.exit_code == 0, done.exception
    assert "in this order" not in done.stderr


@pytest.mark.parametrize(
    "cells",
    [
        [f"cell{i}.npy" for i in range(39, 0, -1)] + ["cell40.npy"],  # not exactly the files
        [f"cell{min(i, 38)}.npy" for i in range(39, -1, -1)],  # not each once
        [None, *(f"cell{i}.npy" for i in range(1, 40))],
        [str(i) for i in range(39, -1, -1)],
    ],
)
def test_the_order_of_a_folder_is_printed_unless_a_column_names_its_files(folder, tmp_path, cells):
    table = beside(tmp_path, cells)
    words = ["estimate", table, "--x", f"{folder}/", "--y", "age", "--method", "ksg"]
    done = CliRunner().invoke(app, [str(w) for w in words])
    assert done.exit_code == 0, done.exception
    order = "40 files, one per row, in this order: cell0.npy, cell1.npy, cell2.npy ..."
    assert f"note: {folder}/ has {order}" in done.stderr.splitlines()


def test_numbers_name_no_files(tmp_path):
    rows = tmp_path / "rows"
    rows.mkdir()
    for i in range(12):
        np.save(rows / f"{i}.npy", np.zeros(2))
    table = beside(tmp_path, [str(i) for i in range(11, -1, -1)])
    assert files.scan(table, f"{rows}/", "age")[0].named_by is None


def test_one_column_in_order_is_enough(folder, tmp_path):
    names = [f"cell{i}" for i in range(40)]
    frame = pl.DataFrame({"age": range(40), "next": names[1:] + names[:1], "file": names})
    frame.write_csv(tmp_path / "t.csv")
    assert files.scan(tmp_path / "t.csv", f"{folder}/", "age")[0].named_by == "file"
