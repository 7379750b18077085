/* SPDX-License-Identifier: MIT */
/*
 * Finds the names of users for the status. A name may have to come from a directory server, which may be slow or
 * down, and the daemon never waits for one. Names in /etc/passwd are there at once: the daemon reads it when it has
 * changed, and not for each name, since one user may come with thousands of uids. A thread asks for the others, and
 * the status shows the number until the name has come.
 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/daemon.h"
#include "daemon/owner.h"
#include "daemon/subuid.h"
#include "lib/worker.h"

#define USER_MAX     256u           /* names that are kept */
#define USER_KEEP_NS 60000000000ull /* then the daemon looks a name up again */
#define USER_SIZE    64u
#define USER_LINE    4096u
#define USER_LOCAL   65536u /* lines of /etc/passwd that are kept; chosen */

struct user_name {
	bool used, asking; /* asking: the thread will answer */
	uid_t uid;
	uint64_t asked_ns;
	char name[USER_SIZE];
};

/* A line of /etc/passwd. */
struct user_local {
	uid_t uid;
	uint32_t place; /* of the lines of one uid the first counts */
	char name[USER_SIZE];
};

struct gp_users {
	struct gp_subuid_stamp stamp; /* of /etc/passwd when it was read */
	struct user_local *locals;    /* by uid */
	uint32_t local_count;
	struct gp_worker *worker;
	uint32_t question_count; /* not yet answered: USER_MAX at most, however many users come by */
	struct user_name names[USER_MAX];
};

/* A name that the thread asks the directory server for. */
struct user_question {
	struct gp_lane lane;
	uid_t uid;
	bool known;
	char name[USER_SIZE];
};

static bool user_ask(uid_t uid, char *name, size_t size)
{
	struct passwd entry, *found = NULL;
	char line[USER_LINE];

	if (getpwuid_r(uid, &entry, line, sizeof(line), &found) || !found)
		return false;
	snprintf(name, size, "%s", found->pw_name);
	return true;
}

bool (*gp_user_ask)(uid_t uid, char *name, size_t size) = user_ask;

static int user_compare(const void *a, const void *b)
{
	const struct user_local *first = a, *second = b;
	int r = (first->uid > second->uid) - (first->uid < second->uid);

	return r ? r : (first->place > second->place) - (first->place < second->place);
}

static void user_read_locals(struct gp_users *users)
{
	struct passwd entry, *found = NULL;
	char line[USER_LINE];
	uint32_t room = 0;
	FILE *stream = fopen(gp_subuid_passwd_path, "re");

	users->local_count = 0;
	while (stream && users->local_count < USER_LOCAL && !fgetpwent_r(stream, &entry, line, sizeof(line), &found)) {
		struct user_local *local;

		if (users->local_count == room) {
			room = room ? room * 2 : 64;
			local = realloc(users->locals, room * sizeof(*local));
			if (!local)
				break;
			users->locals = local;
		}
		local = &users->locals[users->local_count];
		*local = (struct user_local){ .uid = found->pw_uid, .place = users->local_count++ };
		snprintf(local->name, sizeof(local->name), "%s", found->pw_name);
	}
	if (stream)
		fclose(stream);
	if (users->local_count)
		qsort(users->locals, users->local_count, sizeof(*users->locals), user_compare);
}

static bool user_is_local(struct gp_users *users, uid_t uid, char *name, size_t size)
{
	uint32_t low = 0, high;

	if (gp_subuid_has_changed(gp_subuid_passwd_path, &users->stamp))
		user_read_locals(users);
	for (high = users->local_count; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		if (users->locals[middle].uid < uid)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == users->local_count || users->locals[low].uid != uid)
		return false;
	snprintf(name, size, "%s", users->locals[low].name);
	return true;
}

static struct user_name *user_find(struct gp_users *users, uid_t uid)
{
	for (uint32_t i = 0; i < USER_MAX; i++)
		if (users->names[i].used && users->names[i].uid == uid)
			return &users->names[i];
	return NULL;
}

static void user_run(void *context, struct gp_lane *lane, struct gp_worker_job *job)
{
	struct user_question *question = (struct user_question *)lane;

	(void)context, (void)job;
	question->known = gp_user_ask(question->uid, question->name, sizeof(question->name));
}

static void user_free(void *context, struct gp_lane *lane)
{
	(void)context;
	free(lane);
}

static struct gp_users *user_get(struct gp_daemon *daemon)
{
	static const struct gp_worker_config config = { .thread_min = 1,
							.thread_max = 1,
							.collects = true,
							.notify_fd = -1,
							.run = user_run,
							.idle = user_free };
	struct gp_users *users = daemon->users ? daemon->users : calloc(1, sizeof(*users));

	if (users && !users->worker)
		users->worker = gp_worker_create(&config);
	if (users && !users->worker) {
		free(users);
		users = NULL;
	}
	daemon->users = users;
	return users;
}

static void user_answers(struct gp_users *users)
{
	struct gp_lane *lane, *next;

	for (lane = gp_worker_collect(users->worker); lane; lane = next) {
		const struct user_question *question = (struct user_question *)lane;
		struct user_name *user = user_find(users, question->uid); /* another uid may have its place by now */

		next = lane->next;
		users->question_count--;
		if (user)
			user->asking = false;
		if (user && question->known)
			memcpy(user->name, question->name, sizeof(user->name));
		free(lane);
	}
}

static void user_question(struct gp_users *users, struct user_name *user)
{
	bool ask = !user->asking && users->question_count < USER_MAX;
	struct user_question *question = ask ? calloc(1, sizeof(*question)) : NULL;

	if (!question)
		return;
	user->asking = true;
	users->question_count++;
	question->uid = user->uid;
	gp_worker_give(users->worker, &question->lane, NULL);
}

/* The user's place, or that of the one asked for least recently. */
static struct user_name *user_place(struct gp_users *users, uid_t uid)
{
	struct user_name *user = user_find(users, uid), *oldest = &users->names[0];

	if (user)
		return user;
	for (uint32_t i = 1; i < USER_MAX && oldest->used; i++)
		if (!users->names[i].used || users->names[i].asked_ns < oldest->asked_ns)
			oldest = &users->names[i];
	*oldest = (struct user_name){ .used = true, .uid = uid };
	snprintf(oldest->name, sizeof(oldest->name), "%u", uid);
	return oldest;
}

const char *gp_user_name(struct gp_daemon *daemon, uid_t uid, char *buffer, size_t size)
{
	struct gp_users *users = user_get(daemon);
	uint64_t now_ns = gp_now_ns();
	struct user_name *user;

	snprintf(buffer, size, "%u", uid);
	if (!users)
		return buffer;
	user_answers(users);
	user = user_place(users, uid);
	if (!user->asked_ns || now_ns - user->asked_ns > USER_KEEP_NS) {
		user->asked_ns = now_ns;
		if (!user_is_local(users, uid, user->name, sizeof(user->name)))
			user_question(users, user);
	}
	snprintf(buffer, size, "%s", user->name);
	return buffer;
}

void gp_user_want(struct gp_daemon *daemon, uid_t uid)
{
	char name[USER_SIZE];

	gp_user_name(daemon, uid, name, sizeof(name));
}

void gp_user_fini(struct gp_daemon *daemon)
{
	if (daemon->users)
		gp_worker_stop(daemon->users->worker, 0);
	if (daemon->users)
		free(daemon->users->locals);
	free(daemon->users);
	daemon->users = NULL;
}
