#!/usr/bin/env python3
"""Tests of the `onelaunch` command: exit codes, messages, files.

    test_cli.py [PATH_OF_ONELAUNCH] [unittest arguments]

Needs nothing but Python's own library. Safetensors files are written here byte by byte, so that both sides of the format are
tested against something else than themselves. Expected bits come from tests/golden.
"""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
COMMAND = os.environ.get("ONELAUNCH", str(ROOT / "build" / "onelaunch"))

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I32": 4, "U8": 1, "F8_E4M3": 1}
NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


# ---- Values and files


def bf16(value):
    """Bytes of a bfloat16; the values used here are exact in it."""
    return struct.pack("<f", value)[2:]


def pack(dtype, values):
    if dtype == "BF16":
        return b"".join(bf16(v) for v in values)
    return struct.pack(f"<{len(values)}" + {"F32": "f", "F16": "e", "F64": "d", "I32": "i", "U8": "B", "F8_E4M3": "B"}[dtype], *values)


def count(shape):
    n = 1
    for extent in shape:
        n *= extent
    return n


class Tensor:
    def __init__(self, dtype, shape, values=None, data=None):
        self.dtype, self.shape = dtype, list(shape)
        self.data = pack(dtype, values) if data is None else data
        assert len(self.data) == count(shape) * SIZES.get(dtype, 1)


def spread(dtype, shape, low, high):
    """Values from low to high, in steps that are exact in every dtype used here."""
    n = count(shape)
    return Tensor(dtype, shape, [low + (high - low) * (i * 37 % 64) / 64 for i in range(n)])


def image(tensors, pad=0, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, tensor in tensors.items():
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [len(data), len(data) + len(tensor.data)]}
        data += tensor.data
    text = json.dumps(header).encode() + b" " * pad
    return struct.pack("<Q", len(text)) + text + data


def read(path):
    raw = Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    header.pop("__metadata__", None)
    data = raw[8 + length :]
    return {
        name: Tensor(entry["dtype"], entry["shape"], data=data[slice(*entry["data_offsets"])]) for name, entry in header.items()
    }


def run(*arguments, **options):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="onelaunch-cli-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def put(self, name, tensors, **options):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image(tensors, **options))
        return path

    def text(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def expect(self, result, code, *parts):
        everything = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, everything)
        for part in parts:
            self.assertIn(part, everything)
        for sign in ("Sanitizer", "runtime error"):
            self.assertNotIn(sign, everything)
        return result


# ---- The program itself


class Program(Case):
    def test_help_and_version(self):
        commands = ["rates", "step", "check", "digest", "parity", "explain", "compare", "devices", "cache", "bench"]
        self.expect(run("--help"), 0, *commands)
        self.assertRegex(run("--version").stdout, r"^onelaunch \d+\.\d+\.\d+\n$")
        for command in commands:
            self.expect(run(command, "--help"), 0, f"onelaunch {command}", "--help")

    def test_wrong_usage(self):
        for arguments in (
            [], ["nonsense"], ["--nonsense"], ["rates"], ["rates", "--layer", "x"], ["rates", "--threads=0"], ["rates", "stray"],
            ["check"], ["check", "--path", "sideways", "f"], ["compare"], ["compare", "a"], ["compare", "a", "b", "c"],
            ["compare", "--max-ulp=-1", "a", "b"], ["compare", "--max-ulp= 1", "a", "b"], ["compare", "--max-ulp=+1", "a", "b"],
            ["rates", "--threads= 1"], ["rates", "--threads=+1"], ["rates", "--layer=\t1"], ["parity", "--seed", "+1"], ["devices", "stray"],
            ["cache", "stray"], ["cache", "clear", "stray"], ["cache", "list", "list"],
        ):
            with self.subTest(arguments=arguments):
                result = self.expect(run(*arguments), 2)
                self.assertIn(Path(COMMAND).name, result.stderr.splitlines()[0].replace("onelaunch ", Path(COMMAND).name))

    def test_devices(self):
        result = self.expect(run("devices"), 0, "baseline", "threads")
        self.assertEqual(len(re.findall(r"yes +yes", result.stdout)), 1)

    def test_environment(self):
        environment = dict(os.environ, ONELAUNCH_CPU="baseline")
        self.assertRegex(self.expect(run("devices", env=environment), 0).stdout, r"baseline +yes +yes")
        environment["ONELAUNCH_CPU"] = "abacus"
        self.expect(run("devices", env=environment), 1, "abacus")

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        case = self.text("cases.tsv", "exp\tfloat32\t00000000\tfloat32\t3f800000\n")
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l."))
        many = "exp,sqrt,sin,cos,tan,log"                        # as long as a terminal's bar is shown, and more than a buffer
        for arguments in (["--help"], ["--version"], ["rates", "--help"], ["devices"], ["bench", "--tokens", "1,2", "--heads", "1"],
                          ["digest", "--op", many, "--dtype", "float16"], ["check", case], ["parity", "-g", "1", "-l", "baseline"], ["explain", "rates"],
                          ["compare", weights, weights], ["cache"], ["rates", "-w", weights, "-a", acts, "-o", self.folder / "out"]):
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                result = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual((result.returncode, result.stderr.count("standard output: No space left on device")), (2, 1), result.stderr)
            with self.subTest(arguments=arguments, closed=True):
                result = subprocess.run([COMMAND, *arguments], stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(1))
                self.assertEqual((result.returncode, result.stderr.count("standard output: Bad file descriptor")), (2, 1), result.stderr)

    def test_control_characters_in_arguments(self):
        for arguments in (["\x1b[31mred"], ["rates", "\x1b[31mred"], ["check", "--path", "\x9b31m", "f"], ["parity", "--seed", "\x1b"]):
            with self.subTest(arguments=arguments):
                result = self.expect(run(*arguments), 2, "\\x")
                self.assertNotRegex(result.stderr, "[\x1b\x80-\x9f]")

    def test_parity_levels(self):
        self.expect(run("parity", "-d", "cpu:baseline", "-l", "avx2", "-g", "1"), 2, "different SIMD levels")
        self.expect(run("parity", "-d", "cpu:baseline", "-l", "baseline", "-g", "1"), 0)
        self.expect(run("parity", "-g", "1", env=dict(os.environ, ONELAUNCH_CPU="abacus")), 2, "abacus")
        self.expect(run("parity", "-g", "1", env=dict(os.environ, ONELAUNCH_CPU="baseline")), 0)
        missing = re.search(r"^cpu +(\w+) +no", run("devices").stdout, re.M)
        if missing:
            self.expect(run("parity", "-g", "1", env=dict(os.environ, ONELAUNCH_CPU=missing[1])), 2, missing[1])


# ---- cache


class Cache(Case):
    # An entry whose kernel's name would turn a terminal red. Also pins the format: a change needs another version in it.
    NAME = "79257187b83de5ab8979d8f868f21d07.kernel"
    ENTRY = (
        b"olkernel" + struct.pack("<QQQ", 1, 62, 5) + b"onelaunch 1.2.3\nnvrtc 13.0\narchitecture sm_90\nkernel \x1b[31mred\nimage"
        + bytes.fromhex("a12f310c9ab3aaa26700fb8d2e8a5ece")
    )

    def cache(self, *arguments, folder=None):
        return run("cache", *arguments, env=dict(os.environ, ONELAUNCH_CACHE=str(folder or self.folder)))

    def test_list_and_clear(self):
        self.expect(self.cache(), 0, f"{self.folder}\n0 entries, 0B\n")
        sound = self.folder / self.NAME
        sound.write_bytes(self.ENTRY)
        sound.chmod(0o600)
        (self.folder / ("0" * 32 + ".kernel")).write_bytes(self.ENTRY)
        (self.folder / ("0" * 32 + "." + "0" * 16 + ".temp")).write_bytes(b"half")
        (self.folder / "README").write_text("not the cache's")
        for arguments in ([], ["list"]):
            result = self.expect(self.cache(*arguments), 0, "2 entries, 230B; 1 damaged")
            self.assertRegex(result.stdout, r"(?m)^sound +sm_90 +115B +\d+ s  " + re.escape(self.NAME) + r" \?\[31mred$")
            self.assertRegex(result.stdout, r"(?m)^damaged +115B +\d+ s  0{32}\.kernel")
            self.assertNotIn("\x1b", result.stdout)
        self.assertTrue(sound.exists())
        self.expect(self.cache("clear"), 0, "3 files removed, 234B")
        self.assertEqual([p.name for p in self.folder.iterdir()], ["README"])
        self.expect(self.cache("clear"), 0, "0 files removed, 0B")

    def test_no_folder(self):
        missing = self.folder / "missing"
        for arguments in ([], ["clear"]):
            self.expect(self.cache(*arguments, folder=missing), 0)
        self.assertFalse(missing.exists())
        self.expect(self.cache(folder="off"), 0, "the cache is off")
        self.expect(self.cache("clear", folder="off"), 0, "0 files removed")

    def test_unusable_folder(self):
        self.folder.chmod(0o777)
        self.expect(self.cache(), 2, "writable by no one else")
        self.expect(self.cache("clear"), 1, "writable by no one else")
        result = self.expect(self.cache(folder=self.text("\x1bfile", "")), 2, "cannot be read: Not a directory")
        self.assertNotIn("\x1b", result.stdout + result.stderr)


# ---- rates


def layer(prefix, heads=4, dtypes=("F32", "BF16")):
    return {
        f"{prefix}A_log": spread(dtypes[0], [heads], -2, 2),
        f"{prefix}dt_bias": spread(dtypes[1], [heads], -4, 4),
        f"{prefix}in_proj.weight": Tensor("BF16", [2, 2], [0, 1, 2, 3]),
    }


def inputs(prefix, shape=(1, 5, 4), dtype="BF16"):
    return {f"{prefix}a": spread(dtype, shape, -8, 8), f"{prefix}b": spread(dtype, shape, -4, 4)}


class RatesCase(Case):
    def rates(self, weights, activations, *options, out=None):
        self.out = out or self.folder / "out.safetensors"
        return run("rates", "--weights", weights, "--activations", activations, "--out", self.out, *options)

    def only(self, *names):
        """The folder holds these files and nothing else: no half-written output, no temporary file."""
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), sorted(names))

    def refused(self, weights, activations, *parts, code=2):
        """Fails, naming these parts on stderr, and leaves an older output alone."""
        out = self.folder / "out.safetensors"
        out.write_text("before")
        before = sorted(self.folder.iterdir())
        result = self.rates(weights, activations)
        self.expect(result, code)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertTrue(result.stderr.startswith("onelaunch rates: "), result.stderr)
        self.assertEqual(out.read_text(), "before")
        self.assertEqual(sorted(self.folder.iterdir()), before)


class Rates(RatesCase):
    def test_two_layers(self):
        weights = self.put("w", {**layer("model.layers.0.mix."), **layer("model.layers.10.mix."), "other": Tensor("F8_E4M3", [3], [1, 2, 3])})
        acts = self.put("a", {**inputs("model.layers.0.mix."), **inputs("model.layers.10.mix.")})
        result = self.expect(self.rates(weights, acts), 0, "2 layers, 2 launches", "bit for bit")
        rows = re.findall(r"^ +(\d+) +4 +5 bf16 bf16 f32 bf16 .* 1 +\S+ +yes$", result.stdout, re.M)
        self.assertEqual(rows, ["0", "10"])
        self.assertLessEqual(max(map(len, result.stdout.splitlines()[:6])), 100)
        tensors = read(self.out)
        self.assertEqual(
            {name: (t.dtype, t.shape) for name, t in tensors.items()},
            {f"model.layers.{n}.mix.{what}": (dtype, [1, 5, 4]) for n in (0, 10) for what, dtype in (("beta", "BF16"), ("decay", "F32"))},
        )
        self.only("w", "a", "out.safetensors")

    def test_golden_bits(self):
        """Each golden case is a head of its own in a layer of one token; one layer for each mix of dtypes there."""
        mixes = {}
        for line in (GOLDEN / "rates.tsv").read_text().splitlines():
            if line and not line.startswith("#"):
                field = line.split()
                mixes.setdefault(tuple(field[:4]) + (field[8], field[10]), []).append([field[i] for i in (4, 5, 6, 7, 9, 11)])
        self.assertGreaterEqual(len(mixes), 8)
        weights, acts, expected = {}, {}, {}
        for number, (dtypes, cases) in enumerate(mixes.items()):
            prefix, heads = f"layers.{number}.", len(cases)
            columns = [
                Tensor(NAMES[dtype], [heads], data=b"".join(bytes.fromhex(case[i])[::-1] for case in cases))
                for i, dtype in enumerate(dtypes)
            ]
            acts[prefix + "b"], acts[prefix + "a"], weights[prefix + "A_log"], weights[prefix + "dt_bias"] = columns[:4]
            expected[prefix + "beta"], expected[prefix + "decay"] = columns[4:]
        paths = self.put("w", weights, pad=3), self.put("a", acts, pad=5)          # misaligned data
        for options in ([], ["--composed"], ["--device", "cpu:baseline", "--threads", "1"]):
            with self.subTest(options=options):
                self.expect(self.rates(*paths, *options), 0)
                results = read(self.out)
                self.assertEqual(set(results), set(expected))
                for name, tensor in expected.items():
                    self.assertEqual(results[name].data, tensor.data, name)

    def test_every_dtype_mix(self):
        """On values that every dtype holds, only the dtypes of a + dt_bias and of beta may change a bit."""
        floats = ("F32", "F16", "BF16")
        mixes = [(b, a, a_log, dt_bias) for b in floats for a in floats for a_log in floats for dt_bias in floats]
        weights, acts = {}, {}
        for number, (b, a, a_log, dt_bias) in enumerate(mixes):
            prefix = f"layers.{number}."
            weights.update(layer(prefix, dtypes=(a_log, dt_bias)))
            acts[prefix + "a"], acts[prefix + "b"] = spread(a, [5, 4], -8, 8), spread(b, [5, 4], -4, 4)
        self.expect(self.rates(self.put("w", weights), self.put("a", acts)), 0, "81 layers, 81 launches")
        results, seen = read(self.out), {}
        for number, (b, a, a_log, dt_bias) in enumerate(mixes):
            beta, decay = results[f"layers.{number}.beta"], results[f"layers.{number}.decay"]
            self.assertEqual((beta.dtype, decay.dtype), (b, "F32"))
            self.assertEqual(seen.setdefault(("beta", b), beta.data), beta.data)
            self.assertEqual(seen.setdefault(("decay", a if a == dt_bias else "F32"), decay.data), decay.data)

    def test_per_channel_equals_per_head(self):
        """Kimi's shapes give the bits of the same numbers as separate heads, however heads and channels are laid out."""
        heads, channels, tokens = 3, 5, 7
        a_log, dt_bias = spread("F32", [heads], -2, 2), spread("F32", [heads * channels], -4, 4)
        a, b = spread("BF16", [tokens, heads * channels], -8, 8), spread("BF16", [tokens, heads], -2, 2)
        each = b"".join(a_log.data[4 * h : 4 * h + 4] * channels for h in range(heads))
        flat = self.put("flat", {"A_log": Tensor("F32", [heads * channels], data=each), "dt_bias": dt_bias})
        acts = self.put("acts", {"a": a, "b": Tensor("BF16", [tokens, heads * channels], data=a.data)})
        self.expect(self.rates(flat, acts), 0)
        expected = read(self.out)["decay"].data
        for a_log_shape in ([heads], [1, 1, heads, 1]):
            for bias_shape in ([heads * channels], [heads, channels], [1, heads, channels]):
                for a_shape in ([tokens, heads * channels], [1, tokens, heads, channels]):
                    with self.subTest(a_log=a_log_shape, dt_bias=bias_shape, a=a_shape):
                        weights = self.put("kimi", {"A_log": Tensor("F32", a_log_shape, data=a_log.data),
                                                    "dt_bias": Tensor("F32", bias_shape, data=dt_bias.data)})
                        acts = self.put("acts", {"a": Tensor("BF16", a_shape, data=a.data), "b": b})
                        self.expect(self.rates(weights, acts), 0, "3x5", "1 layer, 1 launch;")
                        results = read(self.out)
                        self.assertEqual(results["decay"].data, expected)
                        self.assertEqual(results["decay"].shape, a_shape)
                        self.assertEqual(results["beta"].shape, [tokens, heads])

    def test_composed_writes_the_same_file(self):
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l."))
        self.expect(self.rates(weights, acts), 0)
        replayed = self.out.read_bytes()
        result = self.expect(self.rates(weights, acts, "--composed", "--no-verify"), 0, "composed path", "not compared")
        self.assertEqual(self.out.read_bytes(), replayed)
        self.assertGreater(int(re.search(r"1 layer, (\d+) launches", result.stdout)[1]), 1)

    def test_no_tokens(self):
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l.", (0, 4)))
        self.expect(self.rates(weights, acts), 0)
        self.assertEqual(read(self.out)["l.decay"].shape, [0, 4])

    def test_selection(self):
        weights = self.put("w", {**layer("model.layers.1.mix."), **layer("model.layers.2.mix."), **layer("mtp.layers.2.mix.")})
        acts = self.put("a", {**inputs("model.layers.1.mix."), **inputs("model.layers.2.mix."), **inputs("mtp.layers.2.mix.")})
        for options, names in (
            (["--layer", "1"], ["model.layers.1.mix"]),
            (["--layer", "2"], ["model.layers.2.mix", "mtp.layers.2.mix"]),
            (["--match", "model.*"], ["model.layers.1.mix", "model.layers.2.mix"]),
            (["--match", "*.layers.2.mix"], ["model.layers.2.mix", "mtp.layers.2.mix"]),
            (["--match", "mtp.*.A_log", "--layer", "2"], ["mtp.layers.2.mix"]),
        ):
            with self.subTest(options=options):
                self.expect(self.rates(weights, acts, *options), 0)
                self.assertEqual(set(read(self.out)), {f"{n}.{what}" for n in names for what in ("beta", "decay")})
        self.expect(self.rates(weights, acts, "--layer", "3"), 2, str(weights), "is selected", "layer numbers 1, 2\n")

    def test_activations_by_layer_number(self):
        weights = self.put("w", {**layer("model.layers.0.self_attn."), **layer("model.layers.1.self_attn.")})
        acts = self.put("a", {**inputs("blk.0."), **inputs("model.layers.1.self_attn.")})
        self.expect(self.rates(weights, acts), 0)
        acts = self.put("a", {**inputs("blk.0."), **inputs("x.layers.0."), **inputs("model.layers.1.self_attn.")})
        self.refused(weights, acts, str(acts), "model.layers.0.self_attn.b", "blk.0.b", "x.layers.0.b")

    def test_stored_results(self):
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l."))
        self.expect(self.rates(weights, acts), 0)
        ours = read(self.out)
        same = {**inputs("l."), "l.beta": ours["l.beta"], "l.decay": ours["l.decay"]}
        self.expect(self.rates(weights, self.put("b", same)), 0, "Against the beta and decay stored in", "No element differs")

        bits = list(struct.unpack("<20I", ours["l.decay"].data))
        bits[3] += 5
        other = {**same, "l.decay": Tensor("F32", [5, 4], data=struct.pack("<20I", *bits))}
        result = self.expect(self.rates(weights, self.put("b", other)), 0, "Why it is not zero", "extended precision on 1 of the 1")
        self.assertNotIn("more than rounding", result.stdout)
        self.assertRegex(result.stdout, r"decay +F32 +5 +1 of 20 +5\.000% +1 +0")

        other["l.decay"] = Tensor("F64", [1, 5, 4], [0.5] * 20)
        self.expect(self.rates(weights, self.put("b", other)), 0, "in another dtype", "more than rounding explains")
        other["l.decay"] = Tensor("F32", [4, 5], [0.5] * 20)
        acts = self.put("b", other)
        self.refused(weights, acts, str(acts), "tensor l.decay", "[4, 5]", "[1, 5, 4]")
        other["l.decay"] = Tensor("I32", [5, 4], [0] * 20)
        acts = self.put("b", other)
        self.refused(weights, acts, str(acts), "tensor l.decay", "I32", code=1)

    def test_stored_nans(self):
        """A NaN against a number is a difference, on either side, and no rounding explains it."""
        weights, acts = self.put("w", layer("l.")), inputs("l.")
        self.expect(self.rates(weights, self.put("a", acts)), 0)
        ours = read(self.out)
        nan = float("nan")
        for dtype, expected in (("F32", 20), ("F64", 20)):
            stored = {**acts, "l.beta": ours["l.beta"], "l.decay": Tensor(dtype, [5, 4], [nan] * 20)}
            result = self.expect(self.rates(weights, self.put("b", stored)), 0, "more than rounding explains", "20 of them are NaNs on one side")
            self.assertNotIn("No element differs", result.stdout)
            self.assertRegex(result.stdout, r"decay +F32 +0 +20 of 20 +100\.000%")
        given = {**acts, "l.b": Tensor("BF16", [1, 5, 4], [nan] + [0] * 19), "l.decay": ours["l.decay"]}
        given["l.beta"] = Tensor("BF16", [1, 5, 4], [0.5] * 20)
        result = self.expect(self.rates(weights, self.put("b", given)), 0, "more than rounding explains", "1 of them is a NaN on one side")
        self.assertRegex(result.stdout, r"beta +BF16 +0 +1 of 20 ")
        given["l.beta"] = Tensor("BF16", [1, 5, 4], [nan] + [0.5] * 19)
        self.expect(self.rates(weights, self.put("b", given)), 0, "No element differs")
        narrow = self.put("n", layer("l.", dtypes=("F32", "BF16")))          # also where the addition explains something
        stored = {**acts, "l.decay": Tensor("F32", [5, 4], [nan] * 20)}
        result = self.expect(self.rates(narrow, self.put("b", stored)), 0, "more than rounding explains")
        self.assertNotIn("widens a to float32", result.stdout)

    def test_widened_addition(self):
        """The reference adds in float32; both inputs in bfloat16 here: the reason is named and the rest measured."""
        wide = self.put("w", layer("l.", dtypes=("F32", "F32")))
        narrow = self.put("n", layer("l.", dtypes=("F32", "BF16")))
        a = Tensor("BF16", [5, 4], [7.0 + i / 32 for i in range(20)])
        acts = {**inputs("l.", (5, 4)), "l.a": a}
        self.expect(self.rates(wide, self.put("a", acts)), 0)
        acts["l.decay"] = read(self.out)["l.decay"]
        result = self.expect(self.rates(narrow, self.put("a", acts)), 0, "a and dt_bias have the same 16-bit dtype")
        self.assertRegex(result.stdout, r"within 0 ulp of the stored one,\n +and 0 of 20 elements differ")

    def test_wrong_inputs(self):
        good_weights, good_acts = layer("l."), inputs("l.")
        for label, weights, acts, parts in (
            ("no pair", {"x": Tensor("F32", [1], [0])}, good_acts, ["w:", "no pair"]),
            ("no dt_bias", {"l.A_log": good_weights["l.A_log"]}, good_acts, ["w: tensor l.A_log", "l.dt_bias"]),
            ("no A_log", {"l.dt_bias": good_weights["l.dt_bias"]}, good_acts, ["w: tensor l.dt_bias", "l.A_log"]),
            ("no a", good_weights, {"l.b": good_acts["l.b"]}, ["a: tensor l.a", "l.A_log"]),
            ("no b", good_weights, {"l.a": good_acts["l.a"]}, ["a: tensor l.b"]),
            ("heads of a", good_weights, {**good_acts, "l.a": spread("BF16", [5, 3], 0, 1)}, ["a: tensor l.a", "[5, 3]", "l.A_log", "[4]"]),
            ("heads of b", good_weights, {**good_acts, "l.b": spread("BF16", [5, 8], 0, 1)}, ["a: tensor l.b", "[5, 8]", "[4]"]),
            ("tokens", good_weights, {**good_acts, "l.b": spread("BF16", [3, 4], 0, 1)}, ["a: tensor l.a", "[1, 5, 4]", "[3, 4]"]),
            ("dt_bias", {**good_weights, "l.dt_bias": spread("F32", [5], 0, 1)}, good_acts, ["w: tensor l.dt_bias", "[5]", "[4]"]),
            ("A_log", {**good_weights, "l.A_log": spread("F32", [4, 2], 0, 1)}, good_acts, ["w: tensor l.A_log", "[4, 2]"]),
            ("empty A_log", {**good_weights, "l.A_log": Tensor("F32", [0], [])}, good_acts, ["w: tensor l.A_log", "[0]"]),
            ("channels", {**good_weights, "l.dt_bias": spread("F32", [4, 2], 0, 1)}, good_acts, ["a: tensor l.a", "[1, 5, 4]", "2 channels"]),
            ("ints", good_weights, {**good_acts, "l.a": Tensor("I32", [5, 4], range(20))}, ["a: tensor l.a", "I32"]),
            ("float64", {**good_weights, "l.A_log": Tensor("F64", [4], [0] * 4)}, good_acts, ["w: tensor l.A_log", "F64"]),
            ("unknown dtype", {**good_weights, "l.A_log": Tensor("Q9", [4], data=bytes(4))}, good_acts, ["w: tensor l.A_log", "Q9"]),
        ):
            with self.subTest(label):
                self.refused(self.put("w", weights), self.put("a", acts), *parts)

    def test_unreadable_inputs(self):
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l."))
        cut = self.folder / "cut"
        cut.write_bytes(acts.read_bytes()[:-1])
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        empty = self.text("empty", "")
        for path, part in ((self.folder / "none", "No such file"), (cut, "leaves the file"), (pipe, "a pipe"), (empty, "empty"),
                           (Path("/dev/null"), "a device")):
            with self.subTest(path=path.name):
                self.refused(weights, path, str(path), part)
                self.refused(path, acts, str(path), part)

    def test_control_characters_in_names(self):
        weights = self.put("w", {"\x1b[31mA_log": Tensor("I32", [1], [0]), "\x1b[31mdt_bias": Tensor("I32", [1], [0])})
        result = self.expect(self.rates(weights, self.put("a", inputs("l."))), 2)
        self.assertNotIn("\x1b", result.stderr)

    def test_outputs(self):
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l."))
        for out, code, part in ((weights, 2, "also an input"), (acts, 2, "also an input"), (self.folder, 1, "a directory"),
                                (self.folder / "none" / "out", 1, "none"), (Path("/dev/null"), 1, "/dev/null")):
            with self.subTest(out=out):
                self.expect(self.rates(weights, acts, out=out), code, part)
        self.only("w", "a")
        self.assertFalse(Path("/dev/null").is_file())

    def test_output_keeps_its_mode(self):
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l."))
        out, link = self.folder / "old", self.folder / "link"
        link.symlink_to("old")
        for mode in (0o600, 0o664, 0o444, 0o755):
            for path in (out, link):
                out.unlink(missing_ok=True)
                out.write_text("before")
                out.chmod(mode)
                self.expect(self.rates(weights, acts, out=path), 0)
                self.assertEqual(out.stat().st_mode & 0o7777, mode)
                self.assertIn("l.beta", read(out))
        out.unlink()
        umask = os.umask(0o027)
        self.addCleanup(os.umask, umask)
        self.expect(self.rates(weights, acts, out=out), 0)
        self.assertEqual(out.stat().st_mode & 0o7777, 0o640)

    def test_unknown_devices(self):
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l."))
        for device, part in (("cpu:abacus", "abacus"), ("tpu", "unknown device"), ("cudas", "unknown device")):
            self.expect(self.rates(weights, acts, "--device", device), 2, device, part)
        self.only("w", "a")

    def test_progress_only_on_a_terminal(self):
        """A short run shows no bar even on a terminal; its output is what it is in a pipe but for the rates."""
        weights, acts = self.put("w", layer("l.")), self.put("a", inputs("l."))
        try:
            master, slave = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal: {error}")
        result = subprocess.run([COMMAND, "rates", "-w", weights, "-a", acts, "-o", self.folder / "o"], stdout=subprocess.PIPE, stderr=slave)
        os.close(slave)
        self.assertEqual(result.returncode, 0)
        os.set_blocking(master, False)
        try:
            shown = os.read(master, 1000)
        except (BlockingIOError, OSError):
            shown = b""
        os.close(master)
        self.assertEqual(shown, b"")

    def test_progress_needs_a_capable_terminal(self):
        for kind, shows in (("xterm", True), ("dumb", False), ("", False), (None, False)):
            with self.subTest(TERM=kind):
                shown = self.parity_shows(kind, 80, shows)
                self.assertEqual(b"\x1b[K" in shown, shows)
                self.assertTrue(shows or not shown)

    def test_progress_in_a_narrow_terminal(self):
        """No line is as wide as the terminal; the bar goes first, then the text's end, then all."""
        for columns, bar, text in ((200, True, True), (20, False, True), (10, False, False)):
            with self.subTest(columns=columns):
                lines = [line for line in self.parity_shows("xterm", columns, text).replace(b"\x1b[K", b"").split(b"\r") if line]
                self.assertEqual(bool(lines), text)
                self.assertTrue(all(len(line) < columns for line in lines), lines)
                self.assertEqual(any(line.startswith(b"[") for line in lines), bar, lines)

    def parity_shows(self, kind, columns, expected):
        """What a second of it shows on a terminal of that kind and width; or more seconds, where it shows nothing yet and should:
        a busy machine may do nothing between the half second that a bar waits for and the end."""
        for seconds in ("1", "5", "25") if expected else ("1",):
            shown = self.parity_on_terminal(kind, columns, seconds)
            if shown:
                break
        return shown

    def parity_on_terminal(self, kind, columns, seconds):
        try:
            master, slave = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal: {error}")
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k != "TERM"}
        environment.update({} if kind is None else {"TERM": kind})
        result = subprocess.run([COMMAND, "parity", "--seconds", seconds, "--level", "baseline"], stdout=subprocess.PIPE, stderr=slave,
                                env=environment)
        os.close(slave)
        self.assertEqual(result.returncode, 0)
        os.set_blocking(master, False)
        try:
            shown = os.read(master, 4000)
        except OSError:
            shown = b""
        os.close(master)
        return shown

    def test_interrupted(self):
        """Ended in the middle of a long run: no output, nothing left behind."""
        many = range(500)
        weights = self.put("w", {k: v for n in many for k, v in layer(f"layers.{n}.").items()})
        acts = self.put("a", {k: v for n in many for k, v in inputs(f"layers.{n}.", (500, 4)).items()})
        process = subprocess.Popen([COMMAND, "rates", "-w", weights, "-a", acts, "-o", self.folder / "out"], stdout=subprocess.PIPE)
        while not process.stdout.readline().startswith(b"    0 "):
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        process.communicate()
        if (self.folder / "out").exists():             # the signal came too late; then the file is whole
            self.assertEqual(len(read(self.folder / "out")), 2 * len(many))
            (self.folder / "out").unlink()
        self.only("w", "a")


class Sharded(RatesCase):
    def sharded(self, weight_map=None, folder="model"):
        first, second = layer("layers.0.mix."), layer("layers.1.mix.")
        self.put(f"{folder}/odd name.safetensors", first)
        self.put(f"{folder}/deep/part-2.safetensors", second)
        names = {**{n: "odd name.safetensors" for n in first}, **{n: "deep/part-2.safetensors" for n in second}, **(weight_map or {})}
        index = self.folder / folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": names}))
        return index

    def acts(self):
        return self.put("a", {**inputs("layers.0.mix."), **inputs("layers.1.mix.")})

    def test_index_and_folder(self):
        index, acts = self.sharded(), self.acts()
        for weights in (index, index.parent):
            self.expect(self.rates(weights, acts), 0, "2 layers, 2 launches")

    def test_output_is_no_input(self):
        """Neither an index nor a shard is ever replaced, whether a layer needs it or not, nor under another name."""
        index, acts = self.sharded(), self.acts()
        second = self.put("acts/only.safetensors", read(acts))
        unused = self.put("acts/unused.safetensors", {"x": Tensor("F32", [1], [0])})
        acts_index = self.folder / "acts" / "index.json"
        acts_index.write_text(json.dumps({"weight_map": {**{n: second.name for n in read(acts)}, "x": unused.name, "gone": "not there"}}))
        link, hard = self.folder / "link", self.folder / "hard"
        link.symlink_to(index.parent / "odd name.safetensors")
        os.link(index.parent / "odd name.safetensors", hard)
        for out in (index, index.parent / "odd name.safetensors", index.parent / "deep" / "part-2.safetensors", acts_index, second, unused,
                    link, hard):
            with self.subTest(out=out.name):
                before = out.read_bytes()
                self.expect(self.rates(index, acts_index, "--layer", "1", out=out), 2, "also an input")
                self.assertEqual(out.read_bytes(), before)
        self.expect(self.rates(index, acts_index, "--layer", "1"), 0, "1 layer, 1 launch;")

    def test_index_by_another_name(self):
        index, acts = self.sharded(), self.acts()
        bare = index.rename(index.parent / "index")
        self.expect(self.rates(bare, acts), 2, str(bare), "looks like JSON", ".json")
        self.expect(self.rates(self.text("short", "{}"), acts), 2, "looks like JSON")

    def test_single_file_in_a_folder(self):
        self.put("model/anything.safetensors", layer("l."))
        acts = self.put("a", inputs("l."))
        self.expect(self.rates(self.folder / "model", acts), 0)
        self.put("model/another.safetensors", layer("l."))
        self.expect(self.rates(self.folder / "model", acts), 2, "2 safetensors files")
        self.put("model/model.safetensors", layer("l."))
        self.expect(self.rates(self.folder / "model", acts), 0)

    def test_only_needed_shards_are_opened(self):
        index, acts = self.sharded(), self.acts()
        (index.parent / "odd name.safetensors").unlink()
        self.expect(self.rates(index, acts, "--layer", "1"), 0)
        self.expect(self.rates(index, acts), 2, "odd name.safetensors", "No such file")

    def test_paths_outside_are_refused(self):
        outside = self.put("outside.safetensors", layer("layers.0.mix."))
        acts = self.acts()
        for shard in ("../outside.safetensors", str(outside), "deep/../../outside.safetensors", "..", "", "deep/.."):
            with self.subTest(shard=shard):
                index = self.sharded({"layers.0.mix.A_log": shard})
                self.refused(index, acts, str(index), "layers.0.mix.A_log", "outside the index's folder")

    def test_links_outside_are_refused(self):
        self.put("outside.safetensors", layer("layers.0.mix."))
        index, acts = self.sharded(), self.acts()
        shard = index.parent / "odd name.safetensors"
        shard.unlink()
        shard.symlink_to("../outside.safetensors")
        self.refused(index, acts, "odd name.safetensors", "outside the folder")
        shard.unlink()
        shard.symlink_to("deep/inside.safetensors")
        self.put("model/deep/inside.safetensors", layer("layers.0.mix."))
        self.expect(self.rates(index, acts), 0)

    def test_cache_of_links(self):
        """A download cache: the index and the shards are links into one folder of files."""
        index, acts = self.sharded(), self.acts()
        blobs, snapshot = self.folder / "blobs", self.folder / "snapshots" / "main"
        blobs.mkdir()
        (snapshot / "deep").mkdir(parents=True)
        for number, name in enumerate(("odd name.safetensors", "deep/part-2.safetensors", "model.safetensors.index.json")):
            (index.parent / name).rename(blobs / str(number))
            (snapshot / name).symlink_to(blobs / str(number))
        self.expect(self.rates(snapshot, acts), 0)

    def test_wrong_indices(self):
        acts = self.acts()
        index = self.sharded({"layers.0.mix.A_log": "deep/part-2.safetensors"})
        self.refused(index, acts, "deep/part-2.safetensors", "tensor layers.0.mix.A_log", "not in this shard")
        for text, part in (("[]", "weight_map"), ("{}", "weight_map"), ('{"weight_map": []}', "weight_map"), ("{", "not valid JSON"),
                           ('{"weight_map": {"x": 1}}', "tensor x"), ('{"weight_map": {"x": "a", "x": "b"}}', "duplicate"), ("", "not valid JSON")):
            with self.subTest(text=text):
                index.write_text(text)
                self.refused(index, acts, str(index), part)


# ---- digest


class Digest(Case):
    def test_equal(self):
        result = self.expect(run("digest", "--op", "exp,add", "--dtype=float16", "--strided", "-t", "1"), 0)
        lines = result.stdout.splitlines()
        self.assertEqual([line.split()[:2] + line.split()[3:] for line in lines[:-1]], [["exp", "float16", "equal"], ["add", "float16", "equal"]])
        self.assertRegex(lines[-1], r"^cpu:\w+: 2 digests equal, 0 not$")
        whole = self.expect(run("digest", "-o", "exp", "-y", "float16,bfloat16", "-d", "cpu:baseline"), 0, "cpu:baseline: 2 digests equal, 0 not")
        self.assertEqual(whole.stdout.splitlines()[0], lines[0])             # all 65,536 either way

    def test_conversions(self):
        """Named for the dtype of their results, from each of the other two."""
        names = ("float32", "float16", "bfloat16")
        for level in ("", ":baseline"):
            result = self.expect(run("digest", "--op", ",".join(f"astype_{name}" for name in names), "--strided", "-d", f"cpu{level}"), 0,
                                 "6 digests equal, 0 not")
            self.assertEqual([line.split()[:2] for line in result.stdout.splitlines()[:-1]],
                             [[f"astype_{to}", name] for to in names for name in names if name != to])
        self.expect(run("digest", "--op", "astype_float16", "--dtype", "bfloat16"), 0, "1 digests equal, 0 not")
        self.expect(run("digest", "--op", "astype_float16", "--dtype", "float16"), 2, "no conversion is from a dtype to itself")

    def test_wrong_usage(self):
        for arguments, parts in ((["--op", "expp"], ["expp", "no primitive"]), (["--op", "fma"], ["fma", "one or two"]),
                                 (["--op", ""], ["no primitive", "an empty name", "there are abs, negative,", "astype_bfloat16"]),
                                 (["--op", "exp,"], ["an empty name", "there are abs, negative,"]),
                                 (["--op", "bitwise_and"], ["bitwise_and"]), (["--op", "astype_int8"], ["astype_int8", "no primitive or conversion"]),
                                 (["--op", "astype"], ["no primitive or conversion"]), (["--dtype", "float64"], ["float64", "float32, float16 or bfloat16"]),
                                 (["--threads", "0"], ["1 to 4096"]), (["--device", "gpu"], ["gpu"]), (["stray"], ["stray"])):
            with self.subTest(arguments=arguments):
                self.expect(run("digest", *arguments), 2, *parts)


# ---- check


class Check(Case):
    def check(self, text, *options, name="cases.tsv"):
        return run("check", self.text(name, text), *options)

    def test_golden(self):
        files = [GOLDEN / "unary.tsv", GOLDEN / "binary.tsv", GOLDEN / "rates.tsv", *sorted((GOLDEN / "hard").iterdir())]
        for options in ([], ["--path", "replay"], ["--path=composed", "--device=cpu:baseline"]):
            result = self.expect(run("check", *options, *files), 0)
            self.assertRegex(result.stdout.splitlines()[-1], r"^\d{5,} passed, 0 failed$")

    def test_every_form(self):
        self.expect(self.check(
            "# a comment\n\n"
            "exp float32 00000000 float32 3f800000   # and one behind a case\r\n"
            "\tadd int8 7f 01 80\n"
            "astype float32 3fc00000 bfloat16 3fc0\n"
            "astype float32 7fc00000 int16 0000\n"
            "isnan float16 7e00 bool 1\n"
            "less float32 7fc00000 00000000 00\n"
            "logical_not bool 00 bool 01\n"
            "fma float32 3f800000 40000000 40400000 40a00000\n"
            "where float16 1 3c00 4000 3c00\n"
            "where float16 00 3c00 4000 4000\n"
            "clip int32 00000009 00000000 00000003 00000003\n"
            "add uint64 ffffffffffffffff 0000000000000002 0000000000000001\n"
            "float32 float32 float32 float32 00000000 00000000 ff800000 00000000 float32 3f000000 float32 3f800000\n"
        ), 0, "13 passed, 0 failed")
        self.expect(self.check("00000000 3f800000\n", name="exp.hard"), 0, "1 passed, 0 failed")

    def test_misses(self):
        text = "exp float32 00000000 float32 3f800000\nexp float32 00000000 float32 3f800001\nadd bfloat16 3f80 3f80 3f80\n"
        for path, names in (("both", ["replay", "composed path"]), ("replay", ["replay"]), ("composed", ["composed path"])):
            result = self.expect(self.check(text, "--path", path), 1)
            for name in names:
                self.assertIn(f"cases.tsv:2: exp float32 00000000: {name} gives float32 3f800000, expected 3f800001", result.stdout)
                self.assertIn(f"cases.tsv:3: add bfloat16 3f80 bfloat16 3f80: {name} gives bfloat16 4000, expected 3f80", result.stdout)
            self.assertEqual(result.stdout.splitlines()[-1], "1 passed, 2 failed")

    def test_lines_that_are_no_case(self):
        for line, part in (
            ("exp float32 00000000", "3 columns"),
            ("exp float32 00000000 float32 3f80", "8 hexadecimal digits"),
            ("exp float32 0000000g float32 3f800000", "8 hexadecimal digits"),
            ("exp float32 0x000000 float32 3f800000", "8 hexadecimal digits"),
            ("exp float33 00000000 float32 3f800000", '"float33" is no dtype'),
            ("equal bool 2 0 0", "no bool"),
            ("a " * 40, "at least 13 columns"),
            ("x" * 50 + " float32 00000000 00000000 00000000", "no operation"),
            ("bogus float32 00000000 float32 00000000", "no such operation"),
            ("bogus float32 00000000 00000000 00000000", "no such operation"),
            ("exp float32 00000000 float16 3c00", "gives float32, but the case expects float16"),
            ("exp float32 00000000 00000000 00000000", "number of operands"),
            ("add float32 00000000 float32 00000000", "number of operands"),
            ("bitwise_and float32 00000000 00000000 00000000", "bitwise_and"),
            ("00000000 3f800000", "no such operation"),
            ("exp\0 float32 00000000 float32 3f800000", "NUL"),
        ):
            with self.subTest(line=line):
                result = self.expect(self.check(f"\n{line}\nexp float32 00000000 float32 3f800000\n"), 1, ":2: ", part)
                self.assertEqual(result.stdout.splitlines()[-1], "1 passed, 1 failed")

    def test_unknown_operations(self):
        text = "bogus float32 00000000 float32 3f800000\nexp float32 00000000 float32 3f800000\n"
        self.expect(self.check(text), 1, "1 passed, 1 failed")
        self.expect(self.check(text, "--skip-unknown"), 0, "bogus float32: no such operation (1 case skipped)", "1 passed, 0 failed")

    def test_unreadable_files(self):
        good = self.text("good", "exp float32 00000000 float32 3f800000\n")
        for path in (self.folder, self.folder / "none"):
            result = self.expect(run("check", good, path), 2, f"onelaunch check: {path}: ")
            self.assertNotIn("passed", result.stdout)

    def test_no_case(self):
        result = self.expect(self.check("# nothing but a comment\n"), 1, "0 passed, 0 failed")
        self.assertIn("no case was found", result.stderr)

    def test_long_lines(self):
        """A line of more than 64 KiB is no case; the ones around it are read as ever."""
        good = "exp float32 00000000 float32 3f800000"
        for line, code in ((good + " " * (65536 - len(good)), 0), (good + " " * (65537 - len(good)), 1), ("a" * 3000000, 1)):
            result = self.expect(self.check(f"{good}\n{line}\n{good}\n"), code)
            self.assertEqual(result.stdout.splitlines()[-1], f"{2 + (not code)} passed, {code} failed")
            if code:
                self.assertIn("cases.tsv:2: a line of more than 65536 bytes", result.stdout)
        self.expect(self.check(f"{good}\n{'a' * 70000}"), 1, "cases.tsv:2: a line", "1 passed, 1 failed")
        self.expect(self.check(f"{good}\n{good}"), 0, "2 passed, 0 failed")

    def test_endless_lines(self):
        if not os.path.exists("/dev/zero"):
            self.skipTest("no /dev/zero")
        result = self.expect(run("check", "/dev/zero"), 2, "/dev/zero: a line of more than 64 KiB")
        self.assertEqual(result.stdout, "")


# ---- compare


class Compare(Case):
    def compare(self, x, y, *options):
        return run("compare", self.put("x", x), self.put("y", y), *options)

    def floats(self, *bits):
        return {"t": Tensor("F32", [2, len(bits) // 2], data=struct.pack(f"<{len(bits)}I", *bits))}

    def test_equal(self):
        tensors = {"t": spread("F32", [3], 0, 1), "i": Tensor("I32", [2], [1, 2]), "e": Tensor("F16", [0], []), "f": Tensor("F8_E4M3", [1], [7])}
        self.expect(self.compare(tensors, dict(reversed(tensors.items()))), 0, "4 tensors equal, 0 within 0 ulp, 0 beyond")

    def test_histogram(self):
        one = 0x3F800000
        x = self.floats(*[one] * 8)
        y = self.floats(one, one + 1, one - 2, one + 3, one + 16, one + 17, one + 256, one + 257)
        result = self.expect(self.compare(x, y), 1, "worst: 257 ulp at [1, 3]: 1 (3f800000) against 1.00003064 (3f800101)")
        self.assertRegex(result.stdout, r"\n +1 +1 +1 +1 +1 +2 +1\n")
        self.expect(self.compare(x, y, "--max-ulp", "256"), 1)
        self.expect(self.compare(x, y, "--max-ulp", "257"), 0, "1 within 257 ulp")

    def test_across_zero(self):
        self.expect(self.compare(self.floats(1, 0), self.floats(0x80000002, 0), "--max-ulp=3"), 0, "worst: 3 ulp")
        self.expect(self.compare(self.floats(1, 0), self.floats(0x80000002, 0), "--max-ulp=2"), 1)

    def test_zero_signs_and_nans(self):
        x, y = self.floats(0, 0x7FC00000), self.floats(0x80000000, 0x7FC00001)
        parts = "two NaNs with different bits: 1", "zeros of different sign: 1"
        self.expect(self.compare(x, y), 1, *parts)
        self.expect(self.compare(x, y, "--max-ulp", "1"), 0, *parts)
        y = self.floats(0, 0x3F800000)
        self.expect(self.compare(x, y, "--max-ulp", "9223372036854775807"), 1, "a NaN against a number: 1, the first at [1, 0]: nan (7fc00000)")

    def test_each_format(self):
        for dtype, data in (("F16", "H"), ("BF16", "H"), ("F64", "Q")):
            x, y = ({"t": Tensor(dtype, [1], data=struct.pack("<" + data, bits))} for bits in (0x100, 0x105))
            self.expect(self.compare(x, y, "--max-ulp", "5"), 0, "worst: 5 ulp")
            self.expect(self.compare(x, y, "--max-ulp", "4"), 1)

    def test_other_dtypes_must_be_equal(self):
        for dtype in ("I32", "U8", "F8_E4M3"):
            x, y = ({"t": Tensor(dtype, [3], values)} for values in ([1, 2, 3], [1, 5, 3]))
            self.expect(self.compare(x, y, "--max-ulp", "100"), 1, "1 of 3 elements differ")
        x, y = ({"t": Tensor("Q9", [3], data=bytes(n))} for n in (3, 3))
        self.expect(self.compare(x, y), 0)

    def test_structure(self):
        t = spread("F32", [2, 2], 0, 1)
        self.expect(self.compare({"t": t, "u": t}, {"t": t, "v": t}), 1, "u  only in", "v  only in", "1 tensor equal, 0 within 0 ulp, 2 beyond")
        self.expect(self.compare({"t": t}, {"t": Tensor("F32", [4], data=t.data)}), 1, "F32 [2, 2] against F32 [4]")
        self.expect(self.compare({"t": t}, {"t": Tensor("I32", [2, 2], data=t.data)}), 1, "against I32 [2, 2]")
        self.expect(self.compare({"t": t, "u": t}, {"t": t}, "--match", "t"), 0)
        self.expect(self.compare({"t": t}, {"t": t}, "--match", "z*"), 2, "no tensor matches z*")
        self.expect(self.compare({}, {}), 0)

    def test_unreadable(self):
        good = self.put("x", {"t": spread("F32", [2], 0, 1)})
        for path in (self.text("bad", "no safetensors"), self.folder / "none"):
            self.expect(run("compare", good, path), 2, f"onelaunch compare: {path}: ")


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.access(sys.argv[1], os.X_OK) and os.path.isfile(sys.argv[1]):
        COMMAND = os.path.abspath(sys.argv.pop(1))
    unittest.main()
