# shellcheck shell=bash disable=SC2154,SC2034 # variables are shared with the files that source this one
# Gets what the build needs: a JDK 25, Maven 3.9, a Go that is new enough. Sourced by ../space.
# Expects: root, state, die.

maven_version=3.9.16
go_needed=1.24
go_toolchain=go1.26.8

# Installs Debian packages when that is possible without asking anybody; fails otherwise.
apt_install() {
  [[ ${EUID:-$(id -u)} == 0 ]] && command -v apt-get >/dev/null || return 1
  local log=$state/log/apt.log
  mkdir -p -- "$state/log"
  say "installing $*"
  {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" ||
      { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; }
  } >"$log" 2>&1 </dev/null
}

# One line about the step at hand: on a terminal only.
say() {
  if [[ -t 2 ]]; then printf 'space: %s\n' "$*" >&2; fi
}

# Sets java_home by installing a JDK, or says how to get one and exits.
get_jdk() {
  if apt_install openjdk-25-jdk-headless && find_jdk; then return 0; fi
  local -a how=()
  if [[ -n ${JAVA_HOME:-} ]]; then how+=("JAVA_HOME is '$JAVA_HOME': not a JDK 25 or newer."); fi
  die "no JDK 25 or newer was found" "${how[@]}" \
    "Looked at: JAVA_HOME, /usr/lib/jvm, ~/.sdkman, ~/.jdks, /opt, java on the PATH." \
    "Debian 13 and newer:  apt-get install openjdk-25-jdk-headless" \
    "with SDKMAN:          sdk install java 25-tem" \
    "otherwise:            unpack any JDK 25 (Temurin, Corretto, Oracle) below /usr/lib/jvm or ~/.jdks, or set JAVA_HOME"
}

# Sets mvn to a Maven that the build accepts. It is fetched as an artifact, by coordinates, with
# whatever older Maven the system has, so mirrors and proxies of its settings hold.
get_maven() {
  local home=$state/tools/apache-maven-$maven_version
  mvn=$home/bin/mvn
  [[ -x $mvn ]] && return 0
  if ! command -v mvn >/dev/null && ! apt_install maven; then
    die "Maven is missing (any version: it fetches the one this build needs)" \
      "Debian:     apt-get install maven" "elsewhere:  put mvn on the PATH"
  fi
  say "getting Maven $maven_version"
  mkdir -p -- "$state/tools" "$state/log"
  local aside
  aside=$(mktemp -d "$state/tools/.maven.XXXXXX")
  if ! (cd -- "$aside" && mvn -B -q org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    "-Dartifact=org.apache.maven:apache-maven:$maven_version:tar.gz:bin" \
    -DoutputDirectory=. -Dmdep.useBaseVersion=true) >"$state/log/maven.log" 2>&1 </dev/null; then
    tail -n 20 "$state/log/maven.log" >&2
    rm -rf -- "$aside"
    die "Maven $maven_version could not be fetched" "Its output is above and in $state/log/maven.log"
  fi
  tar -xzf "$aside/apache-maven-$maven_version-bin.tar.gz" -C "$aside"
  rm -rf -- "$home"
  mv -- "$aside/apache-maven-$maven_version" "$home"
  rm -rf -- "$aside"
}

# True when version $1 (such as 1.26.8) is at least $2.
at_least() {
  [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]
}

go_version_of() {
  local words
  words=$("$1" version 2>/dev/null) || return 1
  [[ $words =~ go([0-9]+\.[0-9]+(\.[0-9]+)?) ]] && printf '%s' "${BASH_REMATCH[1]}"
}

# Sets go to a Go that is new enough. An older one can fetch a newer toolchain as a module, by name.
get_go() {
  local candidate version old=
  local kept=$state/tools/$go_toolchain/bin/go
  for candidate in "$(command -v go || true)" "$kept" /usr/local/go/bin/go /usr/lib/go-*/bin/go \
    "${HOME:-/root}"/sdk/go*/bin/go; do
    [[ -x $candidate ]] || continue
    version=$(go_version_of "$candidate") || continue
    if at_least "$version" "$go_needed"; then
      go=$candidate
      return 0
    fi
    old=$candidate
  done
  if [[ -z $old ]]; then
    apt_install golang-go || die "Go is missing (the guest's agent is built with it)" \
      "Debian:     apt-get install golang-go" "elsewhere:  put go $go_needed or newer on the PATH"
    old=$(command -v go)
    version=$(go_version_of "$old")
    if at_least "$version" "$go_needed"; then
      go=$old
      return 0
    fi
  fi
  get_go_toolchain "$old"
  go=$kept
}

# Unpacks the toolchain module that a newer Go would fetch by itself; $1 is any older go.
get_go_toolchain() {
  say "getting Go ${go_toolchain#go}"
  mkdir -p -- "$state/tools" "$state/log"
  local machine aside zip
  case $(uname -m) in
    x86_64) machine=linux-amd64 ;;
    aarch64) machine=linux-arm64 ;;
    *) die "no Go toolchain is known for $(uname -m)" "Put go $go_needed or newer on the PATH." ;;
  esac
  aside=$(mktemp -d "$state/tools/.go.XXXXXX")
  local module=golang.org/toolchain@v0.0.1-$go_toolchain.$machine
  if ! (cd -- "$aside" && GOFLAGS=-modcacherw GOMODCACHE=$aside/mod GOPATH=$aside/path GOTOOLCHAIN=local \
    "$1" mod download -json "$module") >"$state/log/go.log" 2>&1 </dev/null; then
    tail -n 20 "$state/log/go.log" >&2
    rm -rf -- "$aside"
    die "Go $go_toolchain could not be fetched" "Put go $go_needed or newer on the PATH." "Log: $state/log/go.log"
  fi
  zip=$aside/mod/$module
  # Files of modules are not executable; those of a toolchain have to be.
  chmod -R u+w -- "$zip"
  find "$zip/bin" "$zip/pkg/tool" -type f -exec chmod +x {} +
  rm -rf -- "${state:?}/tools/$go_toolchain"
  mv -- "$zip" "$state/tools/$go_toolchain"
  rm -rf -- "$aside"
}
