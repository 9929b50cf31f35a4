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

as_one_case() {
  local failure=""
  if [[ $code -ne 0 ]]; then failure='<failure message="see the log"/>'; fi
  printf '<testsuites><testsuite><testcase classname="%s" name="all">%s</testcase></testsuite></testsuites>\n' \
    "$name" "$failure" >"$report"
}

case $name in
  play_scenario) "$program" --junit "$report" tests/scenarios/*.scn >"$log" 2>&1 || code=$? ;;
  *_replay)
    "$program" "tests/fuzz/corpus/${name%_replay}" >"$log" 2>&1 || code=$?
    as_one_case
    ;;
  *) "$program" --gtest_brief=1 --gtest_output="xml:$report" >"$log" 2>&1 || code=$? ;;
esac
if [[ $code -ne 0 ]]; then
  tail -n 60 "$log"
  # A program that died left no report, or one that says nothing of it.
  if ! grep -qs '<failure' "$report"; then as_one_case; fi
fi
printf '  %s: exit code %d, %d s\n' "$name" "$code" "$((SECONDS - start))"
exit "$code"
