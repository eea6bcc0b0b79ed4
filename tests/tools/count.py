"""Adds up what Meson's test logs say: test cases of doctest programs one by one, every other test as one.

usage: count.py LOG.json     prints "PASSED FAILED SKIPPED", then one line for each failed or skipped test
"""
# SPDX-License-Identifier: BSD-3-Clause
import json
import re
import sys
from pathlib import Path

SUMMARY = re.compile(r'\[doctest\] test cases: +\d+ \| +(\d+) passed \| +(\d+) failed')


def count(test):
    """(passed, failed, skipped) of one entry of the log."""
    if test['result'] == 'SKIP':
        return 0, 0, 1
    good = test['result'] == 'OK'
    summary = SUMMARY.search(test.get('stdout') or '')
    if not summary:
        return int(good), int(not good), 0
    passed, failed = int(summary[1]), int(summary[2])
    return passed, failed if good else max(failed, 1), 0


def reason(test):
    said = (test.get('stdout') or '').strip().splitlines()
    return said[-1] if said else ''


def main():
    tests = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines() if line.strip()]
    print(*(sum(column) for column in zip((0, 0, 0), *map(count, tests))))
    for test in tests:
        if test['result'] == 'SKIP':
            print(f"skipped: {test['name']}: {reason(test)}")
        elif count(test)[1]:
            print(f"failed: {test['name']} ({test['result']})")


if __name__ == '__main__':
    sys.exit(main())
