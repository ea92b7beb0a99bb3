#!/usr/bin/env python3
"""Counts the single tests in CTest JUnit reports: cmocka programs print one line a test, anything else is one test itself.
Prints "N passed, M failed[, K skipped]" and exits with 1 if any failed or none ran."""
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

passed = failed = 0
skipped = int(os.environ.get("ONELAUNCH_TESTS_SKIPPED", 0))       # of which there is no report
for case in (case for report in sys.argv[1:] for case in ElementTree.parse(report).getroot().iter("testcase")):
    output = case.findtext("system-out") or ""
    ok = len(re.findall(r"^\[ +OK +\] ", output, re.M))
    listed = re.search(r"^\[  FAILED  \] (\d+) test\(s\), listed below:", output, re.M)
    skips = re.search(r"^\[  SKIPPED \] (\d+) test\(s\), listed below:", output, re.M)
    bad = int(listed.group(1)) if listed else 0
    out = int(skips.group(1)) if skips else 0
    if ok + bad + out == 0:
        ok, out = (0, 1) if case.find("skipped") is not None or case.get("status") == "notrun" else (1, 0)
    if case.get("status") == "fail" and bad == 0:      # a crash or a time-out has no line of its own
        ok, bad = (0 if ok == 1 and not output.startswith("seed") else ok), 1
    passed, failed, skipped = passed + ok, failed + bad, skipped + out
print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
sys.exit(1 if failed or passed == 0 else 0)
