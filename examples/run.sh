#!/usr/bin/env bash
# Trains two small networks on Fashion-MNIST and evaluates them under every scheme; the table stands between the lines
# "== schemes" and "== end". Exits non-zero on failure.
# SPDX-License-Identifier: BSD-3-Clause
#
# usage: examples/run.sh [options of fashion_mnist, such as --quick; see its first lines]
# Environment: BUILD (default: build/examples), where trained weights and the plot are kept as well.
# Installs what is missing on Debian and Ubuntu; elsewhere it says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build/examples}

. tools/packages.sh
need_build_tools
need_file /usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz dataset-fashion-mnist
install_packages

fresh=()
[ -d "$build/meson-private" ] && fresh=(--reconfigure)
meson setup "${fresh[@]}" "$build" . -Dtests=disabled -Dexamples=enabled -Dbuildtype=release \
  -Dcpp_args=-march=native >/dev/null </dev/null
ninja -C "$build" examples/fashion_mnist/fashion_mnist </dev/null

"$build/examples/fashion_mnist/fashion_mnist" --weights "$build/fashion_mnist" --plot "$build/fashion_mnist.svg" "$@" \
  </dev/null
echo "The plot is $build/fashion_mnist.svg"
