"""A rewrite that convolves in a Triton kernel: a product of places and channels, gathered as it goes along."""

import math
import random
from collections.abc import Sequence

import libcst as cst

from tasks.variants.kernels.convolutions import Convolution, convolutions
from tasks.variants.kernels.model import read_model
from tasks.variants.rewrites.forward import find_method
from tasks.variants.rewrites.triton_multiplying import (
    LEAST_CHANNELS,
    LEAST_SIDE,
    MOST_ELEMENTS,
    NAMES,
    PRODUCT,
    TILE_SHAPE,
    num_chunks,
    padded_depth,
    padded_lines,
    with_bias,
    with_call,
)
from tasks.variants.rewrites.triton_program import free_number
from tasks.variants.rewriting import rewrite
from tasks.variants.text import text_of

LEAST_CONVOLVED = 1 << 25
"""With less a convolution takes no longer than a kernel takes to begin, in a graph as well; an estimate."""
_CONVOLUTION = """
def plain_convolution{number}({parameters}):
    return torch.nn.functional.{function}({plain_arguments})


@triton.jit
def convolution_kernel{number}({parameters}, out, {shape}):
    program, split = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS
{digits}    _, row, column = tile_place(program, tl.cdiv({places}, ROWS), tl.cdiv({channels}, COLUMNS))
    rows, columns = row * ROWS + tl.arange(0, ROWS), column * COLUMNS + tl.arange(0, COLUMNS)
    batch, place = rows // {grid_size}, rows % {grid_size}
{begins}
    total = tl.full([ROWS, COLUMNS], 0.0, tl.float32)
    for start in range(split * DEPTH, {bound_of_inner}, SPLITS * DEPTH):
        depth = start + tl.arange(0, DEPTH)
        channel, tap = depth // {window_size}, depth % {window_size}
{gathered}
        counts = {counts}
        inside = counts[:, None] & (rows[None, :] < {places}) & {inside}
        at = (batch * {image_size})[None, :] + (channel * {in_size}{group_in})[:, None] + {in_place}
        one = tl.trans(tl.load(image + at, mask=inside, other=0.0))
        at = {weight_depth}[:, None] + (columns * {column_step}{group_weight})[None, :]
        other = tl.load(weight + at, mask=counts[:, None] & (columns[None, :] < {channels}), other=0.0)
        # Taken away, not added: a sum would go on in the tensor cores, which cut off what they cannot hold.
        total = total - tl.dot(one, other, input_precision="tf32x3")
    total = 0.0 - total
    at = (split * {out_part} + batch * {out_image_size} + {out_place})[:, None]
    at = at + (columns{group_out})[None, :] * {out_size}
    tl.store(out + at, {result}, mask={is_out}[:, None] & (columns[None, :] < {channels}))
{apart}

def convolution{number}({parameters}, out_shape={out_shape}):
    tensors = [{parameters}]
    if not fits(tensors, [{shapes}]):
        return plain_convolution{number}({parameters})
    return multiply({kernels}, {number}, {sizes}, {inner}, {sides}, out_shape, tensors, plain_convolution{number})
"""
_APART = """

@triton.jit
def apart_convolution{number}(
    {apart_parameters}, out, {shape}
):
    program, split = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS
{digits}    _, row, column = tile_place(program, tl.cdiv({places}, ROWS), tl.cdiv({channels}, COLUMNS))
    rows, columns = row * ROWS + tl.arange(0, ROWS), column * COLUMNS + tl.arange(0, COLUMNS)
    batch, place = rows // {grid_size}, rows % {grid_size}
{begins}
    depth, begin = tl.arange(0, DEPTH), {begin}
    one_begins = (batch * {padded_size} + begin)[:, None] * {padded_channels} + depth[None, :]
    other_begins = depth[:, None] + columns[None, :] * {padded_channels}
    scale_begins = batch * {scales_size} + begin
    total = tl.full([ROWS, COLUMNS], 0.0, tl.float32)
    for step in range(split, {bound_of_steps}, SPLITS):
        tap, chunk = step // {chunks}, step % {chunks}
{followed}
        ahead, inside = {ahead}, (rows < {places}) & {ahead_inside}
        at = one_begins + (ahead * {padded_channels} + chunk * DEPTH)
        one_high = tl.load(image + at, mask=inside[:, None], other=0.0)
        one_low = tl.load(image + at + {image_parts}, mask=inside[:, None], other=0.0)
        at = other_begins + ({weight_tap} * {weight_part} + chunk * DEPTH)
        other_high, other_low = tl.load(weight + at{masked}), tl.load(weight + at + {weight_parts}{masked})
        at = scale_begins + (chunk * {padded_size} + ahead)
        one_scale = tl.load(image_scales + at, mask=inside, other=0.0)
        at = ({weight_tap} * {chunks} + chunk) * {padded_out} + columns
        other_scale = tl.load(weight_scales + at{masked})
        part = halves_product(one_high, one_low, other_high, other_low)
        total += part * one_scale[:, None] * other_scale[None, :]
    at = (split * {out_part} + batch * {out_image_size} + {out_place})[:, None] + columns[None, :] * {out_size}
    tl.store(out + at, {result}, mask={is_out}[:, None] & (columns[None, :] < {channels}))

"""


@rewrite(PRODUCT)
def convolution_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The largest convolution, transposed or not, of any dimensions and groups that are not narrow, becomes a kernel.

    The first call with a GPU (the second, where a graph is captured) tries several tiles, and stays with the library
    where none is faster. Assumes float32 throughout, no numbers beyond 1e31 but infinities, nothing of weight in what
    is 2^-28 of the largest among 64 channels at a place, and that nobody hooks the layer; falls back to the convolution
    itself wherever a tensor is not on the current GPU, has another dtype or shape, or asks for a gradient, under
    autocast and in torch.compile.
    """
    model, forward = read_model(text_of(program)), find_method(program, "forward")
    if model is None or forward is None:
        return None
    convolution = max(filter(_is_worth_it, convolutions(model)), key=lambda each: each.multiplications, default=None)
    if convolution is None:
        return None
    number, layer = free_number(program, NAMES), convolution.layer
    weights = [f"{layer}.weight", *([f"{layer}.bias"] if convolution.has_bias else [])]
    call = f"convolution{number}({', '.join([convolution.given, *weights])})"
    return with_call(program, forward, convolution.site, call, _text(convolution, number))


def _is_worth_it(convolution: Convolution) -> bool:
    """Whether there is much to multiply, in tiles that a GPU has tensor cores for.

    What is summed may be little: then most of a tile's depth is masked, and memory is what limits.
    """
    batch, in_channels, *sizes = convolution.in_shape
    ins, channels = convolution.group_channels
    sides = min(convolution.places, channels)
    parts = batch * padded_lines(math.prod(sizes)) * padded_depth(in_channels) if _is_apart(convolution) else 0
    weights = padded_lines(convolution.out_shape[1]) * math.prod(convolution.kernel) * padded_depth(ins)
    largest = max(math.prod(convolution.in_shape), parts, weights, math.prod(convolution.out_shape))
    return convolution.multiplications >= LEAST_CONVOLVED and sides >= LEAST_SIDE and largest <= MOST_ELEMENTS


def _is_apart(convolution: Convolution) -> bool:
    """Whether a kernel takes numbers apart ahead: where most of the parts would not be padding."""
    _, channels, *sizes = convolution.in_shape
    is_wide = convolution.groups == 1 and channels >= LEAST_CHANNELS
    return is_wide and padded_lines(math.prod(sizes)) <= 2 * math.prod(sizes)


def _text(convolution: Convolution, number: int) -> str:
    batch, _, *sizes = convolution.in_shape
    out_sizes, groups = convolution.out_shape[2:], convolution.groups
    in_channels, channels = convolution.group_channels
    taps, window_size = math.prod(convolution.kernel), math.prod(convolution.window)
    in_size, rank, out_size = math.prod(sizes), len(sizes), math.prod(out_sizes)
    padded_size, padded_channels = padded_lines(in_size), padded_depth(in_channels)
    # How far apart weights lie in memory whose channels, of the input or of the output, are neighbours.
    channel_step, column_step = (channels * taps, taps) if convolution.is_transposed else (taps, in_channels * taps)
    weight_tap = _place(convolution.kernel, "tap{}") if convolution.is_transposed else "tap"
    bias = ["bias"] if convolution.has_bias else []
    is_apart, is_a_tap, phases = _is_apart(convolution), _is_a_tap(convolution), math.prod(convolution.phases)
    inner, steps = in_channels * window_size, window_size * num_chunks(in_channels)
    kernels = [f"convolution_kernel{number}", *([f"apart_convolution{number}"] if is_apart else [])]
    settings = {
        "number": number,
        "function": f"conv_transpose{rank}d" if convolution.is_transposed else f"conv{rank}d",
        "parameters": ", ".join(["image", "weight", *bias]),
        "apart_parameters": ", ".join(["image, image_scales, weight, weight_scales", *bias]),
        "plain_arguments": _plain_arguments(convolution),
        "places": convolution.places,
        "channels": channels,
        "shape": TILE_SHAPE,
        "digits": _digits(phases, groups),
        "inner": inner,
        "out_part": math.prod(convolution.out_shape),
        "group_in": f" + group * {in_channels * in_size}" if groups > 1 else "",
        "group_weight": f" + group * {in_channels * channels * taps}" if groups > 1 else "",
        "group_out": f" + group * {channels}" if groups > 1 else "",
        "bound_of_inner": _bound(convolution, inner),
        "window_size": window_size,
        "bound_of_steps": _bound(convolution, steps),
        "chunks": num_chunks(in_channels),
        "in_size": in_size,
        "image_size": math.prod(convolution.in_shape[1:]),
        "grid_size": math.prod(convolution.grid),
        "out_size": out_size,
        "out_image_size": math.prod(convolution.out_shape[1:]),
        "padded_size": padded_size,
        "padded_channels": padded_channels,
        "padded_out": padded_lines(channels),
        "scales_size": num_chunks(in_channels) * padded_size,
        "image_parts": batch * padded_size * padded_channels,
        "column_step": column_step,
        "weight_depth": f"(channel * {channel_step} + {weight_tap})" if convolution.is_transposed else "depth",
        "weight_tap": weight_tap,
        "weight_part": padded_lines(channels) * padded_channels,
        "weight_parts": taps * padded_lines(channels) * padded_channels,
        "begins": _begins(convolution),
        "gathered": _taps(convolution, "at{0} = begin{0}[None, :] + ({1})[:, None]"),
        "counts": " & ".join([f"(depth < {inner})", *is_a_tap]),
        "inside": _inside(sizes, "at{}"),
        "in_place": _place(sizes, "at{}"),
        "begin": _place(sizes, "begin{}"),
        "followed": _taps(convolution, "ahead{0} = {1}"),
        "ahead": _place(sizes, "ahead{}"),
        "ahead_inside": " & ".join([_inside(sizes, "begin{0} + ahead{0}"), *is_a_tap]),
        "masked": f", mask={' & '.join(is_a_tap)}, other=0.0" if is_a_tap else "",
        "out_place": _place(out_sizes, "out{}") if convolution.is_transposed else "place",
        "is_out": _is_out(convolution),
        "shapes": ", ".join(
            map(repr, (convolution.in_shape, convolution.weight_shape, *([convolution.out_shape[1:2]] if bias else [])))
        ),
        "sizes": (phases * groups, convolution.places, channels),
        "sides": [
            (batch, in_size, in_channels, (in_channels * in_size, 1, in_size), True),
            (taps, channels, in_channels, (1, column_step, channel_step), True),
        ]
        if is_apart
        else None,
        "out_shape": convolution.out_shape,
        "kernels": f"({', '.join(kernels)},)",
    }
    biased = with_bias(f"tl.load(bias + columns{settings['group_out']}, mask=columns < {channels})")
    settings["result"] = biased if bias else "total"
    return _CONVOLUTION.format(**settings, apart=_APART.format(**settings) if is_apart else "")


def _plain_arguments(convolution: Convolution) -> str:
    bias = "bias" if convolution.has_bias else "None"
    more = [convolution.dilation, convolution.groups]
    if convolution.is_transposed:
        more = [convolution.output_padding, *more[::-1]]
    return f"image, weight, {bias}, {convolution.stride}, {convolution.padding}, {', '.join(map(str, more))}"


def _digits(phases: int, groups: int) -> str:
    """Lines that tell the phase and the group of a program, and leave the number of its tile.

    Phases of the same places follow one another: what they write lies between each other.
    """
    lines = []
    if phases > 1:
        lines.append(f"phase, program = program % {phases}, program // {phases}")
    if groups > 1:
        lines.append(f"group, program = program % {groups}, program // {groups}")
    return "".join(f"    {line}\n" for line in lines)


def _bound(convolution: Convolution, size: int) -> str:
    """Over how much to sum: nothing where no tap reaches any place of a phase."""
    dims = enumerate(zip(convolution.padding, convolution.common, strict=True))
    reached = [f"((phase{dim} + {padding}) % {common} == 0)" for dim, (padding, common) in dims if common > 1]
    return f"tl.where({' & '.join(reached)}, {size}, 0)" if reached else str(size)


def _begins(convolution: Convolution) -> str:
    """Lines that tell where the window of each place begins, dimension by dimension.

    Of a transposed convolution the window goes backwards, and lines tell as well which place it makes, and which tap of
    the kernel is the first of the place's phase: the one that is a whole number of strides from it.
    """
    lines = []
    settings = zip(convolution.stride, convolution.padding, convolution.dilation, convolution.common, strict=True)
    for dim, (stride, padding, dilation, common) in enumerate(settings):
        at, reach = _digit("place", convolution.grid, dim), f"phase{dim} + {padding}"
        if not convolution.is_transposed:
            lines.append(f"begin{dim} = {_times(at, stride)}{f' - {padding}' if padding else ''}")
        elif stride == 1:
            lines += [f"out{dim} = {at}", f"begin{dim} = out{dim}{f' + {padding}' if padding else ''}"]
        else:
            step, even = stride // common, f"({reach})" if common == 1 else f"({reach}) // {common}"
            factor = pow(dilation // common, -1, step)
            lines += [
                f"phase{dim} = {_digit('phase', convolution.phases, dim)}",
                f"out{dim} = {_times(at, stride)} + phase{dim}",
                f"first{dim} = {f'{_times(even, factor)} % {step}' if step > 1 else '0'}",
                f"begin{dim} = {at} + ({reach} - {_times(f'first{dim}', dilation)}) // {stride}",
            ]
    return "\n".join(f"    {line}" for line in lines)


def _taps(convolution: Convolution, line: str) -> str:
    """Lines that tell how far a tap of the window lies from its beginning, dimension by dimension.

    Of a transposed convolution they tell as well which tap of the whole kernel it is.
    """
    lines = []
    settings = zip(convolution.stride, convolution.dilation, convolution.tap_steps, convolution.common, strict=True)
    for dim, (stride, dilation, tap_step, common) in enumerate(settings):
        step = _digit("tap", convolution.window, dim)
        if not convolution.is_transposed:
            lines.append(line.format(dim, _times(step, dilation)))
        else:
            first, back = f"first{dim} + " if stride > 1 else "", _times(step, dilation // common)
            lines += [f"tap{dim} = {first}{_times(step, tap_step)}", line.format(dim, f"-({back})")]
    return "\n".join(f"        {each}" for each in lines)


def _is_a_tap(convolution: Convolution) -> list[str]:
    """What has to hold where some phases have fewer taps than others."""
    if not convolution.is_transposed:
        return []
    dims = enumerate(zip(convolution.kernel, convolution.tap_steps, strict=True))
    return [f"(tap{dim} < {size})" for dim, (size, step) in dims if size % step]


def _is_out(convolution: Convolution) -> str:
    """Whether a row of a tile is a place, also where some phases have fewer places than others."""
    sizes = enumerate(zip(convolution.out_shape[2:], convolution.phases, strict=True))
    fewer = [f"(out{dim} < {size})" for dim, (size, phases) in sizes if size % phases]
    return f"({' & '.join([f'(rows < {convolution.places})', *fewer])})"


def _inside(sizes: Sequence[int], coordinate: str) -> str:
    """Whether a place, whose coordinates are given, is one of the image's."""
    names = (coordinate.format(dim) for dim in range(len(sizes)))
    return " & ".join(f"({name} >= 0) & ({name} < {size})" for name, size in zip(names, sizes, strict=True))


def _place(sizes: Sequence[int], coordinate: str) -> str:
    """The number of a place, whose coordinates are given, row by row, to be multiplied or added to."""
    digits = (_times(coordinate.format(dim), math.prod(sizes[dim + 1 :])) for dim in range(len(sizes)))
    return f"({' + '.join(digits)})"


def _digit(name: str, sizes: Sequence[int], dim: int) -> str:
    """One coordinate of a number that counts places row by row."""
    behind = math.prod(sizes[dim + 1 :])
    quotient = name if behind == 1 else f"{name} // {behind}"
    return quotient if dim == 0 else f"{quotient} % {sizes[dim]}"


def _times(text: str, factor: int) -> str:
    if factor == 1:
        return text
    return f"{text} * {factor}" if text.isidentifier() else f"({text}) * {factor}"
