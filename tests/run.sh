#!/usr/bin/env bash
# Builds and runs the tests; the last line is "N passed, N failed" and the exit status says the same.
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: tests/run.sh [--full]
#   (default)  kernels by g++ for AVX2, for dot products with AVX-VNNI and for all this machine has, by clang++ for
#              SSE4.2 and the main ones for the highest level; operations, products and most random cases by clang++ with
#              all this machine has, the vendors' by it for SSE4.2; the newest headers of Eigen and xsimd on the umbrella
#              and usage tests, users' projects; of many schemes that differ little a few, on each level its own
#              architecture and plain code
#   --full     also all schemes, all architectures on every level, every test by clang++, both compilers x both Eigens x
#              both xsimds on every level, sanitizers, exhaustive sweeps, random cases at length, and 64-bit Arm
#              under qemu (hours)
# Environment: JOBS (how many compilers at once; default: one per processor), BUILD (default: build/tests).
# Installs what is missing on Debian and Ubuntu; elsewhere it says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."

full=no
for option in "$@"; do
  case $option in
    --full) full=yes ;;
    *) sed -n '2,15s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
build=${BUILD:-build/tests}
export JOBS=${JOBS:-$(nproc)}
peers=../shared/peers
passed=0 failed=0 skipped=0 notes=()

. tools/packages.sh
need_program g++ g++
need_program clang++ clang
need_build_tools
need_program cmake cmake
need_program make make
need_program nm binutils
need_program ld.lld lld
need_header doctest/doctest.h doctest-dev
need_header nlohmann/json.hpp nlohmann-json3-dev
need_file /usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz dataset-fashion-mnist
if [ $full = yes ]; then
  need_program aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
  need_program qemu-aarch64 qemu-user
fi
install_packages || echo "going on with what there is" >&2
# Programs made without optimization have many symbols: LLVM's linker joins them soonest.
if command -v ld.lld >/dev/null; then export CXX_LD=lld; fi

note_skip() {
  skipped=$((skipped + 1))
  notes+=("skipped: $1")
}

# part NAME TARGET TEST-ARGUMENTS... -- SETUP-ARGUMENTS...: one build folder; builds TARGET, runs the tests chosen,
# adds up the results. The compiler is CXX.
part() {
  local name=$1 target=$2 choice=() counts
  shift 2
  while [ "$1" != -- ]; do choice+=("$1"); shift; done
  shift
  local folder=$build/$name log=$build/$name/meson-logs/testlog.json fresh=()
  [ -e "$folder/build.ninja" ] && fresh=(--reconfigure)
  echo "== $name"
  if ! meson setup "${fresh[@]}" "$folder" . "$@" >"$build/$name.setup.log" </dev/null; then
    cat "$build/$name.setup.log"
    failed=$((failed + 1)) notes+=("failed: $name does not configure")
    return
  fi
  if ! ninja -C "$folder" -j "$JOBS" $target </dev/null; then
    failed=$((failed + 1)) notes+=("failed: $name does not build")
    return
  fi
  rm -f "$log"
  meson test -C "$folder" --no-rebuild --print-errorlogs --timeout-multiplier 4 "${choice[@]}" </dev/null || true
  if [ ! -s "$log" ]; then
    failed=$((failed + 1)) notes+=("failed: $name ran no test")
    return
  fi
  counts=$(python3 tests/tools/count.py "$log")
  local p f s
  read -r p f s <<<"$(head -n 1 <<<"$counts")"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  while read -r line; do
    [ -z "$line" ] || notes+=("$name: $line")
  done <<<"$(tail -n +2 <<<"$counts")"
}

# The levels that this machine runs (level_guard.cpp has the full lists of features), and last all that it has. The
# lowest, and most operations, products and random cases on the last, are clang++'s where there is one, without
# optimization, which compiles in half of g++'s time; the highest of the named ones is asked about by clang++ with
# optimization, but for what it then compiles longest.
named=x86-64-v2,x86-64-v3 lowest=x86-64-v2 levels=native other=x86-64-v3
case $(uname -m) in
  x86_64)
    if grep -qw avx512bw /proc/cpuinfo && grep -qw avx512vl /proc/cpuinfo; then
      levels=x86-64-v3,native named+=,x86-64-v4 other=x86-64-v4
    else
      note_skip "level x86-64-v4: this machine has no AVX-512"
    fi ;;
  *) levels=default named=default lowest= other=default ;;
esac
every_folder=-Dfolders=simd,ops,products,expr,compat,usage,random,conformance gcc_folders=$every_folder
if ! command -v clang++ >/dev/null; then
  note_skip "clang++ is not installed"
  levels=${lowest:+$lowest,}$levels lowest=
elif [ -n "$lowest" ]; then
  gcc_folders=-Dfolders=simd
fi

# Eigen 5 and xsimd 14 beside the system's own, where the script that unpacks them is at hand and works.
mkdir -p "$build"
newest=$PWD/$build/newest/root/usr/include
if [ ! -e "$newest/eigen3/Eigen/Core" ] || [ ! -e "$newest/xsimd/xsimd.hpp" ]; then
  if [ ! -e $peers/newest-headers.sh ]; then
    note_skip "the newest headers: no $peers/newest-headers.sh"
    newest=
  elif ! timeout 300 bash $peers/newest-headers.sh "$build/newest" >"$build/newest.log" 2>&1 </dev/null; then
    note_skip "the newest headers: newest-headers.sh fails: $(tail -n 1 "$build/newest.log")"
    newest=
  fi
fi

# Optimized as for debugging, which compiles sooner than -O1 and is fast enough to run. Headers compile alone, and with
# the newest of others, by clang++, the faster of the two, where it is there.
alone=() sooner=g++
if command -v clang++ >/dev/null; then alone=(--no-suite headers) sooner=clang++; fi
# g++ compiles sooner where it seldom looks for memory that it no longer needs, and chooses itself what to inline.
gcc_args="-Dcpp_args=--param=ggc-min-heapsize=1000000 -DQTENSOR_NO_FORCED_INLINE"
CXX=g++ part gcc all "${alone[@]}" -- -Doptimization=g -Ddebug=false -Dlevels=$levels $gcc_folders \
  -Din_full=false "-Dnewest_headers=$newest" "$gcc_args"
if [ -n "$lowest" ]; then
  CXX=clang++ part lowest "simd_tests ops_tests expr_tests compat_tests usage_tests conformance_tests" --suite simd \
    --suite ops --suite expr --suite compat --suite usage --suite conformance -- -Doptimization=0 -Ddebug=false \
    -Din_full=false -Dlevels=$lowest -Dfolders=simd,expr,compat,usage,conformance -Dwerror=true
  CXX=clang++ part products "ops_tests products_tests random_tests" --suite ops --suite products --suite random -- \
    -Doptimization=0 -Ddebug=false -Din_full=false -Dlevels=native -Dfolders=ops,products,random
fi
if [ -n "$newest" ]; then
  CXX=$sooner part newest newest_tests --suite newest -- -Doptimization=0 -Ddebug=false -Dlevels=native \
    "-Dcpp_args=-isystem $newest/eigen3 -isystem $newest"
fi
if command -v clang++ >/dev/null; then
  CXX=clang++ part clang short_tests --suite short --suite headers -- \
    -Doptimization=1 -Ddebug=false -Din_full=false -Dlevels=$other -Dwerror=true
fi
# The dot products of CPUs that have them with AVX2 alone: no other level does.
if grep -qw avx_vnni /proc/cpuinfo; then
  programs= tests=()
  for name in gemm_groups gemm_int8 gemm_taps ops_dot ops_nibble_dot; do
    programs+=" tests/test_simd_${name}_alderlake" tests+=("simd/$name alderlake")
  done
  CXX=g++ part avxvnni "$programs" "${tests[@]}" -- -Doptimization=g -Ddebug=false -Dlevels=alderlake -Din_full=false \
    "$gcc_args"
elif [ "$(uname -m)" = x86_64 ]; then
  note_skip "AVX-VNNI: this machine has none"
fi
if [ $full = yes ]; then
  CXX=clang++ part clang all --no-suite layers --no-suite consumers -- -Dlevels=native -Dwerror=true
  CXX=g++ part gcc all --suite exhaustive --suite fuzz --suite matrix --suite cross -- -Dall_levels=true -Din_full=true \
    -Dlevels=$named $every_folder "-Dnewest_headers=$newest"
  CXX=g++ part sanitized all --no-suite layers --no-suite consumers -- \
    -Dlevels=native -Db_sanitize=address,undefined -Dcpp_args=-fno-sanitize-recover=all
fi

for note in "${notes[@]}"; do echo "$note"; done
[ $skipped -eq 0 ] || echo "$skipped skipped, for the reasons above"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
