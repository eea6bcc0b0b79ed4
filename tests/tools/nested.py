"""Configures a build folder inside another one, builds every test there and runs the quick suites.

usage: nested.py ROOT BUILD NAME [--need PROGRAM]... [--skip REASON] [--without SUITE]... -- MESON-SETUP-OPTIONS...
Skipped (exit status 77) where a needed program is missing or a reason is given.
The compiler is CXX, as always; the folder is BUILD/nested/NAME.
"""
# SPDX-License-Identifier: BSD-3-Clause
import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path


def main():
    own, setup = sys.argv[1:], []
    if '--' in own:
        own, setup = own[:own.index('--')], own[own.index('--') + 1:]
    parser = argparse.ArgumentParser()
    parser.add_argument('root')
    parser.add_argument('build')
    parser.add_argument('name')
    parser.add_argument('--need', action='append', default=[])
    parser.add_argument('--skip')
    parser.add_argument('--without', action='append', default=[])
    options = parser.parse_args(own)
    reason = options.skip
    for program in options.need:
        if shutil.which(program) is None:
            reason = f'{program} is not installed'
    if reason:
        print(f'skipped: {reason}')
        return 77
    folder = Path(options.build) / 'nested' / options.name
    fresh = ['--wipe'] if (folder / 'meson-private').exists() else []
    subprocess.run(['meson', 'setup', *fresh, str(folder), options.root, *setup], check=True, stdin=subprocess.DEVNULL)
    without = [word for suite in options.without for word in ('--no-suite', suite)]
    jobs = ['-j', os.environ['JOBS']] if 'JOBS' in os.environ else []
    subprocess.run(['ninja', '-C', str(folder), *jobs], check=True, stdin=subprocess.DEVNULL)
    return subprocess.run(['meson', 'test', '-C', str(folder), '--no-rebuild', '--print-errorlogs', '--timeout-multiplier',
                           '10', *without], stdin=subprocess.DEVNULL).returncode


if __name__ == '__main__':
    sys.exit(main())
