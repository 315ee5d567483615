"""The text of an honest CUDA-graph capture, which the baseline of that name and the rewrite of it have in common.

In it, PREFIX begins every name, so that a program's own names stay free.
"""

COPIED = """

def PREFIX_copied(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    return torch.utils._pytree.tree_map(lambda item: item.clone() if isinstance(item, torch.Tensor) else item, value)
"""
CAPTURED = """
    def PREFIX_captured(self, inputs):
        static = [PREFIX_copied(item) for item in inputs]
        buffers = [(buffer, buffer.clone()) for buffer in self.buffers()]
        stream, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(stream)
        with torch.cuda.stream(side):
            for _ in range(3):
                super().forward(*static)
        stream.wait_stream(side)
        for buffer, before in buffers:  # warming up must leave no trace, such as in running statistics
            buffer.copy_(before)
        torch.clear_autocast_cache()  # a weight that was cast outside of the graph would stay as it is now
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = super().forward(*static)
        torch.clear_autocast_cache()
        return graph, static, outputs
"""


def named(text: str, prefix: str) -> str:
    """The text with names that begin with a prefix."""
    return text.replace("PREFIX", prefix)
