"""What became of others' kernels, device by device, from verdicts alone."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from kernelbench_builders import reference, right
from report_builders import verdict as made_up_verdict

from flows.kernelbench.docket import Docket, DocketCase, cases_of, judge_all
from tasks.errors import FullDeviceError, MachineError, WorkerError
from tasks.judge.baselines import baseline_candidate
from tasks.judge.verdict import Check, Status, Track
from tasks.problems.problem import Problem, Split
from tasks.report.rejudged import Answer, Rejudged, device_results
from tasks.report.rejudged_tables import (
    beaten_table,
    device_table,
    device_tables,
    fate_table,
    same_kernels_table,
    side_by_side,
)
from tasks.variants.candidate import Candidate
from tasks.variants.imported import ImportedKernel

ORIGIN = "cuda-l1-released-h100"


def problem(number, *, level=1):
    name = f"level{level}/{number}"
    return Problem(
        problem_id=name,
        level=level,
        family=name,
        split=Split.HELD_OUT,
        source=reference(number),
        problem_set="kernelbench-v0",
    )


PROBLEMS = {each.problem_id: each for each in (problem(1), problem(2), problem(3, level=2), problem(4, level=2))}


def kernel(problem_id, *, claim=2.0, has_code=True):
    source = right(int(problem_id[-1]))
    return ImportedKernel(
        problem_id=problem_id,
        origin=ORIGIN,
        device="h100",
        candidate=Candidate(problem_id=problem_id, source=source, origin=ORIGIN) if has_code else None,
        claims={"eager": claim},
    )


def answer(of, *, torch="2.11", device="NVIDIA H100", failed="", **more):
    """A verdict on a candidate as the docket keeps it."""
    found = replace(made_up_verdict(of, **more), device=device, environment={"torch": torch})
    if failed:
        found = replace(found, checks=(Check(name=failed, passed=False),))
    return Answer(problem_hash=PROBLEMS[of.problem_id].problem_hash, origin=of.origin, verdict=found)


def baseline(problem_id, name):
    return baseline_candidate(PROBLEMS[problem_id], name)


KERNELS = [kernel("level1/1"), kernel("level1/2", claim=6.0), kernel("level2/3"), kernel("level2/4", has_code=False)]
ANSWERS = [
    answer(baseline("level1/1", "eager"), speedup=1.01),
    answer(baseline("level1/1", "cuda_graph"), speedup=4.0),
    answer(baseline("level1/2", "cuda_graph"), status=Status.CRASHED),
    answer(baseline("level2/3", "eager"), status=Status.BAD_PROBLEM),
    answer(KERNELS[0].candidate, speedup=2.0, track=Track.KERNEL),
    answer(KERNELS[1].candidate, speedup=3.0),
]


def rows(table):
    return [dict(zip(table.header, cells, strict=True)) for cells in table.rows]


def test_a_problem_with_an_unfit_reference_counts_nowhere_and_is_listed():
    (result,) = device_results(PROBLEMS, KERNELS, ANSWERS)
    assert list(result.unfit) == ["level2/3"]
    assert [one.problem.problem_id for one in result.kernels(ORIGIN)] == ["level1/1", "level1/2", "level2/4"]
    assert [one.speedup for one in result.kernels(ORIGIN)] == [2.0, 3.0, None]


def test_the_paper_the_claims_and_the_judgement_stand_side_by_side():
    (result,) = device_results(PROBLEMS, KERNELS, ANSWERS)
    found = {(row["over"], row["problems of"], row["whose"]): row for row in rows(side_by_side(result, ORIGIN))}
    assert found["eager", "all", "paper"]["mean"] == "3.85x"
    assert found["eager", "all", "claimed"]["mean"] == "3.00x"
    assert found["eager", "all", "judged"]["mean"] == "2.00x"
    assert found["eager", "level 1", "judged"]["mean"] == "2.50x"
    assert found["cuda_graph", "all", "judged"]["mean"] == "0.50x"  # the graph works on one problem only
    assert found["cuda_graph", "all", "paper"]["mean"] == "2.23x"
    assert found["best", "all", "judged"]["problems"] == "3"
    assert found["eager", "all", "judged"]["> 1.01x"] == "2 of 3"


def test_the_paper_says_nothing_of_other_problems_than_its_own():
    others = {name: replace(each, problem_set="kernelbench-9747d4") for name, each in PROBLEMS.items()}
    (result,) = device_results(others, KERNELS, ANSWERS)
    assert {row["whose"] for row in rows(side_by_side(result, ORIGIN))} == {"claimed", "judged"}


def test_a_text_that_is_listed_twice_is_one_kernel_with_the_higher_claim():
    again = [kernel("level1/1", claim=5.0), kernel("level2/4", has_code=False)]
    (result,) = device_results(PROBLEMS, [*KERNELS, *again], ANSWERS)
    found = {row["fate"]: row for row in rows(fate_table(result))}
    assert (found["usable"]["kernels"], found["usable"]["mean claim"]) == ("2", "5.50x")
    assert found["no code"]["kernels"] == "2"  # nothing says that what is not there would be equal
    assert [one.problem.problem_id for one in result.rejudged[ORIGIN]][:2] == ["level1/1", "level1/2"]


def test_of_two_claims_for_a_problem_the_higher_counts():
    (result,) = device_results(PROBLEMS, [kernel("level1/1", claim=5.0), *KERNELS], ANSWERS)
    found = {(row["over"], row["problems of"], row["whose"]): row for row in rows(side_by_side(result, ORIGIN))}
    claimed = found["eager", "all", "claimed"]
    assert (claimed["problems"], claimed["mean"]) == ("4", "3.75x")
    assert claimed["> 1.01x"] == "4 of 4"


def test_how_often_a_baseline_beats_a_kernel_is_counted_where_it_works():
    (result,) = device_results(PROBLEMS, KERNELS, ANSWERS)
    found = {row["baseline"]: row for row in rows(beaten_table(result))}
    assert (found["eager"]["kernels"], found["eager"]["surely faster"]) == ("2", "2")
    assert (found["cuda_graph"]["kernels"], found["cuda_graph"]["surely slower"]) == ("1", "1")
    assert (found["best"]["kernels"], found["best"]["slower"]) == ("2", "1")


@pytest.mark.parametrize(
    ("status", "failed", "fate"),
    [
        (Status.CORRECT, "", "usable"),
        (Status.CHEATED, "fresh_inputs", "dishonest"),
        (Status.WRONG_OUTPUT, "fresh_inputs", "wrong"),
        (Status.WRONG_OUTPUT, "output_kept", "stale"),
        (Status.WRONG_OUTPUT, "changed_weights", "stale weights"),
        (Status.WRONG_OUTPUT, "inputs_unchanged", "writes to its inputs"),
        (Status.UNSTABLE, "settled", "no steady timing"),
        (Status.CRASHED, "", "does not run"),
        (Status.COMPILE_ERROR, "", "does not run"),
        (Status.REJECTED, "", "does not run"),
        (Status.TIMEOUT, "", "does not run"),
        (Status.BAD_PROBLEM, "", "unfit reference"),
    ],
)
def test_a_fate_is_told_by_status_and_check(status, failed, fate):
    found = answer(KERNELS[0].candidate, status=status, failed=failed).verdict
    one = Rejudged(problem=PROBLEMS["level1/1"], kernel=KERNELS[0], verdict=found)
    assert (one.fate, one.failed_check) == (fate, failed)


def test_the_reason_is_the_last_line_of_a_traceback_and_the_first_of_a_finding():
    def reason(**more):
        found = replace(answer(KERNELS[0].candidate, **more).verdict, detail="first\nTypeError: no\nlast output:\nlog")
        return Rejudged(problem=PROBLEMS["level1/1"], kernel=KERNELS[0], verdict=found).reason

    assert reason(status=Status.CRASHED) == "TypeError: no"
    assert reason(status=Status.WRONG_OUTPUT, failed="output_kept") == "output_kept: first"
    assert reason() == ""


def test_what_is_not_judged_yet_does_not_count_as_missing():
    (result,) = device_results(PROBLEMS, KERNELS, ANSWERS[:-1])
    assert [one.problem.problem_id for one in result.kernels(ORIGIN)] == ["level1/1", "level2/4"]
    assert {row["fate"]: row["kernels"] for row in rows(fate_table(result))}["not judged yet"] == "2"


def test_devices_and_versions_are_never_mixed():
    other = [answer(KERNELS[0].candidate, speedup=5.0, device="NVIDIA H200")]
    newer = [answer(KERNELS[0].candidate, speedup=7.0, torch="2.13")]
    results = device_results(PROBLEMS, KERNELS, [*ANSWERS, *other, *newer])
    assert [result.kernels(ORIGIN)[0].speedup for result in results] == [2.0, 5.0, 7.0]
    table = rows(device_table(results))
    assert [row["device"] for row in table if row["over"] == "eager"] == ["NVIDIA H100", "NVIDIA H200", "NVIDIA H100"]
    assert all(each.rows or each.title for result in results for each in device_tables(result))


def test_devices_are_compared_by_the_kernels_that_all_have_judged():
    there = [
        answer(KERNELS[0].candidate, speedup=3.0, device="NVIDIA H200"),
        answer(KERNELS[2].candidate, speedup=9.0, device="NVIDIA H200"),
    ]
    table = rows(same_kernels_table(device_results(PROBLEMS, KERNELS, [*ANSWERS, *there])))
    shared = {"kernels": "1", "same fate": "1", "usable": "1", "usable on all": "1"}
    assert [row["device"] for row in table] == ["NVIDIA H100", "NVIDIA H200"]
    assert all(row[name] == number for row in table for name, number in shared.items())
    assert [row["geomean of these"] for row in table] == ["2.00x", "3.00x"]
    assert [row["over the first device's, median"] for row in table] == ["1.00x", "1.50x"]
    assert [row["range"] for row in table] == ["1.00 to 1.00", "1.50 to 1.50"]


def test_a_kernel_that_fails_on_one_device_has_another_fate_there():
    there = [answer(KERNELS[0].candidate, status=Status.WRONG_OUTPUT, failed="output_kept", device="NVIDIA H200")]
    first, second = rows(same_kernels_table(device_results(PROBLEMS, KERNELS, [*ANSWERS, *there])))
    assert (first["kernels"], first["same fate"], first["usable"], first["usable on all"]) == ("1", "1", "1", "0")
    assert (second["kernels"], second["same fate"], second["usable"], second["usable on all"]) == ("1", "0", "0", "0")
    assert first["geomean of these"] == second["range"] == "-"


def test_of_two_verdicts_on_one_text_the_later_counts():
    (result,) = device_results(PROBLEMS, KERNELS, [*ANSWERS, answer(KERNELS[0].candidate, speedup=2.5)])
    assert result.kernels(ORIGIN)[0].speedup == 2.5


def test_the_baselines_of_a_problem_come_before_its_kernels_and_equal_texts_once():
    found = cases_of(PROBLEMS.values(), [*KERNELS, kernel("level1/1")], ["eager"])
    assert [(case.problem.problem_id, case.candidate.origin) for case in found] == [
        ("level2/3", "baseline:eager"),
        ("level2/3", ORIGIN),
        ("level1/1", "baseline:eager"),
        ("level1/1", ORIGIN),
        ("level2/4", "baseline:eager"),
        ("level1/2", "baseline:eager"),
        ("level1/2", ORIGIN),
    ]


def test_levels_go_on_in_step_and_the_last_one_ends_first():
    problems = [
        problem(number, level=level) for level, count in ((1, 100), (2, 50), (3, 50)) for number in range(count)
    ]
    found = [case.problem.level for case in cases_of(problems, [], ["eager"])]
    first, rest = found[:40], found[160:]
    assert [first.count(level) for level in (1, 2, 3)] == [19, 9, 12]
    assert rest.count(3) < 5
    own = [case.problem.problem_id for case in cases_of(problems, [], ["eager"]) if case.problem.level == 2]
    assert own == [f"level2/{number}" for number in range(50)]


class FailingJudge:
    """Fails so often on each candidate before it gives a verdict."""

    device, protocol, environment = "NVIDIA H100", "test-1", {"torch": "2.11"}

    def __init__(self, failures):
        self.failures = failures

    def judge(self, problem, candidate, *, seed):
        left = self.failures.setdefault(problem.problem_id, 0)
        if left:
            self.failures[problem.problem_id] -= 1
            raise WorkerError("a process died")
        if left is None:
            raise MachineError("the disk is full")
        return answer(candidate, speedup=2.0).verdict


@pytest.mark.parametrize(("times", "has_answer"), [(1, True), (2, True), (3, False)])
def test_a_failure_of_the_judge_is_tried_again_and_stops_no_other_case(tmp_path, times, has_answer):
    cases = cases_of(PROBLEMS.values(), KERNELS, [])
    judge = FailingJudge({"level1/1": times})
    with Docket.open(tmp_path) as docket:
        failures = judge_all(judge, cases, docket, workers=2, stop_at=float("inf"), is_alone=False).failures
        assert len(docket.answers) == len(cases) - (not has_answer)
        assert len(failures) == (not has_answer)
        assert all("level1/1" in words and "a process died" in words for words in failures)
        assert [case.problem.problem_id for case in docket.pending(cases, judge)] == ["level1/1"] * (not has_answer)


def test_who_finds_no_memory_to_start_with_is_judged_alone(tmp_path):
    class FullDevice(FailingJudge):
        def judge(self, problem, candidate, *, seed):
            raise FullDeviceError("no worker can start: out of memory: NVIDIA H100 had no 4096 MiB left within 60 s")

    with Docket.open(tmp_path) as docket:
        cases = cases_of(PROBLEMS.values(), KERNELS, [])
        session = judge_all(FullDevice({}), cases, docket, workers=2, stop_at=float("inf"), is_alone=False)
        assert {case.key for case in session.crowded} == {case.key for case in cases}
        assert not session.failures


@pytest.mark.parametrize(("is_alone", "is_kept"), [(False, False), (True, True)])
def test_who_runs_out_of_memory_beside_others_is_judged_alone(tmp_path, is_alone, is_kept):
    class SmallDevice(FailingJudge):
        def judge(self, problem, candidate, *, seed):
            found = answer(candidate, status=Status.CRASHED).verdict
            return replace(found, detail="torch.OutOfMemoryError: CUDA out of memory.")

    with Docket.open(tmp_path) as docket:
        cases = cases_of(PROBLEMS.values(), KERNELS, [])
        session = judge_all(SmallDevice({}), cases, docket, workers=2, stop_at=float("inf"), is_alone=is_alone)
        assert len(docket.answers) == (len(cases) if is_kept else 0)
        assert len(session.crowded) == (0 if is_kept else len(cases))


def test_a_machine_that_cannot_ends_the_run_with_what_was_kept(tmp_path):
    cases = cases_of(PROBLEMS.values(), KERNELS, [])
    with Docket.open(tmp_path) as docket, pytest.raises(MachineError, match="disk"):
        judge_all(FailingJudge({"level1/2": None}), cases, docket, workers=1, stop_at=float("inf"), is_alone=True)
    with Docket.open(tmp_path) as docket:
        assert [each.verdict.problem_id for each in docket.answers] == ["level2/3", "level1/1"]


@pytest.mark.parametrize(
    ("changed", "is_pending"),
    [
        pytest.param({}, False, id="the same"),
        pytest.param({"device": "NVIDIA H200"}, True, id="another device"),
        pytest.param({"protocol": "test-2"}, True, id="another protocol"),
        pytest.param({"environment": {"torch": "2.13"}}, True, id="another torch"),
        pytest.param({"environment": {"torch": "2.11", "kernel": "9"}}, False, id="another kernel"),
    ],
)
def test_an_answer_counts_where_it_was_given(tmp_path, changed, is_pending):
    case = DocketCase(problem=PROBLEMS["level1/1"], candidate=KERNELS[0].candidate)
    here = {"device": "NVIDIA H100", "protocol": "test-1", "environment": {"torch": "2.11"}}
    with Docket.open(tmp_path) as docket:
        docket.keep(case, ANSWERS[4].verdict)
    with Docket.open(tmp_path) as docket:
        assert bool(docket.pending([case], SimpleNamespace(**{**here, **changed}))) == is_pending
