"""A machine that lacks a compiler, or whose servers are gone: the work goes on without, and says so."""

import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.parts.journal import read_records
from flows.parts.timed_baselines import baseline_speedups
from tasks.judge.baselines import baseline_candidate
from tasks.judge.verdict import Status, Verdict
from tasks.variants.candidate import Candidate
from tasks.variants.rewrites.kernel import elementwise_in_c
from tests.judge_builders import RIGHT
from tests.program_builders import rewritten
from tests.stage_runs import CLOSED, PROBLEM_ID, run, said_no, workspace, write_generated
from tests.training_builders import SCALED, SCALED_IN_PLACE, verdict
from tests.training_builders import problem as small_problem

pytestmark = pytest.mark.slow


@pytest.fixture
def empty_bin() -> Iterator[Path]:
    """A folder for programs that workers see too: wherever the installation lies, which may be one that they do not."""
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        os.chmod(folder, 0o755)  # workers may be another user
        yield Path(folder).resolve()


def link_all_but(folder: Path, *words: str) -> None:
    """Link to every program that we have, except those that have one of these words in their names."""
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            link = folder / program.name
            if not link.is_symlink() and not any(word in program.name for word in words):
                link.symlink_to(program)


@pytest.mark.parametrize(
    ("missing", "is_c_built"),
    [
        pytest.param(("++",), True, id="no C++ compiler"),
        pytest.param(("++", "gcc", "cc", "clang"), False, id="no compiler at all"),
    ],
)
def test_what_cannot_be_compiled_here_gets_its_verdict_and_the_others_theirs(
    tmp_path: Path, empty_bin: Path, capsys: pytest.CaptureFixture[str], missing: tuple[str, ...], is_c_built: bool
) -> None:
    root = workspace(tmp_path)
    compiled = baseline_candidate(small_problem(), "compile").source
    texts = [SCALED_IN_PLACE, compiled, rewritten(SCALED, elementwise_in_c)]
    rows = [{"problem_id": PROBLEM_ID, "source": text, "origin": "test", "recipe": []} for text in texts]
    write_generated(root, rows)
    link_all_but(empty_bin, *missing)
    environment = {"PATH": str(empty_bin), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    result = run(root, "flows.filter_variants", environment=environment)
    assert result.returncode == 0, result.stderr
    eager, graph, kernel = read_records(root / "data/filter_variants/verdicts.jsonl", Verdict.from_json)
    assert eager.status in RIGHT
    assert graph.status is Status.COMPILE_ERROR
    assert (kernel.status in RIGHT) == is_c_built, kernel.detail
    assert baseline_speedups({"compile": [graph]}) == {}
    said = capsys.readouterr().err
    assert "warning: the baseline compile is not available here, and left out: " in said
    assert "No working C++ compiler found" in said


def test_a_baseline_that_works_somewhere_is_quoted_there() -> None:
    candidate = Candidate(problem_id=PROBLEM_ID, source=SCALED_IN_PLACE, origin="test")
    works, fails = verdict(candidate, speedup=2.0), verdict(candidate, speedup=None)
    assert baseline_speedups({"compile": [works, fails]}) == {"compile": {PROBLEM_ID: 2.0}}


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Something that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_servers_that_never_answer_are_told_and_the_stage_runs(tmp_path: Path, silent_server: str) -> None:
    root = workspace(tmp_path)
    servers = {"PREFECT_API_URL": f"{silent_server}/api", "MLFLOW_TRACKING_URI": silent_server}
    result = run(root, "flows.generate_variants", environment=servers)
    assert result.returncode == 0, result.stderr
    assert f"no Prefect server answers at {silent_server}/api; running without it" in result.stderr
    assert f"do not reach MLflow at {silent_server}: " in result.stderr
    assert (root / "data/generate_variants/candidates.jsonl").exists()


def test_a_refusing_mlflow_is_told_with_the_command_that_sends_what_was_kept(tmp_path: Path) -> None:
    root = workspace(tmp_path)
    result = run(root, "flows.generate_variants")
    assert result.returncode == 0, result.stderr
    assert f"do not reach MLflow at {CLOSED}: " in result.stderr
    assert "-m tasks.tracking" in result.stderr
    assert list((root / "mlruns/pending").iterdir())


def test_the_pipeline_needs_the_prefect_server_that_it_was_given(tmp_path: Path, silent_server: str) -> None:
    root = workspace(tmp_path)
    for url in (f"{CLOSED}/api", f"{silent_server}/api"):
        result = run(root, "flows.pipeline", environment={"PREFECT_API_URL": url})
        said_no(result, f"no Prefect server answers at {url}; start it", "unset PREFECT_API_URL")
