"""C with four threads that it joins."""

PROBLEM = "row_softmax"
EXPECTED = "correct"
TRACK = "kernel"

import ctypes
import os
import subprocess

import torch
import torch.nn as nn


CODE = """
#include <math.h>
#include <pthread.h>
struct part { const float *x; float *out; int rows, columns; };
static void *work(void *argument) {
    struct part *p = argument;
    for (int r = 0; r < p->rows; r++) {
        const float *x = p->x + (long)r * p->columns;
        float *out = p->out + (long)r * p->columns, top = x[0], sum = 0;
        for (int c = 1; c < p->columns; c++) top = fmaxf(top, x[c]);
        for (int c = 0; c < p->columns; c++) sum += out[c] = expf(x[c] - top);
        for (int c = 0; c < p->columns; c++) out[c] *= x[c] / sum;
    }
    return 0;
}
void run(const float *x, float *out, int rows, int columns) {
    pthread_t threads[4];
    struct part parts[4];
    for (int t = 0; t < 4; t++) {
        int from = rows * t / 4, to = rows * (t + 1) / 4;
        parts[t] = (struct part){x + (long)from * columns, out + (long)from * columns, to - from, columns};
        pthread_create(&threads[t], 0, work, &parts[t]);
    }
    for (int t = 0; t < 4; t++) pthread_join(threads[t], 0);
}
"""
subprocess.run(
    ["cc", "-O2", "-pthread", "-shared", "-fPIC", "-x", "c", "-o", "kernel.so", "-", "-lm"],
    input=CODE.encode(),
    check=True,
)
KERNEL = ctypes.CDLL(os.path.abspath("kernel.so"))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        KERNEL.run(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), x.shape[0], x.shape[1])
        return out
