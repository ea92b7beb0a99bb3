#!/usr/bin/env python3
"""What the real NVRTC makes of kernels' texts: that each compiles, to machine code too, and that the compiler adds nothing of its
own to the arithmetic.

    test_kernel_text_nvrtc.py [--every] [--list] [--texts PROGRAM]... [--onelaunch PROGRAM] [FILE...]

FILE is a text, or with --onelaunch also a graph, whose text `onelaunch explain --cuda` gives; --texts runs kernel_texts.c's
program, with the graphs among the files, for the texts of all primitives and conversions beside, or step_texts.c's. Each text is compiled for one
architecture of three in turn, or with --every for all of them: three times as long as a minute on two processors. --list shows
all floating-point instructions.

No GPU is needed. Exit code 77 where there is no NVRTC; it is looked for as src/cuda/nvrtc.c does, whose names, folders and
options are read from there.

Of the PTX, no floating-point instruction may be other than those that round as the text says (ALLOWED): none is fused, approximate
or flushes subnormals, and none is left without a rounding, which the assembler would be free to fuse. What the text writes as
assembly, and its __fma_rn, which are made assembly here, stand between marks in the PTX and are passed over. Texts that keep much in
registers (step_*.cu) may not keep more than a little elsewhere."""

import argparse
import collections
import ctypes
import glob
import math
import multiprocessing
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ARCHITECTURES = ("sm_80", "sm_90", "sm_120")
SOURCE = Path(__file__).resolve().parents[2] / "src" / "cuda" / "nvrtc.c"
SKIPPED = 77
# Of step_texts.c's, each of which takes seconds; --every: all.
STEPS = ("qwen_9b", "qwen_9b_key_value_bf16_state", "kimi_linear", "olmo_hybrid", "largest", "odd", "given", "mamba", "step_mixer_qwen_9b", "step_mixer_kimi",
         "step_mixer_olmo", "step_mixer_odd", "mixer_alone_qwen")
# Bytes of a thread's registers that are kept elsewhere, at most: of a step's kernel, and of a mixer's, which holds a state while it convolves the next tokens.
SPILLED = {"step_mixer_": 192, "step_": 64}

# Instructions of floating-point types, without their types: exact ones, and those rounded once, to nearest.
ALLOWED = re.compile(
    r"(mov|ld|st|selp|setp|set|abs|neg|copysign|testp)(\.\w+)*"      # moves, comparisons, signs
    r"|(min|max)"                                                    # as the compiler knows from a comparison and a choice
    r"|(add|sub|mul|div|sqrt|rcp)\.rn"
    r"|cvt(\.r[nzmp]i?)?(\.[su]\d+)?"                               # conversions: float types are taken off first
)
FORBIDDEN = re.compile(r"ftz|approx|full|sat")
FLOAT_TYPE = re.compile(r"\.(b?f16|tf32|f16x2|bf16x2|f32|f64)\b")
INSTRUCTION = re.compile(r"^\s*(?:@!?%p\d+\s+)?([a-z][a-z0-9_]*(?:\.[\w:]+)*)\s", re.M)
ASSEMBLY = re.compile(r"// begin inline asm.*?// end inline asm", re.S)

# The text's own fused steps, each as one instruction that the compiler cannot look into.
FUSED = """
static __device__ __forceinline__ double written_fma(double x, double y, double z) {
    double r;
    asm("fma.rn.f64 %0, %1, %2, %3;" : "=d"(r) : "d"(x), "d"(y), "d"(z));
    return r;
}
static __device__ __forceinline__ float written_fmaf(float x, float y, float z) {
    float r;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(z));
    return r;
}
#define __fma_rn written_fma
#define __fmaf_rn written_fmaf
"""


def strings(name):
    """Those of an array of src/cuda/nvrtc.c."""
    text = SOURCE.read_text()
    body = re.search(r"\b" + re.escape(name) + r"\[[^\]]*\] = \{(.*?)\};", text, re.S)
    return re.findall(r'"([^"]*)"', body[1])


def open_nvrtc():
    asked = os.environ.get("ONELAUNCH_NVRTC")
    for name in [asked] if asked else strings("names"):
        paths = [name]
        for folder in [] if asked else strings("folders"):
            variable = re.match(r"\$(\w+)", folder)
            value = os.environ.get(variable[1], "") if variable else ""
            if value or not variable:
                place = folder.replace("$" + variable[1], value) if variable else folder
                paths += sorted(glob.glob(f"{place}/{name}"), reverse=True)
        for path in paths:
            try:
                return ctypes.CDLL(path)
            except OSError:
                pass
    return None


class Compiler:
    def __init__(self):
        self.library = open_nvrtc()
        self.options = [option.encode() for option in strings("list") if option.startswith("--")]

    def version(self):
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def architectures(self):
        n = ctypes.c_int()
        self.library.nvrtcGetNumSupportedArchs(ctypes.byref(n))
        found = (ctypes.c_int * n.value)()
        self.library.nvrtcGetSupportedArchs(found)
        return set(found)

    def get(self, program, what):
        n = ctypes.c_size_t()
        if getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(n)):
            return b""
        data = ctypes.create_string_buffer(n.value)
        return data.raw[: n.value] if getattr(self.library, f"nvrtcGet{what}")(program, data) == 0 else b""

    def compile(self, text, name, architecture):
        """The code of the result, the log, the PTX and the machine code."""
        program = ctypes.c_void_p()
        options = [f"--gpu-architecture={architecture}".encode(), *self.options]
        self.library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), name.encode(), 0, None, None)
        code = self.library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        log = self.get(program, "ProgramLog").decode(errors="replace").rstrip("\0\n")
        ptx = self.get(program, "PTX").decode(errors="replace")
        image = self.get(program, "CUBIN")
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return code, log, ptx, image


def float_instructions(ptx):
    """Those outside of assembly, counted."""
    found = collections.Counter()
    for instruction in INSTRUCTION.findall(ASSEMBLY.sub("", ptx)):
        if FLOAT_TYPE.search(instruction) and not instruction.startswith("."):
            found[instruction] += 1
    return found


def is_allowed(instruction):
    return ALLOWED.fullmatch(FLOAT_TYPE.sub("", instruction)) and not FORBIDDEN.search(instruction)


def frame_bytes(image):
    """The most that a function of machine code keeps in memory of its thread: what does not fit its registers. Of the ELF file's section
    .nv.info, entries of attribute 0x11: symbol and size."""
    table, n, names = struct.unpack_from("<Q", image, 40)[0], *struct.unpack_from("<HH", image, 60)
    sections = [struct.unpack_from("<II16xQQ", image, table + 64 * i) for i in range(n)]
    most, found = 0, False
    for name, kind, offset, size in sections:
        start = sections[names][2] + name
        if image[start : image.index(b"\0", start)] != b".nv.info":
            continue
        at, found = offset, True
        while at < offset + size:
            form, attribute, length = struct.unpack_from("<BBH", image, at)
            if (form, attribute) == (4, 0x11):
                most = max(most, struct.unpack_from("<I", image, at + 8)[0])
            at += 4 + (length if form == 4 else 0)
    return most if found else None


def check(job):
    """Problems of one text on one architecture, and its floating-point instructions."""
    path, architecture = job
    text = Path(path).read_text()
    code, log, ptx, image = compiler.compile(FUSED + text, Path(path).name, architecture)
    where = f"{Path(path).name} for {architecture}"
    if "arameter space" in log and compiler.version() < (12, 1):
        return [], {}                                             # a text for later compilers
    if code:
        return [f"{where}: does not compile ({code}): {log[:2000]}"], {}
    found = float_instructions(ptx)
    problems = [f"{where}: {n} times {instruction}" for instruction, n in found.items() if not is_allowed(instruction)]
    if not image:
        problems.append(f"{where}: no machine code")
    elif (frame_bytes(image) or 0) > next((most for name, most in SPILLED.items() if Path(path).name.startswith(name)), math.inf):
        problems.append(f"{where}: {frame_bytes(image)} bytes of a thread's registers are in memory")
    if ".entry" not in ptx:
        problems.append(f"{where}: no kernel in the PTX")
    return problems, found


def start():
    global compiler
    compiler = Compiler()


def self_check():
    """That what this test looks for is found: the same options without one of them make instructions that are not allowed."""
    text = (
        'extern "C" __global__ void k(float *p, double *q) {'
        "    p[0] = p[1] * p[2] + p[3]; q[0] = q[1] * q[2] + q[3]; p[4] = p[5] / p[6]; p[7] = sqrtf(p[8]);"
        "    q[4] = __fma_rn(q[5], q[6], q[7]); }"
    )
    problems = []
    for changed in ("", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"):
        start()
        options = compiler.options
        if changed:
            if changed.encode() not in options:
                problems.append(f"src/cuda/nvrtc.c does not give {changed}")
                continue
            opposite = changed.replace("false", "t").replace("true", "f").replace("=t", "=true").replace("=f", "=false")
            compiler.options = [opposite.encode() if option == changed.encode() else option for option in options]
        code, log, ptx, _ = compiler.compile(FUSED + text, "self_check.cu", ARCHITECTURES[0])
        wrong = [instruction for instruction in float_instructions(ptx) if not is_allowed(instruction)]
        if code or bool(wrong) != bool(changed):
            problems.append(f"the check itself: {changed or 'all options'}: {wrong} {log}")
    return problems


def make_texts(arguments, folder):
    """The paths of all texts."""
    texts = [path for path in arguments.files if path.endswith(".cu")]
    graphs = [path for path in arguments.files if not path.endswith(".cu")]
    if arguments.texts:
        for program in arguments.texts:
            chosen = graphs if "step_texts" not in program else [] if arguments.every else STEPS
            subprocess.run([program, folder, *chosen], check=True, stdout=subprocess.DEVNULL)
    elif arguments.onelaunch:
        for graph in graphs:
            command = [arguments.onelaunch, "explain", "--cuda", graph]
            made = subprocess.run(command, capture_output=True, check=False)
            if made.returncode == 0:
                (Path(folder) / (Path(graph).name + ".cu")).write_bytes(made.stdout)
    elif graphs:
        sys.exit(f"{graphs[0]} is no text (.cu): graphs need --texts or --onelaunch")
    return texts + sorted(str(path) for path in Path(folder).glob("*.cu"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--every", action="store_true", help="every text for every architecture")
    parser.add_argument("--list", action="store_true", help="list the floating-point instructions found")
    parser.add_argument("--texts", metavar="PROGRAM", action="append", help="the program of kernel_texts.c, or of step_texts.c")
    parser.add_argument("--onelaunch", metavar="PROGRAM", help="the onelaunch command")
    parser.add_argument("files", metavar="FILE", nargs="*")
    arguments = parser.parse_args()
    start()
    if not hasattr(compiler.library, "nvrtcGetPTX"):             # which the fake one has not
        print("skipped: no NVRTC on this machine")
        return SKIPPED
    known = compiler.architectures()
    architectures = [name for name in ARCHITECTURES if int(name[3:]) in known]
    problems, found = self_check(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        texts = make_texts(arguments, folder)
        n = len(architectures)
        jobs = [(path, architectures[k]) for i, path in enumerate(texts) for k in range(n) if arguments.every or (i + k) % n == 0]
        with multiprocessing.Pool(initializer=start) as pool:
            for of_one, instructions in pool.imap_unordered(check, jobs, 4):
                problems += of_one
                found.update(instructions)
    if arguments.list:
        for instruction, n in sorted(found.items()):
            print(f"{n:8} {instruction}")
    for problem in problems:
        print(problem)
    major, minor = compiler.version()
    done = f"{len(texts)} texts, {len(jobs)} compilations for {', '.join(architectures)}"
    print(f"NVRTC {major}.{minor}: {done}: {len(problems)} problems")
    return 1 if problems or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
