"""A rewrite that multiplies matrices in a Triton kernel, on the tensor cores and about as exactly as in float32."""

import random

import libcst as cst

from tasks.variants.kernels.matrix_products import MatrixProduct, matrix_products
from tasks.variants.kernels.model import read_model
from tasks.variants.kernels.steps import natural
from tasks.variants.rewrites.forward import find_method, parse_statements, with_statements
from tasks.variants.rewrites.triton_program import FITS, LAUNCHING, free_number, with_functions
from tasks.variants.rewriting import rewrite

PRODUCT = "product"
LEAST_MULTIPLICATIONS = 1 << 26
"""With less a product takes about as long as it takes to launch; an estimate."""
LEAST_SIDE = 16
MOST_ELEMENTS = 1 << 30
"""Of one tensor, or of each part of it, so that places are counted in 32 bits; those beyond, masked, may be wrong."""
LINES, CHUNK = 128, 64
"""Parts are padded to multiples of these: of rows or columns, and of what is summed."""
_MULTIPLYING = """
TILES = (
    # rows, columns and depth of a tile, warps and stages, and whether numbers are taken apart ahead
    (128, 64, 32, 4, 3, False),
    (64, 64, 64, 4, 3, False),
    (32, 64, 64, 4, 3, False),
    (64, 32, 64, 4, 3, False),
    (128, 128, 64, 8, 3, True),
    (128, 64, 64, 4, 2, True),
    (64, 64, 64, 4, 3, True),
)
FASTEST = {}


@triton.jit
def tile_place(down, across):
    # Eight tiles that lie below each other follow one another, and find what they share in the cache.
    batch, tile = tl.program_id(0) // (down * across), tl.program_id(0) % (down * across)
    first = tile // (8 * across) * 8
    height = tl.minimum(down - first, 8)
    return batch, first + tile % (8 * across) % height, tile % (8 * across) // height


@triton.jit
def parts_kernel(
    source, parts, scales, part_size, lines, depth, padded_lines, padded_depth,
    line_step, depth_step, part_line, part_depth, LINES: tl.constexpr,
):
    # Two halves of 11 bits each of every number, 64 that are summed scaled alike, and the smaller halves once more.
    chunks = padded_depth // 64
    place = tl.program_id(0) % (padded_lines // LINES * chunks)
    batch = tl.program_id(0) // (padded_lines // LINES * chunks)
    line = place // chunks * LINES + tl.arange(0, LINES)
    deep = place % chunks * 64 + tl.arange(0, 64)
    at = batch * lines * depth + line[:, None] * line_step + deep[None, :] * depth_step
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


def take_apart(number, tensor, batch, lines, depth, is_by_depth):
    padded_lines, padded_depth = -(-lines // 128) * 128, -(-depth // 64) * 64
    size, chunks = batch * padded_lines * padded_depth, padded_depth // 64
    parts = torch.empty(2 * size, dtype=torch.float16, device=tensor.device)
    scales = torch.empty(batch * chunks * padded_lines, dtype=torch.float32, device=tensor.device)
    sizes = lines, depth, padded_lines, padded_depth
    steps = (depth, 1, padded_depth, 1) if is_by_depth else (1, lines, 1, padded_lines)
    programs = batch * padded_lines // 64 * chunks
    launch(parts_kernel, number, programs, [tensor], parts, scales, size, *sizes, *steps, 64, num_warps=4)
    return parts, scales


def time_ms(function):
    def measured(function):
        return triton.testing.do_bench(function, warmup=5, rep=20, return_mode="median")

    try:
        once_ms = measured(function)
        # What launching takes shows where short calls follow one another.
        return max(once_ms, measured(lambda: [function() for _ in range(16)]) / 16) if once_ms < 0.2 else once_ms
    except (triton.runtime.errors.OutOfResources, triton.CompilationError, torch.OutOfMemoryError):
        # A tile that this GPU has no room for, or no instructions.
        return float("inf")


def multiply(kernels, number, sizes, sides, out_shape, tensors, plain):
    # Which tile is the fastest depends on the GPU, and so does whether any is faster than its library.
    batch, rows, columns = sizes

    def launch_tile(tile):
        *shape, warps, stages, is_apart = tile
        arguments = tensors
        if is_apart:
            left = take_apart((number, "left"), tensors[0], *sides[0])
            right = take_apart((number, "right"), tensors[1], *sides[1])
            arguments = [*left, *right, *tensors[2:]]
        programs = batch * -(-rows // tile[0]) * -(-columns // tile[1])
        out = torch.empty(out_shape, dtype=torch.float32, device=tensors[0].device)
        options = {"num_warps": warps, "num_stages": stages}
        launch(kernels[is_apart], (number, tile), programs, arguments, out, *shape, **options)
        return out

    key = number, tensors[0].get_device()
    if key not in FASTEST:
        if torch.cuda.is_current_stream_capturing():
            return plain(*tensors)
        best_ms, FASTEST[key] = min((time_ms(lambda: launch_tile(tile)), tile) for tile in TILES)
        if best_ms >= time_ms(lambda: plain(*tensors)):
            FASTEST[key] = None
    tile = FASTEST[key]
    return plain(*tensors) if tile is None else launch_tile(tile)
"""
_PRODUCT = """
def plain_product{number}({parameters}):
    return {plain}


@triton.jit
def product_kernel{number}({parameters}, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    batch, row, column = tile_place(tl.cdiv({rows}, ROWS), tl.cdiv({columns}, COLUMNS))
    rows, columns = row * ROWS + tl.arange(0, ROWS), column * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.full([ROWS, COLUMNS], 0.0, tl.float32)
    for start in range(0, {inner}, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        at = batch * {left_size} + {left_at}
        one = tl.load(left + at, mask=(rows[:, None] < {rows}) & (depth[None, :] < {inner}), other=0.0)
        at = batch * {right_size} + {right_at}
        other = tl.load(right + at, mask=(depth[:, None] < {inner}) & (columns[None, :] < {columns}), other=0.0)
        # Taken away, not added: a sum would go on in the tensor cores, which cut off what they cannot hold.
        total = total - tl.dot(one, other, input_precision="tf32x3")
    total = 0.0 - total
    at = batch * {out_size} + rows[:, None] * {columns} + columns[None, :]
    tl.store(out + at, {result}, mask=(rows[:, None] < {rows}) & (columns[None, :] < {columns}))


@triton.jit
def apart_kernel{number}(
    {apart_parameters}, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr
):
    batch, row, column = tile_place(tl.cdiv({rows}, ROWS), tl.cdiv({columns}, COLUMNS))
    rows, columns = row * ROWS + tl.arange(0, ROWS), column * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.full([ROWS, COLUMNS], 0.0, tl.float32)
    for start in range(0, {padded_inner}, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        at = batch * {left_part} + {left_part_at}
        one_high, one_low = tl.load(left + at), tl.load(left + at + {left_parts})
        at = batch * {right_part} + {right_part_at}
        other_high, other_low = tl.load(right + at), tl.load(right + at + {right_parts})
        one_scale = tl.load(left_scales + (batch * {chunks} + start // 64) * {padded_rows} + rows)
        other_scale = tl.load(right_scales + (batch * {chunks} + start // 64) * {padded_columns} + columns)
        part = tl.dot(one_high, other_low, tl.dot(one_low, other_high))
        # What is left of an infinite number is none; its larger half alone tells what comes out.
        part = tl.dot(one_high, other_high, tl.where(part - part == 0.0, part * (1.0 / 2048.0), 0.0))
        total += part * one_scale[:, None] * other_scale[None, :]
    at = batch * {out_size} + rows[:, None] * {columns} + columns[None, :]
    tl.store(out + at, {result}, mask=(rows[:, None] < {rows}) & (columns[None, :] < {columns}))


def product{number}({parameters}, out_shape={out_shape}):
    tensors = [{parameters}]
    if not fits(tensors, [{shapes}]):
        return plain_product{number}({parameters})
    kernels = product_kernel{number}, apart_kernel{number}
    return multiply(kernels, {number}, {sizes}, {sides}, out_shape, tensors, plain_product{number})
"""


_NAMES = ("plain_product{}", "product_kernel{}", "apart_kernel{}", "product{}")


@rewrite(PRODUCT)
def product_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last large matrix product becomes a kernel in which every float32 is split into two parts of eleven bits.

    Three products of such parts on the tensor cores leave an error like that of one in float32 (Ootomo and Yokota 2022,
    section 3): in TF32, split as they are loaded, or for large products in float16, split ahead and scaled by powers of
    two, one for every 64 numbers that are summed. The first call with a GPU tries several tiles, and stays with the
    library where none is faster. Assumes float32 throughout, no numbers beyond 1e31 but infinities, nothing of weight
    in what is 2^-48 of the largest beside it, and that nobody hooks a linear layer; falls back to the product itself
    wherever a tensor is not on the current GPU, has another dtype or shape, or asks for a gradient, under autocast and
    in torch.compile.
    """
    model, forward = read_model(program.code), find_method(program, "forward")
    if model is None or forward is None:
        return None
    product = next(filter(_is_worth_it, matrix_products(model)), None)
    if product is None:
        return None
    site, number = product.site, free_number(program, _NAMES)
    call = f"product{number}({', '.join(each.text for each in product.tensors)})"
    line = f"{site.target} = {call}" if site.target else f"return {call}"
    lines = natural([*site.before, line, *site.after])
    changed = with_statements(program, forward, parse_statements("\n".join(lines)))
    return with_functions(changed, (FITS, LAUNCHING, _MULTIPLYING), _text(product, number))


def _is_worth_it(product: MatrixProduct) -> bool:
    """Whether there is much to multiply, in tiles that a GPU has tensor cores for."""
    is_large = product.multiplications >= LEAST_MULTIPLICATIONS
    rows, columns, inner = _padded(product)
    largest = product.batch * max(rows * inner, inner * columns, rows * columns)
    return is_large and min(product.rows, product.inner, product.columns) >= LEAST_SIDE and largest <= MOST_ELEMENTS


def _padded(product: MatrixProduct) -> tuple[int, int, int]:
    """Rows, columns and what is summed, as parts have them."""
    rows, columns = (-(-size // LINES) * LINES for size in (product.rows, product.columns))
    return rows, columns, -(-product.inner // CHUNK) * CHUNK


def _text(product: MatrixProduct, number: int) -> str:
    batch, rows, inner, columns = product.batch, product.rows, product.inner, product.columns
    padded_rows, padded_columns, padded_inner = _padded(product)
    sides = [
        (batch, rows, inner, not product.left.is_transposed),
        (batch, columns, inner, product.right.is_transposed),
    ]
    tensors = ["left", "right"]
    bias = ["bias"] if product.bias else []
    return _PRODUCT.format(
        number=number,
        parameters=", ".join([*tensors, *bias]),
        apart_parameters=", ".join(["left, left_scales, right, right_scales", *bias]),
        plain=_plain(product),
        rows=rows,
        inner=inner,
        columns=columns,
        padded_rows=padded_rows,
        padded_columns=padded_columns,
        padded_inner=padded_inner,
        left_size=rows * inner,
        right_size=inner * columns,
        out_size=rows * columns,
        left_part=padded_rows * padded_inner,
        right_part=padded_inner * padded_columns,
        left_parts=batch * padded_rows * padded_inner,
        right_parts=batch * padded_inner * padded_columns,
        chunks=padded_inner // CHUNK,
        left_at=_left_at(product, rows, inner),
        left_part_at=_left_at(product, padded_rows, padded_inner),
        right_at=_right_at(product, columns, inner),
        right_part_at=_right_at(product, padded_columns, padded_inner),
        result=f"total + tl.load(bias + columns, mask=columns < {columns})[None, :]" if bias else "total",
        shapes=", ".join(repr(each.shape) for each in product.tensors),
        sizes=(batch, rows, columns),
        sides=sides,
        out_shape=product.out_shape,
    )


def _left_at(product: MatrixProduct, rows: int, inner: int) -> str:
    """Places of rows and of what is summed in a matrix that has so many."""
    if product.left.is_transposed:
        return f"rows[:, None] + depth[None, :] * {rows}"
    return f"rows[:, None] * {inner} + depth[None, :]"


def _right_at(product: MatrixProduct, columns: int, inner: int) -> str:
    if product.right.is_transposed:
        return f"depth[:, None] + columns[None, :] * {inner}"
    return f"depth[:, None] * {columns} + columns[None, :]"


def _plain(product: MatrixProduct) -> str:
    left = "left.mT" if product.left.is_transposed else "left"
    if product.bias:
        return f"torch.nn.functional.linear({left}, right, bias)"
    right = "right.mT" if product.right.is_transposed else "right"
    return f"torch.matmul({left}, {right})"
