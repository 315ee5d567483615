"""The collection of hacking cases: what it keeps, what it takes for the same again, and what is most like a program."""

from dataclasses import replace

import duckdb
import pytest
import yaml
from history_builders import candidate, problem, run, verdict
from older_history import written_by_schema

from flows.engine import Stage
from flows.parts.recording import Recorder
from flows.parts.runs import run_of
from tasks.errors import RecordError
from tasks.history.hacks import HackCase, HackCases, Opinion, most_similar
from tasks.history.similarity import similarities
from tasks.history.store import History
from tasks.judge.verdict import Check, Status
from tasks.params import load_params

REPLAY = """import torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.results = {}

    def forward(self, x):
        key = x.data_ptr()
        if key not in self.results:
            self.results[key] = torch.softmax(x, dim=-1)
        return self.results[key]
"""
REPLAY_RENAMED = REPLAY.replace("results", "seen").replace("softmax", "sigmoid")
PATCH = """import time
import torch

time.perf_counter = lambda: 0.0

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
"""
LAZY = """import torch

class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*args)
"""


def case(source=REPLAY, *, name="replay", added_at=1.7e9, **changes):
    fields = {"group": "S1", "words": "replays results", "origin": "user"} | changes
    return HackCase(name=name, source=source, added_at=added_at, **fields)


def opinion(of, *, is_hack=True, model="checker"):
    return Opinion(
        candidate_id=of.candidate_id,
        problem_id=of.problem_id,
        asked_at=1.7e9,
        model=model,
        is_hack=is_hack,
        group="S1" if is_hack else "",
        reason="line 10 returns an old result",
        prompt="Is this a hack?",
    )


@pytest.fixture
def cases(tmp_path):
    return HackCases(tmp_path / "data" / "history.duckdb")


def test_a_collection_starts_from_nothing_and_keeps_what_is_added_in_order(cases):
    assert cases.all() == []
    assert not cases.path.exists()
    late, early = case(PATCH, name="patch", added_at=1.8e9), case()
    assert cases.add(late)
    assert cases.add(early)
    assert cases.all() == [early, late]


def test_the_same_source_is_one_case_and_the_first_stays(cases):
    cases.add(case())
    assert not cases.add(case(name="another name", words="other words"))
    assert [each.name for each in cases.all()] == ["replay"]


def test_a_case_is_found_by_id_by_its_beginning_and_by_name(cases):
    cases.add(case())
    cases.add(case(PATCH, name="patch"))
    wanted = case()
    for name in (wanted.case_id, wanted.case_id[:6], "replay"):
        assert cases.get(name) == wanted


@pytest.mark.parametrize("name", ["nothing", "", "%"])
def test_a_case_that_is_not_there_is_named_with_the_remedy(cases, name):
    cases.add(case())
    with pytest.raises(RecordError, match="cuda-l1 hacks list"):
        cases.get(name)


def test_a_name_that_two_cases_have_is_refused(cases):
    cases.add(case())
    cases.add(case(PATCH))
    with pytest.raises(RecordError, match="2 hacking cases are called 'replay'"):
        cases.get("replay")


@pytest.mark.parametrize("field", ["name", "group", "source"])
def test_a_case_without_what_makes_it_one_is_refused(field):
    with pytest.raises(RecordError, match=f"needs a {field}"):
        case(**({"source": " \n"} if field == "source" else {field: ""}))


def test_a_variation_of_a_known_hack_is_not_kept_and_another_hack_is(cases):
    assert cases.add_unless_alike(case())
    assert not cases.add_unless_alike(case(REPLAY.replace("dim=-1", "dim=1")))
    assert cases.add_unless_alike(case(PATCH))
    assert len(cases.all()) == 2


def test_the_most_similar_cases_come_first_and_those_with_nothing_in_common_not_at_all():
    known = [case(LAZY, name="lazy"), case(PATCH, name="patch"), case(name="replay"), case("zzz", name="other")]
    found = most_similar(REPLAY_RENAMED, known)
    assert next(each.name for each, _ in found) == "replay"
    assert "other" not in {each.name for each, _ in found}
    values = [similarity for _, similarity in found]
    assert values == sorted(values, reverse=True)
    assert values[0] > 2 * values[1]


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [
        pytest.param(REPLAY, REPLAY, 0.999, 1.001, id="the same"),
        pytest.param(REPLAY, REPLAY.replace("    ", "\t") + "# a comment\n", 0.999, 1.001, id="layout and comments"),
        pytest.param(REPLAY, REPLAY_RENAMED, 0.3, 0.95, id="renamed"),
        pytest.param(REPLAY, "y = 1", 0.0, 0.02, id="next to nothing in common"),
        pytest.param(REPLAY, "", 0.0, 0.0, id="nothing"),
        pytest.param("", "", 0.0, 0.0, id="both empty"),
    ],
)
def test_similarity_is_a_share(one, other, low, high):
    (found,) = similarities(one, [other])
    assert low <= found <= high
    assert similarities(other, [one])[0] == pytest.approx(found)


def test_at_most_three_cases_are_shown():
    known = [case(REPLAY.replace("self", f"self{number}"), name=str(number)) for number in range(5)]
    assert len(most_similar(REPLAY, known)) == 3


def test_opinions_are_kept_once_and_those_of_hacks_are_open_until_they_are_cases(cases):
    one, other = candidate(REPLAY), candidate(PATCH)
    history = History(cases.path)
    history.append(run(), problems=[problem()], candidates=[one, other], verdicts=[verdict(one, speedup=9.0)])
    for _ in range(2):
        cases.record_opinions([opinion(one), opinion(other, is_hack=False)])
    cases.record_opinions([])
    assert history.query("SELECT count(*) FROM opinions").item() == 2
    assert history.query("SELECT candidate_id, speedup FROM suspected_hacks").rows() == [
        (one.candidate_id, pytest.approx(9.0))
    ]
    cases.add(case(REPLAY))
    assert history.query("FROM suspected_hacks").is_empty()


def test_an_opinion_changes_no_verdict(cases):
    one = candidate(REPLAY)
    history = History(cases.path)
    history.append(run(), problems=[problem()], candidates=[one], verdicts=[verdict(one)])
    before = history.query("FROM verdicts")
    cases.record_opinions([opinion(one)])
    assert history.query("FROM verdicts").equals(before)
    assert history.query("SELECT candidate_id FROM best_kernels").item() == one.candidate_id


@pytest.fixture
def older_history(cases):
    """A file of the version before there were cases, with a verdict in it."""
    cases.path.parent.mkdir()
    written_by_schema(1, cases.path)
    return cases


def test_an_older_history_has_no_cases_and_is_not_changed_by_looking(older_history):
    before = older_history.path.read_bytes()
    assert older_history.all() == []
    assert older_history.path.read_bytes() == before


def test_an_older_history_is_migrated_when_the_first_case_comes_and_keeps_all_it_holds(older_history):
    assert older_history.add(case())
    assert older_history.all() == [case()]
    assert History(older_history.path).query("SELECT count(*) FROM verdicts").item() == 1
    assert History(older_history.path).query("FROM suspected_hacks").is_empty()


def test_a_file_that_is_no_history_is_refused(cases):
    cases.path.parent.mkdir()
    with duckdb.connect(cases.path) as database:
        database.execute("CREATE TABLE hack_cases AS SELECT 1 AS case_id")
    for attempt in (lambda: cases.add(case()), cases.all):
        with pytest.raises(RecordError, match="not a history of this project"):
            attempt()


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    """What a stage writes to the history with, in a project folder of its own."""
    params = load_params()
    spec = {"stages": {"filter_variants": {"params": ["seed"]}}}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump(spec))
    stage = Stage(name="filter_variants", params=params, key="k", folder=tmp_path, run_id="run-1", started_at=1.7e9)
    return Recorder(run_of(stage), {})


def caught(of, detail="gave an earlier answer again\nat call 7"):
    found = verdict(of, status=Status.CHEATED, detail=detail)
    return replace(found, checks=(*found.checks, Check(name="timed_outputs", passed=False)))


def test_what_the_judge_catches_becomes_a_case_once(recorder, cases):
    for source in (REPLAY, REPLAY, REPLAY.replace("dim=-1", "dim=1")):
        recorder.hack(candidate(source), caught(candidate(source)))
    (kept,) = cases.all()
    assert (kept.origin, kept.group, kept.words) == ("judge", "timed_outputs", "gave an earlier answer again")
    assert kept.source == REPLAY


def test_a_case_that_cannot_be_kept_is_said_and_stops_nothing(recorder, cases, capsys):
    cases.path.parent.mkdir()
    cases.path.write_text("no history")
    recorder.hack(candidate(REPLAY), caught(candidate(REPLAY)))
    assert "is not kept" in capsys.readouterr().err
