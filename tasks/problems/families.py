"""What family a problem belongs to, where nobody has said so: that of the heaviest operator in its reference.

A benchmark's problems come as dozens of near-duplicates, such as one convolution with other functions behind it, a
linear layer and the product it is, or a norm written out as the mean of squares. Those share a family here, so that a
split by families does not have one of them on either side.
"""

import ast

from tasks.problems.parsing import parsed

OTHER = "other"
# From the heaviest: a convolution with a pooling and a softmax behind it is a convolution.
FAMILIES: dict[str, frozenset[str]] = {
    "recurrent_networks": frozenset({"LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"}),
    "transposed_convolutions_3d": frozenset({"ConvTranspose3d", "conv_transpose3d"}),
    "transposed_convolutions_2d": frozenset({"ConvTranspose2d", "conv_transpose2d"}),
    "transposed_convolutions_1d": frozenset({"ConvTranspose1d", "conv_transpose1d"}),
    "convolutions_3d": frozenset({"Conv3d", "conv3d"}),
    "convolutions_2d": frozenset({"Conv2d", "conv2d"}),
    "convolutions_1d": frozenset({"Conv1d", "conv1d"}),
    "attention": frozenset({"scaled_dot_product_attention", "MultiheadAttention"}),
    "products": frozenset(
        {"Linear", "Bilinear", "linear", "bilinear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "tensordot"}
        | {"mv", "diag", "outer"}
    ),
    "distances": frozenset({"cdist", "pdist", "pairwise_distance", "PairwiseDistance"}),
    "pooling": frozenset(
        f"{kind}{size}d" for kind in ("MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool") for size in (1, 2, 3)
    )
    | frozenset(f"{kind}_pool{size}d" for kind in ("max", "avg", "adaptive_avg") for size in (1, 2, 3)),
    "scans": frozenset({"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "flip"}),
    "softmax": frozenset({"softmax", "log_softmax", "logsumexp", "Softmax", "LogSoftmax"}),
    # Norms and losses too, which many references write out as a mean or a sum.
    "reductions": frozenset(
        {"sum", "mean", "max", "min", "prod", "var", "std", "argmax", "argmin", "amax", "amin", "norm", "normalize"}
        | {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "RMSNorm", "batch_norm", "layer_norm"}
        | {"InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "group_norm", "rms_norm", "instance_norm"}
        | {"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"}
        | {"cosine_similarity", "triplet_margin_loss", "hinge_embedding_loss", "binary_cross_entropy"}
        | {"CrossEntropyLoss", "MSELoss", "SmoothL1Loss", "HuberLoss", "KLDivLoss", "TripletMarginLoss", "BCELoss"}
    ),
    "activations": frozenset(
        {"abs", "relu", "leaky_relu", "sigmoid", "tanh", "gelu", "elu", "selu", "silu", "mish", "softplus", "softsign"}
        | {"hardtanh", "hardsigmoid", "hardswish", "relu6", "clamp", "ReLU", "GELU", "SiLU", "Mish", "ELU", "SELU"}
        | {"LeakyReLU", "Sigmoid", "Tanh", "Softplus", "Softsign", "Hardtanh", "Hardswish", "Hardsigmoid"}
    ),
}
_INPUTS = ("get_inputs", "get_init_inputs")


def family_of(source: str) -> str:
    """The family of a reference; OTHER where none of the operators is known.

    >>> family_of("class Model:\\n    def forward(self, x):\\n        return torch.relu(x @ x.T).sum()")
    'products'
    """
    used: set[str] = set()
    for statement in parsed(source.removeprefix("\ufeff")).body:
        if isinstance(statement, ast.FunctionDef) and statement.name in _INPUTS:
            continue  # how inputs are made says nothing about what is computed
        for node in ast.walk(statement):
            match node:
                case ast.Attribute(attr=name) | ast.Name(id=name):
                    used.add(name)
                case ast.MatMult():
                    used.add("matmul")
    return next((family for family, operators in FAMILIES.items() if not operators.isdisjoint(used)), OTHER)
