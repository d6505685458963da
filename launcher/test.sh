# shellcheck shell=bash disable=SC2154 # variables are shared with the files that source this one
# Runs every test and prints the sum. Sourced by build.sh.
# Expects: root, state, java_home, mvn, go and the functions of build.sh and tools.sh.

# Prints "passed failed" summed over Surefire's reports.
count_java() {
  local report passed=0 failed=0
  for report in "$root"/target/surefire-reports/TEST-*.xml; do
    [[ -f $report ]] || continue
    local head tests=0 errors=0 skipped=0 failures=0
    head=$(grep -m 1 -o '<testsuite [^>]*>' "$report" || true)
    [[ $head =~ \ tests=\"([0-9]+)\" ]] && tests=${BASH_REMATCH[1]}
    [[ $head =~ \ errors=\"([0-9]+)\" ]] && errors=${BASH_REMATCH[1]}
    [[ $head =~ \ skipped=\"([0-9]+)\" ]] && skipped=${BASH_REMATCH[1]}
    [[ $head =~ \ failures=\"([0-9]+)\" ]] && failures=${BASH_REMATCH[1]}
    passed=$((passed + tests - errors - skipped - failures))
    failed=$((failed + errors + failures))
  done
  printf '%d %d' "$passed" "$failed"
}

# Names every test that was not run, and why.
tell_skipped() {
  local report
  for report in "$root"/target/surefire-reports/TEST-*.xml; do
    [[ -f $report ]] || continue
    awk '
      match($0, /<testcase [^>]*/) {
        split(substr($0, RSTART, RLENGTH), part, "\"")
        test = ""
        for (i = 1; i in part; i += 2) {
          if (part[i] ~ / classname=$/) class = part[i + 1]
          if (part[i] ~ / name=$/) test = part[i + 1]
        }
      }
      match($0, /<skipped[^>]*message="[^"]*/) {
        why = substr($0, RSTART, RLENGTH)
        sub(/.*message="/, "", why)
        sub(/^Assumption failed: /, "", why)
        gsub(/&quot;/, "\"", why); gsub(/&lt;/, "<", why); gsub(/&gt;/, ">", why); gsub(/&#10;.*/, "", why); gsub(/&amp;/, "\\&", why)
        printf "not run: %s%s: %s\n", class, (test == "" ? "" : "." test), why
      }' "$report"
  done
}

# Prints "passed failed" from go test's JSON in $1; a package that doesn't compile counts as one failure.
count_go() {
  local passed failed
  passed=$(grep -c '"Action":"pass".*"Test":"[^/"]*"' "$1" || true)
  failed=$(grep -c -e '"Action":"fail".*"Test":"[^/"]*"' -e '"Action":"build-fail"' "$1" || true)
  printf '%d %d' "$passed" "$failed"
}

# Tests the module in folder $1. A program that runs in a jail has to be static.
run_go_tests() {
  cd -- "$root/$1" || return 1
  export GOTOOLCHAIN=local CGO_ENABLED=0
  "$go" vet ./... >"$state/log/go-vet.log" 2>&1 || return 1
  "$go" test -json ./... >>"$state/log/go-test.json" 2>"$state/log/go-test.err"
}

# --fast leaves out what boots VMs or takes long.
run_tests() {
  local fast=no option
  for option in "$@"; do
    case $option in
      --fast) fast=yes ;;
      *) die "unknown option '$option'" "Usage: space test [--fast]" ;;
    esac
  done
  lock_build
  if ! up_to_date; then build_all; fi
  get_maven
  get_go
  mkdir -p -- "$state/log" "$state/test"
  rm -rf -- "$root/target/surefire-reports"
  : >"$state/log/go-test.json"
  local status=0 started=$SECONDS

  local module
  for module in agent fake-firecracker; do
    [[ -f $root/$module/go.mod ]] || continue
    printf '%s: go vet, go test\n' "$module"
    if ! (run_go_tests "$module"); then
      status=1
      cat -- "$state/log/go-vet.log"
      if [[ -f $state/log/go-test.err ]]; then cat -- "$state/log/go-test.err"; fi
      grep -o '"Output":".*"' "$state/log/go-test.json" | tail -n 60 || true
    fi
  done

  local -a mvn_flags=(-Dspace.test.data="$state/test" -Dspace.home="$root")
  local here
  here=$(readlink -f -- "$dist")
  mvn_flags+=(-Dspace.dist="$here")
  if [[ $fast == yes ]]; then mvn_flags+=("-Dspace.test.excludedGroups=vm,slow"); fi
  printf 'service: mvn verify\n'
  if ! SPACE_TEST_DATA=$state/test run_mvn verify "${mvn_flags[@]}" -Dmaven.test.failure.ignore=true \
    2>&1 </dev/null | tee "$state/log/test.log" |
    { grep --line-buffered -E '^\[(INFO|WARNING|ERROR)\] +Tests run:.* (in|-- in) |^\[ERROR\]' || true; }; then
    status=1
  fi

  local passed failed more_passed more_failed
  read -r passed failed <<<"$(count_java)"
  read -r more_passed more_failed <<<"$(count_go "$state/log/go-test.json")"
  passed=$((passed + more_passed))
  failed=$((failed + more_failed))
  if ((passed == 0 || failed > 0)); then status=1; fi
  tell_skipped
  printf 'Took %d s. Whole output: %s\n' "$((SECONDS - started))" "$state/log/test.log"
  if ((status != 0 && failed == 0)); then
    # Something beside a test failed (formatting, a static check, the build): it counts.
    failed=1
  fi
  printf '%d passed, %d failed\n' "$passed" "$failed"
  exit "$status"
}
