"""Fast code that cannot be compiled where the module runs costs the speed and a warning, not the module."""

import copy
import threading
import types
import warnings
from pathlib import Path

import pytest
import torch

from tests.drop_in_builders import imported

SOURCE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Embedding(8, 4)

    def forward(self, x):
        return self.inner(x.long())


def example_inputs():
    return torch.zeros(3, 2, 4)
"""
COMPILES = """calls.append(1)
        if broken:
            raise RuntimeError('no compiler here')
        return 1 + self.inner("""


@pytest.fixture
def written(tmp_path: Path) -> types.ModuleType:
    """One whose fast forward fails for as long as something is missing."""
    module = imported(tmp_path, SOURCE, marks={"return self.inner(": COMPILES})
    module.__dict__.update(broken=True, calls=[])
    return module


def test_a_first_call_that_fails_is_answered_by_the_reference_and_warned_of_once(written: types.ModuleType) -> None:
    block, x = written.Block(), torch.ones(3, 2, 4)
    with torch.no_grad():
        with pytest.warns(UserWarning, match="Block stays as slow as it was: no compiler here"):
            found = block(x)
        assert torch.equal(found, block.inner(x.long()))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert torch.equal(block(x), found)
    assert len(written.calls) == 1


@pytest.mark.parametrize("reason", ["its first call fails", "judged otherwise"])
def test_a_warning_that_is_an_error_is_raised_once(written: types.ModuleType, reason: str) -> None:
    block, x = written.Block(), torch.ones(3, 2, 4)
    if reason == "judged otherwise":
        block.other = 1
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="stays as slow as it was"):
            block(x)
        for _ in range(2):
            assert torch.equal(block(x), block.inner(x.long()))


@pytest.mark.parametrize("reason", ["its first call fails", "judged otherwise"])
def test_it_warns_of_the_line_that_calls_it(written: types.ModuleType, reason: str) -> None:
    block, x = written.Block(), torch.ones(3, 2, 4)
    if reason == "judged otherwise":
        block.other = 1
    with pytest.warns(UserWarning, match="stays as slow as it was") as told, torch.no_grad():
        block(x)
    assert [each.filename for each in told] == [__file__]


def test_an_input_that_the_reference_refuses_too_does_not_end_the_fast_way(written: types.ModuleType) -> None:
    block = written.Block()
    written.__dict__["broken"] = False
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(IndexError):
            block(torch.full((3, 2, 4), 8.0))
        assert torch.equal(block(torch.ones(3, 2, 4)), 1 + block.inner(torch.ones(3, 2, 4).long()))


def test_what_fails_later_is_raised(written: types.ModuleType) -> None:
    block = written.Block()
    written.__dict__["broken"] = False
    with torch.no_grad():
        block(torch.ones(3, 2, 4))
        written.__dict__["broken"] = True
        with pytest.raises(RuntimeError, match="no compiler here"):
            block(torch.ones(3, 2, 4))


def test_what_fails_beside_the_class_is_warned_of_though_its_constructor_is_the_reference_s(tmp_path: Path) -> None:
    failing = {"import torch\n": "import torch\n\nEXTRA = float('no compiler')\n"}
    block, x = imported(tmp_path, SOURCE, marks=failing).Block(), torch.ones(3, 2, 4)
    with pytest.warns(UserWarning, match="stays as slow as it was: ValueError: .*no compiler"), torch.no_grad():
        assert torch.equal(block(x), block.inner(x.long()))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        assert torch.equal(block(x), block.inner(x.long()))


def test_a_decorator_may_return_a_subclass(tmp_path: Path) -> None:
    decorator = "def wrapped(kind):\n    class Wrapped(kind):\n        pass\n\n    return Wrapped\n\n\n@wrapped\n"
    source = SOURCE.replace("class Block", f"{decorator}class Block")
    module = imported(tmp_path, source, marks={"return self.inner(": COMPILES})
    module.__dict__.update(broken=True, calls=[])
    block, x = module.Block(), torch.ones(3, 2, 4)
    with pytest.warns(UserWarning, match="no compiler here"), torch.no_grad():
        assert torch.equal(block(x), block.inner(x.long()))


def test_fast_code_that_ran_out_of_memory_is_not_tried_again_since_half_of_its_first_call_is_done(
    tmp_path: Path,
) -> None:
    failing = COMPILES.replace("RuntimeError('no compiler here')", "torch.OutOfMemoryError('no memory left')")
    module = imported(tmp_path, SOURCE, marks={"return self.inner(": failing})
    module.__dict__.update(broken=True, calls=[])
    block, x = module.Block(), torch.ones(3, 2, 4)
    with torch.no_grad(), pytest.warns(UserWarning, match="stays as slow as it was: no memory left"):
        block(x)
    module.__dict__["broken"] = False
    with torch.no_grad():
        assert torch.equal(block(x), block.inner(x.long()))
    assert len(module.calls) == 1


@pytest.mark.parametrize("is_made_alike", [True, False])
@pytest.mark.parametrize("is_copied", [True, False])
def test_of_a_first_call_that_failed_nothing_is_kept(tmp_path: Path, is_copied: bool, is_made_alike: bool) -> None:
    keeping = """if not hasattr(self, "kept"):
            self.kept = torch.full((4,), 5.0)
            if broken:
                raise RuntimeError("no memory left")
            self.kept.fill_(1.0)
        return self.kept + self.inner("""
    own = {} if is_made_alike else {"super().__init__()": "super().__init__()\n        self.room = torch.ones(4)"}
    keeping = keeping if is_made_alike else keeping.replace("fill_(1.0)", "copy_(self.room)")
    module = imported(tmp_path, SOURCE, marks={"return self.inner(": keeping, **own})
    module.__dict__["broken"] = True
    block, x = module.Block(), torch.ones(3, 2, 4)
    with torch.no_grad():
        if is_copied:
            with pytest.warns(UserWarning, match="no memory left"):
                block(x)
            block = copy.deepcopy(block)
        else:  # an input that is wrong for either, after which the fast form is tried again
            with pytest.raises(IndexError):
                block(torch.full((3, 2, 4), 8.0))
        module.__dict__["broken"] = False
        assert torch.equal(block(x), 1 + block.inner(x.long()))


def test_a_first_call_that_fails_in_two_threads_leaves_the_module_whole(written: types.ModuleType) -> None:
    block, x = written.Block(), torch.ones(3, 2, 4)
    both, found = threading.Barrier(2), []

    class Slow(list[int]):
        def append(self, _: int) -> None:
            both.wait(20)  # both have begun, and one fails after the other has given up
            if threading.current_thread().name == "later":
                first.join(20)

    def call() -> None:
        with torch.no_grad():
            found.append(block(x))

    written.__dict__["calls"] = Slow()
    first, later = threading.Thread(target=call), threading.Thread(target=call, name="later")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in (first, later):
            each.start()
        for each in (first, later):
            each.join(60)
    assert [torch.equal(each, block.inner(x.long())) for each in found] == [True, True]


def test_of_a_first_call_that_was_interrupted_nothing_is_kept(tmp_path: Path) -> None:
    keeping = """if not hasattr(self, "kept"):
            self.kept = torch.full((4,), 5.0)
            if broken:
                raise KeyboardInterrupt
            self.kept.fill_(1.0)
        return self.kept + self.inner("""
    module = imported(tmp_path, SOURCE, marks={"return self.inner(": keeping})
    module.__dict__["broken"] = True
    block, x = module.Block(), torch.ones(3, 2, 4)
    with torch.no_grad():
        with pytest.raises(KeyboardInterrupt):
            block(x)
        module.__dict__["broken"] = False
        assert torch.equal(block(x), 1 + block.inner(x.long()))
