"""The house rules of include/qtensor: includes go one way, what is forbidden on a floor.

usage: layers.py ROOT        checks the source tree ROOT
       layers.py --self-test builds a tree that breaks every rule and requires that each break is reported
"""
# SPDX-License-Identifier: BSD-3-Clause
import re
import sys
import tempfile
from pathlib import Path

from floors import HEIGHT, UMBRELLAS, floor_of, forbidden_libraries, may_include

INTRINSICS_HEADER = re.compile(r'(\w*intrin|arm_neon|arm_sve)\.h$')
INTRINSIC = re.compile(r'\b_mm(256|512)?_\w+\(|\b__m(128|256|512)[id]?\b|\bv(ld|st)1q?_\w+|\b\w+q_(f32|[su](8|16|32))\(')
EIGEN_VERSION = re.compile(r'\bEIGEN_(VERSION_AT_LEAST|(WORLD|MAJOR|MINOR|PATCH)_VERSION)\b')
XSIMD_VERSION = re.compile(r'\bXSIMD_VERSION_\w+')
LONGEST_LINE = 120


def without_comments(text):
    """The text with comments blanked; line breaks stay."""
    blank = lambda match: re.sub(r'[^\n]', ' ', match[0])
    return re.sub(r'//[^\n]*|/\*.*?\*/', blank, text, flags=re.S)


def hardware_file(name):
    """Whether a header may name intrinsics and xsimd versions."""
    return name == 'simd/arch.hpp' or re.fullmatch(r'simd/ops\w*\.hpp', name) is not None


def header_complaints(name, text):
    code = without_comments(text)
    lines = text.split('\n')
    if not re.match(r'// \S', lines[0]):
        yield 'the first line does not state its purpose'
    if lines[1:2] != ['// SPDX-License-Identifier: BSD-3-Clause']:
        yield 'the second line is not the licence'
    if code.count('#pragma once') != 1:
        yield 'has no #pragma once'
    if not text.isascii():
        yield 'is not ASCII'
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST_LINE:
            yield f'line {number} is longer than {LONGEST_LINE} columns'
    if floor_of(name) not in HEIGHT and name not in UMBRELLAS:
        yield 'stands on no floor'
    for other in re.findall(r'#\s*include\s*[<"]([^>"]+)[>"]', code):
        if other.startswith('qtensor/'):
            if not may_include(name, other.removeprefix('qtensor/')):
                yield f'may not include {other}'
        elif INTRINSICS_HEADER.search(other) and not hardware_file(name):
            yield f'may not include {other}: intrinsics live in simd/arch.hpp and simd/ops*.hpp'
        elif other.split('/')[0] in forbidden_libraries(name):
            yield f'may not include {other}'
    if not hardware_file(name):
        if INTRINSIC.search(code):
            yield f'names an intrinsic: {INTRINSIC.search(code)[0]}'
        if XSIMD_VERSION.search(code):
            yield 'asks for the xsimd version: only simd/arch.hpp and simd/ops*.hpp may'
    if name != 'expr/eigen_version.hpp' and EIGEN_VERSION.search(code):
        yield 'asks for the Eigen version: only expr/eigen_version.hpp may'


def cycle_complaints(texts):
    """Circles of includes among the headers."""
    includes = {name: [other for other in re.findall(r'#\s*include\s*<qtensor/([^>]+)>', without_comments(text))
                       if other in texts] for name, text in texts.items()}
    state, found = {}, []

    def visit(name, path):
        state[name] = 'open'
        for other in includes[name]:
            if state.get(other) == 'open':
                found.append((name, 'includes in a circle: ' + ' -> '.join([*path[path.index(other):], other])))
            elif other not in state:
                visit(other, [*path, other])
        state[name] = 'done'

    for name in sorted(includes):
        if name not in state:
            visit(name, [name])
    return found


def prefixes(stem):
    """The names a test file may test: codec_fp8 is one of the tests of codec."""
    words = stem.split('_')
    return ['_'.join(words[:count]) for count in range(1, len(words) + 1)]


def complaints(root):
    """(file, complaint) for everything in the tree that breaks a rule."""
    include, tests = root / 'include' / 'qtensor', root / 'tests'
    texts = {path.relative_to(include).as_posix(): path.read_text() for path in sorted(include.rglob('*.hpp'))}
    found = [(name, complaint) for name, text in texts.items() for complaint in header_complaints(name, text)]
    found += cycle_complaints(texts)
    for name in texts:
        own = tests / name[:-len('.hpp')]
        if re.match(r'simd/ops_(generic|portable|x86|avx512|neon)\.hpp', name):
            own = tests / 'simd' / 'ops'  # parts of ops.hpp, one for each instruction set
        if floor_of(name) and not own.with_suffix('.cpp').exists() and not list(own.parent.glob(own.name + '_*.cpp')):
            found.append((name, f'has no test tests/{name[:-4]}.cpp'))
    listed = (tests / 'meson.build').read_text()
    for path in sorted(tests.glob('*/*.cpp')):
        folder, name = path.parent.name, path.relative_to(tests).as_posix()
        if folder in HEIGHT and not any(f'{folder}/{stem}.hpp' in texts for stem in prefixes(path.stem)):
            found.append(('tests/' + name, 'mirrors no header'))
        if folder not in ('main', 'consumers') and f"'{path.stem}'" not in listed:
            found.append(('tests/' + name, 'is not listed in tests/meson.build'))
    return found


def self_test():
    """Fabricates a house in which every rule is broken once; returns the rules that went unnoticed."""
    good = '// Something useful.\n// SPDX-License-Identifier: BSD-3-Clause\n#pragma once\n'
    broken = {
        'core/upward.hpp': (good + '#include <qtensor/simd/arch.hpp>\n', 'may not include qtensor/simd/arch.hpp'),
        'core/eigen.hpp': (good + '#include <Eigen/Core>\n', 'may not include Eigen/Core'),
        'tensor/xsimd.hpp': (good + '#include <xsimd/xsimd.hpp>\n', 'may not include xsimd/xsimd.hpp'),
        'reference/intrin.hpp': (good + '#include <immintrin.h>\n', 'may not include immintrin.h'),
        'ops/eigen.hpp': (good + '#include <Eigen/Core>\n', 'may not include Eigen/Core'),
        'expr/compat.hpp': (good + '#include <qtensor/compat/onnx.hpp>\n', 'may not include qtensor/compat/onnx.hpp'),
        'simd/kernel.hpp': (good + 'auto x = _mm256_add_ps(a, b);\n', 'names an intrinsic'),
        'simd/neon.hpp': (good + 'auto x = vaddq_f32(a, b);\n', 'names an intrinsic'),
        'simd/version.hpp': (good + '#if XSIMD_VERSION_MAJOR >= 9\n#endif\n', 'asks for the xsimd version'),
        'expr/version.hpp': (good + '#if EIGEN_VERSION_AT_LEAST(5, 0, 0)\n#endif\n', 'asks for the Eigen version'),
        'expr/top.hpp': (good + '#include <qtensor/qtensor.hpp>\n', 'may not include qtensor/qtensor.hpp'),
        'format/one.hpp': (good + '#include <qtensor/format/two.hpp>\n', None),
        'format/two.hpp': (good + '#include <qtensor/format/one.hpp>\n', 'includes in a circle'),
        'policy/purpose.hpp': (good.replace('// Something useful.', '#include <bit>'), 'does not state its purpose'),
        'policy/licence.hpp': (good.replace('SPDX', 'XDPS'), 'second line is not the licence'),
        'policy/once.hpp': (good.replace('#pragma once', '// #pragma once'), 'has no #pragma once'),
        'policy/ascii.hpp': (good + '// \u00b1\n', 'is not ASCII'),
        'policy/long.hpp': (good + '//' + 'x' * LONGEST_LINE + '\n', 'longer than'),
        'policy/untested.hpp': (good, 'has no test'),
        'cellar/room.hpp': (good, 'stands on no floor'),
        'types.hpp': (good + '#include <qtensor/simd/arch.hpp>\n', 'may not include qtensor/simd/arch.hpp'),
        'kernels.hpp': (good + '#include <qtensor/expr/product.hpp>\n', 'may not include qtensor/expr/product.hpp'),
        'simd/ops_x86.hpp': (good + '#include <immintrin.h>\nauto x = _mm_add_ps(a, b);\n', None),
        'core/long_name.hpp': (good, None),
        'core/fine.hpp': (good + '// _mm_add_ps( and EIGEN_MAJOR_VERSION in a comment are fine\n', None),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / 'tests').mkdir()
        tested = [name for name in broken if floor_of(name) and name not in ('policy/untested.hpp', 'core/long_name.hpp')]
        for name in tested + ['core/long_name_in_part.hpp', 'core/orphan.hpp', 'core/unlisted.hpp']:
            path = (root / 'tests' / name).with_suffix('.cpp')
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (root / 'tests' / 'meson.build').write_text(
            ''.join(f"'{Path(name).stem}'\n" for name in tested + ['core/orphan.hpp', 'core/long_name_in_part.hpp']))
        for name, (text, _) in broken.items():
            path = root / 'include' / 'qtensor' / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        said = complaints(root)
    wanted = [(name, rule) for name, (_, rule) in broken.items() if rule]
    wanted += [('tests/core/orphan.cpp', 'mirrors no header'), ('tests/core/unlisted.cpp', 'is not listed')]
    missed = [f'not reported: {name}: {rule}' for name, rule in wanted
              if not any(name == where and rule in what for where, what in said)]
    clean = {name for name, (_, rule) in broken.items() if rule is None}
    missed += [f'reported for nothing: {where}: {what}' for where, what in said if where in clean]
    return missed


def main():
    found = self_test() if sys.argv[1] == '--self-test' else [': '.join(pair) for pair in complaints(Path(sys.argv[1]))]
    print('\n'.join(found) or 'every rule is kept')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
