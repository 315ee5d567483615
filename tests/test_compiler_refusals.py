"""What the compiler provider refuses, and how the process that compiles ends."""

import threading
import time
from functools import partial

import pytest
import torch

from tasks.search.bundle import bundle
from tasks.search.texts import with_prefix
from tasks.search.user_file import read_user_file
from tasks.variants.compiler import child
from tasks.variants.compiler.cpp import CppEmitter
from tasks.variants.compiler.emission import NotSelfContainedError
from tasks.variants.compiler.process import Refused, emit
from tasks.variants.compiler.provider import CompilerProvider
from tasks.variants.compiler.wrapper import read_wrapper
from tests.program_builders import problem
from tests.test_compiler_provider import emitted_here, needs_compiler, problem_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("inputs", ["x, x", "x, x[1:]"], ids=["the same", "a part"])
def test_inputs_that_share_memory_are_refused(inputs, tmp_path, monkeypatch):
    source = problem("return a[1:] - b[-1:]", "torch.randn(8)", arguments="a, b")
    source += f"\n\ndef get_inputs():\n    x = torch.randn(8)\n    return [{inputs}]\n"
    with pytest.raises(child.RefusedError, match="inputs share memory"):
        emitted_here(source, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("return x.add_(1.0)", "changes its inputs"),
        ("return x.view(-1)", "shares memory"),
        ("y = x * 2.0\nreturn y, y[0]", "shares memory"),
        ("return {'y': x * 2.0}", "something else than tensors"),
        ("self.calls = getattr(self, 'calls', 0) + 1\nreturn x * self.calls", "keeps something"),
        ("self.seen.append(0)\nreturn x * len(self.seen)", "keeps something"),
        ("for _ in range(400):\n    x = torch.sin(x) + 0.1\nreturn x", "operations"),
        ("print(x.sum().item())\nreturn x * 2.0", "Unsupported|item|break"),
    ],
    ids=["in place", "view", "views", "mapping", "counter", "list", "unrolled", "graph break"],
)
def test_what_would_not_hold_is_refused(lines, why, tmp_path, monkeypatch):
    with pytest.raises((child.RefusedError, torch._dynamo.exc.Unsupported), match=why):
        emitted_here(
            problem(lines, "torch.randn(5, 6)", init="self.seen = [size0]", init_arguments="1"), tmp_path, monkeypatch
        )


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("buf0 = extern_kernels.grouped(arg0_1)", "extern_kernels"),
        ("buf0 = triton_poi_fused_0.run(arg0_1, 8)", "triton_poi_fused_0"),
        ("buf0 = _tensor_constant0 * arg0_1", "_tensor_constant0"),
    ],
    ids=["operator", "kernel", "constant"],
)
def test_emitted_code_that_needs_inductor_is_refused(statement, why):
    text = f"def call(args):\n    arg0_1, = args\n    args.clear()\n    {statement}\n    return (buf0, )\n"
    with pytest.raises(NotSelfContainedError, match=why):
        read_wrapper(text)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import time\ntime.sleep(600)", "longer than 2 s"),
        ("import os\nos._exit(7)", "ended with status 7"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
        ("import os\nos.write(2, b'first\\nno room')\nos._exit(1)", "ended with status 1: no room"),
    ],
    ids=["hangs", "ends", "is killed", "says why"],
)
def test_a_reference_that_does_not_run_costs_little_and_leaves_nothing(tmp_path, monkeypatch, source, why):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    started = time.monotonic()
    answers = emit(source, CppEmitter.variations[:2], timeout_s=2 if "sleep" in source else 120)
    assert [type(answer) for answer in answers] == [Refused, Refused]
    assert all(isinstance(answer, Refused) and why in answer.why for answer in answers)
    assert time.monotonic() - started < 100
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "source",
    [f"raise ValueError('{'word ' * 99}')", f"import os\nos.write(2, b'{'word ' * 99}')\nos._exit(1)"],
    ids=["an error", "last words"],
)
def test_a_long_message_is_cut_after_a_word_and_says_so(source):
    (answer,) = emit(source, CppEmitter.variations[:1], timeout_s=120)
    assert isinstance(answer, Refused)
    assert answer.why.endswith(" word ...")
    assert 150 < len(answer.why) < 400


@needs_compiler
def test_a_reference_that_imports_from_beside_itself_is_compiled_from_the_files_that_go_with_it(tmp_path):
    (tmp_path / "beside.py").write_text("FACTOR = 3.0\n")
    source = "from beside import FACTOR\n" + problem("return torch.relu(x) * FACTOR", "torch.randn(8, 16)")
    (tmp_path / "module.py").write_text(source)
    prefix = bundle(read_user_file(tmp_path / "module.py"))
    emitter = CppEmitter()
    emitter.variations = emitter.variations[:1]
    for standalone, count in ((lambda source: source, 0), (partial(with_prefix, prefix=prefix), 1)):
        provider = CompilerProvider(emitter, standalone=standalone)
        assert len(list(provider.candidates(problem_of(source), seed=0))) == count, provider.refused


@needs_compiler
def test_it_can_be_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    provider = CompilerProvider()
    threading.Timer(1.0, provider.stop).start()
    started = time.monotonic()
    assert (
        list(provider.candidates(problem_of("import time\ntime.sleep(600)\nModel = get_inputs = None"), seed=0)) == []
    )
    assert time.monotonic() - started < 60
    assert set(provider.refused["level2/small"].values()) == {"it was not waited for"}
    assert list(tmp_path.iterdir()) == []


def test_without_a_compiler_it_says_so_and_runs_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    provider = CompilerProvider()
    assert list(provider.candidates(problem_of("raise SystemExit\nModel = get_inputs = None"), seed=0)) == []
    assert all("g++" in why for why in provider.refused["level2/small"].values())
