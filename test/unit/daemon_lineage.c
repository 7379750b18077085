/* SPDX-License-Identifier: MIT */
/* What is granted to a process also holds for what it starts, and not for a stranger with the number of an ancestor. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/grant.h"
#include "test/unit/daemon_world.h"

static struct world world;

static int begin(void **state)
{
	(void)state;
	world_begin(&world, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end(&world);
	return 0;
}

static struct gp_lineage *lineage_of(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct gp_process_identity identity;

	assert_true(pidfd >= 0);
	assert_int_equal(gp_identity_read(0, pid, pidfd, 0, &identity), 0);
	close(pidfd);
	free(identity.cgroups);
	assert_non_null(identity.lineage);
	return identity.lineage;
}

static int32_t granted_to(const struct gp_lineage *lineage)
{
	struct gp_terms terms;

	gp_grant_of_process(&world.daemon, lineage, &terms);
	return terms.attr.valid & GP_ATTR_PRIORITY ? terms.attr.priority : -1;
}

static void grant_own(int32_t priority)
{
	struct gp_control_grant request = { .verb = GP_GRANT_ADD, .pid = getpid(), .ceiling = GP_GRANT_NO_CEILING };
	struct gp_grant_process process;
	struct gp_grant *grant;

	request.attr = (struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = priority };
	assert_int_equal(gp_grant_process_find(getpid(), 0, &process), 0);
	assert_int_equal(gp_grant_add(&world.daemon, &request, &process, &grant), 0);
	assert_int_equal(process.pidfd, -1);
}

static void test_descendants(void **state)
{
	struct gp_lineage *child_lineage, *own, *above;
	struct gp_terms terms;
	pid_t child;

	(void)state;
	grant_own(33);
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	child_lineage = lineage_of(child);
	own = lineage_of(getpid());
	above = lineage_of(getppid());
	assert_int_equal(child_lineage->pids[0], child);
	assert_int_equal(child_lineage->pids[1], getpid());
	assert_int_equal(child_lineage->count, own->count + 1);
	assert_int_equal(granted_to(child_lineage), 33);
	assert_int_equal(granted_to(above), -1);
	/* What is set is set for one. */
	assert_int_equal(gp_grant_keep_set(&world.daemon, getpid(), NULL,
					   &(struct gp_wire_attr){ .valid = GP_ATTR_PRIORITY, .priority = 1 }),
			 0);
	gp_grant_of_process(&world.daemon, own, &terms);
	assert_int_equal(terms.forced.valid, GP_ATTR_PRIORITY);
	gp_grant_of_process(&world.daemon, child_lineage, &terms);
	assert_int_equal(terms.forced.valid, 0);
	assert_int_equal(terms.attr.priority, 33);
	/* An ancestor cannot have been started later, and a process with that number is another one. */
	child_lineage->start = own->start - 1;
	assert_int_equal(granted_to(child_lineage), -1);
	own->start++;
	assert_int_equal(granted_to(own), -1);
	free(child_lineage);
	free(own);
	free(above);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* A process that has ended is not found, and nothing stays open. */
static void test_gone(void **state)
{
	struct gp_grant_process process = { .pidfd = -1 };
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(gp_grant_process_find(child, 0, &process), -ESRCH);
	assert_int_equal(process.pidfd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_descendants, begin, end),
		cmocka_unit_test_setup_teardown(test_gone, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
