#!/usr/bin/env python3
"""Holds what bench/speed and bench/products measured against the project's goals: which are reached, by how much not.

    python3 bench/goals.py --speed speed.json [more.json ...] [--avx2 avx2.json ...] [--products products.json]
                           [--amx products_amx.json] [--markdown docs/goals.md]

--avx2: of a program built for AVX2 on the same CPU. A specific goal goes before a general one. Goals are ratios of
measurements of one run; only that of AVX2 to AVX-512 is one of two.
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import re

import products_report
import report

FP8 = r"(e4m3|e5m2)"
MX = r"mx(fp8_e4m3|fp8_e5m2|fp6_e2m3|fp6_e3m2|fp4)"
INT8 = r"u?int8"

# Share of the roof at 256 MiB, one thread. The first pattern that an operation has decides.
FROM_MEMORY = [
    (r".*both axes, two calls", None),
    (r".*both axes", 0.50),
    (r".*(^|[ =])(2 )?A\b.*", None),  # expressions and the other order: below
    (r".*by columns.*", None),
    (r"matrix = .*", None),
    (rf".* -> {INT8} column.*", 0.80),
    (rf"bf16 -> {INT8} (tensor|row)", 0.95),
    (rf"{INT8} .* -> bf16", 0.95),
    (rf"f32 -> {FP8}|bf16 -> e4m3", 0.92),
    (r"(e4m3|e5m2|hif8|e2m1|e3m2|e2m3) -> (f32|bf16)", 0.95),
    (rf"(f32|f16) -> ({MX}|nvfp4)|bf16 -> {MX}", 0.88),
    (r"bf16 -> nvfp4", 0.62),
    (rf"({MX}|nvfp4) -> (f32|bf16)", 0.95),
    (r"f32 -> ggml q4_0", 0.80),
    (r"(un)?pack .*", 0.95),
    (r".*", 0.90),
]

# Times the fastest of libraries, Eigen and plain loops at 512 KiB ("loop", "library": of these alone).
IN_CACHE = [
    (rf"f32 -> {INT8} (tensor|row|column), reciprocal", {"best": 1.45}),
    (rf"f32 -> {INT8} (tensor|row)", {"best": 1.25}),
    (rf"f32 -> {INT8} column", {"best": 1.15}),
    (rf"bf16 -> {INT8} (tensor|row|column)", {"best": 2}),
    (rf"{INT8} tensor -> bf16", {"best": 4}),
    (rf"{INT8} .* -> bf16", {"best": 2.5}),
    (rf"f32 -> {FP8}|bf16 -> e4m3", {"loop": 1.5, "library": 10}),
    (r"(e4m3|e5m2|hif8|e2m1|e3m2|e2m3) -> f32", {"best": 8}),
    (r"(e4m3|e5m2|hif8|e2m1) -> bf16", {"best": 15}),
    (r"f32 -> hif8", {"roof": 0.38}),
    (r"f32 -> (e2m1|e3m2|e2m3)", {"best": 3}),
    (r"(f32|bf16) -> mxfp8_.*", {"loop": 4, "library": 18}),
    (r"(f32|bf16) -> mx.*", {"loop": 5, "library": 150}),
    (r"(f32|bf16) -> nvfp4", {"loop": 10, "library": 140}),
    (r"mxfp8_.* -> (f32|bf16)", {"best": 7}),
    (r"mxfp4 -> (f32|bf16)", {"best": 10}),
    (r"nvfp4 -> (f32|bf16)", {"best": 8}),
    (r"f32 -> ggml q8_0", {"library": 2.7}),
    (r"f32 -> ggml q4_0", {"library": 20}),
    (r"f32 -> u?int[48] groups, dynamic", {"best": 3.3}),
    (r"f32 -> u?int[48] groups", {"best": 2}),
    (r"(un)?pack .*", {"roof": 0.95}),
    (r".*", {"best": 1}),
]


def first(goals, operation):
    return next((goal for pattern, goal in goals if re.fullmatch(pattern, operation)), None)


def speed(table, operation, size, kind="ours"):
    found = report.best(table.get(operation, {}).get((size, 1), {}), [kind])
    return found[1]["speed"] if found else None


def conversions(table):
    """(where, operation, what is compared, goal, measured, what the roof itself would reach)"""
    for operation, groups in table.items():
        ours = report.best(groups.get(("256M", 1), {}), ["ours"])
        goal = first(FROM_MEMORY, operation)
        if ours and goal:
            yield "256 MiB", operation, "of the roof", goal, ours[1]["roof"], 1
        ours = report.best(groups.get(("256M", 2), {}), ["ours"])
        if ours and goal:
            yield "256 MiB, 2 threads", operation, "of the roof", min(0.9, goal), ours[1]["roof"], 1
        ours = report.best(groups.get(("512K", 1), {}), ["ours"])
        if not ours:
            continue
        for what, goal in first(IN_CACHE, operation).items():
            kinds = {"best": ["library", "eigen", "loop"]}.get(what, [what])
            other = report.best(groups["512K", 1], kinds)
            if what == "roof":
                yield "512 KiB", operation, "of the roof", goal, ours[1]["roof"], 1
            elif other:
                yield "512 KiB", operation, f"times the best {what if what != 'best' else 'candidate'}", goal, \
                    ours[1]["speed"] / other[1]["speed"], ours[1]["speed"] / ours[1]["roof"] / other[1]["speed"]
    yield from expressions(table)


def without_avx512(table, with_avx512):
    """The same of a program for AVX2: of the roof, of the speed with AVX-512, and against loops built for AVX2."""
    for operation, groups in table.items():
        goal = first(FROM_MEMORY, operation)
        ours = report.best(groups.get(("256M", 1), {}), ["ours"])
        if ours and goal:
            encodes = re.fullmatch(rf"\w+ -> ({MX}|nvfp4)", operation)
            yield "AVX2, 256 MiB", operation, "of the roof", 0.7 if encodes else min(goal, 0.9), ours[1]["roof"], 1
        ours = report.best(groups.get(("512K", 1), {}), ["ours"])
        wide = speed(with_avx512, operation, "512K")
        if ours and wide and goal:
            roof = speed(table, operation, "512K", "roof")
            yield "AVX2, 512 KiB", operation, "of AVX-512", 0.42, ours[1]["speed"] / wide, roof / wide if roof else None
        loop = report.best(groups.get(("512K", 1), {}), ["loop"])
        if ours and loop and goal:
            plain = re.fullmatch(rf".*\b{INT8} (tensor|row|column).*", operation)
            yield "AVX2, 512 KiB", operation, "times the best loop", 1.5 if plain else 4, \
                ours[1]["speed"] / loop[1]["speed"], ours[1]["speed"] / ours[1]["roof"] / loop[1]["speed"]


def expressions(table):
    for size, where in [("512K", "512 KiB"), ("256M", "256 MiB")]:
        for target in ["mxfp8_e4m3", "int8 row, dynamic", "int8 tensor, dynamic"]:
            kernel = speed(table, f"f32 -> {target}", size)
            if not kernel:
                continue
            straight = speed(table, f"A -> {target}", size)
            across = speed(table, f"A by columns -> {target}", size)
            if straight:
                yield where, f"A -> {target}", "times the kernel", 0.95, straight / kernel, None
            if across:
                yield where, f"A by columns -> {target}", "times the order of the codes", \
                    0.5 if size == "512K" else 0.9, across / kernel, None
            operation = f"2 A + B -> {target}"
            both, alone = speed(table, operation, size), speed(table, operation, size, "expression")
            if both and alone:  # timed into a tile, in a cache only
                yield where, operation, "times kernel and expression", 1 / 1.1, both * (1 / kernel + 1 / alone), None
    for size, where, goal in [("512K", "512 KiB", 1.05), ("256M", "256 MiB", 1.25)]:
        operation = "bf16 -> mxfp8_e4m3 both axes"
        both, calls = speed(table, operation, size), speed(table, f"{operation}, two calls", size)
        if both and calls:
            yield where, operation, "times two calls", goal, both / calls, None
    for size, where, goal in [("512K", "512 KiB", 0.5), ("256M", "256 MiB", 0.9)]:
        for operation in list(table):
            if operation.endswith(" by columns") and operation.split(" ")[-3] in ("f32", "bf16"):
                across, straight = speed(table, operation, size), speed(table, operation[:-len(" by columns")], size)
                if across and straight:
                    yield where, operation, "times the order of the codes", goal, across / straight, None


def ratio(group, ours, other):
    return group[ours]["Gop/s"] / group[other]["Gop/s"] if ours in group and other in group else None


# (product, shape, candidate, goal as a share of its bound)
OF_BOUND = [
    ("int8 x int8", r"(512x512x512|1024x1024x1024|128x1024x1024)", r"qtensor packed", 0.92),
    ("int8 x int8", r"(512x512x512|1024x1024x1024|128x1024x1024)", r"qtensor .* -> s32", 0.95),
    ("int8 x int8", r"(512x512x512|1024x1024x1024|128x1024x1024)", r"qtensor .*both zero points", 0.90),
    ("int8 x int8", r"(512x512x512|1024x1024x1024|128x1024x1024)", r"qtensor f32 rows quantized inside", 0.88),
    ("int8 x int8", r"16x4096x4096", r"qtensor packed", 0.94),
    ("int8 x int8", r"16x4096x4096 from memory", r"qtensor packed", 0.80),
    ("int8 x int8", r"1x512x1024", r"qtensor packed", 1 / 1.15),
    ("int8 x int8", r"1x4096x4096", r"qtensor packed", 0.90),
    ("int8 x int8", r"1x4096x4096 from memory", r"qtensor packed", 0.95),
    ("int4 g32 x f32", r"1x4096x4096 from memory", r"qtensor int8_activations", 0.90),
    ("int4 g128 x f32", r"1x4096x4096 from memory", r"qtensor int8_activations", 0.85),
    ("int4 g32 x f32", r"(16|128)x1024x1024", r"qtensor int8_group_activations", 680 / 1060),
    ("int4 g32 x f32", r"(16|128)x1024x1024", r"qtensor int8_activations", 780 / 1060),
    ("int4 g128 x f32", r"(16|128)x1024x1024", r"qtensor int8_group_activations", 850 / 1060),
    ("int4 g128 x f32", r"(16|128)x1024x1024", r"qtensor int8_activations", 900 / 1060),
    ("MXFP4 x f32", r"128x.*", r"qtensor int8_group_activations", 690 / 1060),
    ("MXFP4 x f32", r"128x.*", r"qtensor int8_activations", 800 / 1060),
    ("NVFP4 x f32", r"128x.*", r"qtensor int8_group_activations", 550 / 1060),
    ("NVFP4 x f32", r"128x.*", r"qtensor int8_activations", 680 / 1060),
    ("e4m3 x e4m3", r"128x.*", r"qtensor bf16_math", 0.92),
    ("MXFP4 x MXFP8", r"128x.*", r"qtensor bf16_math", 0.92),
    ("int4 g128 x f32", r"128x.*", r"qtensor bf16_math", 0.90),
    (r"(int4 g32|int4 g128|MXFP4|NVFP4) x f32", r"128x.*", r"qtensor fixed order", 0.92),
    (r"(int4 g32|int4 g128|MXFP4|NVFP4) x f32", r"1x4096x4096.*", r"qtensor fixed order", 0.75),
    (r"conv 56x56x64 k3", r".*", r"qtensor s32", 0.92),
]

# (product, shape, candidate, the other, goal)
AGAINST = [
    ("int8 x int8", r"(512x512x512|1024x1024x1024|128x1024x1024)", "qtensor packed", "oneDNN u8 x s8", 0.98),
    ("int8 x int8", r"(512x512x512|1024x1024x1024|128x1024x1024)", "qtensor f32 rows quantized inside",
     "ONNX Runtime f32 quantized inside", 1.15),
    ("int4 g32 x f32", "1x512x1024", "qtensor int8_activations", "ONNX Runtime int8 inside", 2),
    ("int4 g32 x f32", "1x512x1024", "qtensor int8_activations", "ggml rearranged", 4),
    ("int4 g128 x f32", "1x512x1024", "qtensor int8_activations", "ONNX Runtime int8 inside", 2),
    (r"conv 56x56x64 k3", r".*", "qtensor bias and int8", "oneDNN bias and int8", 1),
    ("int8 x int8 with epilogues", r".*x512", "qtensor bias, ReLU -> f32", "qtensor f32", 1 / 1.05),
    ("int8 x int8 with epilogues", r".*x512", "qtensor bias, ReLU -> int8", "qtensor f32", 1 / 1.05),
    ("int8 x int8 with epilogues", r".*x4096", "qtensor bias, ReLU -> f32", "qtensor f32", 1 / 1.01),
    ("int8 x int8 with epilogues", r".*x4096", "qtensor bias, ReLU -> int8", "qtensor f32", 1 / 1.01),
]


def products(table, has_peaks):
    """The same of products. Peaks of goals are those of vector instructions."""
    for (name, shape), group in table.items():
        for pattern, shapes, candidate, goal in OF_BOUND if has_peaks else []:
            for who, m in group.items():
                if re.fullmatch(pattern, name) and re.fullmatch(shapes, shape) and re.fullmatch(candidate, who):
                    yield shape, f"{name}: {who.removeprefix('qtensor ')}", \
                        "of reading" if m["reads"] else "of the peak", goal, m["of_bound"], 1
        for pattern, shapes, candidate, other, goal in AGAINST:
            if re.fullmatch(pattern, name) and re.fullmatch(shapes, shape) and ratio(group, candidate, other):
                share = group[other]["of_bound"] if has_peaks else 0
                yield shape, f"{name}: {candidate.removeprefix('qtensor ')}", f"times {other}", goal, \
                    ratio(group, candidate, other), 1 / share if share else None


def section(title, results, every):
    """A table of what is not reached, or of every goal."""
    results = list(results)
    is_short = [measured < goal for *_, goal, measured, _ in results]
    is_beyond = [most is not None and most < goal for *_, goal, _, most in results]
    out = [f"## {title}", "",
           f"{len(results) - sum(is_short)} of {len(results)} goals are reached; "
           f"{sum(s and b for s, b in zip(is_short, is_beyond))} of the others are not to be had here.", "",
           "| size | operation | compared | goal | measured | to be had | short |", "|---|---|---|---:|---:|---:|---:|"]
    for (where, operation, what, goal, measured, most), short, beyond in zip(results, is_short, is_beyond):
        if short or every:
            share = f"{measured / (most if beyond else goal):.2f}" if short else ""
            out.append(f"| {where} | {operation} | {what} | {goal:.2f} | {measured:.2f} | "
                       f"{f'{most:.2f}' if short and beyond else ''} | {share} |")
    return out + [""]


def markdown(sections, command, every):
    out = ["# Goals of speed", "", f"`{command}`", "",
           "- The goals were set by what prototypes reached on Zen 5; ratios to libraries and loops depend on the CPU. "
           "The tables list those that are not reached.",
           "- *To be had*: what a loop that moves the same bytes with no arithmetic would reach, of products the peak of "
           "the CPU or reading the weights, where that is less than the goal. *Short*: measured over goal, or over what "
           "is to be had.", ""]
    for title, results in sections:
        out += section(title, results, every)
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speed", nargs="*", default=[], help="output of bench/speed --benchmark_out=...")
    parser.add_argument("--avx2", nargs="*", default=[], help="the same of a program built for AVX2")
    parser.add_argument("--products", help="output of bench/products --benchmark_out=..., by vectors")
    parser.add_argument("--amx", help="the same of a program that uses matrix registers: compared with others alone")
    parser.add_argument("--markdown", help="write the tables there instead of printing them")
    parser.add_argument("--command", default="python3 bench/goals.py --speed speed.json --products products.json")
    parser.add_argument("--every", action="store_true", help="list goals that are reached, too")
    options = parser.parse_args()
    sections, wide = [], {}

    def add(title, context, results):
        sections.append((f"{title}, {context.get('cpu', 'unknown')}, {context.get('compiler', 'unknown')}", results))

    if options.speed:
        wide, context = report.read(options.speed)
        add("Conversions", context, conversions(wide))
    if options.avx2:
        table, context = report.read(options.avx2)
        add("Conversions built for AVX2", context, without_avx512(table, wide))
    if options.products:
        table, context = products_report.read(options.products)
        add("Products", context, products(table, has_peaks=True))
    if options.amx:
        table, context = products_report.read(options.amx)
        add("Products on matrix registers", context, products(table, has_peaks=False))
    text = markdown(sections, options.command, options.every)
    report.give(text, options.markdown)


if __name__ == "__main__":
    main()
