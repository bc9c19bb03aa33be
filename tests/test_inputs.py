"""Whatever people call an array becomes a Sample, or an error of one line that says what to do."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch

import deminat
from deminat import DataError, Gaussian
from deminat.data.sample import RowOptions, as_sample, as_samples_given, label_warnings

N = 30
RNG = np.random.default_rng(0)
COLUMN = RNG.normal(size=N)
COLUMNS = RNG.normal(size=(N, 2))
Y = RNG.normal(size=N)
ABC = list("abc") * 10


def rows_of(x, **options):
    """The x side of a sample."""
    return as_sample(x, Y, RowOptions(**options)).x


def codes(sample):
    return [w.code for w in sample.warnings]


# Containers

CONTAINERS = {
    "array": np.array,
    "list": np.ndarray.tolist,
    "tensor": torch.tensor,
    "tensor with gradient": lambda a: torch.tensor(a, requires_grad=True),
    "pandas": pd.DataFrame,
    "pandas, named": lambda a: pd.DataFrame(a, columns=[f"c{j}" for j in range(a.shape[1])]),
    "polars": pl.DataFrame,
    "fortran order": np.asfortranarray,
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "big-endian": lambda a: a.astype(">f8"),
    "objects": lambda a: a.astype(object),
    "pandas objects": lambda a: pd.DataFrame(a, dtype=object),
}


@pytest.mark.parametrize("wrap", CONTAINERS.values(), ids=CONTAINERS)
def test_every_container_gives_the_same_values(wrap):
    assert np.array_equal(rows_of(wrap(COLUMNS)), COLUMNS)
    assert rows_of(wrap(COLUMNS)).dtype == np.float64


SERIES = [np.array, list, tuple, torch.tensor, pd.Series, pd.Index, pl.Series, memoryview]


@pytest.mark.parametrize("wrap", SERIES, ids=lambda w: f"{w.__module__}.{w.__name__}")
def test_one_value_a_row_is_one_column(wrap):
    assert np.array_equal(rows_of(wrap(COLUMN)), COLUMN[:, None])


def test_series_bring_their_name():
    assert as_sample(pd.Series(COLUMN, name="raf"), pl.Series("mek", Y)).x_names == ("raf",)
    assert as_sample(pd.Series(COLUMN, name="raf"), pl.Series("mek", Y)).y_names == ("mek",)


def test_images_keep_their_shape():
    images = RNG.normal(size=(N, 3, 4, 5))
    assert np.array_equal(rows_of(images), images)
    assert np.array_equal(rows_of(torch.from_numpy(images)), images)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int8])
def test_tensors_of_any_type_are_widened_not_rounded(dtype):
    tensor = torch.tensor(COLUMN * 9).to(dtype)
    assert np.array_equal(rows_of(tensor)[:, 0], tensor.double().numpy())


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "f2", "f4", "g", "?"])
def test_arrays_of_any_type_are_widened_not_rounded(dtype):
    array = (COLUMN * 9).astype(dtype)
    assert np.array_equal(rows_of(array)[:, 0], array.astype(np.float64))


def test_read_only_memory_maps_are_read(tmp_path):
    COLUMNS.tofile(tmp_path / "x")
    mapped = np.memmap(tmp_path / "x", dtype=np.float64, mode="r", shape=COLUMNS.shape)
    assert np.array_equal(rows_of(mapped), COLUMNS)


def test_inputs_are_neither_changed_nor_shared():
    frame, tensor = pd.DataFrame(COLUMNS), torch.tensor(COLUMNS)
    with_nan = np.where(np.arange(N) == 3, np.nan, COLUMN)
    before = with_nan.copy()
    as_sample(with_nan, Y, RowOptions(nan="omit"))
    assert np.array_equal(with_nan, before, equal_nan=True)
    for given, values in ((COLUMNS, COLUMNS), (frame, frame.to_numpy()), (tensor, tensor.numpy())):
        sample = as_sample(given, given)
        assert not np.shares_memory(sample.x, values)
        assert not np.shares_memory(sample.x, sample.y)


def test_numbers_of_other_kinds_are_numbers():
    decimals = [decimal.Decimal(i) / 4 for i in range(N)]
    assert np.array_equal(rows_of(decimals)[:, 0], np.arange(N) / 4)
    assert np.array_equal(rows_of(pl.Series(decimals))[:, 0], np.arange(N) / 4)
    assert np.array_equal(rows_of(range(N))[:, 0], np.arange(N))
    assert np.array_equal(rows_of(pd.Series([1, 2.5] * 15, dtype=object))[:, 0], [1, 2.5] * 15)
    assert np.array_equal(rows_of(pl.Series([1, 2.5] * 15, dtype=pl.Object))[:, 0], [1, 2.5] * 15)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(range(N), dtype="Int64", name="q"),
        pd.Series([True, False] * 15, dtype="boolean", name="q"),
        pd.Series([True, False] * 15, name="q"),
        pl.Series("q", range(N), dtype=pl.UInt64),
        pl.Series("q", [True, False] * 15),
    ],
    ids=lambda c: str(c.dtype),
)
def test_integers_and_booleans_of_frames_are_numbers(column):
    sample = as_sample(column, Y)
    assert np.array_equal(sample.x[:, 0], np.asarray(column).astype(float))
    assert sample.x_names == ("q",)


@pytest.mark.parametrize("names", [("*", "b"), ("^.*$", "b"), ("b", "^b$"), ("", "b")], ids=str)
def test_polars_does_not_expand_names_as_patterns(names):
    first = pl.Series(ABC, dtype=pl.Enum(["a", "b", "c"]))
    sample = as_sample(pl.DataFrame({names[0]: first, names[1]: COLUMN}), Y)
    assert sample.x.shape == (N, 4)
    assert sample.x_names == (*(f"{names[0]}={level}" for level in "abc"), names[1])
    frame = pl.DataFrame({names[0]: COLUMN, names[1]: -COLUMN})
    assert np.array_equal(rows_of(frame), np.stack([COLUMN, -COLUMN], axis=1))


def test_pandas_names_need_not_be_strings():
    frame = pd.DataFrame(COLUMNS, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]))
    assert np.array_equal(rows_of(frame), COLUMNS)
    assert np.array_equal(rows_of(pd.DataFrame(COLUMNS, columns=[1, 0])), COLUMNS)
    assert np.array_equal(rows_of(pd.DataFrame({None: COLUMN}))[:, 0], COLUMN)


# Missing values


def test_missing_values_are_an_error_with_column_and_count():
    frame = pd.DataFrame({"raf": COLUMN, "mek": COLUMN})
    frame.loc[[3, 5], "mek"] = [np.nan, -np.inf]
    with pytest.raises(DataError, match=r"x has NaN or inf.* in 2 of 30 rows: mek \(2\).*omit"):
        as_sample(frame, Y)
    with pytest.raises(DataError, match=r"y has .*column 0 \(1\)"):
        as_sample(Y, np.where(np.arange(N) == 0, np.inf, COLUMN))


@pytest.mark.parametrize(
    "column",
    [
        [None, *range(N - 1)],
        np.array([None, *range(N - 1)], dtype=object),
        pd.Series([None, *range(N - 1)], dtype="Int64"),
        pd.Series([None, *[True] * (N - 1)], dtype="boolean"),
        pd.Series([None, *range(N - 1)], dtype=object),
        pl.Series([None, *range(N - 1)]),
        pl.Series([None, *[True] * (N - 1)]),
        pd.Series([None, *ABC[1:]], dtype="category"),
        pd.Series([None, *range(N - 1)], dtype="category"),
        pl.Series([None, *ABC[1:]], dtype=pl.Categorical),
        pl.Series([None, *ABC[1:]], dtype=pl.Enum(["a", "b", "c"])),
    ],
    ids=lambda c: f"{type(c).__module__}-{getattr(c, 'dtype', 'list')}",
)
def test_missing_values_of_any_kind_are_found_and_omitted(column):
    with pytest.raises(DataError, match="1 of 30 rows"):
        as_sample(column, Y)
    sample = as_sample(column, Y, RowOptions(nan="omit"))
    assert np.array_equal(sample.y[:, 0], Y[1:])
    assert np.isfinite(sample.x).all()


def test_pairs_are_omitted_jointly_with_a_warning():
    x, y = COLUMN.copy(), Y.copy()
    x[3], y[7], x[9], y[9] = np.nan, np.inf, np.nan, np.nan
    sample = as_sample(x, y, RowOptions(nan="omit"))
    keep = ~np.isin(np.arange(N), [3, 7, 9])
    assert np.array_equal(sample.x[:, 0], COLUMN[keep])
    assert np.array_equal(sample.y[:, 0], Y[keep])
    assert codes(sample) == ["missing"]
    assert "3 of 30 pairs" in sample.warnings[0].message


def test_nothing_omitted_is_no_warning():
    assert not as_sample(COLUMN, Y, RowOptions(nan="omit")).warnings


def test_omitting_too_many_is_an_error():
    with pytest.raises(DataError, match="at least 2"):
        as_sample([np.nan] * N, Y, RowOptions(nan="omit"))


def test_an_unknown_policy_is_an_error():
    with pytest.raises(ValueError, match='"raise" or "omit", got \'drop\''):
        as_sample(COLUMN, Y, RowOptions(nan="drop"))


# What cannot be used

UNLIKE = [f"note {i}" for i in range(N)]
UNUSABLE = {
    "unequal lengths": (COLUMN[:-1], "x has 29 rows and y has 30"),
    "a row instead of a column": (COLUMN[None], "x has 1 rows and y has 30"),
    "no columns": (np.zeros((N, 0)), "no columns"),
    "no pixels": (np.zeros((N, 3, 0, 5)), "no columns"),
    "no columns of a frame": (pd.DataFrame(index=range(N)), "no columns"),
    "a number": (3.0, "single value"),
    "a numpy number": (np.float64(3), "single value"),
    "a tensor number": (torch.tensor(3.0), "single value"),
    "None": (None, "None"),
    "ragged lists": ([[1.0]] * (N - 1) + [[1.0, 2.0]], "differ in length"),
    "ragged arrays": ([np.zeros((2, 2))] * (N - 1) + [np.zeros((2, 3))], "differ in length"),
    "free text": (UNLIKE, "hardly any is repeated .30 kinds.*'note 0'"),
    "numbers as strings": (["1.5"] * N, "column 0 of x holds numbers as text"),
    "numbers and strings": (np.array([1, "a"] * 15, dtype=object), "also 1, which is none"),
    "dates": (np.arange(N).astype("datetime64[D]"), "datetime64"),
    "a dictionary": ({"a": COLUMN}, "not numbers"),
    "records": (np.zeros(N, dtype=[("a", "f8")]), "type"),
    "complex": (COLUMN + 1j, "Complex data not supported"),
    "complex tensor": (torch.tensor(COLUMN) + 1j, "Complex data not supported"),
    "sparse matrix": (scipy.sparse.csr_array(np.eye(N)), r"sparse.*x\.toarray\(\)"),
    "pandas free text": (pd.Series(map(str, UNLIKE), name="s"), "column s of x holds text"),
    "polars free text": (pl.Series("s", UNLIKE), "column s of x holds text"),
    "pandas dates": (pd.DataFrame({"d": pd.date_range("2020", periods=N)}), "column d of x"),
    "polars dates": (pl.Series("d", [datetime.date(2020, 1, 1)] * N), "column d of x"),
    "pandas durations": (pd.DataFrame({"d": pd.to_timedelta(np.arange(N), unit="s")}), "column d"),
    "polars lists": (pl.Series("l", [[1.0, 2.0]] * N), "column l of x"),
    "polars objects": (pl.Series("o", [object()] * N, dtype=pl.Object), "column o"),
    "a lazy frame": (pl.LazyFrame({"a": COLUMN}), "x"),
}


@pytest.mark.parametrize(("x", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_used_is_an_error_of_one_line(x, message):
    with pytest.raises(DataError, match=message) as caught:
        as_sample(x, Y)
    assert str(caught.value).isprintable()


def test_too_few_rows_are_an_error():
    with pytest.raises(DataError, match=r"n_samples = 1\b.*at least 2"):
        as_sample([1.0], [2.0])
    with pytest.raises(DataError, match="at least 40"):
        as_sample(COLUMN, Y, least=40)
    assert len(as_sample([1.0], [2.0], least=1)) == 1


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", ["\x1b[2J", "a\nb", "\u202ex", "<script>" * 40], ids=ascii)
def test_names_in_messages_are_printable_and_short(frame, name):
    for column in ([np.nan] * N, UNLIKE):
        with pytest.raises(DataError) as caught:
            as_sample(frame({name: column}), Y)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 300


def test_strings_in_messages_are_printable_and_short():
    with pytest.raises(DataError) as caught:
        as_sample(np.array([f"\x1b[2J{i}" + "x" * 1000 for i in range(N)]), Y)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


# Categories

CATEGORIES = {
    "pandas": lambda values: pd.Series(values, dtype="category", name="q"),
    "polars categorical": lambda values: pl.Series("q", values, dtype=pl.Categorical),
    "polars enum": lambda values: pl.Series("q", values, dtype=pl.Enum(["a", "b", "c"])),
}
every_category = pytest.mark.parametrize("declared", CATEGORIES.values(), ids=CATEGORIES)


@every_category
def test_categories_become_indicators(declared):
    sample = as_sample(declared(ABC), Y)
    assert np.array_equal(sample.x, np.tile(np.eye(3), (10, 1)))
    assert sample.x_names == ("q=a", "q=b", "q=c")


TEXT = {
    "a list": lambda values: values,
    "an array": np.array,
    "objects": lambda values: np.array(values, dtype=object),
    "bytes": lambda values: np.array([v.encode() for v in values]),
    "pandas": pd.Series,
    "polars": pl.Series,
}


@pytest.mark.parametrize("text", TEXT.values(), ids=TEXT)
def test_text_that_is_repeated_becomes_indicators(text):
    sample = as_sample(text(ABC), Y)
    assert np.array_equal(sample.x, np.tile(np.eye(3), (10, 1)))
    assert [name[-2:] for name in sample.x_names] == ["=a", "=b", "=c"]


def test_text_stands_beside_numbers_in_an_array_of_objects():
    table = np.array([[word, i] for i, word in enumerate(ABC)], dtype=object)
    sample = as_sample(table, Y)
    assert sample.x_names == ("column 0=a", "column 0=b", "column 0=c", "column 1")
    assert np.array_equal(sample.x[:, 3], np.arange(N))


def test_missing_text_is_omitted():
    words = ["a", None, "b"] * 10
    assert as_sample(words, Y, RowOptions(nan="omit")).x_names == ("column 0=a", "column 0=b")
    with pytest.raises(DataError, match="NaN or inf in 10 of 30 rows"):
        as_sample(words, Y)


def test_new_rows_of_text_may_lack_levels_but_have_no_new_ones():
    rng = np.random.default_rng(0)
    code = rng.integers(3, size=300)
    words, y = np.array(["red", "green", "blue"])[code], code + 0.3 * rng.normal(size=300)
    result = deminat.estimate(words, y, folds=2, preset="quick")
    whole = result.log_ratio(words, y)
    assert result.log_ratio(words[:5].tolist(), y[:5]) == pytest.approx(whole[:5])
    with pytest.raises(DataError, match="never saw"):
        result.log_ratio(["pink"], [0.0])


@every_category
def test_missing_categories_are_no_level(declared):
    sample = as_sample(
        declared(["a", None, "b"] * 10), Y, RowOptions(nan="omit")
    ).without_constants()
    assert np.array_equal(sample.x, np.tile(np.eye(2), (10, 1)))
    assert codes(sample)[0] == "missing"


def test_categories_stand_beside_numbers():
    frame = pd.DataFrame({"n": COLUMN, "q": pd.Categorical(ABC), "b": [True, False, True] * 10})
    sample = as_sample(frame, Y)
    assert sample.x_names == ("n", "q=a", "q=b", "q=c", "b")
    assert np.array_equal(sample.x[:, 0], COLUMN)


def test_categories_need_not_be_strings():
    numbers = as_sample(pd.Series([10, 2, 1] * 10, dtype="category", name="q"), Y)
    assert numbers.x.shape == (N, 3)
    assert (numbers.x.sum(axis=1) == 1).all()


# Labels

MANY_ROWS = 2_000
ZIPS = RNG.integers(30, size=MANY_ROWS)
SIZES = RNG.normal(size=MANY_ROWS)
HOUSES = pl.DataFrame(
    {
        "zip": ZIPS,
        "kind": np.array(["flat", "house", "hut"])[ZIPS % 3],
        "size": SIZES,
        "sold": ZIPS > 12,
    }
)


def discrete(x, y=SIZES, **options):
    """Which columns of x and of y are read as labels."""
    sample = as_sample(x, y, RowOptions(**options))
    return sample.x_discrete, sample.y_discrete


def test_columns_of_few_values_are_labels():
    assert discrete(ZIPS) == ((True,), (False,))
    assert discrete(ZIPS * 7.5 - 3) == ((True,), (False,))  # floats are codes too
    assert discrete(HOUSES)[0] == (True, True, True, True, False, True)
    assert discrete(SIZES, HOUSES["kind"]) == ((False,), (True,) * 3)


@pytest.mark.parametrize(
    ("n", "values", "expected"),
    [(1_000, 100, True), (1_000, 101, False), (5_000, 256, True), (5_000, 257, False)],
)
def test_values_of_labels_are_few_and_repeated(n, values, expected):
    x = np.arange(n) % values
    assert discrete(x, np.zeros(n)) == ((expected,), (True,))
    assert discrete(np.sort(x), np.zeros(n))[0] == (expected,)  # all rows count, not the first


def test_text_is_a_label_however_few_the_rows():
    assert discrete(["a", "b", "a", "c"], np.arange(4.0)) == ((True,) * 3, (False,))


def test_rows_that_are_left_out_do_not_decide():
    x = np.concatenate([ZIPS, SIZES])
    y = np.concatenate([SIZES, np.full(MANY_ROWS, np.nan)])
    assert discrete(x, y, nan="omit") == ((True,), (False,))


@pytest.mark.parametrize(
    ("declared", "of_x", "of_y"),
    [
        (True, "111111", "1"),
        (False, "011100", "0"),
        ([], "011100", "0"),
        (["size"], "011110", "0"),
        (("zip", "sold"), "111101", "0"),
        (["kind"], "011100", "0"),
        (["zip of x"], "111100", "0"),
        (["x"], "111111", "0"),
        (["y"], "011100", "1"),
        (["column 0"], "011100", "1"),
        (["column 0 of y", "size"], "011110", "1"),
    ],
    ids=str,
)
def test_labels_are_declared(declared, of_x, of_y):
    found = discrete(HOUSES, discrete=declared)
    assert ["".join(str(int(flag)) for flag in side) for side in found] == [of_x, of_y]


def test_a_column_called_like_a_side_is_that_column():
    frame = HOUSES.select(x="size", size="zip")
    assert discrete(frame, SIZES, discrete=["x"]) == ((True, False), (False,))
    assert discrete(SIZES, frame, discrete=["x"]) == ((False,), (True, False))


@pytest.mark.parametrize("name", ["a\nb", "long" * 40, "zip of x", "{zip}"], ids=ascii)
def test_labels_may_have_any_name(name):
    frame = pl.DataFrame({name: SIZES, "zip": ZIPS})
    for declared in (name, f"{as_sample(frame, SIZES).x_names[0]} of x"):
        assert discrete(frame, discrete=[declared])[0] == (True, False)


def test_a_declared_label_stays_one_column_of_codes():
    sample = as_sample(HOUSES.select("zip"), SIZES, RowOptions(discrete=["zip"]))
    assert np.array_equal(sample.x[:, 0], ZIPS)


@pytest.mark.parametrize("name", ["zpi", "zip of y", "column 1", "given", "\x1b[2J"])
def test_labels_that_no_column_has_are_refused(name):
    with pytest.raises(DataError, match="x has zip, kind, size, sold; y has column 0") as caught:
        discrete(HOUSES, discrete=["zip", name])
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("wrong", ["zip", 3, [1], [None]], ids=repr)
def test_what_declares_no_labels_is_refused(wrong):
    with pytest.raises(ValueError, match="discrete must be True, False or a list of names"):
        RowOptions(discrete=wrong)


def test_pixels_are_no_labels():
    images = RNG.integers(2, size=(MANY_ROWS, 1, 2, 2))
    assert discrete(images, discrete=None) == ((), (False,))
    assert discrete(images, discrete=True) == ((), (True,))
    with pytest.raises(DataError, match="x has an image"):
        discrete(images, discrete=["x"])
    both, known, pair = as_samples_given(ZIPS, SIZES, images)
    assert [s.y_discrete for s in (both, known, pair)] == [(False,) * 5, (False,) * 4, (False,)]


def test_labels_follow_their_columns():
    given = HOUSES.select("kind", "size")
    both, known, pair = as_samples_given(HOUSES, np.stack([SIZES, ZIPS], axis=1), given)
    assert both.y_discrete == (*pair.y_discrete, *known.y_discrete)
    assert pair.y_discrete == (False, True)
    assert known.y_discrete == (True, True, True, False)
    assert known.take(np.arange(5)).x_discrete == known.x_discrete == discrete(HOUSES)[0]
    constant = pl.DataFrame({"zero": np.zeros(MANY_ROWS), "size": SIZES, "zip": ZIPS})
    sample = as_sample(SIZES, constant).without_constants()
    assert (sample.y_names, sample.y_discrete) == (("size", "zip"), (False, True))
    images = as_sample(np.zeros((MANY_ROWS, 1, 2, 2)), constant).without_constants()
    assert images.x_discrete == ()


def labels_of(*samples):
    return [str(caution) for caution in label_warnings(samples)]


def test_numbers_that_are_read_as_labels_are_named():
    (caution,) = labels_of(as_sample(ZIPS, SIZES))
    assert caution.startswith("labels: x takes 30 distinct values and is read as a label: its ")
    assert "discrete=False (--discrete none)" in caution
    (caution,) = labels_of(as_sample(SIZES, HOUSES))
    assert "zip of y takes 30 distinct values" in caution  # neither text nor two values
    (caution,) = labels_of(*as_samples_given(HOUSES, SIZES, ZIPS))
    assert "zip of x (30 values), given (30 values) are read as labels" in caution
    assert labels_of(as_sample(SIZES, HOUSES.drop("zip"))) == []


def test_names_of_labels_are_few_and_printable():
    codes = RNG.integers(3, size=(MANY_ROWS, 40))
    frame = pd.DataFrame(codes, columns=[f"\x1b[2J{j}" + "x" * 100 for j in range(40)])
    (caution,) = labels_of(as_sample(frame, SIZES))
    assert caution.isprintable()
    assert "and 35 more columns are read as labels" in caution
    assert len(caution) < 700


def warned(result):
    return [w.message for w in result.warnings if w.code == "labels"]


def test_an_estimate_says_once_which_numbers_are_labels():
    few = slice(0, 400)
    codes, numbers = ZIPS[few] % 5, SIZES[few]
    quick = {"preset": "quick", "folds": 2, "budget": 1}
    trained, closed = deminat.compare(codes, numbers, methods=["demi", "ksg"], **quick)
    assert warned(trained) == [
        "x takes 5 distinct values and is read as a label: its codes may be in any order"
    ]
    assert warned(closed) == []  # neighbours of numbers
    given = deminat.estimate(codes, numbers, given=codes % 3, **quick)
    assert len(warned(given)) == 1
    for declared in (True, False, ["x"]):
        assert warned(deminat.estimate(codes, numbers, discrete=declared, **quick)) == []


@pytest.mark.parametrize("declared", [None, True, False, ["x"]])
def test_new_rows_need_not_show_what_is_a_label(declared, tmp_path):
    codes, y = ZIPS[:400] % 5, (ZIPS[:400] % 5 == 2) + SIZES[:400] / 3
    result = deminat.estimate(codes, y, discrete=declared, folds=2, preset="quick")
    result.save(tmp_path)
    loaded = deminat.load(tmp_path)
    assert loaded.log_ratio(codes[:3], y[:3]) == pytest.approx(loaded.log_ratio(codes, y)[:3])


# Constant columns


def test_constant_columns_are_dropped_with_a_warning():
    frame = pd.DataFrame({"a": COLUMN, "same": 3.0, "b": Y, "zero": 0})
    sample = as_sample(frame, Y).without_constants()
    assert np.array_equal(sample.x, np.stack([COLUMN, Y], axis=1))
    assert sample.x_names == ("a", "b")
    assert codes(sample) == ["constant"]
    assert (
        "2 constant column(s) of x carry no information: same, zero" in sample.warnings[0].message
    )
    assert not sample.is_constant()


def test_of_an_all_constant_side_one_column_stays():
    sample = as_sample(COLUMN, np.ones((N, 3))).without_constants()
    assert sample.y.shape == (N, 1)
    assert sample.is_constant()
    assert "MI is 0" in sample.warnings[0].advice


def test_where_all_columns_vary_there_is_no_warning():
    sample = as_sample(COLUMNS, Y).without_constants()
    assert not sample.warnings
    assert np.array_equal(sample.x, COLUMNS)


def test_constant_pixels_keep_their_place():
    images = RNG.normal(size=(N, 1, 4, 4))
    images[:, :, 0] = 0
    sample = as_sample(images, Y).without_constants()
    assert sample.x.shape == (N, 1, 4, 4)
    assert not sample.is_constant()
    assert as_sample(0 * images, Y).is_constant()


# Duplicated rows


def partition(sample):
    """The sets of rows that count as copies of one observation."""
    sets = {}
    for row, label in enumerate(sample.labels.tolist()):
        sets.setdefault(label, []).append(row)
    return sorted(map(tuple, sets.values()))


CONTINUOUS = {
    "1-d": (RNG.normal(size=500), RNG.normal(size=500)),
    "many-d": (RNG.normal(size=(500, 7)), RNG.normal(size=(500, 3))),
    "images": (RNG.normal(size=(500, 1, 3, 3)), RNG.normal(size=(500, 2))),
    "one side discrete": (RNG.normal(size=500), RNG.integers(0, 2, 500)),
    "y = x": 2 * (RNG.normal(size=500),),
}
continuous = pytest.mark.parametrize(("x", "y"), CONTINUOUS.values(), ids=CONTINUOUS)


@continuous
def test_different_rows_stand_for_themselves(x, y):
    sample = as_sample(x, y)
    assert sample.labels is None
    assert not sample.warnings


@continuous
@pytest.mark.parametrize("copies", [2, 5])
def test_rows_that_are_all_repeated_are_labelled_with_a_warning(x, y, copies):
    n = len(x)
    sample = as_sample(np.concatenate([x] * copies), np.concatenate([y] * copies))
    assert partition(sample) == [tuple(range(i, copies * n, n)) for i in range(n)]
    assert codes(sample) == ["duplicates"]
    assert f"{(copies - 1) * n} of {copies * n} rows" in sample.warnings[0].message


@continuous
def test_2_percent_of_copies_far_apart_are_labelled_with_a_warning(x, y):
    few = slice(0, len(x) // 50)
    sample = as_sample(np.concatenate([x, x[few]]), np.concatenate([y, y[few]]))
    assert sum(len(rows) == 2 for rows in partition(sample)) == len(x) // 50
    assert codes(sample) == ["duplicates"]


@continuous
def test_a_single_copy_is_labelled_without_a_warning(x, y):
    sample = as_sample(np.concatenate([x, x[:1]]), np.concatenate([y, y[:1]]))
    assert (0, len(x)) in partition(sample)
    assert not sample.warnings


def test_rows_that_agree_on_one_side_only_are_no_copies():
    assert as_sample(np.repeat(RNG.normal(size=250), 2), RNG.normal(size=500)).labels is None


def test_minus_zero_equals_zero():
    x, y = RNG.normal(size=(2, 500))
    x[0], x[499], y[0], y[499] = 0.0, -0.0, -0.0, 0.0
    assert (0, 499) in partition(as_sample(x, y))


def test_labels_follow_the_selected_rows():
    x, y = RNG.normal(size=(2, 100))
    sample = as_sample(np.tile(x, 2), np.tile(y, 2))
    part = sample.take(np.array([3, 150, 103]))
    assert np.array_equal(part.x[:, 0], x[[3, 50, 3]])
    assert part.labels[0] == part.labels[2] != part.labels[1]


def test_omitted_rows_have_no_labels():
    x, y = (np.tile(a, 2) for a in RNG.normal(size=(2, 100)))
    x[0] = np.nan
    sample = as_sample(x, y, RowOptions(nan="omit"))
    assert len(sample.labels) == len(sample) == 199
    assert codes(sample) == ["missing", "duplicates"]


COIN, DIE = RNG.integers(0, 2, 2000), RNG.integers(0, 7, 2000)
MANY = RNG.integers(0, 100, 2000)
DISCRETE = {
    "binary": (COIN, RNG.integers(0, 2, 2000)),
    "small integers": (DIE, RNG.integers(0, 9, 2000)),
    "y = x": (DIE, DIE),
    "y = g(x)": (DIE, DIE % 3),
    "five coins": (RNG.integers(0, 2, (2000, 5)), COIN),
    "100 levels, noisy": (MANY, MANY + RNG.integers(0, 5, 2000)),
    "both constant": (np.zeros(2000), np.zeros(2000)),
}


@pytest.mark.parametrize(("x", "y"), DISCRETE.values(), ids=DISCRETE)
def test_equal_rows_of_discrete_data_are_natural(x, y):
    sample = as_sample(x, y)
    assert sample.labels is None
    assert not sample.warnings


BITS = RNG.integers(0, 2, (2000, 9))
FUNCTIONS = {
    "y = x": (MANY, MANY),
    "y = x % 7": (MANY, MANY % 7),
    "parity": (BITS, BITS.sum(axis=1) % 2),
    "counts": 2 * (RNG.poisson(1000, 2000),),
}


@pytest.mark.parametrize(("x", "y"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_equal_rows_are_natural_where_y_is_a_function_of_many_levels(x, y):
    assert as_sample(x, y).labels is None


def with_an_atom(kind, n=2000):
    """Continuous pairs of which a share sits at one point, by chance and not by copying."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, n))
    if kind == "clipped":
        x = np.minimum(x, 1)
        return x, np.minimum(x + 0.3 * y, 1)
    zero = rng.random(n) < float(kind)
    return np.where(zero, 0, x), np.where(zero, 0, y)


@pytest.mark.parametrize("kind", ["0.1", "0.5", "clipped"])
def test_an_atom_is_not_one_observation(kind):
    sample = as_sample(*with_an_atom(kind))
    assert sample.labels is None or np.bincount(sample.labels).max() < 20


# Known faults


def test_masked_values_are_missing():
    masked = np.ma.masked_array(COLUMN, mask=np.arange(N) == 3)
    with pytest.raises(DataError, match="1 of 30 rows"):
        as_sample(masked, Y)


@pytest.mark.parametrize("empty", [[], np.zeros((0, 2)), pd.DataFrame({"a": []})], ids=type)
def test_no_rows_are_an_error(empty):
    with pytest.raises(DataError, match="at least 2"):
        as_sample(empty, [])


@every_category
def test_a_category_that_is_missing_everywhere_is_an_error(declared):
    with pytest.raises(DataError, match="30 of 30 rows"):
        as_sample(declared([None] * N), Y)


def test_equal_names_of_columns_are_an_error_of_one_line():
    with pytest.raises(DataError) as caught:
        as_sample(pd.DataFrame(COLUMNS, columns=["a", "a"]), Y)
    assert str(caught.value).isprintable()


ODD = {
    "sparse tensor": torch.eye(N).to_sparse(),
    "huge integers": [10**400, *range(N - 1)],
    "tensor on meta": torch.empty(N, device="meta"),
}


@pytest.mark.parametrize("x", ODD.values(), ids=ODD)
def test_odd_values_are_a_data_error(x):
    with pytest.raises(DataError):
        as_sample(x, Y)


@pytest.mark.parametrize(
    "x",
    [
        [torch.tensor(v, requires_grad=True) for v in COLUMN],
        torch.complex(torch.tensor(Y), torch.tensor(-COLUMN)).conj().imag,
    ],
    ids=["list of tensors with gradient", "conjugate view"],
)
def test_odd_tensors_are_read(x):
    assert np.array_equal(rows_of(x)[:, 0], COLUMN)


def test_missing_values_among_objects_are_omitted():
    column = pd.Series([pd.NA, *range(N - 1)], dtype=object)
    assert len(as_sample(column, Y, RowOptions(nan="omit"))) == N - 1


def test_numbers_as_strings_are_refused_among_objects_too():
    with pytest.raises(DataError, match="numbers as text"):
        as_sample(np.array(["1.5"] * N, dtype=object), Y)


def test_a_series_without_a_name_gets_one():
    with pytest.raises(DataError, match=r"rows: \S.* \(1\)"):
        as_sample(pl.Series([None, *range(N - 1)]), Y)


def test_integers_that_float64_cannot_tell_apart_are_refused():
    with pytest.raises(DataError, match="offset"):
        as_sample(2**60 + np.arange(N) % 3, Y)


@pytest.mark.parametrize("declared", [CATEGORIES["pandas"], CATEGORIES["polars categorical"]])
def test_other_levels_than_in_fit_are_refused(declared):
    fitted = Gaussian().fit(declared(["a", "b"] * 15), Y)
    with pytest.raises(DataError):
        fitted.log_ratio(declared(["b", "c"] * 15), Y)


def test_a_declared_level_that_does_not_occur_keeps_its_column():
    levels = pl.Enum(["a", "b"])
    fitted = Gaussian().fit(pl.Series("q", ["a", "b"] * 15, dtype=levels), Y)
    few = pl.Series("q", ["b"] * 3, dtype=levels)
    assert fitted.log_ratio(few, Y[:3]).shape == (3,)


# Groups and order


def two(n=30):
    rng = np.random.default_rng(0)
    return rng.normal(size=n), rng.normal(size=n)


def series(values):
    return pd.Series(values), pl.Series(values), list(values), np.array(values)


@pytest.mark.parametrize("kind", range(4))
def test_groups_may_be_names_or_numbers_of_any_kind(kind):
    for values in (["a", "b", "a"] * 10, [3.5, 1.0, 3.5] * 10):
        labels = as_sample(*two(), RowOptions(groups=series(values)[kind])).labels
        assert (labels[::3] == labels[2::3]).all()
        assert (labels[::3] != labels[1::3]).all()


def test_groups_that_share_a_copy_are_one():
    x, y = two()
    groups = np.arange(30) // 3
    x[3], y[3] = x[0], y[0]
    labels = as_sample(x, y, RowOptions(groups=groups)).labels
    assert len(set(labels[:6])) == 1
    assert len(set(labels)) == 9
    assert as_sample(x, y, RowOptions(groups=groups)).copies is not None


def test_order_gives_places_in_time():
    x, y = two()
    assert as_sample(x, y, RowOptions(order=True)).times.tolist() == list(range(30))
    assert as_sample(x, y, RowOptions(order=False)).times is None
    assert as_sample(x, y, RowOptions(order=-np.arange(30))).times.tolist() == list(
        range(29, -1, -1)
    )
    dates = pd.date_range("2024-01-01", periods=30)[::-1]
    assert as_sample(x, y, RowOptions(order=dates.to_series())).times.tolist() == list(
        range(29, -1, -1)
    )


def test_text_may_be_times_and_equal_times_have_a_warning():
    x, y = two()
    days = [f"2024-01-{d:02d}" for d in range(30, 0, -1)]
    assert as_sample(x, y, RowOptions(order=days)).times.tolist() == list(range(29, -1, -1))
    assert as_sample(x, y, RowOptions(order=np.True_)).times is not None
    (warning, *_) = as_sample(x, y, RowOptions(order=np.arange(30) // 2)).warnings
    assert (warning.code, warning.message[:11]) == ("tied_times", "15 of 30 ro")


def test_copies_in_time_are_refused():
    x, y = two(60)
    with pytest.raises(DataError, match="leave the copies out, or order"):
        as_sample(np.tile(x, 2), np.tile(y, 2), RowOptions(order=True))


def test_nothing_but_missing_values_is_too_few():
    with pytest.raises(DataError, match="0 pairs are too few"):
        as_sample(np.full(5, np.nan), np.zeros(5), RowOptions(groups=range(5), nan="omit"))


def test_missing_values_of_both_sides_are_in_one_error():
    with pytest.raises(DataError, match=r"x has NaN .* 1 of 3 rows.*; y has NaN .* 1 of 3 rows"):
        as_sample([1, np.nan, 2], [np.nan, 1, 2])


def test_what_is_beside_a_dropped_pair_is_dropped_too():
    x, y = two()
    x[4] = np.nan
    sample = as_sample(x, y, RowOptions(groups=np.arange(30) // 2, nan="omit"))
    assert len(sample.labels) == 29
    times = as_sample(x, y, RowOptions(order=np.arange(30)[::-1], nan="omit")).times
    assert sorted(times) == list(range(29))


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"groups": [1, 2]}, r"groups has shape \(2,\); pass one value for each of the 30 rows"),
        ({"groups": [1] * 30}, "all rows are of one group"),
        ({"groups": [None, *range(29)]}, "groups has missing values"),
        ({"order": ["x"] * 30}, "order must be numbers, or times such as"),
        ({"order": [np.nan, *range(29)]}, "order is missing in 1 of 30 rows"),
        ({"groups": pd.Series([pd.NA, *"ab" * 14, "c"], dtype="string")}, "missing values"),
        ({"order": True, "groups": list(range(30))}, "groups and order were both given"),
    ],
)
def test_groups_and_order_that_cannot_be_are_refused(about, message):
    with pytest.raises(DataError, match=message):
        as_sample(*two(), RowOptions(**about))


def test_pandas_rows_in_another_order_are_refused():
    x = pd.Series(np.arange(20.0), name="x")
    y = x.sample(frac=1, random_state=0)
    with pytest.raises(DataError, match=r"pass y.loc\[x.index\] to pair them by index"):
        as_sample(x, y)
    with pytest.raises(DataError, match="x and given have the same index in another order"):
        as_samples_given(x, x, y)
    assert as_sample(x, y.loc[x.index]).y[3] == 3
    assert as_sample(x, y.reset_index(drop=True)).y[0] == y.iloc[0]
    assert len(as_sample(x, y.set_axis(range(100, 120)))) == 20  # other labels: by position


def test_errors_of_times_and_lazy_frames_say_what_to_do():
    days = pd.Series(pd.date_range("2024-01-01", periods=20))
    with pytest.raises(DataError, match="turn them into numbers first"):
        as_sample(days, np.arange(20.0))
    lazy = pl.LazyFrame({"a": np.arange(20.0)})
    with pytest.raises(DataError, match=r"x is a lazy frame.* pass x.collect\(\)"):
        as_sample(lazy, np.arange(20.0))
