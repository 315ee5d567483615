"""What Triton programs that multiply on the tensor cores share: tiles, float32 in two halves, the choice of a tile.

A float32 is split into two parts of eleven bits; three products of such parts leave an error like that of one in
float32 (Ootomo and Yokota 2022, section 3). Either Triton does that with TF32 as numbers are loaded, or they are taken
apart ahead into float16, scaled by powers of two, one for every 64 numbers that are summed. Sums leave the tensor
cores, which cut off what they cannot hold, at every step.
"""

from string import Template

import libcst as cst

from tasks.variants.kernels.steps import Site, natural
from tasks.variants.rewrites.forward import parse_statements, with_statements
from tasks.variants.rewrites.triton_program import CHOOSING, FITS, LAUNCHING, with_functions

PRODUCT = "product"
LEAST_MULTIPLICATIONS = 1 << 26
"""With less a product takes about as long as it takes to launch; an estimate."""
LEAST_SIDE = 16
MOST_ELEMENTS = 1 << 30
"""Of one tensor, or of each part of it, so that places are counted in 32 bits; those beyond, masked, may be wrong."""
NAMES = (
    *("plain_product{}", "product_kernel{}", "apart_product{}", "product{}"),
    *("plain_convolution{}", "convolution_kernel{}", "apart_convolution{}", "convolution{}"),
)
"""What a number of one of them makes taken for all, since a number chooses a tile."""
LEAST_CHANNELS = 32
"""Of a picture; with fewer, most of what is taken apart in pieces of 64 channels would be nothing."""
LINES, CHUNK = 128, 64
"""What rows and columns are padded to, and how many numbers that are summed share a scale."""
MULTIPLYING = Template("""
TILES = (
    # rows, columns and depth of a tile, programs for it, warps and stages, and whether numbers are taken apart ahead
    (128, 64, 32, 1, 4, 3, False),
    (64, 64, 64, 1, 4, 3, False),
    (32, 64, 64, 1, 4, 3, False),
    (64, 32, 64, 1, 4, 3, False),
    (128, 16, 32, 1, 4, 3, False),
    (128, 128, $chunk, 1, 8, 3, True),
    (128, 64, $chunk, 1, 4, 2, True),
    (64, 64, $chunk, 1, 4, 3, True),
)
SPLIT_SHAPES = (64, 64), (128, 16)
PROCESSORS, MOST_SPLITS = 132, 64  # of an H100


@triton.jit
def tile_place(program, down, across):
    # Eight tiles that lie below each other come one soon after the other, and find what they share in the cache.
    batch, tile = program // (down * across), program % (down * across)
    first = tile // (8 * across) * 8
    height = tl.minimum(down - first, 8)
    return batch, first + tile % (8 * across) % height, tile % (8 * across) // height


@triton.jit
def parts_kernel(
    source, parts, scales, part_size, lines, depth, padded_lines, padded_depth,
    batch_step, line_step, depth_step, part_line, part_depth, BLOCK: tl.constexpr,
):
    # Two halves of 11 bits each of every number, $chunk that are summed scaled alike, and the smaller halves once more.
    chunks = padded_depth // $chunk
    place = tl.program_id(0) % (padded_lines // BLOCK * chunks)
    batch = tl.program_id(0) // (padded_lines // BLOCK * chunks)
    line = place // chunks * BLOCK + tl.arange(0, BLOCK)
    deep = place % chunks * $chunk + tl.arange(0, $chunk)
    at = batch * batch_step + line[:, None] * line_step + deep[None, :] * depth_step
    number = tl.load(source + at, mask=(line[:, None] < lines) & (deep[None, :] < depth), other=0.0)
    size = tl.abs(number)
    largest = tl.max(tl.where(size < float("inf"), size, 0.0), axis=1)
    exponent = tl.maximum(tl.cast(largest, tl.int32, bitcast=True) >> 23, 27)
    scaled = number * tl.cast((268 - exponent) << 23, tl.float32, bitcast=True)[:, None]
    high = tl.cast(scaled, tl.float16)
    at = batch * padded_lines * padded_depth + line[:, None] * part_line + deep[None, :] * part_depth
    tl.store(parts + at, high)
    tl.store(parts + part_size + at, tl.cast((scaled - tl.cast(high, tl.float32)) * 2048.0, tl.float16))
    at = (batch * chunks + place % chunks) * padded_lines + line
    tl.store(scales + at, tl.cast((exponent - 14) << 23, tl.float32, bitcast=True))


@triton.jit
def halves_product(one_high, one_low, other_high, other_low):
    part = tl.dot(one_high, other_low, tl.dot(one_low, other_high))
    # What is left of an infinite number is none; its larger half alone tells what comes out.
    return tl.dot(one_high, other_high, tl.where(part - part == 0.0, part * (1.0 / 2048.0), 0.0))


def take_apart(number, tensor, batch, lines, depth, steps, is_by_depth):
    padded_lines, padded_depth = -(-lines // $lines) * $lines, -(-depth // $chunk) * $chunk
    size, chunks = batch * padded_lines * padded_depth, padded_depth // $chunk
    parts = torch.empty(2 * size, dtype=torch.float16, device=tensor.device)
    scales = torch.empty(batch * chunks * padded_lines, dtype=torch.float32, device=tensor.device)
    part_steps = (padded_depth, 1) if is_by_depth else (1, padded_lines)
    places = lines, depth, padded_lines, padded_depth, *steps, *part_steps
    block = $lines // 2
    programs = batch * padded_lines // block * chunks
    launch(parts_kernel, number, programs, [tensor], parts, scales, size, *places, block, num_warps=4)
    return parts, scales


def num_programs(tile, batch, rows, columns):
    return batch * -(-rows // tile[0]) * -(-columns // tile[1])


def split_tiles(tiles, sizes, inner):
    # Where a GPU has more processors than there are tiles, several programs sum up a part of each.
    for rows, columns, depth, _, *others in tiles:
        programs = num_programs((rows, columns), *sizes)
        splits = min(2 * PROCESSORS // programs, inner // (2 * depth), MOST_SPLITS)
        if (rows, columns) in SPLIT_SHAPES and splits > 1:
            yield rows, columns, depth, 1 << splits.bit_length() - 1, *others


def multiply(kernels, number, sizes, inner, sides, out_shape, tensors, plain, more=()):
    # Which tile is the fastest depends on the GPU, and so does whether any is faster than its library.
    columns = sizes[-1]

    def launch_tile(tile):
        *shape, warps, stages, is_apart = tile
        splits = shape[-1]
        arguments = tensors
        if is_apart:
            left = take_apart((number, "left"), tensors[0], *sides[0])
            right = take_apart((number, "right"), tensors[1], *sides[1])
            arguments = [*left, *right, *tensors[2:]]
        programs = num_programs(tile, *sizes) * splits
        out = tensors[0].new_empty((splits, *out_shape) if splits > 1 else out_shape)
        options = {"num_warps": warps, "num_stages": stages}
        launch(kernels[is_apart], (number, tile), programs, arguments, out, *more, *shape, **options)
        return out.sum(0) if splits > 1 else out

    key = number, tensors[0].get_device()
    if key not in FASTEST:
        tiles = [tile for tile in TILES if (sides or not tile[-1]) and kernels[tile[-1]]]
        if columns <= 16:
            tiles = [tile for tile in tiles if tile[1] <= (64 if tile[-1] else 32)]
        else:
            tiles = [tile for tile in tiles if tile[1] > 16]
        tiles = [*tiles, *split_tiles(tiles, sizes, inner)]
        ways = {tile: functools.partial(launch_tile, tile) for tile in tiles}
        choose(key, lambda: plain(*tensors), ways)
    tile = fastest(key)
    return plain(*tensors) if tile is None else launch_tile(tile)
""").substitute(lines=LINES, chunk=CHUNK)


TILE_SHAPE = ", ".join(f"{name}: tl.constexpr" for name in ("ROWS", "COLUMNS", "DEPTH", "SPLITS"))
"""What kernels are told of a tile, and into how many parts, a program each, what it sums is split."""


def with_bias(bias: str) -> str:
    """What a program stores: its sum, and once the numbers to be added to each row."""
    return f"total + tl.where(split == 0, {bias}, 0.0)[None, :]"


def with_call(program: cst.Module, forward: cst.FunctionDef, site: Site, call: str, text: str) -> cst.Module | None:
    """The program with a call of a function, whose text is given, in the place of some steps."""
    line = f"{site.target} = {call}" if site.target else f"return {call}"
    lines = natural([*site.before, line, *site.after])
    changed = with_statements(program, forward, parse_statements("\n".join(lines)))
    return with_functions(changed, (FITS, LAUNCHING, CHOOSING, MULTIPLYING), text)


def padded_lines(size: int) -> int:
    """How many rows or columns the parts of a tensor have."""
    return -(-size // LINES) * LINES


def padded_depth(size: int) -> int:
    """How many numbers to be summed they have."""
    return -(-size // CHUNK) * CHUNK


def num_chunks(size: int) -> int:
    """How many scales they have for each row or column."""
    return -(-size // CHUNK)
