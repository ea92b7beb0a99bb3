#!/usr/bin/env python3
"""Tests of the `onelaunch` command on CUDA devices.

    test_cli_cuda.py [PATH_OF_ONELAUNCH [FOLDER_OF_THE_FAKES]] [unittest arguments]

No GPU is needed, nor used where there is one. Of two kinds of tests the first has no driver at all; the second has the fake one,
which runs kernels on the CPU and says what a program did wrong (tests/cuda/fake_cuda.h), from the folder fake_cuda of the build.
A kernel takes some tenths of a second to compile there, so cases are few.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import test_cli
from test_cli import GOLDEN, ROOT, Case, Tensor, inputs, layer, read, run, spread

FAKES = Path(os.environ.get("ONELAUNCH_FAKE_CUDA", ROOT / "build" / "fake_cuda"))


# ---- What is said where there is no driver, on a machine with or without GPUs


def without_driver():
    """An environment in which libcuda.so.1 is an empty file, which the loader refuses; to be closed."""
    folder = tempfile.TemporaryDirectory(prefix="onelaunch-cli-")
    (Path(folder.name) / "libcuda.so.1").write_bytes(b"")
    return folder, dict(os.environ, LD_LIBRARY_PATH=folder.name)


class NoCuda(Case):
    def setUp(self):
        super().setUp()
        folder, self.environment = without_driver()
        self.addCleanup(folder.cleanup)

    def commands(self, device):
        """Every command that takes a device, with arguments that are fine otherwise."""
        cases = self.text("cases.tsv", "exp float32 00000000 float32 3f800000\n")
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l."))
        yield ["rates", "-w", weights, "-a", acts, "-o", self.folder / "out", "-d", device]
        yield ["step", "-w", ROOT / "sample" / "model", "-a", ROOT / "sample" / "steps.safetensors", "-o", self.folder / "out", "-d", device]
        yield ["check", f"--device={device}", cases]
        yield ["parity", "--graphs", "1", "--device", device]
        yield ["digest", "--op", "exp", "--strided", "--device", device]
        yield ["bench", "--tokens", "1", "--device", device]

    def test_no_driver(self):
        for device in ("cuda", "cuda:0", "cuda:99"):
            for arguments in self.commands(device):
                with self.subTest(arguments=arguments):
                    result = self.expect(run(*arguments, env=self.environment), 2)
                    start = f"^onelaunch {arguments[0]}: --device {device}: the CUDA driver cannot be opened: "
                    self.assertRegex(result.stderr, start + ".*libcuda.so.1")
                    self.assertEqual(result.stderr.count("\n"), 1)
        self.assertFalse((self.folder / "out").exists())

    def test_no_number(self):
        for device in ("cuda:", "cuda:x", "cuda:-1", "cuda: 0", "cuda:+1", "cuda:0x", "cuda:4294967296"):
            for arguments in self.commands(device):
                with self.subTest(arguments=arguments):
                    result = self.expect(run(*arguments, env=self.environment), 2)
                    self.assertIn(f'--device {device}: "{device[5:]}" is no number of a GPU; expected cuda:0', result.stderr)

    def test_devices(self):
        result = self.expect(run("devices", env=self.environment), 0, "baseline")
        self.assertRegex(result.stdout, r"(?m)^no GPU: the CUDA driver cannot be opened: .*libcuda.so.1")
        self.assertEqual(result.stderr, "")

    def test_nothing_is_opened_unasked(self):
        """A driver and a compiler that end the process when they are opened: no command may notice them, but `devices`."""
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if not compiler:
            self.skipTest("no compiler")
        symbols = subprocess.run(["nm", test_cli.COMMAND], capture_output=True, text=True).stdout
        if os.environ.get("ONELAUNCH_TEST_EMULATED") or "asan" in symbols or "tsan" in symbols:
            self.skipTest("the library would need this build's flags")
        source = self.text("trap.c", '#include <unistd.h>\n__attribute__((constructor)) static void trap(void) { _exit(77); }\n')
        library = Path(self.environment["LD_LIBRARY_PATH"]) / "libcuda.so.1"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
        self.environment["ONELAUNCH_NVRTC"] = str(library)
        same = self.put("same", layer("l."))
        for arguments in (*self.commands("cpu"), ["explain", "rates"], ["explain", "rates", "--cuda"], ["compare", same, same]):
            with self.subTest(arguments=arguments):
                self.expect(run(*arguments, env=self.environment), 0)
        self.assertEqual(run("devices", env=self.environment).returncode, 77)
        self.assertEqual(run("bench", "-d", "cuda", env=self.environment).returncode, 77)

    def test_kernel_text(self):
        text = self.expect(run("explain", "rates", "--cuda", env=self.environment), 0).stdout
        self.assertRegex(text, r'extern "C" __global__ void .*ol_gated_delta_rates\(')
        self.assertEqual(text.count("kernel_try_sigmoid_bf16(v"), 1)
        self.assertEqual(run("explain", "rates", "--cuda").stdout, text)
        graph = self.text("graph", "")
        shown = run("explain", "decay", "--dtypes", "float32,float32,float32").stdout
        graph.write_text(shown[shown.index("---- graph ----") + 16 : shown.index("\n---- program")])
        self.assertEqual(self.expect(run("explain", graph, "--cuda"), 0).stdout,
                         run("explain", "decay", "--dtypes", "float32,float32,float32", "--cuda").stdout)
        for other in ("--dot", "--optimized"):
            self.expect(run("explain", "rates", "--cuda", other), 2, "--cuda", other)


# ---- On the fake driver


class Fake(Case):
    """Each command runs with a driver that ends the process with code 99 if it was used wrongly or something was left in it.
    Compiled kernels are shared by the tests, where the library keeps them on disk."""

    @classmethod
    def setUpClass(cls):
        if not (FAKES / "libcuda.so.1").exists():
            raise unittest.SkipTest(f"no fake driver in {FAKES}")
        cls.kernels = tempfile.TemporaryDirectory(prefix="onelaunch-kernels-")
        cls.addClassCleanup(cls.kernels.cleanup)

    def gpu(self, *arguments, **environment):
        variables = {"LD_LIBRARY_PATH": str(FAKES), "ONELAUNCH_NVRTC": str(FAKES / "libfake_nvrtc.so"), "FAKE_CUDA_STRICT": "1",
                     "ONELAUNCH_CACHE": self.kernels.name}
        return run(*arguments, env={**os.environ, **variables, **environment})


class Devices(Fake):
    def test_list(self):
        result = self.expect(self.gpu("devices"), 0, "baseline", "the driver serves CUDA 13.0; NVRTC 13.0\n")
        self.assertRegex(result.stdout, r"(?m)^cuda:0   sm_90     Fake GPU 0, 1\.0 GiB, 4 multiprocessors$")
        self.assertRegex(result.stdout, r"(?m)^cuda:1   sm_90     Fake GPU 1, ")

    def test_what_is_missing(self):
        self.expect(self.gpu("devices", FAKE_CUDA_DEVICES="0"), 0, "no GPU: the CUDA driver finds none")
        self.expect(self.gpu("devices", FAKE_CUDA_FAIL="cuInit:1:999"), 0, "no GPU: cuInit: ", "(999)")
        self.expect(self.gpu("devices", ONELAUNCH_NVRTC="/nowhere"), 0, "Fake GPU 0",
                    "serves CUDA 13.0; no NVRTC: ONELAUNCH_NVRTC is \"/nowhere\", which")
        result = self.expect(self.gpu("devices", FAKE_CUDA_FAIL="cuDeviceTotalMem:2:999"), 1, "Fake GPU 0")
        self.assertRegex(result.stdout, r"(?m)^cuda:1 .*\(999\)")

    def test_unknown_number(self):
        for device in ("cuda:2", "cuda:99"):
            self.expect(self.gpu("bench", "-d", device), 2, f"--device {device}: there is no {device}; the driver finds 2 GPUs")
        self.expect(self.gpu("bench", "-d", "cuda", FAKE_CUDA_DEVICES="0"), 2, "there is no cuda:0; the driver finds 0 GPUs")


class Rates(Fake):
    def rates(self, weights, acts, *options, **environment):
        return self.gpu("rates", "-w", weights, "-a", acts, "-o", self.folder / "gpu", *options, **environment)

    def test_same_file_as_on_the_cpu(self):
        weights, acts = ROOT / "sample" / "model", ROOT / "sample" / "activations.safetensors"
        on_cpu = self.expect(run("rates", "-w", weights, "-a", acts, "-o", self.folder / "cpu"), 0)
        for options, parts in (
            (["-d", "cuda"], ["cuda:0 (sm_90), replay", "3 layers, 3 launches; replay equals the composed path"]),
            (["-d", "cuda:1", "--composed", "--no-verify"], ["cuda:1 (sm_90), composed path"]),
        ):
            result = self.expect(self.rates(weights, acts, *options), 0, *parts)
            self.assertEqual((self.folder / "gpu").read_bytes(), (self.folder / "cpu").read_bytes())
            reasons = result.stdout.index("Against the beta and decay")
            self.assertEqual(result.stdout[reasons:].split("\n\n3 layers")[0],
                             on_cpu.stdout[on_cpu.stdout.index("Against the beta and decay"):].split("\n\n3 layers")[0])

    def test_channels_strays_and_the_widened_addition(self):
        """Kimi's shapes, data off its alignment in the file, no tokens, and the decay computed once more for a stored one."""
        a = Tensor("BF16", [5, 4], [7.0 + i / 32 for i in range(20)])
        acts = {**inputs("layers.0.", (5, 4)), "layers.0.a": a}
        wide = self.put("wide", layer("layers.0.", dtypes=("F32", "F32"))), self.put("a", acts)
        self.expect(run("rates", "-w", wide[0], "-a", wide[1], "-o", self.folder / "cpu"), 0)
        decay = read(self.folder / "cpu")["layers.0.decay"]
        weights = {**layer("layers.0."), **layer("layers.2.")}
        weights["layers.1.A_log"], weights["layers.1.dt_bias"] = spread("F32", [3], -2, 2), spread("F32", [15], -4, 4)
        acts = {**acts, "layers.0.decay": decay, **inputs("layers.2.", (0, 4))}
        acts["layers.1.a"], acts["layers.1.b"] = spread("BF16", [7, 15], -8, 8), spread("BF16", [7, 3], -2, 2)
        paths = self.put("w", weights, pad=3), self.put("a", acts, pad=5)
        on_cpu = self.expect(run("rates", "-w", paths[0], "-a", paths[1], "-o", self.folder / "cpu"), 0)
        result = self.expect(self.rates(*paths, "-d", "cuda"), 0, "a and dt_bias have the same 16-bit dtype", "2 launches;")
        self.assertEqual((self.folder / "gpu").read_bytes(), (self.folder / "cpu").read_bytes())
        widened = r"within 0 ulp of the stored one,\n +and 0 of 20"
        self.assertRegex(on_cpu.stdout, widened)
        self.assertRegex(result.stdout, widened)

    def test_failures(self):
        """Nothing is written, and what the driver or the compiler says is passed on."""
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l."))
        for environment, parts in (
            ({"ONELAUNCH_NVRTC": "/nowhere", "ONELAUNCH_CACHE": "off"}, ["ONELAUNCH_NVRTC is \"/nowhere\", which cannot"]),
            ({"FAKE_CUDA_MEMORY": "64"}, ["CUDA_ERROR_OUT_OF_MEMORY"]),
            ({"FAKE_CUDA_FAIL": "cuLaunchKernel:1:1"}, ["cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1)"]),
            ({"FAKE_CUDA_FAIL": "cuStreamSynchronize:5:700"}, ["asynchronous", "CUDA_ERROR_ILLEGAL_ADDRESS (700)"]),
        ):
            with self.subTest(environment=environment):
                result = self.expect(self.rates(weights, acts, "-d", "cuda", **environment), 1, *parts)
                self.assertRegex(result.stderr, r"(?m)^onelaunch rates: .*w: tensor l\.A_log: ")
                self.assertEqual(result.stdout, "")                   # no heading over nothing
                self.assertFalse((self.folder / "gpu").exists())


class Others(Fake):
    def test_check(self):
        wanted = ("exp float32 ", "add bfloat16 ", "power float16 ")
        golden = [line for name in ("unary", "binary") for line in (GOLDEN / f"{name}.tsv").read_text().splitlines()]
        rows = [row for start in wanted for row in [r for r in golden if r.startswith(start)][:100]]
        self.assertEqual(len(rows), 300)
        rows += ["less float32 7fc00000 00000000 00", "astype float32 7fc00000 int16 0000", "where float16 1 3c00 4000 3c00"]
        cases = self.text("cases.tsv", "\n".join(rows) + "\nexp float32 00000000 float32 3f800001\n")
        result = self.expect(self.gpu("check", "-d", "cuda", cases), 1, f"{len(rows)} passed, 1 failed")
        self.assertEqual(result.stdout.count("exp float32 00000000: "), 2)           # of replay and composed path
        self.expect(self.gpu("check", "-d", "cuda", "--path", "replay", self.text("one.tsv", rows[0])), 0, "1 passed, 0 failed")

    def test_check_gives_up(self):
        """A device that fails for every batch says so twice, not for all of them."""
        rows = "".join(f"{op} float32 00000000 float32 00000000\n" for op in ("sin", "tan", "sqrt", "negative"))
        cases = self.text("cases.tsv", rows)
        result = self.expect(self.gpu("check", "-d", "cuda", cases, ONELAUNCH_NVRTC="/nowhere", ONELAUNCH_CACHE="off"), 1,
                             "cuda:0 fails alike again and again; the 2 cases that are left count as failed", "0 passed, 4 failed")
        self.assertEqual(result.stdout.count("/nowhere\", which"), 2)

    def test_parity(self):
        result = self.expect(self.gpu("parity", "-d", "cuda", "--graphs", "4"), 0, "cuda:0:sm_90: replay and composed path", "cpu:",
                             "all bits equal")
        self.assertRegex(result.stdout, r"\n4 graphs of .*: 16 replays and 4 composed runs")
        self.expect(self.gpu("parity", "-d", "cuda:1", "--level", "baseline", "--case", "12", "-g1", FAKE_CUDA_BACKWARDS="1"), 0,
                    "cuda:1:sm_90", "cpu:baseline, 1 thread: replay")
        self.expect(self.gpu("parity", "-d", "cuda", "--level", "abacus", "-g", "1"), 2, "abacus")

    def test_parity_without_compiler(self):
        result = self.gpu("parity", "-d", "cuda", "-g", "1", ONELAUNCH_NVRTC="/nowhere", ONELAUNCH_CACHE="off")
        self.expect(result, 2, "ONELAUNCH_NVRTC is \"/nowhere\", which cannot")
        self.assertEqual(result.stdout, "")

    def test_parity_reports(self):
        """A compiler that keeps constants too short: both paths of the GPU agree, and the report says that the CPU's do not."""
        flags = os.environ.get("FAKE_NVRTC_FLAGS", "") + " -fsingle-precision-constant"
        result = self.gpu("parity", "-d", "cuda", "--case", "6", "--graphs", "40", FAKE_NVRTC_FLAGS=flags, ONELAUNCH_CACHE="off")
        if "single-precision" in result.stderr:
            self.skipTest("the compiler has no such option")
        self.expect(result, 1, "a difference", "composed path on cuda:0:sm_90\n", "Against the composed path on cuda:0:sm_90:\n"
                    "  equal    replay on cuda:0:sm_90\n  equal    replay on cuda:0:sm_90\n  DIFFERS  replay on cpu:")
        self.assertRegex(result.stdout, r"\nReproduce: onelaunch parity --device cuda --seed 1 --case \d+ --graphs 1\n")

    def test_digest(self):
        """Inputs made on the device, of each kind, and float32 pairs, which the host makes."""
        result = self.expect(self.gpu("digest", "-d", "cuda", "--op", "negative,add,astype_float32,astype_float16", "--strided"), 0,
                             "cuda:0:sm_90: 10 digests equal, 0 not")
        self.assertEqual(result.stdout.count("equal"), 11)
        result = self.gpu("digest", "-d", "cuda", "-o", "exp", "-y", "float16", ONELAUNCH_NVRTC="/nowhere", ONELAUNCH_CACHE="off")
        self.expect(result, 1, "onelaunch digest: exp float16: ", "/nowhere")

    def test_bench(self):
        result = self.gpu("bench", "-d", "cuda", "--tokens", "1,3", "--heads", "4")
        self.expect(result, 0, "cuda:0 sm_90, 4 heads, bfloat16")
        self.assertNotIn("thread", result.stdout)
        self.assertEqual([len(line.split()) for line in result.stdout.splitlines()[-2:]], [8, 8])


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.access(sys.argv[1], os.X_OK) and os.path.isfile(sys.argv[1]):
        test_cli.COMMAND = os.path.abspath(sys.argv.pop(1))
        if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
            FAKES = Path(os.path.abspath(sys.argv.pop(1)))
    unittest.main()
