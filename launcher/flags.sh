# shellcheck shell=bash
# Flags of every java that runs SPACE. The AOT cache is only used under the flags it was made with.
# shellcheck disable=SC2034 # read by those who source this file
jvm_flags=(
  -XX:+UseSerialGC
  -XX:+UseCompactObjectHeaders
  -Xms48m
  -Xmn16m
  -Xmx256m
  -XX:+ExitOnOutOfMemoryError
  --enable-native-access=ALL-UNNAMED
  --sun-misc-unsafe-memory-access=allow
)
