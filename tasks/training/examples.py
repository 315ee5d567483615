"""What supervised training is fed: prompts and the completions that answer them."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.params import PolicyParams
from tasks.problems.problem import Problem
from tasks.training.renaming import own_names, rename_consistently
from tasks.variants.prompts import Exemplar, build_prompt

NUM_EXEMPLARS = 2
"""N of the paper (section 3), as contrastive_rl shows them."""

# Weight of a candidate is its speedup to this power: at 0.5, four times as fast is taught twice as often.
_SPEED_POWER = 0.5
_MAX_WEIGHT = 3.0


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
    exemplar_share: float,
    renamed_share: float,
    params: PolicyParams,
    seed: int,
) -> list[Example]:
    """Examples in random order, every problem as often as every other.

    Args:
        problems: those with nothing taught are left out.
        taught: correct candidates by problem id; a faster one of a problem is taught a little more often.
        count: how many examples.
        exemplar_share: share of the examples whose prompt shows other candidates of the same problem with speedups.
        renamed_share: share of the examples in which the program's own names are replaced, consistently.
        params: gives the style of the prompts.
        seed: equal arguments and seeds give equal examples.
    """
    rng = random.Random(seed)
    teachable = [problem for problem in problems if taught.get(problem.problem_id)]
    if not teachable:
        return []
    names = [own_names(problem.source) for problem in teachable]
    variables = sorted(set().union(*(name.variables for name in names)))
    attributes = sorted(set().union(*(name.attributes for name in names)))
    examples = []
    for problem in _balanced(teachable, count, rng):
        target, shown = _drawn(taught[problem.problem_id], exemplar_share, rng)
        sources = [problem.source, target.source, *(exemplar.source for exemplar in shown)]
        if rng.random() < renamed_share:
            sources = rename_consistently(sources, variables=variables, attributes=attributes, rng=rng)
        reference, completion, *shown_sources = sources
        exemplars = [
            Exemplar(candidate_id=exemplar.candidate_id, source=source, speedup=exemplar.speedup)
            for exemplar, source in zip(shown, shown_sources, strict=True)
        ]
        prompt = build_prompt(reference, exemplars, style=params.prompt_style)
        examples.append(Example(prompt=prompt, completion=as_completion(completion, params)))
    return examples


def as_completion(source: str, params: PolicyParams) -> str:
    """The answer that parse_completion turns back into the source."""
    if params.prompt_style == "compact":
        return source.strip()
    return f"### Code Implementation\n```python\n{source.strip()}\n```"


def _balanced(problems: Sequence[Problem], count: int, rng: random.Random) -> list[Problem]:
    rounds = math.ceil(count / len(problems))
    return [problem for _ in range(rounds) for problem in rng.sample(problems, k=len(problems))][:count]


def _drawn(taught: Sequence[Exemplar], exemplar_share: float, rng: random.Random) -> tuple[Exemplar, list[Exemplar]]:
    weights = [min(max(exemplar.speedup, 0.0) ** _SPEED_POWER, _MAX_WEIGHT) or 0.1 for exemplar in taught]
    target = rng.choices(taught, weights=weights)[0]
    others = [exemplar for exemplar in taught if exemplar.candidate_id != target.candidate_id]
    if rng.random() >= exemplar_share or not others:
        return target, []
    return target, rng.sample(others, k=min(NUM_EXEMPLARS, len(others)))
