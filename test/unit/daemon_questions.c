/* SPDX-License-Identifier: MIT */
/* What is read of processes is read by threads: one user's that take long keep no other waiting, nor the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/question.h"
#include "lib/aside.h"
#include "test/unit/daemon_world.h"

static struct world world;
static struct agent agent;
static sem_t began, may_end;
static uint32_t taken, opens_of_daemon, opens_of_threads;

/* Counts what the kernel reads under the lock of a process's memory. */
int open(const char *path, int flags, ...)
{
	size_t size = strlen(path);
	mode_t mode;
	va_list more;

	va_start(more, flags);
	mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	if (!strncmp(path, "/proc/", 6) && (!strcmp(path + size - 7, "environ") || !strcmp(path + size - 7, "cmdline")))
		__atomic_add_fetch(getpid() == gettid() ? &opens_of_daemon : &opens_of_threads, 1, __ATOMIC_SEQ_CST);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void answer_late(struct gp_question *question)
{
	(void)question;
	sem_post(&began);
	sem_wait(&may_end);
}

static void answer_now(struct gp_question *question)
{
	(void)question;
	sem_post(&began);
}

static void take(struct gp_daemon *daemon, struct gp_question *question)
{
	(void)daemon, (void)question;
	taken++;
}

static bool ask(struct gp_daemon *daemon, struct gp_owner *owner, void (*answer)(struct gp_question *))
{
	struct gp_question *question = calloc(1, sizeof(*question));

	assert_non_null(question);
	question->answer = answer;
	question->take = take;
	return gp_question_ask(daemon, question, owner);
}

static void take_until(struct gp_daemon *daemon, uint32_t count)
{
	while (taken < count) {
		usleep(1000);
		gp_questions_take(daemon);
	}
}

/* A user whose processes take long to read has one thread, so three are left for the others. */
static void test_one_thread_for_a_user(void **state)
{
	struct gp_owner slow = { .id = 1, .references = 1 }, other = { .id = 2, .references = 1 };
	struct gp_daemon daemon = { .inbox.fd = -1 };

	(void)state;
	taken = 0;
	for (int i = 0; i < 5; i++)
		assert_true(ask(&daemon, &slow, answer_late));
	sem_wait(&began);
	for (int i = 0; i < 100; i++)
		assert_true(ask(&daemon, &other, answer_now));
	take_until(&daemon, 100);
	assert_int_equal(slow.question_count, 5);
	assert_int_equal(other.question_count, 0);
	assert_int_equal(other.references, 1);
	for (int i = 0; i < 100; i++)
		sem_wait(&began);
	assert_int_equal(sem_trywait(&began), -1); /* no second one of the slow user's has begun */
	for (int i = 0; i < 5; i++)
		sem_post(&may_end);
	take_until(&daemon, 105);
	assert_int_equal(slow.references, 1);
	gp_questions_fini(&daemon);
	for (int i = 0; i < 4; i++)
		sem_wait(&began);
}

/* Clients that come and go leave their questions behind: so many and no more. */
static void test_open_questions_are_bounded(void **state)
{
	struct gp_owner owner = { .id = 1, .references = 1 }, other = { .id = 2, .references = 1 };
	struct gp_daemon daemon = { .inbox.fd = -1 };
	uint32_t count = 0;

	(void)state;
	taken = 0;
	while (count < 5000 && ask(&daemon, &owner, answer_late))
		count++;
	assert_int_equal(count, 1024);
	assert_true(ask(&daemon, &other, answer_now));
	take_until(&daemon, 1);
	for (uint32_t i = 0; i < count; i++)
		sem_post(&may_end);
	take_until(&daemon, count + 1);
	assert_int_equal(owner.references, 1);
	assert_int_equal(daemon.questions.open_count, 0);
	gp_questions_fini(&daemon);
}

static void take_long(struct gp_daemon *daemon, struct gp_question *question)
{
	take(daemon, question);
	assert_int_equal(question->lane.about, taken); /* in the order of the answers */
	gp_portion_use(daemon, 100);
}

/* Answers that have come at once are taken in portions, as all work that can wait, and count as their user's. */
static void test_answers_are_taken_in_portions(void **state)
{
	struct gp_owner owner = { .id = 1, .references = 1 };
	struct gp_daemon daemon = { .inbox.fd = -1 };
	struct gp_worker_use use;

	(void)state;
	taken = 0;
	for (uint32_t i = 1; i <= 20; i++) {
		struct gp_question *question = calloc(1, sizeof(*question));

		assert_non_null(question);
		question->answer = answer_now;
		question->take = take_long;
		question->lane.about = i;
		assert_true(gp_question_ask(&daemon, question, &owner));
	}
	do {
		usleep(1000);
		use = gp_worker_use(daemon.questions.worker, NULL);
	} while (use.waiting || use.running);
	for (int i = 0; i < 20; i++)
		sem_wait(&began);
	gp_questions_take(&daemon);
	assert_in_range(taken, 1, 3);
	assert_true(gp_daemon_has_work(&daemon));
	assert_int_equal(owner.spent_ns, gp_now_ns());
	while (taken < 10)
		gp_questions_take(&daemon);
	gp_questions_fini(&daemon); /* those that it has not taken go, too */
}

/* The thread that decides reads neither the environment nor the command line of a client. */
static void test_daemon_reads_no_memory(void **state)
{
	(void)state;
	opens_of_daemon = opens_of_threads = 0;
	world_begin_one(&world, &agent, NULL, 50);
	assert_true(*world.daemon.clients[0]->origin);
	agent_leave(&world, &agent);
	world_end(&world);
	assert_int_equal(opens_of_daemon, 0);
	assert_true(opens_of_threads);
}

/* With so many open questions a user gets no answer, and learns why. */
static void test_no_room_for_a_summary(void **state)
{
	struct gp_control_request request = world_request(GP_CONTROL_SUMMARY);
	struct gp_owner *owner;
	char *text;
	int r;

	(void)state;
	world_begin_one(&world, &agent, NULL, 50);
	while (world.daemon.questions.open_count)
		world_wait(&world, 1);
	request.pid = getpid();
	owner = world.daemon.clients[0]->owner;
	owner->question_count += 1024;
	text = world_ask(&world, &request, &r);
	assert_int_equal(r, -EAGAIN);
	assert_non_null(strstr(text, "many of your processes"));
	free(text);
	owner->question_count -= 1024;
	text = world_ask(&world, &request, &r);
	assert_int_equal(r, 0);
	free(text);
	agent_leave(&world, &agent);
	world_end(&world);
}

/* If the files of the processes do not open, the user learns that, and is not told that there are none. The last test:
 * helpers have ended for this process afterwards. */
static void test_no_look_for_a_summary(void **state)
{
	struct gp_control_request request = world_request(GP_CONTROL_SUMMARY);
	static _Alignas(8) char buffer[GP_WIRE_SIZE_MAX];
	const struct gp_control_answer *answer = (void *)buffer;
	int fd;

	(void)state;
	world_begin(&world, NULL);
	fd = world_connect(&world);
	world_step(&world); /* its process is identified */
	assert_int_equal(gp_aside_start(), 0);
	gp_aside_stop();
	request.pid = getpid();
	world_send(fd, &request, sizeof(request));
	for (size_t got = 0; !got; got = world_receive(fd, buffer, sizeof(buffer)))
		world_wait(&world, 1);
	assert_int_equal(answer->result, -EAGAIN);
	close(fd);
	world_step(&world);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_thread_for_a_user),         cmocka_unit_test(test_open_questions_are_bounded),
		cmocka_unit_test(test_answers_are_taken_in_portions), cmocka_unit_test(test_daemon_reads_no_memory),
		cmocka_unit_test(test_no_room_for_a_summary),         cmocka_unit_test(test_no_look_for_a_summary),
	};

	sem_init(&began, 0, 0);
	sem_init(&may_end, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
