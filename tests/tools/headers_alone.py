"""Every header compiles on its own, and twice in a row, without a warning, and pulls in only what its floor may use.

usage: headers_alone.py BUILD INCLUDE FLOOR
FLOOR is a folder of INCLUDE/qtensor, or `.` for the headers beside the folders.

Most of the time goes into reading xsimd, Eigen and intrinsics, so headers that include them, by themselves or by way of
others of qtensor, find those precompiled: all that such a header is spared is to include them before it uses them.
"""
# SPDX-License-Identifier: BSD-3-Clause
import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from flags import compiler_and_flags, is_clang, precompile
from floors import forbidden_libraries


@functools.cache
def libraries_of(header):
    """The headers of others named above that a header of qtensor includes, by itself or by way of others of qtensor."""
    found = set()
    for name in re.findall(r'^#include <((?:qtensor/|xsimd/|Eigen/|immintrin).+)>', header.read_text(), re.MULTILINE):
        if name.startswith('qtensor/'):
            root = next(parent for parent in header.parents if parent.name == 'qtensor').parent
            found |= libraries_of(root / name)
        else:
            found.add(name)
    return frozenset(found)


@functools.cache
def options_for(command, libraries, work):
    """Those that let a unit begin with the headers of some libraries."""
    if not libraries:
        return []
    header = work / ('_'.join(sorted(libraries)).replace('/', '_').replace('.', '_') + '.hpp')
    # Intrinsics are included where the architecture has them.
    return precompile(command, header, ''.join(f'#if __has_include(<{name}>)\n#include <{name}>\n#endif\n'
                                               for name in sorted(libraries)))


@functools.cache
def warnings_of(compiler):
    """-Wshadow is clang's: that of g++ complains of enumerators that have to be qualified, too."""
    return ['-Wall', '-Wextra', *(['-Wshadow'] if is_clang([compiler]) else [])]


def check(command, include, name, work):
    """What is wrong with the header qtensor/<name>; empty when nothing is."""
    unit, seen = work / 'alone.cpp', work / 'alone.d'
    unit.write_text(f'#include <qtensor/{name}>\n' * 2)
    # Libraries that it may not reach are not precompiled: the list of files has to show them.
    forbidden = forbidden_libraries(name)
    libraries = frozenset(each for each in libraries_of(include / 'qtensor' / name)
                          if each.split('/')[0] not in forbidden)
    run = subprocess.run([*command, *options_for(command, libraries, work), *warnings_of(command[0]), '-Werror',
                          '-fsyntax-only', '-MD', '-MF', str(seen), str(unit)], capture_output=True, text=True)
    if run.returncode != 0:
        return [f'{name}: does not compile alone\n{run.stderr}']
    files = seen.read_text().replace('\\\n', ' ').split()
    return [f'{name}: includes {library} by way of {file}' for library in forbidden
            for file in files if f'/{library}/' in file][:1]


def main():
    build, include, floor = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    compiler, flags = compiler_and_flags(build)
    names = sorted(os.path.relpath(path, include / 'qtensor') for path in (include / 'qtensor' / floor).glob('*.hpp'))
    with tempfile.TemporaryDirectory() as work:
        found = [complaint for name in names
                 for complaint in check((*compiler, *flags), include, name, Path(work))]
    if not names:
        found.append(f'{include}/qtensor/{floor} has no headers')
    print('\n'.join(found) or f'{len(names)} headers compile alone and twice')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
