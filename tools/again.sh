#!/bin/sh
# Runs a command that fetches packages, up to three times: a registry that fails once is asked again after a pause.
# The command's own output says why it failed.
tries=3
for try in 1 2 3; do
  "$@" && exit 0
  status=$?
  [ "$try" = "$tries" ] && break
  echo "Try $try of $tries failed with exit status $status; once more in $((try * 10)) seconds: $*" >&2
  sleep $((try * 10))
done
echo "Given up after $tries tries: $*" >&2
exit "$status"
