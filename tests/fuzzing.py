"""Malformed files, headers and arguments, by the thousand: `python tests/fuzzing.py 5000`.

Each case depends on its number only, so that a failed one can be repeated: `fuzz(1, number)`. A
case passes if it ends in an answer or in one printable line within 20 seconds, and if none of the
pickles among the files was loaded.
"""

import io
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from contextlib import chdir, contextmanager
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
import polars as pl
from typer.testing import CliRunner

from deminat.api import estimate  # imports torch, which takes seconds, before the first case
from deminat.cli import app
from deminat.errors import DataError, TrainingError

LIMIT = 20  # seconds
EXPECTED = DataError, TrainingError, ValueError  # errors that the command line prints
WORDS = [
    "a",
    "b",
    "c",
    "0",
    "1",
    "a,b",
    "*",
    "",
    ",",
    "zz",
    "\x1b[2J",
    "=cmd|' /C calc'!A0",
    "é",
    "'",
]
NUMBERS = ["1", "10", "25", "0", "-3", "1e3", "nan", "", "99999999999999999999", "x"]
TARGETS = [
    "out.csv",
    "out.parquet",
    "out.txt",
    "no/out.csv",
    "",
    ".",
    "out.csv\0",
    "n" * 300 + ".csv",
]
OPTIONS = {
    "--x": WORDS,
    "--y": WORDS,
    "--given": WORDS,
    "--groups": [*WORDS, "who"],
    "--order": [*WORDS, "rows", "who"],
    "--categorical": [*WORDS, "a,b,c"],
    "--discrete": [*WORDS, "a,b", "x", "all", "none"],
    "--max-rows": NUMBERS,
    "--seed": NUMBERS,
    "--folds": ["2", "5", "0", "x"],
    "--budget": NUMBERS,
    "--nan": ["omit", "raise", "drop"],
    "--unit": ["bits", "nats", "pints"],
    "--pointwise": TARGETS,
    "--figure": ["out.png", "out.exe", "no/out.png", ""],
    "--report": ["out.html", "out.doc", "no/out.html"],
    "--method": ["gaussian", "ksg", "copula", "none"],
}
ESTIMATE_ONLY = {
    *("--discrete", "--folds", "--budget", "--unit", "--pointwise", "--figure", "--report"),
    "--method",
}
SHORT = {"LONG": 100, "BLOCK": 211}  # limits of text, so that short files count as long
BYTES = [
    b",",
    b"\n",
    b'"',
    b"\0",
    b"\xff",
    b";",
    b" ",
    b"1e999",
    b"'",
    b"nan",
    b"\r",
    b"\xef\xbb\xbf",
]


class Bomb:
    """A pickle that would leave a file behind if it were ever loaded."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


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
            data[at:at] = draw.choice(BYTES)
        else:
            del data[span]
    return bytes(data)


def seeds(folder, marker):
    """Return valid files of every format, and pickles, by name."""
    folder.mkdir()
    values = np.random.default_rng(0).normal(size=(40, 2))
    frame = pl.DataFrame(values, schema=["a", "b"])
    frame = frame.with_columns(c=pl.Series(["u", "v"] * 20), who=np.arange(40) // 4)
    frame.write_parquet(folder / "s.parquet", row_group_size=16)
    frame.write_csv(folder / "s.csv")
    frame.write_csv(folder / "s2.csv", separator=";", quote_style="always")
    (folder / "s.txt").write_bytes(frame.write_csv(separator="\t").encode("utf-16"))
    np.save(folder / "s.npy", values)
    np.savez_compressed(folder / "s.npz", x=values, y=values[:, 0])
    with h5py.File(folder / "s.h5", "w") as file:
        file["x"], file["y"] = values, values[:, 0]
    np.save(folder / "bomb.npy", np.array([Bomb(marker)], dtype=object))
    np.savez(folder / "bomb.npz", x=np.array([Bomb(marker)], dtype=object), y=values)
    for suffix in ("pkl", "pt", "csv", "parquet", "h5"):
        (folder / f"bomb2.{suffix}").write_bytes(pickle.dumps(Bomb(marker)))
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def columns(path, draw):
    """Return options that name existing columns, most of the time."""
    if draw.random() < 0.15:
        return []
    archive = path.suffix in (".npz", ".h5")
    x, y = ("x", "y") if archive else ("0", "1") if path.suffix == ".npy" else ("a", "b")
    return ["--x", x, "--y", y]


def extras(draw, folder):
    """Return some options with good and bad values."""
    found = []
    for option in draw.sample(list(OPTIONS), draw.choice([0, 0, 0, 1, 1, 2, 4])):
        value = draw.choice(OPTIONS[option])
        written = option in ("--pointwise", "--figure", "--report")
        found += [option, str(folder / value) if written and value else value]
    return found


def a_file(draw, originals, folder):
    """Return the arguments for a damaged file."""
    name = draw.choice(list(originals))
    path = folder / f"m{Path(name).suffix}"
    path.write_bytes(mutated(originals[name], draw) if draw.random() < 0.7 else originals[name])
    return [path, *columns(path, draw), *extras(draw, folder)]


def a_header(draw, originals, folder):
    """Return the arguments for text below a random header."""
    path = folder / "h.csv"
    names = [draw.choice([*WORDS, draw.randbytes(3).decode("latin-1")]) for _ in range(3)]
    odd = draw.choice([["0.5"], ["NA", ""], ["x", "1e400", "true", '"', "1,5"]])
    rows = [[str(draw.gauss()), str(draw.gauss()), draw.choice(odd)] for _ in range(30)]
    mark = draw.choice(",;\t| ")
    lines = [mark.join(row) for row in [names, *rows]]
    path.write_text("\n".join(lines), encoding=draw.choice(["utf-8", "utf-16", "utf-8-sig"]))
    x, y = names[:2] if draw.random() < 0.7 else draw.choices(WORDS, k=2)
    return [path, "--x", x, "--y", y, *extras(draw, folder)]


def an_argument(draw, originals, folder):
    """Return arguments that do not go together."""
    names = ["s.csv", "s.npy", "s.parquet", "none.csv", "", ".", "/dev/null", "-", "--", "a\0.csv"]
    files = [
        str(folder.parent / "seeds" / n) if n[:1] == "s" else n for n in draw.choices(names, k=2)
    ]
    return [*files[: draw.choice([1, 1, 2])], *columns(Path("t.csv"), draw), *extras(draw, folder)]


def a_folder(draw, originals, folder):
    """Return the arguments for a folder of arrays, some of them damaged."""
    rows = folder / "rows"
    rows.mkdir()
    count = draw.choice([0, 1, 40, 40, 41])
    for i in range(count):
        np.save(rows / f"r{i}.npy", np.full((2, 2), float(i % 7)))
    for _ in range(draw.choice([0, 1, 2])):
        path = rows / f"r{draw.randrange(45)}.npy"
        path.write_bytes(mutated(draw.choice([originals["s.npy"], originals["bomb.npy"]]), draw))
    table = folder.parent / "seeds" / "s.csv"
    words = [table, "--x", f"{rows}/", "--y", "a"]
    return draw.choice([words, [rows, table], [table, rows], [rows, rows], [rows]]) + extras(
        draw, folder
    )


def a_map(draw, originals, folder):
    """Estimate from a mapped array of a random type."""
    path = folder / "map.bin"
    path.write_bytes(draw.randbytes(40 * 48))
    kinds = ["f8", "f4", "i8", "u1", "?", ">f8", "f2", "c16", "S8", "M8[s]"]
    kind, mode = np.dtype(draw.choice(kinds)), draw.choice(["r", "c", "r+"])
    x = np.memmap(
        path, kind, mode, shape=(draw.choice([0, 1, 40]) or 40, 48 // 16), order=draw.choice("CF")
    )
    beside = draw.choice([{}, {"groups": x[:, 0]}, {"order": x[:, 0]}, {"groups": np.arange(3)}])
    most = draw.choice([None, 25, 10, 0])
    estimate(x, np.arange(len(x)) % 5.0, method="gaussian", nan="omit", max_rows=most, **beside)


def run(number, originals, root):
    """Run one case; return its kind and its outcome: `answer`, `refused`, or a fault."""
    draw = random.Random(number)
    folder = root / "case"
    folder.mkdir()
    kind = draw.choice([a_file] * 5 + [a_header] * 2 + [an_argument] * 2 + [a_folder, a_map])
    is_long = draw.random() < 0.5
    begun = time.perf_counter()
    try:
        with (
            timed(),
            chdir(folder),
            mock.patch.multiple(
                "deminat.data.files.text_stream", **(SHORT if is_long else {"LONG": 1 << 26})
            ),
        ):
            result = outcome(kind, draw, originals, folder)
    except TimeoutError:
        result = "hung"
    finally:
        shutil.rmtree(folder)
    slow = time.perf_counter() - begun > LIMIT
    return kind.__name__, "slow" if slow and result in ("answer", "refused") else result


def outcome(kind, draw, originals, folder):
    """Run one case; return `answer`, `refused`, or a fault."""
    if kind is a_map:
        try:
            kind(draw, originals, folder)
        except EXPECTED as error:
            return judged(error)
        except TimeoutError:
            raise
        except Exception as error:
            return f"{type(error).__name__}: {error!s:.200}"
        return "answer"
    words = kind(draw, originals, folder)
    few = not any(str(word) in ESTIMATE_ONLY for word in words)
    command = "test" if few and draw.random() < 0.3 else "estimate"
    words = [command, *map(str, words)]
    if command == "estimate" and "--method" not in words:
        words += ["--method", "gaussian"]
    done = CliRunner().invoke(app, words)
    if done.exception is None or isinstance(done.exception, SystemExit):
        return "answer" if done.exit_code == 0 else "refused"
    if isinstance(done.exception, TimeoutError):
        raise done.exception
    if isinstance(done.exception, EXPECTED):
        return judged(done.exception)
    return f"{type(done.exception).__name__}: {done.exception!s:.200} <- {words!r:.600}"


def judged(error):
    """Return `refused` if an error is one printable line, else a fault."""
    text = str(error)
    return "refused" if text and text.isprintable() else f"no plain line: {text!r:.200}"


@contextmanager
def timed():
    """Raise a TimeoutError if a case takes too long."""

    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(count, first=0):
    """Run cases; return the number of each outcome, and the faults by number."""
    outcomes, faults = Counter(), {}
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = Path(name)
        marker = root / "executed"
        originals = seeds(root / "seeds", marker)
        for number in range(first, first + count):
            kind, result = run(number, originals, root)
            outcomes[kind, result if result in ("answer", "refused") else "fault"] += 1
            if result not in ("answer", "refused"):
                faults[number] = result
            if marker.exists():
                faults[number] = "a pickle was loaded"
                marker.unlink()
    return outcomes, faults


if __name__ == "__main__":
    started = time.perf_counter()
    arguments = [int(word) for word in sys.argv[1:]] or [300]
    outcomes, faults = fuzz(*arguments)
    out = io.StringIO()
    for (kind, result), times in sorted(outcomes.items()):
        print(f"{kind:12} {result:8} {times}", file=out)
    for number, fault in faults.items():
        print(f"case {number}: {fault}", file=out)
    print(f"{sum(outcomes.values())} cases, {len(faults)} faults", file=out)
    print(f"{time.perf_counter() - started:.0f} s", file=out)
    sys.stdout.write(out.getvalue())
