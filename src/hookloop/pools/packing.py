"""Plain values as bytes and back: pickled, with arrays and tensors beside the pickle, so that they are copied once.

Only for the pipes between a pool and the workers it has started itself; nothing from anywhere else is unpickled.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import struct
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

ALIGNMENT = 64
_COUNT = struct.Struct("<q")


def pack(value: Any) -> list[memoryview]:
    """Return the parts that make up a value; one after the other they are what ``unpack`` takes.

    The memory of arrays is not copied: write the parts somewhere before the arrays change.
    """
    buffers: list[pickle.PickleBuffer] = []
    body = io.BytesIO()
    pickler = pickle.Pickler(body, protocol=5, buffer_callback=buffers.append)
    pickler.dispatch_table = _REDUCERS
    pickler.dump(value)
    contents = [body.getbuffer(), *(buffer.raw() for buffer in buffers)]
    sizes = [content.nbytes for content in contents]
    head = _COUNT.pack(len(sizes)) + struct.pack(f"<{len(sizes)}q", *sizes)
    parts = [memoryview(head)]
    at = len(head)
    for content in contents:
        parts += [memoryview(bytes(-at % ALIGNMENT)), content]
        at += -at % ALIGNMENT + content.nbytes
    return parts


def unpack(content: memoryview) -> Any:
    """Return the value that was packed; arrays in it use the memory of the content."""
    (count,) = _COUNT.unpack_from(content)
    sizes = struct.unpack_from(f"<{count}q", content, _COUNT.size)
    at = _COUNT.size * (1 + count)
    contents: list[memoryview] = []
    for size in sizes:
        at += -at % ALIGNMENT
        contents.append(content[at : at + size])
        at += size
    return pickle.loads(contents[0], buffers=contents[1:])


def empty(size: int) -> memoryview:
    """Return memory to be filled."""
    return np.empty(size, np.uint8).data


def _reduce_tensor(tensor: Tensor) -> tuple[Callable[..., Tensor], tuple[Any, ...]]:
    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return _tensor_of, (flat, tensor.dtype, tuple(tensor.shape))


def _tensor_of(flat: np.ndarray, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    return torch.from_numpy(flat).view(dtype).reshape(shape)


# A tensor's own way would copy it into the pickle, through a file format.
_REDUCERS: Mapping[type, Any] = ChainMap({Tensor: _reduce_tensor}, cast(dict[type, Any], copyreg.dispatch_table))
