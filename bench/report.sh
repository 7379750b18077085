#!/bin/sh
# SPDX-License-Identifier: MIT
# How fast `gpreempt report` reads CSV and PyTorch's JSON, and how much memory it takes: the figures of
# docs/results/report.md.
#
# usage: bench/report.sh PROGRAM [MEGABYTES]
set -eu
[ $# -ge 1 ] || {
	echo "usage: bench/report.sh PROGRAM [MEGABYTES]" >&2
	exit 2
}
[ -x "$1" ] || {
	echo "bench/report.sh: $1 is not there: gpreempt-report of a build" >&2
	exit 1
}
program=$1
size=${2:-100}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(dirname "$0")
python3 "$here/trace_csv.py" "$size" "$folder/csv"
python3 "$here/trace_json.py" "$size" "$folder/kineto.json"
measure() {
	python3 - "$program" "$@" <<'END'
import os, resource, subprocess, sys, time
program, paths = sys.argv[1], sys.argv[2:]
size, start = sum(os.path.getsize(path) for path in paths), time.monotonic()
subprocess.run([program, *paths], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = used.ru_utime + used.ru_stime
print(f"{os.path.basename(paths[0])}, {size / 1e6:.0f} MB: {cpu:.2f} s of one core ({size / 1e6 / cpu:.0f} MB/s), "
      f"{time.monotonic() - start:.1f} s on the clock, {used.ru_maxrss / 1024:.0f} MiB resident at most")
END
}
measure "$folder"/csv/*.csv
measure "$folder/kineto.json"
