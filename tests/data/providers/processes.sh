#!/bin/sh
# A session provider by script that drives real processes: a directory a session, under $SESSIONS_ROOT.
# With PLAIN=1 it knows only the common operations, without `state`.
op=$1 name=$2
root=$SESSIONS_ROOT/$LAMP_CITY_ID
home=$root/$name
mkdir -p "$root"

pid_of() { cat "$root/$1/pid" 2>/dev/null; }
is_alive() { p=$(pid_of "$1") && [ -n "$p" ] && kill -0 "$p" 2>/dev/null && [ ! -s "$root/$1/exit" ]; }

case $op in
start)
  mkdir "$home" && mkdir "$home/meta" || { echo "session $name exists" >&2; exit 1; }
  cat >"$home/config.json"
  mkfifo "$home/input"
  PYTHON=${PYTHON:-python3}
  "$PYTHON" "$(dirname "$0")/launch.py" "$home" || { rm -r "$home"; exit 1; }
  ;;
stop)
  [ -d "$home" ] || exit 0
  p=$(pid_of "$name")
  is_alive "$name" && kill -KILL "-$p" 2>/dev/null
  while [ -n "$p" ] && kill -0 "$p" 2>/dev/null && [ ! -s "$home/exit" ]; do sleep 0.01; done
  rm -r "$home"
  ;;
interrupt) is_alive "$name" && kill -INT "-$p" 2>/dev/null; exit 0 ;;
is-running) [ -d "$home" ] && echo true || echo false ;;
process-alive) is_alive "$name" && echo true || echo false ;;
nudge) is_alive "$name" && { cat; echo; } >"$home/input" ;;
set-meta) cat >"$home/meta/$3" ;;
get-meta) [ -f "$home/meta/$3" ] && cat "$home/meta/$3"; exit 0 ;;
remove-meta) rm -f "$home/meta/$3" ;;
peek) [ "$3" = 0 ] && cat "$home/output" || tail -n "$3" "$home/output" ;;
list-running) ls "$root" ;;
get-last-activity) date -u -r "$home/output" +%Y-%m-%dT%H:%M:%S.%NZ ;;
clear-scrollback) : >"$home/output" ;;
copy-to)
  work=$(cat "$home/work_dir")
  mkdir -p "$work/$(dirname "$4")" && cp -r "$3" "$work/$4"
  ;;
state)
  [ -n "$PLAIN" ] && exit 2
  PYTHON=${PYTHON:-python3}
  "$PYTHON" "$(dirname "$0")/state.py" "$root"
  ;;
*) exit 2 ;;
esac
