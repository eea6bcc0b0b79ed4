"""Every C++ snippet of the README is part of a program that is built and run: it stands, line by line, in an example.

usage: readme.py ROOT
Indentation common to the whole snippet does not count. The first snippet must stand in examples/quickstart.cpp.
"""
# SPDX-License-Identifier: BSD-3-Clause
import re
import sys
import textwrap
from pathlib import Path


def stands_in(snippet, program):
    """Whether the lines of the snippet follow each other in the program, all moved right by the same amount."""
    lines, wanted = program.splitlines(), snippet.strip('\n').splitlines()
    for start in range(len(lines) - len(wanted) + 1):
        part = '\n'.join(lines[start:start + len(wanted)])
        if textwrap.dedent(part) == '\n'.join(wanted):
            return True
    return False


def main():
    root = Path(sys.argv[1])
    examples = {path.relative_to(root).as_posix(): path.read_text() for path in sorted(root.glob('examples/**/*.cpp'))}
    snippets = re.findall(r'^```cpp\n(.*?)^```', (root / 'README.md').read_text(), flags=re.M | re.S)
    found = [] if snippets else ['the README has no C++ snippet']
    for number, snippet in enumerate(snippets, 1):
        homes = [name for name, text in examples.items() if stands_in(textwrap.dedent(snippet), text)]
        if not homes or (number == 1 and 'examples/quickstart.cpp' not in homes):
            found.append(f'snippet {number} of the README stands in no example that it should:\n{snippet}')
    print('\n'.join(found) or f'{len(snippets)} snippets stand in examples')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
