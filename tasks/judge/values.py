"""Constructor arguments and non-tensor inputs as JSON, so that they reach a candidate without a pickle.

Only plain data is carried: numbers, strings, None, lists, tuples, mappings, dtypes and small tensors. Floats that JSON
has no word for travel as text.
"""

import base64
import math
from typing import Any

MAX_TENSOR_BYTES = 16 << 10


class ValueRefusedError(Exception):
    """A value of a kind that cannot be handed to a candidate."""


def encode(value: object) -> Any:
    """JSON data that decode turns back into an equal value.

    Raises:
        ValueRefusedError: naming the type that cannot be carried.
    """
    import torch

    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.Tensor) and 0 < value.nbytes <= MAX_TENSOR_BYTES:
        data = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        dtype = str(value.dtype).removeprefix("torch.")
        return {"tensor": [dtype, list(value.shape), base64.b64encode(data).decode()]}
    raise ValueRefusedError(f"a value of type {type(value).__name__} cannot be handed to a candidate")


def decode(data: Any) -> Any:
    """The value that encode wrote."""
    import torch

    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, body),) = data.items()
    if kind == "float":
        return float(body)
    if kind == "tuple":
        return tuple(decode(item) for item in body)
    if kind == "dict":
        return {decode(key): decode(item) for key, item in body}
    if kind == "dtype":
        return getattr(torch, body)
    dtype, shape, text = body
    flat = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8).clone()
    return flat.view(getattr(torch, dtype)).reshape(shape)
