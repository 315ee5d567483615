"""What a Triton kernel is chosen by: what is timed, what must be right, and what a graph takes."""

import pytest
import torch

from tasks.variants.rewrites import triton_products
from tasks.variants.rewrites.cuda_graph import replay_as_graph
from tasks.variants.rewrites.triton import elementwise_in_triton, reduction_in_triton
from tasks.variants.rewrites.triton_products import product_in_triton
from tests.program_builders import defined, problem, ready, recipes_of, rewritten
from tests.triton_stand_in import always, the_last_is_the_fastest, triton_on_the_processor, use_kernels

pytestmark = pytest.mark.usefixtures("is_capturing")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU says itself whether it captures")
TWO = "torch.randn(141, 83), torch.randn(83, 70)"
SQUARES = problem("return torch.matmul(a, b)", TWO, arguments="a, b")
BIASED = "self.linear = nn.Linear(size0, size0)\nself.bias = nn.Parameter(torch.rand(size0) + 0.5)"
CHAIN = problem(
    "x = self.linear(x)\nreturn F.gelu(x + self.bias) * 0.5", "torch.randn(70, 37)", init=BIASED, init_arguments="37"
)
SOFTMAX = problem("return torch.softmax(x, dim=-1) * 2.0", "torch.randn(70, 300)")


@pytest.fixture(autouse=True)
def small_are_worth_it(monkeypatch):
    monkeypatch.setattr(triton_products, "LEAST_MULTIPLICATIONS", 1)


def in_the_stand_in(source):
    with triton_on_the_processor():
        return use_kernels(defined.__wrapped__(rewritten(source, product_in_triton)))


def test_tiles_are_timed_once_and_the_fastest_is_kept():
    names = in_the_stand_in(SQUARES)
    model, _, inputs = ready(SQUARES, names)
    asked = []
    names["triton_best_ms"] = lambda calls: asked.append(calls) or always([6.0, 5.0, 3.0, 4.0, 9.0, 9.0, 9.0, 9.0])
    for _ in range(3):
        model(*inputs)
    assert len(asked) == 1
    assert names["FASTEST"] == {(0, -1): [names["TILES"][1]] * 2}


@pytest.mark.parametrize(
    ("sizes", "inner", "splits"),
    [
        ((1, 256, 256), 131072, {16}),
        ((1, 128, 512), 1024, {8}),
        ((3, 128, 512), 1024, {4}),
        ((1, 100, 40), 4096, {32}),
        ((1, 4096, 4096), 4096, set()),
        ((1, 256, 256), 128, set()),
    ],
    ids=["a long sum", "a layer", "several", "few", "many tiles", "a short sum"],
)
def test_few_tiles_are_split_so_that_every_processor_has_work(sizes, inner, splits):
    names = in_the_stand_in(SQUARES)
    names["PROCESSORS"] = 132
    found = list(names["split_tiles"](names["TILES"], sizes, inner))
    assert {tile[3] for tile in found if tile[:2] == (64, 64)} == splits
    assert {tile[:2] for tile in found} <= {(64, 64), (128, 16)}


def test_a_narrow_tile_is_split_by_how_few_rows_there_are():
    names = in_the_stand_in(SQUARES)
    names["PROCESSORS"] = 132
    found = names["split_tiles"](names["TILES"], (1, 1000, 16), 4096)
    assert {tile[:2]: tile[3] for tile in found} == {(64, 64): 16, (128, 16): 32}


def test_splits_are_timed_beside_the_other_tiles():
    source = problem("return torch.matmul(a, b)", "torch.randn(20, 300), torch.randn(300, 30)", arguments="a, b")
    names = in_the_stand_in(source)
    names["PROCESSORS"] = 132
    model, reference, inputs = ready(source, names)
    torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-4, atol=1e-4)
    (fastest,) = {tuple(each) for each in names["FASTEST"].values()}
    assert fastest[0][3] > 1


def test_where_the_library_is_faster_it_multiplies():
    names = in_the_stand_in(SQUARES)
    model, reference, inputs = ready(SQUARES, names)
    names["triton_best_ms"] = lambda calls: always([4.9, *(5.0 for _ in calls[1:])])
    for _ in range(2):
        assert torch.equal(model(*inputs), reference(*inputs))
    assert names["FASTEST"] == {(0, -1): [None] * 2}


def test_a_tile_that_computes_something_else_is_not_kept():
    names = in_the_stand_in(SQUARES)
    model, reference, inputs = ready(SQUARES, names)
    names["halves_product"] = lambda high, low, other_high, other_low: torch.zeros(len(high), other_high.shape[1])
    torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-4, atol=1e-4)
    assert names["FASTEST"] == {(0, -1): [names["TILES"][3]] * 2}


@without_gpu
def test_nothing_is_timed_while_a_graph_is_captured(is_capturing):
    names = in_the_stand_in(SQUARES)
    model, reference, inputs = ready(SQUARES, names)
    is_capturing[0] = True
    assert torch.equal(model(*inputs), reference(*inputs))
    assert not names["FASTEST"]
    is_capturing[0] = False
    model(*inputs)
    assert names["FASTEST"]


def test_what_a_graph_will_hold_is_compiled_at_its_first_call_and_timed_at_the_next_one():
    with triton_on_the_processor():
        around = rewritten(rewritten(SQUARES, product_in_triton), replay_as_graph)
        names = use_kernels(defined.__wrapped__(around))
    model, reference, inputs = ready(SQUARES, names)
    with torch.no_grad():
        torch.testing.assert_close(names["graph_untimed"](model, *inputs), reference(*inputs))
        assert (tried := names["product_kernel0"].programs_run)
        assert not names["FASTEST"]
        assert not names["POSTPONED"]
        names["graph_untimed"](model, *inputs)
        assert names["product_kernel0"].programs_run == tried
        torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-4, atol=1e-4)
    assert list(names["FASTEST"]) == [(0, -1)]


def test_what_a_first_call_moves_to_a_device_is_no_reason_to_time_in_it():
    with triton_on_the_processor():
        around = rewritten(rewritten(CHAIN, elementwise_in_triton), replay_as_graph)
        names = use_kernels(defined.__wrapped__(around))
    model, reference, inputs = ready(CHAIN, names)
    names["graph_form"] = lambda *_: "a form"  # parameters on the processor are elsewhere
    with torch.no_grad():
        for expected in ([], [("fused", 0, -1)]):
            torch.testing.assert_close(model(*inputs), reference(*inputs))
            assert list(names["FASTEST"]) == expected


def test_what_is_postponed_is_not_so_any_longer_after_an_error():
    with triton_on_the_processor():
        around = rewritten(rewritten(SQUARES, product_in_triton), replay_as_graph)
        names = use_kernels(defined.__wrapped__(around))
    model, _, inputs = ready(SQUARES, names)
    with pytest.raises(RuntimeError):
        names["graph_untimed"](model, *(each[:5] for each in inputs))
    assert not names["POSTPONED"]


@without_gpu
def test_a_graph_takes_what_is_the_fastest_on_the_device_alone(is_capturing):
    names = in_the_stand_in(SQUARES)
    model, _, inputs = ready(SQUARES, names)
    names["triton_best_ms"] = lambda calls: ([1.0, *(2.0 for _ in calls[1:])], [2.0, 1.0, *(3.0 for _ in calls[2:])])
    model(*inputs)
    assert names["FASTEST"] == {(0, -1): [None, names["TILES"][0]]}
    before = names["product_kernel0"].programs_run
    model(*inputs)
    assert names["product_kernel0"].programs_run == before
    is_capturing[0] = True
    model(*inputs)
    assert names["product_kernel0"].programs_run > before


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), 0.0])
@pytest.mark.parametrize("size", [1.0, 1e-25, 1e25])
def test_a_wrong_result_is_never_close(wrong, size):
    is_close = in_the_stand_in(SQUARES)["is_close"]
    truth = torch.randn(40, 50) * size
    holed = truth.clone()
    holed[0, 0], holed[1, 1] = float("nan"), float("-inf")
    for one in (truth, holed):
        assert is_close(one * (1.0 + 1e-6), one)
        assert not is_close(torch.full_like(one, wrong), one)


def test_of_places_none_may_be_off():
    is_close = in_the_stand_in(SQUARES)["is_close"]
    truth = torch.randint(0, 20_000, (4096,))
    other = truth.clone()
    other[7] += 1
    assert is_close(truth.clone(), truth)
    assert not is_close(other, truth)


def test_a_tile_that_a_gpu_has_no_room_for_is_none_of_the_fastest():
    names = in_the_stand_in(SQUARES)
    model, reference, inputs = ready(SQUARES, names)
    launch, (*_, last_but_one, last) = names["launch"], names["TILES"]

    def has_no_room(kernel, number, *others, **options):
        if number == (0, last):
            raise MemoryError
        launch(kernel, number, *others, **options)

    names["launch"] = has_no_room
    torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-4, atol=1e-4)
    assert names["FASTEST"] == {(0, -1): [last_but_one] * 2}


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("around", ["replay_as_graph", "compile_and_replay"])
def test_on_a_gpu_a_graph_holds_what_is_the_fastest_on_the_device_alone(around):
    source = problem(
        "return torch.relu(torch.matmul(a, b)) * 2.0 + 1.0",
        "torch.randn(70, 52), torch.randn(52, 64)",
        arguments="a, b",
    )
    recipes = recipes_of(source)
    names = defined.__wrapped__(recipes["call_mm", "elementwise_in_triton", "product_in_triton", around])
    names["triton_best_ms"] = lambda calls: (
        [float(place) for place in range(len(calls))],
        the_last_is_the_fastest(calls)[1],
    )
    # The plain forward, with its kernels, is the shortest on the device, and its replay the fastest of all.
    names["graph_best_ms"] = lambda calls: (the_last_is_the_fastest(calls)[0], [float(n) for n in range(len(calls))])
    model, reference, inputs = ready(source, names)
    inputs = [each.cuda() for each in inputs]
    with torch.no_grad():
        for call in range(3):
            torch.testing.assert_close(model(*inputs), reference(*inputs), rtol=1e-4, atol=1e-4)
            assert bool(names["FASTEST"]) == (call > 0)
    assert {key: chosen[0] for key, chosen in names["FASTEST"].items()} == {("fused", 0, 0): None, (0, 0): None}
    assert all(chosen[1] is not None for chosen in names["FASTEST"].values())
    assert [made[-1] is not None for form, made in names["GRAPHS"][model].items() if form != "captures"] == [True]


def test_a_kernel_that_is_no_faster_or_computes_something_else_gives_way_to_its_steps():
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(rewritten(CHAIN, elementwise_in_triton)))
    model, reference, inputs = ready(CHAIN, names)
    for change in (
        {"triton_best_ms": lambda calls: always([1.0 for _ in calls])},
        {"launch": lambda *given, **_: given[-1].zero_()},
    ):
        with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
            for name, value in change.items():
                patch.setitem(names, name, value)
            torch.testing.assert_close(model(*inputs), reference(*inputs))
        assert names["FASTEST"] == {("fused", 0, -1): [None] * 2}
        names["FASTEST"].clear()


def test_asking_whether_a_kernel_fits_is_part_of_its_time():
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(rewritten(CHAIN, elementwise_in_triton)))
    model, _, inputs = ready(CHAIN, names)
    asked, fits, timed = [], names["fits"], []
    names["fits"] = lambda *given: asked.append(given) or fits(*given)

    def times(calls):
        for call in calls:
            before = len(asked)
            call()
            timed.append(len(asked) - before)
        return always([1.0, 2.0])

    names["triton_best_ms"] = times
    with torch.no_grad():
        model(*inputs)
    assert timed == [0, 1]


def settled_names(*chosen):
    """A program of two kernels, and what was found to be the fastest for each, alone and in a graph."""
    source = problem(
        "x = F.gelu(self.linear(x)) * 2.0\nreturn torch.tanh(self.linear(x)) + 1.0",
        "torch.randn(70, 37)",
        init="self.linear = nn.Linear(size0, size0)",
        init_arguments="37",
    )
    both = ("elementwise_in_triton", "elementwise_in_triton", "replay_as_graph")
    with triton_on_the_processor():
        names = use_kernels(defined.__wrapped__(recipes_of(source)[both]))
    for number, ways in enumerate(chosen):
        names["FASTEST"]["fused", number, -1] = ways
    return source, names


@pytest.mark.parametrize(
    ("first", "second"), [(None, "kernel"), ("kernel", None), (None, None), ("kernel", "kernel")], ids=str
)
def test_once_a_plain_forward_is_settled_nobody_asks_for_a_kernel_that_does_not_pay(first, second):
    source, names = settled_names([first, "kernel"], [second, None])
    names["graph_without_asking"]()
    asked, fits = [], names["fits"]
    names["fits"] = lambda *given: asked.append(given) or fits(*given)
    model, reference, inputs = ready(source, names)
    with torch.no_grad():
        torch.testing.assert_close(names["PlainModel"].forward(model, *inputs), reference(*inputs))
    assert len(asked) == [first, second].count("kernel")


def test_a_kernel_that_pays_on_one_device_stays_for_others():
    _, names = settled_names([None, None], [None, None])
    names["FASTEST"]["fused", 1, 5] = ["kernel", None]
    pays = names["fused1"]
    names["graph_without_asking"]()
    assert names["fused0"] is names["plain0"]
    assert names["fused1"] is pays


def test_a_kernel_that_was_never_timed_may_still_be():
    _, names = settled_names()
    before = names["fused0"]
    names["graph_without_asking"]()
    assert names["fused0"] is before


@pytest.mark.gpu
@needs_gpu
def test_on_a_gpu_a_kernel_is_timed_beside_what_it_replaces():
    names = defined.__wrapped__(rewritten(SOFTMAX, reduction_in_triton))
    model, reference, inputs = ready(SOFTMAX, names)
    with torch.no_grad():
        torch.testing.assert_close(model(inputs[0].cuda()), reference(inputs[0].cuda()))
    assert list(names["FASTEST"]) == [("fused", 0, 0)]
