"""What becomes of files in a problem folder's inbox: admitted, in quarantine with a reason, or left to wait."""

import os
import socket
from pathlib import Path

import pytest
import yaml

from flows.retraining import inbox
from flows.retraining.inbox import REASON_SUFFIX, Arrival, Fate, admit_problems
from tasks.judge.baselines import baseline_candidate
from tasks.judge.judge import Judge
from tasks.judge.verdict import Verdict
from tasks.params import ProblemsParams
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem, Split
from tests.judge_builders import PARAMS
from tests.retrain_builders import NEW, accept, write
from tests.training_builders import SCALED

DEGENERATE = SCALED.replace("torch.relu(out) * 2.0", "torch.relu(out) * 0.0")
CALLS_HOME = "import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\n" + SCALED
ENDS_ITS_PROCESS = SCALED.replace("out = self.linear(x)", "import os; os._exit(0)")


@pytest.fixture
def folder(tmp_path) -> Path:
    """A problem folder with one problem."""
    write(tmp_path, "level1/scaled.py", SCALED)
    (tmp_path / "catalogue.yaml").write_text("level1/scaled: {family: scaling, title: Scaled}")  # no newline at its end
    return tmp_path


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or path.is_file()}


def quarantined(folder: Path) -> tuple[Path, str]:
    """The one file in quarantine, and the reason beside it."""
    found = [path for path in (folder / "quarantine").rglob("*") if path.is_symlink() or path.is_file()]
    (path,) = (path for path in found if not path.name.endswith(REASON_SUFFIX))
    assert len(found) == 2
    return path, path.with_name(path.name + REASON_SUFFIX).read_text()


def problems(folder: Path) -> dict[str, Problem]:
    return load_problems(ProblemsParams(folders=(str(folder),), held_out_families=("halving",), limit=None))


def test_a_good_problem_moves_beside_the_others_with_its_family(folder):
    write(folder, "inbox/level2/halved.py", NEW)
    write(folder, "inbox/catalogue.yaml", "level2/halved: {family: halving, title: Halved}\n")
    assert list(admit_problems(folder, accept)) == [Arrival(name="level2/halved.py", fate=Fate.ADMITTED)]
    admitted = problems(folder)["level2/halved"]
    assert (admitted.source, admitted.family, admitted.split) == (NEW, "halving", Split.HELD_OUT)
    assert files(folder) == {"catalogue.yaml", "inbox/catalogue.yaml", "level1/scaled.py", "level2/halved.py"}


def test_what_waits_and_what_was_refused_are_no_problems(folder):
    write(folder, "inbox/level1/new.py", NEW)
    write(folder, "quarantine/level1/broken.py", "no python")
    (folder / "catalogue.yaml").write_text("level1/scaled: {family: halving}\n")
    assert list(problems(folder)) == ["level1/scaled"]


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        pytest.param("level1/new.py", "class Model:", "does not parse", id="broken"),
        pytest.param("level1/new.py", "x = 1\n", "lacks Model", id="no problem"),
        pytest.param("level1/new.py", b"\xff\xfe\x00", "cannot be read", id="no text"),
        pytest.param("level1/new.py", "(" * 5000, "parse", id="too deep"),
        pytest.param("new.py", NEW, "no level folder", id="outside of any level"),
        pytest.param("levels/new.py", NEW, "no level folder", id="in a folder that is no level"),
        pytest.param("level1/new.pkl", b"\x80\x04", "no Python file", id="a pickle"),
        pytest.param("level1/new.py", "#" * 300_000, "at most", id="too large"),
        pytest.param("level1/scaled.py", NEW, "another problem is called level1/scaled", id="name taken"),
        pytest.param(
            "level3/again.py", f"# mine\n{SCALED}\n", "is level1/scaled once more", id="known by another name"
        ),
    ],
)
def test_what_is_no_new_problem_goes_into_quarantine(folder, name, source, says):
    before = files(folder)
    path = write(folder, f"inbox/{name}", source)
    content = path.read_bytes()
    (arrival,) = admit_problems(folder, lambda problem: pytest.fail("nothing was to be run"))
    assert arrival.fate is Fate.QUARANTINED
    kept, reason = quarantined(folder)
    assert kept.read_bytes() == content
    assert says in reason
    assert says in arrival.reason
    assert {file for file in files(folder) if not file.startswith("quarantine")} == before


def test_links_and_pipes_are_never_opened(folder, tmp_path_factory):
    secret = write(tmp_path_factory.mktemp("elsewhere"), "secret.py", NEW)
    (folder / "inbox" / "level1").mkdir(parents=True)
    (folder / "inbox" / "level1" / "link.py").symlink_to(secret)
    os.mkfifo(folder / "inbox" / "level1" / "pipe.py")
    assert {arrival.fate for arrival in admit_problems(folder, accept)} == {Fate.QUARANTINED}
    assert list(problems_of(folder)) == ["level1/scaled.py"]
    assert secret.read_text() == NEW


def problems_of(folder: Path) -> list[str]:
    return sorted(name for name in files(folder) if name.endswith(".py") and name.startswith("level"))


def test_the_second_of_two_alike_is_told_of_the_first(folder):
    write(folder, "inbox/level1/a.py", NEW)
    write(folder, "inbox/level1/b.py", f"{NEW}\n# the same\n")
    first, second = admit_problems(folder, accept)
    assert (first.fate, second.fate) == (Fate.ADMITTED, Fate.QUARANTINED)
    assert "is level1/a once more" in second.reason


def test_two_refused_files_of_one_name_are_both_kept(folder):
    for source in ("x = 1", "x = 2"):
        write(folder, "inbox/level1/new.py", source)
        list(admit_problems(folder, accept))
    assert sorted(path.read_text() for path in (folder / "quarantine").rglob("*.py")) == ["x = 1", "x = 2"]


def test_problems_wait_where_their_families_cannot_be_told(folder):
    path = write(folder, "inbox/level1/new.py", NEW)
    write(folder, "inbox/catalogue.yaml", "level1/new: {family: [")
    (arrival,) = admit_problems(folder, accept)
    assert arrival.fate is Fate.WAITING
    assert "catalogue.yaml cannot be read" in arrival.reason
    assert path.exists()


def test_a_file_that_changes_meanwhile_waits(folder):
    path = write(folder, "inbox/level1/new.py", NEW)

    def examine(problem: Problem) -> Verdict:
        path.write_text(f"{NEW}# more\n")
        return accept(problem)

    (arrival,) = admit_problems(folder, examine)
    assert arrival.fate is Fate.WAITING
    assert path.read_text().endswith("# more\n")


@pytest.mark.parametrize("steps", range(8))
def test_a_kill_at_any_step_is_made_good_by_the_next_admission(folder, monkeypatch, steps):
    write(folder, "inbox/level2/halved.py", NEW)
    write(folder, "inbox/catalogue.yaml", "level2/halved: {family: halving}\n")
    write(folder, "inbox/level2/broken.py", "x = 1")
    left = iter(range(steps))

    def dying(method):
        def step(*arguments):
            if next(left, None) is None:
                raise KeyboardInterrupt
            return method(*arguments)

        return step

    with monkeypatch.context() as patched:
        for name in ("replace", "unlink", "write_bytes"):
            patched.setattr(inbox.Path, name, dying(getattr(Path, name)))
        try:
            list(admit_problems(folder, accept))
        except KeyboardInterrupt:
            alive = {path.read_bytes() for path in folder.rglob("*.py")}
            assert {NEW.encode(), b"x = 1"} <= alive
    list(admit_problems(folder, accept))
    assert problems(folder)["level2/halved"].split is Split.HELD_OUT
    assert list(yaml.safe_load((folder / "catalogue.yaml").read_text())) == ["level1/scaled", "level2/halved"]
    kept, reason = quarantined(folder)
    assert kept.read_text() == "x = 1"
    assert "lacks Model" in reason
    assert not [name for name in files(folder) if name.startswith("inbox/level")]


@pytest.mark.slow
def test_the_judge_tells_good_problems_from_degenerate_and_hostile_ones(folder):
    home = socket.create_server(("127.0.0.1", 0))
    home.setblocking(False)
    sources = {
        "good": NEW,
        "degenerate": DEGENERATE,
        "calls_home": CALLS_HOME.replace("{port}", str(home.getsockname()[1])),
        "ends": ENDS_ITS_PROCESS,
    }
    for name, source in sources.items():
        write(folder, f"inbox/level1/{name}.py", source)
    with home, Judge(PARAMS) as judge:
        arrivals = {
            arrival.name: arrival
            for arrival in admit_problems(
                folder, lambda problem: judge.judge(problem, baseline_candidate(problem, "eager"), seed=0)
            )
        }
        with pytest.raises(BlockingIOError):
            home.accept()
    assert {name for name, arrival in arrivals.items() if arrival.fate is Fate.ADMITTED} == {"level1/good.py"}
    assert "does not depend on its inputs" in arrivals["level1/degenerate.py"].reason
    assert arrivals["level1/ends.py"].reason
