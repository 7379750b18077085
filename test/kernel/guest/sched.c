/* SPDX-License-Identifier: MIT */
/*
 * sched uapi                what AMDKFD_IOC_SCHED accepts and refuses
 * sched stats               what it tells of a process, where the kernel schedules
 * sched gates               a privileged batch gate: one runlist, no progress, open again when its owner dies
 * sched random SEED COUNT   random operations of many processes; each survivor's work is complete
 * sched fuzz SEED SECONDS   the ioctl with random arguments and sizes
 *
 * Each prints lines "ok ..." and "not ok ...", and exits 0 if there is no "not ok".
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include <unistd.h>
#include "kfd.h"

static int failures;

static void check(bool good, const char *what)
{
	printf("%s %s\n", good ? "ok" : "not ok", what);
	failures += !good;
}

static uint64_t device_stat(const char *name)
{
	FILE *file = fopen("/sys/kernel/debug/softgpu/stats", "r");
	char line[128];
	uint64_t value = 0;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == '=')
			value = strtoull(line + strlen(name) + 1, NULL, 0);
	if (file)
		fclose(file);
	return value;
}

/* The driver does not wait until the device has mapped what a runlist names. */
static bool wait_stat(const char *name, uint64_t value)
{
	double start = now_ms();

	while (device_stat(name) != value && now_ms() - start < 20000)
		usleep(1000);
	return device_stat(name) == value;
}

static void device_write(const char *name, int value)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/debug/softgpu/%s", name);
	file = fopen(path, "w");
	if (file) {
		fprintf(file, "%d\n", value);
		fclose(file);
	}
}

static int set_process(unsigned priority, unsigned weight)
{
	struct kfd_ioctl_sched_args args = { .op = KFD_IOC_SCHED_SET_PROCESS, .priority = priority, .weight = weight };

	return ioctl(kfd, AMDKFD_IOC_SCHED, &args) ? -errno : 0;
}

static void drop_capability(unsigned capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	syscall(SYS_capget, &header, data);
	data[capability / 32].effective &= ~(1u << capability % 32);
	syscall(SYS_capset, &header, data);
}

static int gate(struct kfd_sched_gate *gates, unsigned count)
{
	struct kfd_ioctl_sched_args args = { .op = KFD_IOC_SCHED_GATE,
					     .gpu_id = gpu_id,
					     .gates_ptr = (uintptr_t)gates,
					     .gate_count = count };

	return ioctl(kfd, AMDKFD_IOC_SCHED, &args) ? -errno : 0;
}

static int hint(uint64_t in_ns)
{
	struct kfd_ioctl_sched_args args = { .op = KFD_IOC_SCHED_HINT, .gpu_id = gpu_id, .hint_in_ns = in_ns };

	return ioctl(kfd, AMDKFD_IOC_SCHED, &args) ? -errno : 0;
}

/* The struct of each size at the end of a page behind which there is nothing. Returns how many were answered wrongly.
 */
static int sizes(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int wrong = 0;

	if (memory == MAP_FAILED || munmap(memory + page, (size_t)page))
		die("page");
	for (unsigned size = 0; size <= 256; size++) {
		struct kfd_ioctl_sched_args args = { .op = KFD_IOC_SCHED_SET_PROCESS, .priority = 50 };
		char *at = memory + page - size;
		int r;

		memset(memory, 0, (size_t)page);
		memcpy(at, &args, size < sizeof(args) ? size : sizeof(args));
		r = ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE, 0x27, size), at);
		/* Without its first byte it asks for gates, and has none. */
		if (size >= 1 ? r != 0 : r == 0 || errno != EINVAL) {
			printf("# size %u: %d, %s\n", size, r, strerror(errno));
			wrong++;
		}
		for (char *byte = at + sizeof(args); byte < memory + page; byte++)
			wrong += *byte != 0;
	}
	munmap(memory, (size_t)page);
	return wrong;
}

/* In a kernel that schedules. A program without rights has no priority above normal, whatever its queues say. */
static int stats_told(void)
{
	struct kfd_sched_stats stats = { 0 }, part = { .run_ns = 77, .wait_ns = 77 };
	struct kfd_ioctl_sched_args args = { .op = KFD_IOC_SCHED_STATS,
					     .gpu_id = gpu_id,
					     .stats_ptr = (uintptr_t)&part,
					     .stats_size = 8 };
	struct signal *signal = kfd_signals(1);
	unsigned long long run_ms = 0;
	struct queue queue;
	char path[128];
	FILE *file;

	queue_must(&queue, 15);
	signal->value = 3;
	for (int i = 0; i < 3; i++)
		queue_dispatch(&queue, 240, 10000000, signal);
	check(wait_below(signal, 0, 20000), "the work is complete");
	check(sched_stats(&stats) == 0, "the kernel tells what the process got");
	printf("# run_ns=%llu wait_ns=%llu\n", stats.run_ns, stats.wait_ns);
	check(stats.run_ns >= 28000000 && stats.run_ns < 60000000,
	      "three kernels of 10 ms ran for 28 to 60 ms (work is seen within a millisecond)");
	check(!ioctl(kfd, AMDKFD_IOC_SCHED, &args) && part.run_ns >= 28000000 && part.wait_ns == 77,
	      "an older program's shorter statistics are not overrun");
	args.gpu_id = 1;
	check(ioctl(kfd, AMDKFD_IOC_SCHED, &args) && errno == EINVAL, "statistics of a device that is not there");
	args.gpu_id = gpu_id;
	args.stats_ptr = 8;
	check(ioctl(kfd, AMDKFD_IOC_SCHED, &args) && errno == EFAULT, "statistics to memory that is not there");
	check(hint(1000000) == 0 && hint(3600000000001ull) == -EINVAL,
	      "a hint is taken, one of more than an hour is not");
	queue_destroy(&queue);
	check(!sched_stats(&part) && part.run_ns >= stats.run_ns,
	      "what the process got is not forgotten with its queue");
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/stats_%u/sched", getpid(), gpu_id);
	file = fopen(path, "r");
	check(file && fscanf(file, "run_ms=%llu", &run_ms) == 1 && run_ms >= stats.run_ns / 1000000,
	      "sysfs says the same");
	if (file)
		fclose(file);
	check(gate(&(struct kfd_sched_gate){ .pid = 1 }, 1) == -EBUSY, "gates are the kernel's own");
	return failures != 0;
}

static int uapi(void)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	struct kfd_ioctl_sched_args args = { .op = 77 };
	struct kfd_sched_gate one = { .pid = 1, .queue_id = 0, .open = 2 };
	struct kfd_sched_stats stats;
	struct {
		struct kfd_ioctl_sched_args args;
		char more[64];
	} longer = { 0 };

	check(!ioctl(kfd, AMDKFD_IOC_GET_VERSION, &version) && version.minor_version >= 18,
	      "the version says that it is there");
	check(ioctl(kfd, AMDKFD_IOC_SCHED, &args) && errno == EINVAL, "an unknown operation is refused");
	check(set_process(80, 0) == 0, "root may set a high priority");
	check(set_process(100, 0) == -EINVAL, "a priority above 99 is refused");
	check(set_process(50, 10001) == -EINVAL, "a weight above 10000 is refused");
	args = (struct kfd_ioctl_sched_args){ .op = KFD_IOC_SCHED_SET_PROCESS, .priority = 50, .pad = 1 };
	check(ioctl(kfd, AMDKFD_IOC_SCHED, &args) && errno == EINVAL, "what is reserved must be 0");
	check(gate(&one, 1) == -EINVAL, "a gate is 0 or 1");
	check(gate(NULL, 1) == -EFAULT, "an array that is not there is refused");
	check(gate(&one, 0) == -EINVAL && gate(&one, 1025) == -EINVAL, "0 and 1,025 gates are refused");
	check(sizeof(struct kfd_ioctl_sched_args) == 32 && sizeof(struct kfd_sched_gate) == 16,
	      "the structs have the sizes that programs were built with");
	check(sched_stats(&stats) == -EOPNOTSUPP && hint(1000) == -EOPNOTSUPP,
	      "without a scheduler in the kernel there are no statistics and no hints");
	check(sizes() == 0, "every size from 0 to 256 is taken or refused, and nothing behind the struct is written");
	/* A newer program's longer struct, an older one's shorter: the kernel takes its own length. */
	longer.args = (struct kfd_ioctl_sched_args){ .op = KFD_IOC_SCHED_SET_PROCESS, .priority = 40 };
	check(!ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE, 0x27, sizeof(longer)), &longer),
	      "a longer struct is accepted");
	check(!ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE, 0x27, 24), &longer.args),
	      "a shorter struct is accepted");
	one.open = 1;
	one.pid = 999999;
	check(gate(&one, 1) == 0 && one.result == -ESRCH, "a process that is not there is answered by itself");
	drop_capability(CAP_SYS_NICE);
	check(set_process(80, 0) == -EACCES, "without CAP_SYS_NICE a high priority is refused");
	check(set_process(50, 0) == 0 && set_process(0, 0) == 0, "a normal and a low one are not");
	drop_capability(CAP_SYS_ADMIN);
	check(gate(&one, 1) == -EPERM, "without CAP_SYS_ADMIN gates are refused");
	return failures != 0;
}

#define WORKER_LIMIT_MS 60000 /* work that takes longer is not complete */

static int stay[2] = { -1, -1 }; /* a pipe: workers stay until its other end is closed, however fast their work ends */

/* A child with queues that have work; it tells their ids, and ends when all of it is complete. */
static pid_t worker(unsigned queues, unsigned dispatches, unsigned ms, unsigned priority, unsigned *ids)
{
	int pipe_fds[2];
	pid_t pid;

	if (pipe(pipe_fds))
		die("pipe");
	pid = fork();
	if (!pid) {
		struct kfd_ioctl_runtime_enable_args runtime = { .mode_mask = KFD_RUNTIME_ENABLE_MODE_ENABLE_MASK };
		struct queue queue[8];
		struct signal *signals;
		unsigned left = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(kfd);
		kfd_open();
		ioctl(kfd, AMDKFD_IOC_RUNTIME_ENABLE, &runtime); /* so that a debugger may suspend its queues */
		signals = kfd_signals(queues);
		for (unsigned i = 0; i < queues; i++) {
			queue_must(&queue[i], priority);
			signals[i].value = dispatches;
			ids[i] = queue[i].args.queue_id;
			(void)!write(pipe_fds[1], &ids[i], sizeof(ids[i]));
		}
		for (unsigned k = 0; k < dispatches; k++)
			for (unsigned i = 0; i < queues; i++)
				queue_dispatch(&queue[i], 60, ms * 1000000ull, &signals[i]);
		for (unsigned i = 0; i < queues; i++) {
			wait_below(&signals[i], 0, WORKER_LIMIT_MS);
			left += signals[i].value != 0;
		}
		if (stay[0] >= 0) {
			char byte;

			close(stay[1]);
			(void)!read(stay[0], &byte, 1);
		}
		_exit(left ? 3 : 0);
	}
	close(pipe_fds[1]);
	for (unsigned i = 0; i < queues; i++)
		if (read(pipe_fds[0], &ids[i], sizeof(ids[i])) != sizeof(ids[i]))
			die("worker");
	close(pipe_fds[0]);
	return pid;
}

static int gates(void)
{
	struct kfd_sched_gate list[6];
	unsigned ids[2][3], count = 0;
	uint64_t runlists, before;
	struct queue bystander;
	pid_t pids[2], owner;
	int status;

	if (pipe(stay))
		die("pipe");
	for (int p = 0; p < 2; p++) {
		pids[p] = worker(3, 40, 10, 7, ids[p]);
		for (int i = 0; i < 3; i++)
			list[count++] = (struct kfd_sched_gate){ .pid = (uint32_t)pids[p], .queue_id = ids[p][i] };
	}
	queue_must(&bystander, 7); /* stays mapped, so that there is a runlist to send */
	usleep(100000);
	runlists = device_stat("runlists");
	check(gate(list, count) == 0, "gates of two processes close");
	check(device_stat("mes_adds") || wait_stat("runlists", runlists + 1), "with one runlist");
	check(device_stat("mes_adds") || (device_stat("left_max") == count && device_stat("left_processes_max") == 2),
	      "which left out six queues of two processes, as the device counts");
	check(wait_stat("mapped", 1), "nothing else is mapped");
	before = device_stat("dispatches");
	usleep(300000);
	check(device_stat("dispatches") == before, "nothing makes progress");
	for (unsigned i = 0; i < count; i++)
		list[i].open = 1;
	check(gate(list, count) == 0 && wait_stat("mapped", count + 1), "all of them open");
	/* A scheduler that dies. */
	owner = fork();
	if (!owner) {
		close(kfd);
		kfd_open();
		for (unsigned i = 0; i < count; i++)
			list[i].open = 0;
		_exit(gate(list, count) ? 1 : 0);
	}
	waitpid(owner, &status, 0);
	check(status == 0, "another process closed them, and died");
	check(wait_stat("mapped", count + 1), "the gates of a scheduler that died are open again");
	close(stay[1]);
	stay[0] = -1;
	for (int p = 0; p < 2; p++) {
		waitpid(pids[p], &status, 0);
		check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the work is complete");
	}
	check(device_stat("violations") == 0, "the device found nothing wrong");
	return failures != 0;
}

struct victim {
	pid_t pid;
	unsigned ids[3], queues;
	bool evicted, killed;
};

static unsigned done, bad; /* processes that ended, and those that ended as they must not */

static void victim_ended(struct victim *victim, int status)
{
	if (!victim->killed && status) {
		printf("# process %d ended with status %#x\n", victim->pid, status);
		bad++;
	}
	victim->pid = 0;
	done++;
}

static int refused; /* why a debugger could not do its work, the last time */

static int debugger_call(struct kfd_ioctl_dbg_trap_args *args, pid_t pid, unsigned op)
{
	args->pid = (uint32_t)pid;
	args->op = op;
	return ioctl(kfd, AMDKFD_IOC_DBG_TRAP, args);
}

/* Attaches as a debugger does, suspends all queues, lets them go on, and detaches; or only some of that. Returns how
 * many queues were suspended. */
static int debug(struct victim *victim, unsigned how)
{
	struct kfd_ioctl_dbg_trap_args args = { 0 };
	struct kfd_runtime_info info;
	uint32_t ids[3];
	int events = open("/dev/null", O_WRONLY), suspended = 0, status;

	/* It stands still meanwhile: unpatched amdkfd dereferences NULL if it ends while a debugger is being enabled.
	 */
	if (ptrace(PTRACE_SEIZE, victim->pid, 0, 0))
		goto close;
	ptrace(PTRACE_INTERRUPT, victim->pid, 0, 0);
	if (waitpid(victim->pid, &status, __WALL) != victim->pid)
		die("debugger");
	if (!WIFSTOPPED(status)) {
		victim_ended(victim, status);
		goto close;
	}
	args.enable.dbg_fd = (uint32_t)events;
	args.enable.rinfo_ptr = (uintptr_t)&info;
	args.enable.rinfo_size = sizeof(info);
	if (debugger_call(&args, victim->pid, KFD_IOC_DBG_TRAP_ENABLE)) {
		refused = errno;
		goto out;
	}
	memset(&args, 0, sizeof(args));
	memcpy(ids, victim->ids, sizeof(ids));
	args.suspend_queues.queue_array_ptr = (uintptr_t)ids;
	args.suspend_queues.num_queues = victim->queues;
	suspended = debugger_call(&args, victim->pid, KFD_IOC_DBG_TRAP_SUSPEND_QUEUES);
	if (suspended <= 0)
		refused = suspended ? errno : ids[0] >> 24;
	usleep(how % 3000);
	if (how & 4096) { /* else leaving is what resumes them */
		memset(&args, 0, sizeof(args));
		memcpy(ids, victim->ids, sizeof(ids));
		args.resume_queues.queue_array_ptr = (uintptr_t)ids;
		args.resume_queues.num_queues = victim->queues;
		debugger_call(&args, victim->pid, KFD_IOC_DBG_TRAP_RESUME_QUEUES);
	}
	memset(&args, 0, sizeof(args));
	debugger_call(&args, victim->pid, KFD_IOC_DBG_TRAP_DISABLE);
out:
	ptrace(PTRACE_DETACH, victim->pid, 0, 0);
close:
	if (events >= 0)
		close(events);
	return suspended > 0 ? suspended : 0;
}

#define VICTIMS 8

static struct victim victims[VICTIMS];
static unsigned suspends, resets, debugged;

/* Lets everybody go on. */
static void release_all(bool gating)
{
	for (unsigned k = 0; k < VICTIMS; k++) {
		struct victim *victim = &victims[k];

		if (victim->pid && victim->evicted)
			device_write("restore", victim->pid);
		victim->evicted = false;
		for (unsigned q = 0; gating && victim->pid && q < victim->queues; q++) {
			struct kfd_sched_gate g = { .pid = (uint32_t)victim->pid,
						    .queue_id = victim->ids[q],
						    .open = 1 };

			gate(&g, 1);
		}
	}
	usleep(20000);
}

static void reset_device(void) /* nobody's queues survive that */
{
	device_write("reset", 1);
	resets++;
	for (unsigned k = 0; k < VICTIMS; k++)
		if (victims[k].pid) {
			kill(victims[k].pid, SIGKILL);
			victims[k].killed = true;
		}
}

static void random_operation(struct victim *victim, unsigned what, bool gating)
{
	if (what < 2 && !victim->evicted) {
		device_write("evict", victim->pid);
		victim->evicted = true;
	} else if (what < 4 && victim->evicted) {
		device_write("restore", victim->pid);
		victim->evicted = false;
	} else if (what == 4 && rand() % 4 == 0) {
		kill(victim->pid, SIGKILL);
		victim->killed = true;
	} else if (what == 5) {
		kill(victim->pid, SIGSTOP);
		usleep((unsigned)rand() % 3000);
		kill(victim->pid, SIGCONT);
	} else if (what == 6) {
		debugged += (unsigned)debug(victim, (unsigned)rand());
	} else if (what == 7 && rand() % 4 == 0) {
		device_write("suspend", 1);
		usleep((unsigned)rand() % 3000);
		device_write("suspend", 0);
		suspends++;
	} else if (what == 8 && rand() % 12 == 0) {
		reset_device();
	} else if (gating) {
		struct kfd_sched_gate g[3];

		for (unsigned q = 0; q < victim->queues; q++)
			g[q] = (struct kfd_sched_gate){ .pid = (uint32_t)victim->pid,
							.queue_id = victim->ids[q],
							.open = (uint32_t)rand() % 2 };
		gate(g, victim->queues);
	} else {
		usleep((unsigned)rand() % 2000);
	}
}

static int random_operations(unsigned seed, unsigned count)
{
	struct kfd_sched_gate none = { .pid = 999999, .open = 1 };
	bool gating = gate(&none, 1) == 0; /* -EBUSY: the kernel schedules, gates are its own */
	unsigned made = 0, operations = 0;

	srand(seed);
	printf("# seed %u\n", seed);
	while (operations < count || made > done) {
		struct victim *victim = &victims[(unsigned)rand() % VICTIMS];
		unsigned what = (unsigned)rand() % 10;
		int status;

		for (unsigned k = 0; k < VICTIMS; k++)
			if (victims[k].pid && waitpid(victims[k].pid, &status, WNOHANG) == victims[k].pid)
				victim_ended(&victims[k], status);
		if (operations >= count) {
			release_all(gating);
			continue;
		}
		operations++;
		if (victim->pid) {
			random_operation(victim, what, gating);
			continue;
		}
		victim->queues = 1 + (unsigned)rand() % 3;
		victim->evicted = victim->killed = false;
		/* Enough work that most operations meet a program that has some, however slow this machine is. */
		victim->pid = worker(victim->queues, 10 + (unsigned)rand() % 50, 4 + (unsigned)rand() % 12,
				     (unsigned)rand() % 16, victim->ids);
		made++;
	}
	printf("# %u operations, %u programs, %u queues suspended by a debugger (refused: %d), %u suspends, %u resets,"
	       " %u wrong; %llu queues left to a reset\n",
	       operations, made, debugged, refused, suspends, resets, bad, (unsigned long long)device_stat("stale"));
	check(bad == 0, "every program that was not killed completed its work");
	check(wait_stat("mapped", 0), "nothing is mapped when all are gone");
	check(device_stat("violations") == 0, "the device found nothing wrong");
	check(device_stat("resets") == resets, "the driver asked for no reset by itself");
	check(resets || device_stat("stale") == 0, "the driver left nothing to a reset that never came");
	return failures != 0;
}

static int fuzz(unsigned seed, unsigned seconds)
{
	double end = now_ms() + seconds * 1e3;
	unsigned long calls = 0;
	unsigned char bytes[256];
	struct kfd_sched_gate list[4];

	srand(seed);
	while (now_ms() < end) {
		struct kfd_ioctl_sched_args *args = (void *)bytes;
		unsigned size = (unsigned)rand() % sizeof(bytes);

		for (unsigned i = 0; i < sizeof(bytes); i++)
			bytes[i] = rand() % 4 ? 0 : (unsigned char)rand();
		args->op = (uint32_t)rand() % 6;
		if (rand() % 2) {
			args->gpu_id = gpu_id;
			args->gates_ptr = (uintptr_t)list;
			args->gate_count = (uint32_t)rand() % 6;
			for (unsigned i = 0; i < 4; i++)
				list[i] = (struct kfd_sched_gate){ .pid = (uint32_t)rand() % 300,
								   .queue_id = (uint32_t)rand() % 4,
								   .open = (uint32_t)rand() % 3 };
		}
		ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE, 0x27, size), bytes);
		calls++;
	}
	printf("# %lu calls\n", calls);
	check(true, "the kernel lives");
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	kfd_open();
	if (argc > 1 && !strcmp(argv[1], "uapi"))
		return uapi();
	if (argc > 1 && !strcmp(argv[1], "stats"))
		return stats_told();
	if (argc > 1 && !strcmp(argv[1], "gates"))
		return gates();
	if (argc > 3 && !strcmp(argv[1], "random"))
		return random_operations((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	if (argc > 3 && !strcmp(argv[1], "fuzz"))
		return fuzz((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	fprintf(stderr, "usage: sched uapi|stats|gates|random SEED COUNT|fuzz SEED SECONDS\n");
	return 2;
}
