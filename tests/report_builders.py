"""Builders of made-up records and of a whole made-up report."""

import random
from dataclasses import replace

from tasks.history.records import Sample
from tasks.judge.verdict import Check, Status, Timing, Track, Verdict
from tasks.problems.problem import Problem, Split
from tasks.report.exploration import StageRecords, explore, history_of
from tasks.report.page import ReportData
from tasks.report.summary import BestKernel, PolicySample, best_kernels, gains, summarise
from tasks.variants.candidate import Candidate

REFERENCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.relu(self.linear(x)) * 2.0


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return [512]
"""
KERNEL = REFERENCE.split("\n\n\ndef ")[0].replace("Model", "ModelNew").replace(" * 2.0", ".mul_(2.0)")


def problem(name="level1/relu", *, split=Split.TRAIN):
    return Problem(problem_id=name, level=int(name[5]), family="elementwise", split=split, source=REFERENCE)


def candidate(of, source=KERNEL, *, origin="rewrites", recipe=(), parent_id=None):
    return Candidate(problem_id=of.problem_id, source=source, origin=origin, recipe=recipe, parent_id=parent_id)


def verdict(of, *, speedup=2.0, status=Status.CORRECT, track=Track.FRAMEWORK, rounds=5, jitter=0.0):
    draw = random.Random(of.candidate_id)
    ratios = [speedup * 2 ** draw.gauss(0, jitter) for _ in range(rounds)]
    timing = Timing(baseline="eager", reference_ms=tuple(ratios), candidate_ms=(1.0,) * rounds)
    return Verdict(
        candidate_id=of.candidate_id,
        problem_id=of.problem_id,
        status=status,
        device="Made-up processor",
        protocol="test-1",
        checks=(Check(name="fresh_inputs", passed=True, evidence="max error 3.1e-07, allowed 1.2e-06"),),
        max_error=0.25,
        timing=timing if status is Status.CORRECT else None,
        track=track,
        seconds=1.0,
        judged_at=0.0,
    )


def sample(
    policy="sft",
    problem_id="level1/a",
    *,
    speedup=None,
    mode="sampled",
    split=Split.TRAIN,
    text="t",
    ran=True,
    copied=False,
):
    return PolicySample(
        policy=policy,
        problem_id=problem_id,
        split=split,
        level=1,
        mode=mode,
        parsed=True,
        ran=ran,
        correct=speedup is not None,
        speedup=speedup,
        candidate_id=f"{problem_id} {text}",
        copied=copied,
    )


def summarised(samples, *, baselines=None):
    return summarise(samples, baselines=baselines or {}, resamples=100, seed=0)


def three_kernels():
    """Speedups of 4, 1 and none, at three levels."""
    problems = [problem(f"level{level}/p") for level in (1, 2, 3)]
    candidates = [candidate(of) for of in problems[:2]]
    verdicts = [verdict(of, speedup=speedup) for of, speedup in zip(candidates, (4.0, 1.0), strict=True)]
    return best_kernels(problems, candidates, verdicts)


def timed_kernel(*ratios):
    """A best kernel whose rounds came out at these speedups."""
    of = problem()
    written = candidate(of)
    timing = Timing(baseline="eager", reference_ms=ratios, candidate_ms=(1.0,) * len(ratios))
    return BestKernel(problem=of, candidate=written, verdict=replace(verdict(written), timing=timing))


def made_up_report(*, source=KERNEL, detail=""):
    """A report of 12 problems, three policies and every kind of content."""
    draw = random.Random(0)
    problems = [
        problem(f"level{index % 3 + 1}/problem_{index:02}", split=Split.HELD_OUT if index % 4 == 3 else Split.TRAIN)
        for index in range(12)
    ]
    candidates = [candidate(of, source, recipe=("in_place", "fused")) for of in problems[:-1]]
    verdicts = [
        verdict(of, speedup=2 ** draw.gauss(1, 1), track=draw.choice(list(Track)), jitter=0.1) for of in candidates
    ]
    samples = [
        made_up_sample(policy, of, text, skill=skill, draw=draw)
        for policy, skill in (("sft", 0.5), ("self_supervised", 0.7), ("contrastive_rl", 0.9))
        for of in problems
        for text in range(8)
    ]
    baselines = {"compile": {of.problem_id: 2 ** draw.gauss(0.2, 0.5) for of in problems}}
    return ReportData(
        problems=problems,
        samples=samples,
        summary=summarised(samples, baselines=baselines),
        gains=gains(samples, resamples=100, seed=0),
        kernels=best_kernels(problems, candidates, verdicts),
        curves={
            "sft": [{"step": step, "loss": 4 / (1 + step / 9) + draw.random() / 5} for step in range(0, 200, 5)],
            "self_supervised": [{"step": step, "share_correct": 0.5 + step / 10} for step in range(3)],
            "contrastive_rl": [
                {"step": step, "reward": step / 30, "share_correct": 0.6 + step / 99, "distinct_share": 1 - step / 60}
                for step in range(30)
            ],
        },
        baselines=baselines,
        params={"seed": 0, "judge": {"device": "cpu", "rounds": 9}},
        environment={"torch": "2.13.0", "python": "3.11.7", "remark": detail},
        device="Made-up processor",
        protocol="test-1",
        unfit=(),
        resamples=100,
        seed=0,
    )


def made_up_sample(policy, of, text, *, skill, draw):
    is_correct = draw.random() < skill
    return PolicySample(
        policy=policy,
        problem_id=of.problem_id,
        split=of.split,
        level=of.level,
        mode="sampled" if text else "greedy",
        parsed=True,
        ran=is_correct or draw.random() < skill,
        correct=is_correct,
        speedup=2 ** draw.gauss(skill, 0.7) if is_correct else None,
        candidate_id=f"{of.problem_id} {text}",
        copied=draw.random() < 0.2,
    )


def made_up_problems(count=6):
    """Levels 1, 2 and 3 in turn; the last third is held out."""
    return [
        problem(
            f"level{index % 3 + 1}/problem_{index:02}",
            split=Split.HELD_OUT if index >= count * 2 // 3 else Split.TRAIN,
        )
        for index in range(count)
    ]


def made_up_runs(problems, *, source=KERNEL, detail="the answer to other inputs was given again"):
    """A search and a policy: for each problem, rewrites of one and of two steps and a wrong one; then, three steps of
    samples, of which the first is wrong and the others show what was rewritten. One rewrite cheats.
    """
    rewritten, judged, written, samples = [], [], [], []
    learnt = []
    for place, of in enumerate(problems):
        speedups = 1.2 + place / 4, 1.5 + place / 2
        once = candidate(of, f"{source}# 1 steps\n", recipe=("in_place",))
        twice = candidate(of, f"{source}# 2 steps\n", recipe=("in_place", "fused"), parent_id=once.candidate_id)
        made = [once, twice]
        wrong = candidate(of, f"{source}# wrong\n", recipe=("guess",))
        rewritten += [*made, wrong]
        judged += [verdict(one, speedup=speedup, jitter=0.05) for one, speedup in zip(made, speedups, strict=True)]
        status = Status.CHEATED if place == 0 else Status.WRONG_OUTPUT
        judged.append(replace(verdict(wrong, status=status, track=None), detail=detail))
        for step in range(3):
            own = candidate(of, f"{source}# step {step}\n", origin="contrastive_rl")
            written.append(own)
            is_correct = step > 0
            learnt.append(
                verdict(own, speedup=step + place / 3, track=Track.KERNEL, jitter=0.02)
                if is_correct
                else verdict(own, status=Status.CRASHED, track=None)
            )
            samples.append(drawn(own, step=step, number=place, exemplars=made if is_correct else ()))
    return [
        StageRecords(run_id="search", stage="filter_variants", candidates=rewritten, verdicts=judged),
        StageRecords(run_id="rl", stage="contrastive_rl", candidates=written, verdicts=learnt, samples=samples),
    ]


def drawn(of, *, step, number, exemplars=(), policy="contrastive_rl", temperature=0.8):
    return Sample(
        problem_id=of.problem_id,
        candidate_id=of.candidate_id,
        prompt=f"{of.problem_id} {step}",
        exemplar_ids=tuple(exemplar.candidate_id for exemplar in exemplars),
        completion=of.source,
        policy=policy,
        temperature=temperature,
        step=step,
        number=number,
    )


def made_up_history(folder, **changes):
    problems = made_up_problems()
    return history_of(problems, made_up_runs(problems, **changes), folder / "history.duckdb")


def made_up_exploration(folder, **changes):
    return explore(made_up_history(folder, **changes))
