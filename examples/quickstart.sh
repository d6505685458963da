#!/usr/bin/env bash
# The same as quickstart.py with curl: create a sandbox, run a command, show its events, delete it.
set -euo pipefail
for program in curl python3; do
  command -v "$program" >/dev/null || { echo "$program is missing here: apt-get install $program" >&2; exit 1; }
done

url=${SPACE_URL:-http://127.0.0.1:8700}
if [[ $(id -u) == 0 ]]; then data=/var/lib/space; else data=${XDG_DATA_HOME:-$HOME/.local/share}/space; fi
key=${SPACE_API_KEY:-$(<"${SPACE_DATA_DIR:-$data}/api-key")}

# One call of the control plane. The key goes through a file descriptor: process lists are public.
call() {
  curl --silent --show-error --fail-with-body --config <(printf 'header = "Authorization: Bearer %s"\n' "$key") \
    --header 'Content-Type: application/json' --request "$1" "$url$2" "${@:3}"
}

# One field of a JSON object on standard input, such as: field attach_url
field() {
  python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# 1. Create; the answer is an operation. Wait for it: the call returns as soon as it is over.
operation=$(call POST /v1/sandboxes --data '{"template": "base", "timeout": "10m"}')
sandbox=$(field sandbox_id <<<"$operation")
trap 'call DELETE "/v1/sandboxes/$sandbox" >/dev/null' EXIT
call GET "/v1/operations/$(field id <<<"$operation")?wait=60s" >/dev/null

# 2. A session is one command; it starts when it is attached to.
session=$(call POST "/v1/sandboxes/$sandbox/sessions" --data '{"argv": ["uname", "-a"]}')

# 3. Attach: events started, stdout, stderr, exit.
curl --silent --no-buffer --config <(printf 'header = "Authorization: Bearer %s"\n' "$(field attach_token <<<"$session")") \
  "$(field attach_url <<<"$session")"
