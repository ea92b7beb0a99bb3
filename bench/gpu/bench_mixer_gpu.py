#!/usr/bin/env python3
"""The mixer step on a GPU: the convolution, the recurrence step and the gated norm of a layer in one launch, beside flash-linear-attention's
kernels for the three (package fla-core), and beside our recurrence step alone, in one process.

Geometries of models; bfloat16 activations and windows of W columns, joint q, k and v, states [V, K] in place. Times are as in
bench_gated_delta_gpu.py. Contestants:

    mixer         ol_gated_delta_mixer_step, sequence i on slot i
    step          ol_gated_delta_step of the same geometry: what is left of it without convolution and norm
    fla           three launches of the peer's kernels, one token a sequence: causal_conv1d_update of q, k and v joined, the fused recurrent
                  kernel on tensors that lie as it wants them, layer_norm_gated_fwd. What its Python does between is not counted.
    conv, norm    the first and the last of these alone
    copy, empty   as there
    host          an enqueue loop of the mixer in C, microseconds per call, not in a graph

With --shapes instead: other shapes of launch of the mixer, beside the one that the library takes. --json FILE writes everything."""
import ctypes
import json
import sys

import torch
import triton
from bench_gated_delta_gpu import (DTYPES, MODELS, Arguments, Layer, Options, Shapes, arguments_of, find_peer, make_set, n_sets_of, options_of, parser_of,
                                   pools_of, show_shapes, stream, times_of)
from bench_rates_gpu import Error, Library, Tensor, tensor

W = 4
VARIANTS = ("MANY", "FEW", "ANY", "DECODE_MANY", "DECODE_FEW")
SIGMOID = 1
SIGMOID_GATES = ("Kimi-Linear",)


# ---- The library, through its C interface -------------------------------------------------------------------------------------


class MixerOptions(ctypes.Structure):
    _fields_ = [("recurrence", Options)]
    _fields_ += [(name, ctypes.c_int32) for name in ("width", "activation", "weight_dtype", "bias_dtype", "window_dtype", "window", "sum_rounded",
                                                     "convolved_unrounded", "norm")]
    _fields_ += [("epsilon", ctypes.c_double)]
    _fields_ += [(name, ctypes.c_int32) for name in ("gate", "gate_dtype", "norm_weight_dtype", "output_unrounded", "normalized_rounded", "weighted_rounded")]


class Convolution(ctypes.Structure):
    _fields_ = [(name, Tensor) for name in ("weight", "bias", "window", "intermediate_windows")]


class MixerArguments(ctypes.Structure):
    _fields_ = [("recurrence", Arguments)] + [(name, Convolution) for name in ("query", "key", "value")]
    _fields_ += [(name, Tensor) for name in ("window_read_slots", "window_write_slots", "window_dropped", "window_positions", "gate", "norm_weight")]


class Shape(ctypes.Structure):
    _fields_ = [("variant", ctypes.c_int), ("n_parts", ctypes.c_uint32), ("n_warps", ctypes.c_uint32), ("n_heads", ctypes.c_uint32)]

    def __str__(self):
        return f"{VARIANTS[self.variant]} {self.n_heads}x{self.n_parts}x{self.n_warps}"


def mixer_options(name, dtype):
    return MixerOptions(options_of(MODELS[name], dtype, 0), width=W, gate=SIGMOID if name in SIGMOID_GATES else 0)


def views(model, joint, n):
    """q, k and v of a tensor whose axis n is their channels, joined."""
    hk, hv, k, v = model[:4]
    return [part.unflatten(n, (heads, dim)) for part, (heads, dim) in zip(joint.split([hk * k, hk * k, hv * v], n), ((hk, k), (hk, k), (hv, v)))]


class Mixer:
    def __init__(self, library, name, dtype):
        self.library, self.mixer = library, ctypes.c_void_p()
        library.check(library.core.ol_gated_delta_mixer_create(library.device, ctypes.byref(mixer_options(name, dtype)), ctypes.byref(self.mixer),
                                                               ctypes.byref(library.error)))

    def step(self, arguments):
        l = self.library
        l.check(l.core.ol_gated_delta_mixer_step(self.mixer, stream(), ctypes.byref(arguments), ctypes.byref(l.error)))

    def host_us(self, arguments, n):
        return self.library.loop.mixer_loop(self.mixer, stream(), ctypes.byref(arguments), n)


class MixerShapes(Shapes):
    """The mixer in any shape of launch."""

    def mixer(self, options):
        mixer = ctypes.c_void_p()
        self.check(self.core.shapes_mixer(ctypes.byref(options), ctypes.byref(mixer), ctypes.byref(self.error)))
        return mixer

    def all(self, mixer):
        found = (Shape * 256)()
        return list(found[:self.core.shapes_of_mixer(mixer, found, 256)])

    def chosen(self, mixer, arguments):
        shape = Shape()
        self.check(self.core.shapes_mixer_chosen(mixer, ctypes.byref(arguments), ctypes.byref(shape), ctypes.byref(self.error)))
        return shape

    def step(self, mixer, arguments, shape):
        self.check(self.core.shapes_mixer_step(mixer, stream(), ctypes.byref(arguments), ctypes.byref(shape), ctypes.byref(self.error)))


# ---- Tensors --------------------------------------------------------------------------------------------------------------------


def make_mixer_set(model, n, tokens):
    """What the mixer takes besides states: a step's set whose q, k and v are views of one tensor, and windows."""
    hk, hv, k, v = model[:4]
    channels = 2 * hk * k + hv * v
    normal = lambda *shape: torch.randn(*shape, device="cuda").to(torch.bfloat16)
    s = make_set(model, n, tokens)
    s.update(mixed=normal(n * tokens, channels), weight=normal(channels, W).mul_(0.5), window=normal(n, channels, W), gate=normal(n * tokens, hv, v),
             norm_weight=torch.rand(v, device="cuda").add_(0.5))
    return s


def mixer_arguments(model, s, state):
    q, k, v = views(model, s["mixed"], 1)
    a = MixerArguments(arguments_of({**s, "query": q, "key": k, "value": v}, state))
    for part, weight, window in zip((a.query, a.key, a.value), views(model, s["weight"], 0), views(model, s["window"], 1)):
        part.weight, part.window = tensor(weight), tensor(window)
    a.gate, a.norm_weight = tensor(s["gate"]), tensor(s["norm_weight"])
    return a


def find_chain():
    step = find_peer()
    try:
        from fla.modules.causal_conv1d import causal_conv1d_update
        from fla.modules.norm.fused_norm_gate import layer_norm_gated_fwd
    except ImportError as e:
        print(f"without the peer: {e}", file=sys.stderr)
        return None
    if not step:
        return None

    def convolve(s):
        return causal_conv1d_update(s["mixed"], s["window"], weight=s["weight"], activation="silu")[0]

    def norm(name, s):
        width = s["norm_weight"].shape[0]
        return layer_norm_gated_fwd(s["output"].view(-1, width), s["gate"].view(-1, width), s["norm_weight"], None,
                                    activation="sigmoid" if name in SIGMOID_GATES else "swish", eps=1e-6, is_rms_norm=True)[0]

    return step, convolve, norm


# ---- Measuring ------------------------------------------------------------------------------------------------------------------


def run_chain(chain, name, s, state):
    step, convolve, norm = chain
    convolve(s)
    step(MODELS[name], s, state, True)
    norm(name, s)


def differences(chain, mixer, name, s, state):
    """Of outputs, the peer's from ours."""
    model = MODELS[name]
    step, convolve, norm = chain
    window, mine, theirs = s["window"].clone(), state.clone(), state.clone()
    mixer.step(mixer_arguments(model, s, mine))
    got, s["window"] = s["output"].float().clone(), window
    q, k, v = (x.contiguous() for x in views(model, convolve(s), 1))
    step(model, {**s, "query": q, "key": k, "value": v}, theirs, True)
    return float((got.flatten() - norm(name, s).float().flatten()).abs().max())


def one_case(library, chain, mixer, layer, name, dtype, n, tokens, rounds):
    model = MODELS[name]
    _, hv, k, v = model[:4]
    n_bytes = n * hv * k * v * dtype.itemsize
    n_sets = n_sets_of(n_bytes)
    sets = [make_mixer_set(model, n, tokens) for _ in range(n_sets)]
    _, states = pools_of(model, n, n_sets, dtype, 0)
    whole = [mixer_arguments(model, s, state) for s, state in zip(sets, states)]
    alone = [arguments_of(s, state) for s, state in zip(sets, states)]
    contestants = {
        "mixer": [lambda a=a: mixer.step(a) for a in whole],
        "step": [lambda a=a: layer.step(a) for a in alone],
        "copy": [lambda i=i: states[i].copy_(states[(i + n_sets // 2) % n_sets]) for i in range(n_sets)],
        "empty": [lambda: library.loop.empty_launch(library.empty, stream())],
    }
    if chain and tokens == 1:
        contestants["fla"] = [lambda s=s, state=state: run_chain(chain, name, s, state) for s, state in zip(sets, states)]
        contestants["conv"] = [lambda s=s: chain[1](s) for s in sets]
        contestants["norm"] = [lambda s=s: chain[2](name, s) for s in sets]
    row = times_of(contestants, rounds)
    if chain and tokens == 1:
        row["differs"] = differences(chain, mixer, name, make_mixer_set(model, n, tokens), states[0].normal_().mul_(0.1))
    torch.cuda.synchronize()
    row["host"] = mixer.host_us(whole[0], 200)
    torch.cuda.synchronize()
    row["bytes"] = 2 * n_bytes
    return row


def all_shapes(shapes, name, dtype, n, tokens, rounds):
    model = MODELS[name]
    _, hv, k, v = model[:4]
    n_sets = n_sets_of(n * hv * k * v * dtype.itemsize)
    sets = [make_mixer_set(model, n, tokens) for _ in range(n_sets)]
    _, states = pools_of(model, n, n_sets, dtype, 0)
    arguments = [mixer_arguments(model, s, state) for s, state in zip(sets, states)]
    mixer = shapes.mixer(mixer_options(name, dtype))
    chosen = str(shapes.chosen(mixer, arguments[0]))
    found = {str(s): s for s in shapes.all(mixer) if tokens == 1 or s.variant < VARIANTS.index("DECODE_MANY")}
    found.setdefault(chosen, shapes.chosen(mixer, arguments[0]))
    times = times_of({key: [lambda a=a, s=s: shapes.step(mixer, a, s) for a in arguments] for key, s in found.items()}, rounds)
    return show_shapes(chosen, times)


COLUMNS = ("mixer", "step", "fla", "conv", "norm", "copy", "empty", "host")


def main():
    options = parser_of(__doc__).parse_args()

    torch.cuda.init()
    torch.zeros(1, device="cuda")
    library = None if options.shapes else Library(options.build)
    shapes = MixerShapes(options.build) if options.shapes else None
    chain = None if options.shapes else find_chain()
    if library:
        library.loop.mixer_loop.restype = ctypes.c_double
    report = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__, "cuda": torch.version.cuda, "rows": []}
    print(", ".join(f"{key} {value}" for key, value in report.items() if key != "rows"))
    if library:
        print(f"| model | state | T | batch | {' | '.join(COLUMNS)} | fla / mixer | mixer / step |")
        print("|---|---|---:|---:|" + "---:|" * (len(COLUMNS) + 2))
    for name in options.models:
        for state in options.states:
            dtype = DTYPES[state]
            mixer, layer = (Mixer(library, name, dtype), Layer(library, MODELS[name], dtype, 0)) if library else (None, None)
            for tokens in options.tokens:
                for n in options.batches:
                    if shapes:
                        print(f"{name}, {state} states, batch {n}, T {tokens}:", flush=True)
                        row = all_shapes(shapes, name, dtype, n, tokens, options.rounds)
                    else:
                        row = one_case(library, chain, mixer, layer, name, dtype, n, tokens, options.rounds)
                        cells = " | ".join(f"{row[c]:.2f}" if c in row else "" for c in COLUMNS)
                        of_peer = f"{row['fla'] / row['mixer']:.2f}" if "fla" in row else ""
                        print(f"| {name} | {state} | {tokens} | {n} | {cells} | {of_peer} | {row['mixer'] / row['step']:.2f} |", flush=True)
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
