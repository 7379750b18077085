/* SPDX-License-Identifier: MIT */
/* The virtual node's files that change: who reads them while they are written finds a whole number, the old or the new
 * one, and never none. A process on another processor does nothing but read. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "vgpu/files/static_files.h"
#include "vgpu/files/live.h"
#include "vgpu/node/params.h"
#include "vgpu/node/process.h"

#define ROUNDS     1000u
#define ROUNDS_MAX 300000u /* where there is one processor, the reader seldom has its turn */
#define PERIOD_NS  250000000u

/* Shared with the reader. */
struct seen {
	volatile uint32_t reads, missing, wrong;
};

static struct gp_vnode node;
static cpu_set_t processors; /* that we may use */
static char root[] = "/tmp/vgpu-test-XXXXXX";

/* A processor each, where there are two: the reader would long stay on its parent's. */
static void stay_on(uint32_t number)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	for (uint32_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &processors) && !number--)
			CPU_SET(i, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void read_one(struct seen *seen, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text));

	seen->reads++;
	seen->missing += fd < 0;
	/* Seven digits and the end of the line, whatever the number. */
	seen->wrong += fd >= 0 && (size != 8 || text[7] != '\n' || strspn(text, "0123456789") != 7);
	if (fd >= 0)
		close(fd);
}

static pid_t reader_start(struct seen *seen, const char *path)
{
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		stay_on(1);
		for (;;)
			read_one(seen, path);
	}
	return child;
}

static void check_while(const char *path, void (*change)(uint32_t number))
{
	struct seen *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	assert_true(seen != MAP_FAILED);
	change(1000000);
	child = reader_start(seen, path);
	assert_true(child > 0);
	for (uint32_t i = 0; i < ROUNDS || (seen->reads < ROUNDS && i < ROUNDS_MAX); i++)
		change(1000000u + i);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_true(seen->reads > 0);
	assert_int_equal(seen->missing, 0);
	assert_int_equal(seen->wrong, 0);
	munmap(seen, sizeof(*seen));
}

static void change_memory(uint32_t number)
{
	node.processes->devices[0].vram_used = number;
	node.now_ns += PERIOD_NS;
	gp_live_mark(&node);
	gp_live_turn(&node);
}

static void test_memory(void **state)
{
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/%d/vram_%u", node.proc_dir, getpid(), node.gpus[0].gpu_id);
	check_while(path, change_memory);
}

static void change_dilation(uint32_t number)
{
	node.dilation = number;
	gp_params_write_dilation(&node);
}

static void test_dilation(void **state)
{
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/vgpu_dilation", node.module_dir);
	check_while(path, change_dilation);
}

/* What is not the driver's is nowhere to be seen afterwards. */
static void test_nothing_else(void **state)
{
	char command[512];

	(void)state;
	snprintf(command, sizeof(command), "! find '%s' -name '.*' -o -name '*.new' | grep .", root);
	assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
	struct gp_vnode_config config = { .device = "mi300x", .gpu_count = 1, .gtt_size = 64u << 20, .verbose = -1 };
	struct gp_vproc *process;
	struct gp_error error;

	(void)state;
	if (!mkdtemp(root) || gp_vnode_init(&node, &config, &error) < 0 ||
	    gp_static_files_write(&node, root, &error) < 0)
		return -1;
	/* Of the others, this shows enough. */
	node.debug_dir[0] = 0;
	sched_getaffinity(0, sizeof(processors), &processors);
	stay_on(0);
	return gp_vproc_open(&node, getpid(), &process);
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	gp_vproc_close(node.processes);
	gp_vnode_fini(&node);
	snprintf(command, sizeof(command), "rm -r '%s'", root);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_dilation),
		cmocka_unit_test(test_nothing_else),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
