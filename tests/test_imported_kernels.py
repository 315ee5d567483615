"""Released kernels are read with what they claim, and belong to the problem that they were written for."""

import pytest
from kernelbench_builders import reference, released, right, write_checkout, write_lines

from tasks.errors import ProblemError
from tasks.problems.sources import read_problems
from tasks.variants.imported import ImportProvider, read_candidates, summary


@pytest.fixture
def problems(tmp_path):
    texts = {f"level1__{number}_Relu": reference(number) for number in (1, 2, 3)}
    return read_problems(str(write_checkout(tmp_path / "checkout", **texts))).problems


def test_a_released_kernel_has_its_claims_its_device_and_its_origin(tmp_path, problems):
    path = write_lines(tmp_path / "h100.json", released(2, code=right(2), eager=3.5, cuda_graph=1.25))
    (kernel,) = read_candidates(path, problems).kernels
    assert kernel.problem_id == "level1/2_Relu"
    assert (kernel.origin, kernel.device) == ("cuda-l1-released-h100", "h100")
    assert kernel.claims == {"eager": 3.5, "cuda_graph": 1.25}
    assert kernel.candidate.source == right(2)
    assert kernel.candidate.problem_id == "level1/2_Relu"


@pytest.mark.parametrize(
    ("code", "scores", "words"),
    [
        pytest.param(None, {}, "there is no code for level1/1_Relu", id="null"),
        pytest.param("None", {"eager": 7.2}, "though a speedup of 7.2 is claimed", id="the text None"),
        pytest.param(" ", {}, "there is no code", id="blank"),
        pytest.param(["x"], {}, "there is no code", id="a list"),
    ],
)
def test_a_kernel_without_code_keeps_its_claim_and_is_told_of(tmp_path, problems, code, scores, words):
    path = write_lines(tmp_path / "h100.json", released(1, code=code, **scores))
    found = read_candidates(path, problems)
    assert found.candidates == []
    assert [kernel.claims for kernel in found.kernels] == [scores]
    assert words in found.mistakes[0]
    assert summary(found, name="h100.json") == "h100.json: 0 candidates; 1 line(s) give none"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        pytest.param("no json", "is no JSON object", id="not JSON"),
        pytest.param({"x": 1}, "has neither custom_code nor problem_id and source", id="another object"),
        pytest.param(released(1, code=right(), ref=reference(7)), "has another reference here", id="another reference"),
        pytest.param(released(8, code=right()), "is not here, nor is its reference elsewhere", id="another problem"),
        pytest.param(
            {"problem_id": "level9/1", "source": right()}, "there is no problem level9/1", id="plain, unknown"
        ),
    ],
)
def test_a_line_for_no_problem_at_hand_is_left_out(tmp_path, problems, row, words):
    found = read_candidates(write_lines(tmp_path / "a.json", row, released(2, code=right(2))), problems)
    assert [kernel.problem_id for kernel in found.kernels] == ["level1/2_Relu"]
    (mistake,) = found.mistakes
    assert mistake.startswith("a.json, line 1: ")
    assert words in mistake


def test_a_kernel_goes_with_its_reference_wherever_that_is_numbered_here(tmp_path, problems):
    path = write_lines(tmp_path / "a.json", released(9, code=right(3), ref=reference(3)))
    assert [kernel.problem_id for kernel in read_candidates(path, problems).kernels] == ["level1/3_Relu"]


def test_plain_lines_and_those_of_a_stage_are_read_too(tmp_path, problems):
    stage = {"candidate_id": "x", "problem_id": "level1/1_Relu", "origin": "sft", "recipe": [], "source": right(1)}
    plain = {"problem_id": "level1/2", "source": right(2), "claimed_speedup": 2, "device": "My GPU"}
    first, second = read_candidates(write_lines(tmp_path / "a.jsonl", stage, plain), problems).kernels
    assert (first.origin, first.device, first.claims) == ("sft", "", {})
    assert (second.origin, second.device, second.claims) == ("imported", "My GPU", {"eager": 2.0})
    assert second.problem_id == "level1/2_Relu"


@pytest.mark.parametrize("score", [0, -1.0, "3.5", None, True, float("inf"), float("nan")], ids=str)
def test_what_is_no_speedup_is_no_claim(tmp_path, problems, score):
    row = {**released(1, code=right(1)), "score_default": score}
    (kernel,) = read_candidates(write_lines(tmp_path / "a.json", row), problems).kernels
    assert kernel.claims == {}


def test_a_text_that_does_not_parse_is_a_candidate_all_the_same(tmp_path, problems):
    found = read_candidates(write_lines(tmp_path / "a.json", released(1, code='x = """')), problems)
    assert [candidate.source for candidate in found.candidates] == ['x = """']


def test_the_provider_gives_each_text_of_a_problem_once(tmp_path, problems):
    path = write_lines(
        tmp_path / "a.json", released(1, code=right(1)), released(1, code=right(1)), released(2, code=right(2))
    )
    provider = ImportProvider(read_candidates(path, problems), name="release")
    assert provider.name == "release"
    assert [c.source for c in provider.candidates(problems["level1/1_Relu"], seed=0)] == [right(1)]
    assert list(provider.candidates(problems["level1/3_Relu"], seed=0)) == []


def test_a_file_that_is_not_there_is_refused(tmp_path, problems):
    with pytest.raises(ProblemError, match=r"missing\.json cannot be read"):
        read_candidates(tmp_path / "missing.json", problems)
