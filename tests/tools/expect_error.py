"""A file that must not compile: its diagnostics must say what its first line promises.

usage: expect_error.py BUILD FILE
FILE starts with `// EXPECT: text`: the text must stand in the diagnostics (echoed source lines do not count).
`// EXPECT-FIRST: text` instead asks for it in the first error line.
A file that mentions QTENSOR_VALID is compiled again with -DQTENSOR_VALID, and then it must compile: the proof that
nothing else in it is wrong.
"""
# SPDX-License-Identifier: BSD-3-Clause
import fcntl
import json
import re
import subprocess
import sys
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
    if 'QTENSOR_VALID' in text:
        compiles, said = compile_file(compiler, [*flags, '-DQTENSOR_VALID'], source)
        if not compiles:
            found.append(f'its valid variant does not compile:\n{said}')
    return found


def main():
    build, source = sys.argv[1], Path(sys.argv[2])
    compiler, flags = compiler_and_flags(build)
    flags = with_precompiled(compiler, flags, Path(build).resolve() / 'precompiled')
    found = complaints(compiler, flags, source)
    for complaint in found:
        print(f'{source.name}: {complaint}')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
