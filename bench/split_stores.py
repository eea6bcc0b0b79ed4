#!/usr/bin/env python3
"""Finds loops that wait for stores: a vector goes to the stack in halves and is loaded whole, which no CPU forwards.

    python3 bench/split_stores.py build-bench/bench/speed

g++ copies structures of several vectors that way (simd/quantize_columns.hpp had one: half the speed). Prints each
function with such loads in its innermost loops, and how many; the exit status says whether there are any. Needs
objdump.
"""
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import collections
import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(.*)$")
JUMP = re.compile(r"^j\w+\s+([0-9a-f]+)")
HALF_STORE = re.compile(r"^vmov\w+\s+%ymm\d+,(-?0x[0-9a-f]+)?\((%rsp|%rbp)\)$")
WHOLE_LOAD = re.compile(r"(-?0x[0-9a-f]+)?\((%rsp|%rbp)\).*%zmm\d+")
HALF, LONGEST_LOOP = 32, 400  # bytes; instructions


def place(match):
    return int(match.group(1) or "0", 16), match.group(2)


def innermost_loops(instructions):
    """Index ranges of loops that contain no other."""
    index = {address: i for i, (address, _) in enumerate(instructions)}
    loops = []
    for end, (_, text) in enumerate(instructions):
        jump = JUMP.match(text)
        begin = index.get(int(jump.group(1), 16)) if jump else None
        if begin is not None and 0 < end - begin < LONGEST_LOOP:
            loops.append((begin, end))
    return [a for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)]


def waiting_loads(instructions):
    """Addresses of loads of what the same loop stores in halves."""
    found = set()
    for begin, end in innermost_loops(instructions):
        loop = instructions[begin:end]
        if any(each.startswith("call") for _, each in loop):
            continue  # runs of a row, not numbers
        halves = {place(m) for m in (HALF_STORE.match(each) for _, each in loop) if m}
        for address, each in loop:
            load = WHOLE_LOAD.search(each)
            if load:
                offset, base = place(load)
                if (offset, base) in halves and (offset + HALF, base) in halves:
                    found.add(address)
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("binary", help="an executable or object file for x86-64 with AVX-512")
    arguments.add_argument("--least", type=int, default=2, help="loads that count; what ends a run has one")
    options = arguments.parse_args()
    command = ["objdump", "-d", "-C", "--no-show-raw-insn", options.binary]
    counts = collections.Counter()
    name, instructions = None, []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as objdump:
        for line in objdump.stdout:
            if function := FUNCTION.match(line.rstrip()):
                counts[name] += len(waiting_loads(instructions))
                name, instructions = function.group(1), []
            elif instruction := INSTRUCTION.match(line):
                instructions.append((int(instruction.group(1), 16), instruction.group(2).strip()))
        counts[name] += len(waiting_loads(instructions))
    if objdump.returncode != 0:
        sys.exit(f"split_stores.py: objdump cannot read {options.binary}.")
    found = [(count, name) for name, count in counts.most_common() if count >= options.least]
    for count, name in found:
        print(f"{count:4d}  {name}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
