"""What the GPU suite (gpu_suite.py) runs: the steps of each section, and how their outputs are counted."""

import glob
import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

from gpu_run import Counts, Step, skip

ROOT = Path(__file__).resolve().parents[2]

# In the order in which they run; what is counted; the seconds that a step of it may take.
SECTIONS = {
    "tests": ("tests", 120),
    "parity": ("graphs", 120),
    "golden": ("cases", 600),
    "sample": ("layers", 300),
    "sanitizer": ("programs without an error", 900),
    "digests": ("digests", 300),
    "bench": ("runs", 1200),
}
DEFAULT_SECTIONS = [name for name in SECTIONS if name != "bench"]


class Plan:
    """Of the options of gpu_suite.py; `ordinal` is the GPU's number."""

    def __init__(self, options, ordinal):
        self.options, self.ordinal = options, ordinal
        self.build, self.cases = Path(options.build), Path(options.golden)
        self.onelaunch = self.build / "onelaunch"
        self.device = f"cuda:{ordinal}"

    def steps(self, section):
        return list(getattr(self, section)())

    def step(self, section, title, command, count, **more):
        return Step(section, title, command, self.options.limit or SECTIONS[section][1], count, **more)

    def only_this_gpu(self):
        """For programs that take the first GPU that they find."""
        visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        if self.ordinal == 0:
            return {}
        return {"CUDA_VISIBLE_DEVICES": visible[self.ordinal] if self.ordinal < len(visible) else str(self.ordinal)}

    # ---- The test programs

    def tests(self):
        names = sorted(path.name for path in self.build.glob("test_cuda_*") if is_program(path))
        for name in ["driver_rules", *names] if is_program(self.build / "driver_rules") else names:
            count = count_rules if name == "driver_rules" else count_tests
            yield self.step("tests", name, [self.build / name], count, environment=self.only_this_gpu())
        if not names:
            yield skip("tests", "test_cuda_*", "no such program in the build folder")

    # ---- Random graphs, and cases of files

    def parity(self):
        for seed in range(1, self.options.seeds + 1):
            command = [self.onelaunch, "parity", "--device", self.device, "--seed", seed, "--graphs", self.options.graphs]
            yield self.step("parity", f"parity, seed {seed}", command, count_graphs)

    def case_files(self):
        return sorted(path for path in self.cases.glob("*.tsv") if path.name != "digests.tsv") + sorted(self.cases.glob("hard/*.hard"))

    def golden(self):
        for path in self.case_files():
            yield self.step("golden", f"check {path.name}", [self.onelaunch, "check", "--device", self.device, path], count_cases)
        if not self.case_files():
            yield skip("golden", "check", "no case files in the folder of --golden")

    # ---- The layers of the sample, against transformers' results

    def sample(self):
        folder = ROOT / "sample"
        if not folder.is_dir():
            yield skip("sample", "onelaunch step", "no folder sample beside the tests")
            return
        for part in ("mixer", "step"):
            command = [self.onelaunch, "step", "--device", self.device, "--part", part, "--weights", folder / "model",
                       "--activations", folder / "steps.safetensors"]
            yield self.step("sample", f"onelaunch step, part {part}", command, count_layers)

    # ---- Digests

    def digests(self):
        """16-bit inputs are few: one process for all primitives. Of float32 each is a process, so that several hash at once."""
        try:
            rows = [line.split("\t") for line in (self.cases / "digests.tsv").read_text().splitlines() if re.match("[a-z]", line)]
        except OSError:
            yield skip("digests", "digests", "no digests.tsv in the folder of --golden")
            return
        # Of one operand are those of 16 bits whose digest is over all inputs either way: these are few.
        unary = {op for op, dtype, whole, strided in rows if dtype != "float32" and whole == strided}
        for dtype in ("float16", "bfloat16"):
            ops = [row[0] for row in rows if row[0] in unary and row[1] == dtype]
            if ops:
                yield self.digest(f"{dtype}, primitives of one operand", ops, dtype)
        pairs = [row[:2] for row in rows if row[0] not in unary] if self.options.pairs else []
        for op, dtype in [row[:2] for row in rows if row[0] in unary and row[1] == "float32"]:
            yield self.digest(f"{op} {dtype}", [op], dtype)
        for op, dtype in sorted(pairs, key=lambda row: row[1] != "float32"):        # samples of 2^28 before all pairs of 16 bits
            yield self.digest(f"{op} {dtype}", [op], dtype)

    def digest(self, title, ops, dtype):
        command = [self.onelaunch, "digest", "--device", self.device, "--op", ",".join(ops), "--dtype", dtype]
        return self.step("digests", title, command, lambda output, code: count_digests(output, code, len(ops)), weight=len(ops))

    # ---- Under compute-sanitizer

    def sanitizer(self):
        """Every kind of kernel: random graphs with their composed paths, a primitive's, the rates'; layouts and turns of groups;
        words by pointer."""
        tool = find_sanitizer()
        cases = [path for path in self.case_files() if path.name in ("regressions.tsv", "rates.tsv")]
        programs = [(f"parity, seed {seed}", [self.onelaunch, "parity", "--device", self.device, "--seed", seed, "--graphs", 8], {})
                    for seed in (1, 2)]
        programs += [(f"check {path.name}", [self.onelaunch, "check", "--device", self.device, path], {}) for path in cases]
        for name, arguments in (("test_cuda_replay", []), ("test_cuda_threads", ["--filter", "replays_by_pointer"]),
                                ("test_cuda_step_pool", ["--filter", "splits_of_tokens"]), ("test_cuda_step_pool", ["--filter", "models"]),
                                ("test_cuda_mixer_pool", ["--filter", "splits_of_tokens"]), ("test_cuda_mixer_pool", ["--filter", "models"])):
            if is_program(self.build / name):
                programs.append((" ".join([name, *arguments[1:]]), [self.build / name, *arguments], self.only_this_gpu()))
        if not tool:
            yield skip("sanitizer", "compute-sanitizer", "not found in PATH, $CUDA_HOME or /usr/local/cuda*")
            return
        for kind in ("memcheck", "initcheck", "racecheck"):
            for title, command, environment in programs:
                command = [tool, "--tool", kind, "--error-exitcode", 99, "--print-limit", 20, *command]
                yield self.step("sanitizer", f"{kind}: {title}", command, count_sanitizer, environment=environment)

    # ---- The benchmark

    def bench(self):
        folder = Path(self.options.bench_build or self.build)
        missing = [name for name in ("torch", "triton") if importlib.util.find_spec(name) is None]
        scripts = {"bench_rates_gpu.py": count_bench, "bench_gated_delta_gpu.py": count_step_bench, "bench_mixer_gpu.py": count_step_bench}
        for script, count in ((ROOT / "bench" / "gpu" / name, count) for name, count in scripts.items()):
            if missing:
                yield skip("bench", script.name, f"this Python has no {' and no '.join(missing)}")
            elif not script.exists() or not (folder / "libhost_loop.so").exists():
                yield skip("bench", script.name, "no libhost_loop.so in the build folder (-DONELAUNCH_BENCH=ON)" if script.exists() else "not here")
            else:
                yield self.step("bench", script.name, [sys.executable, script, "--build", folder], count, keep_output=True,
                                environment=self.only_this_gpu())


def is_program(path):
    return path.is_file() and os.access(path, os.X_OK)


def find_sanitizer():
    roots = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")] + sorted(glob.glob("/usr/local/cuda*"))
    places = [f"{root}/{part}" for root in roots if root for part in ("bin", "compute-sanitizer")]
    return shutil.which("compute-sanitizer") or next(filter(None, (shutil.which("compute-sanitizer", path=p) for p in places)), None)


# ---- Counting. The exit code is None where the program was ended from outside.


def number(pattern, output):
    found = re.findall(pattern, output, re.M)
    return int(found[-1]) if found else 0


def count_tests(output, code):
    """cmocka's lines. Those that are listed at the end are also found where there is no end."""
    passed = len(re.findall(r"^\[ +OK +\] ", output, re.M))
    failed = {name for name in re.findall(r"^\[  FAILED  \] (\S+)$", output, re.M)}
    skipped = {name for name in re.findall(r"^\[  SKIPPED \] (\S+)$", output, re.M)}
    begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.M)
    remarks = [f"in {', '.join(sorted(failed))}"] if failed else []
    remarks += [f"without {', '.join(sorted(skipped))}"] if skipped else []
    in_work = begun and len(begun) > passed + len(failed) + len(skipped)
    remarks += [f"ended in {begun[-1]}"] if in_work else []
    return Counts(passed, len(failed), len(skipped), remark="; ".join(remarks))


def count_rules(output, code):
    n, differ = number(r"^(\d+) cases, \d+ differ", output), number(r"^\d+ cases, (\d+) differ", output)
    return Counts(n - differ, differ)


def count_graphs(output, code):
    return Counts(number(r"^(\d+) graphs of .* all bits equal", output))


def count_cases(output, code):
    return Counts(number(r"^(\d+) passed, \d+ failed", output), number(r"^\d+ passed, (\d+) failed", output))


def count_layers(output, code):
    return Counts(number(r"^(\d+) layers?, within the noise of rounding; one launch a call", output))


def count_digests(output, code, n):
    """The command ends at a digest that it cannot compute: this one has failed, those behind it were not begun."""
    ends = re.findall(r"^\w+ +b?float\d+ +[0-9a-f]{16}  (equal|DIFFERS|MISSING)", output, re.M)
    passed = ends.count("equal")
    counts = Counts(passed, len(ends) - passed)
    if code is not None and len(ends) < n:
        counts.failed += 1
        counts.skipped = n - len(ends) - 1
        counts.remark = f"{n - len(ends)} of {n} digests have no result"
    return counts


def count_sanitizer(output, code):
    """Errors and hazards by the last summary; none without one."""
    found = re.findall(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)", output)
    if not found:
        return Counts(remark="no summary" if code is not None else "")
    n_errors = sum(int(a or b) for a, b in found)
    program = re.search(r"^.*(?:\d+ passed, \d+ failed|all bits equal|\[  PASSED  \] \d+ test).*$", output, re.M)
    if n_errors == 0 and code == 0 and not program:
        return Counts(failed=1, remark="0 errors, but the program did not say that it passed")
    return Counts(int(n_errors == 0 and code == 0), int(n_errors > 0), remark=f"{n_errors} errors")


def count_bench(output, code):
    """Rows that say in how many values the replay differs from the composed path."""
    rows = re.findall(r"\[(\d+), (\d+)\]$", output, re.M)
    differ = sum(row != ("0", "0") for row in rows)
    return Counts(int(bool(rows) and not differ), int(differ > 0), remark=f"{len(rows)} shapes, {differ} with other values than the composed path")


def count_step_bench(output, code):
    """Rows of its table."""
    rows = re.findall(r"^\|.* (?:float32|bfloat16) \|.*$", output, re.M)
    return Counts(int(bool(rows) and code == 0), remark=f"{len(rows)} cases")
