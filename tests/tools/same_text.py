# Usage: same_text.py PROGRAM FILE [--write]: what PROGRAM prints is what FILE holds; --write makes it so.
# SPDX-License-Identifier: BSD-3-Clause
import difflib
import pathlib
import subprocess
import sys


def main():
    program, path = sys.argv[1], pathlib.Path(sys.argv[2])
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    if "--write" in sys.argv:
        path.write_text(printed)
        return 0
    kept = path.read_text() if path.exists() else ""
    if printed == kept:
        return 0
    sys.stdout.writelines(difflib.unified_diff(kept.splitlines(True), printed.splitlines(True), str(path), program))
    print(f"{path.name} is not what {pathlib.Path(program).name} prints; same_text.py PROGRAM FILE --write mends it.")
    return 1


sys.exit(main())
