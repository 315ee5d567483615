"""Which of a candidate's weights is which, where their values do not say so: zeros and ones under names of its own.

One after the other is changed, in the candidate and in the reference: those are the same whose change has the same
effect. A candidate gains nothing by it, since it must be right under the names that are found.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from tasks.judge.equality import form_mismatch
from tasks.judge.pair import Pair
from tasks.judge.study import Study
from tasks.judge.yardstick import PLAIN

MOST_ALIKE = 32
"""Weights that are told apart: each takes a load of all and two calls."""


def tell_apart(
    pair: Pair, study: Study, state: np.ndarray, inputs: Iterator[np.ndarray], rng: np.random.Generator
) -> None:
    """Find the candidate's names of weights that start alike. Leaves other weights than these in both programs.

    Args:
        state: that the programs have.
    """
    num_left = MOST_ALIKE
    for whole in pair.groups_alike():
        group, num_left = whole[:num_left], num_left - len(whole[:num_left])
        if len(group) < 2:
            break
        with pair.uncounted():
            changed = study.weights.alike(study.weights.perturbed(state, rng), group)
            block = next(inputs)
        answers, truths = [], []
        for index in group:
            pair.load_state(study.weights.only(index, changed, state))
            specs, answer, _ = pair.answer(block)
            if form_mismatch(specs, study.output_specs):
                return  # the trials that follow say so
            answers.append(answer)
            truths.append(pair.truth(block)[0])
        with pair.uncounted():
            alike = [[study.yardstick.compare(one, truth, PLAIN).is_equal for one in answers] for truth in truths]
        pair.reorder(group, matched(alike))


def matched(alike: Sequence[Sequence[bool]]) -> list[int]:
    """For each row a column of its own, one of those that are true for it where there is any; the surest rows first.

    >>> matched([[True, True, False], [True, False, False], [False, False, False]])
    [1, 0, 2]
    """
    left, chosen = list(range(len(alike))), dict[int, int]()
    for row in sorted(range(len(alike)), key=lambda row: (not any(alike[row]), sum(alike[row]))):
        own = [row] if row in left else []  # as it is, where nothing speaks against it
        fitting = [column for column in (*own, *left) if alike[row][column]]
        chosen[row] = (fitting or own or left)[0]
        left.remove(chosen[row])
    return [chosen[row] for row in range(len(alike))]
