# SPDX-License-Identifier: Apache-2.0
# What is checked without running the code.
# shellcheck shell=bash

# The files of the tree with such names: sources '*.h' '*.cpp'
sources() {
  local -a names=(-name "$1")
  shift
  local name
  for name in "$@"; do names+=(-o -name "$name"); done
  find . \( -path ./build -o -path ./.git -o -path ./.venv \) -prune -o -type f \( "${names[@]}" \) -printf '%P\n'
}

# Of these, the ones that differ from the last commit or that it changed.
changed_sources() {
  local file
  { git diff --name-only HEAD -- "$@" && git diff --name-only HEAD~1 -- "$@"; } 2>/dev/null | sort -u |
    while read -r file; do if [[ -f $file ]]; then say "$file"; fi; done
}

# Versions of clang-format differ in what they make of one style: only 19 can judge.
format_program() {
  local program
  for program in clang-format-19 clang-format; do
    if have "$program" && [[ "$("$program" --version)" == *"version 19."* ]]; then
      say "$program"
      return 0
    fi
  done
  return 1
}

check_format() { sources '*.h' '*.cpp' | xargs -r "$(format_program)" --dry-run -Werror; }
format() {
  local program
  program=$(format_program) || die "clang-format 19 is missing; run ./dev setup"
  sources '*.h' '*.cpp' | xargs -r "$program" -i
}
# Each header compiled alone: those that changed, or with --full all of them.
check_headers() {
  local -a headers
  if [[ ${1:-} == --full ]]; then mapfile -t headers < <(sources '*.h' | grep '^src/'); else
    mapfile -t headers < <(changed_sources 'src/*.h')
  fi
  if [[ ${#headers[@]} -eq 0 ]]; then return 0; fi
  printf '%s\0' "${headers[@]}" | xargs -0 -n 1 -P "$JOBS" g++ -std=c++23 -fsyntax-only -Isrc -Wall -Wextra
}
check_shell() {
  sources '*.sh' | xargs -r shellcheck -x dev .ci/run || return 1
  # With pipefail a pipe says no at random when its last program leaves early.
  if sources '*.sh' | xargs grep -nE '[|][[:space:]]*grep -[a-zA-Z]*q' dev .ci/run; then
    say "grep -q behind a pipe: compare with [[ ... ]] instead"
    return 1
  fi
}
# Tests misspell on purpose.
check_spelling() {
  sources '*.h' '*.cpp' '*.py' '*.sh' '*.md' '*.cmake' '*.txt' dev | grep -v '_test\.cpp$' |
    xargs -r codespell --ignore-words-list=crate,ans,stoer,inh,acess,nknown,notin,anull,caf,biuld
}

# check_tidy FILE...: by the command that compiles each alone; nothing is built.
check_tidy() {
  local -a built=()
  local file
  cmake --preset dev -B build/tidy -DGFLOW_UNITY=OFF -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_C_COMPILER=clang-19 \
    >"build/tidy.log" 2>&1 || return 1
  for file in "$@"; do
    if grep -qF "\"file\": \"$PWD/$file\"" build/tidy/compile_commands.json; then built+=("$file"); fi
  done
  if [[ ${#built[@]} -eq 0 ]]; then return 0; fi
  printf '%s\0' "${built[@]}" | xargs -r -0 -n 4 -P "$JOBS" clang-tidy-19 -p build/tidy --quiet 2>/dev/null
}

# Runs one check if its tool is there: one_check NAME TOOL-PRESENT(0/1) COMMAND...
one_check() {
  local name=$1 present=$2 start=$SECONDS
  shift 2
  if [[ $present -ne 0 ]]; then
    say "  $name: skipped, its tool is not installed (./dev setup)"
    if in_ci; then return 1; fi
    return 0
  fi
  if "$@"; then
    say "  $name: ok, $((SECONDS - start)) s"
  else
    say "  $name: FAILED, $((SECONDS - start)) s"
    return 1
  fi
}

present() { if "$@" >/dev/null 2>&1; then say 0; else say 1; fi; }

check() {
  local failed=0
  local -a tidied
  if [[ ${1:-} == --full ]]; then
    mapfile -t tidied < <(sources '*.cpp' | grep '^src/' | grep -v '_test\.cpp$')
  else
    mapfile -t tidied < <(changed_sources 'src/*.cpp' | grep -v '_test\.cpp$')
  fi
  [[ -f build/dev/compile_commands.json ]] || configure dev
  one_check format "$(present format_program)" check_format || failed=1
  one_check layers "$(present have python3)" python3 tools/check_layers.py || failed=1
  one_check definitions "$(present have python3)" python3 tools/check_definitions.py || failed=1
  one_check translations "$(present have xgettext)" python3 tools/translations.py check || failed=1
  one_check headers "$(present have g++)" check_headers "${1:-}" || failed=1
  one_check shell "$(present have shellcheck)" check_shell || failed=1
  one_check spelling "$(present have codespell)" check_spelling || failed=1
  one_check tidy "$(present have clang-tidy-19)" check_tidy "${tidied[@]}" || failed=1
  return "$failed"
}
