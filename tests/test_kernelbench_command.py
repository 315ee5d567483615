"""`cuda-l1 kernelbench`: every answer is kept at once, a killed run goes on, and tables say what became of what."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from kernelbench_builders import CONSTANT, reference, released, right, write_lines, wrong
from report_builders import verdict

from flows.cli import main
from flows.kernelbench.docket import Docket
from flows.kernelbench.records import read_records, verdict_rows
from tasks.history.store import History
from tasks.judge.baselines import baseline_candidate
from tasks.judge.verdict import Speedup, Timing
from tasks.problems.problem import Problem, Split
from tasks.report.rejudged import Answer

ROOT = Path(__file__).parent.parent
PROBLEM = Problem(problem_id="level1/1", level=1, family="", split=Split.HELD_OUT, source=reference(1))
CRASHES = right(3).replace("torch.relu", "torch.no_such_function")
NOT_ON_GPU_MACHINES = ("polars", "duckdb", "prefect", "dvc", "mlflow", "datasets", "plotly", "libcst", "trl")
WITHOUT_THEM = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {NOT_ON_GPU_MACHINES}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from importlib import util
real = util.find_spec
util.find_spec = lambda name, package=None: None if name in {NOT_ON_GPU_MACHINES} else real(name, package)
from flows.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, outside of any project, with a file of five problems and kernels for four of them."""
    write_lines(
        tmp_path / "h100.json",
        released(1, code=right(1), eager=4.0, compile=3.0),
        released(2, code=wrong(2), eager=2.0),
        released(3, code=CRASHES, eager=9.0),
        released(4, code=right(4), ref=CONSTANT, eager=100.0),
        released(5, code="None", eager=1.5),
        "no json",
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*more, out="out", baselines=("eager",)):
    given = ["kernelbench", "h100.json", "--candidates", "h100.json", "--baselines", *baselines]
    return [*given, "--out", out, *more]


def verdicts(folder, out="out"):
    return [json.loads(line) for line in (folder / out / "verdicts.jsonl").read_text().splitlines()]


def kernels(folder):
    import polars

    return {row["problem_id"]: row for row in polars.read_parquet(folder / "out/kernels.parquet").to_dicts()}


def elsewhere(folder, *arguments, program=("-m", "flows.cli"), **more):
    """The command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, *program, *arguments],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        **more,
    )


def test_it_judges_says_what_became_of_each_kernel_and_judges_nothing_twice(folder, capsys):
    assert main(command("--workers", "2", baselines=())) == 0
    said = capsys.readouterr()
    assert "0 of 4 have verdicts; 4 to go" in said.err
    assert "line 5: there is no code for level1/5, though a speedup of 1.5 is claimed" in said.err
    assert said.out.split() == [
        f"out/{name}" for name in ("report.md", "report.html", "kernels.parquet", "verdicts.parquet")
    ]
    found = kernels(folder)
    settles = found["level1/1"]["fate"] != "no steady timing"  # as a right kernel's time may on a busy machine
    assert {name: row["fate"] for name, row in found.items()} == {
        "level1/1": "usable" if settles else "no steady timing",
        "level1/2": "wrong",
        "level1/3": "does not run",
        "level1/4": "unfit reference",
        "level1/5": "no code",
    }
    assert (found["level1/1"]["claimed_speedup"], found["level1/1"]["claimed_device"]) == (4.0, "h100")
    if settles:
        assert found["level1/1"]["speedup_low"] <= found["level1/1"]["speedup"] <= found["level1/1"]["speedup_high"]
    assert "no_such_function" in found["level1/3"]["reason"]
    report = (folder / "out/report.md").read_text()
    assert "| paper |" not in report  # it had other problems than these
    assert "| eager | all | claimed | 5 |" in report
    assert "| eager | all | judged | 4 |" in report  # without the problem whose reference is constant
    assert "does not depend on its inputs" in report
    assert "level1/3" in (folder / "out/report.html").read_text()

    assert main(command(baselines=())) == 0
    assert "4 of 4 have verdicts; 0 to go" in capsys.readouterr().err
    assert len(verdicts(folder)) == 4


def test_a_killed_run_keeps_its_verdicts_and_goes_on(folder, capsys):
    running = elsewhere(folder, *command("--only", "level1/1"), start_new_session=True)
    deadline = time.monotonic() + 60
    kept = folder / "out/verdicts.jsonl"
    while time.monotonic() < deadline and not (kept.exists() and kept.read_bytes().count(b"\n")):
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    before = verdicts(folder)
    assert before
    with kept.open("a") as file:
        file.write('{"problem_hash": "cut o')  # what a kill may leave
    assert main(command("--only", "level1/1")) == 0
    assert f"{len(before)} of 2 have verdicts" in capsys.readouterr().err
    after = verdicts(folder)
    assert after[: len(before)] == before
    assert len({(row["problem_hash"], row["candidate_id"]) for row in after}) == len(after) == 2


def test_the_published_records_of_a_run_are_gone_on_with(folder, capsys):
    assert main(command("--only", "level1/2", "level1/3")) == 0
    (folder / "out/verdicts.parquet").rename(folder / "published.parquet")
    before = verdicts(folder)
    capsys.readouterr()
    assert main(command("--records", "published.parquet", out="other")) == 0
    said = capsys.readouterr().err
    assert f"published.parquet: {len(before)} of {len(before)} verdicts are news" in said
    assert f"{len(before)} of 9 have verdicts" in said
    assert verdicts(folder, out="other")[: len(before)] == before
    assert main(command("--records", "published.parquet", "--report-only", out="other")) == 0
    assert f"published.parquet: 0 of {len(before)} verdicts are news" in capsys.readouterr().err


def test_a_verdict_of_the_long_tier_keeps_its_speedup_in_published_records(tmp_path):
    import polars

    settled = Speedup(median=1.11, low=1.0, high=1.2)
    timing = Timing(baseline="eager", reference_ms=(2.0, 2.0), candidate_ms=(1.0, 1.0), settled=settled)
    kept = replace(verdict(baseline_candidate(PROBLEM, "eager"), speedup=2.0), protocol="paired-6-long", timing=timing)
    answer = Answer(problem_hash=PROBLEM.problem_hash, origin="baseline:eager", verdict=kept)
    polars.DataFrame(list(verdict_rows({"": PROBLEM}, [answer]))).write_parquet(tmp_path / "verdicts.parquet")
    assert read_records(tmp_path / "verdicts.parquet") == [answer]


def test_the_long_tier_may_have_a_window_of_ones_own(folder):
    assert main(command("--only", "level1/1", "--tier", "long", "--window-s", "0.7", baselines=())) == 0
    (long,) = verdicts(folder)
    assert long["protocol"].endswith("-long")
    assert "bucket_means" in [name for name, *_ in long["checks"]]
    assert long["seconds"] < 60.0


def test_two_protocols_on_one_device_have_each_a_section(folder):
    assert main(command("--only", "level1/2", "level1/3")) == 0
    older = [{**row, "protocol": "paired-5"} for row in verdicts(folder)]
    write_lines(folder / "out/verdicts.jsonl", *verdicts(folder), *older)
    assert main(command("--report-only")) == 0
    headings = [line for line in (folder / "out/report.md").read_text().splitlines() if line.startswith("## ")]
    assert len(headings) == 3
    assert headings[0] == "## All devices"
    assert sum("paired-5" in heading for heading in headings) == 1


def test_tables_of_a_folder_without_verdicts_are_refused(folder, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(command("--report-only", out="new"))
    assert "no verdicts in new yet" in capsys.readouterr().err
    assert not (folder / "new/report.md").exists()


def test_it_stops_in_time_and_says_how_far_it_came(folder, capsys):
    assert main(command("--stop-after-s", "0.001")) == 0
    assert "0 of 9 have verdicts; 9 to go: give the command again" in capsys.readouterr().err
    assert verdicts(folder) == []


def test_judging_needs_no_data_frames_and_the_tables_come_later(folder, capsys):
    arguments = command("--only", "level1/1")
    running = elsewhere(folder, *arguments, program=("-c", WITHOUT_THEM))
    said = running.communicate(timeout=100)[1]
    assert running.returncode == 0, said
    assert "no tables: polars is not installed here" in said
    assert len(verdicts(folder)) == 2
    assert not (folder / "out/report.md").exists()
    assert main([*arguments, "--report-only"]) == 0
    assert kernels(folder)["level1/1"]["fate"] in ("usable", "no steady timing")
    assert "behind walls" not in capsys.readouterr().err


def test_proposals_are_written_once_and_come_along_to_a_machine_that_can_only_judge(folder, capsys):
    proposing = command("--provider", "builtin", "--proposals", "3", "--device", "cuda:0", "--only", "level1/1")
    assert main([*proposing, "--report-only"]) == 0
    rows = [json.loads(line) for line in (folder / "out/proposals.jsonl").read_text().splitlines()]
    assert [len(row["candidates"]) for row in rows] == [3]
    assert all("class ModelNew" in candidate["source"] for candidate in rows[0]["candidates"])
    running = elsewhere(folder, *proposing, "--report-only", program=("-c", WITHOUT_THEM))
    said = running.communicate(timeout=100)[1]
    assert running.returncode == 0, said
    assert [json.loads(line) for line in (folder / "out/proposals.jsonl").read_text().splitlines()] == rows
    with pytest.raises(SystemExit, match="2"):
        main(command("--provider", "builtin"))
    assert "--provider builtin proposes for a GPU" in capsys.readouterr().err


def test_baselines_come_from_the_history_the_next_time(folder, capsys):
    for name in ("dvc.yaml", "params.yaml"):
        (folder / name).touch()
    assert main(command("--only", "level1/1", "level1/4")) == 0
    history = History(folder / "data/history.duckdb")
    rows = history.query("SELECT origin, status, problem_set FROM stage_verdicts JOIN problems USING (problem_hash)")
    assert sorted(rows["origin"]) == ["baseline:eager"] * 2 + ["cuda-l1-released-h100"] * 2
    assert rows["problem_set"].unique().to_list()[0].startswith("kernelbench-")
    capsys.readouterr()
    assert main(command("--only", "level1/1", "level1/4", out="again")) == 0
    said = capsys.readouterr().err
    assert "2 timings of baselines are known from the history" in said
    assert "2 of 4 have verdicts; 2 to go" in said
    assert len(history.query("FROM verdicts")) == 6  # what came from the history is not told to it again
    first, again = (
        [row for row in verdicts(folder, out) if row["origin"] == "baseline:eager"] for out in ("out", "again")
    )
    for row, known in zip(first, again, strict=True):
        assert known["reference_ms"] == row["reference_ms"]
        assert (known["status"], known["checks"], known["judged_at"]) == (
            row["status"],
            row["checks"],
            pytest.approx(row["judged_at"], abs=1e-5),
        )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no table", "cannot be read as Parquet"),
        ("table", "other.parquet is no verdicts.parquet of this command: it has no column problem_hash"),
    ],
)
def test_records_that_are_none_are_refused_in_words(folder, capsys, content, words):
    import polars

    path = folder / "other.parquet"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        polars.DataFrame({"problem_id": ["level1/1"]}).write_parquet(path)
    assert main(command("--records", "other.parquet", "--report-only")) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "status", "words"),
    [
        pytest.param(["--only", "level7"], 1, "no problem has level7 in its id", id="no such problem"),
        pytest.param(["--device", "gpu"], 2, "neither cpu nor cuda:N", id="no such device"),
        pytest.param(["--baselines", "cuda_graph"], 3, "cuda_graph cannot be timed on cpu: it needs CUDA", id="no GPU"),
        pytest.param(["--baselines", "fast"], 2, "invalid choice: 'fast'", id="no such baseline"),
        pytest.param(["--candidates", "none.json"], 2, "there is no none.json", id="no such candidates"),
        pytest.param(["--records", "none.parquet"], 2, "there is no none.parquet", id="no such records"),
        pytest.param(["--out", "h100.json"], 2, "--out h100.json cannot be made a folder", id="out is a file"),
        pytest.param(["--out", "/proc/xyz"], 2, "--out /proc/xyz cannot be made a folder", id="out cannot be made"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(folder, capsys, more, status, words):
    try:
        found = main(command(*more))
    except SystemExit as ended:
        found = ended.code
    assert found == status
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "more",
    [
        ["--workers", "0"],
        ["--stop-after-s", "0"],
        ["--stop-after-s", "nan"],
        ["--tier", "quick"],
        ["--window-s", "60"],
        ["--tier", "long", "--window-s", "0"],
        ["--tier", "long", "--window-s", "nan"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_status_2(folder, more):
    with pytest.raises(SystemExit) as ended:
        main(command(*more))
    assert ended.value.code == 2


def test_two_at_once_in_one_folder_are_refused(folder, capsys):
    with Docket.open(folder / "out"):
        assert main(command()) == 3
    assert "another process is at work in out" in capsys.readouterr().err


def test_a_folder_with_other_lines_is_refused(folder, capsys):
    write_lines(
        folder / "out/verdicts.jsonl", {"problem_hash": "x", "origin": "y", "is_recalled": False, "status": "correct"}
    )
    assert main(command()) == 1
    assert "not a verdict" in capsys.readouterr().err
    write_lines(folder / "out/verdicts.jsonl", {"id": "x"})
    assert main(command()) == 1
    assert "out/verdicts.jsonl holds other lines than verdicts of this command" in capsys.readouterr().err
