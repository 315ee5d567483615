"""A rewrite for recurrent layers: what nn.LSTM and nn.GRU do in a step, of all layers at once, is one Triton kernel."""

import random
import re

import libcst as cst

from tasks.variants.names import names_bound_in
from tasks.variants.rewrites.triton_multiplying import MOST_ELEMENTS, PRODUCT
from tasks.variants.rewrites.triton_program import CHOOSING, FITS, LAUNCHING, with_layers
from tasks.variants.rewriting import rewrite
from tasks.variants.text import text_of

_LAYER = re.compile(r"\b(LSTM|GRU)\(")
_MOST_LAUNCHES = 1 << 13
"""Of one call; a graph of more would take seconds to capture."""
_TIMED_STEPS = 64
# A step is small, so that a library takes longer to launch and to wait than to compute. Where a layer reads forwards
# only, one launch has a step of every layer: each is one step behind the one below it (Appleyard et al. 2016). In
# `sequence` lies what the layers read, layer after layer: their inputs and the states that the ones below have been in,
# and before the first and after the last step the states that they begin with.
_RECURRENCE = f"""
STEPS = (
    # units and depth of a tile, how many of them at a time, warps and stages
    (4, 64, 2, 2, 3),
    (8, 64, 4, 4, 2),
    (16, 64, 4, 4, 2),
    (16, 64, 2, 8, 3),
    (32, 64, 2, 8, 2),
)


@triton.jit
def recurrence_gate(x):
    return 1.0 / (1.0 + libdevice.exp(-x))


@triton.jit
def recurrence_sum(
    sequence, weight, others, given, before, rows, here, begin: tl.constexpr, end: tl.constexpr, WIDTH: tl.constexpr,
    HIDDEN: tl.constexpr, ROWS: tl.constexpr, UNITS: tl.constexpr, DEPTH: tl.constexpr, AT_A_TIME: tl.constexpr,
):
    # Of inputs, which come first, and of the state.
    depth = tl.arange(0, DEPTH)
    total = tl.full([ROWS, 4 * UNITS], 0.0, tl.float32)
    for start in tl.range(begin, end, DEPTH, loop_unroll_factor=AT_A_TIME):
        at = tl.where(start < WIDTH, given + start, before + start - WIDTH)
        size = tl.where(start < WIDTH, WIDTH - start, WIDTH + HIDDEN - start)
        at = at + rows[:, None] * WIDTH + depth[None, :]
        one = tl.load(sequence + at, mask=here[:, None] & (depth[None, :] < size), other=0.0)
        # Taken away, not added: a sum would go on in the tensor cores, which cut off what they cannot hold.
        total = total - tl.dot(one, tl.load(weight + others + start), input_precision="tf32x3")
    return 0.0 - total


@triton.jit
def recurrence_gates(total, ROWS: tl.constexpr, UNITS: tl.constexpr):
    # Those of a unit lie side by side.
    even, odd = tl.split(tl.reshape(total, [ROWS, UNITS, 2, 2]))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit(do_not_specialize=("stage", "layer", "steps", "batch"))
def recurrence_kernel(
    sequence, weight, bias, memory, stage, layer, steps, batch, IS_LSTM: tl.constexpr, CELLS: tl.constexpr,
    DIRECTIONS: tl.constexpr, HIDDEN: tl.constexpr, PADDED: tl.constexpr, WIDTH: tl.constexpr, DEEP: tl.constexpr,
    ROWS: tl.constexpr, UNITS: tl.constexpr, DEPTH: tl.constexpr, AT_A_TIME: tl.constexpr,
):
    program, cell = tl.program_id(0) // (PADDED // UNITS), tl.program_id(0) // (PADDED // UNITS) % CELLS
    direction, step = 0, stage - cell
    if DIRECTIONS == 1:
        layer = layer + cell
    else:
        direction, step = cell, tl.where(cell == 0, stage, steps - 1 - stage)
    rows = program // CELLS * ROWS + tl.arange(0, ROWS)
    block = tl.program_id(0) % (PADDED // UNITS)
    columns, units = block * (4 * UNITS) + tl.arange(0, 4 * UNITS), block * UNITS + tl.arange(0, UNITS)
    here = (rows < batch) & (step >= 0) & (step < steps)
    given = (layer * (steps + 2) + step + 1) * batch * WIDTH
    before = ((layer + 1) * (steps + 2) + step + 2 * direction) * batch * WIDTH + direction * HIDDEN
    place = layer * DIRECTIONS + direction
    others = place * (4 * PADDED * DEEP) + tl.arange(0, DEPTH)[:, None] + columns[None, :] * DEEP
    added, added_state = bias + place * (8 * PADDED) + columns, bias + place * (8 * PADDED) + 4 * PADDED + columns
    mask = here[:, None] & (units[None, :] < HIDDEN)
    if IS_LSTM:
        total = recurrence_sum(
            sequence, weight, others, given, before, rows, here, 0, DEEP, WIDTH, HIDDEN, ROWS, UNITS, DEPTH, AT_A_TIME
        )
        total = total + (tl.load(added) + tl.load(added_state))[None, :]
        taken, left, new, shown = recurrence_gates(total, ROWS, UNITS)
        at = (place * batch + rows[:, None]) * HIDDEN + units[None, :]
        kept = recurrence_gate(left) * tl.load(memory + at, mask=mask, other=0.0)
        kept += recurrence_gate(taken) * libdevice.tanh(new)
        tl.store(memory + at, kept, mask=mask)
        state = recurrence_gate(shown) * libdevice.tanh(kept)
    else:
        # One gate is for what the state alone comes to.
        total = recurrence_sum(
            sequence, weight, others, given, before, rows, here, 0, WIDTH, WIDTH, HIDDEN, ROWS, UNITS, DEPTH, AT_A_TIME
        )
        reset, left, new, _ = recurrence_gates(total + tl.load(added)[None, :], ROWS, UNITS)
        total = recurrence_sum(
            sequence, weight, others, given, before, rows, here, WIDTH, DEEP, WIDTH, HIDDEN, ROWS, UNITS, DEPTH,
            AT_A_TIME,
        )
        own_reset, own_left, own_new, _ = recurrence_gates(total + tl.load(added_state)[None, :], ROWS, UNITS)
        last = tl.load(sequence + before + rows[:, None] * WIDTH + units[None, :], mask=mask, other=0.0)
        left = recurrence_gate(left + own_left)
        new = libdevice.tanh(new + recurrence_gate(reset + own_reset) * own_new)
        state = (1.0 - left) * new + left * last
    at = ((layer + 1) * (steps + 2) + step + 1) * batch * WIDTH + direction * HIDDEN
    tl.store(sequence + at + rows[:, None] * WIDTH + units[None, :], state, mask=mask)


def recurrence_weights(layer, width, deep, padded):
    # For every unit four gates side by side, of which a GRU has three: by inputs and by the state.
    hidden, tensors = layer.hidden_size, layer.all_weights
    weight = tensors[0][0].new_zeros(len(tensors), padded, 4, deep)
    bias = weight.new_zeros(len(tensors), 2, padded, 4)
    for place, parts in enumerate(tensors):
        for number, part in enumerate(parts):
            gates, is_of_state = part.unflatten(0, (-1, hidden)).transpose(0, 1), number % 2
            if part.dim() == 1:
                bias[place, is_of_state, :hidden, : gates.shape[1]] = gates
            else:
                begin = is_of_state * width
                weight[place, :hidden, : gates.shape[1], begin : begin + gates.shape[2]] = gates
    return weight, bias


def recurrence_run(layer, by_step, states, tile):
    steps, batch, inputs = by_step.shape
    hidden, layers, directions = layer.hidden_size, layer.num_layers, 1 + layer.bidirectional
    width, padded = -(-max(inputs, directions * hidden) // 64) * 64, -(-hidden // 32) * 32
    deep = width + -(-hidden // 64) * 64
    weight, bias = recurrence_weights(layer, width, deep, padded)
    sequence = by_step.new_zeros(layers + 1, steps + 2, batch, width)
    sequence[0, 1:-1, :, :inputs] = by_step
    sequence[1:, 0, :, :hidden] = states[0][::directions]
    if directions == 2:
        sequence[1:, -1, :, hidden : 2 * hidden] = states[0][1::2]
    is_lstm, memory = len(states) == 2, states[-1].clone(memory_format=torch.contiguous_format)
    units, *_, warps, stages = tile
    rows, cells = 16 if batch <= 16 else 32 if batch <= 32 else 64, layers if directions == 1 else 2
    programs = -(-batch // rows) * cells * (padded // units)
    sizes = is_lstm, cells, directions, hidden, padded, width, deep, rows, *tile[:3]
    options = {{"num_warps": warps, "num_stages": stages}}
    tensors, key = [sequence, weight, bias, memory], ("recurrence", programs, *sizes, tile)
    for number in range(1 if directions == 1 else layers):
        for stage in range(steps + cells - 1 if directions == 1 else steps):
            at = stage, number, steps, batch
            launch(recurrence_kernel, key, programs, tensors, *at, *sizes, **options)
    ends = [sequence[1:, -2, :, :hidden], sequence[1:, 1, :, hidden : 2 * hidden]][:directions]
    last = torch.stack(ends, 1).flatten(0, 1)
    out = sequence[-1, 1:-1, :, : directions * hidden].clone(memory_format=torch.contiguous_format)
    return out.transpose(0, 1) if layer.batch_first else out, (last, memory) if is_lstm else last


def recurrent(layer, forward, input, hx, states):
    is_batch = type(input) is torch.Tensor and input.dim() == 3 and input.numel() > 0
    if not is_batch or input.shape[2] != layer.input_size or layer.proj_size or (layer.training and layer.dropout):
        return forward(layer, input, hx)
    by_step = input.transpose(0, 1) if layer.batch_first else input
    steps, batch, inputs = by_step.shape
    shape = len(layer.all_weights), batch, layer.hidden_size
    states = [input.new_zeros(shape) if each is None else each for each in states]
    tensors = [input, *(each for parts in layer.all_weights for each in parts)]
    widest = max(inputs, shape[2] * (1 + layer.bidirectional)) + 64
    read, weights = (layer.num_layers + 1) * (steps + 2) * batch * widest, 4 * shape[0] * widest * 2 * widest
    launches = steps * layer.num_layers if layer.bidirectional else steps + layer.num_layers - 1
    if max(read, weights) > {MOST_ELEMENTS} or launches > {_MOST_LAUNCHES}:
        return forward(layer, input, hx)
    if not fits([*tensors, *states], [*(each.shape for each in tensors), *[shape] * len(states)]):
        return forward(layer, input, hx)
    # Of many steps some are timed: to launch thousands takes longer than to compute.
    timed = by_step[:{_TIMED_STEPS}]
    setting = layer.input_size, layer.num_layers, layer.bidirectional, layer.batch_first, layer.bias
    key = ("recurrence", len(states), len(timed).bit_length(), *shape, *setting), input.get_device()
    if key not in FASTEST:
        given = timed.transpose(0, 1) if layer.batch_first else timed
        ways = {{tile: lambda tile=tile: recurrence_run(layer, timed, states, tile)[0] for tile in STEPS}}
        choose(key, lambda: forward(layer, given, hx)[0], ways)
    tile = fastest(key)
    if tile is None:
        return forward(layer, input, hx)
    try:
        return recurrence_run(layer, by_step, states, tile)
    except torch.OutOfMemoryError:  # of what every layer was in at every step, which is given back behind this
        pass
    return forward(layer, input, hx)


def lstm_layer(layer, input, hx=None):
    return recurrent(layer, torch.nn.LSTM.forward, input, hx, (None, None) if hx is None else hx)


def gru_layer(layer, input, hx=None):
    return recurrent(layer, torch.nn.GRU.forward, input, hx, (hx,))


RECURRENT_FORWARDS = {{torch.nn.LSTM: lstm_layer, torch.nn.GRU: gru_layer}}
"""


@rewrite(PRODUCT)
def recurrence_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Every step of nn.LSTM and nn.GRU is one Triton kernel: of all layers at once, or of the two directions of one.

    The first call of a shape (captured, the second) times the kernel's tiles and the library, and stays with the
    library where that is the fastest. Assumes what layers_in_triton does. Falls back to the layer itself as that does,
    and for packed sequences, inputs without a batch, projections, and dropout while training.
    """
    found = set(_LAYER.findall(text_of(program)))
    if not found or found & names_bound_in(program.body):  # of somebody's own
        return None
    return with_layers(program, "LayeredRecurrentModel", "RECURRENT_FORWARDS", (FITS, LAUNCHING, CHOOSING), _RECURRENCE)
