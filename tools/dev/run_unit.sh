#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one test program in one process and leaves its JUnit report: run_unit.sh REPORT-PREFIX PROGRAM
# What it printed is shown only if it failed. Scenarios and fuzz corpora are given to their players.
set -euo pipefail
prefix=$1 program=$2
name=${program##*/}
report=$prefix-$name.xml
log=$prefix-$name.log
start=$SECONDS code=0
# A test that waits for ever is to be a failure with its name and what it was doing, not a run without an end.
limited=(timeout --signal=SEGV --kill-after=60 1500)  # of which sanitizers tell where it came
symbolizer=$(command -v llvm-symbolizer-19 llvm-symbolizer | head -n 1 || true)
if [[ -n $symbolizer ]]; then  # by its own name, as it is taken for no symbolizer by that of a link
  ASAN_SYMBOLIZER_PATH=${ASAN_SYMBOLIZER_PATH:-$(realpath "$symbolizer")}
  export ASAN_SYMBOLIZER_PATH
fi

# one_case NAME: the report says of the program as a whole how it ended.
one_case() {
  local failure=""
  if [[ $code -ne 0 ]]; then failure='<failure message="see the log"/>'; fi
  printf '<testsuites><testsuite><testcase classname="%s" name="%s">%s</testcase></testsuite></testsuites>\n' \
    "$name" "$1" "$failure" >"$report"
}

case $name in
  play_scenario) "${limited[@]}" "$program" --junit "$report" tests/scenarios/*.scn >"$log" 2>&1 || code=$? ;;
  *_replay)
    "${limited[@]}" "$program" "tests/fuzz/corpus/${name%_replay}" >"$log" 2>&1 || code=$?
    one_case all
    ;;
  *) "${limited[@]}" "$program" --gtest_output="xml:$report" >"$log" 2>&1 || code=$? ;;
esac
if [[ $code -ne 0 ]]; then
  # A program without an end may have written one.
  tail -c 1000000 "$log" | grep -avE '^\[ +(RUN|OK) ' | tail -n 60 || true
  # One that died left no report, or one that says nothing of it.
  if ! grep -qs '<failure' "$report"; then
    last=$(grep -a '^\[ RUN' "$log" | tail -n 1 || true)
    one_case "${last:+${last##* } }(exit code $code after $((SECONDS - start)) s)"
  fi
fi
printf '  %s: exit code %d, %d s\n' "$name" "$code" "$((SECONDS - start))"
exit "$code"
