"""Steps of the GPU suite (gpu_suite.py): one command each, with a time limit, and what its output counts.

A step passes only by what its output says: an exit code of 0 without a count is a failure. One that its own limit ends has failed;
one that the suite's budget or a signal ends, or that was never begun, was not reached, whatever it had counted until then."""

import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field

SKIPPED = 77                             # the exit code of a program that finds nothing to do here
GRACE_SECONDS = 5                        # from SIGTERM to SIGKILL


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    not_reached: int = 0
    remark: str = ""


@dataclass
class Step:
    section: str
    title: str
    command: list
    limit: float                         # seconds
    count: object                        # (output, whether the program ended by itself) -> Counts
    weight: int = 1                      # how many tests, digests, … are not reached where the step is not
    environment: dict = field(default_factory=dict)
    keep_output: bool = False            # for the report, where it passed
    state: str = ""                      # "": not yet; passed, failed, skipped, not reached
    counts: Counts = field(default_factory=Counts)
    seconds: float = 0.0
    output: str = ""

    def settle(self, state, **counts):
        self.state, self.counts = state, Counts(**counts)
        return self


def skip(section, title, why):
    """A step that cannot be."""
    return Step(section, title, [], 0, None).settle("skipped", skipped=1, remark=why)


class Runner:
    def __init__(self, budget=None, told=lambda step: None):
        self.begun = time.monotonic()
        self.deadline = self.begun + budget if budget is not None else float("inf")
        self.stopped = threading.Event()
        self.told = told                 # called after each step, by one thread at a time
        self.lock = threading.Lock()

    def seconds(self):
        return time.monotonic() - self.begun

    def run(self, step):
        if not step.state:
            self.attempt(step)
        with self.lock:
            self.told(step)

    def attempt(self, step):
        if self.stopped.is_set() or time.monotonic() >= self.deadline:
            step.settle("not reached", not_reached=step.weight, remark="stopped" if self.stopped.is_set() else "the budget was used up")
            return
        begun = time.monotonic()
        with tempfile.TemporaryFile() as file:         # no pipe, which a program's own children could keep open
            try:
                process = subprocess.Popen([str(part) for part in step.command], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                                           env={**os.environ, **step.environment}, start_new_session=True)
            except OSError as e:
                step.settle("failed", failed=1, remark=f"cannot be run: {e.strerror}")
                return
            cut = self.wait(process, min(begun + step.limit, self.deadline))
            file.seek(0)
            step.output = file.read().decode(errors="replace")
        step.seconds = time.monotonic() - begun
        judge(step, process.returncode, cut)

    def wait(self, process, until):
        """Why the process was ended, or "" where it ended by itself."""
        while True:
            try:
                process.wait(min(0.5, max(0.0, until - time.monotonic())))
                return ""
            except subprocess.TimeoutExpired:
                cut = "stopped" if self.stopped.is_set() else "budget" if until == self.deadline else "limit"
                if cut == "stopped" or time.monotonic() >= until:
                    break
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
                process.wait(GRACE_SECONDS)
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                pass
        process.wait()
        return cut


def judge(step, code, cut):
    counts = step.counts = step.count(step.output, None if cut else code)
    counted = counts.passed + counts.failed + counts.skipped
    remarks = [counts.remark] if counts.remark else []
    if cut in ("budget", "stopped"):
        counts.not_reached = max(1, step.weight - counted)
        remarks.append(f"cut off {'by the budget' if cut == 'budget' else 'by a signal'} after {step.seconds:.0f} s")
    elif cut == "limit":
        counts.failed += 1
        counts.not_reached = max(0, step.weight - counted - 1)
        remarks.append(f"did not end within {step.limit:g} s")
    elif code == SKIPPED and counted == 0:
        counts.skipped = 1
        remarks.append(last_lines(step.output, 1).replace("skipped: ", "", 1))
    elif code < 0:
        counts.failed += 1
        remarks.append(f"died of signal {-code}")
    elif code != 0 and counts.failed == 0:
        counts.failed = 1
        remarks.append(f"exit code {code}")
    elif code == 0 and counted == 0:
        counts.failed = 1
        remarks.append("its output counts nothing")
    counts.remark = "; ".join(remarks)
    step.state = ("failed" if counts.failed else "not reached" if counts.not_reached else "passed" if counts.passed else "skipped")


def last_lines(text, n):
    return "\n".join([line.rstrip() for line in text.splitlines() if line.strip()][-n:])
