"""A large convolution in double precision goes past cuDNN, which is slow at it, unless there is no room for that."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tasks.judge import precision

HAS_CUDA = torch.cuda.is_available()
SHAPES = {
    "conv1d": (torch.nn.Conv1d(64, 128, 9), (8, 64, 16_384)),
    "conv2d": (torch.nn.Conv2d(64, 64, 3, stride=2, padding=1), (4, 64, 96, 96)),
    "conv3d": (torch.nn.Conv3d(32, 32, 3, groups=2), (2, 32, 32, 32, 40)),
    "conv_transpose1d": (torch.nn.ConvTranspose1d(64, 128, 9), (8, 64, 16_384)),
    "conv_transpose2d": (torch.nn.ConvTranspose2d(64, 64, 3, stride=2), (4, 64, 96, 96)),
    "conv_transpose3d": (torch.nn.ConvTranspose3d(32, 32, 3, dilation=2), (2, 32, 32, 32, 36)),
    "no batch": (torch.nn.Conv2d(64, 64, 3), (64, 192, 192)),
}


class Watched(TorchDispatchMode):
    """Notes whether cuDNN may be used for each convolution, and has no memory for those past it if told so."""

    def __init__(self, *, is_full: bool = False) -> None:
        super().__init__()
        self.is_full = is_full
        self.with_cudnn: list[bool] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if "conv" in str(function):
            self.with_cudnn.append(torch.backends.cudnn.enabled)
            if self.is_full and not self.with_cudnn[-1]:
                raise torch.cuda.OutOfMemoryError("no memory left")
        return function(*args, **kwargs or {})


def in_double(layer: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad(), precision.asked_in_double():
        return layer(x)


@pytest.mark.parametrize("name", SHAPES)
def test_a_large_convolution_runs_without_cudnn_and_gives_what_it_gave(name: str) -> None:
    layer, shape = SHAPES[name]
    layer, x = layer.double(), torch.randn(shape, dtype=torch.float64)
    with torch.no_grad():
        right = layer(x)
    with Watched() as watched:
        found = in_double(layer, x)
    assert watched.with_cudnn == [False]
    assert torch.equal(found, right)
    assert torch.backends.cudnn.enabled


def test_a_small_convolution_is_left_to_cudnn() -> None:
    layer, x = torch.nn.Conv2d(8, 8, 3).double(), torch.randn(2, 8, 32, 32, dtype=torch.float64)
    with Watched() as watched:
        in_double(layer, x)
    assert watched.with_cudnn == [True]


def test_where_unfolding_finds_no_room_cudnn_computes() -> None:
    layer, shape = SHAPES["conv2d"]
    layer, x = layer.double(), torch.randn(shape, dtype=torch.float64)
    with torch.no_grad():
        right = layer(x)
    with Watched(is_full=True) as watched:
        found = in_double(layer, x)
    assert watched.with_cudnn == [False, True]
    assert torch.equal(found, right)


def test_arguments_may_be_given_by_name() -> None:
    x, weight = torch.randn(4, 64, 96, 96, dtype=torch.float64), torch.randn(64, 64, 3, 3, dtype=torch.float64)
    with Watched() as watched:
        in_double(lambda x: torch.nn.functional.conv2d(input=x, weight=weight, padding=1), x)
    assert watched.with_cudnn == [False]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, weight: torch.conv2d(x[0, 0], weight),
        lambda x, weight: torch.conv2d(x[0, 0, 0], weight),
        lambda x, weight: torch.conv2d(x),
        lambda x, weight: torch.conv2d(x, None),
    ],
    ids=["two dimensions", "one dimension", "no weight", "None"],
)
def test_what_pytorch_refuses_it_refuses_in_its_own_words(call: Callable[..., torch.Tensor]) -> None:
    x, weight = torch.randn(2, 8, 9, 9, dtype=torch.float64), torch.randn(8, 8, 3, 3, dtype=torch.float64)
    with pytest.raises((RuntimeError, TypeError)) as plain:
        call(x, weight)
    with pytest.raises(type(plain.value)) as found:
        in_double(lambda x: call(x, weight), x)
    assert str(found.value) == str(plain.value)


def test_other_settings_of_cudnn_stay_as_a_program_has_set_them(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[tuple[bool, bool]] = []
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)

    class Seen(Watched):
        def __torch_dispatch__(self, *given: Any, **named: Any) -> Any:
            settings.append((torch.backends.cudnn.enabled, torch.backends.cudnn.deterministic))
            return super().__torch_dispatch__(*given, **named)

    layer, shape = SHAPES["conv2d"]
    with Seen():
        in_double(layer.double(), torch.randn(shape, dtype=torch.float64))
    assert (False, True) in settings
    assert (False, False) not in settings


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_CUDA, reason="no GPU here")
@pytest.mark.parametrize("name", SHAPES)
def test_on_a_gpu_both_ways_agree_to_the_last_digits(name: str) -> None:
    layer, shape = SHAPES[name]
    layer, x = copy.deepcopy(layer).cuda().double(), torch.randn(shape, dtype=torch.float64, device="cuda")
    with torch.no_grad():
        right = layer(x)
    torch.testing.assert_close(in_double(layer, x), right, rtol=1e-10, atol=1e-12)
