#!/usr/bin/env python3
"""Tests of ./dev prove: its options, the state file, planted faults, digests and reports.

    test_prove.py PROVE PROVE_PLANTED [unittest arguments]
"""

import fcntl
import json
import os
import pty
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

PROVE = PLANTED = ""
HERE = Path(__file__).resolve().parent


def run(*arguments, program=None):
    return subprocess.run([program or PROVE, *map(str, arguments)], capture_output=True, text=True, timeout=600)


def without_missing_levels(text):
    """What was said, less which SIMD levels the machine does not have."""
    return re.sub(r"prove: this machine does not have \w+\n", "", text)


def results(path):
    """A report without what may differ from one time to the next."""
    report = json.loads(Path(path).read_text())
    del report["date"]
    for row in report["runs"]:
        del row["seconds"]
    return report


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="onelaunch-prove-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.state, self.report = self.folder / "state", self.folder / "report.json"

    def expect(self, code, *arguments, says=(), program=None):
        result = run(*arguments, program=program)
        everything = result.stdout + result.stderr
        self.assertEqual(result.returncode, code, everything)
        for part in (says,) if isinstance(says, str) else says:
            self.assertIn(part, everything)
        for sign in ("Sanitizer", "runtime error"):
            self.assertNotIn(sign, everything)
        return result


class Options(Case):
    def test_wrong(self):
        for arguments, says in (
            (["--op", "foo"], "there is no 'foo'; there are all, abs"), (["--op", "exp,"], "there is no ''"), (["--op", ""], "there is no ''"),
            (["--op", "ex"], "there is no 'ex'"), (["--op", "exp,exp3"], "there is no 'exp3'"),
            (["--dtype", "float64"], "there are all, float32, float16, bfloat16"), (["--level", "mmx"], "there are all, baseline"),
            (["--shard", "2/2"], "--shard 2/2: expected"), (["--shard", "1"], "expected I/N"), (["--shard", "-1/2"], "expected I/N"),
            (["--shard", "0/0"], "expected I/N"), (["--shard", "0/2x"], "expected I/N"), (["--threads", "0"], "--threads 0: expected"),
            (["--shard", " 1/3"], "expected I/N"), (["--shard", "1/ 3"], "expected I/N"), (["--shard", "+1/3"], "expected I/N"),
            (["--shard", "1/+3"], "expected I/N"), (["--shard", "/3"], "expected I/N"), (["--shard", "1/"], "expected I/N"),
            (["--threads", " 2"], "--threads  2"), (["--threads", "+2"], "--threads +2"), (["--threads", ""], "--threads : expected"),
            (["--samples", "\t5"], "--samples"), (["--show", "+1"], "--show +1"), (["--show", "-"], "--show -"), (["--hard-pairs= 9"], "--hard-pairs  9"),
            (["--threads", "two"], "--threads two"), (["--samples", "-1"], "--samples -1"), (["--samples", "1e6"], "--samples 1e6"),
            (["--show", "x"], "--show x"), (["stray"], "'stray'"), (["--nonsense"], "nonsense"), (["--report"], "argument"),
            (["--digests", "--write-digests", "x"], "exclude"), (["--hard-pairs=10", "--op", "sin"], "two float32"),
            (["--op", "abs", "--dtype", "float16", "--report", "/nowhere/x"], "/nowhere/x"), (["--digests", "--shard", "0/2"], "--state"),
            (["--digests", "a", "b"], "unexpected argument 'b'"), (["--digests=/nowhere/x", "--op", "exp"], "/nowhere/x"),
            (["--state", "/nowhere/x", "--op", "exp"], "/nowhere/x"), (["--state", "/dev/null", "--op", "exp"], "no regular file"),
            (["--report", "/nowhere/x", "--op", "isnan", "--dtype", "float16"], "/nowhere/x"),
        ):
            with self.subTest(arguments=arguments):
                self.expect(2, *arguments, says=says)

    def test_help_and_list(self):
        self.expect(0, "--help", says=("--state", "--digests", "Exit status", "2^20", "0 to 2^32"))
        self.expect(0, "--list", says=("baseline", "hypot", "4294967296", "268435456"))

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for arguments in (["-q", "--op", "isnan", "--dtype", "float16"], ["--op", "isnan", "--dtype", "float16", "-t", "2"], ["--list"], ["--help"], ["--usage"]):
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                result = subprocess.run([PROVE, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
                self.assertEqual((result.returncode, without_missing_levels(result.stderr)), (2, "prove: standard output: No space left on device\n"))
        for option in ("--write-digests", "--report"):
            self.expect(2, "-q", "--op", "isnan", "--dtype", "float16", option, "/dev/full", says="/dev/full: No space left on device")

    def test_outputs_are_whole(self):
        """What finds no place leaves the file that was there, and nothing beside it; a link stays one, permissions stay."""
        def run_small(bytes, *arguments):
            def limit():
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, bytes))
            result = subprocess.run([PROVE, *map(str, arguments)], capture_output=True, text=True, preexec_fn=limit)
            self.assertEqual(result.returncode, 2, result.stderr)
            return result.stderr

        job = ["-q", "--op", "sqrt,exp,log,sin,cos,tan", "--dtype", "float16"]
        table, link = self.folder / "table", self.folder / "link"
        for option, path in (("--report", self.report), ("--write-digests", table)):
            with self.subTest(option=option):
                self.assertIn(f"{path}: File too large", run_small(300, *job, option, path))
                self.assertFalse(path.exists())
                self.expect(0, "-q", "--op", "sqrt", "--dtype", "float16", option, path)
                path.chmod(0o640)
                before, names = path.read_bytes(), sorted(self.folder.iterdir())
                self.assertIn(f"{path}: File too large", run_small(300, *job, option, path))
                self.assertEqual((path.read_bytes(), sorted(self.folder.iterdir())), (before, names))
        run_small(100, *job, "--state", self.state)
        self.assertFalse(self.state.exists())
        whole = self.folder / "whole"
        self.expect(0, *job, "--state", whole)
        run_small(whole.stat().st_size * 2 // 3, *job, "--state", self.state)
        self.assertRegex(self.state.read_text(), r"\A(.*\n)+\Z")
        self.assertNotIn("dropped", self.expect(0, *job, "--state", self.state).stderr)
        link.symlink_to(table)
        self.expect(0, *job, "--write-digests", link)
        self.assertTrue(link.is_symlink())
        self.assertEqual((table.stat().st_mode & 0o777, table.read_text().count("\n")), (0o640, 8))
        if os.geteuid() != 0:
            table.chmod(0o440)
            self.expect(2, *job, "--write-digests", table, says="Permission denied")

    def test_conversions(self):
        """Named for the dtype of their results, from each of the other two."""
        names = ("float32", "float16", "bfloat16")
        job = ["-q", "--op", ",".join(f"astype_{name}" for name in names)]
        result = self.expect(0, *job, "--level", "baseline", "--shard", "3/64", "--dtype", "float32,float16")
        self.assertEqual([line.split()[:5] for line in result.stdout.splitlines()],
                         [[f"astype_{to}", "float32", "baseline", "inputs", str(2**26)] for to in names[1:]])
        self.expect(0, *job, "--dtype", "float16,bfloat16", "--digests", HERE.parent / "golden" / "digests.tsv", says="digests equal to")
        report = self.folder / "r.json"
        self.expect(0, *job, "--dtype", "bfloat16", "--level", "baseline", "--report", report)
        self.assertEqual([(row["op"], row["dtype"], row["result"], row["inputs"]) for row in results(report)["runs"]],
                         [("astype_float32", "bfloat16", "float32", 65536), ("astype_float16", "bfloat16", "float16", 65536)])
        self.expect(2, "--op", "astype_float16", "--dtype", "float16", says="no conversion is from a dtype to itself")

    def test_small_run(self):
        one = self.expect(0, "-q", "--op", "sqrt,isnan", "--dtype", "float16,bfloat16", "--threads", 1)
        three = self.expect(0, "-q", "--op", "isnan,sqrt,sqrt", "--dtype", "bfloat16,float16", "--threads", 3)
        digests = [[line.split()[-1] for line in result.stdout.splitlines()] for result in (one, three)]
        self.assertEqual(*digests)
        self.assertTrue(all(len(digest) == 16 for digest in digests[0]))
        self.assertEqual(without_missing_levels(one.stderr), "")


class State(Case):
    JOB = ["-q", "--op", "multiply", "--dtype", "float32", "--level", "baseline", "--shard", "3/4"]
    SMALL = ["-q", "--op", "sqrt", "--dtype", "float16,bfloat16"]

    def lines(self):
        return self.state.read_bytes().count(b"\n") if self.state.exists() else 0

    def tasks(self, path):
        """The lines without their seconds and checksums."""
        lines = [line.split() for line in path.read_text().splitlines()]
        return sorted(line[: line.index("seconds")] + line[line.index("wrong") : -1] for line in lines[1:])

    def stopped(self, number, more_tasks):
        """Runs the job until it has so many more tasks, then sends it the signal."""
        enough = self.lines() + more_tasks
        process = subprocess.Popen([PROVE, *self.JOB, "--state", self.state], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while self.lines() < enough and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(number)
        output = process.communicate(timeout=60)
        self.assertEqual(process.returncode, -number, output)
        return output[1]

    def test_resume(self):
        other, other_state = self.folder / "other.json", self.folder / "other"
        self.expect(0, *self.JOB, "--report", other, "--state", other_state)
        self.stopped(signal.SIGKILL, 3)
        self.assertIn("goes on from", self.stopped(signal.SIGINT, 3))
        with self.state.open("ab") as file:                    # as if the power had gone
            file.write(b"task multiply flo")
        self.stopped(signal.SIGTERM, 2)
        before = self.lines()
        result = self.expect(0, *self.JOB, "--state", self.state, "--report", self.report, says=f"going on from {before - 1} finished tasks")
        self.assertEqual(results(other), results(self.report))
        self.assertGreater(results(other)["runs"][0]["near"], 1000)
        self.assertEqual(self.tasks(other_state), self.tasks(self.state))
        again = self.expect(0, *self.JOB, "--state", self.state, says="going on from 16 finished")
        self.assertEqual(again.stdout, result.stdout)

    def test_faults_are_kept(self):
        for _ in range(2):
            self.expect(1, "-q", "--op", "exp", "--dtype", "float16", "--state", self.state, says="wrong 1", program=PLANTED)

    def test_refused(self):
        self.expect(0, *self.SMALL, "--state", self.state)
        good = self.state.read_bytes()
        lines = good.splitlines(keepends=True)
        self.expect(2, *self.SMALL, "--state", self.state, "--samples", 5, says=("another job or another build", "samples 5 "))
        self.expect(2, *self.SMALL, "--state", self.state, "--level", "baseline", says="another job")
        self.expect(2, *self.SMALL, "--state", self.state, "--write-digests", self.folder / "d", says="another job")
        self.expect(2, *self.SMALL, "--state", self.state, says="another build", program=PLANTED)
        for bad, says in (
            (good.replace(b"wrong 0", b"wrong 1", 1), ":2: damaged"), (b"".join(lines[1:]), ":1: no state file of this version"),
            (b"# notes\n", ":1: damaged"), (good + lines[1], ":4: a task that does not exist, or is there twice"), (lines[0][:-9] + b"\n", ":1: damaged"),
            (good + b"\0" * 100 + b"\n", ":4: damaged"), (lines[0] + lines[1][:-1] + lines[2], ":2: damaged"),
            (b"hello world", ":1: no state file of this job"), (b"\0" * 5000, ":1: no state file of this job"),
        ):
            with self.subTest(says=says):
                self.state.write_bytes(bad)
                self.expect(2, *self.SMALL, "--state", self.state, says=says)
                self.assertEqual(self.state.read_bytes(), bad)
        for torn in (good + b"tas", good[:-1], good[:-40], lines[0][:20], b""):
            with self.subTest(torn=len(torn)):
                self.state.write_bytes(torn)
                self.expect(0, *self.SMALL, "--state", self.state)
                self.assertEqual(self.lines(), 3)
        with self.state.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.expect(2, *self.SMALL, "--state", self.state, says="another job is using it")

    def test_one_file_for_two_outputs(self):
        (self.folder / "link").symlink_to(self.state)
        self.expect(0, *self.SMALL, "--state", self.state)
        good = self.state.read_bytes()
        for option in ("--report", "--write-digests"):
            for name in (self.state, self.folder / "link", self.folder / "." / self.state.name):
                with self.subTest(option=option, name=name):
                    self.expect(2, *self.SMALL, "--state", self.state, option, name, says=("the same file", option))
        self.assertEqual(self.state.read_bytes(), good)
        self.expect(2, *self.SMALL, "--report", self.folder / "new", "--write-digests", self.folder / "new", says="the same file")

    def test_other_primitives_and_shards(self):
        """One file may serve jobs of other primitives and shards, and files may be joined."""
        job = ["-q", "--op", "less", "--dtype", "float32", "--level", "baseline"]
        whole, joined = self.folder / "whole", self.folder / "joined"
        parts = [self.folder / f"part{i}" for i in range(3)]
        self.expect(0, *job, "--write-digests", whole)
        for i, part in enumerate(parts):
            self.expect(2, *job, "--write-digests", joined, "--shard", f"{i}/3", "--state", part, says="other shards are missing")
        self.assertFalse(joined.exists())
        self.state.write_bytes(b"".join(part.read_bytes() for part in parts))
        self.expect(0, "-q", "--op", "sqrt", "--dtype", "float16", "--level", "baseline", "--write-digests", joined, "--state", self.state)
        self.expect(0, *job, "--write-digests", joined, "--state", self.state, says="going on from 64 finished")
        self.assertEqual(whole.read_text(), joined.read_text())


class Faults(Case):
    def test_found(self):
        for job, says in (
            (["exp", "float16"], ["exp float16 baseline (3c00 = 0x1p+0) gives 4171, should be 4170", "wrong 1"]),
            (["tanh", "bfloat16"], ["results depend on their neighbours"]), (["silu", "bfloat16"], ["results depend on their neighbours"]),
            (["isnan", "float16"], ["(fc00 = -inf) gives 01, should be 00"]),
            (["astype_float32", "bfloat16"], ["astype_float32 bfloat16 baseline (7fc1 = nan) gives 7fc10000, should be 7fc00000", "wrong 1"]),
            (["astype_float16", "float32", "--shard", "254/1024"],
             ["astype_float16 float32 baseline (3f801001 = 0x1.002002p+0) gives 3c00, should be 3c01", "wrong 1"]),
            (["astype_bfloat16", "float16"], ["results depend on their neighbours"]),
            (["log", "float16"], ["(3800 = 0x1p-1) gives 398c, should be b98c", "(7e00 = nan) gives fe00, should be 7e00", "wrong 2"]),
        ):
            with self.subTest(job=job):
                self.expect(1, "-q", "--op", job[0], "--dtype", job[1], *job[2:], "--report", self.report, says=says, program=PLANTED)
                self.assertTrue(any(row["wrong"] for row in results(self.report)["runs"]))
                self.assertEqual(subprocess.run([sys.executable, HERE / "report.py", self.report], stdout=subprocess.DEVNULL).returncode, 1)
        self.expect(0, "-q", "--op", "exp,tanh", "--dtype", "bfloat16", "--op", "exp", program=PLANTED)
        quiet = self.expect(1, "-q", "--op", "exp", "--dtype", "float16", "--show", 0, program=PLANTED)
        self.assertNotIn("should be", quiet.stdout)


class Digests(Case):
    JOB = ["-q", "--op", "exp,log", "--dtype", "float16,bfloat16"]

    def test_compare(self):
        table = self.folder / "digests.tsv"
        self.expect(0, *self.JOB, "--write-digests", table)
        text = table.read_text()
        rows = [line for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual([row.split("\t")[:2] for row in rows], [[op, t] for op in ("exp", "log") for t in ("float16", "bfloat16")])
        proof = self.expect(0, *self.JOB)
        self.assertEqual({row.split("\t")[2] for row in rows}, {line.split()[-1] for line in proof.stdout.splitlines()})
        n_levels = len(proof.stdout.splitlines()) // len(rows)
        for form in (["--digests", table], [f"--digests={table}"]):
            result = self.expect(0, *self.JOB, *form)
            self.assertEqual(result.stdout.splitlines()[-1], f"{4 * n_levels} digests equal to {table}")
        result = self.expect(1, *self.JOB, "--digests", table, says=("wrong: exp float16", f"{table} has"), program=PLANTED)
        self.assertEqual(result.stdout.splitlines()[-1], f"{3 * n_levels - 1} digests equal to {table}, {n_levels + 1} not")
        result = self.expect(1, *self.JOB, "--op", "exp,sqrt", "--digests", table, says="missing: sqrt float16")
        self.assertEqual(result.stdout.splitlines()[-1], f"{2 * n_levels} digests equal to {table}, {2 * n_levels} not")
        self.expect(1, *self.JOB, "--write-digests", self.folder / "no", says="log float16: levels differ", program=PLANTED)
        self.assertFalse((self.folder / "no").exists())
        for bad, says in ((text + "exp float16 12\n", "expected OP DTYPE DIGEST STRIDED"), (text + rows[0] + "\n", "a second row"), (text + "x y 12 12 z\n", "expected")):
            with self.subTest(says=says):
                table.write_text(bad)
                self.expect(2, *self.JOB, "--digests", table, says=says)


    def test_default_file(self):
        """Found from the current folder, and no folder of the build is in the program: state files of two checkouts join."""
        job = [PROVE, *self.JOB, "--level", "baseline", "--digests"]
        result = subprocess.run(job, capture_output=True, text=True, cwd=HERE.parents[1])
        self.assertEqual((result.returncode, result.stdout.splitlines()[-1]), (0, "4 digests equal to tests/golden/digests.tsv"), result.stderr)
        result = subprocess.run(job, capture_output=True, text=True, cwd=self.folder)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        for part in ("tests/golden/digests.tsv: No such file", "current folder", "top of the source tree"):
            self.assertIn(part, result.stderr)
        program = Path(PROVE).read_bytes()
        if b"__asan_" not in program and b"__ubsan_" not in program and b"__tsan_" not in program:         # these name source files
            self.assertFalse(os.fsencode(HERE.parents[1]) + b"/" in program, "the program names the folder of its sources")


class Reports(Case):
    def test_report(self):
        self.expect(0, "-q", "--op", "sqrt,abs", "--dtype", "float16", "--report", self.report)
        report = json.loads(self.report.read_text())
        for key in ("version", "date", "processor", "architecture", "system", "compiler", "executable"):
            self.assertTrue(report[key], key)
        self.assertEqual(report["options"]["op"], "sqrt,abs")
        levels = report["options"]["levels"]
        self.assertEqual([(row["op"], row["level"]) for row in report["runs"]], [(op, level) for op in ("abs", "sqrt") for level in levels])
        for row in report["runs"]:
            self.assertEqual((row["dtype"], row["inputs"], row["exhaustive"], row["wrong"]), ("float16", 65536, True, 0))
            self.assertEqual(len(row["digest"]), 16)
            self.assertIn("MPFR" if row["op"] == "sqrt" else "exact", row["reference"])
        self.expect(0, "-q", "--op", "sqrt", "--dtype", "float16", "--shard", "0/2", "--report", self.report, says="has no inputs")
        self.assertEqual(json.loads(self.report.read_text())["runs"], [])
        self.assertEqual(list(self.folder.iterdir()), [self.report])

    def test_page(self):
        self.expect(0, "-q", "--op", "sqrt", "--dtype", "float16", "--report", self.report)
        page = subprocess.run([sys.executable, HERE / "report.py", self.report], capture_output=True, text=True)
        self.assertEqual(page.returncode, 0)
        self.assertIn("**0 wrong**", page.stdout)
        self.assertIn("| sqrt | float16 | baseline", page.stdout)
        self.assertIn("| 2^16 |", page.stdout)

    def test_page_of_what_is_no_report(self):
        self.expect(0, "-q", "--op", "sqrt", "--dtype", "float16", "--level", "baseline", "--report", self.report)
        good, other = self.report.read_text(), self.folder / "other"
        for text, says in (
            (None, "No such file"), ("", "no JSON"), ("not", "no JSON"), ("\udcff", "no JSON"), ("[" * 200000, "no JSON"), ("{}", "has no version"),
            ("[]", "the file is no object"), (good.replace('"runs"', '"ruins"'), "has no runs"), (good.replace('"near"', '"far"'), "run 0 has no near"),
            (good.replace('"inputs": 65536', '"inputs": "all"'), "inputs of run 0 is of the wrong type"), (good[: len(good) // 2], "no JSON"),
        ):
            with self.subTest(says=says):
                if text is not None:
                    other.write_text(text, errors="surrogateescape")
                page = subprocess.run([sys.executable, HERE / "report.py", self.report, other], capture_output=True, text=True)
                self.assertEqual((page.returncode, page.stdout, page.stderr.count("\n")), (2, "", 1), page.stderr)
                for part in (f"report.py: {other}: ", says, "expected a report by ./dev prove --report FILE"):
                    self.assertIn(part, page.stderr)

    def test_progress(self):
        for kind, more, shows in (("xterm", [], True), ("xterm", ["-q"], False), ("dumb", [], False)):
            with self.subTest(TERM=kind, more=more):
                shown = self.shown(kind, 80, more)
                self.assertEqual(b"%" in shown and b"left, log float32" in shown and b"[" in shown.replace(b"\x1b[", b""), shows, shown)

    def test_progress_in_a_narrow_terminal(self):
        """No line is as wide as the terminal; the bar goes first, then the text's end, then all."""
        for columns in (300, 50, 40, 20, 16, 15, 1):
            with self.subTest(columns=columns):
                shown = self.shown("xterm", columns, [])
                lines = [line for line in shown.replace(b"\x1b[K", b"").split(b"\r") if line]
                self.assertEqual(bool(lines), columns >= 16)
                self.assertTrue(all(len(line) < columns for line in lines), lines)
                self.assertEqual(any(line.startswith(b"[") for line in lines), columns >= 50, lines)

    def shown(self, kind, columns, more):
        """What a job of a second or so shows on a terminal of that kind and width."""
        job = [PROVE, "--op", "log", "--dtype", "float32", "--level", "baseline", "--threads", "1", "--shard", "0/32", *more]
        try:
            master, slave = pty.openpty()
        except OSError as error:
            self.skipTest(f"no terminal: {error}")
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.run(job, stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "TERM": kind})
        os.close(slave)
        os.set_blocking(master, False)
        try:
            shown = os.read(master, 4000)
        except OSError:
            shown = b""
        os.close(master)
        self.assertEqual(process.returncode, 0)
        return shown


if __name__ == "__main__":
    PROVE, PLANTED = os.path.abspath(sys.argv.pop(1)), os.path.abspath(sys.argv.pop(1))
    unittest.main()
