"""How exactly a reference computes is read off a run in double precision, whatever its model is made of."""

import os
import threading
from collections.abc import Callable, Iterator

import pytest
import torch

from tasks.judge import equality, precision
from tasks.judge.distributions import FAR
from tasks.judge.fork_server import ForkServer
from tasks.judge.reference import LAYOUT
from tasks.judge.study import STRONG_WEIGHTS, Study
from tasks.judge.yardstick import PLAIN
from tests.judge_builders import problem_of

REFERENCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = linear = nn.Linear(192, 128)
        self.register_buffer("scale", torch.full((128,), 0.5))
        self.own = lambda x: torch.tanh(linear(x)) * self.scale
        self.cast = lambda x, *, more=0.5: torch.tanh(linear(x.float())) * more
        self.several = [lambda x, layer=linear: torch.tanh(layer(x.float())), {"half": lambda x: self.own(x)}]
        self.last = None

    def forward(self, x):
        self.last = self.linear.weight.detach() * 2
        BODY


def get_inputs():
    return [torch.randn(128, 192)]
"""
BODIES = {
    "plain": "return torch.tanh(self.linear(x)) * self.scale",
    "a closure": "return self.own(x)",
    "a closure that casts": "return self.cast(x)",
    "a default in a list": "return self.several[0](x)",
    "a closure in a dictionary": "return self.several[1]['half'](x)",
    "single precision only": "return self.own(x) if x.dtype == torch.float32 else None",
}
Studied = Callable[[str], Study]


@pytest.fixture
def studied(fork_server: ForkServer) -> Iterator[Studied]:
    workers = []

    def studied(name: str) -> Study:
        core = min(os.sched_getaffinity(0))
        workers.append(
            fork_server.spawn(arena_bytes=LAYOUT.num_bytes, core=core, uid=None, memory_bytes=2 << 30, cpu_s=120)
        )
        return Study(problem_of(REFERENCE.replace("BODY", BODIES[name])), workers[-1])

    yield studied
    for worker in workers:
        worker.end()


def own_errors(study: Study, distribution: str) -> list[float]:
    return study.yardstick._own_errors[distribution]


def unknown_errors(study: Study) -> list[float]:
    return [equality.unknown_own_error(spec) for spec in study.output_specs]


@pytest.mark.parametrize("name", [name for name in BODIES if name != "single precision only"])
def test_what_functions_of_a_model_have_closed_over_is_in_double_precision_too(studied: Studied, name: str) -> None:
    study = studied(name)
    assert own_errors(study, PLAIN) != unknown_errors(study)
    assert min(own_errors(study, PLAIN)) > 0.0
    assert own_errors(study, STRONG_WEIGHTS) != unknown_errors(study)
    assert set(study.distributions) & set(FAR)


@pytest.mark.parametrize("name", ["a closure", "single precision only"])
def test_a_model_computes_afterwards_as_it_did_before(studied: Studied, name: str) -> None:
    study = studied(name)
    block = study.pool.blocks[0]
    before = study.outputs(block, state=study.weights.states[study.seeds[0]])
    found = study._reference.in_double(block, study.output_specs, nudge=1e-3)
    assert (found is None) == (name == "single precision only")
    assert study.outputs(block).tobytes() == before.tobytes()


def test_who_cannot_run_in_double_precision_is_not_taken_far_from_what_it_is_made_for(studied: Studied) -> None:
    study = studied("single precision only")
    assert own_errors(study, PLAIN) == unknown_errors(study)
    assert study.distributions
    assert not set(study.distributions) & set(FAR)
    assert study.strong_weights() is None


class Closing(torch.nn.Module):
    """Has functions that close over much."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = linear = torch.nn.Linear(4, 4)
        lock, count, kept = threading.Lock(), 0, {"layer": linear, "lock": threading.Lock(), "last": 3}

        def put() -> None:
            nonlocal count
            count += 1

        def inner(x: torch.Tensor) -> torch.Tensor:
            return linear(x)  # type: ignore[no-any-return]

        def locked(x: torch.Tensor) -> torch.Tensor:
            with lock:
                return inner(x)

        def falling(number: int) -> int:
            return falling(number - 1) if number else 0

        self.put, self.get, self.locked, self.falling = put, lambda: count, locked, falling
        self.first_kept, self.last_kept = lambda own=kept: own["last"], lambda: kept["last"]
        self.register_forward_hook(lambda module, given, out: out + linear.bias.sum())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.locked(x)


def test_functions_that_share_something_share_its_copy_and_leave_the_original_alone() -> None:
    model, x = Closing(), torch.randn(2, 4)
    before = model(x)
    copied, _ = precision.in_double(model, [], nudge=1e-3, seed=0, rounded=False)
    copied.put()
    assert (copied.get(), model.get(), copied.falling(3)) == (1, 0, 0)
    assert (copied.first_kept(), copied.last_kept()) == (3, 3)
    assert copied(x.double()).dtype == torch.float64
    assert torch.equal(model(x), before)
