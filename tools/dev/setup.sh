# SPDX-License-Identifier: Apache-2.0
# What building and testing needs, from the distribution.
# shellcheck shell=bash

# One line per need; the first of its alternatives that is installed or can be had is taken.
readonly BUILD_PACKAGES=(
  g++ cmake ninja-build pkg-config ccache git
  "libboost1.81-dev libboost1.83-dev libboost-dev" nlohmann-json3-dev libyaml-cpp-dev libfmt-dev
  libspdlog-dev libsqlitecpp-dev libsqlite3-dev libtomlplusplus-dev prometheus-cpp-dev libssl-dev zlib1g-dev tzdata gettext
)
# What the jobs of the demo run.
# shellcheck disable=SC2034  # used by build.sh
readonly DEMO_PACKAGES=(python3 procps)
readonly TEST_PACKAGES=(
  libgtest-dev librapidcheck-dev libbenchmark-dev python3 python3-pytest python3-pytest-xdist python3-jsonschema python3-venv curl shellcheck codespell strace util-linux procps valgrind prometheus
  "clang-19 clang" "libclang-rt-19-dev libclang-rt-dev" "clang-format-19 clang-format"
  "clang-tidy-19 clang-tidy" mold debootstrap
)

# What tests need of PyPI, in .venv: these versions, so that a test that fails fails everywhere.
readonly PYTHON_TOOLS=(
  schemathesis==4.32.5 openapi-python-client==0.29.1
  mypy==2.4.1 "pyright[nodejs]==1.1.414" scikit-build-core==1.1.2 cloudpickle==3.1.2
)

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
  .venv/bin/pip install -q "${PYTHON_TOOLS[@]}"
}

setup() {
  install_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
  install_python_tools || say "PyPI cannot be reached: what needs ${PYTHON_TOOLS[*]} is skipped"
  say "everything needed is installed"
}
