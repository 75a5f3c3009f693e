#!/bin/sh
# Workers on emulated hosts: the cases of the virtual network over both wires; a worker that is killed;
# a host whose cable is pulled. Needs root.
#     hosts_test.sh HOSTS_SCRIPT FOLDER_OF_PROGRAMS
set -eu
hosts=$1
programs=$2
work=$(mktemp -d)
run=""
finish() {
  [ -z "$run" ] || kill "$run" 2>/dev/null || true
  [ -z "$run" ] || wait "$run" || true
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED: $*"; cat "$work/out"; exit 1; }

# Waits until `$work/out` has `count` lines that match; at most 60 s.
await() {
  for _ in $(seq 600); do
    [ "$(grep -c "$2" "$work/out")" -lt "$1" ] || return 0
    sleep 0.1
  done
  fail "no $1 lines '$2'"
}

for launcher in torchrun mpirun; do
  transport=ucx
  [ $launcher = torchrun ] || transport=mpi
  leaks=1
  [ $transport = ucx ] || leaks=0 # what MPI's plugins leave cannot be told from ours
  ASAN_OPTIONS=detect_leaks=$leaks STARLING_TRANSPORT=$transport "$hosts" run --hosts 2 --workers-per-host 2 --launcher $launcher -- \
    "$programs/cases_program" 3 >"$work/out" 2>&1 || fail "cases over $transport"
  grep -q "all cases passed: 4 workers on 2 hosts.*over $transport" "$work/out" || fail "cases over $transport"
done

# start: one worker on each of 4 hosts, averaging without end.
start() {
  "$hosts" run --hosts 4 --keep-going -- "$programs/loss_program" 1000000 >"$work/out" 2>&1 &
  run=$!
  await 4 "round 10$"
}
# Everybody else names worker 2.
expect_named() {
  for rank in 0 1 3; do
    await 1 "^\[$rank\] ended: lost: .*worker 2 was lost"
    await 1 "^\[$rank\] rest 0.0"
  done
  ! wait "$run" || fail "it ended as if nothing had happened"
  run=""
}

start
kill -9 "$(sed -n 's/^\[2\] ready //p' "$work/out")"
expect_named
echo "a killed worker is named across hosts"

start
"$hosts" link "starling-$run-3" down
expect_named
echo "a host that drops off the network is named"
