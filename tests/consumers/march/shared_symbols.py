"""Two units with different -march in one program: they share no symbol that depends on the architecture.

usage: shared_symbols.py BUILD            builds unit.cpp for v2 and v3, compares their symbols, links and runs both
       shared_symbols.py BUILD --in-part  without optimization alone
       shared_symbols.py BUILD --self-test

The linker keeps one of the definitions that two objects share, so code that differs between levels must not share a
name. Of the symbols that both objects define and that name something of qtensor, these are in order:
  * code and data of the floors below simd, which are plain C++ on plain types and the same on every level;
  * the standard library's templates on such types.
So a shared symbol is an offence when
  * its name contains a type of Eigen or xsimd: their packets and alignments follow -march; or
  * it is code defined in a header of the floor simd or above: there all names carry the level's own inline namespace.
Eigen's own functions are shared between units whatever qtensor does, so Eigen has to be given the same alignment in all
of them: -DEIGEN_MAX_ALIGN_BYTES=64 below, as in any program that mixes levels.
Where code is defined is read from the debug information (`nm -l`). Both -O0, which keeps every inline function, and
-O2, which is what users build and takes twice as long, are looked at.
"""
# SPDX-License-Identifier: BSD-3-Clause
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'tools'))
from flags import compiler_and_flags
from floors import HEIGHT

LEVELS = ('v2', 'v3')
OPTIMIZATIONS = ('-O0', '-O2')


def compile_unit(command, source, level, optimization, work):
    """The object file of one unit for one level."""
    out = work / f'{level}{optimization}.o'
    subprocess.run([*command, f'-march=x86-64-{level}', optimization, '-g1', f'-DQTENSOR_UNIT=unit_{level}', '-c',
                    str(source), '-o', str(out)], check=True)
    return out


def shareable(unit):
    """{mangled name: file of its definition or ''} of the symbols another object may define too."""
    listing = subprocess.run(['nm', '-l', '--defined-only', str(unit)], check=True, capture_output=True, text=True)
    found = {}
    for line in listing.stdout.splitlines():
        match = re.match(r'[0-9a-f]+ [WVu] (\S+)(?:\t(.*):\d+)?$', line)
        if match and '7qtensor' in match[1]:
            found[match[1]] = match[2] or ''
    return found


def above_reference(file):
    """Whether a source file is a header of the floor simd or above, or an umbrella."""
    match = re.search(r'include/qtensor/(?:\./)?(?:(\w+)/)?[\w.]+$', file)
    return bool(match) and HEIGHT.get(match[1], HEIGHT['expr']) >= HEIGHT['simd']


def offences(one, other):
    """(symbol, reason) for the symbols that two objects must not share."""
    mine, theirs = shareable(one), shareable(other)
    for name in sorted(mine.keys() & theirs.keys()):
        if re.search(r'\d(Eigen|xsimd)(?=\d|[NI])', name):
            yield name, 'names a type of Eigen or xsimd'
        elif above_reference(mine[name]):
            yield name, 'is defined in ' + mine[name].rpartition('include/')[2]


def readable(name):
    return subprocess.run(['c++filt', name], capture_output=True, text=True, check=True).stdout.strip()


def check_unit(command, source, work, optimizations=OPTIMIZATIONS):
    """The offences of one source file at these optimization levels, readable and without repeats."""
    found = {}
    for optimization in optimizations:
        objects = [compile_unit(command, source, level, optimization, work) for level in LEVELS]
        if optimization == '-O0' and not shareable(objects[0]):
            raise SystemExit(f'{source}: no symbol of qtensor, so nothing is checked')
        found |= {readable(name): why for name, why in offences(*objects)}
    return found


def self_test(command, work):
    """Two headers with one offence of each kind and their lawful neighbours; returns what was judged wrongly."""
    for floor, text in {
            'core': 'namespace qtensor { template <class T> int lawful_scalar(T x) { return x + 1; } }',
            'simd': '''
namespace Eigen { struct packet {}; }
#ifdef __AVX2__
#define QTENSOR_ABI v3
#else
#define QTENSOR_ABI v2
#endif
namespace qtensor::inline QTENSOR_ABI { template <class T> int lawful_kernel(T x) { return x + 2; } }
namespace qtensor { template <class T> int untagged_kernel(T x) { return x + 3; }
                    struct holder {}; inline holder h; }
namespace Eigen { template <class T> struct evaluator { int untagged_evaluator() { return 4; } }; }
'''}.items():
        folder = work / 'include' / 'qtensor' / floor
        folder.mkdir(parents=True)
        (folder / 'unit.hpp').write_text('#pragma once\n' + text)
    source = work / 'unit.cpp'
    source.write_text('''
#include <qtensor/core/unit.hpp>
#include <qtensor/simd/unit.hpp>
int QTENSOR_UNIT(int x) {
  return qtensor::lawful_scalar(x) + qtensor::lawful_kernel(x) + qtensor::untagged_kernel(x) +
         Eigen::evaluator<qtensor::holder>().untagged_evaluator();
}
''')
    found = check_unit([*command, '-I', str(work / 'include')], source, work)
    wrong = [f'not reported: {name}' for name in ('untagged_kernel', 'untagged_evaluator')
             if not any(name in symbol for symbol in found)]
    return wrong + [f'reported for nothing: {symbol}' for symbol in found if 'lawful' in symbol]


def main():
    compiler, flags = compiler_and_flags(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        if sys.argv[2:] == ['--self-test']:
            wrong = self_test([*compiler, '-std=c++20'], work)
            print('\n'.join(wrong) or 'every offence is reported, nothing else is')
            return 1 if wrong else 0
        optimizations = OPTIMIZATIONS[:1] if sys.argv[2:] == ['--in-part'] else OPTIMIZATIONS
        found = check_unit([*compiler, *flags, '-DEIGEN_MAX_ALIGN_BYTES=64'], HERE / 'unit.cpp', work, optimizations)
        for symbol, why in found.items():
            print(f'shared between levels: {symbol}\n  {why}')
        program = work / 'march'
        units = [str(work / f'{level}{optimizations[-1]}.o') for level in LEVELS]
        subprocess.run([*compiler, *flags, str(HERE / 'main.cpp'), *units, '-o', str(program)], check=True)
        status = subprocess.run([str(program)]).returncode
    if status not in (0, 77):
        print(f'the program of both units fails: {status}')
    return 1 if found else abs(status)


if __name__ == '__main__':
    sys.exit(main())
