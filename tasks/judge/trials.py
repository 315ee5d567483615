"""What is asked of one candidate to see whether it is right, in the trials and in timed calls alike.

Holds the truth and the comparison. Nothing of the candidate is imported, unpickled or believed here: it is known only
by the bytes in its arena when it answered.
"""

import random
import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from tasks.judge.changed_inputs import change_mismatch
from tasks.judge.equality import Comparison, form_mismatch, is_same
from tasks.judge.evidence import Evidence
from tasks.judge.pair import Pair
from tasks.judge.program import Answers
from tasks.judge.right_answers import RightAnswers
from tasks.judge.stopwatch import Compare
from tasks.judge.study import ONE_SIDED_WEIGHTS, STRONG_WEIGHTS, Study
from tasks.judge.telling_apart import tell_apart
from tasks.judge.verdict import Status
from tasks.judge.wire import TensorSpec, offsets

Held = tuple[np.ndarray, np.ndarray]
"""An answer and the truth, as they were when they were given."""

PLAIN = "plain"
COMPARED, COMPARED_BYTES = 8, 64 << 20
KEPT_SHARE = 0.25
"""Of timed exchanges, those after which outputs of the one before are looked at again."""
OVERWRITTEN = "an earlier output has changed: later calls overwrite it, or it is part of an input or a weight"
SPARSE_SHARE, FEW_SHARE = 0.25, 0.004
SINGLE_WEIGHTS = 2
MOST_KEPT_BYTES = 64 << 20
"""Of outputs that are kept while all else goes on."""
OUTLASTED_CALLS, OUTLASTING_S = 48, 2.0
"""So many calls an output must outlast, or as many of both programs as fit in that time."""
MOVED_AGAIN = 8
"""Distributions, drawn at random, that come once more at the end."""
DISGUISED = 2
"""Calls compared of an exchange that is no timed one: in every detail, which takes longer."""
MAX_ERROR = 1e30  # instead of infinity, which JSON has no word for
FILLINGS = 0, 0, 0x80, 0x40
"""Bytes by which memory that nobody wrote reads as about 3e38 or -1.5, or is left as it is: then, as whenever a call is
timed, it may be the zeros of a fresh page, so that these tell nobody what is timed."""


class Trials:
    """Puts questions to a pair of programs and compares what comes back; refuses through the evidence."""

    def __init__(
        self,
        pair: Pair,
        study: Study,
        evidence: Evidence,
        *,
        inputs: Iterator[np.ndarray],
        seeds: Sequence[int],
        takes_weights: bool,
        rng: random.Random,
    ) -> None:
        """Keep what the questions are made from.

        Args:
            inputs: none twice, and none that this candidate has seen.
            seeds: that weights are made from, the pair's own first.
            takes_weights: whether the reference's weights fit the candidate.
        """
        self._pair = pair
        self._study = study
        self._evidence = evidence
        self._inputs = inputs
        self._seeds = list(seeds)
        self._takes_weights = takes_weights
        self._state = study.weights.states[self._seeds[0]]
        self._num_changes = 0
        self._told_apart = False
        self._last_truth = np.empty(0, dtype=np.uint8)
        self._kept: Held | None = None
        self._calls_when_kept = 0
        self._rng = rng
        self._numpy_rng = np.random.default_rng(rng.getrandbits(60))
        self._right_answers = RightAnswers(study.output_specs)
        self._disguises: list[str] = []  # distributions still to come, before any comes again
        self.num_timed = 0
        """Timed calls that were compared."""

    def try_first(self) -> Held:
        """The first trial, in which a candidate may compile for minutes; its answer and the truth."""
        return self.try_once("fresh_inputs", hold=True), self._last_truth

    def run(self, trials: int, *, first: Held) -> None:
        """So many trials with weights of their own, the first among them, and one for each distribution of inputs."""
        self.try_once("called_twice", slot=1)
        if not self._takes_weights:
            self._require_weights()
        for _ in range(1, trials):
            self.try_once(self.change_weights())
        if self._takes_weights and not self._study.weights.stay_as_made:
            self._try_single_weights()
            self._try_aside(ONE_SIDED_WEIGHTS, self._study.one_sided_weights(self._state, self._numpy_rng))
            self._try_aside(STRONG_WEIGHTS, self._study.strong_weights())
            for name, state in self._study.lasting_weights():
                self._try_aside(name, state)
        for distribution in self._study.distributions:
            self.try_once(f"{distribution}_inputs", distribution)
        self._require_kept(*first)
        self._evidence.passed("output_kept")

    def _require_weights(self) -> None:
        """Refuse a candidate that keeps nothing in place of a weight that no seed changes, but training would."""
        weights = self._study.weights
        for index in self._pair.unheld:
            if self._study.depends_on_weight(index):
                words = f"the candidate has no weight for the reference's {weights.rows[index][0]}"
                words += ": keep all of them, under any names, as parameters or buffers"
                self._evidence.refuse("state_dict", Status.WRONG_OUTPUT, words)
        self._evidence.passed("state_dict", "unlike the reference's: only weights made from seeds were tried")

    def change_weights(self) -> str:
        """Give both models other weights; returns what a trial with them is called."""
        weights = self._study.weights
        if not weights.rows:
            return "fresh_inputs"
        if self._takes_weights and not weights.stay_as_made:
            self._tell_weights_apart()
            if self._num_changes % 2:  # so that no sample of the weights tells them from others
                half = weights.some_free(self._numpy_rng, -(-sum(weights.is_free) // 2))
                self._state = weights.perturbed(self._state, self._numpy_rng, share=SPARSE_SHARE, only=half)
            else:
                self._state = weights.perturbed(weights.states[self._seeds[0]], self._numpy_rng)
            self._num_changes += 1
            self._pair.load_state(self._state)
            return "changed_weights"
        self._seeds.append(self._seeds.pop(0))
        self._state = weights.states[self._seeds[0]]
        if self._takes_weights:
            self._pair.load_state(self._state)
            return "changed_weights"
        self._pair.rebuild(self._seeds[0])
        return "other_seed"

    def _tell_weights_apart(self) -> None:
        if not self._told_apart:
            self._told_apart = True
            tell_apart(self._pair, self._study, self._state, self._inputs, self._numpy_rng)

    def try_once(self, name: str, distribution: str = PLAIN, *, slot: int = 0, hold: bool = False) -> np.ndarray:
        """One untimed call on inputs that the candidate has not seen. The truth is computed after its answer.

        Returns:
            The bytes of the candidate's outputs, found equal to the reference's.
        """
        outputs, error = self._call(name, distribution, slot=slot, hold=hold)
        self._evidence.passed(name, f"error {error:.2g} of what is allowed")
        return outputs

    def _try_single_weights(self) -> None:
        """One weight after the other changed in few places: neither some of them nor one's version tells of all."""
        self._tell_weights_apart()
        weights = self._study.weights
        for index in weights.some_free(self._numpy_rng, SINGLE_WEIGHTS):
            self._state = weights.perturbed(self._state, self._numpy_rng, share=FEW_SHARE, only=[index])
            self._pair.load_state(self._state)
            self.try_once("changed_weights")

    def keep_one(self) -> None:
        """One call whose outputs must be what they are when all that are timed are done, however many those are."""
        if self._pair.output_bytes > MOST_KEPT_BYTES:
            return
        answer, _ = self._call("fresh_inputs", PLAIN, slot=1, hold=True)
        self._kept = answer, self._last_truth
        self._calls_when_kept = self._pair.num_calls

    def require_kept_one(self) -> None:
        """Refuse outputs that anything has overwritten since, in many calls: where they are long, few were timed.

        Nothing of those that make up for it is compared: what lies in a ring of buffers is overwritten all the same.
        """
        if self._kept is None:
            return
        until = time.monotonic() + OUTLASTING_S
        while self._pair.num_calls < self._calls_when_kept + OUTLASTED_CALLS and time.monotonic() < until:
            with self._pair.uncounted():
                block = next(self._inputs)
                self._pair.answer(block)
            self._pair.truth(block)
        self._require_kept(*self._kept, slot=1)
        self._kept = None

    def _try_aside(self, name: str, state: np.ndarray | None) -> None:
        """One call with weights that the study measured by themselves, if it has any, and back again."""
        if state is None:
            return
        usual = self._state
        self._state = self._study.weights.with_unlearned_of(state, usual)
        self._pair.load_state(self._state)
        _, error = self._call(name, PLAIN, slot=0, hold=False, measured_as=name)
        self._evidence.passed(name, f"error {error:.2g} of what is allowed")
        self._state = usual
        self._pair.load_state(usual)

    def try_again(self, *, weights: bool) -> None:
        """One of the trials once more, at a moment that nobody can foresee: for a candidate that is honest at first.

        Args:
            weights: whether weights may be changed, which takes long where there are many.
        """
        match self._rng.randrange(3):
            case 0 if weights:
                self.change_weights()
            case 1:
                answer, _ = self._call("fresh_inputs", PLAIN, slot=0, hold=True)
                truth = self._last_truth
                for slot in (1, 0):
                    self._call("called_twice", PLAIN, slot=slot, hold=False)
                self._require_kept(answer, truth)
            case _:
                name = self._rng.choice([PLAIN, *self._study.distributions])
                self._call(f"{name}_inputs", name, slot=0, hold=False)

    def try_moved_again(self) -> None:
        """Other weights, and most of the other distributions once more, when all calls that are timed are done.

        The first answer must still be the same after the last.
        """
        answer, _ = self._call(self.change_weights(), PLAIN, slot=0, hold=True)
        truth = self._last_truth
        names = self._study.distributions or [PLAIN]
        for name in self._rng.sample(names, min(len(names), MOVED_AGAIN)):
            self._call(f"{name}_inputs", name, slot=0, hold=False)
        self._require_kept(answer, truth)

    def _call(
        self, name: str, distribution: str, *, slot: int, hold: bool, measured_as: str | None = None
    ) -> tuple[np.ndarray, float]:
        with self._pair.uncounted():
            block = next(self._inputs)
            if distribution != PLAIN:
                block = self._study.pool.transformed(block, distribution, self._numpy_rng)
        same = self._rng.random() < 0.5
        filling = self._rng.choice(FILLINGS)
        specs, outputs, _ = self._pair.answer(block, slot=slot, same=same, hold=hold, filling=filling)
        self._require_form(specs)
        with self._pair.uncounted(), self._pair.referees_turn():
            (is_unchanged,) = self._are_unchanged([block], [slot])
        truth, _ = self._pair.truth(block, slot=slot, same=same, hold=hold, filling=filling)
        self._last_truth = truth
        self._require_inputs(is_unchanged, block, slot=slot)
        return outputs, self._compare(name, outputs, truth, block, measured_as or distribution, slot=slot)

    def _require_kept(self, answer: np.ndarray, truth: np.ndarray, *, slot: int = 0) -> None:
        """Refuse held outputs that have changed since, where the reference's have not."""
        ours, theirs = self._pair.held_outputs(slot=slot)
        with self._pair.referees_turn():
            has_changed = not is_same(ours, answer) and is_same(theirs, truth)
        if has_changed:
            self._evidence.refuse("output_kept", Status.WRONG_OUTPUT, OVERWRITTEN)

    def _require_previous_kept(self) -> None:
        """Refuse outputs that the last exchange has changed, where the reference's are as they were."""
        with self._pair.uncounted():
            is_kept, would_be = self._pair.have_kept(self._rng.random())
        if not is_kept and would_be:
            self._evidence.refuse("output_kept", Status.WRONG_OUTPUT, OVERWRITTEN)

    def compare_timed(self, blocks: Sequence[np.ndarray], answers: Answers, truths: Answers) -> None:
        """Compare the calls of one exchange: all where they are few and small, else some that nobody can foresee."""
        num_affordable = COMPARED_BYTES // max(blocks[0].size + self._pair.output_bytes, 1)
        indices = self._rng.sample(range(len(blocks)), min(len(blocks), COMPARED, max(1, num_affordable)))
        slots = [answers.first_slot + index for index in indices]
        for index in indices:
            self._require_form(answers.specs[index])
        # All in one turn of a device, for which others wait. What is read here is what counts, also for a closer look.
        with self._pair.uncounted(), self._pair.referees_turn():
            ours, theirs = answers.several(indices), truths.several(indices)
            given = [blocks[index] for index in indices]
            are_unchanged = self._are_unchanged(given, slots)
            errors = self._study.yardstick.quick_errors(ours, theirs, PLAIN)
            are_right = are_unchanged & (errors <= 1.0)  # never for NaN
            if are_right.all():
                self._right_answers.add(ours, theirs)
        self.num_timed += len(slots)
        if self._rng.random() < KEPT_SHARE:
            self._require_previous_kept()
        if are_right.all():
            self._note_error(float(errors.max()))
            return
        for index, slot in enumerate(slots):
            self._require_inputs(are_unchanged[index], given[index], slot=slot)
            self._compare("timed_outputs", ours[index], theirs[index], given[index], PLAIN, slot=slot)

    def disguise(self, blocks: Sequence[np.ndarray]) -> tuple[Sequence[np.ndarray], Compare]:
        """Inputs of any distribution in the place of those of a timed exchange, to be compared as in a trial.

        What is sure of a timed call, such as that inputs are plain, is what a candidate would rely on.
        """
        if not self._disguises:
            names = [PLAIN, *self._study.distributions]
            self._disguises = self._rng.sample(names, len(names))
        name = self._disguises.pop()
        if name != PLAIN:
            blocks = [self._study.pool.transformed(block, name, self._numpy_rng) for block in blocks]
        return blocks, partial(self._compare_disguised, name)

    def _compare_disguised(
        self, distribution: str, blocks: Sequence[np.ndarray], answers: Answers, truths: Answers
    ) -> None:
        indices = self._rng.sample(range(len(blocks)), min(len(blocks), DISGUISED))
        slots = [answers.first_slot + index for index in indices]
        for index in indices:
            self._require_form(answers.specs[index])
        with self._pair.uncounted(), self._pair.referees_turn():
            ours, theirs = answers.several(indices), truths.several(indices)
            given = [blocks[index] for index in indices]
            are_unchanged = self._are_unchanged(given, slots)
        for index, slot in enumerate(slots):
            self._require_inputs(are_unchanged[index], given[index], slot=slot)
            name = f"{distribution}_inputs"
            self._compare(name, ours[index], theirs[index], given[index], distribution, slot=slot)

    def _require_form(self, specs: Sequence[TensorSpec]) -> None:
        """Refuse outputs of another form."""
        mismatch = form_mismatch(specs, self._study.output_specs)
        if mismatch:
            self._evidence.refuse("output_form", Status.WRONG_OUTPUT, mismatch)

    def _are_unchanged(self, blocks: Sequence[np.ndarray], slots: Sequence[int]) -> np.ndarray:
        """For each slot whether its inputs still are what they were, unless the reference changes them too."""
        if self._study.changes_inputs:
            return np.ones(len(slots), dtype=bool)
        return self._pair.have_inputs(blocks, slots=slots)

    def _require_inputs(self, is_unchanged: bool, block: np.ndarray, *, slot: int) -> None:
        """Refuse a candidate that writes to its inputs where the reference does not, or leaves them otherwise.

        A reference may write to them only where values need it, such as one that clips them in place.
        """
        if is_unchanged and not self._study.changes_inputs:
            return
        with self._pair.uncounted(), self._pair.referees_turn():
            ours, theirs = (inputs[: block.size] for inputs in self._pair.inputs_by_now(slot=slot))
            if is_same(theirs, block) and not (is_unchanged and is_same(ours, block)):
                self._evidence.refuse("inputs_unchanged", Status.WRONG_OUTPUT, "the candidate changed its inputs")
            specs, own_error = self._study.inputs.specs, self._study.yardstick.own_error_of_inputs
            for index, (spec, start) in enumerate(zip(specs, offsets(specs)[0], strict=True)):
                here = slice(start, start + spec.num_bytes)
                if mismatch := change_mismatch(ours[here], theirs[here], block[here], spec, own_error=own_error):
                    words = f"the reference changes input {index}, and the candidate not like that"
                    self._evidence.refuse("inputs_changed", Status.WRONG_OUTPUT, f"{words}: {mismatch}")

    def _compared(
        self, outputs: np.ndarray, truth: np.ndarray, block: np.ndarray, distribution: str, *, is_timed: bool
    ) -> Comparison:
        if is_timed:
            found = self._study.yardstick.compare(outputs, truth, distribution)
            is_sure = found.is_equal
        else:
            found, is_sure = self._study.yardstick.compare_in_detail(outputs, truth, distribution)
        if not is_sure:
            weights = self._seeds[0], self._state
            looked = self._study.compare_closely(outputs, truth, block, distribution=distribution, weights=weights)
            found = looked or found
        return found

    def _compare(
        self, name: str, outputs: np.ndarray, truth: np.ndarray, block: np.ndarray, distribution: str, *, slot: int
    ) -> float:
        """The error as a multiple of what is allowed."""
        with self._pair.uncounted():
            found = self._compared(outputs, truth, block, distribution, is_timed=name == "timed_outputs")
            with self._pair.referees_turn():
                if found.is_equal:
                    self._right_answers.add([outputs], [truth])
                is_replay = not found.is_equal and self._right_answers.has(outputs, truth)
        self._note_error(found.max_error)
        if found.is_equal:
            return found.max_error
        if is_replay:
            self._evidence.refuse(name, Status.CHEATED, "the answer to other inputs was given again")
        late = self._pair.late_answer(slot=slot)
        if not is_same(late, outputs) and self._study.yardstick.compare(late, truth, distribution).is_equal:
            words = "the right output came after the answer: work was put off"
            self._evidence.refuse(name, Status.CHEATED, words)
        self._evidence.refuse(name, Status.WRONG_OUTPUT, found.detail)

    def _note_error(self, error: float) -> None:
        self._evidence.max_error = max(self._evidence.max_error or 0.0, min(error, MAX_ERROR))
