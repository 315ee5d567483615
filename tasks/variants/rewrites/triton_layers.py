"""A rewrite for networks that build their layers in loops: every layer of a kind computes in one Triton kernel."""

import random
import re

import libcst as cst

from tasks.variants.kernels.tiling import BLOCK
from tasks.variants.rewrites.triton_multiplying import (
    CHUNK,
    LEAST_CHANNELS,
    LEAST_MULTIPLICATIONS,
    LEAST_SIDE,
    LINES,
    MOST_ELEMENTS,
    MULTIPLYING,
    PRODUCT,
    TILE_SHAPE,
)
from tasks.variants.rewrites.triton_program import CHOOSING, FITS, LAUNCHING, with_layers
from tasks.variants.rewriting import rewrite
from tasks.variants.text import text_of

_CONTAINER = re.compile(r"\b(Sequential|ModuleList)\(")
_LAYER = re.compile(r"\b(Conv2d|Linear)\(")
MOST_TAPS = 64
"""Of a convolution of each channel by itself, whose kernel has a line for each."""
LEAST_DEPTHWISE = 1 << 18
"""With fewer places a convolution of each channel by itself takes about as long as it takes to launch; an estimate."""
# One kernel for all of them, whose sizes are arguments: networks have dozens of layers, and each would take seconds to
# compile for itself. A linear layer is a convolution of a picture one place wide, whose channels lie side by side.
_LAYERS = f"""
LAYER_SIZES = (
    "places", "channels", "chunks", "height", "width", "grid_size", "grid_width", "padded_size", "padded_out",
    "image_chunks", "weight_chunks", "out_image_size", "stride_y", "stride_x", "padding_y", "padding_x", "dilation_y",
    "dilation_x", "taps", "taps_x",
)


@triton.jit(do_not_specialize=LAYER_SIZES, do_not_specialize_on_alignment=("place_step", "column_step"))
def layer_kernel(
    image, image_scales, weight, weight_scales, bias, out, places, channels, chunks, height, width, grid_size,
    grid_width, padded_size, padded_out, image_chunks, weight_chunks, out_image_size, place_step, column_step,
    stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x, taps, taps_x,
    HAS_BIAS: tl.constexpr, {TILE_SHAPE},
):
    tile, split = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS
    _, row, column = tile_place(tile, tl.cdiv(places, ROWS), tl.cdiv(channels, COLUMNS))
    rows, columns = row * ROWS + tl.arange(0, ROWS), column * COLUMNS + tl.arange(0, COLUMNS)
    batch, place = rows // grid_size, rows % grid_size
    begin_y, begin_x = place // grid_width * stride_y - padding_y, place % grid_width * stride_x - padding_x
    depth, begin = tl.arange(0, DEPTH), begin_y * width + begin_x
    one_begins = (batch * padded_size + begin)[:, None] * (chunks * DEPTH) + depth[None, :]
    other_begins = depth[:, None] + columns[None, :] * (chunks * DEPTH)
    scale_begins = batch * (chunks * padded_size) + begin
    total = tl.full([ROWS, COLUMNS], 0.0, tl.float32)
    for step in range(split, taps * chunks, SPLITS):
        tap, chunk = step // chunks, step % chunks
        y, x = begin_y + tap // taps_x * dilation_y, begin_x + tap % taps_x * dilation_x
        inside = (rows < places) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
        ahead = tap // taps_x * dilation_y * width + tap % taps_x * dilation_x
        at = one_begins + (ahead * (chunks * DEPTH) + chunk * DEPTH)
        one_high = tl.load(image + at, mask=inside[:, None], other=0.0)
        one_low = tl.load(image + at + image_chunks * DEPTH, mask=inside[:, None], other=0.0)
        at = other_begins + (tap * (padded_out * chunks * DEPTH) + chunk * DEPTH)
        other_high, other_low = tl.load(weight + at), tl.load(weight + at + weight_chunks * DEPTH)
        one_scale = tl.load(image_scales + scale_begins + (chunk * padded_size + ahead), mask=inside, other=0.0)
        other_scale = tl.load(weight_scales + (tap * chunks + chunk) * padded_out + columns)
        part = halves_product(one_high, one_low, other_high, other_low)
        total += part * one_scale[:, None] * other_scale[None, :]
    if HAS_BIAS:
        total += tl.where(split == 0, tl.load(bias + columns, mask=columns < channels), 0.0)[None, :]
    at = (split * (places * channels) + batch * out_image_size + place * place_step)[:, None]
    at = at + columns[None, :] * column_step
    tl.store(out + at, total, mask=(rows < places)[:, None] & (columns[None, :] < channels))


DEPTHWISE_SIZES = (
    "total", "channels", "height", "width", "grid_height", "grid_width", "stride_y", "stride_x", "padding_y",
    "padding_x", "dilation_y", "dilation_x",
)
LEAST_DEPTHWISE = {LEAST_DEPTHWISE}


@triton.jit(do_not_specialize=DEPTHWISE_SIZES)
def depthwise_kernel(
    image, weight, bias, out, total, channels, height, width, grid_height, grid_width, stride_y, stride_x, padding_y,
    padding_x, dilation_y, dilation_x, HAS_BIAS: tl.constexpr, TAPS_Y: tl.constexpr, TAPS_X: tl.constexpr,
):
    at = tl.program_id(0) * {BLOCK} + tl.arange(0, {BLOCK})
    row, place = at // (grid_height * grid_width), at % (grid_height * grid_width)
    begin_y, begin_x = place // grid_width * stride_y - padding_y, place % grid_width * stride_x - padding_x
    channel, sums = row % channels, tl.full([{BLOCK}], 0.0, tl.float32)
    for tap_y in tl.static_range(0, TAPS_Y):
        for tap_x in tl.static_range(0, TAPS_X):
            y, x = begin_y + tap_y * dilation_y, begin_x + tap_x * dilation_x
            inside = (at < total) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
            value = tl.load(image + (row * height + y) * width + x, mask=inside, other=0.0)
            tap = (channel * TAPS_Y + tap_y) * TAPS_X + tap_x
            sums += value * tl.load(weight + tap, mask=at < total, other=0.0)
    if HAS_BIAS:
        sums += tl.load(bias + channel, mask=at < total, other=0.0)
    tl.store(out + at, sums, mask=at < total)


def layer_padded(size, channels, inner):
    return -(-size // {LINES}) * {LINES}, -(-channels // {LINES}) * {LINES}, -(-inner // {CHUNK})


def layer_is_worth_it(batch, in_channels, in_size, grid_size, channels, taps):
    places, inner = batch * grid_size, in_channels * taps
    padded_size, padded_out, chunks = layer_padded(in_size, channels, in_channels)
    padded_depth = chunks * {CHUNK}
    largest = max(batch * padded_size * padded_depth, padded_out * taps * padded_depth, places * channels)
    is_padding = in_channels < {LEAST_CHANNELS} or padded_size > 2 * in_size or min(places, channels) < {LEAST_SIDE}
    return places * channels * inner >= {LEAST_MULTIPLICATIONS} and largest <= {MOST_ELEMENTS} and not is_padding


def convolution_layer(layer, input):
    plain = functools.partial(torch.nn.Conv2d.forward, layer)
    tensors = [input, layer.weight, layer.weight if layer.bias is None else layer.bias]
    is_plain = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
    if not is_plain or input.dim() != 4 or input.shape[1] != layer.groups * layer.weight.shape[1]:
        return plain(input)
    # What lies with its channels last comes out so.
    is_in_order = input.is_contiguous() and layer.weight.is_contiguous()
    if not is_in_order or not fits(tensors, [each.shape for each in tensors]):
        return plain(input)
    batch, in_channels, *in_sizes = input.shape
    channels, _, *kernel = layer.weight.shape
    setting = kernel, layer.stride, layer.padding, layer.dilation
    grid = [
        (size + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1
        for size, kernel_size, stride, padding, dilation in zip(in_sizes, *setting)
    ]
    if layer.groups > 1:
        is_depthwise = layer.groups == in_channels == channels
        return depthwise_layer(layer, tensors, grid, plain) if is_depthwise else plain(input)
    in_size, grid_size, taps = in_sizes[0] * in_sizes[1], grid[0] * grid[1], kernel[0] * kernel[1]
    if not layer_is_worth_it(batch, in_channels, in_size, grid_size, channels, taps):
        return plain(input)
    padded_size, padded_out, chunks = layer_padded(in_size, channels, in_channels)
    geometry = (
        chunks, *in_sizes, grid_size, grid[1], padded_size, padded_out, batch * padded_size * chunks,
        taps * padded_out * chunks, channels * grid_size, 1, grid_size,
        *layer.stride, *layer.padding, *layer.dilation, taps, kernel[1],
    )
    has_bias, places = layer.bias is not None, batch * grid_size
    return multiply(
        (None, layer_kernel),
        ("convolution", batch, in_channels, channels, *geometry, has_bias),
        (1, places, channels),
        taps * chunks * {CHUNK},
        [
            (batch, in_size, in_channels, (in_channels * in_size, 1, in_size), True),
            (taps, channels, in_channels, (1, in_channels * taps, taps), True),
        ],
        (batch, channels, *grid),
        tensors,
        lambda *_: plain(input),
        (places, channels, *geometry, has_bias),
    )


def depthwise_layer(layer, tensors, grid, plain):
    input, *_ = tensors
    batch, channels, *in_sizes = input.shape
    total = batch * channels * grid[0] * grid[1]
    is_too_much = max(total, input.numel()) > {MOST_ELEMENTS} or layer.weight[0].numel() > {MOST_TAPS}
    if total < LEAST_DEPTHWISE or is_too_much:
        return plain(input)
    sizes = total, channels, *in_sizes, *grid, *layer.stride, *layer.padding, *layer.dilation
    forms = layer.bias is not None, *layer.weight.shape[2:]
    key = "depthwise", (*sizes, *forms), input.get_device()

    def kernel():
        out = input.new_empty((batch, channels, *grid))
        launch(depthwise_kernel, key[:2], -(-total // {BLOCK}), tensors, out, *sizes, *forms, num_warps=4)
        return out

    if key not in FASTEST:
        choose(key, lambda: plain(input), {{"kernel": kernel}})
    return kernel() if fastest(key) else plain(input)


def linear_layer(layer, input):
    plain = functools.partial(torch.nn.Linear.forward, layer)
    tensors = [input, layer.weight, layer.weight if layer.bias is None else layer.bias]
    channels, inner = layer.weight.shape
    has_rows = input.dim() > 0 and inner > 0 and input.shape[-1] == inner
    if not has_rows or not fits(tensors, [each.shape for each in tensors]):
        return plain(input)
    places = input.numel() // inner
    if not layer_is_worth_it(1, inner, places, places, channels, 1):
        return plain(input)
    padded_size, padded_out, chunks = layer_padded(places, channels, inner)
    geometry = (
        chunks, places, 1, places, 1, padded_size, padded_out, padded_size * chunks,
        padded_out * chunks, 0, channels, 1, 1, 1, 0, 0, 1, 1, 1, 1,
    )
    has_bias = layer.bias is not None
    return multiply(
        (None, layer_kernel),
        ("linear", inner, channels, *geometry, has_bias),
        (1, places, channels),
        chunks * {CHUNK},
        [(1, places, inner, (0, inner, 1), True), (1, channels, inner, (0, inner, 1), True)],
        (*input.shape[:-1], channels),
        tensors,
        lambda *_: plain(input),
        (places, channels, *geometry, has_bias),
    )


LAYER_FORWARDS = {{torch.nn.Conv2d: convolution_layer, torch.nn.Linear: linear_layer}}
"""


@rewrite(PRODUCT)
def layers_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Every nn.Conv2d and nn.Linear of a model computes in one Triton kernel, with numbers taken apart ahead.

    Convolutions of each channel by itself have a kernel of their own; those in other groups stay as they are.

    For models whose text does not show each layer's sizes, and so only where there are containers of layers or other
    modules. Each layer times the kernel's tiles and the library at the first call of a shape (captured, at the second),
    and stays with the library where that is the fastest. Assumes what product_in_triton and convolution_in_triton do,
    and one thread at a time; falls back to the layer itself as they do, and where something is not contiguous.
    """
    has_parts = _CONTAINER.search(text_of(program)) or sum(isinstance(each, cst.ClassDef) for each in program.body) > 1
    if not has_parts or not _LAYER.search(text_of(program)):
        return None
    return with_layers(program, "LayeredModel", "LAYER_FORWARDS", (FITS, LAUNCHING, CHOOSING, MULTIPLYING), _LAYERS)
