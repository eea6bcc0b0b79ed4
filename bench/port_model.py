#!/usr/bin/env python3
"""What limits conversions in the first-level cache: the instructions of their loops, and the cycles that a model of the
CPU's ports needs for them.

    python3 bench/port_model.py --cpu alderlake [--measured docs/speed_avx2.md] [--markdown docs/limits_avx2.md]

Compiles bench/port_model.cpp for the CPU, finds the loop of each function, by its shortest way round, and asks llvm-mca
(of LLVM) how long a step takes. --measured takes a document of bench/report.py, measured on such a CPU: the clock at
which the loop alone would be as fast says how much of the time it is.
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
OPERATIONS = {  # of bench/speed, and the loops that each runs
    "f32 -> int8 tensor": ["f32_to_int8"],
    "f32 -> e4m3": ["f32_to_e4m3"],
    "f32 -> e3m2": ["f32_to_e3m2", "pack_of_6_bits"],
    "f32 -> e2m1": ["f32_to_e2m1", "pack_of_4_bits"],
    "f32 -> hif8": ["f32_to_hif8"],
    "f32 -> mxfp8_e4m3": ["f32_amax_of_32", "f32_to_mxfp8"],
    "f32 -> mxfp6_e2m3": ["f32_amax_of_32", "f32_to_mxfp6", "pack_of_6_bits"],
    "f32 -> mxfp4": ["f32_amax_of_32", "f32_to_mxfp4", "pack_of_4_bits"],
    "f32 -> nvfp4": ["f32_amax_of_16", "f32_to_nvfp4", "pack_of_4_bits"],
    "f32 -> int8 groups, dynamic": ["f32_amax_of_32", "f32_to_int8_groups"],
    "f32 -> int8 groups": ["f32_to_int8_groups"],
    "f32 -> int4 groups, dynamic": ["f32_amax_of_32", "f32_to_int4_groups", "pack_of_4_bits"],
    "f32 -> uint4 groups, dynamic": ["f32_ranges_of_32", "f32_to_uint4_groups", "pack_of_4_bits"],
    "f32 -> ggml q8_0": ["f32_amax_of_32", "f32_to_q8_0"],
    "f32 -> ggml q4_0": ["f32_amax_of_32", "f32_to_q4_0"],
    "f32 -> ggml mxfp4": ["f32_amax_of_32", "f32_to_ggml_mxfp4"],
    "f32 -> ggml nvfp4": ["f32_amax_of_16", "f32_to_ggml_nvfp4"],
    "bf16 -> int8 tensor": ["bf16_to_int8"],
    "bf16 -> e4m3": ["bf16_to_e4m3"],
    "bf16 -> hif8": ["bf16_to_hif8"],
    "bf16 -> mxfp8_e4m3": ["bf16_amax_of_32", "bf16_to_mxfp8"],
    "bf16 -> mxfp6_e2m3": ["bf16_amax_of_32", "bf16_to_mxfp6", "pack_of_6_bits"],
    "bf16 -> mxfp4": ["bf16_amax_of_32", "bf16_to_mxfp4", "pack_of_4_bits"],
    "bf16 -> nvfp4": ["bf16_amax_of_16", "bf16_to_nvfp4", "pack_of_4_bits"],
    "bf16 -> int8 groups, dynamic": ["bf16_amax_of_32", "bf16_to_int8_groups"],
    "bf16 -> int4 groups, dynamic": ["bf16_amax_of_32", "bf16_to_int4_groups", "pack_of_4_bits"],
    "f16 -> int8 tensor": ["f16_to_int8"],
    "f16 -> e4m3": ["f16_to_e4m3"],
    "f16 -> e5m2": ["f16_to_e5m2"],
    "f16 -> mxfp8_e4m3": ["f16_amax_of_32", "f16_to_mxfp8"],
}


def functions(assembly):
    """{name: lines} of all functions; one that only goes on to another has that one's lines."""
    found, name = {}, None
    for line in assembly.splitlines():
        label = re.match(r"([A-Za-z_][\w.]*):", line)
        if label:
            name = label[1]
            found[name] = []
        elif name and line.strip().startswith(".size"):
            name = None
        elif name:
            found[name].append(line)
    for lines in found.values():
        last = [line for line in lines if is_instruction(line)][-1:]
        onward = re.match(r"\s+jmp\s+(_Z[\w.]+)\s*$", last[0]) if last else None
        if onward and onward[1] in found:
            lines[:] = found[onward[1]]
    return found


def is_instruction(line):
    return re.match(r"\s+[a-z]", line) is not None


def is_vector(line):
    return re.search(r"%[xyz]mm", line) is not None


def hot_loop(lines):
    """The instructions of the loop with the most of them on vectors, by its shortest way round: what is rare is longer.

    Empty where there is no loop.
    """
    code = [line for line in lines if is_instruction(line) or re.match(r"\.L\w+:", line)]
    labels = {line.split(":")[0]: at for at, line in enumerate(code) if line.startswith(".")}

    def next_ones(at):
        jump = re.match(r"\s+(j\w+)\s+(\.L\w+)\s*$", code[at])
        if jump and jump[2] in labels:
            yield labels[jump[2]]
        if not re.match(r"\s+(jmp|ret)\b", code[at]) and at + 1 < len(code):
            yield at + 1

    ways = []
    for head in labels.values():
        before, waiting = {}, [head]
        while waiting and head not in before:  # breadth first: the first way back is the shortest
            reached = []
            for at in waiting:
                for to in next_ones(at):
                    if to not in before:
                        before[to] = at
                        reached.append(to)
            waiting = reached
        if head not in before:
            continue
        way, at = [], before[head]
        while at != head:
            way.append(at)
            at = before[at]
        ways.append(set(way))
    loops = []  # what shares instructions with a shorter way is a rare case of it, or a loop around it
    for way in sorted(ways, key=len):
        if all(way.isdisjoint(other) for other in loops):
            loops.append(way)
    bodies = [[code[at] for at in sorted(way) if is_instruction(code[at])] for way in loops]
    return max(bodies, key=lambda body: sum(map(is_vector, body)), default=[])


def loop_of(name, found, depth=2):
    """The hot loop of a function, or, where it has none, of what it calls."""
    body = hot_loop(found.get(name, []))
    if body or depth == 0:
        return body
    onward = re.compile(r"\s+(?:call|jmp)\s+(_Z[\w.]+)\s*$")
    called = {match[1] for line in found.get(name, []) if (match := onward.match(line))}
    return max((loop_of(other, found, depth - 1) for other in sorted(called)),
               key=lambda body: sum(map(is_vector, body)), default=[])


def cycles(body, cpu):
    """Cycles of one run through the body, by llvm-mca."""
    rounds = 200
    run = subprocess.run(["llvm-mca", "-march=x86-64", f"-mcpu={cpu}", f"-iterations={rounds}"], input="\n".join(body),
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"llvm-mca fails: {run.stderr.strip()[:500]}")
    return int(re.search(r"Total Cycles:\s+(\d+)", run.stdout)[1]) / rounds


def loops_of(cpu, compiler, include):
    """{name: (numbers of a step, instructions, vector instructions, cycles)} of the functions in port_model.cpp; None
    where other loops do their work."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.s"
        subprocess.run([compiler, "-std=c++20", "-O3", "-S", f"-march={cpu}", "-ffp-contract=off", "-isystem", include,
                        f"-I{HERE.parent / 'include'}", str(HERE / "port_model.cpp"), "-o", str(out)], check=True)
        assembly = out.read_text()
    known, bodies = {}, functions(assembly)
    for name, numbers in re.findall(r"^(\w+)_numbers:\s*\n\s*\.long\s+(-?\d+)", assembly, flags=re.M):
        if int(numbers) < 0:
            known[name] = None
            continue
        body = loop_of(name, bodies)
        if not body:
            raise SystemExit(f"port_model.cpp: no loop in {name}.")
        known[name] = (int(numbers), len(body), sum(map(is_vector, body)), cycles(body, cpu))
    return known


def measured_speeds(path):
    """{operation: elements a second, in billions} of ours, one thread, the faster of 16 KiB and 512 KiB, from tables of
    bench/report.py."""
    speeds = {}
    for part in Path(path).read_text(encoding="utf-8").split("\n## "):
        if part.startswith(("16KiB, 1 thread\n", "512KiB, 1 thread\n")):
            for operation, speed in re.findall(r"^\| (.+?) \| \*\*([\d.]+)\*\* \|", part, re.M):
                speeds[operation] = max(float(speed), speeds.get(operation, 0.0))
    return speeds


def version_of(program):
    """The first number of its kind that `program --version` prints."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r"\d+\.\d+\.\d+", said)[0]


def markdown(known, cpu, measured, compiler):
    speeds = measured_speeds(measured) if measured else {}
    out = ["# What limits conversions in a cache", "",
           f"`python3 bench/port_model.py --cpu {cpu}{f' --measured {measured}' if measured else ''}`", "",
           f"- {compiler} {version_of(compiler)} -O3, llvm-mca {version_of('llvm-mca')}.",
           "- Instructions of the innermost loops for 32 numbers, and cycles by the model of that CPU, all operands in "
           "the first-level cache. Loops in a row follow each other (statistics, then codes).",
           "- *Clock needed*: at which these loops alone would be as fast as what was measured in a cache (16 or 512 "
           "KiB of f32). Near the CPU's own clock they are what limits; far below it, what lies around them (scales, "
           "memory) takes the rest.",
           "- The loops are those of this program; what was measured may be of an older one, which its document names.",
           "",
           "| operation | instructions | on vectors | cycles | numbers a cycle | measured, G/s | clock needed, GHz |",
           "|---|---:|---:|---:|---:|---:|---:|"]
    for operation, names in OPERATIONS.items():
        each = [[value * 32 / known[name][0] for value in known[name][1:]] for name in names if known[name]]
        instructions, vector, needed = (sum(values) for values in zip(*each))
        speed = speeds.get(operation)
        out.append(f"| {operation} | {instructions:.0f} | {vector:.0f} | {needed:.1f} | {32 / needed:.2f} | "
                   + (f"{speed:.2f} | {speed * needed / 32:.2f} |" if speed else "- | - |"))
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", default="znver3", help="a CPU that both the compiler and llvm-mca know")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--include", default="/usr/include/eigen3", help="where Eigen is")
    parser.add_argument("--measured", help="a document that bench/report.py wrote")
    parser.add_argument("--markdown", help="file for the table; default: print it")
    options = parser.parse_args()
    for program in [options.compiler, "llvm-mca"]:
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is not installed; llvm-mca comes with LLVM's own package (llvm).")
    text = markdown(loops_of(options.cpu, options.compiler, options.include), options.cpu,
                    options.measured, options.compiler)
    if options.markdown:
        Path(options.markdown).write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
