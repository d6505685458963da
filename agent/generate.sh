#!/bin/sh
# Makes agentpb/*.pb.go from proto/agent.proto anew. Needs protoc and Go.
set -eu
cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
GOBIN=$bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0
mkdir -p agentpb
PATH=$bin:$PATH protoc -I ../proto --go_out=. --go_opt=module=space/agent \
  --go-grpc_out=. --go-grpc_opt=module=space/agent ../proto/agent.proto
