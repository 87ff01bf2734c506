#!/usr/bin/env python3
"""What the exponents of a matrix would cost if rows of different scale had tables of their own.

Without an argument: the entropy for Gaussian rows of lognormal scale, computed, not sampled. With a safetensors file
(needs numpy and safetensors): the order-0 entropy of the exponents of its F32 matrices, and the entropy given the class
of each group of 128 units of a row, the class being the group's root mean square in half octaves, coded at its entropy.
"""

import math
import random
import sys


def entropy(p):
    total = sum(p)
    return -sum(x / total * math.log2(x / total) for x in p if x > 0)


def octaves(sigma):
    edges = [math.erf(2.0**k / sigma / 2**0.5) for k in range(-30, 7)]
    return [b - a for a, b in zip(edges, edges[1:])]


def computed(tau=0.25, median=0.0175, rows=4000):
    r = random.Random(1)
    mixed, given, classes, shifted = [0.0] * 36, 0.0, {}, [[0.0] * 60 for _ in range(8)]
    for _ in range(rows):
        sigma = median * math.exp(r.gauss(0, tau))
        p = octaves(sigma)
        given += entropy(p) / rows
        mixed = [a + b / rows for a, b in zip(mixed, p)]
        k = round(2 * math.log2(sigma))
        n, sums = classes.get(k, (0, [0.0] * 36))
        classes[k] = (n + 1, [a + b for a, b in zip(sums, p)])
        for phase, h in enumerate(shifted):
            shift = round(math.log2(sigma) - phase / 8) + 20
            for i, x in enumerate(p):
                h[i - shift + 20] += x
    print(f"one table                {entropy(mixed):.3f} bits")
    print(f"offsets of whole octaves {min(map(entropy, shifted)):.3f}")
    print(f"classes of half octaves  {sum(n * entropy(s) for n, s in classes.values()) / rows:.3f}")
    print(f"given the row's scale    {given:.3f}")


def measured(path, group=128):
    import numpy as np
    from safetensors import safe_open

    units = plain = classed = 0
    with safe_open(path, framework="np") as f:
        for name in f.keys():
            a = f.get_tensor(name)
            if a.dtype != np.float32 or a.ndim != 2 or a.shape[1] < 2 * group:
                continue
            a = a[:, : a.shape[1] // group * group].reshape(-1, group)
            e = (np.ascontiguousarray(a).view(np.uint32) >> 23 & 255).astype(np.int64)
            rms = np.sqrt((a.astype(np.float64) ** 2).mean(1) + 1e-30)
            k = np.round(2 * np.log2(rms)).astype(int)
            bits = entropy(np.bincount(k - k.min()).tolist()) / group
            for parity in (0, 1):
                m = k & 1 == parity
                if m.any():
                    s = e[m] - (k[m] >> 1)[:, None]
                    bits += entropy(np.bincount((s - s.min()).ravel()).tolist()) * m.mean()
            units += e.size
            plain += e.size * entropy(np.bincount(e.ravel()).tolist())
            classed += e.size * bits
    print(f"one table {plain / units:.3f} bits, classes of half octaves {classed / units:.3f} with the classes")


if len(sys.argv) > 1:
    measured(sys.argv[1])
else:
    computed()
