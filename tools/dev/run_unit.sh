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
limit_s=1500  # a test that waits for ever is to be a failure with its name, not a run without an end

as_one_case() {
  local failure=""
  if [[ $code -ne 0 ]]; then failure='<failure message="see the log"/>'; fi
  printf '<testsuites><testsuite><testcase classname="%s" name="all">%s</testcase></testsuite></testsuites>\n' \
    "$name" "$failure" >"$report"
}

case $name in
  play_scenario) timeout $limit_s "$program" --junit "$report" tests/scenarios/*.scn >"$log" 2>&1 || code=$? ;;
  *_replay)
    timeout $limit_s "$program" "tests/fuzz/corpus/${name%_replay}" >"$log" 2>&1 || code=$?
    as_one_case
    ;;
  *) timeout $limit_s "$program" --gtest_output="xml:$report" >"$log" 2>&1 || code=$? ;;
esac
if [[ $code -ne 0 ]]; then
  if [[ $code -eq 124 ]]; then
    printf 'ended after %d s, in %s\n' "$limit_s" "$(grep '^\[ RUN' "$log" | tail -n 1)" >>"$log"
  fi
  grep -vE '^\[ +(RUN|OK) ' "$log" | tail -n 60
  # A program that died left no report, or one that says nothing of it.
  if ! grep -qs '<failure' "$report"; then as_one_case; fi
fi
printf '  %s: exit code %d, %d s\n' "$name" "$code" "$((SECONDS - start))"
exit "$code"
