#!/bin/sh
# Installs the package into a fresh prefix and builds the consumer against it, as a user would; the
# program must run, and must not be linked to anything that only other rooms need.
# usage: run.sh BUILD_FOLDER SOURCE_FOLDER ON|OFF (is there a part that needs torch?)
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" >"$work/install.log"
cmake -S "$2/tests/consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DWITH_TORCH="$3" >"$work/configure.log" || {
  cat "$work/configure.log"
  exit 1
}
cmake --build "$work/build"
"$work/build/consumer"

# The installed tool starts workers, and they find the installed modules.
"$work/prefix/bin/starling" run -n 3 -- "$work/build/average" >"$work/average.log"
[ "$(grep -c 'average of the first weight is 1$' "$work/average.log")" = 3 ] || {
  cat "$work/average.log"
  exit 1
}
if [ "$3" = ON ]; then
  "$work/prefix/bin/starling" run -n 3 -- "$work/build/train" >"$work/train.log" 2>&1 || {
    cat "$work/train.log"
    exit 1
  }
  [ "$(grep -cE '(5[5-9]|6[0-4]) of 64 are right' "$work/train.log")" = 3 ] || {
    cat "$work/train.log"
    exit 1
  }
fi
foreign=$(ldd "$work/build/consumer" "$work/build/average" "$work/prefix/bin/starling" | grep -E 'libmpi|libucp|libuct|libtorch|libc10' || true)
[ -z "$foreign" ] || { echo "linked to $foreign"; exit 1; }

# A component that does not exist is refused by name.
mkdir "$work/wrong"
cat >"$work/wrong/CMakeLists.txt" <<'W'
cmake_minimum_required(VERSION 3.25)
project(wrong LANGUAGES CXX)
find_package(starling REQUIRED COMPONENTS simm)
W
if cmake -S "$work/wrong" -B "$work/wrong/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" \
  >"$work/wrong.log" 2>&1; then
  echo "an unknown component was accepted"
  exit 1
fi
grep -q "no component 'simm'" "$work/wrong.log" || { cat "$work/wrong.log"; exit 1; }
