"""The GPU suite's report (gpu_suite.py), a page of Markdown: only what ran is counted, and what did not is listed."""

import re

from gpu_run import last_lines
from gpu_steps import ROOT, SECTIONS

TAIL_LINES = 15
COUNTS = ("passed", "failed", "skipped", "not_reached")


def totals(steps):
    return {name: sum(getattr(step.counts, name) for step in steps) for name in COUNTS}


def summary(steps):
    """The suite's last line: what was not reached is among the skipped."""
    n = totals(steps)
    return f"{n['passed']} passed, {n['failed']} failed, {n['skipped'] + n['not_reached']} skipped"


class Report:
    """`facts`: rows of the table about the machine and the build. `places`: folders, and their names in the report, which shall not
    depend on where they lie."""

    def __init__(self, title, facts, places, sections, notes=()):
        self.title, self.facts, self.places, self.sections, self.notes = title, facts, places, sections, notes

    def plain(self, text):
        for folder, name in self.places:
            text = text.replace(str(folder), name)
        text = text.replace(f"{ROOT}/", "")
        return re.sub(r"/[^\s:'\"]*?/(?=(?:src|tests|tools|include)/)", "", text)

    def command(self, step):
        changed = [f"{name}={value}" for name, value in step.environment.items()]
        words = [self.plain(str(part)) for part in step.command]
        return " ".join([*changed, *(word.rsplit("/", 1)[-1] if word.startswith("/") else word for word in words)])

    def page(self, steps, end):
        """`end`: the sentence on how the run ended, or None while it goes on."""
        done = [step for step in steps if step.state]
        yield f"# {self.title}"
        yield ""
        for note in self.notes:
            yield f"**{note}**"
            yield ""
        yield "| | |"
        yield "|---|---|"
        for name, value in self.facts:
            yield f"| {name} | {cell(value)} |"
        yield ""
        yield f"**{summary(done)}.** " + (end or "THE RUN HAS NOT ENDED: what is not listed has not been run.")
        yield "A step counts what its program counts; the skipped of this line are those below and what was not reached."
        yield ""
        yield from self.by_section(steps)
        yield from self.failures(done)
        yield from self.missed(steps, end)
        yield from self.outputs(done)
        yield from self.by_step(done)

    def by_section(self, steps):
        yield "| section | what is counted | passed | failed | skipped | not reached | seconds |"
        yield "|---|---|---:|---:|---:|---:|---:|"
        for section in self.sections:
            own = [step for step in steps if step.section == section and step.state]
            n = totals(own)
            yield (f"| {section} | {SECTIONS[section][0]} | " + " | ".join(f"{n[name]:,}" for name in COUNTS)
                   + f" | {sum(step.seconds for step in own):.1f} |")
        yield ""

    def failures(self, done):
        failed = [step for step in done if step.state == "failed"]
        yield "## Failed"
        yield ""
        if not failed:
            yield "Nothing that ran."
            yield ""
        for step in failed:
            yield f"### {step.title}"
            yield ""
            yield f"`{self.command(step)}`: {self.plain(step.counts.remark) or 'failed'}"
            yield ""
            yield from block(self.plain(last_lines(step.output, TAIL_LINES)) or "(no output)")

    def missed(self, steps, end):
        yield "## Skipped, or not reached"
        yield ""
        rows = [f"- {step.title}: {outcome}{': ' if remark else ''}{remark}" for step in steps for outcome, remark in [missing(step)] if outcome]
        rows += [f"- {step.title}: not yet" for step in steps if not step.state and not end]
        rows += [f"- {section}: not asked for" for section in SECTIONS if section not in self.sections]
        yield from map(self.plain, rows or ["Nothing."])
        yield ""

    def outputs(self, done):
        for step in done:
            if step.keep_output and step.state == "passed":
                yield f"## {step.title}"
                yield ""
                yield from block(self.plain(step.output.rstrip()))

    def by_step(self, done):
        yield "## Steps"
        yield ""
        yield "| step | command | passed | failed | skipped | seconds | |"
        yield "|---|---|---:|---:|---:|---:|---|"
        for step in done:
            c = step.counts
            command = f"`{cell(self.command(step))}`" if step.command else ""
            numbers = " | ".join(f"{n:,}" for n in (c.passed, c.failed, c.skipped)) if step.state != "not reached" or c.passed else " |  | "
            yield f"| {cell(step.title)} | {command} | {numbers} | {step.seconds:.1f} | {step.state}{cell(self.plain(remark_of(c)))} |"


def remark_of(counts):
    return f": {counts.remark}" if counts.remark else ""


def missing(step):
    c = step.counts
    if not c.not_reached and not c.skipped:
        return "", ""
    parts = [f"{n} {word}" for n, word in ((c.skipped, "skipped"), (c.not_reached, "not reached")) if n]
    return ", ".join(parts), c.remark


def block(text):
    yield "```"
    yield text.replace("```", "'''")
    yield "```"
    yield ""


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")
