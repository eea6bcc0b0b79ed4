#!/usr/bin/env python3
"""Turns the JSON of bench/speed into a Markdown table and an SVG: ours, the best library, the best loop, the roof.

    python3 bench/report.py speed.json [more.json ...] --markdown docs/speed.md --svg docs/speed.svg

Where a measurement is in several files the last one counts. Without options the table is printed.
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import html
import json
import re
import sys

SIZES = {"16K": "16KiB", "512K": "512KiB", "512K-narrow": "512KiB in rows of 64 elements", "256M": "256MiB",
         "256M-wide": "256MiB in rows of 16384 elements"}
WRONG = 0.2  # share of results unlike ours from which on a candidate does something else


def read(paths):
    """{operation: {(size, threads): {candidate: measurement}}}, and the context of the first file."""
    table, context = {}, None
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            run = json.loads(text)
        except json.JSONDecodeError:  # a run that was stopped: the groups it had finished
            run = json.loads(text + "]}")
        context = context or run["context"]
        for b in run["benchmarks"]:
            match = re.match(rf"(.*)/({'|'.join(SIZES)})/(\d+)/([^/]+)/", b["name"])
            if not match or "elements/s" not in b:
                continue
            operation, size, threads, candidate = match.groups()
            kind, _, note = b.get("label", "").partition(": ")
            group = table.setdefault(operation, {}).setdefault((size, int(threads)), {})
            group[candidate] = {
                "kind": kind, "note": note, "speed": b["elements/s"] * 1e-9, "bytes": b["GB/s"],
                "roof": b.get("of_roof", 0.0), "differs": b.get("differs", 0.0), "median": b.get("median", 1.0)}
    return table, context


def best(group, kinds):
    """The fastest candidate of these kinds, as (name, measurement), or None."""
    found = [(name, m) for name, m in group.items() if m["kind"] in kinds and m["differs"] <= WRONG]
    return max(found, key=lambda pair: pair[1]["speed"]) if found else None


def digits(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}" if x >= 0.1 else f"{x:.3f}"


def is_plain(measurement):
    """Implementations that libraries name as plain C."""
    return re.search(r"\b(ref|simple)\b", measurement["note"]) is not None


def cell(found):
    if not found:
        return "-"
    name, m = found
    short = name.split(",")[0].rstrip(" 0123456789")
    marks = ("!" if is_plain(m) else "") + ("*" if m["differs"] > 0.01 else "")
    return f"{digits(m['speed'])} {short}{marks}" if m["kind"] == "library" else f"{digits(m['speed'])}{marks}"


def markdown(table, context, command):
    threads = sorted({t for groups in table.values() for _, t in groups})
    sizes = [s for s in SIZES if any(s == size for groups in table.values() for size, _ in groups)]
    found = context.get("libraries")
    libraries = f"{found}; they use all that the CPU has, unless the command keeps them from it" if found else "none found"
    caches = ", ".join(f"L{c['level']} {c['size'] // 1024} KiB {c['type'].lower()}" for c in context.get("caches", []))
    out = ["# Speed of conversions", ""]
    out += [f"`{command}`", ""]
    out += [f"- Machine: {context.get('cpu', 'unknown')}, {context['num_cpus']} cores{'; ' if caches else ''}{caches}.",
            f"- Compiler: {context.get('compiler', 'unknown')}. Libraries: {libraries}.",
            "- Billions of elements a second, the best of many repetitions, all candidates in one run in random order. "
            "Sizes are those of the numbers as f32.",
            "- *roof*: a loop that moves the same bytes with no arithmetic, by non-temporal stores where "
            "those are faster; *of roof*: our share of its speed. *loop*: the best of the plain loops (two sets of "
            "flags). *against best*: our speed over the fastest of library, Eigen and loop.",
            "- `!`: the library names this implementation `ref` or `simple`. `*`: more than 1 % of its results are not "
            "ours; more than 20 %: it does something else and is left out. `-`: not to be had. Where an operation begins with "
            "an Eigen expression, *Eigen* is what that costs alone, into a tile in the first-level cache.", ""]
    for t in threads:
        for size in sizes:
            rows = [(op, groups[size, t]) for op, groups in table.items() if (size, t) in groups]
            rows = [(op, group) for op, group in rows if best(group, ["ours"])]
            if not rows:
                continue
            out += [f"## {SIZES[size]}, {t} thread{'s' if t > 1 else ''}", "",
                    "| operation | ours | of roof | library | Eigen | loop | against best | memcpy | roof |",
                    "|---|---|---|---|---|---|---|---|---|"]
            for op, group in rows:
                ours = best(group, ["ours"])[1]
                other = best(group, ["library", "eigen", "loop"])
                ratio = f"{digits(ours['speed'] / other[1]['speed'])}x" if other else "-"
                out.append(f"| {op} | **{digits(ours['speed'])}** | {ours['roof']:.2f} | {cell(best(group, ['library']))} | "
                           f"{cell(best(group, ['eigen', 'expression']))} | {cell(best(group, ['loop']))} | {ratio} | "
                           f"{cell(best(group, ['copy']))} | {cell(best(group, ['roof']))} |")
            out.append("")
    return "\n".join(out)


COLOURS = {"ours": "#1f6fb2", "library": "#d9822b", "eigen": "#8a6bbf", "loop": "#8c8c8c"}
LABELS = {"ours": "qtensor", "library": "best library", "eigen": "Eigen", "loop": "best loop"}


def svg(table, context):
    """A bar a candidate, as a share of the roof, an operation a line and a size a panel; one thread."""
    sizes = [s for s in ["512K", "256M"] if any((s, 1) in groups for groups in table.values())]
    operations = [op for op, groups in table.items() if any(best(groups.get((s, 1), {}), ["ours"]) for s in sizes)]
    line, left, width, gap, top = 38, 270, 360, 40, 64
    height = top + line * len(operations) + 20
    total = left + (width + gap) * len(sizes)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{height}" '
           f'viewBox="0 0 {total} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{total}" height="{height}" fill="white"/>',
           f'<text x="8" y="18" font-size="13">Share of the roof, one thread, {html.escape(context.get("cpu", ""))}</text>']
    for i, (kind, colour) in enumerate(COLOURS.items()):
        out.append(f'<rect x="{8 + 110 * i}" y="28" width="10" height="10" fill="{colour}"/>'
                   f'<text x="{22 + 110 * i}" y="37">{LABELS[kind]}</text>')
    for panel, size in enumerate(sizes):
        x0 = left + panel * (width + gap)
        out.append(f'<text x="{x0}" y="{top - 6}" font-weight="bold">{SIZES[size]}</text>')
        for tenth in range(0, 11, 2):
            x = x0 + width * tenth / 10
            out.append(f'<line x1="{x:.0f}" y1="{top}" x2="{x:.0f}" y2="{height - 16}" stroke="{"#444" if tenth == 10 else "#ddd"}"/>'
                       f'<text x="{x:.0f}" y="{height - 4}" text-anchor="middle" fill="#666">{tenth / 10:.1f}</text>')
        for row, op in enumerate(operations):
            y = top + row * line
            if panel == 0:
                out.append(f'<text x="{left - 8}" y="{y + line / 2 + 3:.0f}" text-anchor="end">{html.escape(op)}</text>')
            group = table[op].get((size, 1), {})
            for bar, kind in enumerate(COLOURS):
                found = best(group, [kind])
                if not found:
                    continue
                share = min(found[1]["roof"], 1.05)
                out.append(f'<rect x="{x0}" y="{y + 3 + 8 * bar}" width="{max(width * share, 1):.1f}" height="7" '
                           f'fill="{COLOURS[kind]}"><title>{html.escape(op)}, {size}iB: {html.escape(found[0])} '
                           f'{digits(found[1]["speed"])} G elements/s</title></rect>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def give(text, path):
    """To a file, or printed where none is named."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text, end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", nargs="+", help="output of bench/speed --benchmark_out=...")
    parser.add_argument("--markdown", help="file for the table")
    parser.add_argument("--svg", help="file for the picture")
    parser.add_argument("--command", default="taskset -c 1 build-bench/bench/speed --benchmark_out=speed.json",
                        help="the command to name in the table")
    options = parser.parse_args()
    table, context = read(options.json)
    if not table:
        sys.exit("report: no measurement of bench/speed in these files")
    text = markdown(table, context, options.command)
    if options.markdown or not options.svg:
        give(text, options.markdown)
    if options.svg:
        give(svg(table, context), options.svg)


if __name__ == "__main__":
    main()
