"""An idx file gives the array that was written, or one line that says why not."""

import contextlib
import gzip
import os
import random
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import array_shapes, arrays

from deminat.data.files import guards as checks
from deminat.datasets.images import read_idx
from deminat.errors import DataError

FORMS = pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
VALUES = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)


def header(*shape, kind=8):
    return struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape), *shape)


def idx(array):
    return header(*array.shape) + array.tobytes()


@pytest.fixture
def put(tmp_path):
    def write(content, name="some-idx3-ubyte"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


@pytest.fixture
def refuses(put):
    """Read a file of the given bytes, and check that the error is one line that names it."""

    def check(content, *says):
        with pytest.raises(DataError) as caught:
            read_idx(put(content))
        message = str(caught.value)
        assert message.isprintable()
        for words in ("some-idx3-ubyte", *says):
            assert words in message

    return check


@FORMS
@given(array=arrays(np.uint8, array_shapes(max_dims=5, max_side=6)))
@settings(max_examples=50, deadline=None)
def test_what_was_written_is_read(tmp_path_factory, pack, array):
    path = tmp_path_factory.mktemp("idx") / "file"
    path.write_bytes(pack(idx(array)))
    found = read_idx(path)
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, array, strict=True)


@FORMS
@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_the_first_bytes_say_whether_a_file_is_packed(put, pack, name):
    np.testing.assert_array_equal(read_idx(str(put(pack(idx(VALUES)), name))), VALUES)


@FORMS
def test_the_array_may_be_written_to(put, pack):
    read_idx(put(pack(idx(VALUES))))[:] = 0


def test_more_than_one_piece_is_read(put):
    values = np.random.default_rng(0).integers(0, 256, (3, 1 << 20), np.uint8)
    np.testing.assert_array_equal(read_idx(put(gzip.compress(idx(values), 1))), values)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(DataError, match="nothing does not exist"):
        read_idx(tmp_path / "nothing")
    with pytest.raises(DataError, match="is a directory"):
        read_idx(tmp_path)


@FORMS
@pytest.mark.parametrize(
    "content",
    [b"", b"\0", header()[:3], b"a,b\n1,2\n", header(2, kind=13) + bytes(8), b"\1" + idx(VALUES)],
    ids=["empty", "one byte", "three bytes", "text", "floats", "shifted"],
)
def test_other_files_are_refused(refuses, pack, content):
    refuses(pack(content), "is no idx file of unsigned bytes")


@FORMS
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,) * 33, (1,) * 255])
def test_shapes_that_are_no_array_are_refused(refuses, pack, shape):
    refuses(pack(header(*shape) + b"1"), "declares shape (")


@FORMS
def test_a_header_that_stops_is_refused(refuses, pack):
    refuses(pack(idx(VALUES)[:15]), "cut off within its header")


@FORMS
@pytest.mark.parametrize(
    ("shape", "truth"),
    [((2, 3, 5), "30 bytes of values and"), ((2, 3, 3), "18 bytes of values and")],
)
def test_a_header_that_lies_is_refused(refuses, pack, shape, truth):
    refuses(pack(header(*shape) + VALUES.tobytes()), truth, "its header is wrong")


@FORMS
def test_what_could_never_be_there_is_refused_unread(refuses, pack):
    huge = 2**32 - 1
    refuses(
        pack(header(huge, huge, huge) + bytes(100)), f"declares {huge**3} bytes", "cannot hold more"
    )


@pytest.mark.parametrize("kept", [1, 5, 20, -9, -8, -4, -1])
def test_a_gzip_that_stops_is_refused(refuses, kept):
    refuses(gzip.compress(idx(VALUES))[:kept])


def test_a_gzip_with_a_wrong_checksum_is_refused(refuses):
    packed = bytearray(gzip.compress(idx(VALUES)))
    packed[-8] ^= 1
    refuses(bytes(packed), "cannot be read as idx", "CRC")


def test_what_follows_a_gzip_is_refused(refuses):
    refuses(gzip.compress(idx(VALUES)) + b"more", "cannot be read as idx")
    refuses(gzip.compress(idx(VALUES)) * 2, "holds more")


BOMB = header(10, 2, 2) + bytes(1 << 26)
PROMISE = header(1 << 12, 1 << 12) + random.Random(0).randbytes(20_000)


@pytest.mark.parametrize(
    ("content", "says"), [(BOMB, "holds more"), (PROMISE, "holds 20000")], ids=["bomb", "promise"]
)
def test_memory_is_the_lesser_of_what_is_said_and_what_is_there(put, content, says):
    path = put(gzip.compress(content))
    assert path.stat().st_size < 1e5
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=says):
            read_idx(path)
        assert tracemalloc.get_traced_memory()[1] < 4e6
    finally:
        tracemalloc.stop()


def test_an_array_beyond_the_memory_is_refused_unread(refuses, monkeypatch):
    monkeypatch.setattr(checks, "available_memory", lambda: 20)
    refuses(idx(VALUES), "GB of memory", "a machine with more memory")


@FORMS
def test_damage_gives_an_array_or_a_data_error(put, pack):
    chance, whole = random.Random(0), pack(idx(VALUES))
    for _ in range(200):
        content = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        with contextlib.suppress(DataError):
            found = read_idx(put(content[: chance.randint(0, 2 * len(content))]))
            assert found.size <= VALUES.size


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="not a regular file"):
        read_idx(tmp_path / "pipe")
