#!/usr/bin/env python3
"""Compares wcodec with ZipNN, zstd level 3 and plain copies on the same BF16 weights, in one run, on one core.

`make bench-peers` installs what this needs and runs it. Data is a synthetic checkpoint of `wcodec synth`, or any
safetensors file of BF16 tensors (--data). Every code is measured in two settings:

  warm   pieces of --piece MiB, and a heap that keeps its pages: what the code itself costs
  fresh  all data in one call whose result is newly allocated memory, with the C library's defaults: what a caller
         of an API that returns new buffers pays, page faults included

Rounds go through all codes in turn, so that a busy moment falls on all of them; figures are medians (or, with --best,
the fastest runs, for a machine that others use too) in bytes of weights a second. wcodec's own come from `wcodec bench --json` on the same file and core, half of the runs before the
others and half after; it works on reused buffers, so it stands among the warm ones, and it checks every checksum while
it decodes.

ZipNN is called as its Python class calls it for bfloat16, without the copy of the input that the class makes besides.
Its encoder changes the input in place, so each call gets a copy of its own, made outside of the measured time.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
import time

# glibc: keep freed memory instead of giving its pages back, whatever the size.
WARM_HEAP = {"MALLOC_MMAP_THRESHOLD_": str(1 << 36), "MALLOC_TRIM_THRESHOLD_": str(1 << 36), "MALLOC_TOP_PAD_": str(64 << 20)}

ZIPNN_CHUNK = 256 << 10  # the default of its class


class Copy:
    """memcpy: into memory that is there (warm), or into new memory (fresh)."""

    name = "memcpy"

    def __init__(self, piece, warm):
        import numpy

        self.numpy, self.warm = numpy, warm
        self.dst = numpy.zeros(piece, numpy.uint8)

    def prepare(self, data):
        return self.numpy.frombuffer(data, self.numpy.uint8)

    def encode(self, src):
        if self.warm:
            self.numpy.copyto(self.dst[: len(src)], src)
            return self.dst[: len(src)]
        return src.copy()

    decode = None


class Zstd:
    """zstd at level 3, one frame a piece."""

    name = "zstd -3"

    def __init__(self, piece, warm):
        import zstandard

        self.encoder, self.decoder = zstandard.ZstdCompressor(level=3, threads=0), zstandard.ZstdDecompressor()

    def prepare(self, data):
        return data

    def encode(self, data):
        return self.encoder.compress(data)

    def decode(self, packed, size):
        return self.decoder.decompress(packed)


class ZipNN:
    """ZipNN's C extension with the arguments that its class passes for bfloat16 bytes, on one thread."""

    name = "ZipNN"
    header = bytes(32)

    def __init__(self, piece, warm):
        import zipnn_core

        self.core = zipnn_core

    def prepare(self, data):
        return bytearray(data)

    def encode(self, data):
        return self.core.zipnn_core(self.header, data, 2, 1, 10, 0, ZIPNN_CHUNK, 0.95, 10, 1)

    def decode(self, packed, size):
        return self.core.combine_dtype(memoryview(packed)[len(self.header) :], 2, 1, 10, ZIPNN_CHUNK, size, 1)


def tensor_bytes(path):
    """The data section of a safetensors file, which must be BF16 for the most part."""
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(n))
        data = f.read()
    sizes = {}
    for name, t in header.items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            sizes[t["dtype"]] = sizes.get(t["dtype"], 0) + end - begin
    if sizes.get("BF16", 0) < 0.99 * len(data):
        sys.exit(f"{path}: the peers are called for BF16, and this file is {sizes}")
    return data


def measure(path, piece, rounds, warm):
    """Times every code on the pieces of a file. Returns a list of rows."""
    data = tensor_bytes(path)
    size = piece if warm else len(data)
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    codes = [c(size, warm) for c in (Copy, Zstd, ZipNN)]
    rows = {}
    for round_ in range(rounds + 1):  # the first brings in code and memory, and checks
        for code in codes:
            encode = decode = 0.0
            stored = 0
            for p in pieces:
                source = code.prepare(p)
                begin = time.perf_counter()
                packed = code.encode(source)
                encode += time.perf_counter() - begin
                stored += len(packed)
                if code.decode is None:
                    continue
                begin = time.perf_counter()
                plain = code.decode(packed, len(p))
                decode += time.perf_counter() - begin
                if round_ == 0 and bytes(plain) != p:
                    sys.exit(f"{code.name} did not give the bytes back")
            if round_ == 0:
                rows[code.name] = {"name": code.name, "ratio": len(data) / stored, "encode_runs": [], "decode_runs": []}
                continue
            rows[code.name]["encode_runs"].append(len(data) / encode)
            if code.decode is not None:
                rows[code.name]["decode_runs"].append(len(data) / decode)
    return list(rows.values())


def child(args, warm):
    """Runs measure in a process of its own, with the heap of the setting."""
    command = [sys.executable, os.path.abspath(__file__), "--child", "warm" if warm else "fresh", "--data", args.data]
    command += ["--piece", str(args.piece), "--rounds", str(args.rounds), "--core", str(args.core)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **(WARM_HEAP if warm else {})}
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def pin(core):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def first(row, *keys):
    """The value of the first of the keys that is there: the JSON of wcodec may be older or newer than this script."""
    for key in keys:
        if row.get(key) is not None:
            return row[key]
    return None


def ours(args, runs):
    """wcodec's encode and decode on one thread: (ratio, encode runs, decode runs, the whole report)."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(args.data))) as scratch:
        command = [args.wcodec, "bench", args.data, "--json", "--no-progress", "--reps", str(runs), "-o", scratch]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, preexec_fn=lambda: pin(args.core))
    report = json.loads(done.stdout)
    found = {}
    for row in first(report, "rows", "results", "measurements") or []:
        if first(row, "threads", "workers") == 1:
            speed = first(row, "plain_bytes_per_second", "bytes_per_second")
            found[row["name"]] = row.get("runs") or [speed]
    if "encode" not in found or "decode" not in found:
        sys.exit("wcodec bench --json has no rows encode and decode on one thread")
    return first(report, "ratio"), found["encode"], found["decode"], report


def synthetic(args):
    """Makes the checkpoint that is measured where --data names none."""
    where = os.path.join(args.cache, f"{args.model}-{args.layers}-{args.shrink}")
    path = os.path.join(where, "model.safetensors")
    if not os.path.exists(path):
        subprocess.run([args.wcodec, "synth", "--model", args.model, "--layers", str(args.layers), "--shrink",
                        str(args.shrink), "--seed", "1", "-q", "-f", "-o", where], check=True)
    return path


def cpu_name():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def finish(row, take):
    for side in ("encode", "decode"):
        runs = row[f"{side}_runs"]
        row[side] = take(runs) if runs else None
    return row


def table(result):
    rows = result["rows"]
    copies = {r["setting"]: r["encode"] for r in rows if r["name"] == Copy.name}
    zipnn = {r["setting"]: r for r in rows if r["name"] == ZipNN.name}
    print(f"{result['cpu']}, core {result['core']}, load {result['load']:.1f}; {result['bytes'] / 1e6:.0f} MB of BF16, "
          f"{result['figures']} of {len(rows[0]['encode_runs'])} runs")
    print(", ".join(f"{k} {v}" for k, v in result["versions"].items()))
    print(f"\n{'setting':8}{'code':10}{'ratio':>8}{'encode GB/s':>13}{'of memcpy':>11}{'x ZipNN':>9}"
          f"{'decode GB/s':>13}{'of memcpy':>11}{'x ZipNN':>9}")
    for r in rows:
        line = f"{r['setting']:8}{r['name']:10}{r['ratio']:8.4f}"
        for side in ("encode", "decode"):
            if r[side] is None:
                continue
            line += f"{r[side] / 1e9:13.2f}{r[side] / copies[r['setting']]:11.3f}"
            line += f"{r[side] / zipnn[r['setting']][side]:9.2f}" if r["name"] != Copy.name else ""
        print(line)
    own = next(r for r in rows if r["name"] == "wcodec")
    against = ", ".join(f"{side} {own[side] / zipnn['fresh'][side]:.2f}" for side in ("encode", "decode"))
    print(f"\nwcodec on reused buffers against ZipNN as it is called, on new ones: {against} times")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--wcodec", default="bin/wcodec", help="the command to measure")
    p.add_argument("--data", help="a safetensors file of BF16 tensors; else one is made")
    p.add_argument("--model", default="llama-3-8b", help="what wcodec synth makes")
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--shrink", type=int, default=4)
    p.add_argument("--cache", default=".cache/peers", help="where it is kept")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--piece", type=int, default=16, help="MiB in a call where the heap is warm")
    p.add_argument("--core", type=int, default=0, help="the core on which everything runs")
    p.add_argument("--best", action="store_true", help="take the fastest run of each instead of the median")
    p.add_argument("--json", help="where to write all figures")
    p.add_argument("--child", choices=["warm", "fresh"], help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.child:
        pin(args.core)
        json.dump(measure(args.data, args.piece << 20, args.rounds, args.child == "warm"), sys.stdout)
        return
    args.data = args.data or synthetic(args)
    half = (args.rounds + 1) // 2
    before = ours(args, half)
    rows = [{**r, "setting": s} for s in ("warm", "fresh") for r in child(args, s == "warm")]
    after = ours(args, half)
    rows.append({"name": "wcodec", "setting": "warm", "ratio": before[0], "encode_runs": before[1] + after[1],
                 "decode_runs": before[2] + after[2]})
    order = ["warm", "fresh"]
    rows.sort(key=lambda r: order.index(r["setting"]))
    result = {
        "figures": "fastest" if args.best else "median", "cpu": cpu_name(), "core": args.core, "load": os.getloadavg()[0], "system": platform.platform(),
        "bytes": os.path.getsize(args.data), "data": os.path.basename(os.path.dirname(os.path.abspath(args.data))),
        "versions": {"wcodec": str(after[3].get("version")), "python": platform.python_version(),
                     **{n: importlib.metadata.version(n) for n in ("zipnn", "zstandard", "numpy")}},
        "rows": [finish(r, max if args.best else statistics.median) for r in rows], "wcodec_bench": after[3],
    }
    table(result)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(result, f, indent=2)
            f.write("\n")


if __name__ == "__main__":
    main()
