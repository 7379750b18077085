/* SPDX-License-Identifier: MIT */
/*
 * Names of users, for the status. A name may have to come from a directory server, which may be slow or down: nobody
 * here waits for that. Names in /etc/passwd are there at once; others are asked for by a thread, and the number stands
 * for the name until it has come.
 */
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include "daemon/daemon.h"

#define USER_FILE    "/etc/passwd"
#define USER_MAX     256u           /* that are remembered */
#define USER_KEEP_NS 60000000000ull /* then it is looked up again */
#define USER_SIZE    64u
#define USER_LINE    4096u

struct user_name {
	bool used, wanted; /* wanted: the thread is to ask */
	uid_t uid;
	uint64_t asked_ns;
	char name[USER_SIZE];
};

struct gp_users {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct user_name names[USER_MAX]; /* lock, all of it */
	bool stopping;                    /* the daemon is gone: the thread frees this */
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

static bool user_is_local(uid_t uid, char *name, size_t size)
{
	struct passwd entry, *found = NULL;
	char line[USER_LINE];
	bool known = false;
	FILE *stream = fopen(USER_FILE, "re");

	while (stream && !known && !fgetpwent_r(stream, &entry, line, sizeof(line), &found)) {
		known = found->pw_uid == uid;
		if (known)
			snprintf(name, size, "%s", found->pw_name);
	}
	if (stream)
		fclose(stream);
	return known;
}

static struct user_name *user_find(struct gp_users *users, uid_t uid)
{
	for (uint32_t i = 0; i < USER_MAX; i++)
		if (users->names[i].used && users->names[i].uid == uid)
			return &users->names[i];
	return NULL;
}

static struct user_name *user_wanted(struct gp_users *users)
{
	for (uint32_t i = 0; i < USER_MAX; i++)
		if (users->names[i].used && users->names[i].wanted)
			return &users->names[i];
	return NULL;
}

static void *user_thread(void *context)
{
	struct gp_users *users = context;
	struct user_name *user;
	char name[USER_SIZE];
	uid_t uid;
	bool known;

	pthread_mutex_lock(&users->lock);
	while (!users->stopping) {
		user = user_wanted(users);
		if (!user) {
			pthread_cond_wait(&users->wake, &users->lock);
			continue;
		}
		uid = user->uid;
		user->wanted = false;
		pthread_mutex_unlock(&users->lock);
		known = gp_user_ask(uid, name, sizeof(name));
		pthread_mutex_lock(&users->lock);
		user = user_find(users, uid); /* its place may be another's by now */
		if (user && known)
			snprintf(user->name, sizeof(user->name), "%s", name);
	}
	pthread_mutex_unlock(&users->lock);
	pthread_cond_destroy(&users->wake);
	pthread_mutex_destroy(&users->lock);
	free(users);
	return NULL;
}

static struct gp_users *user_get(struct gp_daemon *daemon)
{
	struct gp_users *users = daemon->users;
	pthread_attr_t attr;
	pthread_t thread;

	if (users)
		return users;
	users = calloc(1, sizeof(*users));
	if (!users)
		return NULL;
	pthread_mutex_init(&users->lock, NULL);
	pthread_cond_init(&users->wake, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!pthread_create(&thread, &attr, user_thread, users))
		daemon->users = users;
	else
		free(users);
	pthread_attr_destroy(&attr);
	return daemon->users;
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
	pthread_mutex_lock(&users->lock);
	user = user_place(users, uid);
	if (!user->asked_ns || now_ns - user->asked_ns > USER_KEEP_NS) {
		user->asked_ns = now_ns;
		if (!user_is_local(uid, user->name, sizeof(user->name))) {
			user->wanted = true;
			pthread_cond_signal(&users->wake);
		}
	}
	snprintf(buffer, size, "%s", user->name);
	pthread_mutex_unlock(&users->lock);
	return buffer;
}

void gp_user_want(struct gp_daemon *daemon, uid_t uid)
{
	char name[USER_SIZE];

	gp_user_name(daemon, uid, name, sizeof(name));
}

void gp_user_fini(struct gp_daemon *daemon)
{
	if (!daemon->users)
		return;
	pthread_mutex_lock(&daemon->users->lock);
	daemon->users->stopping = true;
	pthread_cond_signal(&daemon->users->wake);
	pthread_mutex_unlock(&daemon->users->lock);
	daemon->users = NULL;
}
