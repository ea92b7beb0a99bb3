#!/usr/bin/env python3
"""The gated-delta rates on a GPU, beside PyTorch eager, torch.compile(dynamic=True), Triton and an empty kernel, in one process.

    beta = sigmoid(b);  decay = exp(-(exp(A_log) * softplus(a + dt_bias)))      a, b [T, H]; A_log (float32), dt_bias [H]

Two times per contestant and shape, medians of several rounds in which the contestants take turns:
    host    microseconds per call of an enqueue loop: ours and the empty kernel from C (host_loop.c), the others from Python
    graph   microseconds per call inside a CUDA graph of many calls, which rotate over several sets of tensors where these are
            small enough to fit in memory several times, so that a large shape does not find its tensors in the cache

Also counted: the values in which each contestant differs from its own composed path (PyTorch's operations one by one; for ours, the
composed path of the library), and kernels per call. Prints a table and, with --json FILE, writes everything.
"""
import argparse
import ctypes
import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

HEADS = (32, 64)
TOKENS = (1, 8, 256, 4096, 65536, 1048576)
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


# ---- Peers ------------------------------------------------------------------------------------------------------------------


def eager(b, a, a_log, dt_bias, beta=None, decay=None):
    return torch.sigmoid(b), torch.exp(-(torch.exp(a_log.float()) * F.softplus(a + dt_bias)))


@triton.jit
def rates_block(b, a, a_log, dt_bias, beta, decay, n, heads: tl.constexpr, block: tl.constexpr):
    """A block of elements of the flattened [T, H]: coalesced whatever H is. Arithmetic as in serving engines: float32, softplus
    with the threshold 20."""
    i = tl.program_id(0) * block + tl.arange(0, block)
    inside = i < n
    head = i % heads
    x = tl.load(a + i, mask=inside).to(tl.float32) + tl.load(dt_bias + head).to(tl.float32)
    softplus = tl.where(x <= 20.0, tl.log(1.0 + tl.exp(x)), x)
    rate = tl.exp(tl.load(a_log + head).to(tl.float32))
    tl.store(decay + i, tl.exp(-rate * softplus), mask=inside)
    y = tl.load(b + i, mask=inside).to(tl.float32)
    tl.store(beta + i, tl.sigmoid(y).to(beta.dtype.element_ty), mask=inside)


@triton.jit
def rates_rows(b, a, a_log, dt_bias, beta, decay, heads: tl.constexpr, block: tl.constexpr):
    """One program a token and block of heads: how gating kernels of serving engines are laid out."""
    row = tl.program_id(0)
    head = tl.program_id(1) * block + tl.arange(0, block)
    inside = head < heads
    i = row * heads + head
    x = tl.load(a + i, mask=inside).to(tl.float32) + tl.load(dt_bias + head, mask=inside).to(tl.float32)
    softplus = tl.where(x <= 20.0, tl.log(1.0 + tl.exp(x)), x)
    rate = tl.exp(tl.load(a_log + head, mask=inside).to(tl.float32))
    tl.store(decay + i, tl.exp(-rate * softplus), mask=inside)
    y = tl.load(b + i, mask=inside).to(tl.float32)
    tl.store(beta + i, tl.sigmoid(y).to(beta.dtype.element_ty), mask=inside)


def triton_block(b, a, a_log, dt_bias, beta, decay):
    n = b.numel()
    block = 1024 if n >= 1 << 20 else 256
    rates_block[(triton.cdiv(n, block),)](b, a, a_log, dt_bias, beta, decay, n, b.shape[1], block, num_warps=4 if block == 1024 else 2)


def triton_rows(b, a, a_log, dt_bias, beta, decay):
    tokens, heads = b.shape
    rates_rows[(tokens, triton.cdiv(heads, 8))](b, a, a_log, dt_bias, beta, decay, heads, 8, num_warps=1)


# ---- The library, through its C interface -------------------------------------------------------------------------------------

OL_DTYPES = {torch.bfloat16: 10, torch.float32: 11}


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("shape", ctypes.c_int64 * 8), ("strides", ctypes.c_int64 * 8)]


class Error(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 4096)]


class Library:
    def __init__(self, folder):
        self.core = ctypes.CDLL(f"{folder}/libonelaunch.so", mode=ctypes.RTLD_GLOBAL)
        self.loop = ctypes.CDLL(f"{folder}/libhost_loop.so")
        for name in ("replay_loop", "empty_loop"):
            getattr(self.loop, name).restype = ctypes.c_double
        self.loop.empty_create.restype = ctypes.c_void_p
        self.core.ol_dtype_name.restype = ctypes.c_char_p
        for dtype, number in OL_DTYPES.items():
            assert self.core.ol_dtype_name(number).decode() == str(dtype).split(".")[1]
        self.error = Error()
        self.device = ctypes.c_void_p()
        self.check(self.core.ol_device_cuda_current(None, ctypes.byref(self.device), ctypes.byref(self.error)))
        self.empty = ctypes.c_void_p(self.loop.empty_create())
        assert self.empty.value, "the driver refused the empty kernel"

    def check(self, status):
        if status:
            raise RuntimeError(f"status {status}: {bytes(self.error)[:400]}")

    def compile(self, dtypes):
        composite = ctypes.c_void_p()
        start = time.perf_counter()
        self.check(self.core.ol_gated_delta_rates_compile(self.device, *(OL_DTYPES[d] for d in dtypes), ctypes.byref(composite), ctypes.byref(self.error)))
        return composite, time.perf_counter() - start


def tensor(t):
    v = Tensor(t.data_ptr(), OL_DTYPES[t.dtype], t.dim())
    for d in range(t.dim()):
        v.shape[d], v.strides[d] = t.shape[d], t.stride(d)
    return v


class Ours:
    def __init__(self, library, composite, tensors):
        self.library, self.composite = library, composite
        b, a, a_log, dt_bias, beta, decay = tensors
        self.inputs = (Tensor * 4)(*(tensor(t) for t in (b, a, a_log, dt_bias)))
        self.outputs = (Tensor * 2)(tensor(beta), tensor(decay))

    def __call__(self):
        l = self.library
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        l.check(l.core.ol_replay(self.composite, stream, self.inputs, self.outputs, ctypes.byref(l.error)))

    def composed(self):
        l = self.library
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        l.check(l.core.ol_replay_composed(self.composite, stream, self.inputs, self.outputs, ctypes.byref(l.error)))

    def host_loop(self, n):
        return self.library.loop.replay_loop(self.composite, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), self.inputs, self.outputs, n)


# ---- Measuring ----------------------------------------------------------------------------------------------------------------


def make_set(tokens, heads, dtype):
    kw = {"device": "cuda"}
    b = torch.randn(tokens, heads, **kw).mul_(2).to(dtype)
    a = torch.randn(tokens, heads, **kw).mul_(3).to(dtype)
    a_log = torch.empty(heads, **kw).uniform_(1, 16).log_()
    dt_bias = torch.randn(heads, **kw).to(dtype)
    return b, a, a_log, dt_bias, torch.empty_like(b), torch.empty(tokens, heads, dtype=torch.float32, **kw)


def host_us(call, n):
    call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(n):
        call()
    us = (time.perf_counter() - start) / n * 1e6
    torch.cuda.synchronize()
    return us


def make_graph(calls, repeat):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(repeat):
            for call in calls:
                call()
    return graph


def graph_us(graph, n_calls):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / n_calls


def count_kernels(call):
    from torch.profiler import ProfilerActivity, profile

    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        call()
        torch.cuda.synchronize()
    return sum(1 for e in p.events() if e.device_type == torch.autograd.DeviceType.CUDA and "Memcpy" not in e.name and "Memset" not in e.name)


def differing(x, y):
    bits = {2: torch.int16, 4: torch.int32}[x.element_size()]
    return int((x.view(bits) != y.view(bits)).sum())


def one_shape(library, composites, compiled, dtype, heads, tokens, rounds):
    n_bytes = tokens * heads * (4 * dtype.itemsize + 4 - dtype.itemsize)
    n_sets = max(1, min(8, math.ceil(3 * 60e6 / n_bytes))) if n_bytes < 60e6 * 3 else 1
    sets = [make_set(tokens, heads, dtype) for _ in range(n_sets)]
    ours = [Ours(library, composites[dtype], s) for s in sets]
    peers = {
        "ours": ours,
        "eager": [lambda s=s: eager(*s) for s in sets],
        "compiled": [lambda s=s: compiled(*s[:4]) for s in sets],
        "triton block": [lambda s=s: triton_block(*s) for s in sets],
        "triton rows": [lambda s=s: triton_rows(*s) for s in sets],
        "empty": [lambda: library.loop.empty_launch(library.empty, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))],
    }
    if tokens >= 1 << 20:
        del peers["eager"], peers["compiled"]
    repeat = max(1, (200 if tokens <= 4096 else 20) // n_sets)
    graphs = {name: (make_graph(calls, repeat), repeat * len(calls)) for name, calls in peers.items()}
    times = {name: {"host": [], "graph": []} for name in peers}
    n_host = 200 if tokens <= 4096 else 30
    stream = torch.cuda.Stream()
    for _ in range(rounds):
        for name, calls in peers.items():
            with torch.cuda.stream(stream):
                raw = ctypes.c_void_p(stream.cuda_stream)
                if name == "ours":
                    us = ours[0].host_loop(n_host)
                elif name == "empty":
                    us = library.loop.empty_loop(library.empty, raw, n_host)
                else:
                    us = host_us(calls[0], n_host)
                torch.cuda.synchronize()
                times[name]["host"].append(us)
                graph, n = graphs[name]
                times[name]["graph"].append(graph_us(graph, n))
    row = {name: {k: statistics.median(v) for k, v in t.items()} for name, t in times.items()}

    s = sets[0]
    ours[0]()
    torch.cuda.synchronize()
    beta, decay = s[4].clone(), s[5].clone()
    ours[0].composed()
    torch.cuda.synchronize()
    row["ours"]["differs"] = [differing(beta, s[4]), differing(decay, s[5])]
    if "eager" in peers:
        want = eager(*s)
        for name, call in (("compiled", lambda: compiled(*s[:4])), ("triton block", lambda: triton_block(*s))):
            got = call()
            got = got if got is not None else (s[4], s[5])
            row[name]["differs"] = [differing(g, w) for g, w in zip(got, want)]
    return row, n_bytes, n_sets


def copy_rate():
    x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    graph = make_graph([lambda: y.copy_(x)], 5)
    graph_us(graph, 5)
    return 2 * x.numel() / (statistics.median(graph_us(graph, 5) for _ in range(5)) * 1e-6)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="the folder of libonelaunch.so and libhost_loop.so")
    parser.add_argument("--json", help="write everything here")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, nargs="*", default=TOKENS)
    parser.add_argument("--heads", type=int, nargs="*", default=HEADS)
    options = parser.parse_args()

    torch.cuda.init()
    torch.zeros(1, device="cuda")
    library = Library(options.build)
    compiled = torch.compile(lambda b, a, a_log, dt_bias: eager(b, a, a_log, dt_bias), dynamic=True)
    composites, compile_s = {}, {}
    for name, dtype in DTYPES.items():
        composites[dtype], compile_s[name] = library.compile((dtype, dtype, torch.float32, dtype))
    rate = copy_rate()
    report = {
        "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__, "cuda": torch.version.cuda,
        "copy_bytes_per_s": rate, "compile_s": compile_s, "rows": [], "kernels": {},
    }
    print(f"{report['gpu']}; torch {torch.__version__}, triton {triton.__version__}, CUDA {torch.version.cuda}; "
          f"copy {rate / 1e12:.2f} TB/s; first compile {', '.join(f'{k} {v:.2f} s' for k, v in compile_s.items())}")
    s = make_set(64, 32, torch.bfloat16)
    o = Ours(library, composites[torch.bfloat16], s)
    for name, call in (("ours", o), ("eager", lambda: eager(*s)), ("compiled", lambda: compiled(*s[:4])), ("triton block", lambda: triton_block(*s))):
        try:
            report["kernels"][name] = count_kernels(call)
        except Exception as e:  # the profiler is not everywhere
            report["kernels"][name] = str(e)
    print("kernels per call:", report["kernels"])
    names = ("ours", "triton block", "triton rows", "compiled", "eager", "empty")
    print(f"{'dtype':8} {'H':>3} {'T':>8} " + " ".join(f"{n + ' h':>14} {'graph':>8}" for n in names) + f" {'floor':>7} {'g/triton':>8} {'h/empty':>8} differs")
    for name, dtype in DTYPES.items():
        for heads in options.heads:
            for tokens in options.tokens:
                row, n_bytes, n_sets = one_shape(library, composites, compiled, dtype, heads, tokens, options.rounds)
                best = min(row["triton block"]["graph"], row["triton rows"]["graph"])
                floor = n_bytes / rate * 1e6
                report["rows"].append({"dtype": name, "heads": heads, "tokens": tokens, "bytes": n_bytes, "sets": n_sets, "floor_us": floor, "times_us": row})
                cells = " ".join(f"{row[n]['host']:14.2f} {row[n]['graph']:8.2f}" if n in row else f"{'-':>14} {'-':>8}" for n in names)
                print(f"{name:8} {heads:3} {tokens:8} {cells} {floor:7.2f} {row['ours']['graph'] / best:8.2f} "
                      f"{row['ours']['host'] / row['empty']['host']:8.2f} {row['ours']['differs']}", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(report, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
