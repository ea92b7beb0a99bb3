#!/usr/bin/env python3
"""Tests of `onelaunch step`.

    test_step.py [PATH_OF_ONELAUNCH [FOLDER_OF_THE_FAKES]] [unittest arguments]

Two sources of what transformers would have computed: the sample, which it did compute, and `decode` below, the formulas in Python's floats
with transformers' roundings, for other sizes, layouts and dtypes.
"""

import math
import os
import random
import re
import struct
import sys
import tempfile
import unittest
from pathlib import Path

import test_cli
from test_cli import ROOT, Case, Tensor, pack, read, run

FAKES = Path(os.environ.get("ONELAUNCH_FAKE_CUDA", ROOT / "build" / "fake_cuda"))
SAMPLE = ROOT / "sample"
P = "model.layers.{}.linear_attn."
RESULTS = ("core", "output", "state", "window")


# ---- Values


def rounder(dtype):
    """To float32, then to the dtype, as kernels do it."""
    if dtype == "F32":
        return lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
    if dtype == "F16":
        return lambda x: struct.unpack("<e", struct.pack("<e", struct.unpack("<f", struct.pack("<f", x))[0]))[0]

    def bfloat16(x):
        (bits,) = struct.unpack("<I", struct.pack("<f", x))
        return struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]

    return bfloat16


def floats(tensor):
    if tensor.dtype == "BF16":
        return [struct.unpack("<f", b"\0\0" + tensor.data[i : i + 2])[0] for i in range(0, len(tensor.data), 2)]
    kind = {"F32": "f", "F16": "e"}[tensor.dtype]
    return list(struct.unpack(f"<{len(tensor.data) // test_cli.SIZES[tensor.dtype]}{kind}", tensor.data))


def changed(tensor, index, change):
    """The tensor with one value made another one."""
    values = floats(tensor)
    values[index] = change(values[index])
    return Tensor(tensor.dtype, tensor.shape, values)


def where(tensor, key=abs):
    values = floats(tensor)
    return max(range(len(values)), key=lambda i: key(values[i]))


def contents(path):
    return {name: (t.dtype, t.shape, t.data) for name, t in read(path).items()}


# ---- The formulas once more


class Layer:
    """A layer of random weights and inputs, and what comes of them. Grouped heads, as transformers has them."""

    def __init__(self, seed, HK=2, HV=4, K=8, V=6, W=4, T=11, dtype="BF16", norm_dtype="BF16", bias_dtype="F32", eps=1e-6):
        self.sizes = HK, HV, K, V, W, T
        rng = random.Random(seed)
        self.dtype, r = dtype, rounder(dtype)

        def numbers(kind, shape, low, high):
            to = rounder(kind)
            return Tensor(kind, shape, [to(rng.uniform(low, high)) for _ in range(test_cli.count(shape))])

        C = 2 * HK * K + HV * V
        self.A_log, self.dt_bias = numbers("F32", [HV], -3, 2), numbers(bias_dtype, [HV], -5, -1)
        self.conv, self.norm = numbers(dtype, [C, 1, W], -1, 1), numbers(norm_dtype, [V], 0.5, 1.5)
        self.qkv, self.z = numbers(dtype, [1, T, C], -2, 2), numbers(dtype, [1, T, HV * V], -2, 2)
        self.a, self.b = numbers(dtype, [1, T, HV], -2, 4), numbers(dtype, [1, T, HV], -3, 3)
        self.decode(r, norm_dtype == dtype, eps)

    def decode(self, r, weight_is_rounded, eps):
        HK, HV, K, V, W, T = self.sizes
        C, silu = 2 * HK * K + HV * V, lambda x: x / (1 + math.exp(-x))
        x, w, z, norm = floats(self.qkv), floats(self.conv), floats(self.z), floats(self.norm)
        a, b, A_log, dt_bias = floats(self.a), floats(self.b), floats(self.A_log), floats(self.dt_bias)
        state = [[[0.0] * V for _ in range(K)] for _ in range(HV)]
        core, output = [], []
        for t in range(T):
            past = [x[(t - W + 1 + i) * C : (t - W + 2 + i) * C] if t - W + 1 + i >= 0 else [0.0] * C for i in range(W)]
            y = [r(silu(r(sum(past[i][c] * w[c * W + i] for i in range(W))))) for c in range(C)]
            for h in range(HV):
                g = h // (HV // HK)
                q, k = ([v / math.sqrt(sum(u * u for u in part) + 1e-6) for v in part] for part in (y[g * K : (g + 1) * K], y[(HK + g) * K : (HK + g + 1) * K]))
                v, s = y[2 * HK * K + h * V : 2 * HK * K + (h + 1) * V], state[h]
                beta = r(1 / (1 + math.exp(-b[t * HV + h])))
                decay = math.exp(-math.exp(A_log[h]) * math.log1p(math.exp(a[t * HV + h] + dt_bias[h])))
                o = []
                for j in range(V):
                    for i in range(K):
                        s[i][j] *= decay
                    u = beta * (v[j] - sum(s[i][j] * k[i] for i in range(K)))
                    for i in range(K):
                        s[i][j] += k[i] * u
                    o.append(r(sum(s[i][j] * q[i] for i in range(K)) / math.sqrt(K)))
                core += o
                mean = sum(u * u for u in o) / V
                for j in range(V):
                    n = r(o[j] / math.sqrt(mean + eps)) * norm[j]
                    output.append(r((r(n) if weight_is_rounded else n) * silu(z[(t * HV + h) * V + j])))
        self.core, self.output = (Tensor(self.dtype, [1, T, HV, V], values) for values in (core, output))
        self.state = Tensor("F32", [1, HV, K, V], [s for head in state for row in head for s in row])
        self.window = Tensor(self.dtype, [1, C, W], [past[i][c] for c in range(C) for i in range(W)])

    def weights(self, prefix="l."):
        return {f"{prefix}A_log": self.A_log, f"{prefix}dt_bias": self.dt_bias, f"{prefix}conv1d.weight": self.conv, f"{prefix}norm.weight": self.norm}

    def activations(self, prefix="l.", interleaved=False):
        """q, k and v in one and z in another, as Qwen3.5 projects them, or all in one, key head by key head, as Qwen3-Next does."""
        HK, HV, K, V, _, T = self.sizes
        named = {"qkv": self.qkv, "z": self.z}
        if interleaved:
            R, rows = HV // HK * V, []
            x, z = floats(self.qkv), floats(self.z)
            for t in range(T):
                row, gate = x[t * (2 * HK * K + HV * V) :], z[t * HV * V :]
                for g in range(HK):
                    rows += row[g * K : (g + 1) * K] + row[(HK + g) * K : (HK + g + 1) * K] + row[2 * HK * K + g * R : 2 * HK * K + (g + 1) * R] + gate[g * R : (g + 1) * R]
            named = {"qkvz": Tensor(self.dtype, [1, T, 2 * HK * K + 2 * HV * V], rows)}
        named.update(a=self.a, b=self.b, **{name: getattr(self, name) for name in RESULTS})
        return {prefix + name: tensor for name, tensor in named.items()}


class StepCase(Case):
    def step(self, weights, activations, *options):
        self.out = self.folder / "out.safetensors"
        return run("step", "--weights", weights, "--activations", activations, "--out", self.out, *options)

    def passes(self, weights, activations, *options):
        result = self.expect(self.step(weights, activations, *options), 0, "within the noise of rounding", "written")
        for line in result.stdout.splitlines()[:-1]:
            self.assertLessEqual(len(line), 100, line)
        return result

    def misses(self, weights, activations, *parts, options=()):
        """Exit code 1, and what was at --out before is still there."""
        (self.folder / "out.safetensors").write_text("before")
        result = self.expect(self.step(weights, activations, *options), 1, *parts)
        self.assertRegex(result.stderr, "onelaunch step: of [0-9]+ layers?, .*; nothing was written\n")
        self.assertEqual(self.out.read_text(), "before")
        return result

    def refused(self, weights, activations, *parts, options=()):
        (self.folder / "out.safetensors").write_text("before")
        result = self.expect(self.step(weights, activations, *options), 2)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertTrue(result.stderr.startswith("onelaunch step: "), result.stderr)
        self.assertEqual((self.out.read_text(), result.stdout), ("before", ""))
        return result


# ---- The sample


class Sample(StepCase):
    @classmethod
    def setUpClass(cls):
        cls.recorded = read(SAMPLE / "steps.safetensors")
        cls.checkpoint = {}
        for shard in (SAMPLE / "model").glob("*.safetensors"):
            cls.checkpoint.update(read(shard))

    def one_layer(self, number, weights=None, activations=None):
        """Files of one layer of the sample, with some tensors changed."""
        prefix = P.format(number)
        kept = [{n: t for n, t in all.items() if n.startswith(prefix)} for all in (self.checkpoint, self.recorded)]
        for tensors, changes in zip(kept, (weights or {}, activations or {})):
            for name, change in changes.items():
                tensors[prefix + name] = change(tensors[prefix + name])
        return self.put("w", kept[0]), self.put("a", kept[1])

    def test_transformers(self):
        """Every layer, every result; and by more than the command's own word."""
        result = self.passes(SAMPLE / "model", SAMPLE / "steps.safetensors")
        self.assertIn("3 layers, within the noise of rounding; one launch a call, the same bits in calls of any length; ", result.stdout)
        rows = re.findall(r"^ +(\d) (core|output|state|window) .* (within|equal)$", result.stdout, re.M)
        self.assertEqual(rows, [(str(layer), what, "equal" if what == "window" else "within") for layer in range(3) for what in RESULTS])
        times = re.findall(r"^ +(\d)((?: +\d+){4}) +1 +yes$", result.stdout, re.M)
        self.assertEqual([layer for layer, _ in times], ["0", "1", "2"])
        self.assertTrue(all(int(ns) > 0 for _, row in times for ns in row.split()), times)
        ours = contents(self.out)
        self.assertEqual(set(ours), {P.format(layer) + what for layer in range(3) for what in RESULTS})
        for name, (dtype, shape, data) in ours.items():
            theirs = self.recorded[name]
            self.assertEqual((dtype, shape), (theirs.dtype, theirs.shape))
            if name.endswith("window"):
                self.assertEqual(data, theirs.data)
            elif dtype == "BF16":                                # 4 of 12,288 at most were seen to differ
                self.assertLess(sum(data[i : i + 2] != theirs.data[i : i + 2] for i in range(0, len(data), 2)), 12)
            else:
                self.assertLess(max(abs(x - y) for x, y in zip(floats(Tensor(dtype, shape, data=data)), floats(theirs))), 1e-5)

    def test_same_bits_everywhere(self):
        """Levels, threads, calls; and core with the step alone."""
        self.passes(SAMPLE / "model", SAMPLE / "steps.safetensors", "--tokens-per-call", "3,7,95,96,1000,100000")
        expected = contents(self.out)
        levels = re.findall(r"^cpu +(\w+) +yes", run("devices").stdout, re.M)
        self.assertGreaterEqual(len(levels), 1)
        for options in [["--device", f"cpu:{level}"] for level in levels] + [["--threads", "1"], ["--threads", "5"]]:
            with self.subTest(options=options):
                self.passes(SAMPLE / "model", SAMPLE / "steps.safetensors", "--tokens-per-call=5", *options)
                self.assertEqual(contents(self.out), expected)
        result = self.passes(SAMPLE / "model", SAMPLE / "steps.safetensors", "--part", "step")
        self.assertIn(", step: the recurrence", result.stdout)
        self.assertEqual(contents(self.out), {name: value for name, value in expected.items() if name.endswith(("core", "state"))})

    def test_selection(self):
        result = self.passes(SAMPLE / "model", SAMPLE / "steps.safetensors", "--layer", "1")
        self.assertIn("1 layer, within", result.stdout)
        self.assertEqual(set(contents(self.out)), {P.format(1) + what for what in RESULTS})
        self.passes(SAMPLE / "model", SAMPLE / "steps.safetensors", "--match", "*.[02].*")
        self.assertEqual({name.split(".")[2] for name in contents(self.out)}, {"0", "2"})
        self.refused(SAMPLE / "model", SAMPLE / "steps.safetensors", "is selected; those there are have the layer numbers 0, 1, 2", options=["--layer", "3"])

    def test_without_out(self):
        result = self.expect(run("step", "-w", SAMPLE / "model", "-a", SAMPLE / "steps.safetensors", "-l", "0"), 0, "1 layer, within the noise")
        self.assertNotIn("written", result.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_narrow_states(self):
        """They are within the noise as well; other calls may give other bits, and here do."""
        for dtype, stored in (("bfloat16", "BF16"), ("float16", "F16")):
            with self.subTest(dtype=dtype):
                result = self.passes(SAMPLE / "model", SAMPLE / "steps.safetensors", "--state-dtype", dtype, "--tokens-per-call=1,96")
                self.assertIn(f"A {dtype} state is rounded at the end of each call", result.stdout)
                self.assertNotIn("the same bits in calls", result.stdout)
                self.assertEqual(len(re.findall(r" 1 +no$", result.stdout, re.M)), 3)
                self.assertEqual(contents(self.out)[P.format(0) + "state"][0], stored)
                result = self.passes(SAMPLE / "model", SAMPLE / "steps.safetensors", "--state-dtype", dtype, "--tokens-per-call=96")
                self.assertEqual(len(re.findall(r" 1 +yes$", result.stdout, re.M)), 3)
        self.assertIn("state float32", self.passes(SAMPLE / "model", SAMPLE / "steps.safetensors", "--state-dtype", "float32").stdout)

    def test_changed_results(self):
        """One value of one result, by little."""
        negated, one = (lambda x: -x), lambda name, change: {name: change}
        largest = lambda change: lambda tensor: changed(tensor, where(tensor), change)
        for name, change, row in (
            ("output", negated, "0 output"), ("core", negated, "0 core"), ("state", negated, "0 state"), ("output", lambda x: x * 1.0625, "0 output"),
            ("core", lambda x: x * 1.0625, "0 core"), ("state", lambda x: x * 1.0625, "0 state"), ("window", lambda x: x * 1.0078125, "0 window"),
        ):
            with self.subTest(name=name):
                result = self.misses(*self.one_layer(0, activations=one(name, largest(change))), "of 1 layers, 1 are not within the noise of rounding, 0 have")
                bad = re.findall(r"^ +(\d \w+) .* (?:BEYOND|DIFFERS)$", result.stdout, re.M)
                self.assertEqual(bad, [row])

    def test_changed_inputs(self):
        """Another input than the results were made of: what was recorded is then far from the formulas, too."""
        of_v = 2 * 8                                             # of the first token's first key head
        other = "what was recorded is farther from the formulas than rounding explains"
        for weights, activations in (
            ({}, {"qkvz": lambda t: Tensor(t.dtype, t.shape, [-x for x in floats(t)])}),
            ({}, {"b": lambda t: Tensor(t.dtype, t.shape, [-x for x in floats(t)])}),
            ({"A_log": lambda t: Tensor(t.dtype, t.shape, [x + 0.25 for x in floats(t)])}, {}),
            ({"norm.weight": lambda t: Tensor(t.dtype, t.shape, [2 * x for x in floats(t)])}, {}),
            ({"conv1d.weight": lambda t: Tensor(t.dtype, t.shape, floats(t)[::-1])}, {}),
        ):
            with self.subTest(changed=[*weights, *activations]):
                self.misses(*self.one_layer(2, weights, activations), "BEYOND", other)
        for name, change in (("qkvz", lambda t: changed(t, of_v, lambda x: x + 2)), ("a", lambda t: changed(t, 40, lambda x: x + 4)), ("b", lambda t: changed(t, 40, lambda x: x + 4))):
            with self.subTest(changed=name):
                self.misses(*self.one_layer(2, activations={name: change}), "BEYOND")
        self.misses(SAMPLE / "model", SAMPLE / "steps.safetensors", "3 are not within the noise", other, options=["--epsilon", "1e-3"])
        swapped = {P.format(0) + n[len(P.format(0)) :] if n.startswith(P.format(1)) else P.format(1) + n[len(P.format(1)) :]: t
                   for n, t in self.recorded.items() if not n.startswith(P.format(2))}
        self.misses(SAMPLE / "model", self.put("swapped", swapped), "of 2 layers, 2 are not", options=["--match", "*.[01].*"])

    def test_not_finite(self):
        for number, value in ((0, math.nan), (1, math.inf), (2, -math.inf)):
            put = lambda index: lambda t: changed(t, index, lambda _: value)
            names = ("qkvz", "core", "output", "state")
            for name in names + (("a", "b") if value != value else ()):      # an infinite gate is a beta of 1, a decay of 0
                with self.subTest(name=name, value=value):
                    result = self.misses(*self.one_layer(number, activations={name: put(100)}), "are infinite or NaN", "NOT FINITE")
                    self.assertNotIn("layer, within the noise", result.stdout)
        for name in ("A_log", "dt_bias", "conv1d.weight", "norm.weight"):
            with self.subTest(name=name):
                self.misses(*self.one_layer(0, {name: lambda t: changed(t, 3, lambda _: math.nan)}), "NOT FINITE")
        self.misses(*self.one_layer(0, activations={"window": lambda t: changed(t, 3, lambda _: math.nan)}), "DIFFERS")


# ---- Other layers


class Layers(StepCase):
    def test_sizes(self):
        """Geometries, widths, dtypes; projections in one and in two."""
        for number, sizes in enumerate((
            dict(), dict(HK=1, HV=1, K=1, V=1, T=3), dict(HK=1, HV=4, K=16, V=3, W=2), dict(HK=3, HV=3, K=5, V=40, W=3, T=6), dict(HK=2, HV=6, K=33, V=17, T=5),
            dict(dtype="F16", norm_dtype="F16"), dict(norm_dtype="F32", bias_dtype="BF16"), dict(T=1), dict(dtype="F16", norm_dtype="F32", W=2),
        )):
            for interleaved in (False, True):
                with self.subTest(sizes=sizes, interleaved=interleaved):
                    layer = Layer(number, **sizes)
                    result = self.passes(self.put("w", layer.weights()), self.put("a", layer.activations(interleaved=interleaved)))
                    HK, HV, K, V, W, T = layer.sizes
                    self.assertIn(f"{HK} key heads of {K}, {HV} value heads of {V}, convolution of {W}, ", result.stdout)
                    self.assertIn(f" all {T} ", result.stdout)
                    ours = contents(self.out)
                    if interleaved:
                        self.assertEqual(ours, in_two)
                    in_two = ours
                    self.assertEqual(ours["l.window"], (layer.dtype, layer.window.shape, layer.window.data))
                    for name in ("core", "output"):              # the same roundings: sums on either side of a tie are few
                        data, theirs = ours["l." + name][2], getattr(layer, name).data
                        n_differ = sum(data[i : i + 2] != theirs[i : i + 2] for i in range(0, len(data), 2))
                        self.assertLessEqual(n_differ, 1 + len(data) // 2 // 50, name)

    def test_noise(self):
        """Values as far as the largest noise of their heads: none is too far, but all together are. An eighth as far, they are not."""
        spacing = lambda x: 2.0 ** (math.floor(math.log2(x)) - 7)
        layer, exact = Layer(13, T=20, V=8), Layer(13, T=20, V=8)
        exact.dtype = "F32"
        exact.decode(lambda x: x, False, 1e-6)
        for name in ("core", "output"):
            theirs, formula = floats(getattr(layer, name)), floats(getattr(exact, name))
            for part, verdict in ((1, "BEYOND"), (0.125, "within")):
                values = []
                for at in range(0, len(theirs), 8):
                    rounded, e = theirs[at : at + 8], formula[at : at + 8]
                    units = [spacing(max(abs(x), math.sqrt(sum(y * y for y in e) / 8))) for x in e]
                    noise = max(abs(x - y) / unit for x, y, unit in zip(rounded, e, units))
                    values += [rounder("BF16")(x + part * noise * unit) for x, unit in zip(rounded, units)]
                files = self.put("w", layer.weights()), self.put("a", {**layer.activations(), "l." + name: Tensor("BF16", [1, 20, 4, 8], values)})
                with self.subTest(name=name, verdict=verdict):
                    result = (self.misses if verdict == "BEYOND" else self.passes)(*files)
                    worst, said = re.search(rf"- {name} .* (\S+)  (\w+)$", result.stdout, re.M).groups()
                    self.assertEqual(said, verdict)
                    self.assertLess(float(worst), 1)

    def test_epsilon(self):
        layer = Layer(1, eps=1e-2)
        files = self.put("w", layer.weights()), self.put("a", layer.activations())
        self.passes(*files, "--epsilon", "0.01")
        self.misses(*files, "BEYOND")

    def test_names(self):
        """Without a number; more than one of a number; other words for the projections; shapes without the axis of the batch."""
        layer = Layer(2)
        result = self.passes(self.put("w", layer.weights("mix.")), self.put("a", layer.activations("mix.")))
        self.assertIn("\nmix.\n    - core", result.stdout)
        acts = {n.replace("l.qkv", "l.in_proj_qkv").replace("l.z", "l.in_proj_z"): t for n, t in layer.activations().items()}
        self.passes(self.put("w", layer.weights()), self.put("a", acts))
        acts = {n: Tensor(t.dtype, t.shape[1:] if n != "l.window" else t.shape, data=t.data) for n, t in layer.activations().items()}
        self.passes(self.put("w", layer.weights()), self.put("a", acts))
        self.assertEqual(contents(self.out)["l.core"][1], [11, 4, 6])

    def test_results_that_are_not_there(self):
        layer = Layer(3)
        weights, acts = self.put("w", layer.weights()), layer.activations()
        self.passes(weights, self.put("a", acts))
        expected = contents(self.out)
        some = {n: t for n, t in acts.items() if n not in ("l.core", "l.window")}
        result = self.passes(weights, self.put("a", some))
        self.assertNotRegex(result.stdout, "- (core|window) ")
        self.assertEqual({n: (d, b) for n, (d, _, b) in contents(self.out).items()}, {n: (d, b) for n, (d, _, b) in expected.items()})
        some.pop("l.state")
        self.refused(weights, self.put("a", some), "16 channels for keys may be any number of heads", "no l.state to tell; give --key-heads")
        self.passes(weights, self.put("a", some), "--key-heads", "2")
        self.assertEqual(contents(self.out)["l.output"], expected["l.output"])
        self.misses(weights, self.put("a", some), "BEYOND", options=["--key-heads", "4"])            # q and k of 4
        some.pop("l.output")
        self.refused(weights, self.put("a", some), "tensor l.output: not in this file", options=["--key-heads", "2"])
        self.refused(weights, self.put("a", some), "tensor l.core: not in this file", options=["--key-heads", "2", "--part=step"])
        some["l.core"] = acts["l.core"]
        self.passes(weights, self.put("a", some), "--key-heads", "2", "--part=step")

    def test_missing(self):
        layer = Layer(4)
        for name in layer.weights():
            with self.subTest(name=name):
                self.refused(self.put("w", {n: t for n, t in layer.weights().items() if n != name}), self.put("a", layer.activations()), name.replace("dt_bias", "A_log"))
        for name in ("l.a", "l.b", "l.qkv", "l.z", "l.output"):
            with self.subTest(name=name):
                acts = {n: t for n, t in layer.activations().items() if n != name}
                said = "l.qkvz" if name == "l.qkv" else name
                self.refused(self.put("w", layer.weights()), self.put("a", acts), f"a: tensor {said}: not in this file, needed for l.A_log")

    def test_shapes(self):
        layer = Layer(5)
        HK, HV, K, V, W, T = layer.sizes
        C = 2 * HK * K + HV * V
        of = lambda dtype, shape: Tensor(dtype, shape, [0] * test_cli.count(shape))
        for name, tensor, said in (
            ("norm.weight", of("BF16", [1, V]), "shape [1, 6], expected [value_dim]"), ("norm.weight", of("BF16", [257]), "shape [257], expected [value_dim], from 1 to 256"),
            ("norm.weight", of("BF16", [V + 1]), "expected [1, 4, key_dim, 7], the value heads of A_log and the value_dim of norm.weight"),
            ("norm.weight", of("BF16", [16]), "56 channels"), ("norm.weight", of("I32", [V]), "dtype I32"),
            ("conv1d.weight", of("BF16", [C, 2, W]), f"shape [{C}, 2, 4], expected [channels, 1, width]"), ("conv1d.weight", of("BF16", [C, 1, 5]), "a width from 2 to 4"),
            ("conv1d.weight", of("BF16", [C, 1, 1]), "a width from 2 to 4"), ("conv1d.weight", of("BF16", [C]), "expected [channels, 1, width]"),
            ("conv1d.weight", of("BF16", [C + 1, 1, W]), "57 channels do not hold q, k and v of 4 value heads of 6"),
            ("conv1d.weight", of("BF16", [C + 2, 1, W]), "17 channels for keys are not those of 2 key heads of 8"),
            ("conv1d.weight", of("BF16", [20, 1, W]), "20 channels do not hold"), ("conv1d.bias", of("BF16", [C]), "knows no convolutions with a bias"),
            ("dt_bias", of("F32", [HV, 3]), "a decay for each channel"), ("A_log", of("F32", [HV + 1]), "does not fit the 5 heads"),
        ):
            with self.subTest(name=name, shape=tensor.shape):
                self.refused(self.put("w", {**layer.weights(), "l." + name: tensor}),
                             self.put("a", {**layer.activations(), **({"l.a": of("BF16", [1, T, HV, 3])} if "channel" in said and name == "dt_bias" else {})}), "tensor l.", said)
        for name, tensor, said in (
            ("qkv", of("BF16", [1, T, C - 1]), f"expected [1, {T}, {C}]"), ("qkv", of("BF16", [1, T - 1, C]), "the tokens of a and b"), ("qkv", of("F32", [1, T, C]), "dtype F32, expected BF16 or F16"),
            ("qkvz", of("BF16", [1, T, C]), f"expected [1, {T}, {C + HV * V}]"), ("qkv", of("BF16", [C, T]), f"shape [{C}, 11], expected"), ("z", of("BF16", [1, T, V]), f"expected [1, {T}, 24]"),
            ("qkv", of("U8", [1, T, C]), "dtype U8"), ("a", of("BF16", [1, T + 1, HV]), "has 12 tokens"), ("output", of("BF16", [1, T, HV, V + 1]), f"expected [1, {T}, 24]"),
            ("output", of("F32", [1, T, HV, V]), "dtype F32, expected BF16, that of q, k and v"), ("core", of("BF16", [T, V]), "expected"), ("core", of("I32", [1, T, HV, V]), "dtype I32"),
            ("state", of("F32", [1, HV, V, K]), "expected [1, 4, key_dim, 6]"), ("state", of("F32", [HV * K * V]), "expected [1, 4"), ("state", of("F32", [2, HV, K, V]), "expected [1, 4"),
            ("state", of("I32", [1, HV, K, V]), "dtype I32"), ("window", of("BF16", [1, C, W - 1]), f"expected [1, {C}, 4]"), ("window", of("BF16", [1, W, C]), f"expected [1, {C}, 4]"),
            ("window", of("F32", [1, C, W]), "dtype F32, expected BF16"),
        ):
            with self.subTest(name=name, shape=tensor.shape, dtype=tensor.dtype):
                self.refused(self.put("w", layer.weights()), self.put("a", {**layer.activations(), "l." + name: tensor}), "tensor l." + name, said)

    def test_two_sequences(self):
        """A batch is not one sequence, whatever its elements would fit into."""
        layer = Layer(6, T=12)
        acts = {n: Tensor(t.dtype, [2, 6] + t.shape[2:], data=t.data) if n[2:] in ("a", "b", "qkv", "z") else t for n, t in layer.activations().items()}
        for name in ("l.qkv", "l.z", "l.a", "l.b"):
            with self.subTest(name=name):
                self.refused(self.put("w", layer.weights()), self.put("a", {**layer.activations(), name: acts[name]}), f"tensor {name}: shape [2, 6, ", "one sequence")

    def test_gguf_names(self):
        layer = Layer(7)
        weights = {n.replace("A_log", "ssm_a").replace("dt_bias", "ssm_dt.bias"): t for n, t in layer.weights().items()}
        self.refused(self.put("w", weights), self.put("a", layer.activations()), "tensor l.ssm_a: a rate as GGUF files store it")

    def test_out(self):
        layer = Layer(8)
        weights, acts = self.put("w", layer.weights()), self.put("a", layer.activations())
        for path in (weights, acts):
            self.expect(run("step", "-w", weights, "-a", acts, "-o", path), 2, "is also an input")
        self.expect(run("step", "-w", weights, "-a", acts, "-o", self.folder / "no" / "out"), 1, "onelaunch step: ")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a", "w"])

    def test_hostile_names(self):
        layer = Layer(9)
        result = self.passes(self.put("w", layer.weights("\x1b[31m.")), self.put("a", layer.activations("\x1b[31m.")))
        self.assertNotIn("\x1b", result.stdout + result.stderr)

    def test_misaligned(self):
        """Data that starts at an odd address."""
        layer = Layer(10)
        self.passes(self.put("w", layer.weights()), self.put("a", layer.activations()))
        expected = contents(self.out)
        self.passes(self.put("w", layer.weights(), pad=1), self.put("a", layer.activations(), pad=3))
        self.assertEqual(contents(self.out), expected)

    def test_usage(self):
        layer = Layer(11)
        files = ["-w", self.put("w", layer.weights()), "-a", self.put("a", layer.activations())]
        for option in ("--tokens-per-call=0", "--tokens-per-call=", "--tokens-per-call=1,", "--tokens-per-call=1,,2", "--tokens-per-call=1,2,3,4,5,6,7", "--tokens-per-call=-1",
                       "--tokens-per-call=1x", "--tokens-per-call=" + "1" * 40, "--part=all", "--part=", "--state-dtype=float64", "--state-dtype=int8", "--state-dtype=", "--key-heads=0",
                       "--key-heads=x", "--epsilon=0", "--epsilon=-1", "--epsilon=nan", "--epsilon=inf", "--epsilon=1e-6x", "--epsilon=2", "--epsilon=", "--layer=-1", "--threads=0", "stray",
                       "--device=abacus", "--device=cpu:abacus", "--key-heads=3"):
            with self.subTest(option=option):
                result = self.expect(run("step", *files, option), 2)
                self.assertTrue(result.stderr.startswith("onelaunch step: "), result.stderr)
                self.assertEqual(result.stdout, "")
        self.expect(run("step"), 2, "--weights and --activations are needed")
        self.expect(run("step", *files[:2]), 2, "--weights and --activations are needed")
        self.expect(run("step", "--help"), 0, "--tokens-per-call", "--state-dtype", "--part", "--epsilon", "qkvz")
        self.expect(run("step", "-w", self.folder / "none", "-a", files[3]), 2, "none")
        self.expect(run("step", "-w", files[1], "-a", self.text("text", "not a file of tensors")), 2, "text")


# ---- On the fake driver, which ends the process with code 99 if it was used wrongly or something was left in it


class Gpu(StepCase):
    @classmethod
    def setUpClass(cls):
        if not (FAKES / "libcuda.so.1").exists():
            raise unittest.SkipTest(f"no fake driver in {FAKES}")

    def test_bits_of_the_cpu(self):
        layer = Layer(12, T=5)
        weights, acts = self.put("w", layer.weights()), self.put("a", layer.activations(interleaved=True))
        with tempfile.TemporaryDirectory(prefix="onelaunch-kernels-") as kernels:
            variables = {"LD_LIBRARY_PATH": str(FAKES), "ONELAUNCH_NVRTC": str(FAKES / "libfake_nvrtc.so"), "FAKE_CUDA_STRICT": "1", "ONELAUNCH_CACHE": kernels}
            for part in ("step", "mixer"):
                with self.subTest(part=part):
                    self.passes(weights, acts, "--part", part)
                    expected = contents(self.out)
                    self.out.unlink()
                    result = run("step", "-w", weights, "-a", acts, "-o", self.out, "-d", "cuda", "--part", part, "--tokens-per-call=1,2", env={**os.environ, **variables})
                    self.expect(result, 0, "cuda:0", "within the noise of rounding; one launch a call, the same bits in calls of any length")
                    self.assertEqual(contents(self.out), expected)


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.access(sys.argv[1], os.X_OK) and os.path.isfile(sys.argv[1]):
        test_cli.COMMAND = os.path.abspath(sys.argv.pop(1))
        if len(sys.argv) > 1 and os.path.isdir(sys.argv[1]):
            FAKES = Path(os.path.abspath(sys.argv.pop(1)))
    unittest.main()
