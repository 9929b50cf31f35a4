# SPDX-License-Identifier: Apache-2.0
# Everything that is tested, and the count of it.
# shellcheck shell=bash

REPORTS=""
SUMMED_UP=no
TEST_FAILURES=0  # failures that are in no report: builds, checks, missing tools

# part NAME COMMAND...: runs a part of the test, prints how long it took, notes whether it failed.
part() {
  local name=$1 start=$SECONDS
  shift
  say "== $name"
  if "$@"; then
    say "== $name: done in $((SECONDS - start)) s"
  else
    say "== $name: FAILED after $((SECONDS - start)) s"
    TEST_FAILURES=$((TEST_FAILURES + 1))
    return 1
  fi
}

# A part that cannot run here: named, and a failure where everything has to run.
skip_part() {
  say "== $1: skipped, $2"
  if in_ci; then TEST_FAILURES=$((TEST_FAILURES + 1)); fi
}

# Runs tests whose failures are in their report: reported NAME REPORT COMMAND...
reported() {
  local name=$1 report=$2 start=$SECONDS
  shift 2
  say "== $name"
  local code=0 counts failed
  "$@" || code=$?
  counts=$(python3 tools/count_tests.py "$report")
  read -r _ failed _ <<<"${counts%%$'\n'*}"
  if [[ $code -ne 0 && $failed -eq 0 ]]; then TEST_FAILURES=$((TEST_FAILURES + 1)); fi
  say "== $name: exit code $code after $((SECONDS - start)) s"
}

run_ctest() {
  ctest --test-dir "build/$1" -j "$JOBS" --no-tests=error --output-on-failure \
    --output-junit "$REPORTS/ctest-$1.xml" >"$REPORTS/ctest-$1.log" 2>&1 || {
    grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .* Passed )' "$REPORTS/ctest-$1.log"
    return 1
  }
  tail -n 3 "$REPORTS/ctest-$1.log"
}

# The Python that has pytest: the system's own first, others may not see its packages.
test_python() {
  local python
  for python in /usr/bin/python3 python3; do
    if "$python" -c 'import pytest' 2>/dev/null; then
      say "$python"
      return 0
    fi
  done
  return 1
}

# run_pytest PRESET REPORT FOLDER...: tests find the programs by GFLOW_BIN_DIR.
run_pytest() {
  local preset=$1 report=$2 python
  shift 2
  python=$(test_python)
  local -a parallel=()
  if "$python" -c 'import xdist' 2>/dev/null; then parallel=(-n "$((JOBS * 2))"); fi
  GFLOW_BIN_DIR="$PWD/build/$preset/bin" "$python" -m pytest -q -p no:cacheprovider \
    "${parallel[@]}" --junit-xml "$REPORTS/$report.xml" "$@"
}

python_test_folders() {
  local folder
  for folder in "$@"; do
    if compgen -G "tests/$folder/test_*.py" >/dev/null; then say "tests/$folder"; fi
  done
}

build_dev() {
  if (configure dev) && compile dev >"$REPORTS/build-dev.log" 2>&1; then return 0; fi
  if [[ -f $REPORTS/build-dev.log ]]; then grep -E 'error|FAILED' "$REPORTS/build-dev.log" | head -n 40; fi
  return 1
}
compile_asan() { nice -n 10 cmake --build build/asan -j "$JOBS" >"$REPORTS/build-asan.log" 2>&1; }
compile_fuzz() {
  nice -n 10 cmake --build build/fuzz -j "$JOBS" --target fuzz_targets >"$REPORTS/build-fuzz.log" 2>&1
}

# Waits for a build running behind: built NAME PID
built() {
  if wait "$2"; then return 0; fi
  tail -n 40 "$REPORTS/build-$1.log"
  return 1
}

# Each target a few seconds from its corpus; what it finds stays out of the tree.
fuzz_all() {
  local seconds=$1 target name found failed=0
  for target in build/fuzz/fuzz/*; do
    name=${target##*/}
    [[ -x $target && -f $target ]] || continue
    found=build/fuzz/found/$name
    mkdir -p "$found" "tests/fuzz/corpus/$name"
    if "$target" -max_total_time="$seconds" -max_len=4096 -timeout=10 -artifact_prefix="$found-" \
      -verbosity=0 -print_final_stats=0 "$found" "tests/fuzz/corpus/$name" >"$found.log" 2>&1; then
      say "  $name: ok"
    else
      failed=1
      tail -n 30 "$found.log"
      say "  $name: FAILED, the input is $(compgen -G "$found-*" | tail -n 1)"
    fi
  done
  return "$failed"
}

fuzz() {
  have clang++-19 || die "fuzzing needs clang-19; run ./dev setup"
  configure fuzz
  compile fuzz fuzz_targets
  fuzz_all "${1:-5}"
}

summary() {
  local passed failed skipped
  local -a reports
  mapfile -t reports < <(compgen -G "$REPORTS/*.xml")
  if [[ ${#reports[@]} -eq 0 ]]; then
    passed=0 failed=0 skipped=0
  else
    local counts
    counts=$(python3 tools/count_tests.py "${reports[@]}")
    read -r passed failed skipped <<<"${counts%%$'\n'*}"
    if [[ $failed -gt 0 ]]; then tail -n +2 <<<"$counts" | sed 's/^/failed: /'; fi
  fi
  failed=$((failed + TEST_FAILURES))
  SUMMED_UP=yes
  local line="$passed passed, $failed failed"
  if [[ $skipped -gt 0 ]]; then line+=", $skipped skipped"; fi
  say "all of it took $SECONDS s"
  say "$line"
  [[ $failed -eq 0 && $passed -gt 0 ]]
}

# The tests of one build: ctest, then those in Python.
test_python_folders() {
  local preset=$1 name
  shift
  local -a folders
  mapfile -t folders < <(python_test_folders "$@")
  if [[ ${#folders[@]} -eq 0 ]]; then return 0; fi
  name="python ($preset: ${folders[*]})"
  if ! test_python >/dev/null; then
    skip_part "$name" "pytest is not installed (./dev setup)"
  else
    reported "$name" "$REPORTS/pytest-$preset.xml" run_pytest "$preset" "pytest-$preset" "${folders[@]}"
  fi
}

# However the run ends, nothing goes on behind it and the last line is the count.
end_tests() {
  local code=$? pid
  for pid in $(jobs -p); do kill "$pid" 2>/dev/null || true; done
  if [[ $SUMMED_UP == no ]]; then
    TEST_FAILURES=$((TEST_FAILURES + 1))
    summary || true
    code=1
  fi
  exit "$code"
}

# Compilers work behind while tests, which mostly wait, run in front.
run_tests() {
  local asan fuzz_build=""
  REPORTS="$PWD/build/reports"
  rm -rf "$REPORTS" && mkdir -p "$REPORTS"
  trap end_tests EXIT
  trap 'exit 130' INT TERM
  if in_ci && have apt-get; then setup >"$REPORTS/setup.log" 2>&1 || tail -n 5 "$REPORTS/setup.log"; fi
  if ! part "build (dev)" build_dev; then
    summary
    return 1
  fi
  (configure asan && compile_asan) &
  asan=$!
  reported "ctest (dev)" "$REPORTS/ctest-dev.xml" run_ctest dev
  part "check" check || true
  test_python_folders dev tools e2e crash
  if part "build (asan)" built asan "$asan"; then
    if have clang++-19; then
      (configure fuzz && compile_fuzz) &
      fuzz_build=$!
    fi
    reported "ctest (asan)" "$REPORTS/ctest-asan.xml" run_ctest asan
    test_python_folders asan e2e
  fi
  if [[ -z $fuzz_build ]]; then
    skip_part "fuzz" "clang-19 is not installed (./dev setup)"
  elif part "build (fuzz)" built fuzz "$fuzz_build"; then
    part "fuzz" fuzz_all "${FUZZ_SECONDS:-3}" || true
  fi
  summary
}
