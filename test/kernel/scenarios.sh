# SPDX-License-Identifier: MIT
# Runs in the guest: each scenario prints "ok ..." or "not ok ..." lines, and "# ..." for figures.
debug=/sys/kernel/debug
parameters=/sys/module/amdgpu/parameters
device() { sed -n "s/^$1=//p" $debug/softgpu/stats; }
scheduler() { sed -n "s/^$1=//p" $debug/kfd_sched.*; }
echo "guest: CPUs $(grep -c ^processor /proc/cpuinfo), clock $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
# What the kernel said of itself while it started is not the module's.
complaints="VIOLATION|WARNING:|BUG:|Oops|general protection|possible circular|inconsistent lock"
dmesg -c | grep -E "$complaints" | sed 's/^/# before the module was loaded: /'
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
unloaded() { rmmod amdgpu 2>/dev/null; [ ! -e /dev/kfd ] && [ ! -e /sys/module/amdgpu ]; }
no_process() { [ "$(device driver_processes)" = 0 ]; }
unload_module() { # a process's end is carried out later, by a worker
	wait_for no_process
	check "$1: the driver's counts are balanced" \
		[ "$(device driver_queues) $(device driver_compute) $(device driver_gws) $(device driver_processes)" = "0 0 0 0" ]
	check "$1: the module goes" wait_for unloaded
	check "$1: the kernel complains of nothing" sh -c '! dmesg | grep -qE "$0"' "$complaints"
}
# clean NAME [resets]: resets: the scenario asks for one. Else there is none, and so nothing that the driver may leave to it.
clean() {
	check "$1: the device found nothing wrong" [ "$(device violations)" = 0 ]
	[ "$2" = resets ] || check "$1: the driver left nothing to a reset" [ "$(device resets) $(device stale)" = "0 0" ]
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
	clean none
	unload_module none
}

hpf() {
	load_module kfd_sched_policy=hpf $1
	beside "hpf $1"
	# On a slow kernel some requests come after the batch has ended.
	check "hpf $1: it preempted" [ "$(scheduler preemptions)" -ge ${PREEMPTIONS_MIN:-11} ]
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
	clean idle
	unload_module idle
}

progressed() { [ "$(device dispatches)" -gt "$1" ]; }
closed_again() { [ "$(scheduler closes)" -gt "$1" ]; }
closed_once() { [ "$(scheduler closes)" -ge 1 ]; }

evicted() {
	load_module kfd_sched_policy=hpf
	load batch 1 20000 2000 7 >/dev/null & # forty seconds: it has work however slow this machine is
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
	closes=$(scheduler closes)
	echo $urgent >$debug/softgpu/restore
	check "evicted: once restored it stops the other again" wait_for closed_again $closes
	kill -9 $urgent
	before=$(device dispatches)
	check "evicted: when it is gone the other continues" wait_for progressed $((before + 100))
	kill -9 $batch
	wait
	clean evicted
	unload_module evicted
}

# The pages of a program move while gates of its queues move: the driver evicts the queues from inside the MMU notifier,
# under the program's mmap lock. Without that lockdep does not see what may not be done under the DQM lock.
moved() {
	load_module kfd_sched_policy=hpf $1
	MOVES=20 load batch 2 100 2000 7 >/tmp/a &
	load serve 20 3000 10 15 >/tmp/serve
	wait
	sed 's/^/# /' /tmp/a /tmp/serve
	check "moved $1: the work is complete" grep -q left=0 /tmp/a
	check "moved $1: the urgent requests are served" grep -q missing=0 /tmp/serve
	check "moved $1: queues were evicted by the notifier ($(device notifier_evictions))" [ "$(device notifier_evictions)" -ge 5 ]
	check "moved $1: the core is sound" [ "$(scheduler check)" = ok ]
	clean "moved $1"
	unload_module "moved $1"
}

killed() {
	load_module kfd_sched_policy=hpf $1
	for i in $(seq 10); do
		load batch 2 300 2000 >/dev/null & one=$!
		load batch 2 60 2000 >/tmp/b & two=$!
		load serve 3 3000 5 10 >/dev/null & three=$!
		sleep 0.1$i
		kill -9 $one
		wait $two || echo "not ok killed $1: survivor $i failed: $(cat /tmp/b)"
		wait $three $one 2>/dev/null
	done
	check "killed $1: the survivors' work is complete" grep -q left=0 /tmp/b
	check "killed $1: the core is sound" [ "$(scheduler check)" = ok ]
	clean "killed $1"
	unload_module "killed $1"
}

reset() {
	load_module kfd_sched_policy=hpf $1
	load batch 2 1000 3000 >/tmp/a 2>&1 & one=$!
	wait_for progressed 20
	load serve 1 50000000 1 15 >/dev/null 2>&1 & two=$!
	wait_for closed_once # the reset meets a queue that runs and two that are closed
	echo 1 >$debug/softgpu/reset
	check "reset $1: the device was reset" [ "$(device resets)" = 1 ]
	sleep 0.5
	kill -9 $one $two 2>/dev/null
	wait
	check "reset $1: a new program runs afterwards" sh -c 'load batch 1 5 500 | grep -q left=0'
	check "reset $1: a new program is preempted afterwards" preempts_again
	check "reset $1: the core is sound" [ "$(scheduler check)" = ok ]
	clean "reset $1" resets
	unload_module "reset $1"
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
	clean statistics
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
	clean fuzz
	unload_module fuzz
}

# What calls cost without the scheduler: the unpatched driver (second.ko) and the series with its policy off, in turns.
# The guest has one CPU: with two, in virtual time, a driver that polls on one CPU keeps the other from running.
costs() {
	for i in 1 2 3 4 5 6 7; do
		for name in second amdgpu; do
			insmod /lib/$name.ko $1 || echo "not ok costs: insmod $name"
			echo "# cost $name ${1:-cpsch}: $(load cost 100)"
			wait_for unloaded || echo "not ok costs: $name stays loaded"
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

# A preemption that fails. $1: close_fails: a queue does not answer, and is reset alone; reset_fails: that reset fails
# too, and the device is reset; close_hangs: the preemption never ends, and the device is reset after a timeout. With MES
# the driver of 6.12 resets no single queue: each failure resets the device.
failed() {
	load_module kfd_sched_policy=hpf queue_preemption_timeout_ms=2000 mes_timeout_ms=2000 $2
	export APART=1
	rm -f /tmp/go /tmp/enough
	UNTIL=/tmp/enough load batch 1 200 2000 7 >/tmp/a &
	one=$!
	UNTIL=/tmp/enough load batch 1 200 2000 7 >/tmp/b &
	two=$!
	GO=/tmp/go load serve 3 3000 5 10 >/tmp/serve &
	urgent=$!
	wait_for progressed 20
	wait_for grep -q ready /tmp/serve # its queue is there: it is the scheduler's preemption that fails
	[ "$1" != reset_fails ] || echo 1 >$parameters/reset_fails
	echo 1 >$parameters/$([ "$1" = close_hangs ] && echo close_hangs || echo close_fails)
	: >/tmp/go
	if [ "$1 $2" = "close_fails " ]; then
		wait $urgent
		check "failed $1: the urgent requests are served" grep -q missing=0 /tmp/serve
		check "failed $1: one queue was reset, and nothing else" [ "$(device queue_resets) $(device resets)" = "1 0" ]
		: >/tmp/enough
		check "failed $1: the program beside is complete" wait_for one_complete
	else
		check "failed $1 $2: the driver resets the device" wait_for was_reset
	fi
	kill -9 $one $two $urgent 2>/dev/null
	wait
	check "failed $1 $2: a new program runs afterwards" sh -c 'load batch 1 5 500 | grep -q left=0'
	check "failed $1 $2: a new program is preempted afterwards" preempts_again
	check "failed $1 $2: the core is sound" [ "$(scheduler check)" = ok ]
	unset APART
	clean "failed $1 $2" "$([ "$1 $2" = "close_fails " ] || echo resets)"
	unload_module "failed $1 $2"
}
one_complete() { cat /tmp/a /tmp/b | grep -q left=0; }
was_reset() { [ "$(device resets)" = 1 ]; }
preempts_again() {
	closes=$(scheduler closes)
	before=$(device dispatches)
	load batch 1 20000 2000 7 >/dev/null & # forty seconds: it has work however slow this machine is
	again=$!
	wait_for progressed $((before + 5))
	load serve 3 3000 5 10 >/dev/null
	kill -9 $again
	wait
	closed_again $closes
}

# Copy engines are not the scheduler's: a copy goes on while the compute queues of its process and of others are closed.
# A closed queue gets a turn of a few milliseconds after a second (ageing): kernels may end in it, and the copies of a
# slow guest take longer than that. The core counts these turns.
copies() {
	load_module kfd_sched_policy=hpf $1
	rm -f /tmp/enough
	UNTIL=/tmp/enough load batch 2 200 2000 7 >/tmp/a &
	wait_for progressed 5
	load serve 4 50000000 1 15 >/dev/null & # 200 seconds: the batch stays closed
	urgent=$!
	check "copies $1: the urgent process stops the batch" wait_for closed_once
	aged=$(scheduler aged)
	check "copies $1: the device has the urgent queue alone" wait_for alone # and no aged turn began before it was counted
	before=$(device dispatches)
	# Its own compute queue has work too, and is closed from the start.
	load copy 50 16384 3000 >/tmp/copy &
	copy=$!
	wait_for grep -q "^copy" /tmp/copy
	after=$(device dispatches)
	aged=$(($(scheduler aged) - aged))
	sed 's/^/# /' /tmp/copy
	check "copies $1: every byte arrives" grep -q "wrong=0 left=0" /tmp/copy
	check "copies $1: the device made as many ($(device copies))" [ "$(device copies)" = 50 ]
	check "copies $1: most while those compute queues were closed ($(device copies_apart))" [ "$(device copies_apart)" -ge 25 ]
	check "copies $1: meanwhile a kernel of the batch ends in aged turns only ($before, $after, $aged turns)" \
		[ "$before" = "$after" -o $aged -gt 0 ]
	check "copies $1: so does that of their own process" sh -c "grep -q kernels=1 /tmp/copy || [ $aged -gt 0 ]"
	: >/tmp/enough
	kill -9 $urgent
	check "copies $1: the kernel beside the copies ends afterwards" wait $copy
	wait
	check "copies $1: the batch is complete" grep -q left=0 /tmp/a
	clean "copies $1"
	unload_module "copies $1"
}
alone() { [ "$(device mapped)" = 1 ]; }

# Two devices: each has its own scheduler. A process that is urgent on one holds nobody back on the other.
several() {
	load_module kfd_sched_policy=hpf
	second() { sed -n "s/^$1=//p" $debug/softgpu.1/stats; }
	closes_of() { sed -n 's/^closes=//p' $debug/$1; }
	first=$(ls $debug | grep kfd_sched | head -n 1)
	other=$(ls $debug | grep kfd_sched | tail -n 1)
	check "several: each device has a scheduler" [ "$first" != "$other" ]
	GPU=0 load batch 2 100 3000 >/tmp/a &
	GPU=1 load batch 2 100 3000 >/tmp/b &
	sleep 0.1
	GPU=0 load serve 10 3000 5 10 >/tmp/serve
	wait
	sed 's/^/# /' /tmp/a /tmp/b /tmp/serve
	check "several: all work is complete" sh -c '! cat /tmp/a /tmp/b | grep -v left=0'
	check "several: both devices worked" [ "$(device dispatches) $(second dispatches)" = "210 200" ]
	check "several: gates were closed on the first" [ "$(closes_of $first)" -gt 0 ]
	check "several: and none on the second" [ "$(closes_of $other)" = 0 ]
	# A reset of one device ends what runs on all of them, as it does in the unpatched driver. Then both work again.
	GPU=0 load batch 2 1000 3000 >/dev/null &
	one=$!
	GPU=1 load batch 2 1000 3000 >/dev/null &
	two=$!
	before=$(second dispatches)
	wait_for second_progressed $((before + 5))
	check "several: the second has work when it is reset" [ "$(second mapped)" = 2 ]
	echo 1 >$debug/softgpu.1/reset
	check "several: the second was reset, and not the first" [ "$(device resets) $(second resets)" = "0 1" ]
	check "several: nothing of it goes on on the second" stands_still
	kill -9 $one $two
	wait
	check "several: the first works after a reset of the second" sh -c 'GPU=0 load batch 1 5 500 | grep -q left=0'
	check "several: the second works too" sh -c 'GPU=1 load batch 1 5 500 | grep -q left=0'
	check "several: the devices found nothing wrong" [ "$(device violations) $(second violations)" = "0 0" ]
	check "several: the driver left nothing of the first to a reset" [ "$(device stale)" = 0 ]
	wait_for no_process
	check "several: the second's counts are balanced" [ "$(second driver_queues) $(second driver_processes)" = "0 0" ]
	unload_module several
}

second_progressed() { [ "$(second dispatches)" -gt "$1" ]; }
stands_still() {
	before=$(second dispatches)
	sleep 0.5
	[ "$(second mapped)" = 0 ] && [ "$(second dispatches)" = "$before" ]
}

# The device is suspended while processes end: their queues are no longer evicted with the others, and not yet gone.
ending() {
	load_module $1
	for i in $(seq 20); do
		load batch 2 100 2000 >/dev/null &
		victim=$!
		sleep 0.3
		kill -9 $victim
		usleep $((i * 500))
		echo 1 >$debug/softgpu/suspend
		echo 0 >$debug/softgpu/suspend
		wait
	done
	clean "ending $1"
	unload_module "ending $1"
}

# Debian's ROCr as it is, below the scheduler: it finds the device, makes a queue with a priority, and its packets
# complete, while a batch process runs beside it.
rocr() {
	load_module kfd_sched_policy=hpf
	rocminfo >/tmp/info 2>&1
	grep -E "Marketing|Name: *gfx|failed|HSA_STATUS" /tmp/info | head -n 4 | sed 's/^ */# rocminfo: /'
	check "rocr: rocminfo finds the device" grep -q "Name: *gfx906" /tmp/info
	load batch 2 500 2000 >/tmp/a &
	sleep 0.2
	/bin/rocr 20 2 >/tmp/rocr 2>&1
	sed 's/^/# /' /tmp/rocr
	check "rocr: every packet of a program completes" grep -q "packets=20 done=20" /tmp/rocr
	wait
	check "rocr: the program beside is complete" grep -q left=0 /tmp/a
	check "rocr: the core is sound" [ "$(scheduler check)" = ok ]
	clean rocr
	unload_module rocr
}

# A program of Debian's HIP as it is, whose kernels are executed (guest/cores.c), beside urgent requests: its results are
# those of the CPU, with the policy off and while hpf puts its queue aside. A workgroup takes 2 ms, so that there is time.
hip() {
	load_module kfd_sched_policy=$1 default_us=2000
	cores $debug/softgpu/cores /bin/mi50.ini >/tmp/cores &
	cores=$!
	load serve 100000 1000 20 10 >/dev/null & # as long as the program runs
	urgent=$!
	LD_LIBRARY_PATH=/bin /bin/hip 5 >/tmp/hip 2>&1
	check "hip $1: the program ends well" [ $? = 0 ]
	grep ^hip /tmp/hip | sed 's/^/# /'
	cat /tmp/cores
	check "hip $1: every value is right" grep -q "rounds=5 wrong=0" /tmp/hip
	check "hip $1: all its kernels were executed ($(device executed))" [ "$(device executed)" -ge 7 -a "$(device not_executed)" = 0 ]
	check "hip $1: its bytes were copied ($(device copies))" [ "$(device copies)" -ge 4 ]
	if [ $1 != off ]; then
		check "hip $1: it was put aside for others ($(scheduler preemptions))" [ "$(scheduler preemptions)" -ge 1 ]
		check "hip $1: the core is sound" [ "$(scheduler check)" = ok ]
	fi
	kill -9 $urgent $cores
	wait $urgent $cores
	clean "hip $1"
	unload_module "hip $1"
}

# Two programs call the driver at once, as fast as they can, beside one that works.
calls() {
	load_module $1
	load batch 2 100 2000 >/tmp/a &
	sched fuzz 1 ${FUZZ_SECONDS:-5} &
	sched fuzz 2 ${FUZZ_SECONDS:-5}
	wait
	check "calls $1: the program beside is complete" grep -q left=0 /tmp/a
	clean "calls $1"
	unload_module "calls $1"
}
