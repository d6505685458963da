# shellcheck shell=bash disable=SC2154 # variables are shared with the files that source this one
# Builds the jar, the agent and the AOT cache; runs the tests. Sourced by ../space.
# Expects: root, state, dist, java_home, die, up_to_date.

# shellcheck source=launcher/tools.sh
source "$root/launcher/tools.sh"
# shellcheck source=launcher/flags.sh
source "$root/launcher/flags.sh"

# Runs a build step with its output in a log that is shown when the step fails.
step() {
  local title=$1 log=$2 started=$SECONDS
  shift 2
  say "$title"
  mkdir -p -- "$state/log"
  if ! "$@" >"$state/log/$log" 2>&1 </dev/null; then
    { grep -E '^\[ERROR\]|^\[WARNING\] /|error:' "$state/log/$log" || tail -n 60 "$state/log/$log"; } | head -n 60 >&2
    die "$title failed after $((SECONDS - started)) s" "The whole output: $state/log/$log"
  fi
}

# One build at a time in one checkout; others wait and then find it done.
lock_build() {
  mkdir -p -- "$state"
  exec 9>"$state/build.lock"
  if ! flock -n 9; then
    say "waiting for another build of this checkout"
    flock 9
  fi
}

build_if_stale() {
  lock_build
  if ! up_to_date; then build_all; fi
  exec 9>&-
}

run_mvn() (
  cd -- "$root" && exec "$mvn" -B "$@"
)

build_agent() (
  [[ -f $root/agent/go.mod ]] || exit 0
  cd -- "$root/agent" &&
    CGO_ENABLED=0 GOOS=linux GOTOOLCHAIN=local "$go" build -trimpath -buildvcs=false -ldflags=-s\ -w -o bin/agent .
)

# Builds everything into target/ and agent/bin/, then puts a copy aside that running programs can
# rely on whatever is built later.
build_all() {
  mkdir -p -- "$root/agent/bin"
  touch -- "$state/build.started"
  get_maven
  get_go
  step "building the agent" agent.log build_agent
  step "building the program" build.log run_mvn -ntp package -Dmaven.test.skip=true
  publish "$state/build.started"
}

# Copies the build into its own folder and makes it the current one. $1 is a file as old as the
# start of the build: what was changed meanwhile is newer and is built the next time.
publish() {
  local all=$state/dist fresh
  mkdir -p -- "$all"
  fresh=$(mktemp -d "$all/$(date +%Y%m%d-%H%M%S).XXXXXX")
  chmod 755 -- "$fresh"
  cp -p -- "$root/target/space.jar" "$fresh/"
  cp -rp -- "$root/target/lib" "$fresh/lib"
  if [[ -f $root/agent/bin/agent ]]; then cp -p -- "$root/agent/bin/agent" "$fresh/"; fi
  train "$fresh"
  touch -r "$1" -- "$fresh/built"
  ln -sfn -- "${fresh##*/}" "$all/.current"
  mv -T -- "$all/.current" "$dist"
  local old
  for old in "$all"/2*; do
    [[ $old == "$fresh" ]] && continue
    if [[ ! -f $old/built ]] || flock -n -x "$old/built" true; then rm -rf -- "$old"; fi
  done
}

# Makes the AOT cache from a training run. Without one everything works, only slower.
train() {
  scratch=$(mktemp -d "${TMPDIR:-/tmp}/space-train.XXXXXX")
  # Also when the build is interrupted.
  trap 'rm -rf -- "$scratch"' EXIT
  say "making the start-up cache"
  # In the foreground it hears of a Ctrl-C.
  if ! timeout --foreground 120 "$java_home/bin/java" "${jvm_flags[@]}" "-XX:AOTCacheOutput=$1/space.aot" \
    "-Dspace.home=$root" "-Dspace.dist=$1" -jar "$1/space.jar" train --scratch "$scratch" \
    >"$state/log/train.log" 2>&1 </dev/null; then
    rm -f -- "$1/space.aot"
    say "the start-up cache could not be made (see $state/log/train.log); going on without"
  fi
  rm -f -- "$1/space.aot.config"
  rm -rf -- "$scratch"
  trap - EXIT
}

command_build() {
  lock_build
  if [[ ${1:-} == --force ]] || ! up_to_date; then build_all; fi
  say "built: $(readlink -f -- "$dist")"
}

command_fmt() {
  lock_build
  get_maven
  get_go
  step "formatting Java" fmt.log run_mvn -q spotless:apply
  if [[ -f $root/agent/go.mod ]]; then "${go%/go}/gofmt" -l -w "$root/agent" "$root/fake-firecracker"; fi
}

command_test() {
  # shellcheck source=launcher/test.sh
  source "$root/launcher/test.sh"
  run_tests "$@"
}
