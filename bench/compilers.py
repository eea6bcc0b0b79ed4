#!/usr/bin/env python3
"""Compares what bench/speed measured of one program built by several compilers, or by one at several levels.

    python3 bench/compilers.py first.json[,more.json ...] second.json[,more.json ...] ... [--markdown docs/compilers.md]

An argument is one program; where a measurement is in several of its files, the fastest counts, so that runs in turn
even out what else the machine does. Every figure is ours, in elements a second; what a program falls short of is the
fastest of them all.
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import statistics

import report

SLOW = 0.8  # of the fastest program


def measured(paths):
    """{(size, threads, operation): speed} of one program, and its context."""
    speeds, context = {}, None
    for path in paths.split(","):
        table, context = report.read([path])
        for operation, groups in table.items():
            for (size, threads), group in groups.items():
                ours = [m["speed"] for m in group.values() if m["kind"] == "ours"]
                if ours:
                    key = (size, threads, operation)
                    speeds[key] = max([speeds.get(key, 0.0)] + ours)
    return speeds, context


def built(context):
    """How a program was built: `gcc 12.2.0, -march=native, -O3` without what all have in common."""
    compiler, *_, level = context["compiler"].split(", ")
    return f"{compiler} {level}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--markdown")
    parser.add_argument("--command", default="python3 bench/compilers.py (measurements)")
    options = parser.parse_args()

    programs = [measured(paths) for paths in options.programs]
    names = [built(context) for _, context in programs]
    keys = [key for key in programs[0][0] if all(key in speeds for speeds, _ in programs)]
    best = {key: max(speeds[key] for speeds, _ in programs) for key in keys}
    context = programs[0][1]
    lines = ["# The same speed by every compiler", "", f"`{options.command}`", "",
             f"- {context.get('cpu', 'unknown')}, one thread, of the first-level cache (16 KiB of f32) and the second "
             "(512 KiB).",
             f"- {len(keys)} measurements of operations; each program's share of the fastest one's speed.", "",
             "| program | median | worst tenth begins at | below 0.8 of the fastest |", "|---|---:|---:|---:|"]
    for name, (speeds, _) in zip(names, programs):
        shares = sorted(speeds[key] / best[key] for key in keys)
        lines.append(f"| {name} | {statistics.median(shares):.2f} | {shares[len(shares) // 10]:.2f} | "
                     f"{sum(s < SLOW for s in shares)} |")
    lines += ["", "Operations of which some program has less than 0.8 of the fastest one's speed, G elements a second:",
              "", f"| size | operation | {' | '.join(names)} |", f"|---|---|{'---:|' * len(names)}"]
    for key in keys:
        if min(speeds[key] for speeds, _ in programs) >= SLOW * best[key]:
            continue
        size, _, operation = key
        cells = [report.digits(speeds[key]) if speeds[key] >= SLOW * best[key] else f"**{report.digits(speeds[key])}**"
                 for speeds, _ in programs]
        lines.append(f"| {report.SIZES[size]} | {operation} | {' | '.join(cells)} |")
    text = "\n".join(lines) + "\n"
    if options.markdown:
        with open(options.markdown, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
