"""What qtensor costs the compiler, headers and operations, as ratios to bare Eigen + xsimd measured in the same run.

usage: compile_time.py [options]        prints a Markdown table; see --help

Each translation unit is compiled to an object several times, the units taking turns so that a noisy moment falls on all
alike; a figure is the median of the compiler's processor time (user + system), its ratio that of the medians. Object code
is what nm counts of functions and constants, without debugging information.
Exits with status 1 when a budget given as an option is exceeded.
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EIGEN_XSIMD = '#include <Eigen/Core>\n#include <xsimd/xsimd.hpp>\n'
UMBRELLA = '#include <qtensor/qtensor.hpp>\n'
QUANTIZE = UMBRELLA + 'auto quantized(const Eigen::MatrixXf& a) {{ return qtensor::quantize<qtensor::{0}>(a); }}\n'
DEQUANTIZE = (UMBRELLA + 'void numbers(const qtensor::tensor<qtensor::{0}>& w, Eigen::MatrixXf& y)'
              ' {{ y = qtensor::dequantize(w); }}\n')
PRODUCT = 'void product(const {0}& w, const Eigen::VectorXf& x, Eigen::VectorXf& y) {{ y.noalias() = w * x; }}\n'

# name: (text of the translation unit, what it is)
UNITS = {
    'bare': (EIGEN_XSIMD, 'Eigen + xsimd alone'),
    'types': ('#include <qtensor/types.hpp>\n', '`qtensor/types.hpp`'),
    'kernels': ('#include <qtensor/kernels.hpp>\n', '`qtensor/kernels.hpp`'),
    'umbrella': (UMBRELLA, '`qtensor/qtensor.hpp`'),
    'quantize-tensor': (QUANTIZE.format('int8_per_tensor'), 'the same, `quantize<int8_per_tensor>(A)`'),
    'quantize-rows': (QUANTIZE.format('int8_per_channel<0>'), 'the same, `quantize<int8_per_channel<0>>(A)`'),
    'quantize-groups': (QUANTIZE.format('mxfp4'), 'the same, `quantize<mxfp4>(A)`'),
    'dequantize': (DEQUANTIZE.format('mxfp4'), 'the same, `Y = dequantize(W)`, W mxfp4'),
    'dense-product': (EIGEN_XSIMD + PRODUCT.format('Eigen::MatrixXf'), 'Eigen + xsimd, `y = W*x`, W dense'),
    'product': (UMBRELLA + PRODUCT.format('qtensor::tensor<qtensor::mxfp4>'), 'the same, `y = W*x`, W mxfp4'),
}


def seconds(command):
    """Processor time of one run of a command, its children included."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f'failed: {shlex.join(command)}')
    return usage.ru_utime + usage.ru_stime


def include_flags(front):
    """The options that lead to qtensor, the folders given, and the system's Eigen and xsimd, in this order."""
    system = subprocess.run(['pkg-config', '--cflags', 'eigen3', 'xsimd'], capture_output=True, text=True, check=True)
    given = [word for folder in front for word in ('-isystem', folder)]
    return ['-I', str(ROOT / 'include'), *given, *shlex.split(system.stdout.replace('-I', '-isystem '))]


def code_size(file):
    """KB of the functions and constants of an object file."""
    symbols = subprocess.run(['nm', '--print-size', file], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in symbols.splitlines()]
    return sum(int(words[1], 16) for words in lines if len(words) == 4) / 1024


def measure(names, command, repeat):
    """{name: [seconds of each repetition]}, {name: KB of code}; the first round only warms the file cache."""
    taken, code = {name: [] for name in names}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            (Path(folder) / f'{name}.cpp').write_text(UNITS[name][0])
        for turn in range(repeat + 1):
            for name in names:
                spent = seconds([*command, '-c', f'{folder}/{name}.cpp', '-o', f'{folder}/{name}.o'])
                if turn > 0:
                    taken[name].append(spent)
        for name in names:
            code[name] = code_size(f'{folder}/{name}.o')
    return taken, code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--compiler', default=os.environ.get('CXX', 'g++'), help='default: CXX, or g++')
    parser.add_argument('--flags', default='-O2 -march=x86-64-v3', help='default: %(default)s')
    parser.add_argument('--repeat', type=int, default=7, help='measured rounds, default: %(default)s')
    parser.add_argument('--isystem', action='append', default=[], metavar='DIR', help='folder in front of the system\'s')
    parser.add_argument('--only', action='append', choices=[name for name in UNITS if name != 'bare'], help='a unit')
    for name in UNITS:
        if name != 'bare':
            parser.add_argument(f'--max-{name}', type=float, metavar='RATIO', help=f'budget for {UNITS[name][1]}'
                                .replace('%', '%%'))
    options = parser.parse_args()
    names = ['bare', *(options.only or [name for name in UNITS if name != 'bare'])]
    command = [*shlex.split(options.compiler), '-std=c++20', *shlex.split(options.flags), *include_flags(options.isystem)]
    taken, code = measure(names, command, options.repeat)

    version = subprocess.run([*shlex.split(options.compiler), '--version'], capture_output=True, text=True, check=True)
    print(f'{version.stdout.splitlines()[0]}, {options.flags}, median of {options.repeat}\n')
    print('| translation unit | seconds | ratio | fastest - slowest | KB of code |')
    print('|---|---|---|---|---|')
    exceeded = []
    base = statistics.median(taken['bare'])
    for name in names:
        ratio = statistics.median(taken[name]) / base
        print(f'| {UNITS[name][1]} | {ratio * base:.2f} | {ratio:.2f} | {min(taken[name]):.2f} - {max(taken[name]):.2f} '
              f'| {code[name]:.0f} |')
        budget = getattr(options, 'max_' + name.replace('-', '_'), None)
        if budget is not None and ratio > budget:
            exceeded.append(f'{UNITS[name][1]}: {ratio:.2f} > {budget}')
    if 'product' in names and 'dense-product' in names:
        extra = (statistics.median(taken['product']) - statistics.median(taken['umbrella'])
                 - statistics.median(taken['dense-product']) + base)
        print(f'\nA quantized product costs {extra:+.2f} s more than a dense one.')
    for excess in exceeded:
        print(f'over budget: {excess}')
    return 1 if exceeded else 0


if __name__ == '__main__':
    sys.exit(main())
