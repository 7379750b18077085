/* SPDX-License-Identifier: MIT */
/*
 * sched uapi                what AMDKFD_IOC_SCHED accepts and refuses
 * sched gates               a privileged batch gate: one runlist, no progress, open again when its owner dies
 * sched random SEED COUNT   random operations of many processes; each survivor's work is complete
 * sched fuzz SEED SECONDS   the ioctl with random arguments and sizes
 *
 * Each prints lines "ok ..." and "not ok ...", and exits 0 if there is no "not ok".
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

static int uapi(void)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	struct kfd_ioctl_sched_args args = { .op = 77 };
	struct kfd_sched_gate one = { .pid = 1, .queue_id = 0, .open = 2 };
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

/* A child with queues that have work; it tells their ids, and ends when all of it is complete. */
static pid_t worker(unsigned queues, unsigned dispatches, unsigned ms, unsigned priority, unsigned *ids)
{
	int pipe_fds[2];
	pid_t pid;

	if (pipe(pipe_fds))
		die("pipe");
	pid = fork();
	if (!pid) {
		struct queue queue[8];
		struct signal *signals;
		unsigned left = 0;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(kfd);
		kfd_open();
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
			wait_below(&signals[i], 0, 60000);
			left += signals[i].value != 0;
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
	pid_t pids[2], owner;
	int status;

	for (int p = 0; p < 2; p++) {
		pids[p] = worker(3, 40, 10, 7, ids[p]);
		for (int i = 0; i < 3; i++)
			list[count++] = (struct kfd_sched_gate){ .pid = (uint32_t)pids[p], .queue_id = ids[p][i] };
	}
	usleep(100000);
	runlists = device_stat("runlists") + device_stat("mes_removes");
	check(gate(list, count) == 0, "gates of two processes close");
	printf("# %llu runlist updates for %u gates\n",
	       (unsigned long long)(device_stat("runlists") + device_stat("mes_removes") - runlists), count);
	check(device_stat("mes_adds") || device_stat("runlists") - runlists <= 1, "with one runlist at most");
	check(device_stat("mapped") == 0, "nothing is mapped");
	before = device_stat("dispatches");
	usleep(300000);
	check(device_stat("dispatches") == before, "nothing makes progress");
	for (unsigned i = 0; i < count; i++)
		list[i].open = 1;
	check(gate(list, count) == 0 && wait_stat("mapped", count), "all of them open");
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
	for (int p = 0; p < 2; p++) {
		waitpid(pids[p], &status, 0);
		check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the work is complete");
	}
	check(device_stat("violations") == 0, "the device found nothing wrong");
	return failures != 0;
}

static int random_operations(unsigned seed, unsigned count)
{
	struct {
		pid_t pid;
		unsigned ids[3], queues;
		bool evicted, killed;
	} w[8] = { 0 };
	unsigned done = 0, bad = 0, made = 0, operations = 0;
	bool gating;

	srand(seed);
	printf("# seed %u\n", seed);
	{
		struct kfd_sched_gate none = { .pid = 999999, .open = 1 };

		gating = gate(&none, 1) == 0; /* -EBUSY: the kernel schedules, gates are its own */
	}
	while (operations < count || made > done) {
		unsigned i = (unsigned)rand() % 8, what = (unsigned)rand() % 8;
		int status;

		for (unsigned k = 0; k < 8; k++)
			if (w[k].pid && waitpid(w[k].pid, &status, WNOHANG) == w[k].pid) {
				if (!w[k].killed && status) {
					printf("# process %d ended with status %#x\n", w[k].pid, status);
					bad++;
				}
				w[k].pid = 0;
				done++;
			}
		if (operations >= count) { /* let all go on, and wait */
			for (unsigned k = 0; k < 8; k++)
				if (w[k].pid && w[k].evicted) {
					device_write("restore", w[k].pid);
					w[k].evicted = false;
				}
			if (gating)
				for (unsigned k = 0; k < 8; k++)
					for (unsigned q = 0; w[k].pid && q < w[k].queues; q++) {
						struct kfd_sched_gate g = { .pid = (uint32_t)w[k].pid,
									    .queue_id = w[k].ids[q],
									    .open = 1 };
						gate(&g, 1);
					}
			usleep(20000);
			continue;
		}
		operations++;
		if (!w[i].pid) {
			w[i].queues = 1 + (unsigned)rand() % 3;
			w[i].evicted = w[i].killed = false;
			w[i].pid = worker(w[i].queues, 1 + (unsigned)rand() % 20, 1 + (unsigned)rand() % 4,
					  (unsigned)rand() % 16, w[i].ids);
			made++;
		} else if (what < 2 && !w[i].evicted) {
			device_write("evict", w[i].pid);
			w[i].evicted = true;
		} else if (what < 4 && w[i].evicted) {
			device_write("restore", w[i].pid);
			w[i].evicted = false;
		} else if (what == 4 && rand() % 4 == 0) {
			kill(w[i].pid, SIGKILL);
			w[i].killed = true;
		} else if (what == 5) {
			kill(w[i].pid, SIGSTOP);
			usleep((unsigned)rand() % 3000);
			kill(w[i].pid, SIGCONT);
		} else if (gating) {
			struct kfd_sched_gate g[3];

			for (unsigned q = 0; q < w[i].queues; q++)
				g[q] = (struct kfd_sched_gate){ .pid = (uint32_t)w[i].pid,
								.queue_id = w[i].ids[q],
								.open = (uint32_t)rand() % 2 };
			gate(g, w[i].queues);
		} else {
			usleep((unsigned)rand() % 2000);
		}
	}
	printf("# %u operations, %u programs, %u wrong\n", operations, made, bad);
	check(bad == 0, "every program that was not killed completed its work");
	check(device_stat("mapped") == 0, "nothing is mapped when all are gone");
	check(device_stat("violations") == 0, "the device found nothing wrong");
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
		args->op = (uint32_t)rand() % 3;
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
	if (argc > 1 && !strcmp(argv[1], "gates"))
		return gates();
	if (argc > 3 && !strcmp(argv[1], "random"))
		return random_operations((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	if (argc > 3 && !strcmp(argv[1], "fuzz"))
		return fuzz((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	fprintf(stderr, "usage: sched uapi|gates|random SEED COUNT|fuzz SEED SECONDS\n");
	return 2;
}
