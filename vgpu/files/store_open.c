/* SPDX-License-Identifier: MIT */
/*
 * Opening what lies in the store. Links are followed here, not by the kernel: kept inside a folder, its own walk gives
 * EAGAIN at every ".." while anything on the host is renamed or mounted (openat2(2), RESOLVE_IN_ROOT), and the driver's
 * links are made of "..". A name without links and dots is never refused that way.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "vgpu/files/store.h"
#include "vgpu/files/vpath.h"

#define STORE_LINK_MAX 40u /* as the kernel has it (MAXSYMLINKS) */

/* A name on its way: done has neither links nor dots, rest is still to be walked. */
struct store_walk {
	char done[GP_VPATH_SIZE], rest[GP_VPATH_SIZE];
	size_t done_size;
	uint32_t link_count;
};

static bool store_walk_is_over(const struct store_walk *walk)
{
	return !walk->rest[strspn(walk->rest, "/")];
}

/* What is left may have no link at all; ELOOP: it has. */
static int store_walk_open(const struct gp_vgpu_store *store, const struct store_walk *walk, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	const char *rest = walk->rest + strspn(walk->rest, "/"), *slash = walk->done_size && *walk->rest ? "/" : "";
	char path[GP_VPATH_SIZE];
	int fd;

	if (strstr(rest, ".."))
		return -ELOOP;
	if (snprintf(path, sizeof(path), "%s%s%s", walk->done, slash, rest) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = (int)syscall(SYS_openat2, store->fd, *path ? path : ".", &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static void store_walk_up(struct store_walk *walk)
{
	while (walk->done_size && walk->done[walk->done_size - 1u] != '/')
		walk->done_size--;
	walk->done_size -= walk->done_size ? 1u : 0;
	walk->done[walk->done_size] = 0;
}

static void store_walk_root(struct store_walk *walk)
{
	walk->done_size = 0;
	walk->done[0] = '\0';
}

/* The last name of done is a link with this text: the text is walked before the rest. */
static int store_walk_link(struct store_walk *walk, const char *text, size_t size)
{
	size_t rest_size = strlen(walk->rest);

	if (++walk->link_count > STORE_LINK_MAX)
		return -ELOOP;
	if (size + 1u + rest_size >= sizeof(walk->rest))
		return -ENAMETOOLONG;
	memmove(walk->rest + size + (rest_size ? 1u : 0), walk->rest, rest_size + 1u);
	memcpy(walk->rest, text, size);
	if (rest_size)
		walk->rest[size] = '/';
	/* From the root of the store, which stands for the root. */
	if (*text == '/')
		store_walk_root(walk);
	else
		store_walk_up(walk);
	return 0;
}

/* Takes one name from rest; 1: a link was followed. A slash after it stays: one at the end asks for a folder. */
static int store_walk_step(const struct gp_vgpu_store *store, struct store_walk *walk, bool follow)
{
	char text[GP_VPATH_SIZE];
	const char *name = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(name, "/");
	bool is_up = length == 2u && !strncmp(name, "..", 2), is_here = length == 1u && *name == '.';
	ssize_t size;
	int r;

	if (is_up)
		store_walk_up(walk);
	if (!is_up && !is_here) {
		if (walk->done_size + length + 2u > sizeof(walk->done))
			return -ENAMETOOLONG;
		if (walk->done_size)
			walk->done[walk->done_size++] = '/';
		memcpy(walk->done + walk->done_size, name, length);
		walk->done_size += length;
		walk->done[walk->done_size] = 0;
	}
	memmove(walk->rest, name + length, strlen(name + length) + 1u);
	if (is_up || is_here || (!*walk->rest && !follow))
		return 0;
	size = readlinkat(store->fd, walk->done, text, sizeof(text) - 1u);
	/* No link, or not there: who opens it will say. */
	r = size <= 0 ? 0 : store_walk_link(walk, text, (size_t)size);
	return r < 0 ? r : size > 0;
}

/* Past the next link, and the dots that its text begins with, which cost nothing. */
static int store_walk_on(const struct gp_vgpu_store *store, struct store_walk *walk, bool follow)
{
	bool followed = false;

	while (!store_walk_is_over(walk) && (!followed || walk->rest[strspn(walk->rest, "/")] == '.')) {
		int r = store_walk_step(store, walk, follow);

		if (r < 0)
			return r;
		followed |= r > 0;
	}
	return 0;
}

int gp_store_open(const struct gp_vgpu_store *store, const char *path, uint64_t flags)
{
	static struct store_walk walk; /* large; vgpud has one thread */
	int r = 0;

	if (strlen(path) >= sizeof(walk.rest))
		return -ENAMETOOLONG;
	walk.link_count = 0;
	store_walk_root(&walk);
	memcpy(walk.rest, path, strlen(path) + 1u);
	while (r == 0) {
		int fd = store_walk_open(store, &walk, flags);

		if (fd != -ELOOP || store_walk_is_over(&walk))
			return fd;
		r = store_walk_on(store, &walk, !(flags & O_NOFOLLOW));
	}
	return r;
}
