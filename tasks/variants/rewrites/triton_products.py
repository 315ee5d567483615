"""A rewrite that multiplies matrices in a Triton kernel, on the tensor cores and about as exactly as in float32."""

import random
import re

import libcst as cst

from tasks.variants.kernels.matrix_products import MatrixProduct, matrix_products
from tasks.variants.kernels.model import read_model
from tasks.variants.kernels.steps import natural
from tasks.variants.rewrites.forward import find_method, parse_statements, with_statements
from tasks.variants.rewrites.triton_program import FITS, with_functions
from tasks.variants.rewriting import rewrite

PRODUCT = "product"
LEAST_MULTIPLICATIONS = 1 << 26
"""On an H100 in float32 that takes about 10 us, which is what choosing a kernel and launching it takes."""
LEAST_SIDE = 16
MOST_ELEMENTS = 1 << 30
"""Of one tensor, so that places in it are counted in 32 bits; those beyond, which are masked, may be wrong."""
_MULTIPLYING = """
TILES = (
    # rows, columns and depth of a tile, warps and stages
    (128, 128, 32, 8, 3),
    (128, 64, 32, 4, 3),
    (64, 128, 32, 4, 3),
    (64, 64, 32, 4, 4),
    (64, 64, 64, 4, 3),
    (32, 64, 64, 4, 3),
    (64, 32, 64, 4, 3),
)
FASTEST = {}


def time_ms(function):
    try:
        return triton.testing.do_bench(function, warmup=5, rep=20, return_mode="median")
    except (triton.runtime.errors.OutOfResources, triton.CompilationError, torch.OutOfMemoryError):
        # A tile that this GPU has no room for, or no instructions.
        return float("inf")


def multiply(kernel, number, sizes, out_shape, tensors, plain):
    # Which tile is the fastest depends on the GPU, and so does whether any is faster than its library.
    batch, rows, columns = sizes

    def launch_tile(tile):
        arguments = [tensor.contiguous() for tensor in tensors]
        programs = batch * -(-rows // tile[0]) * -(-columns // tile[1])
        out = torch.empty(out_shape, dtype=torch.float32, device=tensors[0].device)
        kernel[(programs,)](*arguments, out, *tile[:3], num_warps=tile[3], num_stages=tile[4])
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
    down, across = tl.cdiv({rows}, ROWS), tl.cdiv({columns}, COLUMNS)
    batch, tile = tl.program_id(0) // (down * across), tl.program_id(0) % (down * across)
    # Eight tiles that lie below each other follow one another, and find what they share in the cache.
    first = tile // (8 * across) * 8
    height = tl.minimum(down - first, 8)
    rows = (first + tile % (8 * across) % height) * ROWS + tl.arange(0, ROWS)
    columns = tile % (8 * across) // height * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.full([ROWS, COLUMNS], 0.0, tl.float32)
    for start in range(0, {inner}, DEPTH):
        depth = start + tl.arange(0, DEPTH)
        at = batch * {left_size} + {left_at}
        one = tl.load(left + at, mask=(rows[:, None] < {rows}) & (depth[None, :] < {inner}), other=0.0)
        at = batch * {right_size} + {right_at}
        other = tl.load(right + at, mask=(depth[:, None] < {inner}) & (columns[None, :] < {columns}), other=0.0)
        # Taken away, not added: a sum would go on in the tensor cores, which cut off what they cannot hold.
        total = total - tl.dot(one, other, input_precision="tf32x3")
    result = {result}
    at = batch * {out_size} + rows[:, None] * {columns} + columns[None, :]
    tl.store(out + at, result, mask=(rows[:, None] < {rows}) & (columns[None, :] < {columns}))


def product{number}({parameters}, out_shape={out_shape}):
    tensors = [{parameters}]
    if not fits(tensors, [{shapes}]):
        return plain_product{number}({parameters})
    sizes = {sizes}
    return multiply(product_kernel{number}, {number}, sizes, out_shape, tensors, plain_product{number})
"""


_NAMES = ("plain_product{}", "product_kernel{}", "product{}")


@rewrite(PRODUCT)
def product_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The last large matrix product becomes a kernel in which every float32 is split into two parts of eleven bits.

    Three products of such parts on the tensor cores leave an error like that of one in float32 (TF32x3; Ootomo and
    Yokota 2022, section 3). The first call with a GPU tries several tiles, and stays with the library where none is
    faster. Assumes float32 throughout, no values beyond 3.4e38 but infinities, and that nobody hooks a linear layer;
    falls back to the product itself wherever a tensor is not on the current GPU, has another dtype or shape, or asks
    for a gradient, under autocast and in torch.compile.
    """
    model, forward = read_model(program.code), find_method(program, "forward")
    if model is None or forward is None:
        return None
    product = next(filter(_is_worth_it, matrix_products(model)), None)
    if product is None:
        return None
    site, taken = product.site, set(re.findall(r"\w+", program.code))
    number = next(number for number in range(99) if not taken & {name.format(number) for name in _NAMES})
    call = f"product{number}({', '.join(each.text for each in product.tensors)})"
    line = f"{site.target} = {call}" if site.target else f"return {call}"
    lines = natural([*site.before, line, *site.after])
    changed = with_statements(program, forward, parse_statements("\n".join(lines)))
    return with_functions(changed, (FITS, _MULTIPLYING), _text(product, number))


def _is_worth_it(product: MatrixProduct) -> bool:
    """Whether there is much to multiply, in tiles that a GPU has tensor cores for."""
    sides = sorted((product.rows, product.inner, product.columns))
    is_large = product.multiplications >= LEAST_MULTIPLICATIONS
    return is_large and sides[0] >= LEAST_SIDE and product.batch * sides[1] * sides[2] <= MOST_ELEMENTS


def _text(product: MatrixProduct, number: int) -> str:
    rows, inner, columns = product.rows, product.inner, product.columns
    by_rows = product.left.is_transposed
    return _PRODUCT.format(
        number=number,
        parameters="left, right, bias" if product.bias else "left, right",
        plain=_plain(product),
        rows=rows,
        inner=inner,
        columns=columns,
        left_size=rows * inner,
        right_size=inner * columns if product.batch > 1 else 0,
        out_size=rows * columns,
        left_at=f"rows[:, None] + depth[None, :] * {rows}" if by_rows else f"rows[:, None] * {inner} + depth[None, :]",
        right_at=f"depth[:, None] + columns[None, :] * {inner}"
        if product.right.is_transposed
        else f"depth[:, None] * {columns} + columns[None, :]",
        result=f"tl.load(bias + columns, mask=columns < {columns})[None, :] - total" if product.bias else "0.0 - total",
        shapes=", ".join(repr(each.shape) for each in product.tensors),
        sizes=(product.batch, rows, columns),
        out_shape=product.out_shape,
    )


def _plain(product: MatrixProduct) -> str:
    left = "left.mT" if product.left.is_transposed else "left"
    if product.bias:
        return f"torch.nn.functional.linear({left}, right, bias)"
    right = "right.mT" if product.right.is_transposed else "right"
    return f"torch.matmul({left}, {right})"
