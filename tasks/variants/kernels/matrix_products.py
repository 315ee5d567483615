"""Matrix products in a forward: which there are, of which shapes, and what they read."""

import ast
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tasks.variants.kernels.calls import layer_called, torch_call
from tasks.variants.kernels.expressions import expressions
from tasks.variants.kernels.model import Model
from tasks.variants.kernels.shapes import Shapes
from tasks.variants.kernels.steps import Site
from tasks.variants.kernels.values import Layer, Shape, is_size


@dataclass(frozen=True, slots=True)
class Factor:
    """One side of a product, a contiguous tensor as it is kept."""

    text: str
    shape: Shape
    is_transposed: bool
    """Whether its last two dimensions change places before it is multiplied."""

    @property
    def multiplied_shape(self) -> Shape:
        """As the product sees it."""
        return (*self.shape[:-2], self.shape[-1], self.shape[-2]) if self.is_transposed else self.shape


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """One product of matrices (rows, inner) and (inner, columns), or `batch` of them, plus a bias for each column."""

    left: Factor
    right: Factor
    bias: Factor | None
    batch: int
    rows: int
    inner: int
    columns: int
    out_shape: Shape
    site: Site

    @property
    def multiplications(self) -> int:
        return self.batch * self.rows * self.inner * self.columns

    @property
    def tensors(self) -> tuple[Factor, ...]:
        """All that it reads."""
        return (self.left, self.right, *([self.bias] if self.bias else []))


def matrix_products(model: Model) -> Iterator[MatrixProduct]:
    """Every product of a forward whose shapes the text tells, the last first."""
    for node, shapes, site in expressions(model):
        operands = _operands(node, shapes)
        product = _product(*operands, site) if operands else None
        if product is not None:
            yield product


def _operands(node: ast.expr, shapes: Shapes) -> tuple[Factor, Factor, str] | None:
    """The two sides, and the text of a bias, of an expression that is a product of known shapes."""
    match node:
        case ast.BinOp(op=ast.MatMult()):
            return _sides(node.left, node.right, shapes)
    name = layer_called(node)
    layer = shapes.values.get(name) if name else None
    if isinstance(layer, Layer) and layer.kind == "Linear" and isinstance(node, ast.Call):
        return _linear(name or "", layer, node, shapes)
    call = torch_call(node)
    if call is None or call.keywords or len(call.operands) != 2 or call.name not in ("matmul", "mm", "bmm"):
        return None
    return _sides(*call.operands, shapes)


def _sides(left: ast.expr, right: ast.expr, shapes: Shapes) -> tuple[Factor, Factor, str] | None:
    one, other = _factor(left, shapes), _factor(right, shapes)
    return (one, other, "") if one and other else None


def _linear(name: str, layer: Layer, call: ast.Call, shapes: Shapes) -> tuple[Factor, Factor, str] | None:
    keywords = dict(layer.keywords)
    has_bias = layer.arguments[2] if len(layer.arguments) > 2 else keywords.pop("bias", True)
    match layer.arguments[:2]:
        case (int(inner), int(columns)) if not keywords and isinstance(has_bias, bool) and len(call.args) == 1:
            given = _factor(call.args[0], shapes)
            bias = f"{name}.bias" if has_bias else ""
            return (given, Factor(f"{name}.weight", (columns, inner), True), bias) if given else None
    return None


def _factor(node: ast.expr, shapes: Shapes) -> Factor | None:
    kept = _transposed(node, shapes)
    shape = shapes.shape(kept or node)
    if shape is None or len(shape) < 2 or not all(is_size(size) and size > 0 for size in shape):
        return None
    return Factor(ast.unparse(kept or node), shape, kept is not None)


def _transposed(node: ast.expr, shapes: Shapes) -> ast.expr | None:
    """What an expression is the transpose of, in its last two dimensions."""
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        inner, is_plain = node.value, node.attr == "mT"
    elif (call := torch_call(node)) is not None and call.name in ("t", "transpose") and not call.keywords:
        inner = call.operands[0]
        rank = len(shapes.shape(inner) or ())
        dims = [shapes.of(each) for each in call.operands[1:]]
        is_plain = {dim % rank if rank and is_size(dim) else None for dim in dims} == {rank - 1, rank - 2}  # type: ignore[operator]
        if call.name == "transpose" and not is_plain:
            return None
    else:
        return None
    return inner if is_plain or len(shapes.shape(inner) or ()) == 2 else None


def _product(left: Factor, right: Factor, bias: str, site: Callable[[], Site]) -> MatrixProduct | None:
    (*batch, rows, inner), (*others, same, columns) = left.multiplied_shape, right.multiplied_shape
    if inner != same or (others and others != batch):
        return None
    if not others:  # one matrix for all rows of the batch
        if batch and left.is_transposed:
            return None
        rows, batch = math.prod((*batch, rows)), []
    return MatrixProduct(
        left=left,
        right=right,
        bias=Factor(bias, (columns,), False) if bias else None,
        batch=math.prod(batch),
        rows=rows,
        inner=inner,
        columns=columns,
        out_shape=(*left.multiplied_shape[:-1], columns),
        site=site(),
    )
