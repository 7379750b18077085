/* SPDX-License-Identifier: MIT */
/*
 * Reads which ranges of uids belong to a user: /etc/subuid. Debian gives every user 65,536 uids, and a program of
 * that user can have any of them. The daemon looks names up in /etc/passwd alone, because a directory server may be
 * slow or down, and the daemon never waits for one. A name that is not there still stands for one user: the first of
 * its ranges represents that user.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/subuid.h"

#define SUBUID_NAME 256u /* bytes of a name, with its end */
#define SUBUID_LINE 4096u

const char *gp_subuid_path = "/etc/subuid", *gp_subuid_passwd_path = "/etc/passwd";

struct gp_subuid {
	const char *paths[2]; /* subuid, passwd */
	struct gp_subuid_stamp stamps[2];
	struct gp_subuid_range ranges[GP_SUBUID_MAX];
	uint32_t count;
};

/* One field of a line, up to the colon or the end; false: too long, or there is none. */
static bool subuid_field(const char **at, const char *end, char *field, size_t size)
{
	const char *stop = *at;

	if (*at > end)
		return false;
	while (stop < end && *stop != ':')
		stop++;
	if (stop == *at || (size_t)(stop - *at) >= size || memchr(*at, '\0', (size_t)(stop - *at)))
		return false;
	memcpy(field, *at, (size_t)(stop - *at));
	field[stop - *at] = '\0';
	*at = stop + 1;
	return true;
}

static bool subuid_number(const char *text, uint32_t *ret_number)
{
	unsigned long long number;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end || number > UINT32_MAX)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static bool subuid_line(const char *line, const char *end, char *name, struct gp_subuid_range *range)
{
	char first[16], count[16];

	return subuid_field(&line, end, name, SUBUID_NAME) && subuid_field(&line, end, first, sizeof(first)) &&
	       subuid_field(&line, end, count, sizeof(count)) && line > end && subuid_number(first, &range->first) &&
	       subuid_number(count, &range->count) && range->first >= GP_SUBUID_FIRST && range->count &&
	       range->count <= UINT32_MAX - range->first; /* (uid_t)-1 is no user */
}

/* A range and the name of its user, which points into the text of the file. */
struct subuid_named {
	const char *name;
	size_t name_size;
	uint32_t place; /* in the file */
};

static int subuid_compare(const void *a, const void *b)
{
	const struct subuid_named *first = a, *second = b;
	size_t size = first->name_size < second->name_size ? first->name_size : second->name_size;
	int r = memcmp(first->name, second->name, size);

	if (!r)
		r = (first->name_size > second->name_size) - (first->name_size < second->name_size);
	return r;
}

static int subuid_compare_places(const void *a, const void *b)
{
	const struct subuid_named *first = a, *second = b;
	int r = subuid_compare(a, b);

	return r ? r : (first->place > second->place) - (first->place < second->place);
}

/* Reads one line of passwd(5): every range of that name belongs to that uid. */
static void subuid_resolve(const char *line, const char *end, const struct subuid_named *names,
			   struct gp_subuid_range *ranges, uint32_t count)
{
	char name[SUBUID_NAME], password[SUBUID_LINE], number[16];
	struct subuid_named key = { .name = line };
	const struct subuid_named *found;
	uid_t uid;

	if (!subuid_field(&line, end, name, sizeof(name)))
		return;
	key.name_size = strlen(name);
	found = bsearch(&key, names, count, sizeof(key), subuid_compare);
	if (!found || !subuid_field(&line, end, password, sizeof(password)) ||
	    !subuid_field(&line, end, number, sizeof(number)) || !subuid_number(number, &uid) || !uid)
		return;
	while (found > names && !subuid_compare(found - 1, &key))
		found--;
	/* The first line of a name is the one that counts. */
	for (; found < names + count && !subuid_compare(found, &key) && !ranges[found->place].is_user; found++) {
		ranges[found->place].is_user = true;
		ranges[found->place].uid = uid;
	}
}

/* Finds the users of all ranges: by number, then by passwd(5). The first of its ranges represents a user who is in
 * neither. */
static void subuid_resolve_all(const char *passwd, size_t size, struct subuid_named *names,
			       struct gp_subuid_range *ranges, uint32_t count)
{
	const char *stop = passwd + size, *end;
	char name[SUBUID_NAME];

	qsort(names, count, sizeof(*names), subuid_compare_places);
	for (uint32_t i = 0; i < count; i++) {
		struct gp_subuid_range *range = &ranges[names[i].place];

		memcpy(name, names[i].name, names[i].name_size);
		name[names[i].name_size] = '\0';
		range->is_user = subuid_number(name, &range->uid) && range->uid;
		if (!range->is_user)
			range->uid = i && !subuid_compare(&names[i - 1], &names[i]) ? ranges[names[i - 1].place].uid :
										      range->first;
	}
	for (; count && passwd < stop; passwd = end + 1) {
		end = memchr(passwd, '\n', (size_t)(stop - passwd));
		end = end ? end : stop;
		subuid_resolve(passwd, end, names, ranges, count);
	}
}

uint32_t gp_subuid_parse(const char *subuid, size_t subuid_size, const char *passwd, size_t passwd_size,
			 struct gp_subuid_range *ranges, uint32_t max)
{
	struct subuid_named *names = calloc(max, sizeof(*names));
	const char *stop = subuid + subuid_size, *end;
	char name[SUBUID_NAME];
	uint32_t count = 0;

	for (; names && subuid < stop && count < max; subuid = end + 1) {
		end = memchr(subuid, '\n', (size_t)(stop - subuid));
		end = end ? end : stop;
		if (!subuid_line(subuid, end, name, &ranges[count]))
			continue;
		names[count] = (struct subuid_named){ subuid, strlen(name), count };
		count++;
	}
	if (count)
		subuid_resolve_all(passwd, passwd_size, names, ranges, count);
	free(names);
	return count;
}

/* The caller frees it; NULL: it cannot be read, and size is 0. */
static char *subuid_read_file(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text = fd >= 0 ? malloc(GP_SUBUID_SIZE_MAX) : NULL;
	size_t size = 0;
	ssize_t got = 1;

	while (text && got > 0 && size < GP_SUBUID_SIZE_MAX) {
		got = read(fd, text + size, GP_SUBUID_SIZE_MAX - size);
		size += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	*ret_size = size;
	return text;
}

static void subuid_read(struct gp_subuid *subuid)
{
	size_t subuid_size, passwd_size;
	char *text = subuid_read_file(subuid->paths[0], &subuid_size);
	char *passwd = subuid_read_file(subuid->paths[1], &passwd_size);

	subuid->count = 0;
	if (text)
		subuid->count = gp_subuid_parse(text, subuid_size, passwd ? passwd : "", passwd_size, subuid->ranges,
						GP_SUBUID_MAX);
	free(text);
	free(passwd);
}

bool gp_subuid_has_changed(const char *path, struct gp_subuid_stamp *stamp)
{
	struct gp_subuid_stamp now;
	struct stat st;

	memset(&now, 0, sizeof(now));
	if (!stat(path, &st) && S_ISREG(st.st_mode)) {
		now.device = st.st_dev;
		now.inode = st.st_ino;
		now.size = st.st_size;
		now.modified = st.st_mtim;
		now.changed = st.st_ctim;
	}
	if (!memcmp(&now, stamp, sizeof(now)))
		return false;
	*stamp = now;
	return true;
}

struct gp_subuid *gp_subuid_create(const char *subuid_path, const char *passwd_path)
{
	struct gp_subuid *subuid = calloc(1, sizeof(*subuid));

	if (!subuid)
		return NULL;
	subuid->paths[0] = subuid_path;
	subuid->paths[1] = passwd_path;
	return subuid;
}

void gp_subuid_destroy(struct gp_subuid *subuid)
{
	free(subuid);
}

const struct gp_subuid_range *gp_subuid_find(struct gp_subuid *subuid, uid_t uid)
{
	bool changed = gp_subuid_has_changed(subuid->paths[0], &subuid->stamps[0]);

	if (gp_subuid_has_changed(subuid->paths[1], &subuid->stamps[1]) || changed)
		subuid_read(subuid);
	for (uint32_t i = 0; i < subuid->count; i++)
		if (uid - subuid->ranges[i].first < subuid->ranges[i].count && uid >= subuid->ranges[i].first)
			return &subuid->ranges[i];
	return NULL;
}
