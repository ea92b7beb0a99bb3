#!/usr/bin/env python3
"""Tests of what `onelaunch rates` computes beside the default gate, of the layouts it reads, and of GGUF files.

    test_rates_gates.py [PATH_OF_ONELAUNCH [FOLDER_OF_THE_FAKES]] [unittest arguments]

GGUF files are written here byte by byte, from the format's description. Values come from the formulas in Python's floats, rounded to
float32: exact for the steps that are compared bit for bit.
"""

import math
import os
import struct
import sys
import tempfile
import unittest
from pathlib import Path

import test_cli
from test_cli import ROOT, RatesCase, Tensor, inputs, layer, pack, read, run, spread

FAKES = Path(os.environ.get("ONELAUNCH_FAKE_CUDA", ROOT / "build" / "fake_cuda"))


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def floats(tensor):
    if tensor.dtype == "BF16":
        return [struct.unpack("<f", b"\0\0" + tensor.data[i : i + 2])[0] for i in range(0, len(tensor.data), 2)]
    return list(struct.unpack(f"<{len(tensor.data) // 4}f", tensor.data))


# ---- GGUF

TYPES = {"F32": 0, "F16": 1, "Q8_0": 8, "BF16": 30}


def string(text):
    text = text.encode()
    return struct.pack("<Q", len(text)) + text


def gguf(tensors, metadata=None, version=3, alignment=32):
    """Metadata: strings, and integers as uint32. Shapes are given as elsewhere, the fastest axis last; the format turns them around."""
    metadata = dict(metadata or {})
    if alignment != 32:
        metadata["general.alignment"] = alignment
    header = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata.items():
        header += string(key) + (struct.pack("<I", 8) + string(value) if isinstance(value, str) else struct.pack("<II", 4, value))
    data = b""
    for name, tensor in tensors.items():
        data += bytes(-len(data) % alignment)
        shape = tensor.shape[::-1]
        header += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, TYPES.get(tensor.dtype, 77), len(data))
        data += tensor.data
    return header + bytes(-len(header) % alignment) + data


def negated(a_log):
    return Tensor("F32", a_log.shape, [-f32(math.exp(x)) for x in floats(a_log)])


def of_ggml(weights, prefix, number, bias="BF16"):
    """A layer of transformers' names in GGUF's: the rate already -exp(A_log)."""
    return {f"blk.{number}.ssm_a": negated(weights[prefix + "A_log"]), f"blk.{number}.ssm_dt.bias": Tensor(bias, weights[prefix + "dt_bias"].shape, floats(weights[prefix + "dt_bias"])),
            f"blk.{number}.ssm_alpha.weight": Tensor("Q8_0", [2, 32], data=bytes(68)), f"blk.{number}.ssm_beta.weight": Tensor("BF16", [2, 2], [0, 1, 2, 3])}


test_cli.SIZES["Q8_0"] = 68 / 64


class GatesCase(RatesCase):
    def gguf(self, name, *arguments, **options):
        path = self.folder / name
        path.write_bytes(gguf(*arguments, **options))
        return path

    def results(self, weights, activations, *options):
        self.expect(self.rates(weights, activations, *options), 0, "bit for bit")
        return {name: (t.dtype, t.shape, t.data) for name, t in read(self.out).items()}


class Gguf(GatesCase):
    def test_equals_safetensors(self):
        weights, prefix = layer("model.layers.3.mix."), "model.layers.3.mix."
        expected = self.results(self.put("w", weights), self.put("a", inputs(prefix)))
        acts = inputs("blk.3.")
        for version, alignment in ((3, 32), (2, 32), (3, 8), (3, 4096)):
            for word_a, word_b in (("a", "b"), ("ssm_alpha", "ssm_beta")):
                with self.subTest(version=version, alignment=alignment, word=word_a):
                    path = self.gguf("w.gguf", of_ggml(weights, prefix, 3), {"general.architecture": "qwen3next"}, version=version, alignment=alignment)
                    named = self.put("a", {f"blk.3.{word_a}": acts["blk.3.a"], f"blk.3.{word_b}": acts["blk.3.b"]})
                    found = self.results(path, named)
                    self.assertEqual(found, {name.replace(prefix, "blk.3."): value for name, value in expected.items()})
        result = self.expect(self.rates(path, self.put("a", acts)), 0, "GGUF, architecture qwen3next: its rates are -exp(A_log), taken as they are")
        self.assertNotIn("tiled", result.stdout)

    def test_activations_in_a_gguf(self):
        weights = layer("l.")
        expected = self.results(self.put("w", weights), self.put("a", inputs("l.")))
        self.assertEqual(self.results(self.folder / "w", self.gguf("a.gguf", inputs("l."))), expected)

    def test_a_safetensors_file_may_hold_either(self):
        """Names decide, and --rate decides against them."""
        weights = layer("l.")
        acts = self.put("a", inputs("l."))
        expected = self.results(self.put("w", weights), acts)
        self.assertEqual(self.results(self.put("g", {"l.ssm_a": negated(weights["l.A_log"]), "l.ssm_dt.bias": weights["l.dt_bias"]}), acts), expected)
        self.assertEqual(self.results(self.put("g", {"l.A_log": negated(weights["l.A_log"]), "l.dt_bias": weights["l.dt_bias"]}), acts, "--rate", "negated"), expected)
        self.assertEqual(self.results(self.put("g", {"l.ssm_a": weights["l.A_log"], "l.ssm_dt.bias": weights["l.dt_bias"]}), acts, "--rate=logarithm"), expected)
        twice = self.results(self.put("g", {"l.A_log": negated(weights["l.A_log"]), "l.dt_bias": weights["l.dt_bias"]}), acts)
        self.assertNotEqual(twice, expected)                      # what exponentiating again would give

    def test_types(self):
        weights = layer("l.")
        acts = self.put("a", inputs("blk.0."))
        seen = set()
        for rate in ("F32", "F16", "BF16"):
            for bias in ("F32", "F16", "BF16"):
                tensors = {"blk.0.ssm_a": Tensor(rate, [4], [-0.5, -1, -2, -0.25]), "blk.0.ssm_dt.bias": Tensor(bias, [4], floats(weights["l.dt_bias"]))}
                seen.add(self.results(self.gguf("w", tensors), acts, "--sum", "float32")["blk.0.decay"][2])
        self.assertEqual(len(seen), 1)                            # these values are exact in each

    def test_quantised_is_refused_by_name(self):
        good = {"blk.0.ssm_a": Tensor("F32", [32], [-1] * 32), "blk.0.ssm_dt.bias": Tensor("F32", [32], [0] * 32)}
        acts = self.put("a", inputs("blk.0.", (5, 32)))
        quantised = Tensor("Q8_0", [64], data=bytes(68))
        self.expect(self.rates(self.gguf("w", {**good, "blk.0.ssm_alpha.weight": quantised}), acts), 0)      # it is not read
        for name in good:
            self.expect(self.rates(self.gguf("w", {**good, name: quantised}), acts), 2, f"w: tensor {name}: dtype Q8_0 is quantised; expected F32, F16 or BF16")
        unknown = Tensor("of tomorrow", [32], data=bytes(32))
        self.expect(self.rates(self.gguf("w", {**good, "blk.0.ssm_a": unknown}), acts), 2, "dtype number 77 is not known")

    def test_per_channel(self):
        """Kimi Linear: ssm_a of [heads, 1], a bias for each channel."""
        weights = {"l.A_log": spread("F32", [3], -2, 2), "l.dt_bias": spread("F32", [15], -4, 4)}
        acts = {"a": spread("BF16", [7, 15], -8, 8), "b": spread("BF16", [7, 3], -2, 2)}
        expected = self.results(self.put("w", weights), self.put("a", {f"l.{k}": t for k, t in acts.items()}))
        tensors = {"blk.0.ssm_a": Tensor("F32", [3, 1], data=negated(weights["l.A_log"]).data), "blk.0.ssm_dt.bias": weights["l.dt_bias"]}
        found = self.results(self.gguf("g", tensors), self.put("a", {f"blk.0.{k}": t for k, t in acts.items()}))
        self.assertEqual(found, {name.replace("l.", "blk.0."): value for name, value in expected.items()})

    def test_folder(self):
        weights = layer("l.")
        (self.folder / "model").mkdir()
        self.gguf("model/x.gguf", of_ggml(weights, "l.", 0))
        acts = self.put("a", inputs("blk.0."))
        self.expect(self.rates(self.folder / "model", acts), 0, "1 layer")
        self.gguf("model/y.gguf", {})
        self.expect(self.rates(self.folder / "model", acts), 2, "2 GGUF files; name one")
        self.put("model/z.safetensors", {f"blk.0.{k[2:]}": t for k, t in weights.items()})
        self.expect(self.rates(self.folder / "model", acts), 0, "1 layer")

    def test_hostile_files(self):
        weights = layer("l.")
        good = gguf(of_ggml(weights, "l.", 0), {"general.architecture": "qwen35"})
        acts = self.put("a", inputs("blk.0."))
        path = self.folder / "w"
        for label, raw, part in (
            ("cut", good[:-1], "leave the file"), ("header cut", good[:100], "truncated"), ("magic alone", b"GGUF", "truncated"), ("version 1", b"GGUF\1" + good[5:], "GGUF version 1, expected 2 or 3"),
            ("big-endian", b"GGUF\0\0\0\3" + good[8:], "big-endian"), ("counts", good[:8] + b"\xff" * 16, "truncated"), ("too many tensors", good[:8] + b"\xff" * 8 + good[16:], ""),
            ("no such file", None, "No such file"),
        ):
            with self.subTest(label):
                path.unlink(missing_ok=True)
                if raw is not None:
                    path.write_bytes(raw)
                self.refused(path, acts, str(path), part)
        self.refused(self.gguf("e", {"\x1b[31m.ssm_a": Tensor("F32", [1], [0]), "\x1b[31m.ssm_dt.bias": Tensor("Q8_0", [64], data=bytes(68))}), acts, "?[31m")

    def test_its_own_output_is_refused(self):
        path = self.gguf("w", of_ggml(layer("l."), "l.", 0))
        self.expect(self.rates(path, self.put("a", inputs("blk.0.")), out=path), 2, "also an input")


class Layouts(GatesCase):
    """2 key heads of 3 value heads each, unless said."""

    KEY_HEADS, EACH, TOKENS = 2, 3, 5
    HEADS = KEY_HEADS * EACH

    def setUp(self):
        super().setUp()
        self.weights = layer("l.", heads=self.HEADS)
        self.acts = inputs("l.", (1, self.TOKENS, self.HEADS))
        self.expected = self.results(self.put("w", self.weights), self.put("a", self.acts))

    def projection(self, interleaved):
        """b and a as one tensor of rows."""
        b, a = (self.acts["l." + k].data for k in "ba")
        step = 2 * (self.EACH if interleaved else self.HEADS)
        rows = b"".join(x[i : i + step] for i in range(0, len(b), step) for x in (b, a))
        return Tensor("BF16", [1, self.TOKENS, 2 * self.HEADS], data=rows)

    def tiled(self, tensor):
        """Value head k * EACH + j of it goes to j * KEY_HEADS + k."""
        size = len(tensor.data) // self.HEADS
        return Tensor(tensor.dtype, tensor.shape, data=b"".join(
            tensor.data[size * (t % self.KEY_HEADS * self.EACH + t // self.KEY_HEADS) :][:size] for t in range(self.HEADS)))

    def test_projections(self):
        for layout, options in (("halves", []), ("interleaved", ["--key-heads", self.KEY_HEADS])):
            for word in ("ba", "in_proj_ba", "ssm_ba"):
                with self.subTest(layout=layout, word=word):
                    acts = self.put("p", {f"l.{word}": self.projection(layout == "interleaved")}, pad=3)
                    self.assertEqual(self.results(self.folder / "w", acts, "--projection", layout, *options), self.expected)
        other = self.results(self.folder / "w", acts, "--projection", "halves")      # the wrong layout is another result
        self.assertNotEqual(other, self.expected)

    def test_tiled_weights(self):
        weights = {name: self.tiled(t) if name in ("l.A_log", "l.dt_bias") else t for name, t in self.weights.items()}
        self.assertNotEqual(weights["l.A_log"].data, self.weights["l.A_log"].data)
        path = self.put("t", weights)
        self.assertEqual(self.results(path, self.folder / "a", "--head-map", "tiled", "--key-heads", self.KEY_HEADS), self.expected)
        self.assertNotEqual(self.results(path, self.folder / "a"), self.expected)
        acts = self.put("p", {"l.ba": self.projection(True)})
        self.assertEqual(self.results(path, acts, "--head-map=tiled", "--projection=interleaved", "--key-heads", self.KEY_HEADS), self.expected)

    def test_tiled_gguf_says_its_key_heads(self):
        weights = {name: self.tiled(t) for name, t in self.weights.items() if name in ("l.A_log", "l.dt_bias")}
        acts = self.put("a", inputs("blk.0.", (1, self.TOKENS, self.HEADS)))
        path = self.gguf("g", of_ggml(weights, "l.", 0), {"general.architecture": "qwen35moe", "qwen35moe.ssm.group_count": self.KEY_HEADS})
        found = self.results(path, acts, "--head-map", "tiled")
        self.assertEqual(found, {name.replace("l.", "blk.0."): value for name, value in self.expected.items()})
        self.expect(self.rates(path, acts, "--head-map", "tiled"), 0, "Its heads are tiled", "a, b and the results are grouped")
        self.expect(self.rates(path, acts), 0, "Its heads are tiled", "a, b and the results are taken to be, too")

    def test_tiled_channels(self):
        weights = {"l.A_log": spread("F32", [self.HEADS], -2, 2), "l.dt_bias": spread("F32", [self.HEADS, 4], -4, 4)}
        acts = self.put("c", {"l.a": spread("BF16", [3, self.HEADS, 4], -8, 8), "l.b": spread("BF16", [3, self.HEADS], -2, 2)})
        expected = self.results(self.put("w", weights), acts)
        path = self.put("t", {name: self.tiled(t) for name, t in weights.items()})
        self.assertEqual(self.results(path, acts, "--head-map", "tiled", "--key-heads", self.KEY_HEADS), expected)

    def test_stored_results_are_compared(self):
        acts = {"l.ba": self.projection(True)}
        for name, value in self.expected.items():
            acts[name] = Tensor(value[0], value[1], data=value[2])
        options = ["--projection", "interleaved", "--key-heads", self.KEY_HEADS]
        self.expect(self.rates(self.folder / "w", self.put("p", acts), *options), 0, "No element differs")
        raw = bytearray(acts["l.decay"].data)
        raw[-4] ^= 1                                              # of the last value: its own a, b, A_log, dt_bias are what explain it
        acts["l.decay"].data = bytes(raw)
        result = self.expect(self.rates(self.folder / "w", self.put("p", acts), *options), 0, "extended precision on 1 of the 1")
        self.assertRegex(result.stdout, r"roundings it gives this library's bits in 1;")

    def test_refused(self):
        projection = self.put("p", {"l.ba": self.projection(True)})
        odd = self.put("o", {"l.ba": Tensor("BF16", [self.TOKENS, self.HEADS], data=bytes(2 * self.TOKENS * self.HEADS))})
        channels = self.put("c", {"l.A_log": self.weights["l.A_log"], "l.dt_bias": spread("F32", [self.HEADS, 2], 0, 1)})
        weights = self.folder / "w"
        for label, result, parts in (
            ("key heads", self.rates(weights, projection, "--projection", "interleaved"), ["does not say how many key heads there are, which --projection interleaved needs; give --key-heads"]),
            ("key heads too", self.rates(weights, self.folder / "a", "--head-map", "tiled"), ["which --head-map tiled needs"]),
            ("4 key heads", self.rates(weights, projection, "--projection", "interleaved", "--key-heads", "4"), ["tensor l.A_log: 6 heads are no multiple of 4 key heads"]),
            ("one word", self.rates(weights, projection), ["p: tensor l.b: not in this file"]),
            ("no projection", self.rates(weights, self.folder / "a", "--projection", "halves"), ["a: tensor l.ba: not in this file, needed for l.A_log"]),
            ("half a projection", self.rates(weights, odd, "--projection", "halves"), ["o: tensor l.ba", "does not end in b and a of 6 heads"]),
            ("channels", self.rates(channels, projection, "--projection", "halves"), ["p: tensor l.ba", "does not come from one projection"]),
        ):
            with self.subTest(label):
                self.expect(result, 2, *parts)


class Gates(GatesCase):
    HEADS = 4

    def setUp(self):
        super().setUp()
        self.weights = self.put("w", layer("l.", dtypes=("F32", "F32")))
        self.acts = inputs("l.", (5, 4))
        self.a = self.put("a", self.acts)
        a, bias, a_log = (floats(t) for t in (self.acts["l.a"], layer("l.", dtypes=("F32", "F32"))["l.dt_bias"], layer("l.")["l.A_log"]))
        self.x = [f32(v + bias[i % 4]) for i, v in enumerate(a)]
        self.rate = [f32(math.exp(a_log[i % 4])) for i in range(len(a))]

    def gates(self, *options):
        self.expect(self.rates(self.weights, self.a, *options), 0, "1 layer, 1 launch;")
        return {name[2:]: floats(t) for name, t in read(self.out).items()}

    def close(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for x, y in zip(found, expected):
            self.assertTrue(x == y or abs(x - y) <= 4e-7 * abs(y), (x, y))

    def test_outputs(self):
        softplus = [f32(max(x, 0) + math.log1p(math.exp(-abs(x)))) for x in self.x]
        expected = [-f32(r * s) for r, s in zip(self.rate, softplus)]
        both = self.gates("--output", "both")
        self.assertEqual(set(both), {"beta", "log_decay", "decay"})
        self.close(both["log_decay"], expected)
        self.assertEqual(both["decay"], [f32(math.exp(g)) for g in both["log_decay"]])
        self.assertEqual(self.gates("--output", "log-decay"), {k: both[k] for k in ("beta", "log_decay")})
        self.assertEqual(self.gates(), {k: both[k] for k in ("beta", "decay")})

    def test_kinds(self):
        sigmoid = lambda z: f32(1 / (1 + math.exp(-z)) if z > -700 else 0)
        lower = self.gates("--gate", "lower-bound", "--lower-bound", "-5", "--output=both")
        self.close(lower["log_decay"], [f32(-5 * sigmoid(f32(r * x))) for r, x in zip(self.rate, self.x)])
        plain = self.gates("--gate", "plain-lower-bound", "--lower-bound=-0.5", "--output=both")
        self.close(plain["log_decay"], [f32(-0.5 * sigmoid(x)) for x in self.x])
        softplus = [f32(max(x, 0) + math.log1p(math.exp(-abs(x)))) for x in self.x]
        clamped = self.gates("--gate", "clamped", "--dt-limits", "0.5,2", "--output=both")
        self.close(clamped["log_decay"], [-f32(r * min(max(s, 0.5), 2)) for r, s in zip(self.rate, softplus)])
        self.assertEqual(self.gates("--gate", "clamped"), self.gates())
        self.assertEqual(self.gates("--gate", "clamped", "--dt-limits", "0,inf"), self.gates())
        linear = self.gates("--no-softplus", "--output=log-decay")
        self.assertEqual(linear["log_decay"], [-f32(r * x) for r, x in zip(self.rate, self.x)])

    def test_plain_lower_bound_needs_no_A_log(self):
        expected = self.gates("--gate", "plain-lower-bound", "--lower-bound", "-5")
        bias = layer("l.", dtypes=("F32", "F32"))["l.dt_bias"]
        alone = self.put("only", {"l.dt_bias": bias})
        options = ["--gate", "plain-lower-bound", "--lower-bound", "-5"]
        result = self.expect(self.rates(alone, self.a, *options), 0, "1 layer, 1 launch;", "gate plain-lower-bound -5")
        self.assertIn(" bf16 bf16 - f32 ", result.stdout)
        self.assertEqual({name[2:]: floats(t) for name, t in read(self.out).items()}, expected)
        for shape in ([4], [2, 2]):                               # heads from b; from dt_bias
            acts = self.put("c", {"l.a": spread("BF16", [5, 2, 2] if len(shape) == 2 else [5, 4], -8, 8), "l.b": spread("BF16", [5, shape[0]], -4, 4)})
            self.expect(self.rates(self.put("only", {"l.dt_bias": Tensor("F32", shape, data=bias.data)}), acts, *options), 0, "2x2" if len(shape) == 2 else "1 layer")
        self.expect(self.rates(alone, self.a), 2, "tensor l.dt_bias: there is no l.A_log beside it")

    def test_beta(self):
        b = floats(self.acts["l.b"])
        wide = [f32(1 / (1 + math.exp(-x))) for x in b]
        narrow = [struct.unpack("<f", b"\0\0" + struct.pack("<I", (v + 0x7FFF + (v >> 16 & 1)))[2:])[0] for v in (struct.unpack("<I", struct.pack("<f", x))[0] for x in wide)]
        for options, dtype, expected in (
            ([], "BF16", narrow), (["--beta-rounding", "float32"], "F32", wide), (["--beta-dtype", "float32"], "F32", narrow),
            (["--beta", "doubled"], "BF16", [2 * x for x in narrow]), (["--beta=doubled", "--beta-rounding=float32"], "F32", [2 * x for x in wide]),
            (["--beta", "raw"], "BF16", b), (["--beta", "raw", "--beta-dtype", "float32"], "F32", b),
            (["--beta-rounding", "bfloat16", "--beta-dtype", "bfloat16"], "BF16", narrow),
        ):
            with self.subTest(options=options):
                self.assertEqual(self.gates(*options)["beta"], expected)
                self.assertEqual(read(self.out)["l.beta"].dtype, dtype)

    def test_sum(self):
        weights = self.put("n", layer("l."))                      # a bias of bfloat16
        acts = self.put("b", {**self.acts, "l.a": Tensor("BF16", [5, 4], [7.0 + i / 32 for i in range(20)])})
        narrow = self.results(weights, acts)
        wide = self.results(weights, acts, "--sum", "float32")
        self.assertNotEqual(narrow["l.decay"], wide["l.decay"])
        same = self.put("f", layer("l.", dtypes=("F32", "F32")))
        self.assertEqual(self.results(same, acts), wide)
        self.assertEqual(self.results(weights, acts, "--sum=promoted"), narrow)

    def test_finite_rate(self):
        self.weights = weights = self.put("w", {"l.A_log": Tensor("F32", [4], [100] * 4), "l.dt_bias": Tensor("F32", [4], [-200] * 4)})
        result = self.expect(self.rates(weights, self.a), 0, "NaN: 0 of beta, 20 of decay")
        self.assertEqual(self.gates("--finite-rate")["decay"], [1.0] * 20)
        self.expect(self.rates(weights, self.a, "--output=log-decay"), 0, "20 of log decay")

    def test_stored_results(self):
        """What is stored is compared with the gates that are asked for, and judged by their formula."""
        for options in (["--output=both"], ["--gate=lower-bound", "--lower-bound=-5", "--output=both"], ["--gate=plain-lower-bound", "--lower-bound=-5", "--output=log-decay"],
                        ["--gate=clamped", "--dt-limits=0.25,1", "--output=both", "--sum=float32", "--beta=doubled", "--beta-rounding=float32"],
                        ["--no-softplus", "--output=log-decay", "--beta=raw"], ["--rate=negated", "--output=both", "--finite-rate"]):
            with self.subTest(options=options):
                self.expect(self.rates(self.weights, self.a, *options), 0)
                stored = {**self.acts, **read(self.out)}
                self.expect(self.rates(self.weights, self.put("s", stored), *options), 0, "No element differs")
                gate = "l.log_decay" if "l.log_decay" in stored else "l.decay"
                raw = bytearray(stored[gate].data)
                raw[4 * 7] ^= 1
                stored[gate].data = bytes(raw)
                result = self.expect(self.rates(self.weights, self.put("s", stored), *options), 0, "1 of 20", "log decay, up to 1 ulp")
                self.assertRegex(result.stdout, "gives this library's bits in 1;")
                self.assertNotIn("more than rounding explains", result.stdout)

    def test_wrong_usage(self):
        for options in (["--gate", "soft"], ["--lower-bound", "x"], ["--lower-bound", "5x"], ["--lower-bound="], ["--lower-bound", " -5"], ["--dt-limits", "1"], ["--dt-limits", "1,"],
                        ["--dt-limits", "1;2"], ["--dt-limits", "1,2,3"], ["--rate", "both"], ["--sum", "bfloat16"], ["--output", "beta"], ["--beta", "tanh"], ["--beta-rounding", "int8"],
                        ["--beta-dtype", "fp8"], ["--projection", "ab"], ["--key-heads", "0"], ["--key-heads", "x"], ["--head-map", "grouped"]):
            with self.subTest(options=options):
                result = self.expect(self.rates(self.weights, self.a, *options), 2)
                self.assertIn(options[0].split("=")[0], result.stderr)
        for options, part in (
            (["--gate", "lower-bound"], "lower_bound is 0; expected a finite float32 below 0"), (["--lower-bound", "-5"], "lower_bound is given, but the gate's kind is softplus"),
            (["--dt-limits", "1,2"], "is given, but the gate's kind is softplus"), (["--gate=clamped", "--dt-limits=2,1"], "interval_low is 2 and interval_high 1"),
            (["--gate=plain-lower-bound", "--lower-bound=-5", "--rate=negated"], "rate is given, but the gate's kind is plain lower bound"),
            (["--gate=lower-bound", "--lower-bound=nan"], "--lower-bound"), (["--gate=lower-bound", "--lower-bound=-inf"], "lower_bound is -inf"),
        ):
            with self.subTest(options=options):
                self.expect(self.rates(self.weights, self.a, *options), 2, part)
        self.only("w", "a")


class OnFakeGpu(GatesCase):
    """The views are made of copies in the device's memory."""

    @classmethod
    def setUpClass(cls):
        if not (FAKES / "libcuda.so.1").exists():
            raise unittest.SkipTest(f"no fake driver in {FAKES}")
        cls.kernels = tempfile.TemporaryDirectory(prefix="onelaunch-kernels-")
        cls.addClassCleanup(cls.kernels.cleanup)

    def test_equals_the_cpu(self):
        environment = dict(os.environ, LD_LIBRARY_PATH=str(FAKES), ONELAUNCH_NVRTC=str(FAKES / "libfake_nvrtc.so"), ONELAUNCH_CACHE=self.kernels.name, FAKE_CUDA_STRICT="1")
        weights, acts = layer("l.", heads=6), inputs("l.", (5, 6))
        ba = Tensor("BF16", [5, 12], data=b"".join(acts["l." + k].data[i : i + 6] for i in range(0, 60, 6) for k in "ba"))
        plain, projection = self.put("a", acts), self.put("p", {"l.ba": ba})
        path = self.put("w", weights)
        for activations, options in ((plain, ["--output=both", "--gate=lower-bound", "--lower-bound=-5", "--beta-rounding=float32"]),
                                     (projection, ["--projection=interleaved", "--key-heads=2", "--head-map=tiled"])):
            with self.subTest(options=options):
                expected = self.results(path, activations, *options)
                self.expect(run("rates", "-w", path, "-a", activations, "-o", self.out, "-d", "cuda", *options, env=environment), 0, "cuda:0", "bit for bit")
                self.assertEqual({name: (t.dtype, t.shape, t.data) for name, t in read(self.out).items()}, expected)


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.access(sys.argv[1], os.X_OK) and os.path.isfile(sys.argv[1]):
        test_cli.COMMAND = os.path.abspath(sys.argv.pop(1))
        if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
            FAKES = Path(os.path.abspath(sys.argv.pop(1)))
    unittest.main()
