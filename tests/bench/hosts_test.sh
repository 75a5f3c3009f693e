#!/bin/sh
# bench/hosts does what it says and leaves nothing behind, however it ends. Needs root.
# usage: hosts_test.sh SOURCE_FOLDER
set -eu
hosts=$1/bench/hosts
work=$(mktemp -d)
run="" net=""
finish() {
  [ -z "$run" ] || kill "$run" 2>/dev/null || true
  [ -z "$net" ] || "$hosts" down "$net" || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

fail() {
  echo "FAILED: $*"
  cat "$work/out" 2>/dev/null || true
  exit 1
}

# expect WHAT, and in the file `expected` the output, in any order.
expect() {
  sort "$work/out" | sed 's/starling-[0-9]*/NET/' | diff "$work/expected" - || fail "$1"
}

# nothing_left PROCESS: of the network that it made, and of the workers that wrote their ids down.
nothing_left() {
  ! ip netns list | grep "^starling-$1-" || fail "namespaces are left"
  [ ! -e "/run/starling-hosts/starling-$1" ] || fail "files are left"
  for file in "$work"/pid.*; do
    [ ! -e "$file" ] || ! kill -0 "$(cat "$file")" 2>/dev/null || fail "a worker is left"
  done
  rm -f "$work"/pid.*
}

# A run of sleeping workers in the background; returns when they sleep.
sleepers() {
  # shellcheck disable=SC2016
  "$hosts" run --hosts 2 -- sh -c 'trap "" HUP; echo $$ >"$0/new.$RANK"
    mv "$0/new.$RANK" "$0/pid.$RANK"; exec sleep 1000' "$work" >"$work/out" 2>&1 &
  run=$!
  tries=0
  until [ -e "$work/pid.0" ] && [ -e "$work/pid.1" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || fail "the workers do not start"
    sleep 0.1
  done
}

# ended CODE
ended() {
  code=0
  wait "$run" || code=$?
  ended=$run run=""
  [ "$code" = "$1" ] || fail "exit code $code, not $1"
}

echo "== two hosts of two workers"
cat >"$work/expected" <<'X'
[0] NET-1 0 of 4, 0 of 2, 10.77.0.1 eth0
[1] NET-1 1 of 4, 1 of 2, 10.77.0.1 eth0
[2] NET-2 2 of 4, 0 of 2, 10.77.0.1 eth0
[3] NET-2 3 of 4, 1 of 2, 10.77.0.1 eth0
X
# shellcheck disable=SC2016
"$hosts" run --hosts 2 --workers-per-host 2 -- sh -c 'echo "$(hostname) $RANK of $WORLD_SIZE," \
  "$LOCAL_RANK of $LOCAL_WORLD_SIZE, $MASTER_ADDR $UCX_NET_DEVICES"' >"$work/out" 2>"$work/err" &
run=$!
ended 0
expect "the workers' output"
[ ! -s "$work/err" ] || fail "something on stderr: $(cat "$work/err")"
nothing_left "$ended"

echo "== mpirun across two hosts"
printf '[0] NET-1 0\n[1] NET-2 1\n' >"$work/expected"
# shellcheck disable=SC2016
"$hosts" run --hosts 2 --launcher mpirun -- sh -c 'echo "$(hostname) $OMPI_COMM_WORLD_RANK"' \
  >"$work/out" &
run=$!
ended 0
expect "the output under mpirun"
nothing_left "$ended"

echo "== a failure ends the others"
# shellcheck disable=SC2016
"$hosts" run --hosts 2 -- sh -c '[ "$RANK" = 0 ] || exit 7
  echo $$ >"$0/pid.0"; exec sleep 1000' "$work" >"$work/out" 2>&1 &
run=$!
ended 7
nothing_left "$ended"

echo "== unless it is to keep going"
printf '[0] done\n' >"$work/expected"
# shellcheck disable=SC2016
"$hosts" run --hosts 2 --keep-going --launcher torchrun -- sh -c '[ "$RANK" = 0 ] || exit 7
  sleep 1; echo done' >"$work/out" &
run=$!
ended 7
expect "the survivor's output"
nothing_left "$ended"

for signal in TERM HUP; do
  echo "== $signal"
  sleepers
  kill -s "$signal" "$run"
  if [ "$signal" = TERM ]; then ended 143; else ended 129; fi
  nothing_left "$ended"
done

echo "== what a killed run leaves is cleaned away; a run under way is not"
sleepers
"$hosts" clean
ip netns list | grep -q "^starling-$run-2" || fail "clean took a run under way"
kill -s KILL "$run"
ended 137
"$hosts" clean
nothing_left "$ended"

echo "== a network to play with"
net=$("$hosts" up --hosts 2 --rate 100mbit)
tc -n "$net-2" qdisc show dev eth0 | grep -q 'tbf.*rate 100Mbit' || fail "eth0 is not shaped"
tc -n "$net-bridge" qdisc show dev port2 | grep -q 'tbf.*rate 100Mbit' || fail "a port is not shaped"
"$hosts" clean
[ "$("$hosts" exec "$net-2" hostname)" = "$net-2" ] || fail "exec"
"$hosts" exec "$net-1" getent hosts "$net-2" | grep -q '^10.77.0.2 ' || fail "names do not resolve"
carrier() { "$hosts" exec "$net-2" cat /sys/class/net/eth0/carrier; }
[ "$(carrier)" = 1 ] || fail "no carrier"
"$hosts" link "$net-2" down
[ "$(carrier)" = 0 ] || fail "the cable is still in"
"$hosts" link "$net-2" up
[ "$(carrier)" = 1 ] || fail "the cable is still out"
"$hosts" down "$net"
gone=${net#starling-} net=""
nothing_left "$gone"

echo "== wrong arguments: one line, exit code 2"
refused() {
  code=0
  "$hosts" "$@" >"$work/out" 2>&1 || code=$?
  [ "$code $(wc -l <"$work/out")" = "2 1" ] || fail "hosts $* ended with $code"
}
refused run --hosts 2
refused run --hosts 0 -- true
refused run --hosts 2 --launcher mpi -- true
refused run --host 2 -- true
refused link x sideways
refused stop

echo "== without the rights it fails in words"
! setpriv --reuid 65534 --clear-groups "$hosts" up --hosts 1 >"$work/out" 2>&1 || fail "no rights needed"
grep -q 'namespaces need root' "$work/out" || fail "no clear message"
echo "all is well"
