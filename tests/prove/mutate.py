#!/usr/bin/env python3
"""Faults planted in the arithmetic, one at a time: a coefficient's last digits, a rounding step left out, a bound too tight. The proof
must find each of them, or it would not find the same mistake in a change.

    mutate.py BUILD [NAME...]

Copies the sources to BUILD/mutants, changes a line, builds prove there and runs it on the primitive: exit status 1 (wrong results) is
what is wanted. Exits with 1 if a fault was not found."""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NUM = "src/numerics/"
CPU = "src/cpu/"

# Name: file, text, what it becomes, and what to run.
MUTANTS = {
    "exp coefficient": (NUM + "num_exp64.h", "0x1.55555555554fdp-3", "0x1.555555555547dp-3", "--op exp --dtype float32 --level baseline"),
    "expm1 coefficient": (NUM + "num_exp64.h", "0x1.555555555554dp-5", "0x1.555555555500dp-5", "--op expm1 --dtype float32"),
    "ln2, low part": (NUM + "num_exp64.h", "0x1.cf79abc9e3b3ap-40", "0x1.cf79abc9a3b3ap-40", "--op tanh,expm1 --dtype float32"),
    "sigmoid, tie near 0": (NUM + "num_exp64.h", "(1.0 - 0x1p-27)", "1.0", "--op sigmoid --dtype float32"),
    "log, rounding to odd": (NUM + "num_log64.h", "return num_odd_forced64(y, (sum - y) + rest);", "return y;", "--op log,log1p --dtype float32"),
    "softplus, tie": (NUM + "num_log64.h", "return num_from_bits64(num_bits64(y) | 1);", "return y;", "--op softplus --dtype float32"),
    "expm1 float16, one input": (NUM + "num_exp32.h", "x == 0x1.6ap-11f", "x == 0x1.6cp-11f", "--op expm1 --dtype float16"),
    "bfloat16 coefficient": (NUM + "num_exp32.h", "0x1.55535ap-3f", "0x1.5558p-3f", "--op exp --dtype bfloat16"),
    "bound of a pair": (CPU + "kernels_vector_avx512.h", "V_EXP_ERROR 0x1.4p-36f", "V_EXP_ERROR 0x1.4p-41f", "--op exp --dtype float32 --level avx512"),
    "logaddexp of 16 bits, bound": (NUM + "num_logaddexp32.h", "NUM_LOGADDEXP_ERROR 0x1p-21f", "NUM_LOGADDEXP_ERROR 0x1p-27f",
                                    "--op logaddexp --dtype float16 --shard 5/64"),
}


def run(command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)


def try_mutant(tree, build, name):
    path, old, new, arguments = MUTANTS[name]
    text = (ROOT / path).read_text()
    if text.count(old) < 1:
        return f"the text is not in {path} any more"
    (tree / path).write_text(text.replace(old, new, 1))
    made = run(["cmake", "--build", build, "--target", "prove", "--", "--quiet"])
    if made.returncode:
        return "does not compile: " + made.stdout[-300:]
    proof = run([build / "prove", "--quiet", *arguments.split()])
    (tree / path).write_text(text)
    if proof.returncode == 1:
        wrong = [line for line in proof.stdout.splitlines() if " wrong: " in line]
        return None, wrong[0].strip() if wrong else "wrong"
    return f"NOT FOUND by prove {arguments} (exit status {proof.returncode}) {proof.stderr.strip()}"


def main():
    where, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:] or list(MUTANTS)
    tree, build = where / "mutants", where / "mutants-build"
    shutil.rmtree(tree, ignore_errors=True)
    for part in ["CMakeLists.txt", "src", "include", "tools", "tests", "examples", "fuzz", "cmake", "man"]:
        source = ROOT / part
        tree.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, tree / part)
        else:
            shutil.copy2(source, tree / part)
    configured = run(["cmake", "-S", tree, "-B", build, "-G", "Ninja", "-DONELAUNCH_TESTS=ON"])
    if configured.returncode:
        sys.exit(configured.stderr)
    missed = 0
    for name in names:
        result = try_mutant(tree, build, name)
        found = isinstance(result, tuple)
        missed += not found
        print(f"{'found' if found else 'MISSED':7}{name}: {result[1] if found else result}", flush=True)
    print(f"{len(names) - missed} of {len(names)} faults found")
    sys.exit(1 if missed else 0)


main()
