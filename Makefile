# SPDX-License-Identifier: MIT
# The commands people type. Meson builds; what a target needs is installed by tools/deps (Debian) when it is missing.
# Everything built goes to build*/, everything produced to out/.

MAKEFLAGS += --no-print-directory
SEEDS ?= 1000
SEED ?= 1
KILLS ?= 1000
PREEMPTIONS ?= 300
ARRIVALS ?= 200
FUZZ_SECONDS ?= 30
PROVE_DEPTH ?= 5
PREFIX ?= /usr/local
SOURCE_FOLDERS = agent bench cli core daemon demo device include lab lib libgpreempt model report sim test vgpu view

.PHONY: help all demo test vgpu-test isa-test isa-demo sched-test ranks-test idle-test systemd-test roots-test bench bench-sched bench-nvidia attack browser-test swarm fuzz prove prove-night mutants tidy format sanitize stall-test kill-test kernel-check kernel-test kernel-debug-test kernel-kcsan-test kernel-controls kernel-seeds kernel-long fresh install uninstall deb ops-test clean

help:
	@echo "make demo          build, simulate an inference service beside a training job, then show it with two HIP programs on a virtual GPU"
	@echo "make all           build (in build/)"
	@echo "make test          build with -Werror and run every test; ends with 'N passed, N failed'"
	@echo "make vgpu-test     of those only the virtual node's (docs/vgpu.md): unmodified ROCm programs, with and without root"
	@echo "make isa-test      the interpreter of kernels at length: four targets, three levels, saved and restored; rocPRIM, HIP samples"
	@echo "make isa-demo      serve and train executed, preempted inside their kernels PREEMPTIONS=$(PREEMPTIONS) times by each mechanism; the demo's table"
	@echo "make roots-test    the virtual node with ROCr and HIP 6 from newer Debians, in roots under /var/cache; needs root"
	@echo "make sched-test    of those only the daemon's with unmodified HIP programs"
	@echo "make ranks-test    programs that wait for each other beside an urgent one, ARRIVALS=$(ARRIVALS) from SEED=$(SEED), with gangs and without"
	@echo "make idle-test     2, 8 and 20 idle servers: for 30 s no wakeup and no change of the runlist; then their next requests"
	@echo "make systemd-test  of those only the service under a real systemd, on a virtual node"
	@echo "make sanitize      the tests again, with the address and undefined-behaviour sanitizers"
	@echo "make stall-test    the tests again, on a machine that stalls (SEED=$(SEED)); needs root"
	@echo "make kill-test     daemon, programs and threads killed at random (KILLS=$(KILLS), SEED=$(SEED)); needs root"
	@echo "make browser-test  the page of a report in headless Chromium (fetches playwright-core)"
	@echo "make swarm         random workloads and faults against the checkers (SEEDS=$(SEEDS))"
	@echo "make fuzz          each reader of outside data under libFuzzer (FUZZ_SECONDS=$(FUZZ_SECONDS) each)"
	@echo "make kernel-test   the core inside the real amdkfd, in QEMU on a software GPU (docs/kernel.md); fetches 270 MB once"
	@echo "make kernel-debug-test  the same on a kernel with lockdep, KASAN and KUnit, which is built once (a quarter of an hour)"
	@echo "make kernel-kcsan-test  what races, on a kernel with KCSAN, which is built once (a quarter of an hour)"
	@echo "make kernel-controls    breaks the series in five places; the test bed must see each"
	@echo "make kernel-seeds       what seed 002's changes do to the real driver (docs/seeds.md)"
	@echo "make kernel-long        1,000 random operations and ten minutes of fuzzing in the guest"
	@echo "make prove         every sequence of $(PROVE_DEPTH) calls on the core, models of the protocol, proofs of its arithmetic (docs/prove.md)"
	@echo "make prove-night   the same with sequences of 6 calls; hours"
	@echo "make mutants       removes guards one by one (docs/mutants.md) and fails where no test notices"
	@echo "make bench         timings, as ratios; never passes or fails"
	@echo "make attack        what a hostile user can do to the others, as figures; writes docs/results/attack.md; ten minutes"
	@echo "make bench-sched   unmodified HIP programs with priorities on a virtual node; writes docs/results/{sched,seed003}.md; half an hour"
	@echo "make bench-nvidia  urgent and batch CUDA programs on this machine's NVIDIA GPU; table and plot in out/bench-nvidia; seven minutes"
	@echo "make tidy          clang-format, clang-tidy, cppcheck, shellcheck, pylint"
	@echo "make format        clang-format, in place"
	@echo "make kernel-check  compile the core against the headers of Debian's kernel"
	@echo "make fresh         make demo and make test in a bare Debian 12 (debootstrap; needs root)"
	@echo "make install       install under PREFIX=$(PREFIX) (DESTDIR is honoured)"
	@echo "make uninstall     remove what make install put there; /etc/gpreempt and /var/lib/gpreempt stay"
	@echo "make deb           Debian packages in out/deb (docs/install.md)"
	@echo "make ops-test      podman, Slurm, Prometheus, systemd, dpkg for real, in a Debian 12 under /var/cache; needs root (OPS=case...)"
	@echo "make clean         remove build*/ and out/"

# One rule for every build tree: $(call setup,FOLDER,OPTIONS). Meson reconfigures by itself afterwards.
setup = @test -f $(1)/build.ninja || said=$$(meson setup $(1) $(2) 2>&1) || \
	{ printf '%s\n' "$$said"; rm -rf $(1); exit 1; }

all:
	@tools/deps build
	$(call setup,build,)
	@ninja -C build --quiet

# Only the programs: `all` would build the tests too.
demo:
	@tools/deps build
	$(call setup,build,)
	@tools/demo build

# The kernel's headers and ROCm are wanted, not needed: where they cannot be installed the tests that use them are skipped,
# and say so. What has just been installed is seen by a tree that was configured without it.
test:
	@tools/deps build test kernel vgpu rocm || tools/deps build test
	@test ! -f build-test/build.ninja || meson setup --reconfigure build-test >/dev/null
	$(call setup,build-test,-Dwerror=true -Dtests=enabled)
	@tools/run-tests build-test

# Longer limits only keep a stalled test from being called hung.
stall-test:
	@tools/deps build test kernel vgpu rocm || tools/deps build test
	$(call setup,build-test,-Dwerror=true -Dtests=enabled)
	@tools/stall --seed $(SEED) tools/run-tests build-test --timeout-multiplier 3

kill-test:
	@tools/deps build test vgpu rocm
	$(call setup,build-test,-Dwerror=true -Dtests=enabled)
	@tools/kill-test build-test $(KILLS) $(SEED)

vgpu-test:
	@tools/deps build test vgpu rocm
	@test ! -f build-test/build.ninja || meson setup --reconfigure build-test >/dev/null
	$(call setup,build-test,-Dwerror=true -Dtests=enabled)
	@tools/run-tests build-test --suite vgpu

isa-test:
	@tools/deps build test vgpu rocm prim
	$(call setup,build,)
	@ninja -C build --quiet vgpu/vgpu vgpu/vgpud test/unit/isa-corpus
	@tools/isa-test "$$(pwd)/build"

isa-demo:
	@tools/deps build vgpu rocm
	$(call setup,build,)
	@ninja -C build --quiet cli/gpreempt sim/gpreempt-sim cli/gpreempt-run cli/gpreempt-status daemon/gpreemptd agent/libgpreempt-agent.so \
		vgpu/vgpu vgpu/vgpud demo/serve demo/train demo/gpreempt-demo-table
	@tools/isa-demo build $(PREEMPTIONS)

roots-test:
	@tools/deps build vgpu fresh
	$(call setup,build,)
	@ninja -C build --quiet vgpu/vgpu vgpu/vgpud agent/libgpreempt-agent.so test/e2e/agent-test
	@tools/roots build

sched-test:
	@tools/deps build test vgpu rocm
	@test ! -f build-test/build.ninja || meson setup --reconfigure build-test >/dev/null
	$(call setup,build-test,-Dwerror=true -Dtests=enabled)
	@tools/run-tests build-test --suite sched

# The ranks of a job and programs that share memory, beside an urgent one.
ranks-test:
	@tools/deps build test vgpu rocm
	$(call setup,build-test,-Dwerror=true -Dtests=enabled)
	@ninja -C build-test --quiet
	@for name in ranks shares; do SCHED_ARRIVALS=$(ARRIVALS) SCHED_SEED=$(SEED) test/e2e/sched $$name "$$(pwd)/build-test" || exit 1; done

# Servers that rest: nothing happens for half a minute, and the next request is served at once.
idle-test:
	@tools/deps build test vgpu rocm
	$(call setup,build-test,-Dwerror=true -Dtests=enabled)
	@ninja -C build-test --quiet
	@for name in idle_many idle_reopened; do SCHED_IDLE_S=30 test/e2e/sched $$name "$$(pwd)/build-test" || exit 1; done

systemd-test:
	@tools/deps build test vgpu rocm systemd
	@test ! -f build-test/build.ninja || meson setup --reconfigure build-test >/dev/null
	$(call setup,build-test,-Dwerror=true -Dtests=enabled)
	@tools/run-tests build-test --suite systemd

sanitize:
	@tools/deps build test
	$(call setup,build-sanitize,-Dwerror=true -Dtests=enabled -Db_sanitize=address$(comma)undefined \
		-Dc_args=-fno-sanitize-recover=all)
	@tools/run-tests build-sanitize --no-suite checks --no-suite vgpu --no-suite sched --no-suite systemd

browser-test:
	@tools/deps build browser
	$(call setup,build,)
	@ninja -C build --quiet report/gpreempt-report
	@tools/browser-test build

swarm:
	@tools/deps build
	$(call setup,build,)
	@ninja -C build --quiet test/sim/swarm
	@build/test/sim/swarm --seeds $(SEEDS)

fuzz:
	@tools/deps build fuzz vgpu
	$(call setup,build-fuzz,-Dfuzz=enabled -Db_lundef=false -Db_sanitize=address$(comma)undefined \
		-Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=all')
	@tools/fuzz build-fuzz $(FUZZ_SECONDS)

fuzz: export CC = clang

kernel-test:
	@tools/deps guest
	@test/kernel/run build-kernel

kernel-debug-test:
	@tools/deps guest guest-debug
	@test/kernel/run build-kernel --debug

kernel-kcsan-test:
	@tools/deps guest guest-debug
	@test/kernel/run build-kernel --kcsan

# The negative controls: each breaks the series in one place, and the test bed must see it.
kernel-controls:
	@tools/deps guest
	@test/kernel/run build-kernel --controls

kernel-seeds:
	@tools/deps guest
	@test/kernel/run build-kernel --seeds

kernel-long:
	@tools/deps guest
	@test/kernel/run build-kernel --long

# Proofs need Debian's frama-c, which is of 2022: newer ones may prove less in the same time.
prove:
	@tools/deps build prove
	$(call setup,build,)
	@ninja -C build --quiet test/prove/explore test/prove/explore-two
	@test/prove/run build --depth $(PROVE_DEPTH)

prove-night:
	@$(MAKE) prove PROVE_DEPTH=6

mutants:
	@tools/deps build test kernel vgpu rocm || tools/deps build test
	@nice -n 10 tools/mutants

bench:
	@tools/deps build
	@tools/deps vgpu || true
	$(call setup,build-bench,--buildtype=release -Db_ndebug=true)
	@ninja -C build-bench --quiet
	@meson test -C build-bench --benchmark --verbose --num-processes 1

attack:
	@tools/deps build vgpu rocm
	$(call setup,build-test,-Dwerror=true -Dtests=enabled)
	@ninja -C build-test --quiet
	@test/attack/run --output docs/results/attack.md build-test

bench-sched:
	@tools/deps build vgpu rocm
	@test ! -f build-bench/build.ninja || meson setup --reconfigure build-bench >/dev/null
	$(call setup,build-bench,--buildtype=release -Db_ndebug=true)
	@ninja -C build-bench --quiet cli/gpreempt sim/gpreempt-sim cli/gpreempt-run cli/gpreempt-status daemon/gpreemptd \
		agent/libgpreempt-agent.so vgpu/vgpu vgpu/vgpud demo/serve demo/train demo/serve-hint bench/bench-sched-reaction
	@bench/sched build-bench docs/results

bench-nvidia:
	@tools/deps build
	$(call setup,build-bench,--buildtype=release -Db_ndebug=true)
	@ninja -C build-bench --quiet
	@bench/nvidia/build build-bench/bench
	@bench/nvidia/run --bin build-bench --out out/bench-nvidia --sim build-bench/cli/gpreempt

tidy:
	@tools/deps build test tidy
	$(call setup,build,)
	@tools/tidy build $(SOURCE_FOLDERS)

format:
	@tools/deps tidy
	@tools/tidy --format $(SOURCE_FOLDERS)

kernel-check:
	@tools/kernel-check

fresh:
	@tools/deps fresh
	@tools/fresh

install: all
	@tools/may-install "$(DESTDIR)$(PREFIX)" "$(DESTDIR)/etc"
	@meson configure build -Dprefix=$(PREFIX)
	@meson install -C build --quiet

uninstall:
	@tools/uninstall build $(PREFIX)

deb:
	@tools/deps build vgpu deb
	@tools/deb out/deb

ops-test:
	@tools/deps build test vgpu rocm fresh
	@test ! -f build-test/build.ninja || meson setup --reconfigure build-test >/dev/null
	$(call setup,build-test,-Dwerror=true -Dtests=enabled)
	@ninja -C build-test --quiet
	@tools/ops build-test $(OPS)

clean:
	@rm -rf build build-* out

comma := ,
