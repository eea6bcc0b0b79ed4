"""How the test programs are compiled: read from Meson's compilation database, for tests that run the compiler."""
# SPDX-License-Identifier: BSD-3-Clause
import json
import shlex
import subprocess
from pathlib import Path


def compiler_and_flags(build):
    """(compiler, flags): the command in front of a test program's options, and its standard and include options.

    build: the root of the Meson build folder. Options that only make sense for one output or one level are left out.
    Relative include folders are made absolute.
    """
    build = Path(build).resolve()
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        if entry['file'].endswith('tests/main/doctest_main.cpp'):
            break
    else:
        raise SystemExit(f'{build}: no command for doctest_main.cpp; are the tests enabled?')
    words = shlex.split(entry['command'])
    first = next(i for i, word in enumerate(words) if word.startswith('-'))
    flags = []
    for word, following in zip(words, words[1:] + ['']):
        if word.startswith('-std='):
            flags.append(word)
        elif word.startswith(('-I', '-isystem')):
            option = '-isystem' if word.startswith('-isystem') else '-I'
            folder = word[len(option):] or following
            flags += [option, str((Path(entry['directory']) / folder).resolve())]
    return words[:first], flags


def is_clang(compiler):
    version = subprocess.run([*compiler, '--version'], capture_output=True, text=True, check=True).stdout
    return 'clang' in version.splitlines()[0]


def precompile(command, header, text):
    """Writes `text` as a header and precompiles it; returns the options that let other units begin with it.

    command: the compiler and the options that those units are compiled with. [] where that does not work.
    """
    header.write_text(text)
    clang = is_clang(command[:1])
    made = header.with_suffix('.pch') if clang else header.with_name(header.name + '.gch')
    run = subprocess.run([*command, '-x', 'c++-header', str(header), '-o', str(made)], capture_output=True)
    if run.returncode != 0:
        return []
    return ['-include-pch', str(made)] if clang else ['-include', str(header)]
