#!/bin/sh
# SPDX-License-Identifier: MIT
# How fast `gpreempt report` reads CSV, and how much memory it takes: the figures of docs/results/report.md.
#
# usage: bench/report.sh PROGRAM [MEGABYTES]
set -eu
[ $# -ge 1 ] || { echo "usage: bench/report.sh PROGRAM [MEGABYTES]" >&2; exit 2; }
[ -x "$1" ] || { echo "bench/report.sh: $1 is not there: gpreempt-report of a build" >&2; exit 1; }
program=$1
size=${2:-100}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 "$(dirname "$0")/trace_csv.py" "$size" "$folder"
bytes=$(cat "$folder"/*.csv | wc -c)
python3 - "$program" "$folder" "$bytes" <<'END'
import glob, resource, subprocess, sys, time
program, folder, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
start = time.monotonic()
subprocess.run([program, *sorted(glob.glob(folder + "/*.csv"))], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = used.ru_utime + used.ru_stime
print(f"{size / 1e6:.0f} MB: {cpu:.2f} s of one core ({size / 1e6 / cpu:.0f} MB/s), {time.monotonic() - start:.1f} s on the clock, "
      f"{used.ru_maxrss / 1024:.0f} MiB resident at most")
END
