"""A GPU that is asked for and not there: the remedy fits commands as well as params.yaml."""

import pytest

from tasks.errors import MachineError
from tasks.judge.cuda import Device


def test_both_ways_of_judging_on_the_processor_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    with pytest.raises(MachineError, match=r"there is no cuda:0 here: .*--device cpu, or judge\.device: cpu in params"):
        Device(0)
