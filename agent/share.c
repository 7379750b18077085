/* SPDX-License-Identifier: MIT */
/*
 * Keeps what this process shares with others: names of memory and events that it exported or imported, as the calls
 * to its drivers show. The agent keeps them so that a daemon that starts later learns them too; if there are many,
 * it forgets the oldest. The caller holds the lock.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include "agent/agent.h"
#include "agent/log.h"
#include "agent/sys.h"

#define SHARE_MAX       32u /* chosen: a program shares a few buffers, and one name is enough to find its peers */
#define SHARE_LOOKS_MAX 64u /* each look reads all mappings, a millisecond in a large program; chosen */
#define SHARE_OWNER_PID 1   /* F_OWNER_PID */

struct share_owner { /* struct f_owner_ex, which glibc shows to GNU sources alone */
	int32_t type, pid;
};

static struct share {
	uint32_t kind; /* 0: free */
	bool is_sent;  /* to the daemon of this connection */
	uint64_t key[2];
} share_list[SHARE_MAX];
static uint32_t share_next;  /* index of the next entry */
static uint32_t share_looks; /* how often the agent has read the process's mappings */

void gp_share_add(uint32_t kind, uint64_t key0, uint64_t key1)
{
	for (uint32_t i = 0; i < SHARE_MAX; i++)
		if (share_list[i].kind == kind && share_list[i].key[0] == key0 && share_list[i].key[1] == key1)
			return;
	share_list[share_next] = (struct share){ .kind = kind, .key = { key0, key1 } };
	share_next = (share_next + 1u) % SHARE_MAX;
	gp_log2("share: kind, key", kind, (long)key0);
}

void gp_share_add_file(int fd)
{
	struct stat status;

	/* The empty path means the file behind fd, whatever its kind. */
	if (gp_sys(SYS_newfstatat, fd, (long)"", (long)&status, 0x1000 /* AT_EMPTY_PATH */) == 0)
		gp_share_add(GP_SHARE_DMABUF, status.st_dev, status.st_ino);
}

static uint64_t share_number(const char **at, uint32_t base)
{
	uint64_t value = 0;

	for (;; (*at)++) {
		uint32_t digit = **at >= '0' && **at <= '9' ? (uint32_t)(**at - '0') :
				 **at >= 'a' && **at <= 'f' ? (uint32_t)(**at - 'a') + 10u :
							      16u;

		if (digit >= base)
			return value;
		value = value * base + digit;
	}
}

/* "START-END rw-s OFFSET MAJOR:MINOR INODE PATH". Returns whether the address is in it; then ret_key is its file.
 * ret_key[1] is 0 for memory that shows no sharing: private memory, and devices, which every program maps. */
static bool share_line(const char *at, uint64_t address, uint64_t ret_key[2])
{
	uint64_t begin = share_number(&at, 16), end;
	bool is_shared, is_device;

	if (*at++ != '-')
		return false;
	end = share_number(&at, 16);
	if (*at != ' ' || address < begin || address >= end)
		return false;
	is_shared = at[1] == 'r' && at[2] == 'w' && at[3] && at[4] == 's' && at[5] == ' ';
	ret_key[0] = ret_key[1] = 0;
	if (!is_shared)
		return true;
	at += 6;
	share_number(&at, 16);
	at += *at == ' ';
	ret_key[0] = share_number(&at, 16) << 32;
	at += *at == ':';
	ret_key[0] |= share_number(&at, 16);
	at += *at == ' ';
	ret_key[1] = share_number(&at, 10);
	while (*at == ' ')
		at++;
	is_device = !strncmp(at, "/dev/", 5) && strncmp(at, "/dev/shm/", 9) != 0 && strncmp(at, "/dev/zero", 9) != 0;
	if (is_device)
		ret_key[1] = 0;
	return true;
}

void gp_share_add_memory(uint64_t address)
{
	char lines[4096];
	uint64_t key[2] = { 0, 0 };
	uint32_t used = 0, size;
	bool found = false;
	long fd, count;

	if (share_looks++ >= SHARE_LOOKS_MAX)
		return;
	/* Not /proc/self: that is the process's first thread, which may have ended. */
	fd = gp_sys(SYS_openat, AT_FDCWD, (long)"/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (!found && (count = gp_sys(SYS_read, fd, (long)(lines + used), sizeof(lines) - 1u - used)) > 0) {
		char *line = lines, *end;

		size = used + (uint32_t)count;
		lines[size] = 0;
		for (; !found && (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			found = share_line(line, address, key);
		}
		used = (uint32_t)(lines + size - line);
		/* A path that fills the buffer: what is left of it is no line. */
		used = used >= sizeof(lines) / 2u ? 0 : used;
		memmove(lines, line, used);
	}
	gp_sys_close((int)fd);
	if (found && key[1])
		gp_share_add(GP_SHARE_MEMORY, key[0], key[1]);
}

/* A file's owner (F_SETOWN) is meant for signals; this file never sends any. The owner travels with the file to the
 * process that imports it. */
void gp_share_exported(int fd)
{
	struct share_owner owner = { SHARE_OWNER_PID, gp_agent.pid };

	if (gp_sys(SYS_fcntl, fd, F_SETOWN_EX, (long)&owner) == 0)
		gp_share_add(GP_SHARE_PROCESS, (uint64_t)gp_agent.pid, 0);
}

void gp_share_imported(int fd)
{
	struct share_owner owner = { 0, 0 };

	if (gp_sys(SYS_fcntl, fd, F_GETOWN_EX, (long)&owner) == 0 && owner.type == SHARE_OWNER_PID && owner.pid > 0)
		gp_share_add(GP_SHARE_PROCESS, (uint64_t)owner.pid, 0);
}

void gp_share_flush(void)
{
	if (gp_agent.version < 3u)
		return;
	for (uint32_t i = 0; i < SHARE_MAX && gp_agent.link == GP_LINK_UP && !gp_link_has_unsent(); i++) {
		struct gp_wire_share message = {
			.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_SHARE, sizeof(message), 0 },
			.kind = share_list[i].kind,
			.key = { share_list[i].key[0], share_list[i].key[1] },
		};

		if (!share_list[i].kind || share_list[i].is_sent)
			continue;
		share_list[i].is_sent = true;
		gp_link_send(&message, sizeof(message));
	}
}

void gp_share_unsent(void)
{
	for (uint32_t i = 0; i < SHARE_MAX; i++)
		share_list[i].is_sent = false;
}

void gp_share_forget(void)
{
	memset(share_list, 0, sizeof(share_list));
	share_next = share_looks = 0;
}
