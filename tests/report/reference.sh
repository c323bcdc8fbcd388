#!/bin/sh
# reference.sh MAKE_RECORDING SHIM_REPORT - sound recordings of every kind, read
# by the report and by the independent reader beside this file
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
for options in "--mode counts" "--mode coarse --duplicates" \
    "--mode exact --open" "--mode exact --threads 3 --processes 2" \
    "--mode coarse --depth 1000"; do
    number=$((number + 1))
    # shellcheck disable=SC2086 # a list of options
    "$1" "$work/$number" $options >"$work/out"
    "$here/reference" "$2" "$work/$number"
done
