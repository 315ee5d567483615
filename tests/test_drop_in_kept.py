"""What a drop-in keeps of its constructor and of its fast form: no more than it needs, and nothing that ties it up."""

import copy
import io
import pickle
import random
import types
import weakref
from pathlib import Path

import numpy
import pytest
import torch

from tests.drop_in_builders import imported

SOURCE = """
import random

import numpy
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, size=4, seen=None, source=None):
        super().__init__()
        self.inner = nn.Linear(size, size)
        self.start = 0.0 if source is None else float(source())
        if seen is not None:
            seen.append(size)
        random.random(), numpy.random.rand()

    def forward(self, x):
        return self.inner(x)


def example_inputs():
    return torch.randn(3, 2, 4)
"""
OF_ITS_OWN = {
    "        self.inner = nn.Linear": "        self.register_buffer('own', torch.ones(1), persistent=False)\n"
    "        self.inner = nn.Linear",
    "return self.inner(x)": "return self.own + self.inner(x)",
}


class Source:
    """An argument that is no plain data."""

    def __init__(self) -> None:
        self.big = torch.zeros(1_000_000)
        self.unpicklable = lambda: 0

    def __call__(self) -> torch.Tensor:
        return self.big[0]


DEEPCOPIES = {
    "of the mapping": """
    def __deepcopy__(self, memo):
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new
""",
    "of each attribute": """
    def __deepcopy__(self, memo):
        import copy

        new = type(self).__new__(type(self))
        for name, value in self.__dict__.items():
            new.__dict__[name] = copy.deepcopy(value, memo)
        return new
""",
}
PAIR = """
    def __getstate__(self):
        return self.__dict__, 3

    def __setstate__(self, state):
        self.__dict__.update(state[0])
        self.three = state[1]

    def forward"""


@pytest.fixture(params=[False, True], ids=["made alike", "made otherwise"])
def marks(request: pytest.FixtureRequest) -> dict[str, str]:
    """A candidate whose constructor is that of the reference, or one that has something of its own."""
    return OF_ITS_OWN if request.param else {}


@pytest.fixture
def written(tmp_path: Path, marks: dict[str, str]) -> types.ModuleType:
    return imported(tmp_path, SOURCE, marks=marks)


@torch.no_grad()
def is_fast(block: torch.nn.Module) -> bool:
    x = torch.randn(3, 2, 4)
    extra = float((block(x) - block.inner(x)).mean())
    assert extra in (0.0, pytest.approx(1.0, abs=1e-5))
    return extra != 0.0


@pytest.mark.usefixtures("without_collector")
def test_it_is_freed_with_its_last_name(written: types.ModuleType) -> None:
    for size in (4, 3):  # one that was judged, and one that was not
        block = written.Block(size).eval()
        with torch.no_grad():
            block(torch.randn(3, 2, size))
        seen = weakref.ref(block)
        weight = weakref.ref(block.inner.weight)
        del block
        assert seen() is None
        assert weight() is None


def test_arguments_that_are_no_plain_data_are_neither_pickled_nor_needed(written: types.ModuleType) -> None:
    block = written.Block(source=Source()).eval()
    for _ in range(2):
        saved = io.BytesIO()
        torch.save(block, saved)
        assert saved.tell() < 10_000
        copied = pickle.loads(pickle.dumps(block))
        assert torch.equal(copied(torch.ones(4)), block(torch.ones(4)))
        assert is_fast(block)


def test_arguments_that_are_no_plain_data_are_not_kept_once_it_is_fast(written: types.ModuleType) -> None:
    source = Source()
    block, seen = written.Block(source=source).eval(), weakref.ref(source)
    assert is_fast(block)
    del source
    assert seen() is None


def test_a_copy_that_would_need_them_warns_and_runs_as_the_reference(tmp_path: Path) -> None:
    block = imported(tmp_path, SOURCE, marks=OF_ITS_OWN).Block(source=lambda: 0.0).eval()
    copied = pickle.loads(pickle.dumps(block))
    with pytest.warns(UserWarning, match="stays as slow as it was: .*arguments.* no plain data"):
        assert not is_fast(copied)


def test_a_copy_of_one_made_alike_needs_no_arguments(tmp_path: Path) -> None:
    block = imported(tmp_path, SOURCE).Block(source=lambda: 0.0).eval()
    assert is_fast(pickle.loads(pickle.dumps(block)))
    assert is_fast(copy.deepcopy(block))


def test_a_copy_without_them_takes_none_from_the_original(tmp_path: Path) -> None:
    block = imported(tmp_path, SOURCE, marks=OF_ITS_OWN).Block(source=lambda: 0.0).eval()
    copied = copy.deepcopy(block)
    with pytest.warns(UserWarning, match="arguments .* no plain data"):
        assert not is_fast(copied)
    assert is_fast(block)


def test_a_subclass_keeps_no_arguments(written: types.ModuleType) -> None:
    class Other(written.Block):  # type: ignore[misc, name-defined]
        pass

    source = Source()
    block, seen = Other(source=source).eval(), weakref.ref(source)
    del source
    assert seen() is None
    assert not is_fast(block)


@pytest.mark.usefixtures("without_collector")
def test_a_part_that_was_replaced_is_freed(written: types.ModuleType) -> None:
    block = written.Block().eval()
    assert is_fast(block)
    seen, block.inner = weakref.ref(block.inner), torch.nn.Linear(4, 4).eval()
    assert is_fast(block)
    assert seen() is None
    block.inner = torch.nn.Sequential(torch.nn.Linear(4, 4)).eval()
    assert not is_fast(block)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("method", DEEPCOPIES)
def test_a_class_may_say_itself_how_it_is_copied(
    tmp_path: Path, marks: dict[str, str], method: str, first: bool
) -> None:
    own_way = DEEPCOPIES[method] + "\n    def forward"
    block = imported(tmp_path, SOURCE.replace("\n    def forward", own_way), marks=marks).Block().eval()
    assert not first or is_fast(block)
    copied = copy.deepcopy(block)
    assert is_fast(copied)
    assert is_fast(block)
    assert vars(copied)["_fast"] is not vars(block)["_fast"]
    assert not marks or vars(copied)["own"] is not vars(block)["own"]


@pytest.mark.parametrize("first", [True, False])
def test_a_replica_for_one_call_runs_as_the_reference_and_does_not_warn(
    written: types.ModuleType, first: bool, recwarn: pytest.WarningsRecorder
) -> None:
    block = written.Block().eval()
    assert not first or is_fast(block)
    assert not is_fast(block._replicate_for_data_parallel())  # as torch.nn.DataParallel makes its own
    assert not recwarn
    assert is_fast(block)


def test_what_a_constructor_needs_is_written_only_where_it_runs(written: types.ModuleType, marks: object) -> None:
    assert hasattr(written, "_undisturbed") is ("__init__" in vars(written.Block)) is bool(marks)


def test_a_candidate_may_be_a_function_that_makes_a_module(tmp_path: Path) -> None:
    function = "def ModelNew(*arguments):\n    return Made(*arguments)\n\n\ndef example_inputs"
    marks = {**OF_ITS_OWN, "class ModelNew": "class Made", "def example_inputs": function}
    block = imported(tmp_path, SOURCE, marks=marks).Block().eval()
    assert [is_fast(block), is_fast(block)] == [True, True]


@pytest.mark.parametrize("first", [True, False])
def test_a_list_that_the_constructor_appends_to_is_appended_to_once(written: types.ModuleType, first: bool) -> None:
    seen: list[int] = []
    block = written.Block(4, seen).eval()
    assert not first or is_fast(block)
    for each in (block, copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
        assert is_fast(each)
    assert seen == [4]


def test_no_random_numbers_are_used_up(written: types.ModuleType) -> None:
    block, x = written.Block().eval(), torch.randn(3, 2, 4)
    states = random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # type: ignore[index]
    with torch.no_grad():
        block(x)
    assert states == (random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # type: ignore[index]


@pytest.mark.parametrize("first", [True, False])
def test_a_state_that_is_no_mapping_is_passed_through(tmp_path: Path, marks: dict[str, str], first: bool) -> None:
    block = imported(tmp_path, SOURCE.replace("\n    def forward", PAIR), marks=marks).Block().eval()
    assert not first or is_fast(block)
    for each in (copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
        assert each.three == 3
        assert torch.equal(each.inner.weight, block.inner.weight)
        assert "own" not in vars(each)
    assert is_fast(block)


def test_it_is_saved_as_its_original_is(written: types.ModuleType) -> None:
    block, saved = written.Block().eval(), io.BytesIO()
    assert is_fast(block)
    torch.save(block, saved)
    saved.seek(0)
    with torch.serialization.safe_globals([written.Block, torch.nn.Linear, set]):
        loaded = torch.load(saved, weights_only=True)
    assert torch.equal(loaded.inner.weight, block.inner.weight)
    assert is_fast(loaded)


def test_a_class_may_refuse_attributes_that_it_does_not_know(tmp_path: Path, marks: dict[str, str]) -> None:
    refusing = "    def __setattr__(self, name, value):\n        assert not name.startswith('_'), name\n"
    refusing += "        super().__setattr__(name, value)\n\n    def forward"
    block = imported(tmp_path, SOURCE.replace("    def forward", refusing), marks=marks).Block().eval()
    assert [is_fast(block), is_fast(block)] == [True, True]


def test_its_class_may_be_pickled_with_it_as_workers_get_it(written: types.ModuleType) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    block = written.Block().eval()
    assert is_fast(block)
    cloudpickle.register_pickle_by_value(written)
    try:
        pickled = cloudpickle.dumps(block)
    finally:
        cloudpickle.unregister_pickle_by_value(written)
    assert is_fast(pickle.loads(pickled))
