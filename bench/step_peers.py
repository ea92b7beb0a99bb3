"""One peer of the gated-delta step on a CPU, in a process of its own: prints JSON.

    step_peers.py --peer transformers|ggml --threads one|all --layers N --seconds S

Qwen3.5-9B's geometry, one sequence, one token, float32 states, those of N layers in turn as bench_gated_delta has them.

    transformers    what its layer calls for a token: beta and the log decay, q and k repeated for their value heads, and
                    torch_recurrent_gated_delta_rule with its norm (models/qwen3_next/modeling_qwen3_next.py), bfloat16 activations
    ggml            ggml_gated_delta_net of the package ggml-python, one graph node a layer: q and k are normalised and the gates computed
                    already, float32 throughout; the new states go to its result, not over the old ones

The caller pins the CPU and sets the pools' environment variables (report.py does)."""

import argparse
import ctypes
import json
import os
import time

import numpy as np

KEY_HEADS, VALUE_HEADS, DIM = 16, 32, 128


def transformers_peer(threads, layers):
    import torch
    import transformers
    from transformers.models.qwen3_next.modeling_qwen3_next import torch_recurrent_gated_delta_rule as rule

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    normal = lambda *shape: torch.randn(*shape, dtype=torch.bfloat16)
    sets = [{"q": normal(1, 1, KEY_HEADS, DIM), "k": normal(1, 1, KEY_HEADS, DIM), "v": normal(1, 1, VALUE_HEADS, DIM), "a": normal(1, 1, VALUE_HEADS),
             "b": normal(1, 1, VALUE_HEADS), "A_log": torch.empty(VALUE_HEADS).uniform_(1, 16).log_(), "dt_bias": normal(VALUE_HEADS),
             "state": torch.randn(1, VALUE_HEADS, DIM, DIM) * 0.1} for _ in range(layers)]
    r = VALUE_HEADS // KEY_HEADS

    def call():
        for s in sets:
            beta = s["b"].sigmoid()
            g = -s["A_log"].float().exp() * torch.nn.functional.softplus(s["a"].float() + s["dt_bias"])
            q, k = s["q"].repeat_interleave(r, dim=2), s["k"].repeat_interleave(r, dim=2)
            _, s["state"] = rule(q, k, s["v"], g=g, beta=beta, initial_state=s["state"], output_final_state=True, use_qk_l2norm_in_kernel=True)

    def guarded():
        with torch.inference_mode():
            call()

    return f"transformers {transformers.__version__}, PyTorch {torch.__version__}", guarded


def ggml_peer(threads, layers):
    import importlib.metadata

    import ggml

    n_state = VALUE_HEADS * DIM * DIM
    memory = ggml.ggml_init(ggml.ggml_init_params(mem_size=layers * (3 * n_state * 4 + (1 << 20)) + (64 << 20), mem_buffer=None, no_alloc=False))
    random = np.random.default_rng(1)

    def tensor(values, *ne):
        t = ggml.ggml_new_tensor_4d(memory, ggml.GGML_TYPE_F32, *ne)
        flat = np.ascontiguousarray(values, dtype=np.float32)
        ctypes.memmove(ggml.ggml_get_data(t), flat.ctypes.data, flat.nbytes)
        return t

    def unit(n):
        x = random.standard_normal((n, DIM))
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    graph = ggml.ggml_new_graph(memory)
    for _ in range(layers):
        q, k = (tensor(unit(KEY_HEADS), DIM, KEY_HEADS, 1, 1) for _ in range(2))
        v = tensor(random.standard_normal((VALUE_HEADS, DIM)), DIM, VALUE_HEADS, 1, 1)
        g = tensor(-random.uniform(0.001, 1, VALUE_HEADS), 1, VALUE_HEADS, 1, 1)
        beta = tensor(random.uniform(0, 1, VALUE_HEADS), 1, VALUE_HEADS, 1, 1)
        state = tensor(random.standard_normal(n_state) * 0.1, DIM, DIM, VALUE_HEADS, 1)
        ggml.ggml_build_forward_expand(graph, ggml.ggml_gated_delta_net(memory, q, k, v, g, beta, state, 1))
    plan = ggml.ggml_graph_plan(graph, threads, None)
    work = (ctypes.c_uint8 * max(1, plan.work_size))()
    plan.work_data = ctypes.cast(work, ctypes.POINTER(ctypes.c_uint8))

    def call():
        if ggml.ggml_graph_compute(graph, ctypes.byref(plan)) != 0:
            raise RuntimeError("ggml_graph_compute failed")

    return f"ggml-python {importlib.metadata.version('ggml-python')}", call


PEERS = {"transformers": transformers_peer, "ggml": ggml_peer}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, choices=list(PEERS))
    parser.add_argument("--threads", required=True, choices=["one", "all"])
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    threads = 1 if options.threads == "one" else len(os.sched_getaffinity(0))
    version, call = PEERS[options.peer](threads, options.layers)
    for _ in range(3):
        call()
    times, end = [], time.perf_counter() + options.seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) / options.layers * 1e6)
    times.sort()
    print(json.dumps({"peer": options.peer, "version": version, "threads": options.threads, "best_us": times[0], "median_us": times[len(times) // 2]}))


if __name__ == "__main__":
    main()
