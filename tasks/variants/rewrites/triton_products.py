"""A rewrite that multiplies matrices in a Triton kernel, on the tensor cores and about as exactly as in float32."""

import random

import libcst as cst

from tasks.variants.kernels.matrix_products import MatrixProduct, matrix_products
from tasks.variants.kernels.model import read_model
from tasks.variants.rewrites.forward import find_method
from tasks.variants.rewrites.triton_multiplying import (
    LEAST_MULTIPLICATIONS,
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

_PRODUCT = """
def plain_product{number}({parameters}):
    return {plain}


@triton.jit
def product_kernel{number}({parameters}, out, {shape}):
    tile, split = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS
    batch, row, column = tile_place(tile, tl.cdiv({rows}, ROWS), tl.cdiv({columns}, COLUMNS))
    rows, columns = row * ROWS + tl.arange(0, ROWS), column * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.full([ROWS, COLUMNS], 0.0, tl.float32)
    for start in range(split * DEPTH, {inner}, SPLITS * DEPTH):
        depth = start + tl.arange(0, DEPTH)
        at = batch * {left_size} + {left_at}
        one = tl.load(left + at, mask=(rows[:, None] < {rows}) & (depth[None, :] < {inner}), other=0.0)
        at = batch * {right_size} + {right_at}
        other = tl.load(right + at, mask=(depth[:, None] < {inner}) & (columns[None, :] < {columns}), other=0.0)
        # Taken away, not added: a sum would go on in the tensor cores, which cut off what they cannot hold.
        total = total - tl.dot(one, other, input_precision="tf32x3")
    total = 0.0 - total
    at = (split * {out_part} + batch * {out_size}) + rows[:, None] * {columns} + columns[None, :]
    tl.store(out + at, {result}, mask=(rows[:, None] < {rows}) & (columns[None, :] < {columns}))


@triton.jit
def apart_product{number}(
    {apart_parameters}, out, {shape}
):
    tile, split = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS
    batch, row, column = tile_place(tile, tl.cdiv({rows}, ROWS), tl.cdiv({columns}, COLUMNS))
    rows, columns = row * ROWS + tl.arange(0, ROWS), column * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.full([ROWS, COLUMNS], 0.0, tl.float32)
    for start in range(split * DEPTH, {padded_inner}, SPLITS * DEPTH):
        depth = start + tl.arange(0, DEPTH)
        at = batch * {left_part} + {left_part_at}
        one_high, one_low = tl.load(left + at), tl.load(left + at + {left_parts})
        at = batch * {right_part} + {right_part_at}
        other_high, other_low = tl.load(right + at), tl.load(right + at + {right_parts})
        one_scale = tl.load(left_scales + (batch * {chunks} + start // DEPTH) * {padded_rows} + rows)
        other_scale = tl.load(right_scales + (batch * {chunks} + start // DEPTH) * {padded_columns} + columns)
        part = halves_product(one_high, one_low, other_high, other_low)
        total += part * one_scale[:, None] * other_scale[None, :]
    at = (split * {out_part} + batch * {out_size}) + rows[:, None] * {columns} + columns[None, :]
    tl.store(out + at, {result}, mask=(rows[:, None] < {rows}) & (columns[None, :] < {columns}))


def product{number}({parameters}, out_shape={out_shape}):
    tensors = [{parameters}]
    if not fits(tensors, [{shapes}]):
        return plain_product{number}({parameters})
    kernels = product_kernel{number}, apart_product{number}
    return multiply(kernels, {number}, {sizes}, {inner}, {sides}, out_shape, tensors, plain_product{number})
"""


@rewrite(PRODUCT)
def product_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The largest matrix product, of matrices, of batches of them or in a linear layer, becomes a kernel.

    The first call with a GPU (the second, where a graph is captured) tries several tiles, and stays with the library
    where none is faster. Assumes float32 throughout, no numbers beyond 1e31 but infinities, nothing of weight in what
    is 2^-28 of the largest among 64 that are summed, and that nobody hooks a linear layer; falls back to the product
    itself wherever a tensor is not on the current GPU, has another dtype or shape, or asks for a gradient, under
    autocast and in torch.compile.
    """
    model, forward = read_model(text_of(program)), find_method(program, "forward")
    if model is None or forward is None:
        return None
    product = max(filter(_is_worth_it, matrix_products(model)), key=lambda each: each.multiplications, default=None)
    if product is None:
        return None
    number = free_number(program, NAMES)
    call = f"product{number}({', '.join(each.text for each in product.tensors)})"
    return with_call(program, forward, product.site, call, _text(product, number))


def _is_worth_it(product: MatrixProduct) -> bool:
    """Whether there is much to multiply, in tiles that a GPU has tensor cores for."""
    is_large = product.multiplications >= LEAST_MULTIPLICATIONS
    rows, columns, inner = padded_lines(product.rows), padded_lines(product.columns), padded_depth(product.inner)
    largest = product.batch * max(rows * inner, inner * columns, rows * columns)
    return is_large and min(product.rows, product.inner, product.columns) >= LEAST_SIDE and largest <= MOST_ELEMENTS


def _text(product: MatrixProduct, number: int) -> str:
    batch, rows, inner, columns = product.batch, product.rows, product.inner, product.columns
    padded_rows, padded_columns, padded_inner = padded_lines(rows), padded_lines(columns), padded_depth(inner)
    bias = ["bias"] if product.bias else []
    return _PRODUCT.format(
        number=number,
        parameters=", ".join(["left", "right", *bias]),
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
        out_part=batch * rows * columns,
        shape=TILE_SHAPE,
        left_part=padded_rows * padded_inner,
        right_part=padded_inner * padded_columns,
        left_parts=batch * padded_rows * padded_inner,
        right_parts=batch * padded_inner * padded_columns,
        chunks=num_chunks(inner),
        left_at=_left_at(product, rows, inner),
        left_part_at=_left_at(product, padded_rows, padded_inner),
        right_at=_right_at(product, columns, inner),
        right_part_at=_right_at(product, padded_columns, padded_inner),
        result=with_bias(f"tl.load(bias + columns, mask=columns < {columns})") if bias else "total",
        shapes=", ".join(repr(each.shape) for each in product.tensors),
        sizes=(batch, rows, columns),
        sides=[
            (batch, *_side(rows, inner, is_by_depth=not product.left.is_transposed)),
            (batch, *_side(columns, inner, is_by_depth=product.right.is_transposed)),
        ],
        out_shape=product.out_shape,
    )


def _side(lines: int, depth: int, *, is_by_depth: bool) -> tuple[object, ...]:
    """How one matrix lies in memory: what is summed side by side, or what is kept."""
    steps = (depth, 1) if is_by_depth else (1, lines)
    return lines, depth, (lines * depth, *steps), is_by_depth


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
