"""`cuda-l1 optimize` with language models behind a real server, and with a real policy."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from flows.cli import main
from flows.optimizing.answers import ANSWERS
from flows.optimizing.providers import chosen
from flows.optimizing.writers import PURCHASES
from flows.soaks.provider import hostile_server
from tasks.errors import MachineError, ProblemError, ProviderError
from tasks.search.contrastive import IslandsChoice
from tasks.search.contributions import proposed_as
from tasks.search.search import SCREEN
from tasks.variants.candidate import Candidate
from tasks.variants.llm.ledger import Ledger
from tests.provider_builders import (
    PRICED,
    ROOT,
    answers_in,
    make_project,
    model,
    proposing,
    reported,
    requests_of,
    searched,
    write_params,
)
from tests.test_optimize_command import QUICK


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server") / "server.jsonl"


@pytest.fixture(scope="module")
def url(log: Path) -> Iterator[str]:
    with hostile_server(log) as url:
        yield url


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_the_compiler_emits_is_searched_too(project: Path) -> None:
    write_params(project, {})
    outcome = searched(project, "compiler")
    origins = {each.candidate.origin for each in outcome.progress.at(SCREEN)}
    assert origins == {"compiler"}, outcome.progress.failed
    assert "inductor" in outcome.progress.at(SCREEN)[0].candidate.recipe


def test_the_compiler_is_refused_where_it_has_nothing_to_write(project: Path) -> None:
    write_params(project, {})
    with pytest.raises(ProblemError, match="leave it out for cuda:0"), proposing(project, "compiler", device="cuda:0"):
        pass


def test_a_search_that_does_not_begin_leaves_nothing_running(project: Path) -> None:
    write_params(project, {})
    with proposing(project, "compiler") as (providers, _):
        assert providers.proposers[0].propose([]) is None
        (compiling,) = providers.proposers[0].pending
    assert compiling.done()
    with pytest.raises(ProviderError, match="was not waited for"):
        compiling.result()


@pytest.mark.parametrize(
    "names", [("a/found", "b/found"), ("compiler", "./compiler"), ("builtin", "./rewrites")], ids=lambda names: names[1]
)
def test_providers_of_one_name_are_refused(project: Path, names: tuple[str, str]) -> None:
    for folder in ("a/found", "b/found", "compiler", "rewrites"):
        (project / folder).mkdir(parents=True)
    with pytest.raises(ProblemError, match=f"--provider {names[0]} and --provider {names[1]} would both be called"):
        chosen(names, max_usd=None)


def test_islands_are_refused_where_nobody_is_asked_with_a_prompt(project: Path) -> None:
    write_params(project, {})
    with pytest.raises(ProblemError, match="--exemplars islands is for prompts"):
        chosen(["builtin", "compiler"], max_usd=None, exemplars="islands")


def test_islands_are_as_many_as_in_training(project: Path) -> None:
    write_params(project, {"mine": model("http://localhost:1/v1", "climbing")})
    assert chosen(["mine"], max_usd=None).islands is None
    assert chosen(["mine"], max_usd=None, exemplars="islands").islands == IslandsChoice(count=4, reset_rounds=10)


def test_an_answer_to_a_prompt_with_exemplars_wins_and_the_report_says_how(project: Path, url: str, log: Path) -> None:
    write_params(project, {"mine": model(url, "climbing", **PRICED)})
    outcome = searched(project, "mine", max_usd=1.0)
    assert outcome.winner is not None
    made_of = proposed_as(outcome.winner[1], outcome.progress.scored)
    assert made_of is not None
    assert made_of.candidate.origin == "mine"
    first, second = sorted(answers_in(project), key=lambda row: row["number"])[:2]
    assert first["exemplar_ids"] == []
    assert second["exemplar_ids"] == [first["candidate_id"]]
    assert second["candidate_id"] == made_of.candidate.candidate_id
    assert first["source"].strip() in second["prompt"]
    report = reported(project, outcome)
    assert f"question 1, which showed {first['candidate_id'][:8]} at 1.00x" in report
    tokens = sum(row["tokens"] for row in requests_of(log, "climbing"))
    assert f"| mine | 4 | 0 | 0 | 4 | 4 | 3.00x (2.98 to 3.02) | {tokens} |" in report


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A server that a test may kill."""
    command = [sys.executable, str(ROOT / "tests" / "llm_server.py"), str(tmp_path / "mortal.jsonl")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield server
    server.kill()
    server.communicate()


def test_an_endpoint_that_dies_ends_its_proposer_and_the_others_go_on(
    project: Path, mortal: subprocess.Popen[str]
) -> None:
    assert mortal.stdout is not None
    write_params(project, {"mine": model(f"http://127.0.0.1:{mortal.stdout.readline().strip()}/v1", "right")})
    num_seen = 0

    def speeds(rung: str, candidate: Candidate) -> float:
        nonlocal num_seen
        if candidate.origin == "mine" and rung == SCREEN:
            num_seen += 1
            if num_seen == 2:
                mortal.kill()
                mortal.wait()
        return 1.0

    outcome = searched(project, "builtin", "mine", speeds=speeds, candidates=20, in_turn=True)
    assert "questions in a row without an answer: ConnectError" in outcome.progress.failed["mine"]
    by = [each.candidate.origin for each in outcome.progress.at(SCREEN)]
    assert by.count("mine") == 2
    assert by.count("rewrites") == 18
    assert "in a row without an answer: ConnectError" in reported(project, outcome)


def test_refused_prompts_are_counted_and_asked_again_by_another_run(project: Path, url: str, log: Path) -> None:
    write_params(project, {"mine": model(url, "status-400")})
    for num_runs in (1, 2):
        outcome = searched(project, "mine")
        assert [row["form"] for row in answers_in(project)] == ["refused"] * 9 + [None]  # which ended it
        assert "status 400" in answers_in(project)[0]["detail"]
        assert "in a row without an answer: status 400" in outcome.progress.failed["mine"]
        assert len(requests_of(log, "status-400")) == 10 * num_runs
        assert outcome.contributions[0].num_unanswered == outcome.contributions[0].num_asked


def test_what_is_bought_costs_no_more_than_allowed(project: Path, url: str, log: Path) -> None:
    write_params(project, {"mine": model(url, "right", **PRICED)})
    before = len(requests_of(log, "right"))
    outcome = searched(project, "mine", candidates=40, max_usd=0.006)
    assert "raise max_usd" in outcome.progress.failed["mine"]
    (mine,) = outcome.contributions
    assert 0 < mine.num_judged == len(requests_of(log, "right")) - before
    assert 0 < mine.cost.usd <= 0.006


def test_answers_without_a_program_are_counted_and_not_judged(project: Path, url: str) -> None:
    write_params(project, {"mine": model(url, "chatty")})
    outcome = searched(project, "mine")
    assert outcome.progress.at(SCREEN) == []
    assert outcome.contributions[0].num_without_program == outcome.contributions[0].num_asked == 20
    assert outcome.progress.failed["mine"].startswith("20 answers in a row without a new program")


def test_the_same_again_buys_nothing_and_finds_the_same(project: Path, url: str, log: Path) -> None:
    write_params(project, {"mine": model(url, "climbing")})
    before = len(requests_of(log, "climbing"))
    first = searched(project, "mine")
    (project / ANSWERS).write_text("".join((project / ANSWERS).read_text().splitlines(keepends=True)[:-1]))
    again = searched(project, "mine")
    assert len(requests_of(log, "climbing")) - before == 4
    assert first.winner is not None
    assert again.winner is not None
    assert again.winner[0].source == first.winner[0].source


def test_who_leaves_waits_for_no_answer_and_counts_it_as_paid(project: Path, url: str) -> None:
    write_params(project, {"mine": model(url, "trickles", **PRICED)})  # an answer that takes 20 s
    with proposing(project, "mine", max_usd=1.0) as (providers, _):
        assert providers.proposers[0].propose([]) is None
        (answer,) = providers.proposers[0].pending
        most = providers.spent()["mine"]
        while not most.usd:
            most = providers.spent()["mine"]
    assert answer.cancelled()
    with closing(Ledger(project / PURCHASES)) as ledger:
        assert ledger.spent("mine") == most
        assert ledger.spent("another").usd == 0


def test_two_runs_do_not_buy_in_one_folder_at_once(project: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.variants.llm.ledger.PATIENCE_S", 0.1)
    write_params(project, {"mine": model(url, "right")})
    with closing(Ledger(project / PURCHASES)) as ledger:
        ledger.spent()
        with pytest.raises(MachineError, match="another process is buying"), proposing(project, "mine"):
            pass


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["nobody"], "nor a name under generate_variants.generators of", id="unknown"),
        pytest.param(["nobody"], "(cheap, dear, locked)", id="names those that there are"),
        pytest.param(["dear"], "dear has a price: say with --max-usd", id="a price and no cap"),
        pytest.param(["locked"], "environment variable NOT_SET_ANYWHERE, which is not set", id="no key"),
        pytest.param(["policy:./nowhere"], "--provider policy:./nowhere: no model at nowhere", id="no policy"),
        pytest.param(["cheap", "--max-usd", "0"], "'0' is not a number of USD above 0", id="no money"),
    ],
)
def test_providers_that_cannot_be_are_refused_before_anything_is_judged(
    project: Path, url: str, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    generators = {"cheap": model(url, "right"), "dear": model(url, "right", **PRICED)}
    write_params(project, generators | {"locked": model(url, "right", key_variable="NOT_SET_ANYWHERE")})
    try:
        status = main(["optimize", "slow.py", *QUICK, "--provider", *arguments])
    except SystemExit as ended:
        status = int(ended.code or 0)
    assert status in (1, 2)
    assert words in capsys.readouterr().err
    assert not (project / "slow-optimized" / "journal.jsonl").exists()
