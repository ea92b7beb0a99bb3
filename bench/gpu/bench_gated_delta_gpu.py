#!/usr/bin/env python3
"""The gated-delta step on a GPU, beside flash-linear-attention's fused recurrent kernels with their gate in the kernel (package
fla-core) and a copy of the states' bytes, in one process.

Geometries of models; bfloat16 activations; float32 and bfloat16 states, in place. Times are microseconds per launch inside a CUDA graph of
many, medians of several rounds in which the contestants take turns; launches rotate over so many sets of tensors that a state is not
found in the cache, as between two layers of a model. Contestants:

    ours          ol_gated_delta_step, sequence i on slot i, states [V, K]
    ours, slots   the same with a table of slots, which the kernel has to read first
    ours, [K, V]  states of the other layout
    fla           the peer's kernel alone, without what its Python does; the faster one of its two layouts
    copy          as many bytes as the states have, by PyTorch's copy: as many read and written as by a step
    empty         an empty kernel: what a launch costs
    host          an enqueue loop of ours in C, microseconds per call, not in a graph

Also printed: how far outputs are from the peer's, which uses approximate functions. With --shapes instead: other shapes of launch of ours,
beside the one that the library takes. --json FILE writes everything."""
import argparse
import ctypes
import json
import math
import statistics
import sys
import time

import torch
import triton
from bench_rates_gpu import OL_DTYPES, Error, Library, Tensor, graph_us, make_graph, tensor

MODELS = {  # key heads, value heads, K, V, per channel, beta doubled
    "Qwen3.5-9B": (16, 32, 128, 128, False, False),
    "Qwen3.5-27B": (16, 48, 128, 128, False, False),
    "Kimi-Linear": (32, 32, 128, 128, True, False),
    "OLMo-Hybrid": (30, 30, 96, 192, False, True),
}
BATCHES = (1, 2, 4, 8, 64, 256)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
CACHE_BYTES = 60e6
NORM_RSQRT, SUM_FLOAT32, BETA_DOUBLED, KEY_VALUE = 1, 1, 1, 1
OL_INT32 = 7


# ---- The library, through its C interface -------------------------------------------------------------------------------------


class Gates(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("kind", "rate", "sum", "output", "beta", "beta_rounding", "beta_dtype", "skip_softplus", "finite_rate")]
    _fields_ += [(name, ctypes.c_double) for name in ("lower_bound", "interval_low", "interval_high")]


class Options(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in (
        "key_heads", "value_heads", "key_dim", "value_dim", "activation_dtype", "output_dtype", "state_dtype", "update_dtype", "decay_dtype",
        "decay_rate_dtype", "decay_bias_dtype", "head_map", "state_layout", "norm")]
    _fields_ += [("epsilon", ctypes.c_double), ("scale", ctypes.c_double), ("decay", ctypes.c_int32), ("decay_per_channel", ctypes.c_int32),
                 ("gates", Gates), ("padding", ctypes.c_int32), ("padding_output_untouched", ctypes.c_int32)]


class Arguments(ctypes.Structure):
    _fields_ = [(name, Tensor) for name in (
        "query", "key", "value", "update", "decay", "decay_rate", "decay_bias", "output", "state", "read_slots", "write_slots", "cu_seqlens",
        "has_initial_state", "accepted_tokens", "token_counts", "intermediate_states")]
    _fields_ += [("state_is_kept", ctypes.c_int32), ("skipped", ctypes.c_void_p)]


class Shape(ctypes.Structure):
    _fields_ = [("variant", ctypes.c_int), ("n_parts", ctypes.c_uint32), ("n_warps", ctypes.c_uint32)]


def options_of(model, state_dtype, layout):
    hk, hv, k, v, channels, doubled = model
    o = Options(hk, hv, k, v, OL_DTYPES[torch.bfloat16], state_dtype=OL_DTYPES[state_dtype], state_layout=layout, norm=NORM_RSQRT,
                decay_per_channel=int(channels))
    o.gates.sum = SUM_FLOAT32
    o.gates.beta = BETA_DOUBLED if doubled else 0
    return o


def arguments_of(s, state, slots=None):
    a = Arguments()
    for name in ("query", "key", "value", "update", "decay", "decay_rate", "decay_bias", "output"):
        setattr(a, name, tensor(s[name]))
    a.state = tensor(state)
    if slots is not None:
        a.read_slots = Tensor(slots.data_ptr(), OL_INT32, 1)
        a.read_slots.shape[0], a.read_slots.strides[0] = slots.shape[0], 1
    return a


def stream():
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


class Layer:
    def __init__(self, library, model, state_dtype, layout):
        self.library, self.layer = library, ctypes.c_void_p()
        start = time.perf_counter()
        library.check(library.core.ol_gated_delta_create(library.device, ctypes.byref(options_of(model, state_dtype, layout)),
                                                         ctypes.byref(self.layer), ctypes.byref(library.error)))
        self.seconds = time.perf_counter() - start

    def step(self, arguments):
        l = self.library
        l.check(l.core.ol_gated_delta_step(self.layer, stream(), ctypes.byref(arguments), ctypes.byref(l.error)))

    def host_us(self, arguments, n):
        return self.library.loop.step_loop(self.layer, stream(), ctypes.byref(arguments), n)


class Shapes:
    """The step in any shape of launch."""

    def __init__(self, folder):
        self.core, self.error = ctypes.CDLL(f"{folder}/libstep_shapes.so"), Error()

    def check(self, status):
        if status:
            raise RuntimeError(f"status {status}: {bytes(self.error)[:400]}")

    def layer(self, options):
        layer = ctypes.c_void_p()
        self.check(self.core.shapes_layer(ctypes.byref(options), ctypes.byref(layer), ctypes.byref(self.error)))
        return layer

    def all(self, options, decodes):
        for variant in (3, 4) if decodes else (0, 1):
            rows = self.core.shapes_rows(ctypes.byref(options), variant)
            for warps in ((1, 2, 3, 4) if decodes else (1, 2, 4, 6, 8)) if rows else ():
                if (warps - 1) * rows < options.value_dim:
                    yield Shape(variant, math.ceil(options.value_dim / (warps * rows)), warps)

    def chosen(self, layer, arguments):
        shape = Shape()
        self.check(self.core.shapes_chosen(layer, ctypes.byref(arguments), ctypes.byref(shape), ctypes.byref(self.error)))
        return shape

    def step(self, layer, arguments, shape):
        self.check(self.core.shapes_step(layer, stream(), ctypes.byref(arguments), ctypes.byref(shape), ctypes.byref(self.error)))


# ---- The peer -------------------------------------------------------------------------------------------------------------------


def find_peer():
    try:
        from fla.ops.gated_delta_rule.fused_recurrent import fused_recurrent_gated_delta_rule_fwd_kernel as kernel
        from fla.ops.kda.fused_recurrent import fused_recurrent_kda_fwd
    except ImportError as e:
        print(f"without the peer: {e}", file=sys.stderr)
        return None

    def step(model, s, state, v_first):
        hk, hv, k, v, channels, doubled = model
        n = state.shape[0]
        t = s["query"].shape[0] // n
        shaped = {name: s[name].view(n, t, *s[name].shape[1:]) for name in ("query", "key", "value", "update", "decay", "output")}
        if channels:
            fused_recurrent_kda_fwd(q=shaped["query"], k=shaped["key"], v=shaped["value"], g=shaped["decay"], beta=shaped["update"],
                                    A_log=s["decay_rate"], dt_bias=s["decay_bias"].view(-1), initial_state=state, scale=k**-0.5,
                                    output_final_state=True, inplace_final_state=True, state_v_first=v_first, use_qk_l2norm_in_kernel=True,
                                    use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=doubled, out=shaped["output"])
            return
        bv = min(8, triton.next_power_of_2(v))
        kernel[(triton.cdiv(v, bv) * n * hv,)](
            q=shaped["query"], k=shaped["key"], v=shaped["value"], g=shaped["decay"], gk=None, gv=None, beta=shaped["update"],
            A_log=s["decay_rate"], dt_bias=s["decay_bias"], o=shaped["output"], h0=state, ht=state, cu_seqlens=None, scale=k**-0.5, T=t, H=hk,
            HV=hv, K=k, V=v, BK=triton.next_power_of_2(k), BV=bv, IS_BETA_HEADWISE=True, USE_QK_L2NORM_IN_KERNEL=True,
            APPLY_BETA_SIGMOID=True, ALLOW_NEG_EIGVAL=doubled, STATE_V_FIRST=v_first, num_warps=1, num_stages=3)

    return step


# ---- Measuring ------------------------------------------------------------------------------------------------------------------


def make_set(model, n, tokens):
    """All but the states."""
    hk, hv, k, v, channels, _ = model
    t, kw = n * tokens, {"device": "cuda"}
    normal = lambda *shape: torch.randn(*shape, **kw).to(torch.bfloat16)
    return {"query": normal(t, hk, k), "key": normal(t, hk, k), "value": normal(t, hv, v), "update": normal(t, hv),
            "decay": normal(t, hv, k) if channels else normal(t, hv), "decay_rate": torch.empty(hv, **kw).uniform_(1, 16).log_(),
            "decay_bias": normal(hv, k) if channels else normal(hv), "output": torch.empty(t, hv, v, dtype=torch.bfloat16, **kw)}


def n_sets_of(n_bytes):
    return max(2, min(96, math.ceil(3 * CACHE_BYTES / n_bytes)))


def times_of(contestants, rounds):
    """Medians, of contestants that take turns: by name, lists of calls."""
    graphs = {}
    for name, calls in contestants.items():
        repeat = max(1, 60 // len(calls))
        graphs[name] = (make_graph(calls, repeat), repeat * len(calls))
    times = {name: [] for name in graphs}
    for i in range(rounds + 1):
        for name, (graph, n) in graphs.items():
            us = graph_us(graph, n)
            if i:
                times[name].append(us)
    return {name: statistics.median(values) for name, values in times.items()}


def pools_of(model, n, n_sets, dtype, layout):
    """Every set's states, slices of one pool."""
    _, hv, k, v, _, _ = model
    shape = (k, v) if layout == KEY_VALUE else (v, k)
    pool = torch.randn(n_sets * n, hv, *shape, device="cuda").mul_(0.1).to(dtype)
    return pool, [pool[i * n:(i + 1) * n] for i in range(n_sets)]


def one_case(library, peer, layers, model, dtype, n, tokens, rounds):
    _, hv, k, v, _, _ = model
    n_bytes = n * hv * k * v * dtype.itemsize
    n_sets = n_sets_of(n_bytes)
    sets = [make_set(model, n, tokens) for _ in range(n_sets)]
    pool, states = pools_of(model, n, n_sets, dtype, 0)
    slots = [torch.randperm(n, device="cuda").to(torch.int32).add_(i * n) for i in range(n_sets)]
    plain = [arguments_of(s, state) for s, state in zip(sets, states)]
    by_slots = [arguments_of(s, pool, table) for s, table in zip(sets, slots)]
    across = [arguments_of(s, state.view(n, hv, k, v)) for s, state in zip(sets, states)]
    other = torch.empty_like(pool[:n])
    contestants = {
        "ours": [lambda a=a: layers[0].step(a) for a in plain],
        "ours, slots": [lambda a=a: layers[0].step(a) for a in by_slots],
        "ours, [K, V]": [lambda a=a: layers[1].step(a) for a in across],
        "copy": [lambda i=i: states[i].copy_(states[(i + n_sets // 2) % n_sets]) for i in range(n_sets)],
        "empty": [lambda: library.loop.empty_launch(library.empty, stream())],
    }
    if peer:
        for name, v_first in (("fla [V, K]", True), ("fla [K, V]", False)):
            shaped = [state if v_first else state.view(n, hv, k, v) for state in states]
            contestants[name] = [lambda s=s, state=state, v_first=v_first: peer(model, s, state, v_first) for s, state in zip(sets, shaped)]
    for state in states:
        state.normal_().mul_(0.1)
    row = times_of(contestants, rounds)
    if peer:
        row["fla"] = min(row["fla [V, K]"], row["fla [K, V]"])
        other.normal_().mul_(0.1)
        mine, theirs = other.clone(), other.clone()
        layers[0].step(arguments_of(sets[0], mine))
        got = sets[0]["output"].float().clone()
        peer(model, sets[0], theirs, True)
        row["differs"] = float((got - sets[0]["output"].float()).abs().max())
        row["differs in states"] = float((mine.float() - theirs.float()).abs().max())
    torch.cuda.synchronize()
    row["host"] = layers[0].host_us(plain[0], 200)
    torch.cuda.synchronize()
    row["bytes"] = 2 * n_bytes
    row["sets"] = n_sets
    return row


def show_shapes(chosen, times):
    best = min(times, key=times.get)
    print(f"    chosen {chosen} {times[chosen]:.2f}; best {best} {times[best]:.2f}; "
          + ", ".join(f"{key} {us:.2f}" for key, us in sorted(times.items(), key=lambda item: item[1])[:8]), flush=True)
    return {"chosen": chosen, "times": times}


def all_shapes(shapes, model, dtype, layout, n, tokens, rounds):
    _, hv, k, v, _, _ = model
    n_sets = n_sets_of(n * hv * k * v * dtype.itemsize)
    sets = [make_set(model, n, tokens) for _ in range(n_sets)]
    _, states = pools_of(model, n, n_sets, dtype, layout)
    arguments = [arguments_of(s, state) for s, state in zip(sets, states)]
    options = options_of(model, dtype, layout)
    layer = shapes.layer(options)
    chosen = shapes.chosen(layer, arguments[0])
    found = list(shapes.all(options, tokens == 1))
    name = lambda s: f"{('MANY', 'FEW', 'ANY', 'DECODE MANY', 'DECODE FEW')[s.variant]} {s.n_parts}x{s.n_warps}"
    if name(chosen) not in map(name, found):
        found.append(chosen)
    times = times_of({name(s): [lambda a=a, s=s: shapes.step(layer, a, s) for a in arguments] for s in found}, rounds)
    return show_shapes(name(chosen), times)


COLUMNS = ("ours", "ours, slots", "ours, [K, V]", "fla", "copy", "empty", "host")


def line_of(name, dtype, n, tokens, row):
    cells = " | ".join(f"{row[c]:.2f}" if c in row else "" for c in COLUMNS)
    of_copy, of_peer = row["copy"] / row["ours"], f"{row['fla'] / row['ours']:.2f}" if "fla" in row else ""
    return f"| {name} | {dtype} | {tokens} | {n} | {cells} | {row['bytes'] / row['ours'] * 1e-6:.2f} | {of_copy:.2f} | {of_peer} |"


def parser_of(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, help="the folder of libonelaunch.so, libhost_loop.so and libstep_shapes.so")
    parser.add_argument("--json", help="write everything here")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--states", nargs="*", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--batches", type=int, nargs="*", default=BATCHES)
    parser.add_argument("--tokens", type=int, nargs="*", default=(1, 4))
    parser.add_argument("--shapes", action="store_true", help="other shapes of launch instead, beside the one that the library takes")
    return parser


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--layout", type=int, default=0, help="--shapes: of states, 0 [V, K], 1 [K, V]")
    options = parser.parse_args()

    torch.cuda.init()
    torch.zeros(1, device="cuda")
    library = None if options.shapes else Library(options.build)
    shapes = Shapes(options.build) if options.shapes else None
    peer = None if options.shapes else find_peer()
    if library:
        library.loop.step_loop.restype = ctypes.c_double
    report = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__, "cuda": torch.version.cuda, "rows": []}
    if peer:
        import fla

        report["fla"] = fla.__version__
    print(", ".join(f"{key} {value}" for key, value in report.items() if key != "rows"))
    if library:
        print(f"| model | state | T | batch | {' | '.join(COLUMNS)} | ours, TB/s | copy / ours | fla / ours |")
        print("|---|---|---:|---:|" + "---:|" * (len(COLUMNS) + 3))
    for name in options.models:
        for state in options.states:
            model, dtype = MODELS[name], DTYPES[state]
            layers = [Layer(library, model, dtype, layout) for layout in (0, 1)] if library else None
            for tokens in options.tokens:
                for n in options.batches:
                    if shapes:
                        print(f"{name}, {state} states, batch {n}, T {tokens}:", flush=True)
                        row = all_shapes(shapes, model, dtype, options.layout, n, tokens, options.rounds)
                    else:
                        row = one_case(library, peer, layers, model, dtype, n, tokens, options.rounds)
                        print(line_of(name, state, n, tokens, row), flush=True)
                    report["rows"].append({"model": name, "state": state, "batch": n, "tokens": tokens, **row})
                    torch.cuda.empty_cache()
    differing = [row["differs"] for row in report["rows"] if "differs" in row]
    if differing:
        print(f"largest difference of an output from the peer's: {max(differing):.3g}")
    if options.json:
        with open(options.json, "w") as f:
            json.dump(report, f, indent=1)


if __name__ == "__main__":
    main()
