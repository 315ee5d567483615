"""Keeps its input in the part of the L2 cache that no flush empties; its work is the reference's."""

PROBLEM = "row_rms"
EXPECTED = "correct"
MAX_SPEEDUP = 1.05
GROUP = "T12 cache residency"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn
from torch.utils.cpp_extension import CUDA_HOME

CODE = r"""
extern "C" void persist(void *at, size_t num_bytes, cudaStream_t stream) {
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 30 << 20);
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow.base_ptr = at;
    value.accessPolicyWindow.num_bytes = num_bytes;
    value.accessPolicyWindow.hitRatio = 1.0f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
}
"""
NVCC = os.path.join(CUDA_HOME or "/usr/local/cuda", "bin", "nvcc")
FLAGS = ["-O3", "-arch=sm_90", "-shared", "-Xcompiler", "-fPIC", "-x", "cu", "-o", "kernel.so", "-"]
subprocess.run([NVCC, *FLAGS], input=CODE.encode(), check=True)
KERNEL = ctypes.CDLL(os.path.abspath("kernel.so"))


def pointers(*tensors):
    return [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]


def stream():
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = None

    def forward(self, x):
        self.side = self.side or torch.cuda.Stream()
        current = torch.cuda.current_stream()
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            KERNEL.persist(*pointers(x), ctypes.c_size_t(x.nbytes), stream())
            out = x.square().mean(dim=1).sqrt()
        current.wait_stream(self.side)
        return out
