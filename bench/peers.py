"""One peer on the gated-delta rates, in a process of its own: prints JSON for one dtype and all shapes.

    peers.py --peer NAME --dtype float32|bfloat16 --threads one|all --data DIR

DIR holds the inputs and the correctly rounded outputs that `bench_rates --dump DIR` writes. The caller sets the environment
variables of the thread pools and the CPU (report.py does); here only the peer's own switch is set.

The formula is the one that is benchmarked, in the dtypes of the inputs, with the float32 A_log:
    beta = sigmoid(b);  decay = exp(-(exp(A_log) * softplus(a + dt_bias)))
written as a user of each peer would, with whatever makes it fast that its documentation recommends (inference mode, output
buffers, a compiled function). What is timed is a call that leaves both results computed.
"""

import argparse
import json
import os
import time

import numpy as np

HEADS = 32
TOKENS = [1, 16, 256, 4096, 65536]


class NotOffered(Exception):
    """The peer has no such function or dtype."""


def read(folder, dtype):
    """The inputs and the expected outputs, bfloat16 as uint16."""
    storage = {"float32": np.float32, "bfloat16": np.uint16}[dtype]

    def load(name, kind, columns):
        flat = np.fromfile(os.path.join(folder, f"{dtype}.{name}.bin"), dtype=kind)
        return flat.reshape(-1, HEADS) if columns else flat

    return {
        "b": load("b", storage, True),
        "a": load("a", storage, True),
        "A_log": load("A_log", np.float32, False),
        "dt_bias": load("dt_bias", storage, False),
        "beta": load("beta", storage, True),
        "decay": load("decay", np.float32, True),
    }


# ---- The peers: function(dtype, threads) -> (version, to_peer, make) ---------------------------------------------------------
#
# to_peer(array, half): a NumPy array (bfloat16 as uint16, then half is true) as the peer's own. make(b, a, A_log, dt_bias): the
# callable to time, and one that gives (beta, decay) as NumPy arrays, bfloat16 as uint16.


def numpy_peer(dtype, threads):
    if dtype != "float32":
        raise NotOffered("NumPy has no bfloat16")
    one, zero = np.float32(1), np.float32(0)

    def make(b, a, A_log, dt_bias):
        beta, decay, rate = np.empty_like(b), np.empty_like(a), np.empty_like(A_log)

        def call():
            np.negative(b, out=beta)
            np.exp(beta, out=beta)
            np.add(beta, one, out=beta)
            np.reciprocal(beta, out=beta)
            np.add(a, dt_bias, out=decay)
            np.logaddexp(decay, zero, out=decay)
            np.exp(A_log, out=rate)
            np.multiply(decay, rate, out=decay)
            np.negative(decay, out=decay)
            np.exp(decay, out=decay)
            return beta, decay

        return call, call

    return np.__version__, lambda array, half: array, make


def numexpr_peer(dtype, threads):
    if dtype != "float32":
        raise NotOffered("numexpr has no bfloat16")
    import numexpr

    numexpr.set_num_threads(1 if threads == "one" else len(os.sched_getaffinity(0)))
    interval = "where(x > 0, x, zero) + log1p(exp(-abs(x)))"

    def make(b, a, A_log, dt_bias):
        beta, x, decay = np.empty_like(b), np.empty_like(a), np.empty_like(a)
        zero, one = np.float32(0), np.float32(1)
        names = {"b": b, "a": a, "A_log": A_log, "dt_bias": dt_bias, "x": x, "zero": zero, "one": one}

        def call():
            numexpr.evaluate("one / (one + exp(-b))", local_dict=names, out=beta, casting="same_kind")
            numexpr.evaluate("a + dt_bias", local_dict=names, out=x)
            numexpr.evaluate(f"exp(-(exp(A_log) * ({interval})))", local_dict=names, out=decay, casting="same_kind")
            return beta, decay

        return call, call

    return numexpr.__version__, lambda array, half: array, make


def torch_common(threads):
    import torch

    torch.set_num_threads(1 if threads == "one" else len(os.sched_getaffinity(0)))

    def to_peer(array, half):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if half else torch.from_numpy(array)

    def to_numpy(tensor):
        return tensor.view(torch.int16).numpy().view(np.uint16) if tensor.dtype == torch.bfloat16 else tensor.numpy()

    def rates(b, a, A_log, dt_bias):
        interval = torch.nn.functional.softplus(a + dt_bias)
        return torch.sigmoid(b), torch.exp(-(torch.exp(A_log) * interval))

    return torch, to_peer, to_numpy, rates


def torch_make(torch, function, to_numpy):
    def make(*inputs):
        def call():
            return function(*inputs)

        def results():
            return tuple(to_numpy(t) for t in call())

        return call, results

    return make


def torch_eager(dtype, threads):
    torch, to_peer, to_numpy, rates = torch_common(threads)
    torch.inference_mode().__enter__()
    return torch.__version__, to_peer, torch_make(torch, rates, to_numpy)


def torch_compile(dtype, threads):
    torch, to_peer, to_numpy, rates = torch_common(threads)
    torch.inference_mode().__enter__()
    compiled = torch.compile(rates, dynamic=True, fullgraph=True)
    return torch.__version__, to_peer, torch_make(torch, compiled, to_numpy)


def torch_aot(dtype, threads):
    """AOTInductor: compiled ahead of time, for any number of tokens, and called through its Python loader."""
    torch, to_peer, to_numpy, rates = torch_common(threads)
    torch.inference_mode().__enter__()
    import tempfile

    class Rates(torch.nn.Module):
        def forward(self, b, a, A_log, dt_bias):
            return rates(b, a, A_log, dt_bias)

    kind = torch.bfloat16 if dtype == "bfloat16" else torch.float32
    example = (torch.zeros(64, HEADS, dtype=kind), torch.zeros(64, HEADS, dtype=kind), torch.zeros(HEADS), torch.zeros(HEADS, dtype=kind))
    tokens = torch.export.Dim("tokens", min=1)
    program = torch.export.export(Rates(), example, dynamic_shapes=({0: tokens}, {0: tokens}, None, None))
    package = os.path.join(tempfile.mkdtemp(), "rates.pt2")
    torch._inductor.aoti_compile_and_package(program, package_path=package)
    return torch.__version__, to_peer, torch_make(torch, torch._inductor.aoti_load_package(package), to_numpy)


def mlx_common():
    import mlx.core as mx

    mx.set_default_device(mx.cpu)

    def to_peer(array, half):
        return mx.array(array).view(mx.bfloat16) if half else mx.array(array)

    def to_numpy(array):
        return np.array(array.view(mx.uint16)) if array.dtype == mx.bfloat16 else np.array(array)

    def rates(b, a, A_log, dt_bias):
        x = a + dt_bias
        interval = mx.logaddexp(x, mx.array(0, dtype=x.dtype))
        return mx.sigmoid(b), mx.exp(-(mx.exp(A_log) * interval))

    def version():
        from importlib.metadata import version

        return version("mlx")

    return mx, to_peer, to_numpy, rates, version()


def mlx_make(mx, function, to_numpy):
    def make(*inputs):
        def call():
            out = function(*inputs)
            mx.eval(out)
            return out

        def results():
            return tuple(to_numpy(array) for array in call())

        return call, results

    return make


def mlx_eager(dtype, threads):
    mx, to_peer, to_numpy, rates, version = mlx_common()
    return version, to_peer, mlx_make(mx, rates, to_numpy)


def mlx_compile(dtype, threads):
    mx, to_peer, to_numpy, rates, version = mlx_common()
    return version, to_peer, mlx_make(mx, mx.compile(rates, shapeless=True), to_numpy)


def jax_jit(dtype, threads):
    import jax
    import jax.numpy as jnp
    import ml_dtypes

    @jax.jit
    def rates(b, a, A_log, dt_bias):
        return jax.nn.sigmoid(b), jnp.exp(-(jnp.exp(A_log) * jax.nn.softplus(a + dt_bias)))

    def to_peer(array, half):
        return jnp.asarray(array.view(ml_dtypes.bfloat16) if half else array)

    def to_numpy(array):
        array = np.asarray(array)
        return array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array

    def make(*inputs):
        def call():
            beta, decay = rates(*inputs)
            decay.block_until_ready()
            beta.block_until_ready()
            return beta, decay

        def results():
            return tuple(to_numpy(array) for array in call())

        return call, results

    return jax.__version__, to_peer, make


PEERS = {
    "numpy": numpy_peer,
    "numexpr": numexpr_peer,
    "torch-eager": torch_eager,
    "torch-compile": torch_compile,
    "torch-aot": torch_aot,
    "mlx-eager": mlx_eager,
    "mlx-compile": mlx_compile,
    "jax-jit": jax_jit,
}


# ---- Measuring --------------------------------------------------------------------------------------------------------------


def time_batch(call, n_calls):
    start = time.perf_counter_ns()
    for _ in range(n_calls):
        call()
    return (time.perf_counter_ns() - start) / n_calls


def measure(call, seconds):
    """Best and median time of a call in nanoseconds, from batches of at least 0.2 ms, after a warm-up of a tenth of the time."""
    warm_until = time.perf_counter() + 0.1 * seconds
    n_calls = 1
    while True:
        ns = time_batch(call, n_calls)
        if ns * n_calls < 2e5:
            n_calls *= 2
        elif time.perf_counter() >= warm_until:
            break
    samples = []
    end = time.perf_counter() + seconds
    while len(samples) < 15 or (time.perf_counter() < end and len(samples) < 4000):
        samples.append(time_batch(call, n_calls))
    return min(samples), float(np.median(samples))


def as_float32(array):
    return (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array


def compare(got, expected):
    """The share of results whose bits differ, after a check that the peer computed this formula at all."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise ValueError(f"gave {got.dtype} {got.shape}, expected {expected.dtype} {expected.shape}")
    wide, wide_expected = as_float32(got), as_float32(expected)
    if not np.allclose(wide, wide_expected, rtol=0.02, atol=0.02):
        raise ValueError("computed something else: results differ by more than rounding")
    bits = np.uint16 if got.dtype == np.uint16 else np.uint32
    return float(np.mean(got.view(bits) != expected.view(bits)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], required=True)
    parser.add_argument("--threads", choices=["one", "all"], required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long to time each shape")
    options = parser.parse_args()

    data = read(options.data, options.dtype)
    half = options.dtype == "bfloat16"
    result = {"peer": options.peer, "dtype": options.dtype, "threads": options.threads, "rates": []}
    try:
        result["version"], to_peer, make = PEERS[options.peer](options.dtype, options.threads)
        per_head = [to_peer(data["A_log"], False), to_peer(data["dt_bias"], half)]
        for tokens in TOKENS:
            b, a = (to_peer(np.ascontiguousarray(data[name][:tokens]), half) for name in "ba")
            call, results = make(b, a, *per_head)
            beta, decay = results()
            entry = {"tokens": tokens, "differs_beta": compare(beta, data["beta"][:tokens]), "differs_decay": compare(decay, data["decay"][:tokens])}
            entry["best_ns"], entry["median_ns"] = measure(call, options.seconds)
            result["rates"].append(entry)
    except NotOffered as reason:
        result["not_offered"] = str(reason)
    except Exception as error:  # a peer that fails is reported, whatever the failure
        result["failed"] = f"{type(error).__name__}: {error}".strip().splitlines()[0][:200]
    print(json.dumps(result))


if __name__ == "__main__":
    main()
