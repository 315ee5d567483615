"""A rewrite for recurrent layers: what nn.LSTM and nn.GRU do in a step, of all layers at once, is one Triton kernel."""

import random
import re

import libcst as cst

from tasks.variants.rewrites.triton_multiplying import MOST_ELEMENTS, MULTIPLYING, PRODUCT
from tasks.variants.rewrites.triton_program import CHOOSING, FITS, LAUNCHING, with_layers
from tasks.variants.rewriting import rewrite

_LAYER = re.compile(r"\b(LSTM|GRU)\(")
_MOST_LAUNCHES = 1 << 13
"""Of one call; with more, finding out what is the fastest would take seconds."""
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
    block, depth = tl.program_id(0) % (PADDED // UNITS), tl.arange(0, DEPTH)
    columns = block * (4 * UNITS) + tl.arange(0, 4 * UNITS)
    here = (rows < batch) & (step >= 0) & (step < steps)
    given = (layer * (steps + 2) + step + 1) * batch * WIDTH
    before = ((layer + 1) * (steps + 2) + step + 2 * direction) * batch * WIDTH + direction * HIDDEN
    place = layer * DIRECTIONS + direction
    others = place * (4 * PADDED * DEEP) + depth[:, None] + columns[None, :] * DEEP
    total = tl.full([ROWS, 4 * UNITS], 0.0, tl.float32)
    for start in tl.range(0, DEEP, DEPTH, loop_unroll_factor=AT_A_TIME):
        # Inputs first, and then the state.
        begin = tl.where(start < WIDTH, given + start, before + start - WIDTH)
        size = tl.where(start < WIDTH, WIDTH - start, WIDTH + HIDDEN - start)
        at = begin + rows[:, None] * WIDTH + depth[None, :]
        one = tl.load(sequence + at, mask=here[:, None] & (depth[None, :] < size), other=0.0)
        # Taken away, not added: a sum would go on in the tensor cores, which cut off what they cannot hold.
        total = total - tl.dot(one, tl.load(weight + others + start), input_precision="tf32x3")
    total = tl.load(bias + place * (4 * PADDED) + columns)[None, :] - total
    # The four gates of a unit lie side by side.
    even, odd = tl.split(tl.reshape(total, [ROWS, UNITS, 2, 2]))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    units = block * UNITS + tl.arange(0, UNITS)
    mask = here[:, None] & (units[None, :] < HIDDEN)
    if IS_LSTM:
        at = (place * batch + rows[:, None]) * HIDDEN + units[None, :]
        kept = recurrence_gate(second) * tl.load(memory + at, mask=mask, other=0.0)
        kept += recurrence_gate(first) * libdevice.tanh(third)
        tl.store(memory + at, kept, mask=mask)
        state = recurrence_gate(fourth) * libdevice.tanh(kept)
    else:
        last = tl.load(sequence + before + rows[:, None] * WIDTH + units[None, :], mask=mask, other=0.0)
        new, kept = libdevice.tanh(third + recurrence_gate(first) * fourth), recurrence_gate(second)
        state = (1.0 - kept) * new + kept * last
    at = ((layer + 1) * (steps + 2) + step + 1) * batch * WIDTH + direction * HIDDEN
    tl.store(sequence + at + rows[:, None] * WIDTH + units[None, :], state, mask=mask)


def recurrence_weights(module, width, deep, padded):
    # The four gates of an LSTM; of a GRU two, and apart what the third makes of inputs and of the state.
    hidden, layers = module.hidden_size, module.all_weights
    weight = layers[0][0].new_zeros(len(layers), padded, 4, deep)
    bias = weight.new_zeros(len(layers), padded, 4)
    for place, tensors in enumerate(layers):
        for number, tensor in enumerate(tensors):
            is_of_state, gates = number % 2, tensor.unflatten(0, (-1, hidden)).transpose(0, 1)
            size = gates.shape[1]
            parts = [(0, gates)] if size == 4 else [(0, gates[:, :2]), (2 + is_of_state, gates[:, 2:])]
            for gate, part in parts:
                to = place, slice(hidden), slice(gate, gate + part.shape[1])
                if tensor.dim() == 1:
                    bias[to] += part
                else:
                    weight[(*to, slice(is_of_state * width, is_of_state * width + part.shape[2]))] = part
    return weight, bias


def recurrence_run(module, by_step, states, tile):
    steps, batch, inputs = by_step.shape
    hidden, layers, directions = module.hidden_size, module.num_layers, 1 + module.bidirectional
    width, padded = -(-max(inputs, directions * hidden) // 64) * 64, -(-hidden // 32) * 32
    deep = width + -(-hidden // 64) * 64
    weight, bias = recurrence_weights(module, width, deep, padded)
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
    tensors, number = [sequence, weight, bias, memory], ("recurrence", programs, *sizes, tile)
    for layer in range(1 if directions == 1 else layers):
        for stage in range(steps + cells - 1 if directions == 1 else steps):
            at = stage, layer, steps, batch
            launch(recurrence_kernel, number, programs, tensors, *at, *sizes, **options)
    ends = [sequence[1:, -2, :, :hidden], sequence[1:, 1, :, hidden : 2 * hidden]][:directions]
    last = torch.stack(ends, 1).flatten(0, 1)
    out = sequence[-1, 1:-1, :, : directions * hidden].clone(memory_format=torch.contiguous_format)
    return out.transpose(0, 1) if module.batch_first else out, (last, memory) if is_lstm else last


def recurrent(module, given, states, plain):
    is_batch = type(given) is torch.Tensor and given.dim() == 3 and given.numel() > 0
    if not is_batch or given.shape[2] != module.input_size or module.proj_size or (module.training and module.dropout):
        return plain()
    by_step = given.transpose(0, 1) if module.batch_first else given
    steps, batch, inputs = by_step.shape
    shape = len(module.all_weights), batch, module.hidden_size
    states = [given.new_zeros(shape) if each is None else each for each in states]
    tensors = [given, *(each for layer in module.all_weights for each in layer)]
    widest = max(inputs, shape[2] * (1 + module.bidirectional)) + 64
    read, weights = (module.num_layers + 1) * (steps + 2) * batch * widest, 4 * shape[0] * widest * 2 * widest
    launches = steps * module.num_layers if module.bidirectional else steps + module.num_layers - 1
    if max(read, weights) > {MOST_ELEMENTS} or launches > {_MOST_LAUNCHES}:
        return plain()
    if not fits([*tensors, *states], [*(each.shape for each in tensors), *[shape] * len(states)]):
        return plain()
    setting = module.input_size, module.num_layers, module.bidirectional, module.batch_first, module.bias
    key = (len(states), *shape, *setting), given.get_device()
    if key not in FASTEST:
        ways = {{tile: lambda tile=tile: recurrence_run(module, by_step, states, tile)[0] for tile in STEPS}}
        choose(key, lambda: plain()[0], ways, UNUSABLE)
    tile = fastest(key)
    return plain() if tile is None else recurrence_run(module, by_step, states, tile)


class TritonLSTM(torch.nn.LSTM):
    def forward(self, input, hx=None):
        states = (None, None) if hx is None else hx
        return recurrent(self, input, states, lambda: torch.nn.LSTM.forward(self, input, hx))


class TritonGRU(torch.nn.GRU):
    def forward(self, input, hx=None):
        return recurrent(self, input, (hx,), lambda: torch.nn.GRU.forward(self, input, hx))


TRITON_RECURRENT = {{torch.nn.LSTM: TritonLSTM, torch.nn.GRU: TritonGRU}}
"""


@rewrite(PRODUCT)
def recurrence_in_triton(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Every step of nn.LSTM and nn.GRU is one Triton kernel: of all layers at once, or of the two directions of one.

    The first call of a shape times the kernel's tiles and the library, and stays with the library where that is the
    fastest. Assumes what layers_in_triton does. Falls back to the layer itself as that does, and for packed sequences,
    inputs without a batch, projections, and dropout while training.
    """
    if not _LAYER.search(program.code):
        return None
    helpers = (FITS, LAUNCHING, CHOOSING, MULTIPLYING)
    return with_layers(program, "LayeredRecurrentModel", "TRITON_RECURRENT", helpers, _RECURRENCE)
