"""A file that must not compile: its diagnostics must say what its first line promises.

usage: expect_error.py BUILD FILE
       expect_error.py BUILD --valid FILE...
FILE starts with `// EXPECT: text`: the text must stand in the diagnostics (echoed source lines do not count).
`// EXPECT-FIRST: text` instead asks for it in the first error line.
--valid: files that mention QTENSOR_VALID must compile with -DQTENSOR_VALID: the proof that nothing else in them is
wrong. They are compiled as one, and only where that fails one by one, for it takes a compiler longer to begin.
"""
# SPDX-License-Identifier: BSD-3-Clause
import fcntl
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from flags import compiler_and_flags, is_clang, precompile


def compile_file(compiler, flags, source):
    """(compiles, diagnostics) of one file; no code is generated."""
    no_echo = '-fno-caret-diagnostics' if is_clang(compiler) else '-fno-diagnostics-show-caret'
    run = subprocess.run([*compiler, *flags, no_echo, '-fsyntax-only', str(source)], capture_output=True, text=True)
    return run.returncode == 0, run.stderr


def with_precompiled(compiler, flags, folder):
    """The flags, and behind them what makes the compiler begin with the whole library, precompiled in that folder.

    It is made there once for all files; seconds become tenths. That a header needs no other before it is what
    headers_alone.py checks.
    """
    include = next((Path(f) for f in flags if (Path(f) / 'qtensor/qtensor.hpp').is_file()), None)
    if not include:
        return flags
    folder.mkdir(parents=True, exist_ok=True)
    options = folder / 'options.json'
    newest = max(path.stat().st_mtime for path in include.rglob('*.hpp'))
    with open(folder / 'lock', 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not options.exists() or options.stat().st_mtime < newest:
            found = precompile([*compiler, *flags], folder / 'library.hpp', '#include <qtensor/qtensor.hpp>\n')
            options.write_text(json.dumps(found))
    return [*flags, *json.loads(options.read_text())]


def complaints(compiler, flags, source):
    """What is wrong with the file; empty when it fails as promised."""
    text = source.read_text()
    promise = re.match(r'// EXPECT(-FIRST)?: (.+)', text)
    if not promise:
        return ['its first line is not `// EXPECT: text` or `// EXPECT-FIRST: text`']
    found = []
    compiles, said = compile_file(compiler, flags, source)
    where = said
    if promise[1]:
        where = next((line for line in said.splitlines() if 'error:' in line), '')
    if compiles:
        found.append('it compiles')
    elif promise[2].strip() not in where:
        found.append(f'the diagnostics do not say: {promise[2].strip()}\n{said}')
    return [f'{source.name}: {complaint}' for complaint in found]


def as_one(sources):
    """The text of a unit that includes files in namespaces of their own, behind all that they include."""
    headers = {line for source in sources for line in source.read_text().splitlines() if line.startswith('#include')}
    spaces = [f'namespace file_{number} {{\n#include "{source}"\n}}' for number, source in enumerate(sources)]
    return '\n'.join([*sorted(headers), *spaces, ''])


def invalid(compiler, flags, sources):
    """What is wrong with valid variants; empty when all compile."""
    flags = [*flags, '-DQTENSOR_VALID']
    sources = [source for source in sources if 'QTENSOR_VALID' in source.read_text()]
    with tempfile.TemporaryDirectory() as folder:
        unit = Path(folder) / 'valid.cpp'
        unit.write_text(as_one(sources))
        if compile_file(compiler, flags, unit)[0]:
            return []
    found = []
    for source in sources:
        compiles, said = compile_file(compiler, flags, source)
        if not compiles:
            found.append(f'{source.name}: its valid variant does not compile:\n{said}')
    return found


def main():
    build, valid = sys.argv[1], sys.argv[2] == '--valid'
    sources = [Path(name).resolve() for name in sys.argv[3 if valid else 2:]]
    compiler, flags = compiler_and_flags(build)
    flags = with_precompiled(compiler, flags, Path(build).resolve() / 'precompiled')
    found = invalid(compiler, flags, sources) if valid else complaints(compiler, flags, sources[0])
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
