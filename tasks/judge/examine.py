"""Looking at problems before anybody is judged or trained on them."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tasks.judge.fork_server import ForkServer
from tasks.judge.reference import LAYOUT
from tasks.judge.study import BadProblemError, Study
from tasks.judge.walls.scratch import ScratchFolder
from tasks.judge.wire import offsets
from tasks.problems.problem import Problem

MEMORY_BYTES = 8 << 30
CPU_S = 3_600
MAX_WEIGHTS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something about a problem that a policy could learn to exploit."""

    words: str
    is_fatal: bool
    """Whether candidates for the problem would get the verdict bad_problem."""


def examine_problem(problem: Problem) -> list[Finding]:
    """What is wrong with a problem; nothing for a good one.

    Raises:
        MachineError: if this machine cannot run references behind walls.
    """
    return next(examine_problems([problem]))


def examine_problems(problems: Iterable[Problem]) -> Iterator[list[Finding]]:
    """What is wrong with each of several problems, in order; they share what takes seconds to start."""
    scratch = ScratchFolder.make()
    try:
        server = ForkServer(scratch.path)
        try:
            for problem in problems:
                yield _examined(problem, server)
        finally:
            server.close()
    finally:
        scratch.remove()


def _idle_inputs(study: Study) -> Iterator[str]:
    """Outputs that no inputs change, and inputs that change no output: not in one draw, nor in another."""
    first, *others = study.pool.blocks
    right = study.outputs(first, state=study.weights.states[study.seeds[0]])
    differ = np.any([study.yardstick.differing(right, study.outputs(other)) for other in others], axis=0)
    for index in np.flatnonzero(~differ).tolist():
        if study.output_specs[index].num_items:
            yield f"output {index} is the same for all inputs"
    places = zip(study.inputs.specs, offsets(study.inputs.specs)[0], strict=True)
    for index, (spec, start) in enumerate(places):
        piece = slice(start, start + spec.num_bytes)
        if spec.num_items and not any(_changes(study, right, first, other, piece) for other in others):
            yield f"input {index} changes nothing"


def _changes(study: Study, right: np.ndarray, block: np.ndarray, other: np.ndarray, piece: slice) -> bool:
    mixed = block.copy()
    mixed[piece] = other[piece]
    return any(study.yardstick.differing(right, study.outputs(mixed)))


def _idle_weights(study: Study) -> Iterator[str]:
    weights = study.weights
    for index in np.flatnonzero(weights.is_learned)[:MAX_WEIGHTS]:
        if not study.depends_on_weight(int(index)):
            yield f"the weight {weights.rows[index][0]} changes nothing"


def _examined(problem: Problem, server: ForkServer) -> list[Finding]:
    core = min(os.sched_getaffinity(0))
    worker = server.spawn(arena_bytes=LAYOUT.num_bytes, core=core, uid=None, memory_bytes=MEMORY_BYTES, cpu_s=CPU_S)
    try:
        study = Study(problem, worker)
        return [Finding(words=words, is_fatal=False) for words in (*_idle_inputs(study), *_idle_weights(study))]
    except BadProblemError as error:
        return [Finding(words=str(error), is_fatal=True)]
    finally:
        worker.end()
