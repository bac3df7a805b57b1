"""Messages between ComfyUI's process and Braid's: a JSON object and arrays, over a pair of sockets.

A message is two lengths, the object's text, then the bytes of each array that the object lists. Both processes have
this file, and neither trusts a length beyond MOST.
"""

import json
import struct

import numpy as np

LENGTHS = struct.Struct("<QQ")  # bytes of the text, bytes of all arrays
MOST = 1 << 40
ARRAYS = "arrays"  # the object's list of [name, dtype, shape]


class Closed(Exception):
    """The other process has ended."""


def received(connection, size):
    """Exactly `size` bytes. Raises Closed at the end of the connection."""
    data = bytearray(size)
    view = memoryview(data)
    at = 0
    while at < size:
        try:
            count = connection.recv_into(view[at:])
        except (ConnectionError, OSError) as error:
            raise Closed from error
        if count == 0:
            raise Closed
        at += count
    return data


def send(connection, message, arrays=None):
    """Sends an object of JSON's types, and numpy arrays by name. Raises Closed if nobody reads."""
    given = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    listed = [[name, array.dtype.str, array.shape] for name, array in given.items()]
    text = json.dumps({**message, ARRAYS: listed}).encode()
    try:
        connection.sendall(LENGTHS.pack(len(text), sum(array.nbytes for array in given.values())) + text)
        for array in given.values():
            if array.nbytes:
                connection.sendall(memoryview(array).cast("B"))
    except (ConnectionError, OSError) as error:
        raise Closed from error


def receive(connection):
    """(object, arrays by name). Raises Closed when the other process has ended or sends something else."""
    text_size, arrays_size = LENGTHS.unpack(received(connection, LENGTHS.size))
    if text_size > MOST or arrays_size > MOST:
        raise Closed
    message = json.loads(received(connection, text_size))
    arrays = {}
    for name, dtype, shape in message.pop(ARRAYS):
        array = np.empty(shape, dtype)
        if array.nbytes:
            array = np.frombuffer(received(connection, array.nbytes), dtype).reshape(shape)
        arrays[name] = array
    return message, arrays
