#!/usr/bin/env python3
"""Runs the benchmarks on this machine and writes docs/performance.md.

    python3 bench/report.py --build build-bench --venv build-bench/venv

Makes the virtual environment if it is not there, and installs each peer of bench/requirements.txt by itself, so that one which
cannot be installed is reported in the table and does not stop the others. Raw results stay in BUILD/bench-results/ as JSON.
`--reuse` writes the document again from those, without measuring.
"""

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time

import step

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DTYPES = ["float32", "bfloat16"]
TOKENS = [1, 16, 256, 4096, 65536]
HEADS = 32
# Name, and title in the tables.
PEERS = [
    ("numpy", "NumPy, ten ufuncs into given buffers"),
    ("numexpr", "numexpr"),
    ("torch-eager", "PyTorch eager"),
    ("torch-compile", "torch.compile, dynamic shapes"),
    ("torch-aot", "PyTorch AOTInductor"),
    ("mlx-eager", "MLX eager"),
    ("mlx-compile", "MLX mx.compile, shapeless"),
    ("jax-jit", "jax.jit"),
]


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def output_of(command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


# ---- The virtual environment ---------------------------------------------------------------------------------------------------


def requirements():
    with open(os.path.join(ROOT, "bench", "requirements.txt")) as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def prepare_venv(folder):
    """The interpreter of the environment, and what could not be installed: {requirement: reason}."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        say(f"making a virtual environment in {folder}")
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    missing = {}
    for requirement in requirements():
        say(f"installing {requirement} (if it is not there)")
        done = subprocess.run([python, "-m", "pip", "install", "-q", requirement], capture_output=True, text=True)
        if done.returncode != 0:
            lines = [line for line in done.stderr.strip().splitlines() if line.startswith("ERROR")] or ["pip failed"]
            missing[requirement] = lines[-1].removeprefix("ERROR: ")
            say(f"  {missing[requirement]}")
    return python, missing


# ---- Measuring ---------------------------------------------------------------------------------------------------------------


def bench(build, results, name, program, *arguments):
    say(f"{program} {' '.join(arguments)}")
    text = subprocess.run([os.path.join(build, program), *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
    with open(os.path.join(results, name + ".json"), "w") as file:
        file.write(text)


def first_compilations(build, n=21):
    """The first compilation of each of n fresh processes, in microseconds, in order of size."""
    say(f"bench_rates --compile-only, {n} times")
    command = [os.path.join(build, "bench_rates"), "--compile-only"]
    return sorted(json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)["compile_us"]["first"] for _ in range(n))


def peer_environment(threads, scratch):
    """Every pool's own variable; and glibc is told to keep freed memory and to ask for huge pages, so that a peer that makes new
    arrays for its results is not charged for the kernel's clearing of pages, and has the same pages as bench_rates."""
    environment = dict(os.environ)
    environment.update(
        TMPDIR=scratch,
        TORCHINDUCTOR_CACHE_DIR=os.path.join(scratch, "inductor"),
        TORCHINDUCTOR_COMPILE_THREADS="1",
        JAX_PLATFORMS="cpu",
        GLIBC_TUNABLES=":".join([f"glibc.malloc.mmap_threshold={1 << 30}", f"glibc.malloc.trim_threshold={1 << 32}",
                                 f"glibc.malloc.top_pad={256 << 20}", "glibc.malloc.hugetlb=1"]),
    )
    if threads == "one":
        for variable in ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"]:
            environment[variable] = "1"
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    else:
        n = str(len(os.sched_getaffinity(0)))
        environment.update(OMP_NUM_THREADS=n, NUMEXPR_NUM_THREADS=n)
    return environment


def run_peer(python, peer, dtype, threads, data, scratch, seconds):
    say(f"{peer} {dtype} {threads}")
    command = [python, os.path.join(ROOT, "bench", "peers.py"), "--peer", peer, "--dtype", dtype, "--threads", threads, "--data", data]
    command += ["--seconds", str(seconds)]
    if threads == "one":
        command = ["taskset", "-c", str(max(os.sched_getaffinity(0)))] + command
    failed = {"peer": peer, "dtype": dtype, "threads": threads, "rates": []}
    try:
        done = subprocess.run(command, env=peer_environment(threads, scratch), capture_output=True, text=True, timeout=300 + 20 * seconds)
    except subprocess.TimeoutExpired:
        return dict(failed, failed="took too long")
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        lines = done.stderr.strip().splitlines()
        return dict(failed, failed=f"exit code {done.returncode}" + (f": {lines[-1][:160]}" if lines else ""))


def run_all(options, results):
    data, scratch = os.path.join(results, "data"), os.path.join(results, "scratch")
    shutil.rmtree(results, ignore_errors=True)
    os.makedirs(data)
    os.makedirs(scratch)
    python, missing = prepare_venv(options.venv)
    machine = describe_machine(options.build, python)
    machine["missing"] = missing
    machine["first_compilations"] = first_compilations(options.build)
    seconds = str(options.seconds)
    bench(options.build, results, "rates-one", "bench_rates", "--threads", "1", "--seconds", seconds, "--dump", data)
    peers = [run_peer(python, name, dtype, threads, data, scratch, 0.5 * options.seconds)
             for threads in ["one", "all"] for dtype in DTYPES for name, _ in PEERS]
    bench(options.build, results, "rates-all", "bench_rates", "--threads", "0", "--seconds", seconds)
    bench(options.build, results, "primitives", "bench_primitives", "--seconds", str(0.05 * options.seconds))
    run_step(options, results, python, scratch)
    machine["busy_after"] = others_busy()
    for name, value in [("peers", peers), ("machine", machine)]:
        with open(os.path.join(results, name + ".json"), "w") as file:
            json.dump(value, file, indent=1)
    shutil.rmtree(data)
    shutil.rmtree(scratch)


def run_step(options, results, python, scratch):
    say("the gated-delta step and its peers")
    measured = step.measure(options.build, python, options.seconds, lambda threads: peer_environment(threads, scratch))
    with open(os.path.join(results, "step.json"), "w") as file:
        json.dump(measured, file, indent=1)


# ---- The machine ---------------------------------------------------------------------------------------------------------------


def others_busy(seconds=3.0):
    """How many CPUs other work keeps busy, watched for a few seconds (a load average would still show the build before)."""

    def look():
        with open("/proc/stat") as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
        return sum(fields) - fields[3] - fields[4], sum(fields)

    busy_before, all_before = look()
    time.sleep(seconds)
    busy, total = look()
    return os.cpu_count() * (busy - busy_before) / max(1, total - all_before)


def describe_machine(build, python):
    cpus = len(os.sched_getaffinity(0))
    lscpu = dict(re.findall(r"^([^:]+):\s*(.*)$", output_of(["lscpu"]), re.M))
    cpu = lscpu.get("Model name", platform.machine())
    family = ", ".join(f"{name.lower()} {lscpu[name]}" for name in ["CPU family", "Model", "Stepping"] if name in lscpu)
    with open(os.path.join(build, "CMakeCache.txt")) as file:
        cache = dict(re.findall(r"^([^:#\n]+):[^=\n]*=(.*)$", file.read(), re.M))
    compiler = output_of([cache.get("CMAKE_C_COMPILER", "cc"), "--version"]).splitlines()
    memory = re.search(r"MemTotal:\s*(\d+)", open("/proc/meminfo").read())
    release = re.search(r'PRETTY_NAME="(.*)"', open("/etc/os-release").read())
    return {
        "cpu": f"{cpu} ({family})" if family else cpu,
        "virtual": lscpu.get("Hypervisor vendor", ""),
        "cpus": cpus,
        "caches": ", ".join(f"{name.replace(' cache', '')} {lscpu[name]}" for name in ["L1d cache", "L2 cache", "L3 cache"] if name in lscpu),
        "memory_gib": round(int(memory.group(1)) / 2**20, 1) if memory else 0,
        "system": f"{release.group(1) if release else platform.system()}, Linux {platform.release()}, glibc {platform.libc_ver()[1]}",
        "compiler": compiler[0] if compiler else "unknown",
        "build_type": cache.get("CMAKE_BUILD_TYPE") or "Release",
        "python": output_of([python, "--version"]),
        "commit": output_of(["git", "-C", ROOT, "describe", "--always", "--dirty"]),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "busy_before": others_busy(),
    }


# ---- Looking things up -------------------------------------------------------------------------------------------------------


class Results:
    def __init__(self, folder):
        def load(name):
            with open(os.path.join(folder, name + ".json")) as file:
                return json.load(file)

        self.machine, self.peers, self.primitives = load("machine"), load("peers"), load("primitives")
        self.step = load("step")
        self.own = {"one": load("rates-one"), "all": load("rates-all")}

    def time(self, threads, dtype, tokens, contestant, which="best_ns"):
        """Nanoseconds per call of one of ours."""
        for entry in self.own[threads]["rates"]:
            if (entry["dtype"], entry["tokens"], entry["contestant"]) == (dtype, tokens, contestant):
                return entry[which]
        return None

    def peer(self, name, dtype, threads):
        for entry in self.peers:
            if (entry["peer"], entry["dtype"], entry["threads"]) == (name, dtype, threads):
                return entry
        return {"failed": "not run", "rates": []}

    def peer_time(self, name, dtype, threads, tokens, which="best_ns"):
        for entry in self.peer(name, dtype, threads)["rates"]:
            if entry["tokens"] == tokens:
                return entry[which]
        return None

    def fastest_peer(self, dtype, tokens, thread_settings):
        """(nanoseconds, title, threads) of the fastest peer that finished this shape; None where no peer did."""
        found = [(self.peer_time(name, dtype, threads, tokens), title, threads) for name, title in PEERS for threads in thread_settings]
        return min((entry for entry in found if entry[0]), default=None)


# ---- The document --------------------------------------------------------------------------------------------------------------


def number(value):
    """Four significant digits at least, no exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(header, rows):
    return "\n".join([row(*header), row(*["---"] + ["---:"] * (len(header) - 1)), *(row(*cells) for cells in rows)])


def reason(entry):
    if "not_offered" in entry:
        return entry["not_offered"]
    return "failed: " + entry["failed"] if "failed" in entry else "no figure"


def time_table(results, threads):
    """ns per call by contestant; then the same as elements per ns."""
    header = ["ns per call (best)"] + [f"{dtype} T={tokens}" for dtype in DTYPES for tokens in TOKENS]
    names = ["replay", "composed"] + (["hand loop"] if threads == "one" else [])
    titles = {"replay": "**onelaunch replay**", "composed": "onelaunch composed path", "hand loop": "hand-written fused C loop"}
    times, rates = [], []

    def add(title, get, why):
        cells, speeds = [title], [title]
        for dtype in DTYPES:
            for tokens in TOKENS:
                ns = get(dtype, tokens)
                cells.append(number(ns) if ns else "n/a" + why(dtype))
                speeds.append(f"{tokens * HEADS / ns:.3f}" if ns else "n/a" + why(dtype))
        times.append(cells)
        rates.append(speeds)

    notes = []

    def note(title, entry):
        text = f"{title}: {reason(entry)}"
        if text not in notes:
            notes.append(text)
        return f" [{notes.index(text) + 1}]"

    for name in names:
        add(titles[name], lambda dtype, tokens: results.time(threads, dtype, tokens, name), lambda dtype: "")
    for name, title in PEERS:
        add(title, lambda dtype, tokens: results.peer_time(name, dtype, threads, tokens),
            lambda dtype: note(f"{title}, {dtype}", results.peer(name, dtype, threads)))
    text = table(header, times) + "\n\n" + table(["elements per ns (best)"] + header[1:], rates)
    if notes:
        text += "\n\n" + "\n".join(f"[{i + 1}] {text}  " for i, text in enumerate(notes))
    return text


def median_table(results):
    rows = []
    for threads in ["one", "all"]:
        for name in ["replay", "composed"] + (["hand loop"] if threads == "one" else []):
            rows.append([f"{name}, {threads}"] + [number(results.time(threads, dtype, tokens, name, "median_ns")) for dtype in DTYPES for tokens in TOKENS])
        for name, title in PEERS:
            cells = [results.peer_time(name, dtype, threads, tokens, "median_ns") for dtype in DTYPES for tokens in TOKENS]
            rows.append([f"{title}, {threads}"] + [number(ns) if ns else "n/a" for ns in cells])
    return table(["ns per call (median)"] + [f"{dtype} T={tokens}" for dtype in DTYPES for tokens in TOKENS], rows)


def differ_table(results):
    rows = [["onelaunch replay"] + ["0 %"] * 4]
    for name, title in PEERS:
        cells = []
        for dtype in DTYPES:
            last = [entry for entry in results.peer(name, dtype, "one")["rates"] if entry["tokens"] == TOKENS[-1]]
            cells += [f"{100 * last[0][key]:.2f} %" if last else "n/a" for key in ["differs_beta", "differs_decay"]]
        rows.append([title] + cells)
    return table(["results that differ from the correctly rounded ones"] + [f"{dtype} {what}" for dtype in DTYPES for what in ["beta", "decay"]], rows)


def goals(results):
    """Rows of goal, measured, met. A goal that could not be measured is not met."""
    rows = []

    def add(goal, measured, met):
        rows.append([goal, measured, "met" if met else "**unmet**"])

    def one(dtype, tokens, contestant):
        return results.time("one", dtype, tokens, contestant)

    for dtype in DTYPES:
        over = one(dtype, 1, "replay") - one(dtype, 1, "hand loop")
        add(f"T = 1, {dtype}: a replay costs at most 80 ns more than the hand loop",
            f"{one(dtype, 1, 'replay'):.0f} - {one(dtype, 1, 'hand loop'):.0f} = {over:.0f} ns", over <= 80)
    for dtype in DTYPES:
        fastest = results.fastest_peer(dtype, 1, ["one", "all"])
        goal = f"T = 1, {dtype}: at most 1/20 of the fastest peer"
        if fastest:
            ratio = fastest[0] / one(dtype, 1, "replay")
            add(goal, f"1/{ratio:.1f} of {fastest[1]} ({fastest[0] / 1000:.2f} µs, {fastest[2]} thread{'s' if fastest[2] == 'all' else ''})", ratio >= 20)
        else:
            add(goal, "no peer ran", False)
    for tokens in TOKENS[2:]:
        ratio = one("float32", tokens, "hand loop") / one("float32", tokens, "replay")
        add(f"T = {tokens}, float32: at least 1.1 times the hand loop's rate", f"{ratio:.2f} times", ratio >= 1.1)
    for tokens in TOKENS[2:]:
        ratio = one("float32", tokens, "replay") / one("bfloat16", tokens, "replay")
        add(f"T = {tokens}: bfloat16 at least twice float32's rate", f"{ratio:.2f} times", ratio >= 2)
    fastest = results.fastest_peer("bfloat16", TOKENS[-1], ["one"])
    if fastest:
        ratio = fastest[0] / one("bfloat16", TOKENS[-1], "replay")
        add(f"T = {TOKENS[-1]}, bfloat16, one thread: not slower than the fastest peer", f"{ratio:.2f} times the rate of {fastest[1]}", ratio >= 1)
    else:
        add(f"T = {TOKENS[-1]}, bfloat16, one thread: not slower than the fastest peer", "no peer ran", False)
    compile_us = results.own["one"]["compile_us"]
    firsts = results.machine["first_compilations"]
    first = firsts[len(firsts) // 2]
    add("compiling a composite: under 100 µs", f"first of a process {first:.1f} µs, then {compile_us['median']:.1f} µs (medians)",
        max(first, compile_us["median"]) < 100)
    for goal, measured, met in [*primitive_goals(results), *step.goals(results.step)]:
        add(goal, measured, met)
    return rows


def primitive_goals(results):
    """Goal, measured, met, of single primitives, each at every SIMD level of this machine."""
    rows, levels = primitive_rows(results)
    functions = [name for name in rows if ("glibc", "float32", levels[0]) in rows[name]]

    def ratios(names, library):
        """{"name level": onelaunch's float32 rate over the library's}; glibc's scalar functions are the same at all levels."""
        return {f"{name} {level}": rows[name]["onelaunch", "float32", level] / rows[name][library, "float32", levels[0] if library == "glibc" else level]
                for name in names for level in levels}

    def against(goal, names, library, least):
        found = ratios(names, library)
        worst = min(found, key=found.get)
        short = [f"{which} {ratio:.2f}" for which, ratio in found.items() if ratio < least]
        text = f"worst: {found[worst]:.2f} times ({worst})" if len(short) < 2 else f"{len(found) - len(short)} of {len(found)}; not " + ", ".join(short)
        return goal, text, not short

    yield against("float32 exp, log, sigmoid: at least 1/2.5 of SLEEF's 1-ulp version", ["exp", "log", "sigmoid"], "SLEEF", 1 / 2.5)
    yield against("float32 expm1, tanh, softplus: ahead of SLEEF's 1-ulp version", ["expm1", "tanh", "softplus"], "SLEEF", 1)
    yield against("float32 functions: at least twice glibc's scalar one, which need not round correctly", functions, "glibc", 2)
    pairs = {(name, dtype, level): rows[name]["onelaunch", dtype, level] / rows[name]["onelaunch", "float32", level]
             for name in functions for dtype in ["float16", "bfloat16"] for level in levels}
    met = [key for key, ratio in pairs.items() if ratio >= 2.5]
    worst = min(pairs, key=pairs.get)
    yield ("16-bit functions: at least 2.5 times float32's rate",
           f"{len(met)} of {len(pairs)} (function, dtype, level); median {sorted(pairs.values())[len(pairs) // 2]:.2f} times, worst {pairs[worst]:.2f} ({' '.join(worst)})",
           len(met) == len(pairs))


def float32_ratio(results):
    parts = []
    for tokens in TOKENS[2:]:
        fastest = results.fastest_peer("float32", tokens, ["one"])
        if fastest:
            parts.append(f"T = {tokens}: {fastest[0] / results.time('one', 'float32', tokens, 'replay'):.2f} times the rate of {fastest[1]}")
    return (
        "Float32 against the fastest peer, one thread: " + ("; ".join(parts) or "no peer ran") + ".\n"
        "The reason where it is below 1: every float32 step is correctly rounded, which takes its transcendental functions through\n"
        "arithmetic of twice the width (double, or pairs of float32 with a test that sends undecided elements to double). The peers'\n"
        "float32 functions are approximations in float32 itself; the table of differing results shows how often that shows."
    )


def primitive_rows(results):
    """{name: {(library, dtype, level): elements per ns}} in the order of the primitives, and the levels."""
    n, rows, levels = results.primitives["elements"], {}, []
    for entry in results.primitives["primitives"]:
        if entry["level"] not in levels:
            levels.append(entry["level"])
        name = entry["primitive"]
        if name == "astype":
            name = f"astype to {entry['result']}"
        rows.setdefault(name, {})[entry["library"], entry["dtype"], entry["level"]] = n / entry["best_ns"]
    return rows, levels


def primitives_table(results):
    rows, levels = primitive_rows(results)
    columns = [("onelaunch", dtype, level) for dtype in ["float32", "float16", "bfloat16"] for level in levels]
    return table(["elements per ns"] + [f"{dtype} {level}" for _, dtype, level in columns],
                 [[name] + [f"{rates[c]:.2f}" if c in rates else "" for c in columns] for name, rates in rows.items()])


# Why 16 bits are not 2.5 times as fast as float32, by kind of primitive.
HALF_KINDS = (
    ("a load, an instruction or two and a store for each element of float32, so that half the bytes give at most twice the rate, and less where "
     "16 bits have to be converted, since no level computes in them",
     ["abs", "negative", "sign", "square", "floor", "ceil", "round", "sqrt", "reciprocal", "isnan", "isinf", "isfinite", "add", "subtract", "multiply",
      "divide", "maximum", "minimum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "where", "clip", "fma"]),
    ("two operands, whose results are too many for a table; 16 bits take float32 arithmetic where float32 takes double",
     ["floor_divide", "remainder", "logaddexp", "power", "arctan2", "hypot"]),
    ("functions of one operand, which long runs look up: the same rate for all, so that what is missing is where float32 has more than 1/2.5 of it", None),
)


def half_rates(results):
    """How many (primitive, dtype, level) reach 2.5 times float32's rate, by kind, and which do not."""
    rows, levels = primitive_rows(results)
    named = {name for _, names in HALF_KINDS[:-1] for name in names}
    lines = ["16 bits at 2.5 times float32's rate, by (primitive, dtype, level):", ""]
    for why, names in HALF_KINDS:
        names = names or [name for name in rows if name not in named and not name.startswith("astype")]
        short, n = [], 0
        for name in names:
            missing = {}
            for dtype in ["float16", "bfloat16"]:
                for level in levels:
                    ratio = rows[name]["onelaunch", dtype, level] / rows[name]["onelaunch", "float32", level]
                    n += 1
                    if ratio < 2.5:
                        missing.setdefault(level, []).append(f"{dtype} {ratio:.2f}")
            short += [f"{name} {level} ({', '.join(ratios)})" for level, ratios in missing.items()]
        n_short = sum(text.count("float16") for text in short)               # bfloat16's too
        lines.append(f"- {n - n_short} of {n}: {why}" + ("." if not short or names is HALF_KINDS[0][1] else ". Not: " + "; ".join(short) + "."))
    return "\n".join(lines)


def functions_table(results):
    """float32 beside the other libraries, at each level; glibc's scalar functions are the same at all."""
    rows, levels = primitive_rows(results)
    columns = [(library, "float32", level) for level in levels for library in ["onelaunch", "SLEEF", "libmvec"]]
    columns.append(("glibc", "float32", levels[0]))
    lines = []
    for name, rates in rows.items():
        if any(c[0] != "onelaunch" and c in rates for c in columns):
            lines.append([name] + [f"{rates[c]:.2f}" if c in rates else "" for c in columns])
    return table(["elements per ns"] + [library if library == "glibc" else f"{library} {level}" for library, _, level in columns], lines)


def machine_lines(results):
    m, own = results.machine, results.own["one"]
    versions = {}
    for entry in results.peers:
        if "version" in entry:
            versions[entry["peer"].split("-")[0]] = entry["version"]
    names = {"numpy": "NumPy", "numexpr": "numexpr", "torch": "PyTorch", "mlx": "MLX", "jax": "JAX"}
    lines = [
        f"- {m['date']}; onelaunch {own['version']} (commit {m['commit'] or 'unknown'}), SIMD level {own['level']}",
        f"- {m['cpu']}, {m['cpus']} CPUs{', virtual machine' if m['virtual'] else ''}; {m['caches']}; {m['memory_gib']} GiB",
        f"- {m['system']}; {m['compiler']}, {m['build_type']} build; the kernels' flags are in CMakeLists.txt",
        f"- {m['python']}; " + ", ".join(f"{names[key]} {versions[key]}" for key in names if key in versions),
    ]
    for requirement, why in m["missing"].items():
        lines.append(f"- could not be installed: {requirement}: {why}")
    busy = max(m["busy_before"], m["busy_after"]) > 0.2
    lines.append(f"- CPUs busy with other work just before the run {m['busy_before']:.2f}, just after it {m['busy_after']:.2f}"
                 + (": **these figures are provisional**" if busy else ""))
    return "\n".join(lines)


def document(results):
    compile_us, firsts = results.own["one"]["compile_us"], results.machine["first_compilations"]
    return f"""# Performance

Written by `./dev bench` (`bench/report.py`); do not edit. Run it on an idle machine.

The gated-delta rates on `[T, {HEADS}]`: `beta = sigmoid(b)`, `decay = exp(-(exp(A_log) * softplus(a + dt_bias)))`, with all four inputs
float32, or `a`, `b` and `dt_bias` bfloat16 and `A_log` float32. An element is one head of one token, so both results together.

{machine_lines(results)}

## Goals

{table(["goal", "measured", ""], goals(results))}

{float32_ratio(results)}

## One thread

Pinned to one CPU (`sched_setaffinity`, `taskset`).

{time_table(results, "one")}

**The peers' times include their host overhead in Python**, as a user sees it: the interpreter's call, argument checks, allocation
of results, dispatch. It weighs most at T = 1. onelaunch and the hand loop are called from C, into the caller's memory. AOTInductor's compiled library is called through its Python loader.

## All threads

{time_table(results, "all")}

## Results that differ

{differ_table(results)}

Bits compared over T = {TOKENS[-1]}, one thread. "Correctly rounded" is each step of the formula rounded once to its own dtype: what
onelaunch gives at every SIMD level. Compilers that keep bfloat16 intermediates in float32 compute another function; that is why nearly
all of their decays differ.

## Compiling

The two-output composite, from builder to a composite that can be replayed. The first compilation of a process, in
{len(firsts)} fresh ones: best {firsts[0]:.1f} µs, median {firsts[len(firsts) // 2]:.1f} µs, worst {firsts[-1]:.1f} µs. Later ones: best {compile_us["best"]:.2f} µs, median
{compile_us["median"]:.2f} µs. One compilation serves all shapes.

## Primitives

One-node graphs replayed on {results.primitives["elements"]} contiguous elements, one thread, at each SIMD level of this machine. For a primitive with
a bool result the dtype is that of its operands.

{primitives_table(results)}

{half_rates(results)}

## Float32 functions beside other libraries

The same elements by SLEEF's 1-ulp vector functions (`u10`; `hypot`: `u05`), by glibc's libmvec (up to 4 ulp) and by glibc's scalar
functions in a loop, in one run with the replays above. None of them is correctly rounded. What a library has not is made of what
it has, as a user would: sigmoid and silu of exp and a division, softplus of log1p(exp(x)), which overflows.

{functions_table(results)}

{step.section(results.step, table)}
## How it was measured

`bench/bench_rates.c` lets replay, composed path and hand loop take turns in batches of at least 50 µs for some seconds a shape, after
checking that their results have the same bits; `bench/peers.py` runs each peer in a process of its own, in batches of at least 0.2 ms
after a warm-up (compilation is not counted; JAX compiles anew for every shape). The tables show the best batch; the medians are below.
Inputs are reused by every call, so what fits a cache is in it; calls of fewer than 64 tokens of onelaunch and the hand loop take
turns through the first 64 tokens, since some values take longer than others there. Large buffers are on huge pages on both sides
(`madvise`; NumPy does so by itself), and the peers run with glibc told to keep freed memory and to use huge pages
(`GLIBC_TUNABLES`), which spares them page faults for their results. The hand loop (`bench/hand_loop_body.h`) is one fused loop over
the elements around the scalar functions of `src/numerics`, compiled with the kernels' flags, `exp(A_log)` taken once per call. Where
a SIMD level has kernels of its own for a primitive (`src/cpu/kernels_own.h`), a replay runs those and the hand loop does not.

{median_table(results)}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", required=True, help="build folder, configured with -DONELAUNCH_BENCH=ON and built")
    parser.add_argument("--venv", help="virtual environment of the peers; made if it is not there (default BUILD/venv)")
    parser.add_argument("--seconds", type=float, default=2.0, help="about how long to time each shape and dtype (default 2)")
    parser.add_argument("--out", default=os.path.join(ROOT, "docs", "performance.md"), help="the document (default docs/performance.md)")
    parser.add_argument("--reuse", action="store_true", help="write the document from the results of the last run")
    parser.add_argument("--step", action="store_true", help="measure the gated-delta step alone, and reuse all else")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.venv = os.path.abspath(options.venv or os.path.join(options.build, "venv"))
    results = os.path.join(options.build, "bench-results")
    if options.step:
        python, _ = prepare_venv(options.venv)
        run_step(options, results, python, results)
    elif not options.reuse:
        run_all(options, results)
    loaded = Results(results)
    with open(options.out, "w") as file:
        file.write(document(loaded))
    for goal, measured, met in goals(loaded):
        print(f"{met.strip('*'):6} {goal}: {measured}")
    say(f"wrote {os.path.relpath(options.out)}")


if __name__ == "__main__":
    main()
