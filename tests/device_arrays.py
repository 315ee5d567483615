"""Arrays that keep to what CuPy's can do, for machines without a device."""

import types
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


class DeviceArray(NDArrayOperatorsMixin):
    """Takes numpy's functions as CuPy's arrays do (NEP 13 and 18).

    Like those it never becomes one of numpy's by itself and does not mix with them, but as an index, and what is
    reduced to one value stays an array.
    """

    def __init__(self, values: np.ndarray) -> None:
        self._values = np.array(values)

    def get(self) -> np.ndarray:
        """A copy on the host, where it is wanted expressly."""
        return self._values.copy()

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **fields: Any) -> Any:
        return _there(getattr(ufunc, method)(*_here(inputs), **_here(fields)), fields.get("out"))

    def __array_function__(self, function: Any, _: Any, arguments: Any, fields: Any) -> Any:
        if function is np.asarray:  # with like=, which is how the host's are brought over
            return DeviceArray(np.asarray(*map(_key, arguments), **fields))
        return _there(function(*_here(arguments), **_here(fields)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # through which numpy would find the values
            raise AttributeError(name)
        found = getattr(self._values, name)
        return (lambda *a, **k: _there(found(*_here(a), **_here(k)))) if callable(found) else _there(found)

    def __getitem__(self, key: Any) -> "DeviceArray":
        view = DeviceArray.__new__(DeviceArray)
        view._values = np.asarray(self._values[_key(key)])
        return view

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[_key(key)] = _here(value)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator["DeviceArray"]:
        return (self[index] for index in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._values)

    def __int__(self) -> int:
        return int(self._values)

    __index__ = __int__

    def __float__(self) -> float:
        return float(self._values)


def module_like_cupy() -> types.ModuleType:
    """As much of CuPy as is asked for by name."""

    class Generator:
        def __init__(self, seed: int) -> None:
            self._rng = np.random.default_rng(seed)

        def integers(self, *arguments: int) -> DeviceArray:
            return DeviceArray(self._rng.integers(*arguments))

    cupy = types.ModuleType("cupy")
    cupy.asarray = DeviceArray  # type: ignore[attr-defined]
    cupy.random = types.SimpleNamespace(default_rng=Generator)  # type: ignore[attr-defined]
    return cupy


def _here(value: Any) -> Any:
    if isinstance(value, DeviceArray):
        return value._values
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, list | tuple):
        return type(value)(_here(each) for each in value)
    if isinstance(value, dict):
        return {name: _here(each) for name, each in value.items()}
    return value


def _key(key: Any) -> Any:
    return key if isinstance(key, np.ndarray) else _here(key)


def _there(value: Any, out: Any = None) -> Any:
    if out is not None:
        return out[0]
    if isinstance(value, np.ndarray | np.generic):
        view = DeviceArray.__new__(DeviceArray)
        view._values = np.asarray(value)
        return view
    return tuple(_there(each) for each in value) if isinstance(value, tuple) and not _is_sizes(value) else value


def _is_sizes(value: tuple[Any, ...]) -> bool:
    return all(type(each) is int for each in value)
