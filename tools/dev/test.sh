# SPDX-License-Identifier: Apache-2.0
# Everything that is tested, and the count of it.
#
# Each test runs once by default: unit tests, scenarios, fuzz corpora and tests/e2e with the address and
# undefined-behaviour sanitizers, the rest (contract, crash, hostile, tools) with the programs as developers build them.
# `--full` adds what takes long: what has threads with the thread sanitizer, everything without sanitizers,
# whole sweeps, fuzzing, every file compiled alone by both compilers, and `./dev fresh`.
# shellcheck shell=bash

REPORTS=""
SUMMED_UP=no
TEST_FAILURES=0  # failures that are in no report: builds, checks, missing tools
TIMES=()         # what each part took

# noted NAME SECONDS: remembers it for the summary.
noted() { TIMES+=("$(printf '%5d s  %s' "$2" "$1")"); }

# part NAME COMMAND...: runs a part of the test, prints how long it took, notes whether it failed.
part() {
  local name=$1 start=$SECONDS
  shift
  say "== $name"
  if "$@"; then
    say "== $name: done in $((SECONDS - start)) s"
    noted "$name" $((SECONDS - start))
  else
    say "== $name: FAILED after $((SECONDS - start)) s"
    noted "$name: FAILED" $((SECONDS - start))
    TEST_FAILURES=$((TEST_FAILURES + 1))
    return 1
  fi
}

# A part that cannot run here: named, and a failure where everything has to run.
skip_part() {
  say "== $1: skipped, $2"
  if in_ci; then TEST_FAILURES=$((TEST_FAILURES + 1)); fi
}

# The failures of these reports, counted; 1 where there are none to read.
failures_in() {
  local counts failed
  counts=$(python3 tools/count_tests.py "$@")  # all of it: failures follow on lines of their own
  read -r _ failed _ <<< "$counts"
  say "$failed"
}

# Runs tests whose failures are in their reports: reported NAME REPORTS... -- COMMAND...
reported() {
  local name=$1 start=$SECONDS code=0
  local -a reports=()
  shift
  while [[ $1 != -- ]]; do
    reports+=("$1")
    shift
  done
  shift
  say "== $name"
  "$@" || code=$?
  if [[ $code -ne 0 && $(failures_in "${reports[@]}") -eq 0 ]]; then TEST_FAILURES=$((TEST_FAILURES + 1)); fi
  say "== $name: exit code $code after $((SECONDS - start)) s"
  noted "$name" $((SECONDS - start))
}

# The longest first, so that nobody waits for one of them at the end.
readonly LONG_TESTS='/(engine|daemon|lab|placement|replay)_test$'

# One process per program, as many at once as there are processors: run_units PRESET PROGRAM...
run_units() {
  local preset=$1
  shift
  printf '%s\0' "$@" | xargs -0 -n 1 -P "$JOBS" tools/dev/run_unit.sh "$REPORTS/unit-$preset"
}

# unit_tests PRESET [PROGRAM...]: these test programs of a build, or all of them.
unit_tests() {
  local preset=$1 program
  shift
  local -a programs=("$@") reports=()
  if [[ ${#programs[@]} -eq 0 ]]; then
    mapfile -t programs < <(compgen -G "build/$preset/test/*_test")
    programs+=("build/$preset/test/play_scenario")
    mapfile -t -O "${#programs[@]}" programs < <(compgen -G "build/$preset/fuzz/*_replay")
    mapfile -t programs < <(printf '%s\n' "${programs[@]}" | grep -E "$LONG_TESTS"
      printf '%s\n' "${programs[@]}" | grep -vE "$LONG_TESTS")
  fi
  for program in "${programs[@]}"; do reports+=("$REPORTS/unit-$preset-${program##*/}.xml"); done
  reported "unit ($preset)" "${reports[@]}" -- run_units "$preset" "${programs[@]}"
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
  local -a parallel=() limited=()
  if "$python" -c 'import xdist' 2>/dev/null; then parallel=(-n "$((JOBS * 2))"); fi
  # A test that hangs is named, and the others go on.
  if [[ -z "${GFLOW_TEST_FULL:-}" ]] && "$python" -c 'import pytest_timeout' 2>/dev/null; then limited=(--timeout=600); fi
  GFLOW_BIN_DIR="$PWD/build/$preset/bin" "$python" -m pytest -q -p no:cacheprovider --durations=5 \
    "${parallel[@]}" "${limited[@]}" --junit-xml "$report" "$@"
}

# python_tests PRESET FOLDER...: of tests/, those that are there.
python_tests() {
  local preset=$1 folder name report
  shift
  local -a folders=()
  for folder in "$@"; do
    if compgen -G "tests/$folder/test_*.py" >/dev/null; then folders+=("tests/$folder"); fi
  done
  if [[ ${#folders[@]} -eq 0 ]]; then return 0; fi
  name="python ($preset: ${folders[*]#tests/})"
  report="$REPORTS/python-$preset-${folders[0]#tests/}.xml"
  if ! test_python >/dev/null; then
    skip_part "$name" "pytest is not installed (./dev setup)"
  else
    reported "$name" "$report" -- run_pytest "$preset" "$report" "${folders[@]}"
  fi
}

# These tests by the Python that has the frameworks, a process for each, as importing one takes seconds: run_frameworks PRESET FILE...
run_frameworks() {
  local preset=$1 file pid failed=0
  local -a pids=()
  shift
  for file in "$@"; do
    GFLOW_BIN_DIR="$PWD/build/$preset/bin" .venv-frameworks/bin/python -m pytest -q -p no:cacheprovider --durations=5 \
      --junit-xml "$REPORTS/frameworks-$(basename "$file" .py).xml" "$file" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
  return "$failed"
}

frameworks_tests() {
  local preset=$1 file
  local -a files=(tests/frameworks/test_*.py) reports=()
  if ! .venv-frameworks/bin/python -c 'import pytest' 2>/dev/null; then
    skip_part "frameworks ($preset)" ".venv-frameworks is not there (./dev setup)"
    return 0
  fi
  for file in "${files[@]}"; do reports+=("$REPORTS/frameworks-$(basename "$file" .py).xml"); done
  reported "frameworks ($preset)" "${reports[@]}" -- run_frameworks "$preset" "${files[@]}"
}

# How a build is configured beyond its preset, one argument a line. With sanitizers clang compiles in a third of
# g++'s time; g++ has the other builds.
configuration_of() {
  case $1 in
    asan) if have clang++-19; then printf '%s\n' -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_C_COMPILER=clang-19; fi ;;
    dev) if in_ci; then printf '%s\n' -DGFLOW_UNITY_FILES=32 -DCMAKE_CXX_FLAGS_DEBUG=-g1; fi ;;
  esac
}

# A build in the background, its log in the reports: compile_behind PRESET [target...]
compile_behind() {
  local preset=$1
  local -a more
  shift
  mapfile -t more < <(configuration_of "$preset")
  (configure "$preset" "${more[@]}") >"$REPORTS/build-$preset.log" 2>&1 &&
    nice -n 10 cmake --build "build/$preset" -j "$JOBS" ${1:+--target "$@"} >>"$REPORTS/build-$preset.log" 2>&1
}

build_dev() {
  if compile_behind dev programs; then return 0; fi
  grep -E 'error|FAILED' "$REPORTS/build-dev.log" | head -n 40
  return 1
}

# Waits for a build running behind: built NAME PID
built() {
  if wait "$2"; then return 0; fi
  grep -E 'error|FAILED' "$REPORTS/build-$1.log" | head -n 40
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
  say "== what it took (compilers work behind the tests)"
  if [[ ${#TIMES[@]} -gt 0 ]]; then printf '%s\n' "${TIMES[@]}"; fi
  printf '%5d s  all of it\n' "$SECONDS"
  say "$line"
  [[ $failed -eq 0 && $passed -gt 0 ]]
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

# Every file compiled alone, and by the other compiler; what is written twice differently is found at link time.
compile_alone() {
  local preset=alone-$1
  shift
  mkdir -p "build/$preset"
  cmake -S . -B "build/$preset" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DGFLOW_UNITY=OFF -DGFLOW_WERROR=ON "$@" \
    >"$REPORTS/build-$preset.log" 2>&1 &&
    cmake --build "build/$preset" -j "$JOBS" >>"$REPORTS/build-$preset.log" 2>&1 && return 0
  grep -E 'error|FAILED' "$REPORTS/build-$preset.log" | head -n 40
  return 1
}

# What takes long: hours on two processors.
run_full() {
  part "every file alone (g++)" compile_alone gcc -DCMAKE_CXX_FLAGS="-flto -Wodr -fno-fat-lto-objects" || true
  if have clang++-19; then
    part "every file alone (clang)" compile_alone clang -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_C_COMPILER=clang-19 || true
    part "fuzz" fuzz "${FUZZ_SECONDS:-60}" || true
  else
    skip_part "clang and fuzz" "clang-19 is not installed (./dev setup)"
  fi
  if part "build (tsan)" compile_behind tsan threaded_tests; then
    unit_tests tsan build/tsan/test/{wire,server,daemon}_test
  fi
  part "unit build (dev)" compile dev || true
  unit_tests dev
  GFLOW_TEST_FULL=1 python_tests dev e2e
  local version
  for version in 12 13; do part "fresh Debian $version" fresh "$version" || true; done
}

# run_tests [--full]: compilers work behind while tests, which mostly wait, run in front.
run_tests() {
  local full="${1:-}" asan supervisor frameworks="" cluster=""
  case $full in "" | --full) ;; *) die "test takes --full or nothing, not '$full'" ;; esac
  REPORTS="$PWD/build/reports"
  rm -rf "$REPORTS" && mkdir -p "$REPORTS"
  trap end_tests EXIT
  trap 'exit 130' INT TERM
  if in_ci && have apt-get; then
    setup_tools >"$REPORTS/setup.log" 2>&1 || tail -n 5 "$REPORTS/setup.log"
    install_frameworks >"$REPORTS/frameworks.log" 2>&1 &  # which come while compilers work
    frameworks=$!
    install_cluster >"$REPORTS/cluster.log" 2>&1 &
    cluster=$!
  fi
  if [[ -n $full ]]; then
    export GFLOW_TEST_FULL=1 GFLOW_FAULTS="${GFLOW_FAULTS:-all}" GFLOW_STORM_KILLS="${GFLOW_STORM_KILLS:-3000}"
  fi
  if ! part "build (dev)" build_dev; then
    summary
    return 1
  fi
  compile_behind asan &
  asan=$!
  compile_behind release gflow-shim &  # what it loads is asked of it as it is installed
  supervisor=$!
  if [[ -n $frameworks ]]; then wait "$frameworks" || tail -n 5 "$REPORTS/frameworks.log"; fi
  if [[ -n $cluster ]]; then wait "$cluster" || tail -n 5 "$REPORTS/cluster.log"; fi
  python_tests dev tools crash hostile instructions contract python
  frameworks_tests dev
  part "check" check "$full" || true
  part "build (release): the supervisor" built release "$supervisor" || true
  if part "build (asan)" built asan "$asan"; then
    unit_tests asan
    python_tests asan e2e
  fi
  if [[ -n $full ]]; then run_full; fi
  summary
}
