"""The rows of the report: what they count, and over what."""

from dataclasses import replace

import pytest
from report_builders import KERNEL, candidate, problem, sample, summarised, timed_kernel, verdict

from tasks.errors import RecordError
from tasks.judge.verdict import Status
from tasks.problems.problem import Split
from tasks.report.summary import BestKernel, PolicySample, best_kernels, gains


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"ran": False}, "correct implies ran", id="correct without having run"),
        pytest.param({"correct": False}, "a speedup belongs", id="a speedup of a wrong sample"),
        pytest.param({"speedup": None}, "a speedup belongs", id="correct without a speedup"),
        pytest.param({"parsed": False}, "ran implies parsed", id="ran without parsing"),
    ],
)
def test_a_sample_that_contradicts_itself_is_refused(changes, message):
    with pytest.raises(RecordError, match=message):
        replace(sample(speedup=2.0), **changes)


@pytest.mark.parametrize(
    ("source", "status", "expected"),
    [
        pytest.param(KERNEL, Status.CORRECT, (True, True, True), id="correct"),
        pytest.param(KERNEL, Status.WRONG_OUTPUT, (True, True, False), id="wrong"),
        pytest.param(KERNEL, Status.CRASHED, (True, False, False), id="crashed"),
        pytest.param(KERNEL, Status.COMPILE_ERROR, (True, False, False), id="a build inside it failed"),
        pytest.param("def (", Status.COMPILE_ERROR, (False, False, False), id="does not parse"),
        pytest.param("x = '\0'", Status.REJECTED, (False, False, False), id="holds a null byte"),
        pytest.param("(" * 5000, Status.REJECTED, (False, False, False), id="nested without end"),
    ],
)
def test_a_verdict_says_how_far_a_sample_got(source, status, expected):
    of = problem()
    written = candidate(of, source)
    judged = PolicySample.judged("sft", "sampled", of, written, verdict(written, status=status), copied=False)
    assert (judged.parsed, judged.ran, judged.correct) == expected


@pytest.mark.parametrize("copied", [True, False])
def test_a_judged_sample_keeps_whether_it_copied_an_exemplar(copied):
    of = problem()
    written = candidate(of)
    judged = PolicySample.judged("sft", "sampled", of, written, verdict(written), copied=copied)
    assert judged.copied is copied


def test_copies_are_counted_as_a_share_of_the_samples_correct_or_not():
    (row,) = summarised([sample(speedup=2.0, copied=True), sample(copied=True), sample(speedup=2.0), sample()])
    assert row.copied == 0.5


def test_a_summary_row_counts_samples_and_problems_apart():
    (row,) = summarised(
        [
            sample(problem_id="level1/a", speedup=4.0, text="1"),
            sample(problem_id="level1/a", speedup=1.0, text="1"),
            sample(problem_id="level1/b", text="2"),
            sample(problem_id="level1/b", text="3", ran=False),
        ]
    )
    assert (row.problems, row.samples, row.parsed, row.ran, row.correct) == (2, 4, 1.0, 0.75, 0.5)
    assert (row.solved, row.fast_1, row.fast_2, row.best_speedup) == (0.5, 0.5, 0.5, 4.0)
    assert row.speedup == pytest.approx(2.0)
    assert row.distinct == 0.75
    assert row.over_baselines == {}


def test_a_policy_that_gets_nothing_right_has_no_speedup():
    (row,) = summarised([sample(), sample(problem_id="level1/b")])
    assert (row.correct, row.speedup, row.speedup_interval, row.best_speedup) == (0.0, None, None, None)


def test_rows_come_train_first_and_policies_as_they_were_given():
    rows = summarised(
        [
            sample(policy, mode=mode, split=split)
            for policy in ("sft", "contrastive_rl")
            for split in reversed(Split)
            for mode in ("sampled", "greedy")
        ]
    )
    assert [(row.policy, row.split.value, row.mode) for row in rows] == [
        (policy, split, mode)
        for policy in ("sft", "contrastive_rl")
        for split in ("train", "held_out")
        for mode in ("greedy", "sampled")
    ]


def test_no_samples_give_no_rows():
    assert summarised([]) == []


def test_speedups_over_other_baselines_are_divided_problem_by_problem():
    samples = [sample(problem_id="level1/a", speedup=4.0), sample(problem_id="level1/b", speedup=4.0)]
    baselines = {
        "eager": {"level1/a": 1.0, "level1/b": 1.0},
        "compile": {"level1/a": 2.0, "level1/b": 0.5},
        "cuda_graph": {"level1/a": 4.0},
    }
    (row,) = summarised(samples, baselines=baselines)
    assert row.over_baselines["compile"] == pytest.approx(4.0)
    assert row.over_baselines["cuda_graph"] == pytest.approx(1.0)
    assert row.over_baselines["best"] == pytest.approx(2.0)
    assert "eager" not in row.over_baselines


def test_a_problem_on_which_another_baseline_failed_still_has_eager_as_its_best():
    samples = [sample(problem_id="level1/a", speedup=4.0), sample(problem_id="level1/failed", speedup=4.0)]
    (row,) = summarised(samples, baselines={"compile": {"level1/a": 4.0}})
    assert row.over_baselines["compile"] == pytest.approx(1.0)
    assert row.over_baselines["best"] == pytest.approx(2.0)  # 4 / 4 and 4 / 1


def test_each_policy_is_compared_with_the_one_before_it_on_the_same_split():
    samples = [
        sample(policy, problem_id, speedup=speedup)
        for policy, speedup in (("sft", 1.0), ("self_supervised", 2.0), ("contrastive_rl", 3.0))
        for problem_id in ("level1/a", "level1/b")
    ]
    found = gains([*samples, sample("sft", speedup=1.0, split=Split.HELD_OUT)], resamples=100, seed=0)
    assert [(gain.earlier, gain.later) for gain in found] == [
        ("sft", "self_supervised"),
        ("self_supervised", "contrastive_rl"),
    ]
    assert [gain.ratio for gain in found] == pytest.approx([2.0, 1.5])


def test_the_best_kernel_is_the_fastest_correct_one_and_every_problem_is_listed():
    solved, unsolved = problem("level1/solved"), problem("level1/unsolved")
    slow, fast, wrong = (candidate(solved, f"{KERNEL}# {name}") for name in ("slow", "fast", "wrong"))
    verdicts = [verdict(slow, speedup=1.5), verdict(fast, speedup=3.0), verdict(wrong, status=Status.WRONG_OUTPUT)]
    kernels = best_kernels([solved, unsolved], [slow, fast, wrong], verdicts)
    assert [(kernel.candidate, kernel.speedup) for kernel in kernels] == [(fast, pytest.approx(3.0)), (None, None)]


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        pytest.param((1.2, 1.3, 1.4, 1.5), True, id="every round faster"),
        pytest.param((0.5, 1.2, 1.2, 1.3, 1.3, 1.3, 1.4, 1.4, 1.5), True, id="one stalled round of many"),
        pytest.param((0.5, 1.2, 1.3, 1.4, 1.5), False, id="one stalled round of few"),
        pytest.param((0.97, 0.99, 1.01, 1.02, 1.03), False, id="the median alone above 1"),
        pytest.param((1.0, 1.0, 1.0), False, id="exactly as fast"),
        pytest.param((0.5, 0.6, 0.7), False, id="slower"),
    ],
)
def test_a_kernel_counts_as_faster_only_when_the_low_end_of_its_interval_is(ratios, expected):
    assert timed_kernel(*ratios).is_faster is expected


def test_a_problem_without_a_kernel_is_not_made_faster():
    assert not BestKernel(problem=problem()).is_faster
