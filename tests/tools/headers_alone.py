"""Every header compiles on its own, and twice in a row, without a warning, and pulls in only what its floor may use.

usage: headers_alone.py BUILD INCLUDE FLOOR
FLOOR is a folder of INCLUDE/qtensor, or `.` for the headers beside the folders.
"""
# SPDX-License-Identifier: BSD-3-Clause
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from flags import compiler_and_flags
from floors import forbidden_libraries


def check(command, include, name):
    """What is wrong with the header qtensor/<name>; empty when nothing is."""
    with tempfile.TemporaryDirectory() as folder:
        unit, seen = Path(folder) / 'alone.cpp', Path(folder) / 'alone.d'
        unit.write_text(f'#include <qtensor/{name}>\n' * 2)
        run = subprocess.run([*command, '-Wall', '-Wextra', '-Werror', '-fsyntax-only', '-MD', '-MF', str(seen),
                              str(unit)], capture_output=True, text=True)
        if run.returncode != 0:
            return [f'{name}: does not compile alone\n{run.stderr}']
        files = seen.read_text().replace('\\\n', ' ').split()
    return [f'{name}: includes {library} by way of {file}' for library in forbidden_libraries(name)
            for file in files if f'/{library}/' in file][:1]


def main():
    build, include, floor = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    compiler, flags = compiler_and_flags(build)
    names = sorted(os.path.relpath(path, include / 'qtensor') for path in (include / 'qtensor' / floor).glob('*.hpp'))
    found = [complaint for name in names for complaint in check([*compiler, *flags], include, name)]
    if not names:
        found.append(f'{include}/qtensor/{floor} has no headers')
    print('\n'.join(found) or f'{len(names)} headers compile alone and twice')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
