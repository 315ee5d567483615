"""The page that bench_learning writes, from the metrics of a real run."""

import copy
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from flows.benches import learning
from flows.benches.learning import ABLATIONS, report

METRICS = json.loads(Path("data/evaluate/metrics.json").read_text())


@pytest.fixture
def page() -> str:
    return report({(seed, exemplars): METRICS for seed in (0, 1) for exemplars in ABLATIONS}, "bench")


def test_every_policy_and_ablation_has_a_row_with_each_seeds_number(page):
    share = f"{100 * METRICS['contrastive_rl']['train']['sampled']['correct']:.0f}"
    sampled = page.split("## train, sampled")[1].split("##")[0]
    for name in ("sft", "self_supervised", *ABLATIONS.values()):
        assert f"| {name} |" in sampled
    assert f"{share} ({share}, {share}) %" in sampled


def test_a_policy_without_a_correct_sample_has_no_speedup():
    metrics = copy.deepcopy(METRICS)
    del metrics["sft"]["train"]["sampled"]["speedup"]
    sampled = report({(0, "buckets"): metrics}, "bench").split("## train, sampled")[1].split("##")[0]
    assert [line.startswith("| sft |") for line in sampled.splitlines() if line.endswith("| - |")] == [True]


def test_gains_come_with_their_intervals(page):
    gain = METRICS["contrastive_rl"]["train"]["sampled"]["gain"]
    assert f"{gain['ratio']:.2f} ({gain['low']:.2f} to {gain['high']:.2f})" in page


def test_the_page_says_what_was_laid_over_the_profile_and_where_it_was_judged():
    found = {(0, "buckets"): METRICS}
    page = report(found, "gpu-small", device="cuda", settings=["sft.steps=600", "problems.limit=36"])
    assert page.startswith("# Learning on a GPU\n")
    assert "Over the profile: `sft.steps=600`, `problems.limit=36`." in page
    assert "Over the profile" not in report(found, "bench")


def test_the_page_is_written_below_work_unless_a_place_is_named(tmp_path, monkeypatch):
    on_cpu = SimpleNamespace(judge=SimpleNamespace(device="cpu"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(learning, "run", lambda *_: METRICS)
    monkeypatch.setattr(learning, "load_params", lambda path: on_cpu)
    monkeypatch.setattr("sys.argv", ["learning", "--seeds", "0", "--exemplars", "buckets"])
    learning.main()
    assert [path for path in Path().rglob("*") if path.is_file()] == [Path("work/bench/learning.md")]
