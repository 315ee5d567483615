"""From completions to rewards: what a step of reinforcement learning does between sampling and the loss."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tasks.history.exemplars import ExemplarPool
from tasks.judge.verdict import Status, Verdict
from tasks.training.rewards import RewardScale, novelty_bonuses, without_advantage
from tasks.variants.candidate import Candidate
from tasks.variants.prompts import Exemplar, PromptStyle, parse_completion

ORIGIN = "contrastive_rl"

Judge = Callable[[Sequence[Candidate]], Sequence[Verdict]]
"""Verdicts of distinct candidates, in their order."""

Doubt = Callable[[Verdict], bool]
"""Whether the reward of a correct candidate is withheld; asked after it was judged."""


def no_doubt(verdict: Verdict) -> bool:
    """What is correct is paid."""
    return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What the policy wrote, and what it was asked."""

    problem_id: str
    prompt: str
    exemplar_ids: tuple[str, ...]
    """Candidates the prompt showed."""
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """A completion, what it turned out to be and what it earned."""

    completion: Completion
    candidate: Candidate
    verdict: Verdict
    reward: float


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutScorer:
    """Has completions judged and turns verdicts into rewards; the pool and the scale learn from what was found."""

    judge: Judge
    pool: ExemplarPool
    scale: RewardScale
    style: PromptStyle
    group_size: int
    novelty_bonus: float
    is_withheld: Doubt = no_doubt

    def score(self, completions: Sequence[Completion]) -> list[Rollout]:
        """Rollouts in the completions' order, whose groups stand one after another.

        Rewards are on the scale as it was before these completions, so that they do not depend on their order. A
        withheld reward is the mean of the others in its group, which neither reinforces nor punishes: a doubt is no
        verdict. What is doubted is neither shown as an exemplar nor part of what is usual.

        So it is with an unstable candidate. Right outputs whose timing did not settle are no verdict on speed: what a
        failure earns would push the policy away from being right, and anything above the others' mean would reward
        noise. It has no speedup and no bonus either way. Where all of a group are withheld, all earn 0.
        """
        candidates = [self.candidate(completion.problem_id, completion.text) for completion in completions]
        distinct = {candidate.candidate_id: candidate for candidate in candidates}
        verdicts = dict(zip(distinct, self.judge(list(distinct.values())), strict=True))
        bonuses = self._bonuses(candidates, verdicts)
        withheld = {name for name, found in verdicts.items() if self._has_no_price(found)}
        rewards = [
            None
            if candidate.candidate_id in withheld
            else self.scale.reward(candidate.problem_id, verdicts[candidate.candidate_id].speedup, bonus=bonus)
            for candidate, bonus in zip(candidates, bonuses, strict=True)
        ]
        self._learn((each for name, each in distinct.items() if name not in withheld), verdicts)
        return [
            Rollout(completion=completion, candidate=candidate, verdict=verdicts[candidate.candidate_id], reward=reward)
            for completion, candidate, reward in zip(
                completions, candidates, without_advantage(rewards, group_size=self.group_size), strict=True
            )
        ]

    def candidate(self, problem_id: str, text: str) -> Candidate:
        """What a completion claims to be."""
        return Candidate(problem_id=problem_id, source=parse_completion(text, style=self.style), origin=ORIGIN)

    def _has_no_price(self, found: Verdict) -> bool:
        return found.status is Status.UNSTABLE or (found.is_correct and self.is_withheld(found))

    def _bonuses(self, candidates: Sequence[Candidate], verdicts: dict[str, Verdict]) -> list[float]:
        bonuses: list[float] = []
        for start in range(0, len(candidates), self.group_size):
            ids = [candidate.candidate_id for candidate in candidates[start : start + self.group_size]]
            # What the pool holds already, such as a copy of an exemplar, is not new.
            known = {exemplar.candidate_id for exemplar in self.pool.of(candidates[start].problem_id)}
            are_finds = [verdicts[candidate_id].is_correct and candidate_id not in known for candidate_id in ids]
            bonuses += novelty_bonuses(ids, are_finds, bonus=self.novelty_bonus)
        return bonuses

    def _learn(self, candidates: Iterable[Candidate], verdicts: dict[str, Verdict]) -> None:
        for candidate in candidates:
            speedup = verdicts[candidate.candidate_id].speedup
            known = {exemplar.candidate_id for exemplar in self.pool.of(candidate.problem_id)}
            if speedup is not None and candidate.candidate_id not in known:
                exemplar = Exemplar(candidate_id=candidate.candidate_id, source=candidate.source, speedup=speedup)
                self.scale.observe(candidate.problem_id, speedup)
                self.pool.add(candidate.problem_id, exemplar)


def rollout_metrics(rollouts: Sequence[Rollout], *, group_size: int) -> dict[str, float]:
    """Shares and means over one step's rollouts.

    "correct", "unstable" and "distinct" are shares of the rollouts: those with a speedup, those that are right without
    one since their timing did not settle, and texts that differ within their group. "reward" counts what is withheld as
    the mean of its group. "speedup" is the geometric mean over the correct rollouts and absent if there is none.
    """
    speedups = [rollout.verdict.speedup for rollout in rollouts if rollout.verdict.speedup is not None]
    groups = [rollouts[start : start + group_size] for start in range(0, len(rollouts), group_size)]
    distinct = sum(len({rollout.candidate.candidate_id for rollout in group}) for group in groups)
    metrics = {
        "reward": statistics.fmean(rollout.reward for rollout in rollouts),
        "correct": len(speedups) / len(rollouts),
        "unstable": sum(rollout.verdict.status is Status.UNSTABLE for rollout in rollouts) / len(rollouts),
        "distinct": distinct / len(rollouts),
    }
    if speedups:
        metrics["speedup"] = math.exp(statistics.fmean(map(math.log, speedups)))
    return metrics
