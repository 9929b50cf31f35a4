# SPDX-License-Identifier: Apache-2.0
# Building, installing, benchmarks and the demo.
# shellcheck shell=bash

# configure PRESET [cmake argument...]
configure() {
  local preset=$1
  shift
  if ! have cmake || ! have ninja; then die "cmake or ninja is missing; run ./dev setup"; fi
  mkdir -p "build/$preset"
  if ! cmake --preset "$preset" "$@" >"build/$preset/configure.log" 2>&1; then
    cat "build/$preset/configure.log" >&2
    die "configuring failed; if a package is missing, run ./dev setup"
  fi
}

# compile PRESET [target...]
compile() {
  local preset=$1
  shift
  cmake --build "build/$preset" -j "$JOBS" ${1:+--target "$@"}
}

# `|| die`, as bash forgets `set -e` in whatever is called behind an `if`.
build() {
  configure release
  compile release programs || die "the build failed"
  say "programs are in build/release/bin"
}

install_gflow() {
  local prefix=${1:-$HOME/.local}
  build
  cmake --install build/release --prefix "$prefix" --strip
  say "installed in $prefix"
  case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) say "add $prefix/bin to PATH" ;;
  esac
}

bench() {
  local wanted=${1:-} program ran=0
  configure release
  compile release || die "the build failed"
  for program in build/release/bench/*_bench bench/*_bench.py bench/*_bench.sh; do
    local name=${program##*/}
    name=${name%%_bench*}
    if [[ ! -x $program || ( -n $wanted && $name != "$wanted" ) ]]; then continue; fi
    say "== $name"
    GFLOW_BIN_DIR="$PWD/build/release/bin" PATH="$PWD/build/release/bin:$PATH" "$program"
    ran=1
  done
  [[ $ran -eq 1 ]] || die "no such benchmark: ${wanted:-bench/ is empty}"
}

docs() {
  local program=.venv/bin/sphinx-build
  [[ -x $program ]] || die "sphinx is missing; run ./dev setup"
  PYTHONPATH=python/src "$program" -q -W --keep-going -b html python/docs build/docs/python
  say "the first page is build/docs/python/index.html"
}

demo() {
  case ${1:-} in
    "") tour_of_machine ;;
    kube) tour_of_cluster ;;
    *) die "there is no demo '$1': it is './dev demo' or './dev demo kube'" ;;
  esac
}

build_for_demo() {
  mkdir -p build
  if ! (build) >build/demo.log 2>&1; then
    tail -n 40 build/demo.log >&2
    die "the build failed; all it said is in build/demo.log"
  fi
}

tour_of_machine() {
  install_packages "${BUILD_PACKAGES[@]}" "${DEMO_PACKAGES[@]}"
  build_for_demo
  GFLOW_BIN_DIR="$PWD/build/release/bin" exec tools/demo.sh
}

# The control plane is that of the tests, and so is what drives it.
tour_of_cluster() {
  if [[ ! -x .venv/bin/go ]]; then
    say "What testing needs is installed first, as by ./dev setup: about ten minutes, once."
    setup
  fi
  build_for_demo
  say "kube-apiserver, etcd and helm are built if they are not yet: about eight minutes, once."
  tests/cluster/build.sh >/dev/null
  tests/cluster/build.sh --helm >/dev/null
  GFLOW_BIN_DIR="$PWD/build/release/bin" exec .venv/bin/python tools/demo_kube.py
}
