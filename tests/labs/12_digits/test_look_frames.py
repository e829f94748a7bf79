"""What travels between the page and the model's process is data, and nothing else is taken."""

import io
import pickle

import numpy as np
import pytest

from digits.look import frames
from digits.look.frames import HEADER, MAGIC, BadFrame, pack, read


def reader(data):
    stream = io.BytesIO(data)

    def exactly(count):
        found = stream.read(count)
        if len(found) < count:
            raise EOFError
        return found

    return exactly


def frame(text=b"{}", body=b"", magic=MAGIC):
    return HEADER.pack(magic, len(text), len(body)) + text + body


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


class Surprise:
    def __reduce__(self):
        return print, ("unpickled",)


def test_a_frame_arrives_as_it_left():
    arrays = {"image": np.arange(6, dtype=np.uint8).reshape(2, 3), "0/1": np.float32([np.nan, 1])}
    stream = reader(pack({"ask": "é", "n": [1, None]}, arrays) + pack({"next": 1}))
    message, found = read(stream)
    assert message == {"ask": "é", "n": [1, None]}
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    assert read(stream) == ({"next": 1}, {})


def test_objects_are_neither_sent_nor_read(capsys):
    objects = np.array([Surprise()], dtype=object)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        pack({}, {"objects": objects})
    with pytest.raises(BadFrame, match="pickle"):
        read(reader(frame(body=npz(objects=objects))))
    with pytest.raises(BadFrame):
        read(reader(frame(body=pickle.dumps(Surprise()))))
    assert "unpickled" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "data",
    [
        frame(magic=b"HTTP"),
        frame(text=b"[1]"),
        frame(text=b"{"),
        frame(text=b"\xff\xfe"),
        frame(body=b"no zip"),
        frame(body=npz(a=np.zeros(100))[:-40]),
        HEADER.pack(MAGIC, frames.MOST_JSON + 1, 0),
        HEADER.pack(MAGIC, 2, frames.MOST_ARRAYS + 1),
    ],
)
def test_nonsense_is_refused(data):
    with pytest.raises(BadFrame):
        read(reader(data))


def test_nan_in_json_is_not_sent():
    with pytest.raises(ValueError, match="JSON"):
        pack({"mean": float("nan")})


def test_arrays_that_unpack_to_more_than_is_taken_are_refused(monkeypatch):
    packed = io.BytesIO()
    np.savez_compressed(packed, zeros=np.zeros(1 << 20))
    monkeypatch.setattr(frames, "MOST_ARRAYS", 1 << 20)
    assert len(packed.getvalue()) < 1 << 20
    with pytest.raises(BadFrame, match="larger than is taken"):
        read(reader(frame(body=packed.getvalue())))
    with pytest.raises(BadFrame, match="do not fit"):
        pack({}, {"zeros": np.zeros(1 << 20)})
