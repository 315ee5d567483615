"""The judge on a GPU against the same sorts of enemies and honest users: every kernel gets the verdict it declares."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import torch

from tasks.judge.judge import Judge
from tasks.judge.screen import screen
from tasks.judge.verdict import Status, Track, Verdict
from tasks.params import JudgeParams
from tests.judge_builders import kernels

KERNELS = {kernel.name: kernel for kernel in kernels(device="cuda")}
# A build through load_inline takes a minute, and the libraries of CUDA several gigabytes of addresses.
PARAMS = JudgeParams(device="cuda:0", workers=4, trials=3, rounds=5, timeout_s=180.0, memory_bytes=16 << 30)
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture(scope="module")
def verdicts() -> Iterator[dict[str, Future[Verdict]]]:
    """All verdicts of one judge; those of one problem in a row."""
    in_order = sorted(KERNELS.values(), key=lambda kernel: kernel.declared["PROBLEM"])
    with Judge(PARAMS) as judge, ThreadPoolExecutor(PARAMS.workers) as pool:
        yield {kernel.name: pool.submit(judge.judge, kernel.problem, kernel.candidate, seed=0) for kernel in in_order}


@pytest.mark.gpu
@pytest.mark.timeout(3600)
@needs_gpu
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_gets_the_verdict_it_declares(name: str, verdicts: dict[str, Future[Verdict]]) -> None:
    declared = KERNELS[name].declared
    verdict = verdicts[name].result()
    assert verdict.status in KERNELS[name].expected, f"{verdict.detail}\n{verdict.checks}"
    if "TRACK" in declared:
        assert verdict.track == declared["TRACK"]
    if "MAX_SPEEDUP" in declared and verdict.is_correct:
        assert verdict.speedup is not None
        assert verdict.speedup <= declared["MAX_SPEEDUP"]


@pytest.mark.gpu
@needs_gpu
def test_the_device_is_as_it_was(verdicts: dict[str, Future[Verdict]]) -> None:
    for verdict in verdicts.values():
        verdict.result()
    free_bytes, total_bytes = torch.cuda.mem_get_info(0)
    assert free_bytes > 0.8 * total_bytes, "a candidate's memory was not given back"
    assert torch.ones(1 << 20, device="cuda:0").sum().item() == 1 << 20


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_says_what_the_tests_need_to_know(name: str) -> None:
    kernel = KERNELS[name]
    statuses = {status.value for status in Status}
    assert set(kernel.expected) <= statuses
    assert kernel.declared.get("TRACK", Track.KERNEL) in set(Track)
    assert ("GROUP" in kernel.declared) == ("hostile" in name)
    if "hostile" in name and Status.CORRECT in kernel.expected:
        assert kernel.declared["MAX_SPEEDUP"] <= 1.05, "what may be correct must not be paid"
    if "honest" in name:
        assert kernel.expected == (Status.CORRECT,)
    assert screen(kernel.source).status is None
