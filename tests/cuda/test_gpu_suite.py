#!/usr/bin/env python3
"""Tests of the GPU suite, gpu_suite.py, on the fake driver: exit codes, the last line, the report; also where steps fail, do not end,
are skipped or are not reached.

    test_gpu_suite.py [PATH_OF_ONELAUNCH] [unittest arguments]

The fakes are those beside the command (fake_cuda); kernels are shared by the tests, in ONELAUNCH_CACHE where it is set.
Test programs and compute-sanitizer are shell scripts here that print what the real ones would."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
COMMAND = HERE.parents[1] / "build" / "onelaunch"

SANITIZER = """
case "$*" in
*racecheck*seed\\ 1*) echo "========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)"; exit 99 ;;
*racecheck*) echo "2 graphs of 9 nodes: all bits equal"; echo "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)" ;;
*initcheck*) echo "========= ERROR SUMMARY: 0 errors" ;;
*) echo "2 graphs of 9 nodes: all bits equal"; echo "========= ERROR SUMMARY: 0 errors" ;;
esac"""


class Suite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        fakes = Path(COMMAND).parent / "fake_cuda"
        if not (fakes / "libcuda.so.1").exists():
            raise unittest.SkipTest(f"no fake driver in {fakes}")
        kernels = tempfile.TemporaryDirectory(prefix="onelaunch-kernels-")
        cls.addClassCleanup(kernels.cleanup)
        cls.environment = {"ONELAUNCH_CACHE": kernels.name, **os.environ, "LD_LIBRARY_PATH": str(fakes),
                           "ONELAUNCH_NVRTC": str(fakes / "libfake_nvrtc.so")}

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="onelaunch-gpu-suite-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.build, self.golden, self.report = self.folder / "build", self.folder / "golden", self.folder / "out" / "report.md"
        self.build.mkdir()
        self.golden.mkdir()
        (self.build / "onelaunch").symlink_to(COMMAND)

    def program(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)

    def cases(self, *rows):
        (self.golden / "few.tsv").write_text("".join(row + "\n" for row in rows))

    def command(self, *arguments):
        return [sys.executable, HERE / "gpu_suite.py", "--build", self.build, "--golden", self.golden, "--out", self.report,
                *map(str, arguments)]

    def run_suite(self, *arguments, **environment):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=300,
                              env={**self.environment, **environment})

    def expect(self, result, code, last):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stdout.splitlines()[-1], last, result.stdout)
        page = self.report.read_text()
        self.assertIn(f"**{last}.** ", page)
        self.assertNotIn(str(self.folder), page)
        self.assertNotIn("HAS NOT ENDED", page)
        return page

    def test_all_passes(self):
        golden = (GOLDEN / "unary.tsv").read_text().splitlines()
        self.cases(*[row for row in golden if row.startswith("exp float32 ")][:50])
        page = self.expect(self.run_suite("--only", "parity,golden", "--graphs", 2, "--seeds", 2, "--budget", 250, "--commit", "abc1234"), 0,
                           "54 passed, 0 failed, 0 skipped")
        self.assertRegex(page, r"(?m)^\| GPU \| Fake GPU 0, .*, sm_90, cuda:0 \|$")
        self.assertIn("| driver | the fake one, serves CUDA 13.0 |\n| NVRTC | 13.0 |\n", page)
        self.assertRegex(page, r"(?m)^\| onelaunch \| \d[\d.]*, commit abc1234 \|$")
        self.assertIn("not the results of a GPU", page)
        self.assertIn("## Failed\n\nNothing that ran.\n", page)
        self.assertRegex(page, r"\n\| parity \| graphs \| 4 \| 0 \| 0 \| 0 \| [\d.]+ \|\n\| golden \| cases \| 50 \| 0 \| 0 \| 0 \| ")
        self.assertRegex(page, r"\n\| parity, seed 2 \| `build/onelaunch parity --device cuda:0 --seed 2 --graphs 2` \| 2 \| 0 \| 0 \| [\d.]+ \| passed \|\n")
        self.assertRegex(page, r"\n\| check few.tsv \| `build/onelaunch check --device cuda:0 tests/golden/few.tsv` \| 50 \| 0 \| ")
        for section in ("tests", "sample", "sanitizer", "digests", "bench"):
            self.assertIn(f"\n- {section}: not asked for\n", page)
            self.assertNotRegex(page, rf"(?m)^\| {section} \|.*\d")

    def test_layers_of_the_sample(self):
        page = self.expect(self.run_suite("--only", "sample"), 0, "6 passed, 0 failed, 0 skipped")
        self.assertRegex(page, r"\n\| sample \| layers \| 6 \| 0 \| 0 \| 0 \| ")
        self.expect(self.run_suite("--only", "sample", FAKE_CUDA_FAIL="cuLaunchKernelEx:1:1"), 1, "3 passed, 1 failed, 0 skipped")

    def test_a_planted_case_fails(self):
        self.cases("exp float32 00000000 float32 3f800000", "exp float32 00000000 float32 3f800001")
        page = self.expect(self.run_suite("--only", "golden"), 1, "1 passed, 1 failed, 0 skipped")
        failed = page[page.index("## Failed") : page.index("## Skipped")]
        self.assertIn("### check few.tsv\n\n`build/onelaunch check --device cuda:0 tests/golden/few.tsv`: failed\n\n```\n", failed)
        self.assertIn("3f800001", failed)
        self.assertIn("\n1 passed, 1 failed\n```\n", failed)

    def test_test_programs(self):
        """Failing tests, a crash, one that does not end, one without a count, one that finds no work, and one that only skips."""
        run, ok = "[ RUN      ] {0}", "[       OK ] {0}"
        failed, skipped = "[  FAILED  ] {0}", "[  SKIPPED ] {0}"
        say = lambda *lines: "\n".join(f"echo '{line.format(name)}'" for name, line in lines)
        summary = lambda name, line, n: [(f"{n} test(s), listed below:", line), (name, line)]
        self.program("build/driver_rules", "echo '29 cases, 2 differ'; exit 1")
        self.program("build/test_cuda_bad", say(("a", run), ("a", ok), ("b", run), ("b", failed), *summary("b", failed, 1)) + "\nexit 1")
        self.program("build/test_cuda_crash", say(("a", run), ("a", ok), ("b", run)) + "\nkill -SEGV $$")
        self.program("build/test_cuda_good", say(("a", run), ("a", ok), ("c", run), ("c", skipped), *summary("c", skipped, 1)))
        self.program("build/test_cuda_idle", "echo 'skipped: no CUDA driver, or no GPU'; exit 77")
        self.program("build/test_cuda_mute", "exit 0")
        self.program("build/test_cuda_slow", say(("a", run), ("a", ok), ("endless", run)) + "\nsleep 600 & sleep 600")
        begun = time.monotonic()
        page = self.expect(self.run_suite("--only", "tests", "--limit", 5), 1, "31 passed, 6 failed, 2 skipped")
        self.assertLess(time.monotonic() - begun, 60)
        for name, numbers, remark in (
            ("driver_rules", "27 | 2 | 0", "failed"), ("test_cuda_bad", "1 | 1 | 0", "failed: in b"),
            ("test_cuda_crash", "1 | 1 | 0", "failed: ended in b; died of signal 11"), ("test_cuda_good", "1 | 0 | 1", "passed: without c"),
            ("test_cuda_idle", "0 | 0 | 1", "skipped: no CUDA driver, or no GPU"),
            ("test_cuda_mute", "0 | 1 | 0", "failed: its output counts nothing"),
            ("test_cuda_slow", "1 | 1 | 0", "failed: ended in endless; did not end within 5 s"),
        ):
            self.assertRegex(page, rf"(?m)^\| {name} \| `build/{name}` \| {re.escape(numbers)} \| [\d.]+ \| {re.escape(remark)} \|$")
        self.assertEqual(page.count("\n### "), 5)

    def test_the_budget(self):
        self.program("build/test_cuda_first", "echo '[ RUN      ] a'; echo '[       OK ] a'; sleep 600")
        self.program("build/test_cuda_second", "echo '[       OK ] b'")
        page = self.expect(self.run_suite("--only", "tests", "--budget", 5), 0, "1 passed, 0 failed, 2 skipped")
        self.assertRegex(page, r"\n- test_cuda_first: 1 not reached: cut off by the budget after \d+ s\n"
                               r"- test_cuda_second: 1 not reached: the budget was used up\n")
        self.assertRegex(page, r"(?m)^\| test_cuda_second \| `build/test_cuda_second` \|  \|  \|  \| 0.0 \| not reached: ")
        self.expect(self.run_suite("--only", "tests", "--budget", 1e-6), 1, "0 passed, 0 failed, 2 skipped")

    def test_a_signal(self):
        """Ends the step in work, and the report is written."""
        self.program("build/test_cuda_first", "echo '[       OK ] a'; touch begun; sleep 600")
        self.program("build/test_cuda_second", "echo '[       OK ] b'")
        with subprocess.Popen(self.command("--only", "tests"), stdout=subprocess.PIPE, text=True, cwd=self.folder, env=self.environment) as process:
            for _ in range(600):
                if (self.folder / "begun").exists():
                    break
                time.sleep(0.1)
            self.assertIn("THE RUN HAS NOT ENDED", self.report.read_text())
            process.send_signal(signal.SIGTERM)
            output = process.communicate(timeout=60)[0]
        self.assertEqual((process.returncode, output.splitlines()[-1]), (1, "1 passed, 0 failed, 2 skipped"))
        self.assertIn("Stopped by a signal after ", self.report.read_text())

    def test_digests(self):
        """Of one operand only, unless asked; and several at once."""
        rows = {" ".join(line.split("\t")[:2]): line for line in (GOLDEN / "digests.tsv").read_text().splitlines()}
        names = ("exp float16", "negative float16", "negative bfloat16", "add float16")
        (self.golden / "digests.tsv").write_text("# a comment\n" + "".join(rows[name] + "\n" for name in names))
        page = self.expect(self.run_suite("--only", "digests", "--jobs", 2), 0, "3 passed, 0 failed, 0 skipped")
        self.assertIn("| `build/onelaunch digest --device cuda:0 --op exp,negative --dtype float16` | 2 | 0 | 0 |", page)
        self.assertIn("those of two were not asked for", page)
        page = self.expect(self.run_suite("--only", "digests", "--pairs", "--budget", 1e-6), 1, "0 passed, 0 failed, 4 skipped")
        self.assertIn("\n- add float16: 1 not reached: ", page)
        page = self.expect(self.run_suite("--only", "digests", FAKE_CUDA_FAIL="cuLaunchKernel:1:1"), 1, "0 passed, 2 failed, 1 skipped")
        self.assertIn("2 of 2 digests have no result", page)

    def test_the_sanitizer(self):
        """What it says is counted, and a program under it that does not say that it passed has not."""
        self.program("bin/compute-sanitizer", SANITIZER)
        page = self.expect(self.run_suite("--only", "sanitizer", PATH=f"{self.folder}/bin:{os.environ['PATH']}"), 1, "3 passed, 3 failed, 0 skipped")
        self.assertIn("### racecheck: parity, seed 1\n", page)
        self.assertIn("2 errors", page)
        self.assertIn("### initcheck: parity, seed 2\n", page)
        self.assertRegex(page, r"`compute-sanitizer --tool memcheck --error-exitcode 99 --print-limit 20 build/onelaunch parity --device cuda:0 --seed 1 ")

    def test_no_gpu(self):
        """Exit code 2, a sentence, and nothing written."""
        for arguments, environment, sentence in (
            ([], {"FAKE_CUDA_DEVICES": "0"}, "the CUDA driver finds none"),
            ([], {"ONELAUNCH_NVRTC": "/nowhere"}, "Fake GPU 0, .*no NVRTC: "),
            (["--device", "7"], {}, "there is no cuda:7"),
            ([], {"LD_LIBRARY_PATH": str(self.folder)}, "the CUDA driver cannot be opened: .*libcuda.so.1"),
            (["--build", self.folder / "nothing"], {}, ".* cannot be run: No such file"),
        ):
            with self.subTest(sentence=sentence):
                (self.folder / "libcuda.so.1").write_bytes(b"")
                result = self.run_suite(*arguments, **environment)
                self.assertEqual((result.returncode, result.stdout), (2, ""))
                self.assertRegex(result.stderr, "^test-gpu: this machine has no usable NVIDIA GPU: " + sentence)
                self.assertFalse(self.report.parent.exists())

    def test_which(self):
        result = self.run_suite("--which")
        self.assertEqual((result.returncode, result.stdout[:30]), (0, "test-gpu: cuda:0: Fake GPU 0, "))
        self.assertFalse(self.report.parent.exists())
        self.assertEqual(self.run_suite("--only", "everything").returncode, 2)


if __name__ == "__main__":
    if len(sys.argv) > 1 and os.path.isfile(sys.argv[1]):
        COMMAND = os.path.abspath(sys.argv.pop(1))
    unittest.main()
