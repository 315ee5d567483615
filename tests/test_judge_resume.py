"""A batch that was ended or killed leaves whole lines and no process, and the same command continues it."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from tasks.params import JudgeParams, read_document, write_yaml
from tests.case_builders import BROKEN, REFERENCE, RIGHT, WRONG, batch, verdicts, write_cases, write_texts

SLOW = f"import subprocess\nimport time\n\nsubprocess.Popen(['sleep', '977'])\ntime.sleep(60)\n{RIGHT}"


@pytest.fixture(scope="module")
def first_verdict(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the first of two cases has a verdict."""
    folder = tmp_path_factory.mktemp("first_verdict")
    write_texts(folder)
    write_cases(folder / "cases.jsonl", "wrong.py")
    assert batch(cases=f"{folder}/cases.jsonl", out=f"{folder}/verdicts.jsonl") == 0
    write_cases(folder / "cases.jsonl", "wrong.py", BROKEN)
    return folder


@pytest.fixture
def begun(first_verdict: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, and the user in it."""
    shutil.copytree(first_verdict, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(path.parent.name))
    found, todo = [], [pid]
    while todo:
        found += (new := children.get(todo.pop(), []))
        todo += new
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_asleep(pid: int) -> bool:
    """Whether a candidate below the process has come to start its sleep."""
    return any(b"sleep\x00977" in Path(f"/proc/{child}/cmdline").read_bytes() for child in descendants(pid))


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("cut", [0, 4, 60], ids=lambda cut: f"torn after {cut} bytes")
def test_a_torn_last_line_is_judged_again(begun: Path, cut: int) -> None:
    first = (begun / "verdicts.jsonl").read_bytes()
    with (begun / "verdicts.jsonl").open("ab") as file:
        file.write(first.replace(b"case 0", b"case 1")[:cut])
    assert batch() == 0
    assert (begun / "verdicts.jsonl").read_bytes().startswith(first)
    rows = verdicts(begun / "verdicts.jsonl")
    assert [(row["id"], row["status"]) for row in rows] == [("case 0", "wrong_output"), ("case 1", "compile_error")]


@pytest.fixture
def whole(begun: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with a verdict on its only case, on a machine where a judge must not be started."""
    write_cases(begun / "cases.jsonl", "wrong.py")

    def open_judge(params: JudgeParams) -> NoReturn:
        pytest.fail("a judge was started")

    monkeypatch.setattr("flows.panels.judges.open_judge", open_judge)
    return begun


def test_a_finished_batch_needs_no_judge(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (whole / "verdicts.jsonl").read_bytes()
    assert batch() == 0
    assert (whole / "verdicts.jsonl").read_bytes() == before
    assert "1 verdict in verdicts.jsonl: 1 wrong_output" in capsys.readouterr().err


def other_text(folder: Path) -> None:
    (folder / "wrong.py").write_text(WRONG + "# changed\n")


def other_reference(folder: Path) -> None:
    (folder / "ref.py").write_text(REFERENCE + "# changed\n")


def other_order(folder: Path) -> None:
    lines = (folder / "cases.jsonl").read_text().splitlines(keepends=True)
    (folder / "cases.jsonl").write_text("".join(reversed(lines)))


def fewer_cases(folder: Path) -> None:
    (folder / "cases.jsonl").write_text("")


def other_protocol(folder: Path) -> None:
    text = (folder / "verdicts.jsonl").read_text()
    (folder / "verdicts.jsonl").write_text(text.replace('"protocol": "', '"protocol": "older-'))


def other_device(folder: Path) -> None:
    text = (folder / "verdicts.jsonl").read_text()
    (folder / "verdicts.jsonl").write_text(text.replace('"device": "', '"device": "another '))


def other_tier(folder: Path) -> None:
    text = (folder / "verdicts.jsonl").read_text()
    (folder / "verdicts.jsonl").write_text(text.replace('"tier": "screen"', '"tier": "long"'))


def other_precision(folder: Path) -> None:
    text = (folder / "cases.jsonl").read_text()
    (folder / "cases.jsonl").write_text(text.replace("}", ', "precision": "tf32"}'))


def something_else(folder: Path) -> None:
    (folder / "verdicts.jsonl").write_text("precious notes without a line break at the end")


def some_json(folder: Path) -> None:
    (folder / "verdicts.jsonl").write_text('{"id": \n')


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(other_text, "another text or precision of case 'case 0'", id="candidate changed"),
        pytest.param(other_reference, "another text or precision of case 'case 0'", id="reference changed"),
        pytest.param(other_order, "is on case 'case 0', not 'case 1'", id="other order"),
        pytest.param(fewer_cases, "1 verdicts for 0 cases", id="fewer cases"),
        pytest.param(other_protocol, ", older-", id="other protocol"),
        pytest.param(other_tier, ", long, this is", id="other tier"),
        pytest.param(other_precision, "another text or precision of case 'case 0'", id="other precision"),
        pytest.param(other_device, "was begun on another", id="other device"),
        pytest.param(something_else, "something other than verdicts", id="no verdicts"),
        pytest.param(some_json, "line 1 is no verdict", id="no JSON"),
    ],
)
def test_verdicts_on_something_else_are_not_continued(
    begun: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], None], words: str
) -> None:
    change(begun)
    before = (begun / "verdicts.jsonl").read_bytes()
    assert batch() == 2
    assert words in capsys.readouterr().err
    assert (begun / "verdicts.jsonl").read_bytes() == before


def no_change(folder: Path) -> None:
    pass


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        pytest.param(no_change, ["--tier", "long"], ", screen, this is", id="other tier asked for"),
        pytest.param(other_protocol, [], ", older-", id="other protocol"),
        pytest.param(other_device, [], "was begun on another", id="other device"),
    ],
)
def test_a_finished_batch_that_was_begun_in_another_way_is_refused_without_a_judge(
    whole: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], None], options: list[str], words: str
) -> None:
    change(whole)
    before = (whole / "verdicts.jsonl").read_bytes()
    assert batch(*options) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "delete it or give another --out" in said
    assert (whole / "verdicts.jsonl").read_bytes() == before


def test_a_finished_batch_is_not_taken_for_one_of_a_gpu(
    whole: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tasks.judge.environment.Device", lambda index: SimpleNamespace(name=f"GPU {index}"))
    assert batch("--device", "cuda:1") == 2
    assert ", this is GPU 1, " in capsys.readouterr().err


def test_only_a_cluster_can_say_that_a_finished_batch_was_begun_on_other_gpus(
    whole: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = read_document(Path(__file__).parents[1] / "params.yaml")
    document["judge"]["device"] = "cuda"
    (whole / "params.yaml").write_text(write_yaml(document))
    (whole / "dvc.yaml").touch()

    @contextlib.contextmanager
    def open_judge(params: JudgeParams) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(device=f"a GPU of {params.device}", environment={"walls": ""})

    monkeypatch.setattr("flows.panels.judges.open_judge", open_judge)
    assert batch() == 2
    assert ", this is a GPU of cuda, " in capsys.readouterr().err


def test_two_batches_cannot_write_one_file(begun: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (begun / "verdicts.jsonl").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert batch() == 3
    assert "another process is writing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "status"),
    [
        pytest.param(signal.SIGINT, 130, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
        pytest.param(signal.SIGKILL, -9, id="SIGKILL"),
    ],
)
def test_a_batch_that_is_ended_leaves_whole_lines_and_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    write_texts(tmp_path)
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "cases.jsonl", "wrong.py", SLOW, SLOW + "\n", "wrong.py")
    out = tmp_path / "verdicts.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "flows.cli", "judge", "--batch", "cases.jsonl", "--out", "verdicts.jsonl"],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert eventually(lambda: out.exists() and out.read_bytes().endswith(b"\n") and is_asleep(process.pid))
        started = descendants(process.pid)
        process.send_signal(number)
        assert process.wait(timeout=30) == status
    finally:
        process.kill()
    assert eventually(lambda: not any(map(is_running, started)))
    assert [row["status"] for row in verdicts(out)] == ["wrong_output"]

    write_cases(tmp_path / "cases.jsonl", "wrong.py", BROKEN)
    assert batch() == 0
    assert [row["status"] for row in verdicts(out)] == ["wrong_output", "compile_error"]
