"""Builds and runs a user's program against qtensor, in a temporary folder.

usage: run.py KIND ROOT BUILD
KIND  subproject: a Meson project with qtensor in its subprojects folder; it must add no target and no test
      pkgconfig, cmake: against an installation in a prefix of its own
      warnings: compiled with -Wall and -Wextra, optimized, for the widest vectors; nothing may be warned of
ROOT  qtensor's source tree     BUILD  a configured build folder of it, which names the compiler
"""
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'tools'))
from flags import compiler_and_flags

HERE = Path(__file__).resolve().parent


def run(*command, **options):
    """Runs a command, echoing it; its failure is the test's failure."""
    print('$', shlex.join(map(str, command)), flush=True)
    subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL, **options)


def output(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True, **options).stdout


def install(root, work, environment):
    """Installs qtensor into a prefix below work and returns the prefix."""
    prefix = work / 'prefix'
    run('meson', 'setup', work / 'install', root, f'--prefix={prefix}', '-Dtests=disabled', '-Dexamples=disabled',
        env=environment)
    run('meson', 'install', '-C', work / 'install', '--quiet', env=environment)
    return prefix


def subproject(root, work, environment):
    project = work / 'project'
    (project / 'subprojects').mkdir(parents=True)
    (project / 'subprojects' / 'qtensor').symlink_to(root)
    for file in (HERE / 'subproject' / 'meson.build', HERE / 'consumer.cpp'):
        (project / file.name).symlink_to(file)
    build = work / 'build'
    run('meson', 'setup', build, project, '--force-fallback-for=qtensor', env=environment)
    for what in ('targets', 'tests'):
        names = [item['name'] for item in json.loads(output('meson', 'introspect', f'--{what}', build))]
        if names != ['consumer']:
            raise SystemExit(f'the subproject adds {what}: {names}')
    run('ninja', '-C', build, '-j1')
    run(build / 'consumer')


def pkgconfig(root, work, environment):
    prefix = install(root, work, environment)
    search = [str(prefix / 'share' / 'pkgconfig'), environment.get('PKG_CONFIG_PATH', '')]
    environment = environment | {'PKG_CONFIG_PATH': ':'.join(filter(None, search))}
    flags = shlex.split(output('pkg-config', '--cflags', 'qtensor', env=environment))
    run(*shlex.split(environment['CXX']), '-std=c++20', '-O1', *flags, HERE / 'consumer.cpp', '-o', work / 'consumer')
    run(work / 'consumer')


def cmake(root, work, environment):
    prefix = install(root, work, environment)
    run('cmake', '-S', HERE / 'cmake', '-B', work / 'build', f'-DCMAKE_PREFIX_PATH={prefix}', '-DCMAKE_BUILD_TYPE=',
        '-DCMAKE_CXX_FLAGS=-O1', env=environment)
    run('cmake', '--build', work / 'build')
    run(work / 'build' / 'consumer')


def warnings(root, work, environment):
    compiler = shlex.split(environment['CXX'])
    wide = ['-march=x86-64-v4'] if output(*compiler, '-dumpmachine').startswith('x86_64') else []
    others = shlex.split(output('pkg-config', '--cflags', 'eigen3', 'xsimd', env=environment))
    others = [flag.replace('-I', '-isystem', 1) for flag in others]
    run(*compiler, '-std=c++20', '-O2', *wide, '-Wall', '-Wextra', '-Werror', '-I', root / 'include', *others, '-c',
        HERE / 'consumer.cpp', '-o', work / 'consumer.o')


def main():
    kind, root, build = sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3]
    compiler, _ = compiler_and_flags(build)
    environment = os.environ | {'CXX': shlex.join(compiler)}
    with tempfile.TemporaryDirectory() as folder:
        kinds = {'subproject': subproject, 'pkgconfig': pkgconfig, 'cmake': cmake, 'warnings': warnings}
        kinds[kind](root, Path(folder), environment)


if __name__ == '__main__':
    main()
