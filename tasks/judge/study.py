"""What is known about a problem from running its reference: forms, tolerances, valid inputs and weights.

A study outlives the candidates of its problem and is never timed: every candidate is measured against a fresh process
of the reference.
"""

import contextlib
import itertools
import random
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tasks.errors import WorkerError
from tasks.judge import equality
from tasks.judge.degenerate import effortless_answers
from tasks.judge.distributions import (
    DISTRIBUTIONS,
    FAR,
    FARTHER_PLACES,
    INFINITE,
    MISSING,
    NOWHERE,
    NUM_TELLING,
    ON_HOST,
    RINGS,
)
from tasks.judge.input_pool import NUM_STUDIED, InputPool
from tasks.judge.missing import takes_infinite, takes_missing
from tasks.judge.processes import Failure, WorkerProcess
from tasks.judge.program import Arguments, Layout
from tasks.judge.reference import (
    CLASS_NAME,
    FILE_NAME,
    LAYOUT,
    LIMIT_S,
    BadProblemError,
    NoRoomError,
    Reference,
    refusal,
)
from tasks.judge.rings import repeats
from tasks.judge.weights import Weights
from tasks.judge.wire import Arena, DeadlineError, TensorSpec, WireError, offsets
from tasks.judge.yardstick import PLAIN, Yardstick
from tasks.problems.problem import Problem

__all__ = ["CLASS_NAME", "FILE_NAME", "LIMIT_S", "BadProblemError", "Study"]

POOL_BYTES, DEVICE_POOL_BYTES = 128 << 20, 256 << 20
NUM_SEEDS = 3
MAX_CALL_MS = 3_000.0
STUDY_MS, LEAST_KINDS = 2_000.0, 8
"""After so much time of the reference's own no more distributions are tried than so many and the most telling. Each
takes about ten times its call here; of a candidate it takes two calls, and more are timed in any case."""

WeightsInUse = tuple[int, np.ndarray]
"""The seed that a model was made from, and the state that was loaded afterwards."""

STRONG_WEIGHTS, ONE_SIDED_WEIGHTS = "strong_weights", "one_sided_weights"
STRENGTHS = (8.0, True), (3.0, True), (8.0, False), (3.0, False), (1.6, False)
"""How much larger weights are tried to be, and whether with other signs, the most telling first."""
LASTING_WEIGHTS = {"turning_weights": False, "staying_weights": True}
"""Those with which a recurrence forgets little, and whether a state then stays as it is."""
SHARES = 0.05, 0.3, 1.0
"""How much is left of what leads into such a state, the most telling first."""
MAX_DRAWS = 12
"""Of inputs, to find some on which rounding alone changes little."""
SHOWN_NAMES = 5
"""Of weights, in a message."""


class Study:
    """The facts about one problem, and the process that draws its inputs."""

    inputs: Arguments
    pool: InputPool
    init_inputs: Arguments
    weights: Weights
    yardstick: Yardstick
    short_outputs: list[TensorSpec]
    """Of what form outputs are, where calls may be answered by their addresses alone; else nothing."""
    changes_inputs: bool
    """Whether the reference writes to its inputs, so that a candidate may."""

    def __init__(
        self, problem: Problem, worker: WorkerProcess, layout: Layout = LAYOUT, *, fits_doubled: bool = False
    ) -> None:
        """Study the problem.

        Args:
            layout: of the worker's arena.
            fits_doubled: whether outputs have to find room in double precision too, without which little is known
                about rounding.

        Raises:
            BadProblemError: if the reference cannot serve as the truth.
            WorkerError: if the device has no memory left for it.
        """
        self.problem = problem
        self.worker = worker
        self._room = layout
        self._fits_doubled = fits_doubled
        self.output_specs: list[TensorSpec] = []
        self._strong: tuple[float, bool, bool, int] | None = None
        self._takes_one_sided = False
        self._lasting: dict[str, tuple[float, int]] = {}
        self.distributions: list[str] = []
        self._secret = random.SystemRandom()
        self.seeds = [self._secret.getrandbits(31) for _ in range(NUM_SEEDS)]
        self._lock = threading.Lock()
        try:
            self._run()
        except Failure as failure:
            raise refusal("the reference fails", failure) from None
        except DeadlineError:
            raise BadProblemError(f"the reference takes longer than {LIMIT_S:.0f} s") from None
        except WireError as error:
            raise BadProblemError(f"the reference does not run: {error}\n{worker.log}") from None

    @property
    def layout(self) -> Layout:
        """An arena that holds exactly what one program of this problem needs."""
        return Layout.fitting(
            state_bytes=max(self.weights.num_bytes, self.init_inputs.block.size),
            input_bytes=offsets(self.inputs.specs)[1],
            output_bytes=offsets(self.output_specs)[1],
        )

    def fresh_inputs(self, rng: random.Random) -> Iterator[np.ndarray]:
        """Inputs in a random order, none twice; those drawn for one candidate are kept for the next.

        Raises:
            WorkerError: if the process that draws them has gone.
        """
        yield from rng.sample(self.pool.blocks, len(self.pool.blocks))
        numpy_rng = np.random.default_rng(rng.getrandbits(60))
        drawn: list[np.ndarray] = []
        while True:
            block = self.pool.mixed(numpy_rng)
            if block is None and not drawn:
                with self._in_turn():
                    drawn = self.pool.draw(self._num_drawn_at_once)
            yield drawn.pop() if block is None else block

    def compare_closely(
        self, outputs: np.ndarray, truth: np.ndarray, block: np.ndarray, *, distribution: str, weights: WeightsInUse
    ) -> equality.Comparison | None:
        """Compare once more, knowing how exactly the reference computes on these very inputs.

        Returns:
            Nothing where the reference cannot run in double precision.

        Raises:
            WorkerError: if the study's process has gone.
        """
        found = None
        with self._in_turn():
            self._reference.use_weights(self.weights, *weights)
            for look in self._reference.looks(block, self.output_specs):
                found = self.yardstick.compare_closely(outputs, truth, look, distribution)
                if found.is_equal:
                    break
        return found

    def depends_on_weight(self, index: int) -> bool:
        """Whether another value of this weight alone changes the output.

        Raises:
            WorkerError: if the study's process has gone.
        """
        with self._in_turn():
            return self._depends_on_weights(index)

    @contextlib.contextmanager
    def _in_turn(self) -> Iterator[None]:
        """One question at a time to the study's process, which has run before."""
        with self._lock:
            try:
                yield
            except Failure as failure:  # on inputs or weights that it had not seen before
                raise refusal("the reference fails at times", failure) from None
            except (DeadlineError, WireError) as error:
                raise WorkerError(f"the reference of {self.problem.problem_id} no longer runs: {error}") from error

    def outputs(self, block: np.ndarray, *, state: np.ndarray | None = None) -> np.ndarray:
        """What the reference returns, with other weights if there is a state of them."""
        if state is not None:
            self._reference.use_weights(self.weights, self.seeds[0], state)
        specs, outputs, _ = self._reference.call(block)
        if specs != self.output_specs:
            raise BadProblemError("the reference's outputs change their form")
        return outputs

    def _run(self) -> None:
        self._reference = Reference(self.problem, self.worker, self._room)
        self.init_inputs = self._reference.init_inputs
        self._study_inputs()
        self.weights = self._reference.weights(self.seeds)
        self._reference.use_weights(self.weights, self.seeds[0])
        self._study_outputs()
        self._study_mixing()
        self._study_distributions()
        self._study_weights()

    def _study_inputs(self) -> None:
        is_on_host = isinstance(self.worker.arena, Arena)
        # Programs on a device compute in a moment what takes long to draw.
        self.pool = InputPool(self._reference, max_bytes=POOL_BYTES if is_on_host else DEVICE_POOL_BYTES)
        self.inputs = self.pool.form
        self._num_drawn_at_once = 1 if is_on_host else self.pool.num_placed_at_once
        self._reference.expect_inputs(self.inputs)

    def _study_outputs(self) -> None:
        first, *_ = self.pool.blocks
        outputs = self._first_outputs(first)
        if not self.yardstick.compare(self.outputs(first), outputs, PLAIN).is_equal:
            raise BadProblemError(
                "the reference gives different outputs for equal inputs; where modules such as nn.Dropout draw, let "
                "its constructor call self.eval(); where forward draws in either mode, as F.dropout(x, training=True) "
                "or torch.rand do, let its caller give it what is drawn, or let it seed; where its outputs depend on "
                "what earlier calls left in buffers or attributes, such as a running mean, or on its inputs, such as "
                "x.grad, let its caller give it that"
            )
        self._learn_own_errors()
        self._require_effort(outputs)

    def _require_effort(self, outputs: np.ndarray) -> None:
        """Refuse a problem for which an answer that needs no work passes, for one draw of its inputs after the other.

        A single number, such as a loss, is now and then as near to 1, or to that of the next draw, by chance.

        Args:
            outputs: of the first draw.
        """
        first, *others = self.pool.blocks[:NUM_STUDIED]
        passing: list[set[str]] = []
        for following in (*others, first):
            other = self.outputs(following)
            passing.append(
                {
                    words
                    for words, answer in effortless_answers(outputs, other, self.output_specs)
                    if (self.inputs.specs or words == "zeros") and not any(self.yardstick.differing(answer, outputs))
                }
            )
            if not (always := set.intersection(*passing)):
                return
            outputs = other
        words = " and ".join(sorted(always))
        raise BadProblemError(f"the reference's output does not depend on its inputs: {words} would pass")

    def _learn_own_errors(self) -> None:
        """From inputs on which rounding moves no value by a whole step; where outputs are in steps, not all are so."""
        for draw in range(MAX_DRAWS):
            block = self.pool.blocks[draw] if draw < NUM_STUDIED else self.pool.draw()[0]
            own_errors = self._reference.own_errors(block, self.outputs(block), self.output_specs)
            if self.yardstick.learn(PLAIN, own_errors):
                return
        raise BadProblemError(f"rounding alone changes the reference's output by {max(own_errors):.0%}")

    def _first_outputs(self, block: np.ndarray) -> np.ndarray:
        try:
            self.output_specs, outputs, taken_ms = self._reference.call(block)
        except Failure as failure:
            if "grad" not in failure.text:
                raise
            self.inputs = replace(self.inputs, needs_grad_mode=True)
            self._reference.expect_inputs(self.inputs)
            self.output_specs, outputs, taken_ms = self._reference.call(block)
        self.short_outputs = self.output_specs if self._reference.is_plain else []
        self.changes_inputs = not self._reference.has_inputs(block)
        self.yardstick = Yardstick(self.output_specs, self.problem.precision, turn=self.worker.referees_turn)
        num_bytes = offsets(equality.widened(self.output_specs))[1]
        if self._fits_doubled and num_bytes > self._room.capacity:
            raise NoRoomError(f"the outputs take {num_bytes} bytes in double precision")
        if not any(spec.num_items for spec in self.output_specs):
            raise BadProblemError("the reference returns no values")
        if not equality.has_numbers(outputs, self.output_specs):
            raise BadProblemError("the reference returns only values that are not numbers")
        if taken_ms > MAX_CALL_MS:  # what it compiles, it does not compile again
            _, outputs, taken_ms = self._reference.call(block)
        if taken_ms > MAX_CALL_MS:
            raise BadProblemError(
                f"a call of the reference takes {taken_ms / 1e3:.1f} s, {MAX_CALL_MS / 1e3:g} at most; make it smaller"
            )
        return outputs

    def _study_mixing(self) -> None:
        """Whether the reference computes on inputs made of two draws as it does on those."""
        block = self.pool.mixed(self._numpy_rng())
        if block is None:
            return
        plain = self.outputs(self.pool.blocks[0])
        try:
            specs, outputs, _ = self._reference.call(block)
        except Failure:
            self.pool.must_draw = True
            return
        is_alike = specs == self.output_specs and equality.is_as_finite(outputs, plain, specs)
        self.pool.must_draw = not (is_alike and self._reference.is_steady(block, specs))

    def _study_distributions(self) -> None:
        """Which other inputs the reference takes, and how well it computes on them."""
        last = self.pool.blocks[-1]
        plain = self.outputs(last)
        spent_ms = 0.0  # of the reference's own time: on a busy machine, too, a candidate must face all of them
        telling, others = DISTRIBUTIONS[:NUM_TELLING], DISTRIBUTIONS[NUM_TELLING:]
        # Which of the others a slow reference is spared, nobody can know.
        for name in (*telling, *self._secret.sample(others, len(others))):
            if name in others and spent_ms > STUDY_MS and len(self.distributions) >= LEAST_KINDS:
                break
            if name in ON_HOST and not isinstance(self.worker.arena, Arena):
                continue
            if name in MISSING and not takes_missing(self.problem.source):
                continue
            if name in INFINITE and not takes_infinite(self.problem.source):
                continue
            if name == RINGS and not repeats(self.problem.source):
                continue
            if name == FARTHER_PLACES and not self._looks_places_up():
                continue
            block = self.pool.transformed(last, name, self._numpy_rng())
            if equality.is_same(block, last):
                continue
            try:
                specs, outputs, taken_ms = self._reference.call(block)
                spent_ms += taken_ms
            except Failure:
                continue  # outside the problem's domain
            is_as_finite = name in MISSING or equality.is_as_finite(outputs, plain, specs)
            if specs != self.output_specs or not is_as_finite:
                continue
            if name in FAR and not equality.is_of_like_size(outputs, plain, specs):
                continue
            own_errors = self._reference.steady_errors(block, outputs, specs, is_far=name in FAR)
            if own_errors is not None and self.yardstick.learn(name, own_errors):
                self.distributions.append(name)

    def _looks_places_up(self) -> bool:
        """Whether whole numbers among the inputs are places in a table, so that some are none."""
        if "embedding" not in self.problem.source.lower():  # what loops or reads past an end would end the study
            return False
        last = self.pool.blocks[-1]
        block = self.pool.transformed(last, NOWHERE, self._numpy_rng())
        if equality.is_same(block, last):
            return False
        try:
            self._reference.call(block)
        except Failure:
            return True
        return False

    def _study_weights(self) -> None:
        if not any(self.weights.is_learned):
            return
        if any(self.weights.is_filled) and not self._takes_filled_weights():
            self.weights.is_filled = [False] * len(self.weights.rows)
        try:
            depends = self._depends_on_weights()
        except Failure:
            self.weights.stay_as_made = True
            depends = self._depends_on_weights()
        if not depends:
            raise BadProblemError(
                f"the reference's output does not depend on its weights: other values of {self._learned_in_words} "
                f"change nothing for its inputs; let forward use one of them, or leave them out of the class"
            )
        if not self.weights.stay_as_made:
            self._study_strong_weights()
            self._study_one_sided_weights()
            self._study_lasting_weights()

    def _takes_filled_weights(self) -> bool:
        """Whether the reference computes as usual where its weights have no zeros, which may be what it relies on."""
        state, block = self.weights.states[self.seeds[0]], self.pool.blocks[0]
        plain = self.outputs(block, state=state)
        try:
            outputs = self.outputs(block, state=self.weights.perturbed(state, self._numpy_rng()))
        except Failure:
            return False
        is_finite = equality.is_as_finite(outputs, plain, self.output_specs)
        return is_finite and self._reference.is_steady(block, self.output_specs)

    @property
    def _learned_in_words(self) -> str:
        rows = zip(self.weights.rows, self.weights.is_learned, strict=True)
        names = [name for (name, *_), is_learned in rows if is_learned]
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        return ", ".join(names[:SHOWN_NAMES]) + more

    def _study_strong_weights(self) -> None:
        """How far weights may be from those that the constructor makes, for the reference to compute as well."""
        plain = self.outputs(self.pool.blocks[0], state=self.weights.states[self.seeds[0]])
        fillings = (True, False) if any(self.weights.is_filled) else (False,)
        for fills, strength in itertools.product(fillings, STRENGTHS):
            self._strong = (*strength, fills, self._secret.getrandbits(60))
            if self._computes_well(self.strong_weights(), plain, STRONG_WEIGHTS):
                return
        self._strong = None

    def _study_one_sided_weights(self) -> None:
        """Whether values that are rounded to one side are no worse for the reference than others."""
        state = self.weights.states[self.seeds[0]]
        plain = self.outputs(self.pool.blocks[0], state=state)
        one_sided = self.weights.one_sided(state, self._numpy_rng())
        self._takes_one_sided = self._computes_well(one_sided, plain, ONE_SIDED_WEIGHTS)

    def _study_lasting_weights(self) -> None:
        """Whether weights with which little is forgotten do for the reference, if it does anything again and again."""
        if not self.weights.has_squares or not repeats(self.problem.source):
            return
        plain = self.outputs(self.pool.blocks[0], state=self.weights.states[self.seeds[0]])
        for name, share in itertools.product(LASTING_WEIGHTS, SHARES):
            if name not in self._lasting:
                made_from = share, self._secret.getrandbits(60)
                if self._computes_well(self._made_lasting(name, *made_from), plain, name):
                    self._lasting[name] = made_from

    def _computes_well(self, state: np.ndarray | None, plain: np.ndarray, name: str) -> bool:
        """Whether the reference does with weights that are our choice, and its outputs are about as large."""
        block, specs = self.pool.blocks[0], self.output_specs
        try:
            outputs = self.outputs(block, state=state)
        except Failure:
            return False
        if not equality.is_as_finite(outputs, plain, specs) or not equality.is_of_like_size(outputs, plain, specs):
            return False
        own_errors = self._reference.steady_errors(block, outputs, specs, is_far=True)
        return own_errors is not None and self.yardstick.learn(name, own_errors)

    def strong_weights(self) -> np.ndarray | None:
        """Weights as far from a constructor's as the reference allows, if it allows any."""
        if self._strong is None:
            return None
        factor, with_signs, fills, seed = self._strong
        state, rng = self.weights.states[self.seeds[0]], np.random.default_rng(seed)
        return self.weights.strengthened(state, rng, factor=factor, with_signs=with_signs, fills=fills)

    def lasting_weights(self) -> Iterator[tuple[str, np.ndarray]]:
        """Weights with which little is forgotten, with their names, as far as the reference allows."""
        for name, made_from in self._lasting.items():
            yield name, self._made_lasting(name, *made_from)

    def _made_lasting(self, name: str, share: float, seed: int) -> np.ndarray:
        state, rng = self.weights.states[self.seeds[0]], np.random.default_rng(seed)
        return self.weights.lasting(state, rng, stays=LASTING_WEIGHTS[name], share=share)

    def one_sided_weights(self, state: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
        """Weights near these that rounding always moves away from zero, if the reference computes as well with them."""
        return self.weights.one_sided(state, rng) if self._takes_one_sided else None

    def _depends_on_weights(self, index: int | None = None) -> bool:
        """Whether other values of the weights, or of one of them, change the output."""
        state, block = self.weights.states[self.seeds[0]], self.pool.blocks[0]
        usual = self.outputs(block, state=state)
        depends = False
        for number, other in enumerate(self.weights.others(self.seeds[0], self._numpy_rng())):
            if depends and number > 1:  # of values near its own, a reference that wants some sum may take one by chance
                break
            changed = other if index is None else self.weights.only(index, other, state)
            depends |= any(self.yardstick.differing(usual, self.outputs(block, state=changed)))
        return depends

    def _numpy_rng(self) -> np.random.Generator:
        return np.random.default_rng(self._secret.getrandbits(60))
