"""What travels between processes is data, and nothing else is taken."""

import io
import pickle

import numpy as np
import pytest

from warpcourse.processes import messages
from warpcourse.processes.messages import HEADER, BadMessage, pack, read


def received(data, arrays=True):
    return read(io.BytesIO(data), arrays)


def message(text=b"{}", body=b""):
    return HEADER.pack(len(text), len(body)) + text + body


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


class Surprise:
    def __reduce__(self):
        return print, ("unpickled",)


def test_a_message_arrives_as_it_left():
    arrays = {"image": np.arange(6, dtype=np.uint8).reshape(2, 3), "0/1": np.float32([np.nan, 1])}
    stream = io.BytesIO(pack({"ask": "é", "n": [1, None]}, arrays) + pack({"next": 1}))
    told, found = read(stream, arrays=True)
    assert told == {"ask": "é", "n": [1, None]}
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    assert read(stream) == ({"next": 1}, {})
    assert read(stream) is None


def test_objects_are_neither_sent_nor_read(capsys):
    objects = np.array([Surprise()], dtype=object)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        pack({}, {"objects": objects})
    with pytest.raises(BadMessage, match="pickle"):
        received(message(body=npz(objects=objects)))
    with pytest.raises(BadMessage):
        received(message(body=pickle.dumps(Surprise())))
    assert "unpickled" not in capsys.readouterr().out


def test_arrays_are_refused_where_none_are_expected():
    with pytest.raises(BadMessage, match="no message"):
        received(pack({}, {"a": np.zeros(1)}), arrays=False)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        message(text=b"[1]"),
        message(text=b"{"),
        message(text=b"\xff\xfe"),
        message(body=b"no zip"),
        message(body=npz(a=np.zeros(100))[:-40]),
        HEADER.pack(messages.MOST_JSON + 1, 0),
        HEADER.pack(2, messages.MOST_ARRAYS + 1),
    ],
)
def test_nonsense_is_refused(data):
    with pytest.raises(BadMessage):
        received(data)


def test_arrays_that_unpack_to_more_than_is_taken_are_refused(monkeypatch):
    packed = io.BytesIO()
    np.savez_compressed(packed, zeros=np.zeros(1 << 20))
    monkeypatch.setattr(messages, "MOST_ARRAYS", 1 << 20)
    assert len(packed.getvalue()) < 1 << 20
    with pytest.raises(BadMessage, match="larger than is taken"):
        received(message(body=packed.getvalue()))
    with pytest.raises(BadMessage, match="do not fit"):
        pack({}, {"zeros": np.zeros(1 << 20)})
