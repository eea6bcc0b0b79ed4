#!/usr/bin/env python3
"""Compares what bench/speed and bench/products measured of one program built by several compilers or at several levels.

    python3 bench/compilers.py first.json[,more.json ...] second.json[,more.json ...] ...
                               [--products first.json[,more.json ...] second.json[,more.json ...] ...]
                               [--markdown docs/compilers.md]

An argument is one program; where a measurement is in several of its files, the fastest counts, so that runs in turn
even out what else the machine does. Every figure is ours, in elements or operations a second; what a program falls
short of is the fastest of them all.
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import statistics

import products_report
import report

SLOW = 0.8  # of the fastest program


def conversions(path):
    """[(size, operation, G elements a second)] by one thread in a file of bench/speed, and its context."""
    table, context = report.read([path])
    return [(report.SIZES[size], operation, m["speed"]) for operation, groups in table.items()
            for (size, threads), group in groups.items() for m in group.values()
            if m["kind"] == "ours" and threads == 1], context


def products(path):
    """[(shape, product, Gop/s)] of a file of bench/products, and its context."""
    table, context = products_report.read(path)
    return [(shape, f"{name}: {who.removeprefix('qtensor').strip()}", m["Gop/s"])
            for (name, shape), group in table.items() for who, m in group.items() if who.startswith("qtensor")], context


def measured(paths, read):
    """{(size or shape, operation): speed} of one program, and its context."""
    speeds, context = {}, None
    for path in paths.split(","):
        rows, context = read(path)
        for size, operation, speed in rows:
            speeds[size, operation] = max(speeds.get((size, operation), 0.0), speed)
    return speeds, context


def built(context):
    """How a program was built: `gcc 12.2.0, -march=native, -O3` without what all have in common."""
    compiler, *_, level = context["compiler"].split(", ")
    return f"{compiler} {level}"


def compared(programs, what, unit):
    """Lines of Markdown: how programs compare in all that each of them measured, and where one is slow."""
    names = [built(context) for _, context in programs]
    keys = [key for key in programs[0][0] if all(key in speeds for speeds, _ in programs)]
    best = {key: max(speeds[key] for speeds, _ in programs) for key in keys}
    lines = [f"{len(keys)} {what}; each program's share of the fastest one's speed:", "",
             "| program | median | worst tenth begins at | below 0.8 of the fastest |", "|---|---:|---:|---:|"]
    for name, (speeds, _) in zip(names, programs):
        shares = sorted(speeds[key] / best[key] for key in keys)
        lines.append(f"| {name} | {statistics.median(shares):.2f} | {shares[len(shares) // 10]:.2f} | "
                     f"{sum(s < SLOW for s in shares)} |")
    lines += ["", f"Where some program has less than 0.8 of the fastest one's speed, {unit} a second:",
              "", f"| size | operation | {' | '.join(names)} |", f"|---|---|{'---:|' * len(names)}"]
    for key in keys:
        if min(speeds[key] for speeds, _ in programs) >= SLOW * best[key]:
            continue
        size, operation = key
        cells = [report.digits(speeds[key]) if speeds[key] >= SLOW * best[key] else f"**{report.digits(speeds[key])}**"
                 for speeds, _ in programs]
        lines.append(f"| {size} | {operation} | {' | '.join(cells)} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", help="files of bench/speed")
    parser.add_argument("--products", nargs="+", default=[], help="files of bench/products")
    parser.add_argument("--markdown")
    parser.add_argument("--command", default="python3 bench/compilers.py (measurements)")
    options = parser.parse_args()

    programs = [measured(paths, conversions) for paths in options.programs]
    lines = ["# The same speed by every compiler", "", f"`{options.command}`", "",
             f"{programs[0][1].get('cpu', 'unknown')}, one thread. Conversions are of the first-level cache (16 KiB of "
             "f32) and the second (512 KiB), unless a size says otherwise.", "", "## Conversions", ""]
    lines += compared(programs, "measurements of conversions", "G elements")
    if options.products:
        lines += ["", "## Products", ""]
        lines += compared([measured(paths, products) for paths in options.products], "products", "Gop")
    report.give("\n".join(lines) + "\n", options.markdown)


if __name__ == "__main__":
    main()
