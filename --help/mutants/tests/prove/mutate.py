#!/usr/bin/env python3
"""Faults planted in the arithmetic, one at a time: a coefficient off by more than the arithmetic's own error, a
rounding step left out, a bound too tight. The proof must find each of them, or it would not find the same mistake in a change.

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
    "exp coefficient": (NUM + "num_exp64.h", "0x1.55555555554fdp-3", "0x1.5555555554000p-3", "--op exp --dtype float32 --level baseline"),
    "expm1 coefficient": (NUM + "num_exp64.h", "0x1.555555555554dp-5", "0x1.5555555500000p-5", "--op expm1 --dtype float32"),
    "ln2, low part": (NUM + "num_exp64.h", "0x1.cf79abc9e3b3ap-40", "0x1.cep-40", "--op tanh,expm1 --dtype float32"),
    "sigmoid, tie near 0": (NUM + "num_exp64.h", "(1.0 - 0x1p-27)", "1.0", "--op sigmoid --dtype float32"),
    "last addition, rounding to odd": (NUM + "num_round.h", "return num_odd_forced64(y, (sum - y) + rest);", "return y;",
                                       "--op log,log1p,log2,log10,arcsin,arccos,arctan --dtype float32"),
    "softplus, tie": (NUM + "num_log64.h", "return num_from_bits64(num_bits64(y) | 1);", "return y;", "--op softplus --dtype float32"),
    "expm1 float16, one input": (NUM + "num_exp32.h", "x == 0x1.6ap-11f", "x == 0x1.6cp-11f", "--op expm1 --dtype float16"),
    "bfloat16 coefficient": (NUM + "num_exp32.h", "0x1.55535ap-3f", "0x1.54p-3f", "--op exp --dtype bfloat16"),
    "bound of a pair": (CPU + "kernels_vector_avx512.h", "V_EXP_ERROR 0x1.4p-36f", "V_EXP_ERROR 0x1.4p-41f", "--op exp --dtype float32 --level avx512"),
    "quick exp, bound": (NUM + "num_quick64.h", "NUM_QUICK_POWER_DOUBT (1u << 14)", "NUM_QUICK_POWER_DOUBT (1u << 10)",
                         "--op exp,exp2,sigmoid,silu --dtype float32 --level baseline"),
    "quick softplus, bound": (NUM + "num_quick64.h", "NUM_QUICK_SOFTPLUS_DOUBT (3u << 14)", "NUM_QUICK_SOFTPLUS_DOUBT (1u << 11)",
                              "--op softplus --dtype float32 --level baseline"),
    "quick log, bound": (NUM + "num_quick64.h", "NUM_QUICK_LOG_DOUBT (1u << 16)", "NUM_QUICK_LOG_DOUBT (1u << 13)",
                         "--op log --dtype float32 --level baseline"),
    "log in pairs, bound": (CPU + "kernels_pair_log.h", "PAIR_LOG_ROUNDING 0x1.9p-23f", "PAIR_LOG_ROUNDING 0x1.9p-28f",
                            "--op log,log2,log10,log1p --dtype float32 --level avx2"),
    "log in pairs, coefficient": (CPU + "kernels_log_avx512.h", "0x1.555554p-2f", "0x1.5556p-2f",
                                  "--op log,log2,log10,log1p --dtype float32 --level avx512"),
    "logaddexp of 16 bits, bound": (NUM + "num_logaddexp32.h", "NUM_LOGADDEXP_ERROR 0x1p-21f", "NUM_LOGADDEXP_ERROR 0x1p-27f",
                                    "--op logaddexp --dtype float16 --shard 5/64"),
    "tables of bfloat16, where they begin": (CPU + "kernels_bf16_table.h", "#define TABLE_LOW 0x3880 ", "#define TABLE_LOW 0x3c80 ",
                                             "--op softplus,sigmoid --dtype bfloat16"),
    "pi, low part": (NUM + "num_trig64.h", "0x1.1a62633145c07p-53", "0x1.1a6p-53", "--op sin,cos,tan --dtype float32"),
    "sin, margin of the rounding test": (NUM + "num_trig64.h", "margin = 1u << 10", "margin = 1u << 4", "--op sin,cos,tan --dtype float32"),
    "sin, bits of 2/pi": (NUM + "num_trig_fixed.h", "0xdb629599", "0xdb629598", "--op sin,cos,tan --dtype float32"),
    "exp2, one input": (NUM + "num_base2.h", "x == 0x1.853a6ep-9f", "x == 0x1.853a7p-9f", "--op exp2 --dtype float32"),
    "silu, ties of subnormals": (NUM + "num_silu.h", "0x1p-40f - num_abs32(x)", "-num_abs32(x)", "--op silu --dtype float32 --shard 0/256"),
    "arctanh, bound": (NUM + "num_arc_hyperbolic64.h", "(1.0 - 0x1p-47)), high = (float)(y * (1.0 + 0x1p-47))",
                       "(1.0 - 0x1p-53)), high = (float)(y * (1.0 + 0x1p-53))", "--op arcsinh,arccosh,arctanh --dtype float32"),
    "erf, coefficient": (NUM + "num_erf64.h", "0x1.20dd750429b6dp+0", "0x1.20dd750429b7dp+0", "--op erf --dtype float32"),
    "erfinv, bound": (NUM + "num_erfinv64.h", "NUM_ERFINV_ERROR 0x1p-44", "NUM_ERFINV_ERROR 0x1p-51", "--op erfinv --dtype float32"),
    "bfloat16 from float32, ties": (NUM + "num_round.h", "(bits + 0x7fffu + ((bits >> 16) & 1u))", "(bits + 0x8000u)",
                                    "--op astype_bfloat16 --dtype float32"),
    "float16 from float32, rounding constant": (NUM + "num_round.h", "+ 0xfffu + ((magnitude >> 13)", "+ 0xffeu + ((magnitude >> 13)",
                                                "--op astype_float16 --dtype float32 --level baseline"),
    "float16 from bfloat16, subnormals": (NUM + "num_round.h", "magnitude < 0x38800000u", "magnitude < 0x38780000u",
                                          "--op astype_float16 --dtype bfloat16 --level baseline"),
    "float32 from float16, subnormals": (NUM + "num_round.h", "(normal + normal) - 0x1p-14f", "(normal + normal) - 0x1.004p-14f",
                                         "--op astype_float32 --dtype float16 --level baseline"),
    "power, bound": (NUM + "num_power64.h", "NUM_POWER_DOUBT_64 1024u", "NUM_POWER_DOUBT_64 1u", "--op power --hard-pairs=8000000"),
    "arctan2, coefficient": (NUM + "num_arctan2.h", "-0x1.55555555553c1p-2", "-0x1.5555555p-2", "--op arctan2 --hard-pairs"),
    "hypot, rounding to odd": (NUM + "num_hypot.h", "num_from_bits64(rest == 0.0 ? bits : odd)", "h", "--op hypot --hard-pairs"),
    "logaddexp, where it cancels": (NUM + "num_logaddexp.h", "larger * -0x1p-10f", "larger * -0x1p-30f", "--op logaddexp --hard-pairs=1000000"),
}


def run(command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)


def try_mutant(tree, build, name):
    path, old, new, arguments = MUTANTS[name]
    text = (tree / path).read_text()
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
