# shellcheck shell=bash disable=SC2154,SC2034 # variables are shared with the files that source this one
# Gets what the build needs: a JDK 25, Maven 3.9, a Go that is new enough. Sourced by ../space.
# Expects: root, state, die.

maven_version=3.9.16
go_needed=1.24
go_toolchain=go1.26.8
jdk_package=openjdk-25-jdk-headless

# Installs Debian packages when that is possible without asking anybody; fails otherwise, and tells
# apt's words when it was apt that failed. An installation that was cut short is finished first; which
# packages were in it stays in a file, as a program that is there can belong to one half installed.
apt_install() {
  can_install || return 1
  local log=$state/log/apt.log
  mkdir -p -- "$state/log"
  say "installing $*"
  printf '%s\n' "$@" >"$state/installing"
  {
    apt_get install "$@" || { dpkg --configure -a && apt_get update && apt_get install "$@"; }
  } >"$log" 2>&1 </dev/null && { rm -f -- "$state/installing" && return 0; }
  rm -f -- "$state/installing"
  if grep -q '^E: Unable to locate package' "$log"; then return 1; fi
  grep '^E: ' "$log" >&2 || tail -n 20 "$log" >&2
  return 1
}

# Finishes what an interrupt cut short.
finish_installing() {
  local -a packages=()
  if [[ -s $state/installing ]] && can_install; then
    mapfile -t packages <"$state/installing"
    apt_install "${packages[@]}" || true
  fi
}

can_install() {
  [[ ${EUID:-$(id -u)} == 0 ]] && command -v apt-get >/dev/null
}

# Another apt at work, such as that of an unattended upgrade, is waited for.
apt_get() {
  local -a options=(-q -y -o DPkg::Lock::Timeout=300)
  if [[ $1 == install ]]; then options+=(--no-install-recommends --fix-broken); fi
  DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" "$@"
}

# Sets lacking to the Debian packages, but for the JDK's, of all that is missing to build and to run.
find_lacking() {
  lacking=()
  local program package
  while read -r program package; do
    case $program in
      '' | '#'*) continue ;;
      mvn) [[ -x $state/tools/apache-maven-$maven_version/bin/mvn ]] && continue ;;
      go) { find_go || [[ -n $old_go ]]; } && continue ;;
      newuidmap) [[ ${EUID:-$(id -u)} == 0 ]] && continue ;;
    esac
    PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || lacking+=("$package")
  done <"$root/launcher/packages"
}

# The one command that installs packages, for those who may not.
install_command() {
  printf 'apt-get update && apt-get install -y --no-install-recommends %s' "$*"
}

# Ends with the one command that installs whatever is missing, not only the $1 that was met first.
die_lacking() {
  find_lacking
  die "$1" "${@:2}" "Debian, as root:  $(install_command "${lacking[@]}")"
}

# Whether this Debian has no package of a JDK 25: true of 12 and older.
debian_is_too_old() (
  ID='' VERSION_ID=''
  # shellcheck source=/dev/null
  source /etc/os-release 2>/dev/null || exit 1
  [[ $ID == debian && ${VERSION_ID%%.*} =~ ^[0-9]+$ ]] && ((${VERSION_ID%%.*} < 13))
)

# One line about the step at hand: on a terminal only.
say() {
  if [[ -t 2 ]]; then printf 'space: %s\n' "$*" >&2; fi
}

# Sets java_home by installing a JDK, or says how to get one and exits.
get_jdk() {
  if ! debian_is_too_old && apt_install "$jdk_package" && find_jdk; then return 0; fi
  local -a how=()
  if [[ -n ${JAVA_HOME:-} ]]; then how+=("JAVA_HOME is '$JAVA_HOME': not a JDK 25 or newer."); fi
  how+=("Looked at: JAVA_HOME, /usr/lib/jvm, ~/.sdkman, ~/.jdks, /opt, java on the PATH.")
  find_lacking
  if debian_is_too_old; then
    how+=("This Debian has no package of it (13 and newer have). Download any JDK 25 for Linux x64 as tar.gz"
      "(Temurin, Corretto, Oracle) and unpack it where it is looked for:"
      "    mkdir -p ~/.jdks && tar -xzf jdk-25.tar.gz -C ~/.jdks")
    if ! can_install && ((${#lacking[@]} > 0)); then
      how+=("All else that is missing, as root:" "    $(install_command "${lacking[@]}")")
    fi
  else
    how+=("Debian 13 and newer, as root:" "    $(install_command "$jdk_package" "${lacking[@]}")"
      "Elsewhere: unpack any JDK 25 (Temurin, Corretto, Oracle) below /usr/lib/jvm or ~/.jdks.")
  fi
  die "no JDK 25 or newer was found" "${how[@]}" \
    "With SDKMAN: sdk install java 25-tem. One that lies elsewhere: set JAVA_HOME."
}

# Sets mvn to a Maven that the build accepts. It is fetched as an artifact, by coordinates, with
# whatever older Maven the system has, so mirrors and proxies of its settings hold.
get_maven() {
  finish_installing
  local home=$state/tools/apache-maven-$maven_version
  mvn=$home/bin/mvn
  [[ -x $mvn ]] && return 0
  if ! command -v mvn >/dev/null && ! apt_install maven; then
    die_lacking "Maven is missing (any version: it fetches the one this build needs)" \
      "Elsewhere:        put mvn on the PATH"
  fi
  say "getting Maven $maven_version"
  mkdir -p -- "$state/tools" "$state/log"
  local aside
  rm -rf -- "$state"/tools/.maven.* # of a build that was interrupted
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

# Sets go to a Go that is new enough; else fails, with old_go set to one that isn't, if there is any.
find_go() {
  local candidate version
  old_go=
  for candidate in "$(command -v go || true)" "$state/tools/$go_toolchain/bin/go" /usr/local/go/bin/go \
    /usr/lib/go-*/bin/go "${HOME:-/root}"/sdk/go*/bin/go; do
    [[ -x $candidate ]] || continue
    version=$(go_version_of "$candidate") || continue
    if at_least "$version" "$go_needed"; then
      go=$candidate
      return 0
    fi
    old_go=$candidate
  done
  return 1
}

# Sets go. A Go that is too old can fetch a newer toolchain as a module, by name.
get_go() {
  find_go && return 0
  if [[ -z $old_go ]]; then
    apt_install golang-go || die_lacking "Go is missing (the guest's agent is built with it)" \
      "Elsewhere:        put go $go_needed or newer on the PATH"
    find_go && return 0
  fi
  get_go_toolchain "$old_go"
  go=$state/tools/$go_toolchain/bin/go
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
  rm -rf -- "$state"/tools/.go.* # of a build that was interrupted
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
