"""Files are read as the chosen columns, or refused with one line that says why."""

import csv
import io
import os
import pickle
import random
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deminat.data import files
from deminat.data.files import guards as checks
from deminat.data.files import read, read_all, scan_pair
from deminat.errors import DataError

RNG = np.random.default_rng(0)


class Bomb:
    """A pickle that would leave a file behind if it were ever loaded."""

    def __init__(self, marker: Path):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


def read_pair(x_path, y_path, **options):
    """Read all rows of two files."""
    return tuple(map(read_all, scan_pair(x_path, y_path, **options)))


@pytest.fixture
def put(tmp_path):
    """Write a file; text is UTF-8."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def refuses(tmp_path):
    """Read, and check that the error is one printable line that names the file and more."""

    def check(path, *says, x="a", y="b", **options):
        with pytest.raises(DataError) as caught:
            read(path, x, y, **options)
        message = str(caught.value)
        assert message.isprintable()
        assert Path(path).name.split("\x1b")[0] in message
        for words in says:
            assert words in message
        return message

    return check


def npy(array, version=(1, 0)):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, version=version)
    return out.getvalue()


def npy_header(descr="'<f8'", shape="(4, 2)", fortran="False"):
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def values(side):
    """The numbers of a side: a frame, or an array as it was stored."""
    return side.to_numpy() if isinstance(side, pl.DataFrame) else side


def equal(side, expected):
    array = values(side)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, np.array(expected, float))


# Choosing columns


def test_columns_are_chosen_by_name_in_the_order_given(put):
    path = put("t.csv", "a,b,c\n1,2,3\n4,5,6\n")
    x, y = read(path, "c, a", "b")
    equal(x, [[3, 1], [6, 4]])
    equal(y, [[2], [5]])
    assert (x.columns, y.columns) == (["c", "a"], ["b"])


def test_columns_are_chosen_by_number_unless_a_name_is_that_number(put):
    x, y = read(put("t.csv", "1,b,c\n1,2,3\n4,5,6\n"), "1", "2")
    equal(x, [[1], [4]])
    equal(y, [[3], [6]])


def test_a_name_with_a_comma_is_quoted(put):
    path = put("t.csv", '"a,b",c\n1,2\n3,4\n')
    equal(read(path, '"a,b"', "c")[0], [[1], [3]])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("x", ["*", "^.*$", "^a.*$", "column_0", "é b", "'", "1"])
def test_names_are_names_and_not_patterns(tmp_path, suffix, x):
    names = ["a", "*", "^.*$", "column_0", "^a.*$", "é b", "'", "1", "ab"]
    frame = pl.DataFrame({name: [i / 4, i + 0.5] for i, name in enumerate(names)})
    path = tmp_path / f"t.{suffix}"
    (frame.write_csv if suffix == "csv" else frame.write_parquet)(path)
    for chosen in (x, f"ab,{x}"):
        side, _ = read(path, chosen, "a")
        equal(side, frame.to_numpy()[:, [names.index(name) for name in chosen.split(",")]])
        labels, _ = read(path, chosen, "a", categorical=[x])
        assert labels.columns == chosen.split(",")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_an_unknown_column_is_answered_by_those_there_are(put, refuses, tmp_path, suffix):
    names = ["raf", "mek", *(f"p{i}" for i in range(20))]
    frame = pl.DataFrame({name: [1.5, 2.5] for name in names})
    path = tmp_path / f"t.{suffix}"
    (frame.write_csv if suffix == "csv" else frame.write_parquet)(path)
    message = refuses(path, "no column 'RAV'", "did you mean 'raf'?", "22 in all", x="RAV", y="mek")
    assert "p9" in message
    assert "p10" not in message
    refuses(path, "no column '22'", x="22", y="mek")
    refuses(path, "no column", x="9" * 6000, y="mek")
    refuses(path, "no column 'sex'", x="raf", y="mek", categorical=["sex"])


@pytest.mark.parametrize(("x", "y"), [(None, "b"), ("a", None), (None, None)])
def test_tables_need_a_choice(put, refuses, x, y):
    refuses(put("t.csv", "a,b\n1,2\n"), "--x NAME --y NAME", "it has a, b", x=x, y=y)


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        ("a", "a", "'a' is on both sides"),
        ("a,b", "1,c", "'b' is on both sides"),
        ("a,0", "b", "'a' is named twice"),
    ],
)
def test_a_column_is_chosen_once(put, refuses, x, y, says):
    refuses(put("t.csv", "a,b,c\n1,2,3\n"), says, x=x, y=y)


@pytest.mark.parametrize("chosen", ["", ",", "a,", " ", '"a', '"a"b', "a\nb"])
def test_a_choice_that_is_no_list_is_refused(put, chosen):
    with pytest.raises(DataError) as caught:
        read(put("t.csv", "a,b,c\n1,2,3\n"), chosen, "b")
    assert str(caught.value).isprintable()


def test_names_cannot_reach_the_terminal(put, refuses):
    message = refuses(put("t.csv", "a\x1b[2J,b\n1,2\n"), x="zz")
    assert "a\\x1b[2J" in message
    refuses(put("t.csv", "a\x1b[2J,b\nq,2\n1,2\n"), "\\x1b", x="0")
    refuses(put("\x1b[2J.csv", ""), "\\x1b[2J.csv is empty")


# Text: what a dialect may look like


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1.5,2\n-3e2,4\n",
        "a;b\n1.5;2\n-3e2;4\n",
        "a;b\n1,5;2\n-300,0;4\n",
        "a\tb\n1,5\t2\n-3e2\t4\n",
        "a|b\n1.5|2\n-3e2|4",
        "a b\n1.5 2\n-300 4\n",
        "  a   b\n1.5   2 \n-300  4\n",
        "a b\n1,5 2\n-300 4\n",
        '"a" "b"\n"1.5" 2\n-300 "4"\n',
        "a, b\n1.5, 2\n-300, 4\n",
        " a ,b\n 1.5 ,2\n-300,4\n\n\n  \n",
        "a,b\r\n1.5,2\r\n-300,4\r\n",
        "a,b\r1.5,2\r-300,4",
        '"a","b"\n"1.5",2\n"-300",4\n',
        '"a";"b"\r\n"1,5";2\r\n"-300";4\r\n',
        "a,b,\n1.5,2,\n-300,4,\n",
        ",a,b\n0,1.5,2\n1,-300,4\n",
        "a,b,note\n1.5,2,see me; you\n-300,4,no; one\n",
        'a,b,note\n1.5,2,"one, two\nthree"\n-300,4,"say ""so"""\n',
        'a,b,note\n1.5,2,5" pipe\n-300,4,6" pipe\n',
        "x^2,a,b\nu,1.5,2\nx^,-300,4\n",
        "x\x01,a,b\n1,1.5,2\n1,-300,4\n",
        "a,b,größe\n1.5,2,ü\n-300,4,é\n",
    ],
)
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-be", "utf-32-be"]
)
def test_dialects_are_found(put, text, encoding):
    mark = "\ufeff" if encoding.endswith("-be") else ""
    for suffix in ("csv", "tsv", "txt"):
        x, y = read(put(f"t.{suffix}", (mark + text).encode(encoding)), "a", "b")
        equal(x, [[1.5], [-300]])
        equal(y, [[2], [4]])


@pytest.mark.parametrize(
    "text", ["1,2.5,3\n4,5,6\n", "NA,2.5,3\n4,5,6", "1;2,5;3\n4;5;6", "1 2.5 3\n4 5 6\n"]
)
def test_no_header_makes_numbers_of_the_columns(put, refuses, text):
    path = put("t.csv", text)
    x, y = read(path, "1", "2")
    equal(x, [[2.5], [5]])
    equal(y, [[3], [6]])
    refuses(path, "no column 'b'", "no header", x="1", y="b")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("0,1,2\n7,8,9\n", [[8]]),
        ("0,1\n7.5,8\n", [[8]]),
        ("0,1\n1,1\n", [[1], [1]]),
        (",0,1\n0,8,9\n1,6,7\n", [[9], [7]]),
        (",2019,1\nde,8,9\n", [[9]]),
        (",0,1\n5,8,9\n", [[0], [8]]),
    ],
)
def test_a_header_of_numbers_as_pandas_writes_it_is_no_row(put, text, rows):
    x, _ = read(put("t.csv", text), "1", "0", categorical=["0"])
    equal(x, rows)


def test_words_for_missing_values_are_nan(put):
    words = ["", "NA", "N/A", "NaN", "nan", "null", "None", "?", "-", " NA ", "NULL", "#N/A", "."]
    text = "a,b,c\n" + "".join(f"{word},2,{word}\n" for word in words) + "1,2,u\n"
    x, y = map(values, read(put("t.csv", text), "a", "b"))
    assert np.isnan(x[:-1]).all()
    assert x[-1] == 1
    assert not np.isnan(y).any()
    labels = read(put("t.csv", text), "c", "b", categorical=["c"])[0]
    assert labels["c"].to_list() == [None] * len(words) + ["u"]


def test_one_column_may_be_missing_in_its_middle(put):
    x, y = read_pair(put("x.csv", "my a\n1\n\n3\n\n"), put("y.txt", "0.5\n1.5\n2.5"))
    equal(x, [[1], [np.nan], [3]])
    equal(y, [[0.5], [1.5], [2.5]])


def test_booleans_integers_and_infinities_are_numbers(put):
    text = "a,b,c\ntrue,9007199254740992,inf\nFALSE,-1,-Infinity\n,0,1e400\n"
    x, y = read(put("t.csv", text), "a", "b,c")
    equal(x, [[1], [0], [np.nan]])
    equal(y, [[2**53, np.inf], [-1, -np.inf], [0, np.inf]])


def test_values_are_exact(put):
    values = RNG.normal(size=(500, 3)) * 10.0 ** RNG.integers(-300, 300, (500, 3))
    text = "a,b,c\n" + "".join(",".join(map(repr, row)) + "\n" for row in values.tolist())
    x, y = read(put("t.csv", text), "a,b", "c")
    equal(np.hstack([x, y]), values)
    x, y = read(put("t.csv", text.replace("a,", '"a",')), "a,b", "c")
    equal(np.hstack([x, y]), values)


def test_categories_are_declared(put):
    path = put("t.csv", "a,sex,b\n1,m,3\n2,,4\n5, f,6\n")
    x, y = read(path, "a,sex", "b", categorical=["sex", "1"])
    assert isinstance(x, pl.DataFrame)
    assert x.columns == ["a", "sex"]
    assert x.dtypes == [pl.Float64, pl.Enum(["f", "m"])]
    assert x["sex"].to_list() == ["m", None, "f"]
    equal(y, [[3], [4], [6]])


WORDS = "a,sex,b\n" + "1,m,u\n2,,v\n5, f,u\n" * 400


@pytest.fixture
def words(put, tmp_path, monkeypatch):
    """Write a table of words, in some form; text may be too long to be read whole."""

    def write(form, text=WORDS):
        if form == "t.parquet":
            pl.read_csv(io.StringIO(text)).write_parquet(tmp_path / form)
            return tmp_path / form
        if form.startswith("long"):
            monkeypatch.setattr("deminat.data.files.text_stream.LONG", 0)
            monkeypatch.setattr("deminat.data.files.text_stream.BLOCK", 300)
        return put(form, text.replace("sex", '"sex"') if "quoted" in form else text)

    return write


FORMS = ["t.csv", "quoted.csv", "long.csv", "long-quoted.csv", "t.parquet"]


@pytest.mark.parametrize("form", FORMS)
def test_words_are_categories_without_being_declared(words, form):
    x, y, z = files.scan(words(form), "a", "sex", given="b")
    assert (x.categorical, y.categorical, z.categorical) == ({"sex", "b"},) * 3
    found = read_all(y)["sex"]
    assert found[:3].cast(pl.String).str.strip_chars().to_list() == ["m", None, "f"]
    assert isinstance(found.dtype, pl.Enum)
    assert read_all(x).dtypes == [pl.Float64]
    assert y.take(np.array([2, 3]))["sex"].cast(pl.String).str.strip_chars().to_list() == ["f", "m"]


@pytest.mark.parametrize("form", FORMS[:4])
@pytest.mark.parametrize(("late", "row"), [("5", 600), ("1.5e3", 1), ("7", 1000)])
def test_words_among_numbers_are_an_error_in_every_form(words, form, late, row):
    lines = WORDS.split("\n")
    lines[row] = f"1,{late},u"
    with pytest.raises(DataError, match=r"'[mf]' in row .* declare it with --categorical 'sex'"):
        read(words(form, "\n".join(lines)), "sex", "a")


@pytest.mark.parametrize("form", FORMS[:4])
def test_a_number_far_below_words_is_a_category(words, form):
    lines = WORDS.split("\n")
    lines[1001] = "1,7,u"
    assert read(words(form, "\n".join(lines)), "sex", "a")[0]["sex"][1000] == "7"


@pytest.mark.parametrize("form", FORMS)
def test_what_is_true_or_false_is_a_number(words, form):
    x, _ = read(words(form, "sex,b\n" + "true,1\nFALSE,2\n" * 600), "sex", "b")
    if form != "t.parquet":  # where only the type counts
        equal(x[:3], [[1], [0], [1]])


@pytest.mark.parametrize(
    "cells", [["18-25", "26-35"], ["<5", ">=5"], ["true", "unknown"], ["Q1 2020", "Q2 2020"]]
)
def test_words_may_contain_digits(put, cells):
    x, _ = read(put("t.csv", "a,b\n" + "".join(f"{c},1\n" for c in cells)), "a", "b")
    assert x["a"].to_list() == cells


def test_words_of_two_files_and_beside_a_folder_are_categories(put, tmp_path):
    table = put("y.csv", "c,kind\n1,u\n2,v\n")
    _, y = read_pair(put("x.csv", "a\n1\n2\n"), table)
    assert y.dtypes == [pl.Float64, pl.Enum(["u", "v"])]
    (tmp_path / "rows").mkdir()
    for name in "ab":
        np.save(tmp_path / "rows" / name, np.zeros(2))
    _, y = read(table, f"{tmp_path / 'rows'}/", "kind")
    assert y.dtypes == [pl.Enum(["u", "v"])]


def test_a_category_that_is_not_chosen_does_not_matter(put):
    x, _ = read(put("t.csv", "a,b,c\n1,2,u\n"), "a", "b", categorical=["c"])
    equal(x, [[1]])


# Text: what is refused


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n3\n", "line 3 is blank or has 1 field where the first line has 2"),
        ("a,b\n1,2\n3,4,5\n6,7\n", "line 3 has 3 fields"),
        ("a,b\n1,2\n\n3,4\n", "line 3 is blank"),
        ("a,b\n1\n2,3,4\n", "line 2 is blank or has 1 field"),
        ('a,b\n"1",2\n\n3\n', "line 3 is blank"),
        ('a,b\n"1",2\n3,4,5\n', "line 3 has 3 fields"),
        ('a,"b",c\n1,2,"x\ny"\n3,4\n', "line 4 has 2 fields"),
        ("a b,b\n1 1,2\n3 1,2,4\n", "line 3 has 3 fields"),
        ("\na,b\n1,2\n", "line 1 is blank"),
        ("my title\na,b\n1,2\n", "line 2"),
        ("v\n1,5\n2,5\n", "line 2"),
        ("a,b\n" + "1,2\n" * 900 + "1,2,3\n" + "1,2\n", "line 902 has 3 fields"),
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("\ufeff", "is empty"),
        ("a,b", "no rows"),
        ('"a",b\n\n', "no rows"),
        ("a,b,a,b,c\n1,2,3,4,5\n", "several columns called a, b:"),
        ("a,b\nu,2\n1,2\n", "'u' in row 1): declare it with --categorical 'a'"),
        ("a,b\nu,2\n5%,2\n", "declare it with --categorical 'a'"),
        ("a,b\nu,2\n2020-01-31,2\n", "declare it with --categorical 'a'"),
        ("a,b\n5%,2\n10%,2\n", "'5%' in row 1"),
        ("a,b\n1,2\n3,4\nx,6\n", "'x' in row 3"),
        ("a,b\n1,2\ntrue,4\n", "'true' in row 2"),
        ("a,b\n2020-01-31,2\n", "dates or times ('2020-01-31' in row 1)"),
        ("a,b\n2020-01-31 10:00:00,2\n", "dates or times"),
        ("a,b\n31.1.2020,2\n", "dates or times"),
        ("a,b\n10:30,2\n", "dates or times"),
        ("a;b\n1,234;5.5\n", "'1,234' in row 1"),
        ("a;b;c\n1,234;5;0.5\n", "'1,234' in row 1"),
        ("a;b\n1.234,5;5\n", "'1.234,5' in row 1"),
        ("a;b\n1,234,567;5\n", "'1,234,567' in row 1"),
        ("a\tb\n1,234\t5\n", "'1,234' in row 1"),
        ("a b\n1,234 5\n1 -2,345\n", "'1,234' in row 1"),
        ('a,b\n"1,5",2\n', "'1,5' in row 1"),
        ("a,b\n1_000,2\n", "'1_000' in row 1"),
        ("a,b\n0x10,2\n", "'0x10' in row 1"),
        ("a,b\n1 2,2\n", "'1 2' in row 1"),
        ('a,b\n1,"2\n3,4\n', "line 3 cannot be divided into fields"),
        ('a,b\n1,"2"x\n3,4\n', "line 2 cannot be divided into fields"),
        ('a,b\n1,"' + "2" * 200_000 + '"\n', "line 2 cannot be divided into fields"),
    ],
)
def test_bad_text_is_refused(put, refuses, text, says):
    refuses(put("t.csv", text), says)


def test_the_row_of_a_bad_value_counts_rows_not_lines(put, refuses):
    refuses(put("t.csv", 'a,b,c\n1,2,"x\ny"\nq,2,3\n'), "'q' in row 2")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("a,b\n1,é\n".encode("latin-1"), "byte 0xe9 at position 6"),
        (b"\xef\xbb\xbfa,b\n1,\xe9\n", "byte 0xe9 at position 9"),
        ("a,b\n1,2\n".encode("utf-16-le"), "binary"),
        (b"\xff\xfea\x00,\x00b\x00\n\x00\x00\xd8", "not UTF-16-LE"),
        (b"\xff\xfe\x00\x00a\x00\x00", "not UTF-32-LE"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "position 0"),
        (b"PK\x03\x04" + bytes(50), "binary"),
        (bytes(1000), "binary"),
    ],
)
def test_bytes_that_are_no_text_are_refused(put, refuses, data, says):
    refuses(put("t.csv", data), says)


def test_odd_shapes_take_no_time(put, refuses):
    begun = time.perf_counter()
    refuses(put("t.csv", "a b\n1" + " " * 10**6 + "x\n2 3\n"), "'x' in row 1")
    refuses(put("u.csv", "1" * 10**6), "cannot be read", x="0", y="1")
    wide = "\n".join(",".join(["1.5"] * 5000) for _ in range(20))
    assert read_pair(put("x.csv", wide), put("y.csv", "1\n" * 20))[0].shape == (20, 5000)
    assert time.perf_counter() - begun < 5


CELL = st.floats(allow_nan=False) | st.none()
DIALECT = st.fixed_dictionaries(
    {
        "delimiter": st.sampled_from(",;\t| "),
        "quoting": st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
        "lineterminator": st.sampled_from(["\n", "\r\n", "\r"]),
    }
)


@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(st.tuples(CELL, CELL, st.text("uvw ;,'\"é", min_size=1)), min_size=3, max_size=9),
    dialect=DIALECT,
    comma=st.booleans(),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_was_written_is_read(tmp_path, rows, dialect, comma, encoding):
    comma = comma and dialect["delimiter"] != ","
    missing = "NA" if dialect["delimiter"] == " " else ""

    def written(value):
        if value is None:
            return missing
        return repr(value).replace(".", ",") if comma else repr(value)

    out = io.StringIO()
    writer = csv.writer(out, **dialect)
    writer.writerow(["alpha", "beta", "gamma"])
    writer.writerows([(written(a), written(b), text) for a, b, text in rows])
    path = tmp_path / "t.csv"
    path.write_bytes(out.getvalue().encode(encoding))
    expected = [[np.nan if v is None else v for v in row[:2]] for row in rows]
    try:
        x, y = read(path, "alpha", "beta")
    except DataError:
        # Free text and 1,234 can make a dialect ambiguous; then it must be refused, not guessed.
        assert comma or any(set(text) & set(" ;,'\"") for *_, text in rows)
        return
    equal(np.hstack([x, y]), expected)


# Parquet


@pytest.fixture
def table(tmp_path):
    def write(name="t.parquet", **columns):
        path = tmp_path / name
        pl.DataFrame(columns).write_parquet(path)
        return path

    return write


def test_parquet_columns_become_float64(table):
    path = table(
        a=[1, None, 3],
        b=[True, False, None],
        c=pl.Series([1, 2, 3], dtype=pl.UInt8),
        d=pl.Series(["1.5", "2.5", None]).cast(pl.Decimal(10, 2)),
        e=pl.Series([None, None, None]),
        f=pl.Series([None, None, None], dtype=pl.String),
    )
    x, y = read(path, "a,b", "c,d,e,f")
    nan = np.nan
    equal(x, [[1, 1], [nan, 0], [3, nan]])
    equal(y, [[1, 1.5, nan, nan], [2, 2.5, nan, nan], [3, nan, nan, nan]])


def test_parquet_categories_are_known_or_declared(table):
    kept = pl.Series(["u", "v", None], dtype=pl.Categorical)
    path = table("[x]*.parquet", a=[3, 1, 3], b=kept, c=["q", "p", None], d=[1.5, np.nan, 2])
    x, y = read(path, "a,b", "c,d", categorical=["a", "c", "d"])
    assert x.dtypes == [pl.Enum(["1", "3"]), pl.Enum(["u", "v"])]
    assert x["b"].to_list() == ["u", "v", None]
    assert y["c"].to_list() == ["q", "p", None]
    assert y["d"].to_list() == ["1.5", None, "2.0"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([None, "1.5"], "is text ('1.5' in row 2): declare it with --categorical 'a'"),
        (["NA", " -2e3 "], "is text ('NA' in row 1): declare it with --categorical 'a'"),
        ([[1], [2]], "holds List"),
        ([{"k": 1}, {"k": 2}], "holds Struct"),
        ([b"u", b"v"], "holds Binary"),
        (pl.Series(["2020-01-01", None]).str.to_date(), "dates or times (Date)"),
        (pl.Series([1, 2]).cast(pl.Duration), "dates or times (Duration"),
    ],
)
def test_parquet_columns_that_are_no_numbers_are_refused(table, refuses, values, says):
    refuses(table(a=values, b=[1, 2]), says)


def test_parquet_nested_columns_are_no_categories_either(table, refuses):
    refuses(table(a=[[1], [2]], b=[1, 2]), "holds List", categorical=["a"])


def test_parquet_reads_only_what_is_chosen(table):
    path = table(a=[1, 2], b=[3, 4], c=[[1], [2]], d=["u", "v"])
    equal(read(path, "a", "b")[1], [[3], [4]])


def test_parquet_without_rows_is_refused(table, refuses):
    refuses(table(a=[], b=[]), "holds 0 rows of 2 columns")


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b[4:], lambda b: b"", bytes]
)
def test_damaged_parquet_is_refused(table, refuses, damage):
    path = table(a=[1.5, 2.5], b=[1, 2])
    path.write_bytes(damage(path.read_bytes()) if damage is not bytes else b"PAR1" + bytes(99))
    refuses(path, "cannot be read as Parquet", "may be damaged")


def test_parquet_must_fit_in_memory(table, refuses, monkeypatch):
    path = table(a=np.zeros(10_000), b=np.zeros(10_000), c=["u"] * 10_000)
    monkeypatch.setattr(checks, "available_memory", lambda: 200_000)
    refuses(path, "GB of memory", "choose fewer columns")
    monkeypatch.setattr(checks, "available_memory", lambda: None)
    read(path, "a", "b")


def test_text_must_fit_in_memory(put, refuses, monkeypatch):
    monkeypatch.setattr(checks, "available_memory", lambda: 100)
    refuses(put("t.csv", "a,b\n" + "1,2\n" * 100), "GB of memory")


def test_memory_is_a_number_or_unknown(monkeypatch):
    assert checks.available_memory() is None or checks.available_memory() > 1e6
    assert checks._all_memory() is None or checks._all_memory() > 1e6
    monkeypatch.setattr("builtins.open", lambda *_, **__: io.StringIO("nothing here"))
    assert checks.available_memory() == checks._all_memory()
    monkeypatch.delattr(os, "sysconf")
    assert checks.available_memory() is None


# NPY


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8", "f2", "i8", "u1", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_two_npy_files_are_mapped_as_stored(put, dtype, order):
    images = np.asarray(RNG.normal(size=(5, 3, 2, 2)) * 9, dtype=dtype, order=order)
    vector = images[:, 0, 0, 0].copy()
    x, y = read_pair(put("x.npy", npy(images)), put("y.NPY", npy(vector, (2, 0))))
    assert isinstance(x, np.memmap)
    assert x.dtype == images.dtype
    np.testing.assert_array_equal(x, images)
    np.testing.assert_array_equal(y, vector)


def test_columns_of_an_npy_go_by_number(put, refuses):
    array = RNG.integers(0, 9, (6, 4))
    path = put("t.npy", npy(array))
    x, y = read(path, "1,2", "3,0")
    assert isinstance(x, np.memmap)
    np.testing.assert_array_equal(x, array[:, 1:3])
    np.testing.assert_array_equal(y, array[:, [3, 0]])
    x, _ = read(path, "0,1", "3", categorical=["1"])
    assert x.dtypes[0] == pl.Float64
    assert x["1"].to_list() == [str(v) for v in array[:, 1]]
    refuses(path, "no column 'a'", "by number")
    refuses(path, "no column '4'", x="0", y="4")


@pytest.mark.parametrize("dtype", [">f8", ">i4", "f2", "?"])
def test_any_number_can_be_a_category(put, dtype):
    path = put("t.npy", npy(np.array([[1, 2], [0, 2], [1, 3]], dtype)))
    x, y = read(path, "0", "1", categorical=["0", "1"])
    assert x["0"].n_unique() == 2
    assert y.height == 3


@pytest.mark.parametrize("shape", [(6,), (6, 2, 2)])
def test_an_npy_without_columns_cannot_be_divided(put, refuses, shape):
    refuses(put("t.npy", npy(np.zeros(shape))), "give two files")


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros(3, complex), "complex128"),
        (np.zeros(3, "U2"), "<U2"),
        (np.zeros(3, "S2"), "|S2"),
        (np.zeros(3, "M8[s]"), "datetime64[s]"),
        (np.zeros(3, [("a", "f8"), ("b", "i4")]), "[('a'"),
        (np.zeros(3, "V8"), "|V8"),
        (np.float64(1), "shape '()'"),
        (np.zeros((0, 3)), "shape '(0, 3)'"),
        (np.zeros((3, 0)), "shape '(3, 0)'"),
    ],
)
def test_an_npy_of_anything_but_numbers_is_refused(put, refuses, array, says):
    refuses(put("t.npy", npy(array)), says)


@pytest.mark.parametrize(
    "content",
    [
        npy_header(shape="(1000000000000, 2)") + bytes(64),
        npy_header(shape="(4, 3)") + bytes(64),
        npy_header(shape="(4, 1)") + bytes(64),
        npy_header(shape=f"({2**62}, 4)") + bytes(64),
        npy_header() + bytes(63),
        npy_header() + bytes(65),
        npy_header(),
    ],
)
def test_an_npy_whose_header_lies_is_refused(put, refuses, content):
    refuses(put("t.npy", content), "bytes of values", "write it again", x="0", y="1")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUM",
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"\x93NUMPY\x03\x00" + npy_header()[8:] + bytes(64),
        b"\x93NUMPY\x09\x00" + npy_header()[8:] + bytes(64),
        npy_header(shape="(-4, -2)") + bytes(64),
        npy_header(shape="(1,) * 99") + bytes(8),
        npy_header(shape="(" + "1," * 99 + ")") + bytes(8),
        npy_header(shape="'no'") + bytes(64),
        npy_header(shape="(4.0, 2)") + bytes(64),
        npy_header(shape="(" * 3000) + bytes(64),
        npy_header(shape="(" + "1," * 30_000 + ")") + bytes(64),
        npy_header(descr="'<f9'") + bytes(64),
        npy_header(descr="'f8', __import__('os').abort()") + bytes(64),
        npy_header(descr="('<f8', (2,))") + bytes(128),
        npy_header(descr="'|O'") + bytes(64),
        npy_header(fortran="7") + bytes(64),
        pickle.dumps([1, 2]),
        bytes(1000),
    ],
)
def test_an_npy_with_a_broken_header_is_refused(put, refuses, content):
    refuses(put("t.npy", content), x="0", y="1")


def test_an_npy_of_python_2_is_read_without_a_word(put):
    x, y = read(put("t.npy", npy_header(shape="(4L, 2L)") + bytes(64)), "0", "1")
    assert x.shape == y.shape == (4, 1)


# NPZ


def archive(path, packing=zipfile.ZIP_DEFLATED, **members):
    with zipfile.ZipFile(path, "w", packing) as out:
        for name, content in members.items():
            out.writestr(
                f"{name}.npy", npy(content) if isinstance(content, np.ndarray) else content
            )
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_arrays_are_read_as_stored(tmp_path, save):
    x, y = RNG.normal(size=(6, 2, 3)), np.asfortranarray(RNG.integers(0, 9, (6, 4)))
    save(tmp_path / "t.npz", x=x, y=y, z=np.array([{}], dtype=object))
    first, second = read(tmp_path / "t.npz", None, None)
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, y)
    assert second.dtype == y.dtype
    assert read(tmp_path / "t.npz", "y", "x")[1].shape == x.shape


def test_npz_arrays_can_be_categories(tmp_path, refuses):
    path = tmp_path / "t.npz"
    np.savez(path, x=np.zeros(3), y=np.array([2, 1, 2]), z=np.zeros((3, 2, 2)))
    x, y = read(path, None, None, categorical=["y"])
    assert isinstance(x, np.ndarray)
    assert y.to_dict(as_series=False) == {"y_0": ["2", "1", "2"]}
    refuses(path, "(3, 2, 2)", "reshape", x="x", y="z", categorical=["z"])
    refuses(path, "no array 'q'", x="x", y="y", categorical=["q"])


def test_npz_arrays_that_are_not_there_are_named(tmp_path, refuses):
    path = archive(tmp_path / "t.npz", images=np.zeros(3), labels=np.zeros(3))
    refuses(path, "no array 'x'", "it has images, labels", "--x NAME", x=None, y=None)
    refuses(path, "did you mean 'labels'?", x="images", y="label")
    refuses(path, "'images' is on both sides", x="images", y="images")


def test_an_npz_member_of_objects_is_never_loaded(tmp_path, refuses):
    marker = tmp_path / "executed"
    bombs = np.array([Bomb(marker)], dtype=object)
    np.savez(tmp_path / "t.npz", x=bombs, y=np.zeros(1))
    np.save(tmp_path / "t.npy", bombs)
    refuses(tmp_path / "t.npz", "could run code", x=None, y=None)
    refuses(tmp_path / "t.npy", "could run code")
    with pytest.raises(DataError, match="could run code"):
        read_pair(tmp_path / "t.npy", tmp_path / "t.npz")
    assert not marker.exists()
    np.load(tmp_path / "t.npy", allow_pickle=True)
    assert marker.exists(), "the payload of this test is a dud"


@pytest.mark.parametrize(
    "suffix", ["pkl", "pickle", "pt", "pth", "joblib", "PKL", "npy", "npz", "csv"]
)
def test_pickles_are_refused_whatever_they_are_called(tmp_path, refuses, suffix):
    marker, path = tmp_path / "executed", tmp_path / f"t.{suffix}"
    path.write_bytes(pickle.dumps(Bomb(marker)))
    refuses(path)
    if suffix.lower().startswith("p") or suffix == "joblib":
        refuses(path, "could run code when opened", ".npz or .parquet")
    assert not marker.exists()


def patched(path, name, field, value):
    """Overwrite a 4-byte size of one member in the central directory and in its own header."""
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as opened:
        info = opened.getinfo(name)
        central = data.index(b"PK\x01\x02", opened.start_dir)
        while data[central + 46 : central + 46 + len(name)] != name.encode():
            central = data.index(b"PK\x01\x02", central + 4)
    for start in (central + 20, info.header_offset + 18):
        struct.pack_into("<I", data, start + (4 if field == "file" else 0), value)
    path.write_bytes(data)
    return path


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path, refuses, monkeypatch):
    zeros = npy_header(shape="(100000000,)") + bytes(10**6)
    path = archive(tmp_path / "t.npz", x=zeros, y=np.zeros(3))
    refuses(path, "declares 800000000 bytes of values and holds 1000000", x=None, y=None)
    patched(path, "x.npy", "file", 800_000_000 + len(npy_header(shape="(100000000,)")))
    refuses(path, "That is impossible", x=None, y=None)
    fat = archive(tmp_path / "u.npz", x=np.zeros(10**6), y=np.zeros(3))
    assert fat.stat().st_size < 10_000
    monkeypatch.setattr(checks, "available_memory", lambda: 10**6)
    refuses(fat, "GB of memory", x=None, y=None)


def test_npz_sizes_that_lie_are_refused(tmp_path, refuses):
    values = RNG.normal(size=1000)
    for field, value in [("file", 8000), ("file", 9000), ("packed", 100), ("packed", 10**9)]:
        path = archive(tmp_path / "t.npz", x=values, y=np.zeros(3))
        refuses(patched(path, "x.npy", field, value), x=None, y=None)
    path = archive(tmp_path / "t.npz", zipfile.ZIP_STORED, x=values, y=np.zeros(3))
    refuses(patched(path, "x.npy", "file", 2**31), x=None, y=None)


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_every_flipped_byte_of_an_npz_array_is_noticed(tmp_path, refuses, packing):
    path = archive(tmp_path / "t.npz", packing, x=RNG.normal(size=50), y=np.zeros(3))
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as opened:
        size = opened.getinfo("x.npy").compress_size
    for at in range(40, 30 + size, 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        refuses(path, x=None, y=None)


def test_other_broken_archives_are_refused(tmp_path, refuses):
    path = archive(tmp_path / "t.npz", x=np.arange(9.0), y=np.zeros(3))
    whole = path.read_bytes()
    for data in (whole[:-30], whole[: len(whole) // 2], whole[20:], b"", b"PK\x05\x06", bytes(99)):
        path.write_bytes(data)
        refuses(path, "cannot be read as NPZ", x=None, y=None)
    refuses(archive(path, zipfile.ZIP_LZMA, x=np.zeros(3), y=np.zeros(3)), "packed", x=None, y=None)
    encrypted = bytearray(whole)
    encrypted[6] |= 1
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(encrypted)
    refuses(path, "encrypted", x=None, y=None)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_array_that_is_there_twice_is_refused(tmp_path, refuses):
    path = archive(tmp_path / "t.npz", x=np.zeros(3), y=np.zeros(3))
    with zipfile.ZipFile(path, "a") as more:
        more.writestr("x.npy", npy(np.ones(3)))
    refuses(path, "occurs twice", x=None, y=None)


def test_arrays_that_are_not_asked_for_are_not_looked_at(tmp_path):
    path = archive(tmp_path / "t.npz", x=np.zeros(3), y=np.zeros(3), z=b"junk")
    assert read(path, None, None)[0].shape == (3,)


# Two files


def test_two_tables_give_all_their_columns(put, table):
    x, y = read_pair(
        put("x.csv", "a,b\n1,2\n3,4\n"), table(c=[5, 6], s=["u", "v"]), categorical=["s"]
    )
    equal(x, [[1, 2], [3, 4]])
    assert y.dtypes == [pl.Float64, pl.Enum(["u", "v"])]


def test_kinds_can_be_mixed(put, tmp_path):
    one = archive(tmp_path / "x.npz", values=np.arange(6.0).reshape(2, 3))
    x, y = read_pair(one, put("y.csv", "1.5\n2.5\n"))
    assert x.shape == (2, 3)
    equal(y, [[1.5], [2.5]])


def test_a_pair_needs_two_files_of_one_array_each(put, tmp_path):
    path = put("x.csv", "a,b\n1,2\n")
    two = archive(tmp_path / "t.npz", a=np.zeros(3), b=np.zeros(3))
    with pytest.raises(DataError, match="both x and y"):
        read_pair(path, str(path))
    with pytest.raises(DataError, match="holds 2 arrays"):
        read_pair(path, two)
    with pytest.raises(DataError, match="no column 'q' in either"):
        read_pair(path, put("y.csv", "c,d\n1,2\n"), categorical=["q"])
    with pytest.raises(DataError, match="--categorical 'c'"):
        read_pair(path, put("y.csv", "c,d\nu,2\n1,2\n"))


# Paths


def test_paths_that_are_no_files_are_refused(tmp_path, refuses):
    refuses(tmp_path / "none.csv", "does not exist")
    refuses(tmp_path / "no" / "none.parquet", "does not exist")
    (tmp_path / "folder.npy").mkdir()
    refuses(tmp_path / "folder.npy", "is a directory")
    with pytest.raises(DataError, match=r"a\\x00b.csv cannot be opened"):
        read("a\0b.csv", "a", "b")
    with pytest.raises(DataError, match="cannot be opened"):
        read("n" * 5000 + ".csv", "a", "b")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_is_refused_without_waiting(tmp_path, refuses):
    os.mkfifo(tmp_path / "t.csv")
    refuses(tmp_path / "t.csv", "not a regular file")


def test_a_file_without_permission_is_refused(put, refuses, monkeypatch):
    def denied(*_):
        raise PermissionError(13, "Permission denied")

    path = put("t.csv", "a,b\n1,2\n")
    monkeypatch.setattr(Path, "open", denied)
    refuses(path, "cannot be opened", "Permission denied")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("t", "the file has no suffix"),
        (".csv", "the file has no suffix"),
        ("t.feather", "cannot read .feather files"),
        ("t.\x1b[2J", "cannot read .\\x1b[2j files"),
    ],
)
def test_other_formats_are_refused_with_those_that_can_be_read(put, refuses, name, says):
    readable = ".csv, .tsv, .txt, .parquet, .pq, .npy, .npz, .h5, .hdf5"
    refuses(put(name, "a,b\n1,2\n"), says, f"Convert first, to one of {readable}")


def test_public_names():
    scans = ["scan", "scan_labels", "scan_pair", "scan_times"]
    assert files.__all__ == ["FORMATS", "PICKLES", "read", "read_all", "read_columns", *scans]


# Anything at all


def mutated(data, draw):
    """Return bytes with a few flips, a cut, a repeat or an insertion."""
    data = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 5])):
        at = draw.randrange(len(data) + 1)
        span = slice(at, at + draw.choice([1, 1, 2, 8, 50]))
        kind = draw.randrange(5)
        if kind == 0:
            data[span] = draw.randbytes(len(data[span]))
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            data[at:at] = data[span]
        elif kind == 3:
            data[at:at] = draw.choice(
                [b",", b"\n", b'"', b"\0", b"\xff", b";", b" ", b"1e999", b"'"]
            )
        else:
            del data[span]
    return bytes(data)


def seeds(tmp_path):
    """Return good files of every kind."""
    values = np.random.default_rng(0).normal(size=(30, 2))
    frame = pl.DataFrame(values, schema=["a", "b"]).with_columns(c=pl.lit("u"), d=[[1]] * 30)
    frame.write_parquet(tmp_path / "s.parquet")
    np.save(tmp_path / "s.npy", values)
    np.savez_compressed(tmp_path / "s.npz", a=values, b=values[:, 0])
    np.savez(tmp_path / "s2.npz", a=values, b=values[:, 0])
    flat = frame.drop("d")
    flat.write_csv(tmp_path / "s.csv")
    flat.write_csv(tmp_path / "s2.csv", separator=";", quote_style="always")
    (tmp_path / "s.txt").write_bytes("a b\n1,5 2\n3 4\n".encode("utf-16"))
    return [(path.suffix, path.read_bytes()) for path in sorted(tmp_path.iterdir())]


@pytest.mark.parametrize("seed", range(8))
def test_mutated_files_give_an_error_or_a_pair(tmp_path, seed):
    draw = random.Random(seed)
    originals = seeds(tmp_path)
    for number in range(60):
        suffix, data = draw.choice(originals)
        path = tmp_path / f"m{number}{suffix}"
        path.write_bytes(mutated(data, draw))
        x, y = ("0", "1") if suffix == ".npy" else ("a", "b")
        begun = time.perf_counter()
        try:
            sides = read(path, x, y)
            good = all(len(values(side)) > 0 for side in sides)
        except DataError as fault:
            good = str(fault).isprintable()
        assert good
        assert time.perf_counter() - begun < 20  # a hang, not a benchmark


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text(
        "who,when,day,dose\nann,2024-05-31,3,1\nbob,2024-05-02,1,2\nann,2023-12-31,2,3\n"
    )
    return path


def test_labels_are_names_and_times_are_numbers_or_dates(visits):
    assert files.scan_labels(visits, "who").take().tolist() == ["ann", "bob", "ann"]
    assert files.scan_labels(visits, "day").take().tolist() == ["3", "1", "2"]
    assert files.scan_times(visits, "day").take().tolist() == [3, 1, 2]
    assert files.scan_times(visits, "when").take().tolist() == [
        "2024-05-31",
        "2024-05-02",
        "2023-12-31",
    ]
    with pytest.raises(DataError, match="whom"):
        files.scan_labels(visits, "whom")


def test_labels_and_times_of_archives_are_arrays(tmp_path):
    path = tmp_path / "arrays.npz"
    np.savez(path, x=np.zeros(3), y=np.ones(3), who=np.array([1, 1, 2]))
    assert files.scan_labels(path, "who").tolist() == [1, 1, 2]
    assert files.scan_times(path, "who").tolist() == [1, 1, 2]


# What a newcomer meets


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("t.csv.gz", "cannot read .gz files. Convert first: gunzip -k "),
        ("t.csv.bz2", "Convert first: bunzip2 -k "),
        ("t.csv.xz", "Convert first: unxz -k "),
        ("t.csv.ZST", "Convert first: unzstd "),
        ("my t.zip", "Convert first: unzip '"),
        ("t.xlsx", "Convert first: save it as CSV from the spreadsheet"),
        ("t.xls", "Convert first: save it as CSV from the spreadsheet"),
        ("t.ods", "Convert first: save it as CSV from the spreadsheet"),
        ("t.mat", "cannot read .mat files. Convert first: in Python, numpy.savez("),
        ("t.h5ad", "Convert first: in Python, anndata.read_h5ad("),
        ("t.sav", "Convert first: in Python, pandas.read_spss("),
        ("t.dta", "Convert first: in Python, pandas.read_stata("),
        ("t.rds", "Convert first: in R, write.csv(readRDS("),
    ],
)
def test_known_formats_are_refused_with_a_conversion(put, refuses, name, says):
    refuses(put(name, b"PK"), says)


@pytest.mark.parametrize("name", ["t.mat", 'it\'s a "t".mat'])
def test_the_conversion_of_a_mat_file_can_be_run(put, refuses, name):
    x, y = RNG.normal(size=(2, 9, 1))
    path = put(name, b"")
    scipy.io.savemat(path, {"x": x, "y": y})
    command = refuses(path).split("in Python, ")[1]
    eval(command, {"numpy": np, "scipy": scipy})
    np.testing.assert_array_equal(read(path.with_suffix(".npz"), None, None), (x, y))


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("# by hand\na,b\n1,2\n3,4\n", "1 field where a row has 2"),
        ("# by hand\n# in May, June, July\na,b\n1,2\n", "1 field where a row has 2"),
        ("# by hand, in May, June\na,b\n1,2\n3,4\n", "3 fields where a row has 2"),
        ('# by hand\n"a",b\n1,2\n', "1 field where a row has 2"),
        ("# by hand\n\na,b\n1,2\n", "1 field where a row has 2"),
        ("# a b\n1.5 2.5\n3.5 4.5\n", "3 fields where a row has 2"),  # as numpy.savetxt writes it
    ],
)
def test_comments_above_a_table_are_named(put, refuses, text, fields):
    refuses(put("t.csv", text), f"line 1 begins with '#' and has {fields}", "delete")


@pytest.mark.parametrize("text", ["#a,b\n1,2\n3,4\n", "#,b\n1,2\n3,4\n", "#a b\n1 2\n3 4\n"])
def test_a_header_may_begin_with_the_sign_of_a_comment(put, text):
    equal(read(put("t.csv", text), "0", "b")[0], [[1], [3]])


@pytest.mark.parametrize(
    "cells",
    [
        ["1,345.6", "2,000", "17.5"],
        ["12", "-1,345", "oops"],
        ["1,234,567", "NA", "+2,345."],
    ],
)
def test_thousands_separators_are_to_be_removed(put, refuses, cells):
    text = "a,b\n" + "".join(f'"{cell}",2\n' for cell in cells)
    message = refuses(put("t.csv", text), "remove the thousands separators", "'a'")
    assert "--categorical" not in message


@pytest.mark.parametrize("cells", [["1,5", "2,5"], ["u,v", "1,345", "w,x"], ["1,345", "u", "v"]])
def test_other_commas_separate_no_thousands(put, refuses, cells):
    text = "a,b\n" + "".join(f'"{cell}",2\n' for cell in cells)
    assert "thousands" not in refuses(put("t.csv", text), "--categorical 'a'")


def test_a_folder_without_its_slash_is_asked_about(put, refuses, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    path = put("t.csv", "age,b\n1,2\n")
    refuses(path, "no column 'images', did you mean 'age' or the folder images/?", x="images")
    refuses(path, "no column 'image', did you mean 'age'? it has", x="image")
    (tmp_path / "zzz").mkdir()
    refuses(path, "no column 'zzz', did you mean the folder zzz/?", x="zzz")


def test_a_name_with_a_comma_is_shown_as_it_is_to_be_typed(put, refuses):
    path = put("t.csv", '"weight, kg",b\nu,2\n1,2\n')
    refuses(
        path, """in double quotes, and those in single quotes: '"weight, kg"'""", x="weight, kg"
    )
    refuses(path, """did you mean '"weight, kg"'?""", x="b,weight, kg")
    refuses(path, """--categorical '"weight, kg"'""", x='"weight, kg"')
    both = put("u.csv", '"a,b",a,b,c\n1,2,3,4\n')
    equal(read(both, "a,b", "c")[0], [[2, 3]])
