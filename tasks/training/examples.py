"""What supervised training is fed: prompts and the completions that answer them."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.errors import PolicyError
from tasks.problems.problem import Problem
from tasks.training.inventing import Pieces, invent, invented_names, pieces_of
from tasks.training.policy import Policy, can_write, encode_prompts, fitting_prompt
from tasks.training.renaming import own_names, rename_consistently
from tasks.variants.prompts import Exemplar, as_completion, build_prompt

# Weight of a candidate is its speedup to this power: at 0.5, four times as fast is taught twice as often.
_SPEED_POWER = 0.5
_MAX_WEIGHT = 3.0

# Of made-up programs, until one is short enough. Of those for the default's policy five in six are.
_TRIES = 20

# Enough for the variables and the attributes of any one program.
_NUM_NAMES = 80

# Prompts that are made to tokens at once, on all cores.
_CHUNK = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A prompt and the text that answers it."""

    prompt: str
    completion: str


def sft_examples(
    problems: Sequence[Problem],
    taught: Mapping[str, Sequence[Exemplar]],
    *,
    count: int,
    weighs_speed: bool,
    exemplar_share: float,
    renamed_share: float,
    invented_share: float,
    num_exemplars: int,
    policy: Policy,
    seed: int,
) -> list[Example]:
    """Examples in random order, every problem as often as every other.

    A prompt shows as many of its exemplars, the fastest, as the policy's context has room for beside the completion.
    An example that does not fit without any is left out: there are fewer than asked for then.

    Args:
        problems: those with nothing taught are left out.
        taught: correct candidates by problem id.
        count: how many examples.
        weighs_speed: whether a faster candidate of a problem is taught a little more often; else all are alike.
        exemplar_share: share of the problems' examples whose prompt shows other candidates of it with speedups.
        renamed_share: share of the problems' examples in which the program's own names are replaced, consistently.
        invented_share: share of all examples whose program is made up and is to be repeated as it is.
        num_exemplars: how many such others, if there are as many.
        policy: whose prompts these are, and whose context they fit; made-up programs are of a length that it can write.
        seed: equal arguments and seeds give equal examples.
    """
    rng = random.Random(seed)
    teachable = [problem for problem in problems if taught.get(problem.problem_id)]
    if not teachable:
        return []
    names = _Names(teachable)
    num_invented = round(count * invented_share)
    drafts = []
    for problem in _balanced(teachable, count - num_invented, rng):
        target = _target(taught[problem.problem_id], weighs_speed, rng)
        shown = _shown(taught[problem.problem_id], target, exemplar_share, num_exemplars, rng)
        sources = [problem.source, target.source, *(exemplar.source for exemplar in shown)]
        if rng.random() < renamed_share:
            sources = names.rename(sources, rng)
        drafts.append(_draft(sources, [exemplar.speedup for exemplar in shown], policy))
    if num_invented:
        references = [problem.source for problem in teachable]
        pieces = pieces_of(references, [each for problem in teachable for each in taught[problem.problem_id]])
        for _ in range(num_invented):
            drafts.append(_draft(_invented(pieces, names, policy, rng), [], policy))
        rng.shuffle(drafts)
    return [
        example
        for begin in range(0, len(drafts), _CHUNK)
        for example in _fitting(drafts[begin : begin + _CHUNK], policy)
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Draft:
    """An example whose prompt may be too long for all of its exemplars."""

    reference: str
    exemplars: Sequence[Exemplar]
    completion: str


class _Names:
    """Names to rename to: those of the problems, or for half of the invented programs names no problem has."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        names = [own_names(problem.source) for problem in problems]
        self._variables = sorted(set().union(*(name.variables for name in names)))
        self._attributes = sorted(set().union(*(name.attributes for name in names)))

    def rename(self, sources: Sequence[str], rng: random.Random) -> list[str]:
        return rename_consistently(sources, variables=self._variables, attributes=self._attributes, rng=rng)

    def rename_invented(self, sources: Sequence[str], rng: random.Random) -> list[str]:
        if rng.random() < 0.5:
            return self.rename(sources, rng)
        names = invented_names(_NUM_NAMES, rng)
        return rename_consistently(sources, variables=names, attributes=names, rng=rng)


def _invented(pieces: Pieces, names: _Names, policy: Policy, rng: random.Random) -> list[str]:
    """A made-up reference and its candidate, which the policy can write unless hardly any is short enough."""
    for _ in range(_TRIES):
        sources = names.rename_invented(invent(pieces, rng), rng)
        if can_write(policy, sources[1]):
            break
    return sources


def _draft(sources: Sequence[str], speedups: Sequence[float], policy: Policy) -> _Draft:
    reference, completion, *shown = sources
    exemplars = [
        Exemplar(candidate_id="", source=source, speedup=speedup)
        for source, speedup in zip(shown, speedups, strict=True)
    ]
    return _Draft(reference=reference, exemplars=exemplars, completion=as_completion(completion, style=policy.style))


def _fitting(drafts: Sequence[_Draft], policy: Policy) -> list[Example]:
    """The drafts that fit the policy's context, without their slowest exemplars where that takes it."""
    prompts = [build_prompt(draft.reference, draft.exemplars, style=policy.style) for draft in drafts]
    completions = [draft.completion for draft in drafts]
    written_tokens = [len(ids) + 1 for ids in policy.tokenizer(completions, add_special_tokens=False).input_ids]
    examples = []
    for draft, prompt, ids, num_written in zip(
        drafts, prompts, encode_prompts(policy, prompts), written_tokens, strict=True
    ):
        if num_written > policy.completion_tokens:
            continue
        fitting = prompt
        if len(ids) + num_written > policy.context_tokens:
            try:
                fitting, _ = fitting_prompt(policy, draft.reference, draft.exemplars, completion_tokens=num_written)
            except PolicyError:
                continue  # without any exemplars too; renamed or made up, a reference may be longer than any problem's
        examples.append(Example(prompt=fitting, completion=draft.completion))
    return examples


def _balanced(problems: Sequence[Problem], count: int, rng: random.Random) -> list[Problem]:
    rounds = math.ceil(count / len(problems))
    return [problem for _ in range(rounds) for problem in rng.sample(problems, k=len(problems))][:count]


def _target(taught: Sequence[Exemplar], weighs_speed: bool, rng: random.Random) -> Exemplar:
    weights = [min(max(exemplar.speedup, 0.0) ** _SPEED_POWER, _MAX_WEIGHT) or 0.1 for exemplar in taught]
    return rng.choices(taught, weights=weights if weighs_speed else None)[0]


def _shown(
    taught: Sequence[Exemplar], target: Exemplar, exemplar_share: float, num_exemplars: int, rng: random.Random
) -> list[Exemplar]:
    """Others than the target, the slowest first, or none."""
    others = [exemplar for exemplar in taught if exemplar.candidate_id != target.candidate_id]
    if rng.random() >= exemplar_share or not others:
        return []
    shown = rng.sample(others, k=min(num_exemplars, len(others)))
    return sorted(shown, key=lambda exemplar: exemplar.speedup)
