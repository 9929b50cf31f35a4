# SPDX-License-Identifier: Apache-2.0
# What building and testing needs, from the distribution.
# shellcheck shell=bash

# One line per need; the first of its alternatives that is installed or can be had is taken.
readonly BUILD_PACKAGES=(
  g++ cmake ninja-build pkg-config ccache git
  "libboost1.81-dev libboost1.83-dev libboost-dev" nlohmann-json3-dev libyaml-cpp-dev libfmt-dev
  libspdlog-dev libsqlitecpp-dev libsqlite3-dev libtomlplusplus-dev prometheus-cpp-dev libssl-dev zlib1g-dev tzdata gettext
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler
)
# What the jobs of the demo run.
# shellcheck disable=SC2034  # used by build.sh
readonly DEMO_PACKAGES=(python3 procps)
readonly TEST_PACKAGES=(
  libgtest-dev librapidcheck-dev libbenchmark-dev python3 python3-pytest python3-pytest-xdist python3-pytest-timeout python3-jsonschema python3-dev python3-venv curl shellcheck codespell strace util-linux procps iproute2 valgrind prometheus
  munge slurmctld slurmd slurm-client slurm-wlm-basic-plugins
  "clang-19 clang" "libclang-rt-19-dev libclang-rt-dev" "clang-format-19 clang-format"
  "clang-tidy-19 clang-tidy" mold debootstrap
)

# What tests need of PyPI, in .venv, by its hashes, so that a test that fails fails everywhere: python.in says what and how.
readonly PYTHON_LOCK=tools/dev/python.lock

# PyTorch, TensorFlow and JAX, by their hashes. They take 6 GB, so all checkouts share one copy for each lock file.
readonly FRAMEWORKS_LOCK=tools/dev/frameworks.lock
readonly FRAMEWORKS_HOME=${GFLOW_FRAMEWORKS:-${XDG_CACHE_HOME:-$HOME/.cache}/gflow/frameworks}

installed() { [[ "$(dpkg-query -W -f '${Status}' "$1" 2>/dev/null)" == "install ok installed" ]]; }
candidate() { [[ "$(apt-cache policy "$1" 2>/dev/null)" == *"Candidate: "[0-9]* ]]; }

# The package to install for a need ("a b c": any of them), or nothing if one is there.
wanted_package() {
  local package
  for package in $1; do
    if installed "$package"; then return 0; fi
  done
  for package in $1; do
    if candidate "$package"; then
      say "$package"
      return 0
    fi
  done
  say "${1%% *}"
}

missing_packages() {
  local need
  for need in "$@"; do wanted_package "$need"; done
}

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif have sudo; then
    sudo "$@"
  else
    die "not root and no sudo here; as root, run: $*"
  fi
}

install_packages() {
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  if [[ ${#missing[@]} -eq 0 ]]; then return 0; fi
  have apt-get || die "no apt-get here; install what these Debian packages hold: ${missing[*]}"
  as_root apt-get update -q
  mapfile -t missing < <(missing_packages "$@")  # now that the lists are fresh
  say "installing: ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# With the distribution's Python, which every user of a test can read. Without them their tests are skipped.
install_python_tools() {
  [[ -x .venv/bin/pip ]] || /usr/bin/python3 -m venv .venv
  .venv/bin/pip install -q --require-hashes -r "$PYTHON_LOCK"
}

# The copy for this lock file and this Python, made once; what no checkout has asked for in a week goes.
make_frameworks() {
  local copy=$1
  if [[ ! -f $copy/complete ]]; then
    find "$FRAMEWORKS_HOME" -mindepth 2 -maxdepth 2 -name complete -mtime +7 -printf '%h\0' | xargs -0 -r rm -rf
    rm -rf "$copy"
    /usr/bin/python3 -m venv --without-pip "$copy" || return 1
    UV_HTTP_TIMEOUT=180 .venv/bin/uv pip install -q --no-cache --python "$copy/bin/python" --no-deps --require-hashes \
      -r "$FRAMEWORKS_LOCK" || return 1
  fi
  touch "$copy/complete"
}

# .venv-frameworks is a link to it. Checkouts that are set up at once wait for each other.
install_frameworks() {
  local key
  key=$({ /usr/bin/python3 --version && cat "$FRAMEWORKS_LOCK"; } | sha256sum)
  mkdir -p "$FRAMEWORKS_HOME"
  (
    flock 9
    make_frameworks "$FRAMEWORKS_HOME/${key:0:16}"
  ) 9>"$FRAMEWORKS_HOME/lock" || return 1
  ln -sfn "$FRAMEWORKS_HOME/${key:0:16}" .venv-frameworks
}

# kube-apiserver, etcd, kube-scheduler, kubelet and kube-controller-manager for the tests of a cluster, by their hashes: minutes of compiling, once for all checkouts of a machine.
install_cluster() { nice -n 10 tests/cluster/build.sh --kube-scheduler --kubelet --kube-controller-manager >/dev/null; }
install_helm() { nice -n 10 tests/cluster/build.sh --helm >/dev/null; }

setup_tools() {
  install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
  install_python_tools || say "PyPI cannot be reached: tests that need what tools/dev/python.in lists are skipped"
}

setup() {
  case "${1:-}" in
    "" | build) ;;
    *) die "setup: '$1' is nothing to set up; 'build' is what compiling needs, and without a word it is all" ;;
  esac
  if [[ "${1:-}" == build ]]; then
    install_packages "${BUILD_PACKAGES[@]}"
    return
  fi
  setup_tools
  install_frameworks || say "PyPI cannot be reached: what needs PyTorch, TensorFlow or JAX is skipped"
  install_cluster || say "no Kubernetes control plane could be built: what needs one is skipped"
  install_helm || say "helm could not be built: tests of the chart are skipped"
  say "everything needed is installed"
}
