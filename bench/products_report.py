#!/usr/bin/env python3
"""Turns the JSON of bench/products into a Markdown table.

    python3 bench/products_report.py products.json [--markdown docs/products.md]
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import json

import report


def read(path):
    """{product: {candidate: measurement}} in the order of the file, and the context."""
    with open(path, encoding="utf-8") as file:
        run = json.load(file)
    table = {}
    for b in run["benchmarks"]:
        name, shape, candidate = b["name"].split("/")[:3]
        table.setdefault((name, shape), {})[candidate] = b
    return table, run["context"]


def markdown(table, context, command):
    found = context.get("libraries")
    libraries = f"{found}; they use all that the CPU has, unless the command keeps them from it" if found else "none found"
    caches = ", ".join(f"L{c['level']} {c['size'] // 1024} KiB" for c in context.get("caches", []))
    out = ["# Speed of products", "", f"`{command}`", "",
           f"- Machine: {context.get('cpu', 'unknown')}, one thread{'; ' if caches else ''}{caches}.",
           f"- Compiler: {context.get('compiler', 'unknown')}. Libraries: {libraries}.",
           "- *of bound*: the share of the peak of the instruction that does the work (a chain of it, or squares "
           "on matrix registers, measured beside each row), or, where one row of activations meets weights (marked R), "
           "of the speed of reading as many bytes.",
           "", "| product | M x N x K | who | Gop/s | us | of bound |", "|---|---|---|---:|---:|---:|"]
    for (name, shape), group in table.items():
        for who, m in sorted(group.items(), key=lambda pair: not pair[0].startswith("qtensor")):
            bound = f"{m['of_bound']:.2f}" + (" R" if m["reads"] else "")
            out.append(f"| {name} | {shape} | {who} | {m['Gop/s']:.0f} | {m['us']:.1f} | {bound} |")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json")
    parser.add_argument("--markdown", help="write the table there instead of printing it")
    parser.add_argument("--command", default="taskset -c 1 bench/products --benchmark_out=products.json")
    arguments = parser.parse_args()
    text = markdown(*read(arguments.json), arguments.command)
    report.give(text, arguments.markdown)


if __name__ == "__main__":
    main()
