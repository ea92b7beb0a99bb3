#!/usr/bin/env python3
"""All tests that need a GPU, on one, and a report: the test programs of tests/cuda on the real driver, random graphs, golden cases,
the sample's layers, compute-sanitizer, and the digests of primitives on all inputs.

    ./dev test-gpu [options]
    python3 tests/cuda/gpu_suite.py --build DIR [options]

The second form needs neither compilers nor the network: a build folder that was carried to the machine serves, with this folder's
gpu_*.py, tests/golden and sample beside it, and what the executables are linked with in LD_LIBRARY_PATH. Steps run one after another, as the
GPU is one; but of float32's digests, which the host hashes, --jobs at once.

Exit code 0 if all that ran passed, 1 if something failed or nothing ran, 2 where there is no usable GPU, and then nothing is written.
The last line is "N passed, M failed, K skipped". Kernels are cached in a folder of this run, unless ONELAUNCH_CACHE is set."""

import argparse
import datetime
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gpu_report import Report, summary
from gpu_run import Runner
from gpu_steps import DEFAULT_SECTIONS, ROOT, SECTIONS, Plan

NO_GPU = 2


# ---- The GPU


class NoGpu(Exception):
    pass


def output_of(*command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, errors="replace", timeout=120)
        return done.stdout if done.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def find_gpu(onelaunch, ordinal):
    """What `onelaunch devices` says of it."""
    try:
        done = subprocess.run([onelaunch, "devices"], capture_output=True, text=True, errors="replace", timeout=120)
    except OSError as e:
        raise NoGpu(f"{onelaunch} cannot be run: {e.strerror}") from e
    except subprocess.TimeoutExpired as e:
        raise NoGpu(f"{onelaunch} devices did not end within 120 s") from e
    text = done.stdout
    none = re.search(r"^no GPU: (.*)$", text, re.M)
    row = re.search(rf"^cuda:{ordinal} +(sm_\d+) +(.+)$", text, re.M)
    versions = re.search(r"^the driver serves CUDA ([\d.]+); (.*)$", text, re.M)
    if none:
        raise NoGpu(none[1])
    if not row or not versions:
        of_it = re.search(rf"^cuda:{ordinal} .*$", text, re.M)
        raise NoGpu(of_it[0] if of_it else f"there is no cuda:{ordinal}: {last_of(text) or last_of(done.stderr) or 'devices says nothing'}")
    if not versions[2].startswith("NVRTC "):
        raise NoGpu(f"{row[2]}: {versions[2]}")
    return {"name": row[2], "level": row[1], "cuda": versions[1], "nvrtc": versions[2][6:]}


def last_of(text):
    return (text.strip().splitlines() or [""])[-1]


def driver_version():
    told = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").strip().splitlines()
    if told:
        return told[0].strip()
    try:
        found = re.search(r"Module .*?(\d+\.\d+(?:\.\d+)?)", Path("/proc/driver/nvidia/version").read_text())
    except OSError:
        found = None
    return found[1] if found else "version not known"


# ---- The machine and the build


def processor():
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return f"{len(os.sched_getaffinity(0))} CPUs, {found[1] if found else platform.machine()}"


def commit_of_tree():
    """Of the folder that holds this script; a carried build may be of another."""
    commit = output_of("git", "-C", ROOT, "rev-parse", "--short", "HEAD").strip()
    changed = output_of("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no").strip()
    return (commit + (" with changes" if changed else "")) if commit else "not known"


def free_name(folder, stem):
    """A report is not written over."""
    path, n = folder / f"{stem}.md", 1
    while path.exists():
        n += 1
        path = folder / f"{stem}-{n}.md"
    return path


# ---- The run


def parse_arguments():
    description, _, epilog = __doc__.split("\n\n", 2)
    parser = argparse.ArgumentParser(description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter)
    positive = lambda text: float(text) if float(text) > 0 else parser.error(f"{text}: expected seconds above 0")
    parser.add_argument("--build", default=ROOT / "build", metavar="DIR", help="the build folder")
    parser.add_argument("--golden", default=ROOT / "tests" / "golden", metavar="DIR", help="the folder of golden cases and digests.tsv")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="the GPU's number (default 0)")
    parser.add_argument("--out", metavar="FILE", help="the report (default: a new file docs/reports/gpu-DATE.md)")
    parser.add_argument("--only", metavar="SECTION,...", help=f"of {', '.join(SECTIONS)} (default: all but bench)")
    parser.add_argument("--budget", type=positive, metavar="SECONDS", help="stop after so long; what was not reached is listed")
    parser.add_argument("--limit", type=positive, metavar="SECONDS", help="of each step (default: by section, 120 to 1200)")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="parity: so many seeds (default 5)")
    parser.add_argument("--graphs", type=int, default=16, metavar="N", help="parity: so many graphs of each (default 16)")
    parser.add_argument("--pairs", action="store_true", help="digests: primitives of two operands too, 2^32 pairs of 16-bit floats each")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="digests of float32 at once (default: a quarter of the CPUs, at most 4)")
    parser.add_argument("--bench", action="store_true", help="bench/gpu/bench_rates_gpu.py too, where there are torch and triton")
    parser.add_argument("--bench-build", metavar="DIR", help="the folder of libhost_loop.so, if it is not --build")
    parser.add_argument("--commit", help="of the build, for the report (default: what git says of this tree)")
    parser.add_argument("--which", action="store_true", help="only say which GPU it would be")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(DEFAULT_SECTIONS)
    for section in chosen:
        if section not in SECTIONS:
            parser.error(f"--only {section}: expected of {', '.join(SECTIONS)}")
    if min(options.seeds, options.graphs) < 1 or options.jobs < 0 or options.device < 0:
        parser.error("--seeds and --graphs are 1 at least, --jobs and --device not negative")
    options.sections = [section for section in SECTIONS if section in chosen or section == "bench" and options.bench]
    options.jobs = options.jobs or max(1, min(4, len(os.sched_getaffinity(0)) // 4))
    options.build, options.golden = Path(options.build).resolve(), Path(options.golden).resolve()
    return options


def make_report(options, gpu, begun):
    is_fake = gpu["name"].startswith("Fake GPU")
    facts = [
        ("GPU", f"{gpu['name']}, {gpu['level']}, cuda:{options.device}"),
        ("driver", f"{'the fake one' if is_fake else driver_version()}, serves CUDA {gpu['cuda']}"),
        ("NVRTC", gpu["nvrtc"]),
        ("processor", processor()),
        ("onelaunch", f"{output_of(options.build / 'onelaunch', '--version').replace('onelaunch', '').strip() or 'version not known'}, "
                      f"commit {options.commit or commit_of_tree()}"),
        ("begun", f"{begun:%Y-%m-%d %H:%M} UTC"),
        ("budget", f"{options.budget:g} s" if options.budget else "none"),
    ]
    if "digests" in options.sections:
        facts.append(("digests", "of primitives of one operand" + (" and of two" if options.pairs else "; those of two were not asked for (--pairs)")))
    notes = ["On the tests' fake driver, which runs kernels on the CPU: not the results of a GPU."] if is_fake else []
    places = [(options.build, "build"), (options.golden, "tests/golden")]
    if options.bench_build:
        places.insert(0, (Path(options.bench_build).resolve(), "build-bench"))
    return Report(f"GPU suite, {begun:%Y-%m-%d}", facts, places, options.sections, notes)


def run_all(options, gpu, path, begun):
    plan, report = Plan(options, options.device), make_report(options, gpu, begun)
    steps = [step for section in options.sections for step in plan.steps(section)]

    def write(end=None):
        path.write_text("\n".join(report.page(steps, end)).rstrip() + "\n")

    def tell(step):
        print(f"{step.state:11} {step.seconds:7.1f} s  {step.section}: {step.title}"
              + (f": {step.counts.remark}" if step.counts.remark else ""), flush=True)
        write()

    write()
    runner = Runner(options.budget, tell)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: runner.stopped.set())
    for section in options.sections:
        own = [step for step in steps if step.section == section]
        if section == "digests" and options.jobs > 1:
            with ThreadPoolExecutor(options.jobs) as pool:
                list(pool.map(runner.run, own))
        else:
            for step in own:
                runner.run(step)
    stopped = runner.stopped.is_set()
    write(f"{'Stopped by a signal' if stopped else 'Ended'} after {runner.seconds():.0f} s.")
    n_passed, n_failed = (sum(getattr(step.counts, name) for step in steps) for name in ("passed", "failed"))
    return steps, 0 if n_passed and not n_failed and not stopped else 1


def main():
    options = parse_arguments()
    try:
        gpu = find_gpu(options.build / "onelaunch", options.device)
    except NoGpu as e:
        print(f"test-gpu: this machine has no usable NVIDIA GPU: {e}", file=sys.stderr)
        return NO_GPU
    print(f"test-gpu: cuda:{options.device}: {gpu['name']}", flush=True)
    if options.which:
        return 0
    begun = datetime.datetime.now(datetime.timezone.utc)
    path = Path(options.out).resolve() if options.out else free_name(ROOT / "docs" / "reports", f"gpu-{begun:%Y-%m-%d}")
    kernels = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.environ.get("ONELAUNCH_CACHE"):
            kernels = os.environ["ONELAUNCH_CACHE"] = tempfile.mkdtemp(prefix="onelaunch-kernels-")
        steps, status = run_all(options, gpu, path, begun)
    except OSError as e:
        print(f"test-gpu: {e}", file=sys.stderr)
        return 1
    finally:
        if kernels:
            shutil.rmtree(kernels, ignore_errors=True)
    print(f"test-gpu: the report is {path}")
    print(summary(steps))
    return status


if __name__ == "__main__":
    sys.exit(main())
