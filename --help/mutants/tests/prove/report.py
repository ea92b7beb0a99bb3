#!/usr/bin/env python3
"""Turns reports of `./dev prove --report FILE` into a page of Markdown: tests/prove/report.py FILE... > PAGE

Levels of a run that agree in everything share a row. Ends with status 1 if a result was wrong, with 2 if a file is no report.
"""

import json
import sys

COLUMNS = ("primitive", "dtype", "levels", "inputs", "decided by MPFR", "samples", "wrong", "seconds", "digest")


def inputs_text(run):
    n = run["inputs"]
    power = n.bit_length() - 1
    return (f"2^{power}" if n == 1 << power else f"{n:,}") + ("" if run["exhaustive"] else ", a sample")


def rows_of(report):
    """One tuple of texts for each group of levels."""
    groups = {}
    for run in report["runs"]:
        key = (run["op"], run["dtype"], run.get("wrong"), run["digest"])
        groups.setdefault(key, []).append(run)
    for runs in groups.values():
        first = runs[0]
        count = lambda name: f"{first[name]:,}" if name in first else "not checked"
        off = f" ({first['not_nearest']:,} not the nearest, by at most {first['worst_ulp']:.6f} ulp)" if first.get("not_nearest") else ""
        yield (first["op"], first["dtype"], ", ".join(run["level"] for run in runs), inputs_text(first), count("near"), count("samples"),
               count("wrong") + off, f"{first['seconds']:.1f}", f"`{first['digest']}`" if first["digest"] else "other shards missing")


def page_of(report):
    options, runs = report["options"], report["runs"]
    n_wrong = sum(run.get("wrong", 0) for run in runs)
    n_unsound = sum(run.get("unsound_samples", 0) for run in runs)
    checked = all("wrong" in run for run in runs)
    references = sorted({run["reference"].rsplit(", ", 1)[0] for run in runs if run.get("reference", "exact").startswith("glibc")})
    yield f"onelaunch {report['version']}, {report['date']}, {report['processor']} ({report['architecture']}), {report['system']},"
    yield f"{report['compiler']}, executable `{report['executable']}`; shard {options['shard']}, {options['samples']:,} samples of 2^32."
    if references:
        yield f"Reference: {'; '.join(references)}; where the primitive is exact in double, that."
    yield ""
    if checked:
        yield f"**{n_wrong:,} wrong** in {len(runs):,} runs" + (f"; the reference's bound failed {n_unsound:,} times" if n_unsound else "") + "."
    else:
        yield "Digests only: the results were not compared with a reference."
    yield "Seconds are processor time of all levels of a row's primitive and dtype together, reference included."
    yield ""
    yield "| " + " | ".join(COLUMNS) + " |"
    yield "|---|---|---|" + "---:|" * 5 + "---|"
    for row in rows_of(report):
        yield "| " + " | ".join(row) + " |"


# What a page is made of: of the whole report, of its options, of each run, and of each run that was checked.
REPORT = {"version": str, "date": str, "processor": str, "architecture": str, "system": str, "compiler": str, "executable": str,
          "options": dict, "runs": list}
OPTIONS = {"shard": str, "samples": int}
RUN = {"op": str, "dtype": str, "level": str, "inputs": int, "exhaustive": bool, "digest": (str, type(None)), "seconds": (int, float)}
CHECKED = {"wrong": int, "near": int, "samples": int, "unsound_samples": int, "reference": str}


class NoReport(Exception):
    pass


def expect(value, fields, what):
    if not isinstance(value, dict):
        raise NoReport(f"{what} is no object")
    for name, kind in fields.items():
        if name not in value or not isinstance(value[name], kind):
            raise NoReport(f"{what} has no {name}" if name not in value else f"{name} of {what} is of the wrong type")


def read(path):
    """The report in a file, or NoReport."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except OSError as error:
        raise NoReport(error.strerror) from error
    except (ValueError, RecursionError) as error:              # not UTF-8, not JSON, JSON without end
        raise NoReport(f"no JSON: {error}") from error
    expect(report, REPORT, "the file")
    expect(report["options"], OPTIONS, "options")
    for i, run in enumerate(report["runs"]):
        expect(run, RUN, f"run {i}")
        if "wrong" in run:
            expect(run, CHECKED, f"run {i}")
        if run.get("not_nearest"):
            expect(run, {"not_nearest": int, "worst_ulp": (int, float)}, f"run {i}")
    return report


def main(paths):
    if not paths or paths[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    reports = []
    for path in paths:
        try:
            reports.append(read(path))
        except NoReport as error:
            print(f"report.py: {path}: {error}; expected a report by ./dev prove --report FILE", file=sys.stderr)
            return 2
    print("# Proofs\n\nWritten by `tests/prove/report.py` from the reports of `./dev prove`.")
    for report in reports:
        print("\n" + "\n".join(page_of(report)))
    return 1 if any(run.get("wrong", 0) for report in reports for run in report["runs"]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
