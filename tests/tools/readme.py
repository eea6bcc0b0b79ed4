"""Every C++ snippet of the README is part of a program that is built and run: it stands, line by line, in an example.
And every section of the specification that anything cites stands in docs/numerics.md.

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


def sections_without_a_row(root):
    """What the sources cite as `NUMERICS 2.1, 2.4`, and docs/numerics.md does not have."""
    rows = set(re.findall(r'^\| ([\d.]+) \|', (root / 'docs/numerics.md').read_text(), flags=re.M))
    for folder in ('include', 'docs', 'tests', 'bench', 'examples'):
        for path in sorted((root / folder).rglob('*')):
            if path.suffix not in ('.hpp', '.cpp', '.md', '.py'):
                continue
            for cited in re.findall(r'NUMERICS (\d[\d.]*(?:, \d[\d.]*)*)', path.read_text()):
                for section in cited.split(', '):
                    if section.rstrip('.') not in rows:
                        yield f'{path.relative_to(root)} cites NUMERICS {section}, which docs/numerics.md does not have'


def main():
    root = Path(sys.argv[1])
    examples = {path.relative_to(root).as_posix(): path.read_text() for path in sorted(root.glob('examples/**/*.cpp'))}
    snippets = re.findall(r'^```cpp\n(.*?)^```', (root / 'README.md').read_text(), flags=re.M | re.S)
    found = [] if snippets else ['the README has no C++ snippet']
    for number, snippet in enumerate(snippets, 1):
        homes = [name for name, text in examples.items() if stands_in(textwrap.dedent(snippet), text)]
        if not homes or (number == 1 and 'examples/quickstart.cpp' not in homes):
            found.append(f'snippet {number} of the README stands in no example that it should:\n{snippet}')
    found += sections_without_a_row(root)
    print('\n'.join(found) or f'{len(snippets)} snippets stand in examples, all cited sections in docs/numerics.md')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
