"""The gated-delta step's part of docs/performance.md: measuring it beside its peers, and the text."""

import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = [
    ("transformers", "transformers' `torch_recurrent_gated_delta_rule` with its gates, PyTorch eager"),
    ("ggml", "ggml's `gated_delta_net`, without norm and gates"),
]
THREADS = ["one", "all"]


def run_peer(python, peer, threads, seconds, environment):
    command = [python, os.path.join(ROOT, "bench", "step_peers.py"), "--peer", peer, "--threads", threads, "--seconds", str(seconds)]
    if threads == "one":
        command = ["taskset", "-c", str(max(os.sched_getaffinity(0)))] + command
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300 + 20 * seconds)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        failed = "took too long"
    except (IndexError, ValueError):
        failed = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:160]
    return {"peer": peer, "threads": threads, "failed": failed}


def measure(build, python, seconds, environment_of):
    """What section() is made of; environment_of(threads): a peer's environment."""
    own = {}
    for threads in THREADS:
        n = 1 if threads == "one" else len(os.sched_getaffinity(0))
        command = [os.path.join(build, "bench_gated_delta"), "--threads", str(n), "--seconds", str(seconds)]
        own[threads] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    peers = [run_peer(python, peer, threads, seconds, environment_of(threads)) for threads in THREADS for peer, _ in PEERS]
    return {"own": own, "peers": peers}


def own_row(results, threads, state="float32", layout="VK", tokens=1):
    return next(r for r in results["own"][threads]["rows"] if (r["state"], r["layout"], r["tokens"]) == (state, layout, tokens))


def peer_cell(results, peer, threads, ours):
    entry = next((e for e in results["peers"] if (e["peer"], e["threads"]) == (peer, threads)), {"failed": "not run"})
    return f"not measured: {entry['failed']}" if "failed" in entry else f"{entry['best_us']:,.0f} ({entry['best_us'] / ours:.1f})"


def goals(results):
    """(goal, measured, whether it is met)."""
    row = own_row(results, "all")
    of_copy = row["copy_best_us"] / row["step_best_us"]
    yield "gated-delta step, all threads: 0.8 of the bandwidth of a copy", f"{of_copy:.2f}", of_copy >= 0.8
    for entry in results["peers"]:
        if entry["peer"] == "transformers" and entry["threads"] == "all" and "failed" not in entry:
            ratio = entry["best_us"] / own_row(results, "all")["step_best_us"]
            yield "gated-delta step, all threads: 20 times faster than transformers' reference", f"{ratio:.1f} times", ratio >= 20


def section(results, table):
    """table(header, rows): Markdown."""
    ours = {threads: own_row(results, threads)["step_best_us"] for threads in THREADS}
    rows = [["**onelaunch**, all of it"] + [f"**{ours[t]:,.0f}**" for t in THREADS],
            ["a copy of the states' bytes"] + [f"{own_row(results, t)['copy_best_us']:,.0f}" for t in THREADS]]
    rows += [[title] + [peer_cell(results, peer, t, ours[t]) for t in THREADS] for peer, title in PEERS]
    versions = sorted({e["version"] for e in results["peers"] if "version" in e})
    own = results["own"]["all"]
    shapes = [[r["state"], r["layout"], str(r["tokens"])] + [f"{other['step_best_us']:,.0f} ({other['copy_best_us'] / other['step_best_us']:.2f})"
              for other in (r, own_row(results, "all", r["state"], r["layout"], r["tokens"]))] for r in results["own"]["one"]["rows"]]
    return f"""## The gated-delta step

`ol_gated_delta_step` in Qwen3.5-9B's geometry: {own["key_heads"]} key heads, {own["value_heads"]} value heads, {own["key_dim"]} x {own["value_dim"]}, one sequence, bfloat16
activations; the states of {own["layers"]} layers take turns. Microseconds of a layer's step, best of the time, and how many times ours. One token, float32 states:

{table(["", "one thread", f"all threads ({own['threads']})"], rows)}

Peers: {"; ".join(versions)}. transformers' time has its gates and norm in it, as ours has; ggml's has neither, since they are other operations there.
Other states, layouts and tokens of a call; in brackets the share of a copy's bandwidth:

{table(["state", "layout", "tokens", "one thread", f"all threads ({own['threads']})"], shapes)}
"""
