# SPDX-License-Identifier: MIT
# Runs in the guest: each scenario prints "ok ..." or "not ok ..." lines, and "# ..." for figures.
debug=/sys/kernel/debug
device() { sed -n "s/^$1=//p" $debug/softgpu/stats; }
scheduler() { sed -n "s/^$1=//p" $debug/kfd_sched.*; }
check() {
	what=$1
	shift
	if "$@"; then echo "ok $what"; else echo "not ok $what"; fi
}
# wait_for COMMAND...: until it holds, for at most twenty seconds
wait_for() {
	for i in $(seq 200); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}
load_module() { insmod /lib/amdgpu.ko "$@" || echo "not ok insmod $*"; }
no_process() { [ "$(device driver_processes)" = 0 ]; }
unload_module() { # a process's end is carried out later, by a worker
	wait_for no_process
	check "$1: the driver's counts are balanced" \
		[ "$(device driver_queues) $(device driver_compute) $(device driver_gws) $(device driver_processes)" = "0 0 0 0" ]
	for i in $(seq 100); do
		rmmod amdgpu 2>/dev/null && break
		sleep 0.1
	done
	check "$1: the module goes" [ ! -e /dev/kfd ]
	check "$1: the kernel complains of nothing" sh -c '! dmesg | grep -qE "VIOLATION|WARNING:|BUG:|Oops|general protection|possible circular|inconsistent lock"'
}
clean() {
	check "$1: the device found nothing wrong" [ "$(device violations)" = 0 ]
}
# One program after the other: the packets do not depend on who is faster.
one_by_one() {
	for i in 1 2 3; do
		load batch $i 3 200 >/dev/null || echo "not ok a load failed"
		sleep 0.3
	done
	echo "# packets $(device packet_count), $(device packet_bytes) bytes, sum $(device packet_hash)"
}
# The aim: two batch processes with two queues each beside 25 urgent requests of 5 ms.
beside() {
	echo "# serve alone: $(load serve 25 5000 15)"
	before=$(device dispatches)
	# It is there, and idle: nobody is held back for it until its first request.
	load serve 25 5000 15 10 3000 >/tmp/serve &
	sleep 2.5
	load batch 2 150 4000 >/tmp/a & load batch 2 150 4000 >/tmp/b &
	wait
	echo "# serve beside: $(cat /tmp/serve)"
	cat /tmp/a /tmp/b | sed 's/^/# /'
	check "$1: all work is complete" sh -c '! cat /tmp/a /tmp/b | grep -v left=0'
	echo "# work: dispatches=$(($(device dispatches) - before))"
	echo "# device: left=$(device left_max) processes=$(device left_processes_max) changed=$(device changed_max)"
}

stock() {
	load_module
	one_by_one
	beside stock
	clean stock
	unload_module stock
}

none() {
	load_module kfd_sched_policy=none
	one_by_one
	check "none: it ordered nothing" [ "$(scheduler orders)" = 0 ]
	unload_module none
}

hpf() {
	load_module kfd_sched_policy=hpf $1
	beside "hpf $1"
	check "hpf $1: it preempted" [ "$(scheduler preemptions)" -gt 10 ]
	check "hpf $1: the core is sound" [ "$(scheduler check)" = ok ]
	echo "# orders_max=$(scheduler orders_max) preemptions=$(scheduler preemptions) apply_us_max=$(scheduler apply_us_max)"
	clean "hpf $1"
	unload_module "hpf $1"
}

idle() {
	load_module kfd_sched_policy=hpf
	load hold 9000 & load hold 9000 10 & load hold 9000 15 &
	sleep 2
	before=$(scheduler steps)
	sleep 5
	check "idle: no step in five idle seconds" [ "$(scheduler steps)" = "$before" ]
	wait
	unload_module idle
}

progressed() { [ "$(device dispatches)" -gt "$1" ]; }
closed_again() { [ "$(scheduler closes)" -gt "$1" ]; }
closed_once() { [ "$(scheduler closes)" -ge 1 ]; }

evicted() {
	load_module kfd_sched_policy=hpf
	load batch 1 2000 2000 7 >/tmp/a &
	batch=$!
	wait_for progressed 5
	load serve 1 50000000 1 15 >/tmp/b & # fifty seconds: it does not end by itself
	urgent=$!
	check "evicted: the urgent process stops the other" wait_for closed_once
	echo $urgent >$debug/softgpu/evict
	# Five hundred fit into a second; aged turns alone would let in a few.
	before=$(device dispatches)
	sleep 1
	check "evicted: while it is evicted it holds nobody back" progressed $((before + 100))
	echo $urgent >$debug/softgpu/restore
	closes=$(scheduler closes)
	check "evicted: once restored it stops the other again" wait_for closed_again $closes
	kill -9 $urgent
	wait $batch
	check "evicted: the other's work is complete" grep -q left=0 /tmp/a
	clean evicted
	unload_module evicted
}

killed() {
	load_module kfd_sched_policy=hpf $1
	for i in $(seq 10); do
		load batch 2 300 2000 >/dev/null & one=$!
		load batch 2 60 2000 >/tmp/b & two=$!
		load serve 3 3000 5 10 >/dev/null & three=$!
		sleep 0.1$i
		kill -9 $one
		wait $two || echo "not ok killed: the survivor failed"
		wait $three $one 2>/dev/null
	done
	check "killed $1: the survivors' work is complete" grep -q left=0 /tmp/b
	check "killed $1: the core is sound" [ "$(scheduler check)" = ok ]
	clean "killed $1"
	unload_module "killed $1"
}

reset() {
	load_module kfd_sched_policy=hpf
	load batch 2 100 3000 >/tmp/a 2>&1 & one=$!
	sleep 0.3
	echo 1 >$debug/softgpu/reset
	sleep 0.5
	kill -9 $one 2>/dev/null
	wait
	check "reset: a new program runs afterwards" sh -c 'load batch 1 5 500 | grep -q left=0'
	check "reset: the core is sound" [ "$(scheduler check)" = ok ]
	unload_module reset
}

# What the tracepoints and the statistics say, against each other and against what was asked for.
statistics() {
	load_module kfd_sched_policy=hpf
	trace=/sys/kernel/tracing
	echo 1 >$trace/events/amdkfd/enable
	load batch 2 60 4000 >/tmp/a &
	sleep 0.1
	load serve 10 5000 15 >/tmp/serve
	wait
	echo 0 >$trace/events/amdkfd/enable
	sed 's/^/# /' /tmp/a /tmp/serve
	events=$(grep -c "kfd_gate: .* close result=0" $trace/trace)
	check "statistics: each close is traced ($events)" [ "$events" = "$(scheduler closes)" ]
	check "statistics: the core's decisions are traced" grep -q "kfd_sched: .* type=9 why=1" $trace/trace
	ran=$(sed -n 's/.*run_ms=\([0-9]*\).*/\1/p' /tmp/serve)
	check "statistics: ten requests of 5 ms ran for 50 to 75 ms ($ran)" [ "$ran" -ge 50 -a "$ran" -le 75 ]
	check "statistics: the batch was put aside as often as the core says" \
		[ "$(sed -n 's/.*preemptions=\([0-9]*\).*/\1/p' /tmp/a)" = "$(scheduler preemptions)" ]
	sched stats
	unload_module statistics
}

ioctls() {
	load_module $1
	sched uapi
	sched gates
	clean "ioctls $1"
	unload_module "ioctls $1"
}

random() {
	load_module $2
	sched random $1 ${RANDOM_COUNT:-100}
	unload_module "random $2"
}

fuzz() {
	load_module
	load batch 2 200 2000 >/tmp/a &
	sched fuzz $1 ${FUZZ_SECONDS:-5}
	wait
	check "fuzz: the program beside is complete" grep -q left=0 /tmp/a
	unload_module fuzz
}

# What calls cost without the scheduler: the unpatched driver (second.ko) and the series with its policy off, in turns.
costs() {
	for i in 1 2; do
		for name in second amdgpu; do
			insmod /lib/$name.ko
			echo "# cost $name: $(load cost 200)"
			wait_for no_process
			rmmod amdgpu
		done
	done
}

# One process with four queues, then two with two each, the same work: what the driver sends and how long it takes.
seeds() {
	load_module
	echo "# one process: $(load batch 4 50 2000)"
	load batch 2 50 2000 >/tmp/a & load batch 2 50 2000 >/tmp/b &
	wait
	sed 's/^/# two processes: /' /tmp/a /tmp/b
	for i in 1 2 3 4 5; do
		load hold 200 & load batch 1 5 1000 >/dev/null &
	done
	wait
	echo "# driver: skips=$(cat /sys/module/amdgpu/parameters/seed_skips) sent=$(cat /sys/module/amdgpu/parameters/seed_sent)"
	echo "# device: runlists=$(device runlists) unmaps=$(device unmaps) maps=$(device map_queues) packets=$(device packet_count)"
	echo "# device: bytes=$(device packet_bytes) dispatches=$(device dispatches) preempted=$(device preempted)"
	clean seeds
	unload_module seeds
}

kunit() {
	load_module
	dmesg | grep -E "ok [0-9]+ (gate|core)_" | sed 's/^.*\] *//; s/^ *ok [0-9]* /ok kunit: /; s/^ *not ok [0-9]* /not ok kunit: /'
	check "kunit: the suite passed" sh -c 'dmesg | grep -qE "\] ok [0-9]+ kfd_sched"'
	unload_module kunit
}
