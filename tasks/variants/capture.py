"""Texts that several candidates have in common: an honest CUDA-graph capture, and the timing of alternatives.

In them, PREFIX begins every name but those of imports, so that a program's own names stay free.
"""

COPIED = """

def PREFIX_copied(value):
    if isinstance(value, torch.Tensor):
        return value.clone()
    return torch.utils._pytree.tree_map(lambda item: item.clone() if isinstance(item, torch.Tensor) else item, value)
"""
CAPTURED = """
    def PREFIX_captured(self, way, inputs):
        static = [PREFIX_copied(item) for item in inputs]
        buffers = [(buffer, buffer.clone()) for buffer in self.buffers()]
        stream, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(stream)
        try:
            with torch.cuda.stream(side):
                for _ in range(3):
                    way(self, *static)
        finally:
            stream.wait_stream(side)
        for buffer, before in buffers:  # warming up must leave no trace, such as in running statistics
            buffer.copy_(before)
        torch.clear_autocast_cache()  # a weight that was cast outside of the graph would stay as it is now
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                outputs = way(self, *static)
        finally:
            torch.cuda.set_stream(stream)  # a capture that fails leaves its own in place
        torch.clear_autocast_cache()
        return graph, static, outputs
"""
TIMED = """

def PREFIX_best_ms(calls):
    # What a call takes with its launching, and on the device alone. In turn, and each one's best counts: others may use
    # the device meanwhile. Launching goes on while the device computes, so the more of the two counts; but a call that
    # waits for the device waits for the sleep below as well, and takes what a row without one takes.
    for call in calls:
        call()  # the first time may compile
    torch.cuda.synchronize()
    best, best_on_device, best_launched = ([float("inf")] * len(calls) for _ in range(3))
    until = time.monotonic() + 0.1
    for turn in range(30):
        if turn > 2 and time.monotonic() > until:
            break
        for place, call in enumerate(calls):
            in_a_row = max(1, min(8, round(0.5 / best[place])))  # what is longer seldom goes undisturbed
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(in_a_row):
                call()
            torch.cuda.synchronize()
            row_ms = (time.perf_counter() - began) * 1e3
            best[place] = min(best[place], row_ms / in_a_row)
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            # A device of 2 GHz is kept waiting until all of a short row is launched.
            torch.cuda._sleep(int(3e6 * min(row_ms, 5.0)))
            begin.record()
            began = time.perf_counter()
            for _ in range(in_a_row):
                call()
            launched_ms = (time.perf_counter() - began) * 1e3
            end.record()
            end.synchronize()
            best_on_device[place] = min(best_on_device[place], begin.elapsed_time(end) / in_a_row)
            best_launched[place] = min(best_launched[place], launched_ms / in_a_row)
    parts = zip(best, best_on_device, best_launched)
    return [min(row, max(alone, launched)) for row, alone, launched in parts], best_on_device
"""


def named(text: str, prefix: str) -> str:
    """The text with names that begin with a prefix."""
    return text.replace("PREFIX", prefix)
