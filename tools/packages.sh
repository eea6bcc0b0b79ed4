# Installs what the scripts of this project need and the machine lacks; sourced, not run.
# SPDX-License-Identifier: BSD-3-Clause
#
#   need_program PROGRAM PACKAGE     need_file FILE PACKAGE     need_header HEADER PACKAGE
# collect the Debian packages to install; `install_packages` installs them, or says what to install where there is
# no apt-get, and fails only when something is still missing afterwards.

missing_packages=()
missing_things=()

_missing() {
  missing_things+=("$1")
  missing_packages+=("$2")
}

_compiles() {
  echo "#include <$1>" | "${CXX:-c++}" -std=c++20 -E -x c++ $(pkg-config --cflags eigen3 2>/dev/null) - >/dev/null 2>&1
}

# The oldest Meson that reads our files; a distribution's older one does not help.
need_meson() {
  local have
  have=$(meson --version 2>/dev/null) || have=0
  [ "$(printf '1.0.0\n%s\n' "$have" | sort -V | head -n 1)" = 1.0.0 ] && return
  [ "$have" = 0 ] || echo "Meson $have is too old; if the package is too: python3 -m pip install --user 'meson>=1.0'" >&2
  _missing "the program meson, 1.0 or later" meson
}

need_program() { command -v "$1" >/dev/null 2>&1 || _missing "the program $1" "$2"; }
need_file() { [ -e "$1" ] || _missing "the file $1" "$2"; }
need_header() { _compiles "$1" || _missing "the C++ header <$1>" "$2"; }

install_packages() {
  [ ${#missing_packages[@]} -eq 0 ] && return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "Missing, and this is not Debian or Ubuntu: please install" >&2
    printf '  %s\n' "${missing_things[@]}" >&2
    echo "(on Debian they come from: ${missing_packages[*]})" >&2
    return 1
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
      echo "Please install as root: apt-get install ${missing_packages[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "Installing: ${missing_packages[*]}"
  "${as_root[@]}" apt-get update -qq </dev/null || echo "apt-get update failed; trying with the lists at hand" >&2
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing_packages[@]}" </dev/null
}

# What every build needs.
need_build_tools() {
  need_program python3 python3
  need_program "${CXX:-g++}" g++
  need_program ninja ninja-build
  need_meson
  need_program pkg-config pkg-config
  need_header Eigen/Core libeigen3-dev
  need_header xsimd/xsimd.hpp libxsimd-dev
}
