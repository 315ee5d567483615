"""What a candidate that captures its forward as a CUDA graph does when it runs, and which way it takes."""

import textwrap

import libcst as cst
import pytest
import torch

from tasks.variants.rewrites.cuda_graph import compile_and_replay, replay_as_graph
from tasks.variants.rewrites.triton import reduction_in_triton
from tasks.variants.rewrites.triton_program import CHOOSING, has_functions
from tests.program_builders import HEADER, LINEAR, defined, outputs, problem, ready, rewritten
from tests.triton_stand_in import always, the_last_is_the_fastest, triton_on_the_processor, use_kernels

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
NAMED = f"""{HEADER}class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, t=None, *, scale=-1.0, shift):
        x = self.linear(x) * scale + shift
        return x if t is None else x + t


def example_inputs():
    return {{"shift": torch.randn(6, 8), "x": torch.randn(6, 8), "scale": 0.7, "t": torch.randn(6, 8)}}


def get_inputs():
    return example_inputs()


def get_init_inputs():
    return []
"""


@pytest.fixture
def graphed():
    """A captured module with its reference, on the device."""
    names, reference_names = defined(rewritten(LINEAR, replay_as_graph)), defined(LINEAR)
    # A graph that is no faster is not kept, and so small a forward may be as fast either way.
    names["graph_best_ms"] = the_last_is_the_fastest
    torch.manual_seed(0)
    model = names["ModelNew"](8).cuda()
    reference = reference_names["Model"](8).cuda()
    reference.load_state_dict(model.state_dict())
    yield model, reference, names["GRAPHS"]
    defined.cache_clear()


def _captures(graphs, model):
    return sum(value[-1] is not None for form, value in graphs.get(model, {}).items() if form != "captures")


@pytest.mark.gpu
@needs_gpu
@torch.no_grad()
def test_on_a_gpu_a_replay_follows_inputs_weights_and_shapes(graphed):
    model, reference, graphs = graphed
    kept = []
    for rows in (6, 6, 3, 3, 6):
        x = torch.randn(rows, 8, device="cuda")
        kept.append((model(x), reference(x)))
    assert _captures(graphs, model) == 2
    for changes in range(2):
        for one in (model, reference):
            if changes:
                one.weight = torch.nn.Parameter(torch.full((8,), 3.0, device="cuda"))
            else:
                one.weight.mul_(2.0)
        x = torch.randn(6, 8, device="cuda")
        kept.append((model(x), reference(x)))
    for found, expected in kept:  # all at the end: an earlier output must not have been written over
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("constant", "is_filled"),
    [
        ("torch.tensor(1. / 0.01, device=x.device)", True),
        ("torch.tensor(-3, dtype=torch.int64, device=x.device)", True),
        ("torch.tensor(1e40, device=x.device)", False),
        ("torch.tensor(3e38 - -3e38, device=x.device)", False),
        ("torch.tensor(-1e9, dtype=torch.float32, device=x.device)", False),
        ("torch.tensor(True, device=x.device)", False),
        ("torch.tensor(0.5)", False),
        ("torch.tensor(self.size, device=x.device)", False),
        ("torch.tensor([1.0, 2.0], device=x.device)[0]", False),
        ("torch.tensor(0.5, device=x.device, pin_memory=False)", False),
    ],
)
def test_a_number_is_filled_in_where_a_graph_could_not_copy_it(constant, is_filled):
    source = problem(f"return x * ({constant} + 2), {constant}", "torch.randn(3)", init="self.size = size0")
    source = source.replace("get_init_inputs():\n    return []", "get_init_inputs():\n    return [7]")
    candidate = rewritten(source, replay_as_graph)
    torch.testing.assert_close(*outputs(source, candidate))
    assert candidate.count("torch.full(()") == 2 * is_filled
    assert candidate.count("torch.tensor(") == 2 * (not is_filled)


@pytest.mark.parametrize("fastest", range(4), ids=["plain", "compiled", "plain replayed", "compiled replayed"])
def test_of_the_plain_and_the_compiled_forward_and_replays_of_both_the_fastest_is_taken(fastest):
    names = defined.__wrapped__(rewritten(LINEAR, compile_and_replay))
    model, _, inputs = ready(LINEAR, names)
    both = [names["PlainModel"].forward, names["graph_compiled"]]
    names["graph_best_ms"] = lambda calls: always(_least(len(calls), fastest))
    names["graph_compiled"] = lambda self, *inputs: names["PlainModel"].forward(self, *inputs)
    both[1] = names["graph_compiled"]
    names["ModelNew"].graph_captured = lambda self, way, inputs: ("a replay of", way)
    members, own_forward = ["members"], names["ModelNew"].forward
    made = model.graph_fastest(inputs, members)
    replays = [(members, None, ("a replay of", way)) for way in both]
    assert made == [([], both[0], None), ([], both[1], None), *replays][fastest]
    # What looks at inputs before every call is gone where it does not pay.
    assert names["ModelNew"].forward is (own_forward if fastest else both[0])


@pytest.mark.usefixtures("is_capturing")
@pytest.mark.parametrize("fastest", range(4), ids=["plain", "compiled", "plain replayed", "compiled replayed"])
def test_a_kernel_that_does_not_pay_is_asked_for_as_long_as_something_else_than_the_plain_forward_is_taken(fastest):
    source = problem("return torch.softmax(x, dim=-1) * 2.0", "torch.randn(70, 300)")
    with triton_on_the_processor():
        fused = rewritten(rewritten(source, reduction_in_triton), compile_and_replay)
        names = use_kernels(defined.__wrapped__(fused))
    model, _, inputs = ready(source, names)
    names["triton_best_ms"] = lambda calls: always([1.0, 2.0])
    names["graph_best_ms"] = lambda calls: always(_least(len(calls), fastest))
    names["graph_compiled"] = lambda self, *inputs: names["PlainModel"].forward(self, *inputs)
    names["ModelNew"].graph_captured = lambda self, way, inputs: ("a replay of", way)
    with torch.no_grad():
        model.graph_fastest(inputs, [])
    assert names["FASTEST"] == {("fused", 0, -1): [None, None]}
    assert (names["fused0"] is names["plain0"]) == (fastest == 0)


def _cannot_capture(names):
    def fails(*_):
        raise torch.OutOfMemoryError

    names["ModelNew"].graph_captured, names["graph_draws_again"] = fails, lambda: None


@pytest.mark.parametrize("fastest", [0, 1], ids=["plain", "compiled"])
def test_where_capturing_fails_the_fastest_of_the_others_is_taken_and_another_form_may_still_be_captured(fastest):
    names = defined.__wrapped__(rewritten(LINEAR, compile_and_replay))
    model, _, inputs = ready(LINEAR, names)
    names["graph_best_ms"] = lambda calls: always(_least(len(calls), fastest))
    _cannot_capture(names)
    way = [names["PlainModel"].forward, names["graph_compiled"]][fastest]
    assert model.graph_fastest(inputs, []) == ([], way, None)
    assert names["ModelNew"].forward is not names["PlainModel"].forward


def test_where_capturing_fails_and_nothing_is_compiled_the_plain_forward_stays_for_that_form():
    names = defined.__wrapped__(rewritten(LINEAR, replay_as_graph))
    model, _, inputs = ready(LINEAR, names)
    _cannot_capture(names)
    assert model.graph_fastest(inputs, []) == ([], None, None)
    assert names["ModelNew"].forward is not names["PlainModel"].forward


def test_where_compiling_fails_a_replay_of_the_plain_forward_is_still_taken():
    names = defined.__wrapped__(rewritten(LINEAR, compile_and_replay))
    model, _, inputs = ready(LINEAR, names)
    timed = []

    def fails(*_):
        raise RuntimeError

    def the_last(calls):
        timed.append(len(calls))
        return the_last_is_the_fastest(calls)

    names["graph_compiled"], names["graph_draws_again"], names["graph_best_ms"] = fails, lambda: None, the_last
    names["ModelNew"].graph_captured = lambda self, way, inputs: ("a replay of", way)
    members = ["members"]
    assert model.graph_fastest(inputs, members) == (members, None, ("a replay of", names["PlainModel"].forward))
    assert timed == [2]


def test_what_lies_elsewhere_is_looked_at_again_once_it_is_another_and_eight_times_at_most():
    names = defined.__wrapped__(rewritten(LINEAR, replay_as_graph))
    model, _, inputs = ready(LINEAR, names)
    names["graph_form"] = lambda *_: "a form"
    looked, made_of = [], names["ModelNew"].graph_made
    names["ModelNew"].graph_made = lambda self, *given: looked.append(1) or made_of(self, *given)
    for turn in range(20):
        model(*inputs)
        model(*inputs)
        assert len(looked) == 2 * min(turn + 1, names["MOST_CAPTURES"])
        model.weight = torch.nn.Parameter(torch.ones(8))


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        ("aabab", [False, "compiled", True, False, "compiled", True]),
        ("abcdefghi" * 3, [False, "compiled"] * 8 + [True] * 8),
    ],
    ids=["two forms", "one more than are captured"],
)
def test_the_first_call_of_a_form_compiles_and_the_next_one_chooses(forms, expected):
    names = defined.__wrapped__(rewritten(LINEAR, compile_and_replay))
    model, reference, inputs = ready(LINEAR, names)
    stages = []

    def made(self, inputs, is_compiled):
        stages.append(is_compiled)
        return ([], names["PlainModel"].forward, None) if is_compiled else self.graph_tried(inputs)

    names["graph_compiled"] = lambda module, x: stages.append("compiled") or names["PlainModel"].forward(module, x)
    names["ModelNew"].graph_made = made
    for form in forms:
        names["graph_form"] = lambda *_, form=form: form
        torch.testing.assert_close(model(*inputs), reference(*inputs))
    assert stages == expected
    assert names["GRAPHS"][model]["captures"] == len(set(forms))


def test_a_program_with_a_mistake_that_does_not_parse_is_looked_at_without_an_error():
    backwards = cst.Assign([cst.AssignTarget(cst.Call(cst.Name("relu")))], cst.Name("x"))
    program = cst.Module([cst.SimpleStatementLine([backwards])])
    assert not has_functions(program, CHOOSING)


def test_what_fails_to_compile_ahead_is_none_of_the_first_call():
    names = defined.__wrapped__(rewritten(LINEAR, compile_and_replay))
    model, _, inputs = ready(LINEAR, names)
    failed = []

    def fails(*_):
        raise RuntimeError

    names["graph_compiled"], names["graph_draws_again"] = fails, lambda: failed.append(1)
    assert model.graph_tried(inputs) is names["UNTIMED"]
    assert failed == [1]
    assert not names["graph_fits"](names["UNTIMED"][0])


def test_what_can_be_neither_compiled_nor_captured_runs_as_it_is():
    names = defined.__wrapped__(rewritten(LINEAR, compile_and_replay))
    model, reference, inputs = ready(LINEAR, names)

    def fails(*_):
        raise RuntimeError

    names["graph_compiled"] = fails
    for form, found in ((None, None), ("a form", ([], None, None))):
        names["graph_form"] = lambda *_, form=form: form
        names["ModelNew"].graph_made = lambda *_, found=found: found
        torch.testing.assert_close(model(*inputs), reference(*inputs))


def _handed_on(source):
    """The same program, whose forward another class has, as where layers get another forward for the time of a call."""
    inner = source.replace("class Model(nn.Module)", "class Inner(nn.Module)")
    outer = """class Model(Inner):
    def forward(self, *inputs, **named):
        return super().forward(*inputs, **named)


"""
    return inner.replace("def example_inputs", f"{outer}def example_inputs")


@pytest.mark.parametrize("source", [NAMED, _handed_on(NAMED)], ids=["its own forward", "one that is handed on to"])
@pytest.mark.parametrize("rewrite", [replay_as_graph, compile_and_replay])
def test_what_is_named_is_replayed_as_what_comes_by_position_whatever_its_order(source, rewrite):
    names = defined.__wrapped__(rewritten(source, rewrite))
    model, reference, inputs = ready(source, names)
    rows = []

    def replayed(captured, row):
        rows.append(row)
        return names["graph_plain"](model, *row)

    names["graph_form"], names["graph_replayed"] = lambda *_: "a form", replayed
    names["ModelNew"].graph_made = lambda self, inputs, is_compiled: ([], None, "a graph")
    expected = reference(**inputs)
    x, t, scale, shift = (inputs[name] for name in ("x", "t", "scale", "shift"))
    for positional, named in (
        ((), inputs),
        ((x, t), {"shift": shift, "scale": scale}),
        ((x,), {"scale": scale, "t": t, "shift": shift}),
    ):
        torch.testing.assert_close(model(*positional, **named), expected)
    torch.testing.assert_close(model(x, shift=shift), reference(x, shift=shift))
    given = [[each if isinstance(each, float) or each is None else id(each) for each in row] for row in rows]
    assert given == [[id(x), id(t), scale, id(shift)]] * 3 + [[id(x), None, -1.0, id(shift)]]


def test_where_nothing_is_captured_what_is_named_reaches_the_plain_forward():
    names = defined(rewritten(NAMED, replay_as_graph))
    model, reference, inputs = ready(NAMED, names)
    torch.testing.assert_close(model(**inputs), reference(**inputs))
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'shift'"):
        model(inputs["x"])


def test_the_plain_forward_stays_for_what_is_named_where_it_is_the_fastest():
    names = defined.__wrapped__(rewritten(NAMED, replay_as_graph))
    model, reference, inputs = ready(NAMED, names)
    names["graph_best_ms"] = lambda calls: always(_least(len(calls), 0))
    names["ModelNew"].graph_captured = lambda self, way, inputs: ("a replay of", way)
    model.graph_fastest([inputs[name] for name in ("x", "t", "scale", "shift")], [])
    names["graph_form"] = None  # is not asked any longer
    torch.testing.assert_close(model(**inputs), reference(**inputs))


BLOCK = """class Block(nn.Module):
    def forward(self, x, *, scale=2.0):
        return torch.relu(x) * scale


"""
DECORATED = """def scaled(forward):
    def scaling(self, x, t=2.0):
        return forward(self, x, t=t)

    return scaling


"""
# What stands before the class, its bases, what it defines, and whether what is named is captured.
ODD = {
    "it calls one of its own kind": (
        "",
        "nn.Module",
        """
        def __init__(self, depth=1):
            super().__init__()
            self.inner = Model(depth - 1) if depth else nn.ReLU()

        def forward(self, x, scale=1.0, *, t=0.5):
            return self.inner(x) * scale + t
        """,
        True,
    ),
    "it has one of its base within": (
        BLOCK,
        "Block",
        """
        def __init__(self):
            super().__init__()
            self.inner = Block()

        def forward(self, *inputs, **named):
            return super().forward(*inputs, **named)
        """,
        True,
    ),
    "another method calls it through its class": (
        "",
        "nn.Module",
        """
        def forward(self, x, *, scale=1.0, t=0.5):
            return self.twice(x) if scale else x + t

        def twice(self, x):
            return Model.forward(self, x, scale=0.0) * 2
        """,
        True,
    ),
    "what it is given is changed before it is handed on": (
        BLOCK,
        "Block",
        """
        def forward(self, *inputs, **named):
            named.setdefault("scale", 5.0)
            return super().forward(*inputs, **named)
        """,
        False,
    ),
    "only names are handed on": (
        BLOCK,
        "Block",
        """
        def forward(self, **named):
            return super().forward(**named)
        """,
        False,
    ),
    "a base has another forward": (
        BLOCK,
        "Block",
        """
        def forward(self, *inputs, **named):
            return inputs[0] if inputs else named["x"]
        """,
        False,
    ),
    "a decorator names arguments": (
        DECORATED,
        "nn.Module",
        """
        @scaled
        def forward(self, x, *, t):
            return x * t
        """,
        False,
    ),
    "it has two forwards": (
        "import typing\n\n\n",
        "nn.Module",
        """
        @typing.overload
        def forward(self, x):
            ...

        def forward(self, x, t=2.0):
            return x * t
        """,
        False,
    ),
    "a method has a name of ours": (
        "",
        "nn.Module",
        """
        def graph_forward(self, x):
            return x * 3

        def forward(self, x, *, scale=1.0):
            return self.graph_forward(x) * scale
        """,
        False,
    ),
    "a default is no plain value": (
        "",
        "nn.Module",
        """
        def forward(self, x, dims=(0, 1)):
            return x.sum(dims)
        """,
        False,
    ),
    "a default is made once": (
        "",
        "nn.Module",
        """
        def forward(self, x, *, scale=torch.tensor(2.0)):
            return x * scale
        """,
        False,
    ),
    "it takes any name": (
        "",
        "nn.Module",
        """
        def forward(self, x, **others):
            return x + len(others)
        """,
        False,
    ),
    "a parameter has a name of ours": (
        "",
        "nn.Module",
        """
        def forward(self, x, row=1.0, *, own="SELF", given=2.0):
            return x * row * given + len(own)
        """,
        True,
    ),
}


@pytest.mark.parametrize("captured", [None, ([], None, None)], ids=["of no form", "not captured"])
@pytest.mark.parametrize(("before", "base", "body", "is_taken"), ODD.values(), ids=ODD)
@pytest.mark.parametrize("rewrite", [replay_as_graph, compile_and_replay])
def test_whatever_its_signature_what_is_not_captured_is_computed_as_before(
    rewrite, before, base, body, is_taken, captured
):
    source = f"{HEADER}{before}class Model({base}):{textwrap.indent(textwrap.dedent(body), '    ')}\n\n"
    source += "def get_inputs():\n    return dict(x=torch.randn(3, 4))\n\n\ndef get_init_inputs():\n    return []\n"
    names = defined.__wrapped__(rewritten(source, rewrite) or rewritten(source, replay_as_graph))
    model, reference, inputs = ready(source, names)
    if captured:
        names["graph_form"] = lambda *_: "a form"
        names["ModelNew"].graph_made = lambda *_: captured
    torch.testing.assert_close(model(**inputs), reference(**inputs))
    if "forward(self, **named)" not in source:
        torch.testing.assert_close(model(inputs["x"]), reference(inputs["x"]))
    assert hasattr(names["ModelNew"], "graph_forward") == (is_taken or "def graph_forward" in body)


def _least(count: int, place: int) -> list[float]:
    return [float(each != place) for each in range(count)]


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("fastest", range(4), ids=["plain", "compiled", "plain replayed", "compiled replayed"])
@torch.no_grad()
def test_on_a_gpu_the_fastest_way_is_taken(fastest):
    names = defined.__wrapped__(rewritten(LINEAR, compile_and_replay))
    names["graph_best_ms"] = lambda calls: always(_least(len(calls), fastest))
    model, reference, inputs = ready(LINEAR, names)
    model, reference, x = model.cuda(), reference.cuda(), inputs[0].cuda()
    for _ in range(3):
        torch.testing.assert_close(model(x), reference(x))
    (made,) = (value for form, value in names["GRAPHS"][model].items() if form != "captures")
    ways = [names["PlainModel"].forward, names["graph_compiled"]]
    assert made[1] is (ways[fastest] if fastest < 2 else None)
    assert (made[2] is not None) == (fastest >= 2)


@pytest.mark.gpu
@needs_gpu
@torch.no_grad()
def test_on_a_gpu_what_is_named_is_captured_too():
    names = defined.__wrapped__(rewritten(NAMED, replay_as_graph))
    names["graph_best_ms"] = the_last_is_the_fastest
    model, reference, inputs = ready(NAMED, names)
    model, reference = model.cuda(), reference.cuda()
    for _ in range(4):
        named = {
            name: torch.randn_like(each, device="cuda") if name != "scale" else each for name, each in inputs.items()
        }
        torch.testing.assert_close(model(**named), reference(**named))
        torch.testing.assert_close(model(named["x"], shift=named["t"]), reference(named["x"], shift=named["t"]))
    assert _captures(names["GRAPHS"], model) == 2


@pytest.mark.gpu
@needs_gpu
@torch.no_grad()
def test_on_a_gpu_nothing_is_timed_at_the_first_call():
    names = defined.__wrapped__(rewritten(LINEAR, compile_and_replay))
    timed = []
    names["graph_best_ms"] = lambda calls: timed.append(len(calls)) or the_last_is_the_fastest(calls)
    model, reference, inputs = ready(LINEAR, names)
    model, reference, x = model.cuda(), reference.cuda(), inputs[0].cuda()
    for expected in ([], [4], [4]):
        torch.testing.assert_close(model(x), reference(x))
        assert timed == expected


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_gradients_come_from_the_plain_forward(graphed):
    model, _, graphs = graphed
    model(torch.randn(6, 8, device="cuda")).sum().backward()
    assert model.weight.grad is not None
    assert _captures(graphs, model) == 0


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize(
    ("forward", "init"),
    [
        ("return F.dropout(x, 0.5, True)", "self.size = size0"),
        ("self.state = torch.tanh(x + self.state)\nreturn self.state", "self.register_buffer('state', torch.zeros(8))"),
        ("x.mul_(2.0)\nreturn x + 1.0", "self.size = size0"),
        ("return x * x.sum().item()", "self.size = size0"),
        (
            "if not hasattr(self, 'mask'):\n    self.mask = torch.ones_like(x)\nreturn x * self.mask + 1.0",
            "self.size = size0",
        ),
    ],
    ids=["draws", "keeps a state", "writes to its input", "waits for the device", "makes something the first time"],
)
@torch.no_grad()
def test_on_a_gpu_what_a_graph_would_do_otherwise_is_not_captured(forward, init):
    source = problem(forward, "torch.randn(6, 8)", init=init, init_arguments="8")
    names = defined(rewritten(source, replay_as_graph))
    model, reference = names["ModelNew"](8).cuda(), defined(source)["Model"](8).cuda()
    for _ in range(3):
        x = torch.randn(6, 8, device="cuda")
        results = []
        for one in (model, reference):
            torch.manual_seed(1)
            own = x.clone()
            results.append((one(own), own))
        torch.testing.assert_close(*results)
    assert _captures(names["GRAPHS"], model) == 0
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
