"""Every sentence that a static_assert of the library can say is provoked by a file in tests/errors.

usage: errors_complete.py ROOT
A sentence counts as provoked when the text that a file expects is a part of it.
"""
# SPDX-License-Identifier: BSD-3-Clause
import re
import sys
from pathlib import Path


def sentences(text):
    """The messages that begin with "qtensor:" in the static_asserts of a header, adjacent literals joined."""
    literal = r'"(?:[^"\\]|\\.)*"'
    messages = re.findall(rf'({literal}(?:\s*{literal})*)\s*\)\s*;', text)
    joined = [''.join(part[1:-1] for part in re.findall(literal, message)) for message in messages]
    asserted = text.count('static_assert')
    return [sentence for sentence in joined if sentence.startswith('qtensor: ')] if asserted else []


def main():
    root = Path(sys.argv[1])
    expected = [re.match(r'// EXPECT(?:-FIRST)?: (.+)', path.read_text())[1].strip()
                for path in sorted((root / 'tests' / 'errors').glob('*.cpp'))]
    found = [f'{path.relative_to(root).as_posix()}: no file in tests/errors provokes "{sentence}"'
             for path in sorted((root / 'include').rglob('*.hpp')) for sentence in sentences(path.read_text())
             if not any(text in sentence for text in expected)]
    print('\n'.join(found) or f'{len(expected)} files provoke every sentence')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
