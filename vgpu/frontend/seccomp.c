/* SPDX-License-Identifier: MIT */
/*
 * Front end seccomp. Each command's listener delivers its calls; a device file is opened by handing the caller a new
 * open file of the BAR, so that its mappings are the kernel's business; its ioctls are found again by that file
 * (seccomp_files.c). Whatever is read from a caller is read once, into a local, and used only if the caller still
 * waits. Nothing here protects the host from the command: a path that is not ours is left to the kernel, with the
 * command's own rights.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "vgpu/kfd/call.h"
#include "vgpu/node/process.h"
#include "vgpu/frontend/seccomp_internal.h"

#define SECCOMP_BATCH     64u /* notifications of one listener before the others get their turn */
#define SECCOMP_FILE_LINK "anon_inode:seccomp notify"

/* Newer than Debian 12's headers (Linux 6.6, include/uapi/linux/seccomp.h). */
#define SECCOMP_SET_FLAGS    _IOW(SECCOMP_IOC_MAGIC, 4, uint64_t)
#define SECCOMP_FLAG_SYNC_UP (1ull << 0)

static const struct gp_seccomp_ask *seccomp_current; /* the ioctl being decided; NULL: none */
static struct gp_seccomp *seccomp_only; /* for the answers that come later: there is one front end per process */

static int seccomp_fd(const struct gp_seccomp_ask *ask)
{
	return ask->seccomp->listeners[ask->listener].fd;
}

/* Interrupted, by being stopped and going on among other things, while it waited for a lock of the kernel's: nothing
 * was done, and a caller without its answer would wait for ever. */
static int seccomp_tell(const struct gp_seccomp_ask *ask, unsigned long request, void *argument)
{
	int r;

	do {
		r = ioctl(seccomp_fd(ask), request, argument);
	} while (r < 0 && errno == EINTR);
	return r;
}

static void seccomp_send(const struct gp_seccomp_ask *ask, struct seccomp_notif_resp *response)
{
	/* ENOENT: the caller was killed meanwhile. Anything else would be a wrong answer of ours. */
	if (seccomp_tell(ask, SECCOMP_IOCTL_NOTIF_SEND, response) < 0 && errno != ENOENT)
		gp_vnode_log(ask->seccomp->node, 0, "seccomp answer to %d: %s", ask->thread, strerror(errno));
}

void gp_seccomp_answer(const struct gp_seccomp_ask *ask, int64_t result)
{
	struct seccomp_notif_resp response = { .id = ask->id };

	if (result < 0)
		response.error = (int32_t)result;
	else
		response.val = result;
	seccomp_send(ask, &response);
}

void gp_seccomp_pass(const struct gp_seccomp_ask *ask)
{
	struct seccomp_notif_resp response = { .id = ask->id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	seccomp_send(ask, &response);
}

bool gp_seccomp_is_valid(const struct gp_seccomp_ask *ask)
{
	uint64_t id = ask->id;

	return !seccomp_tell(ask, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
}

/*
 * Given and answered in two steps: where vgpud is stopped, frozen or traced in the middle of the one that does both
 * (SECCOMP_ADDFD_FLAG_SEND, up to Linux 6.18), the caller gets 0, which is a descriptor of something else. The first
 * alone begins again by itself. Nothing comes between: after the receipt only death takes the caller away.
 */
int gp_seccomp_give(const struct gp_seccomp_ask *ask, int fd, bool close_on_exec)
{
	struct seccomp_notif_addfd add = { .id = ask->id,
					   .srcfd = (uint32_t)fd,
					   .newfd_flags = close_on_exec ? O_CLOEXEC : 0 };
	int r = seccomp_tell(ask, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	if (r < 0)
		return -errno;
	gp_seccomp_answer(ask, r);
	return r;
}

static int seccomp_copy_result(const struct gp_seccomp_ask *ask, ssize_t done, size_t size)
{
	struct gp_seccomp *seccomp = ask->seccomp;

	if (done == (ssize_t)size)
		return 0;
	if (done >= 0 || errno != EPERM)
		return -EFAULT;
	if (!seccomp->said_denied)
		gp_vnode_log(
			seccomp->node, 0,
			"the memory of process %d cannot be read (%s): it made itself undumpable, or it has left its "
			"`vgpu run` where Yama (kernel.yama.ptrace_scope) lets only ancestors read it",
			ask->thread, strerror(EPERM));
	seccomp->said_denied = true;
	return -EPERM;
}

int gp_seccomp_read(const struct gp_seccomp_ask *ask, uint64_t address, void *ret_data, size_t size)
{
	struct iovec local = { ret_data, size }, remote = { (void *)(uintptr_t)address, size };
	int fd = ask->seccomp->lending ? gp_seccomp_lent_fd(ask->seccomp, ask->thread) : -1;

	if (fd >= 0)
		return seccomp_copy_result(ask, pread(fd, ret_data, size, (off_t)address), size);
	return seccomp_copy_result(ask, process_vm_readv(ask->thread, &local, 1, &remote, 1, 0), size);
}

int gp_seccomp_write(const struct gp_seccomp_ask *ask, uint64_t address, const void *data, size_t size)
{
	struct iovec local = { (void *)(uintptr_t)data, size }, remote = { (void *)(uintptr_t)address, size };
	int fd = ask->seccomp->lending ? gp_seccomp_lent_fd(ask->seccomp, ask->thread) : -1;

	if (fd >= 0)
		return seccomp_copy_result(ask, pwrite(fd, data, size, (off_t)address), size);
	return seccomp_copy_result(ask, process_vm_writev(ask->thread, &local, 1, &remote, 1, 0), size);
}

/* Processes. */

int gp_seccomp_process(struct gp_seccomp *seccomp, pid_t thread, struct gp_vproc **ret_process)
{
	struct gp_vproc *process;
	char path[64];
	int r = gp_vproc_open(seccomp->node, gp_vproc_thread_group(thread), &process);

	if (r < 0)
		return r;
	if (process->memory >= 0 || gp_seccomp_is_sharing(process->pid)) {
		*ret_process = process;
		return 0;
	}
	if (seccomp->lending) {
		process->memory = fcntl(gp_seccomp_lent_fd(seccomp, thread), F_DUPFD_CLOEXEC, 0);
		process->lent = process->memory >= 0;
	} else {
		/* Of the thread that asks: the first one may have ended. */
		snprintf(path, sizeof(path), "/proc/%d/mem", thread);
		process->memory = open(path, O_RDONLY | O_CLOEXEC);
	}
	*ret_process = process;
	return 0;
}

void gp_seccomp_process_exit(struct gp_seccomp *seccomp, uint64_t serial)
{
	gp_seccomp_files_drop(&seccomp->files, serial);
}

/* An exec is told to nobody, but the descriptor of the memory stays that of the program before it, which then has none:
 * nothing can be read (0), where otherwise address 0 is an error. The new program has opened nothing yet. */
static void seccomp_notice_exec(struct gp_seccomp *seccomp, pid_t thread)
{
	struct gp_vproc *process = gp_vproc_find(seccomp->node, thread);
	uint64_t serial;
	char byte;

	if (!process || process->memory < 0 || pread(process->memory, &byte, 1, 0) != 0)
		return;
	serial = process->serial;
	gp_vproc_destroy(process);
	gp_seccomp_process_exit(seccomp, serial);
}

/* Ioctls. */

static void seccomp_finish(struct gp_seccomp *seccomp, struct gp_seccomp_pending *pending, const struct gp_vcall *call,
			   int result)
{
	struct gp_seccomp_ask ask = { .seccomp = seccomp,
				      .listener = pending->listener,
				      .id = pending->id,
				      .thread = pending->thread };

	if (seccomp->listeners[pending->listener].generation == pending->generation && gp_seccomp_is_valid(&ask)) {
		if (result >= 0 && _IOC_DIR(call->command) & _IOC_READ &&
		    gp_seccomp_write(&ask, pending->argument, call->arg, _IOC_SIZE(call->command)) < 0)
			result = -EFAULT;
		gp_seccomp_answer(&ask, result);
	}
	gp_seccomp_wait_end(pending);
	free(pending);
}

static void seccomp_complete(struct gp_vnode *node, struct gp_vcall *call, int result)
{
	struct gp_seccomp_pending **link = &seccomp_only->pending, *pending;

	(void)node;
	while (*link && (*link)->token != call->token)
		link = &(*link)->next;
	pending = *link;
	if (!pending)
		return;
	*link = pending->next;
	seccomp_finish(seccomp_only, pending, call, result);
}

/* No file of the table: is it none of ours? Not open is not that: it might be ours by the time the kernel looks. Nor is
 * the BAR itself, opened again through /proc, or closed by its owner long ago. */
static bool seccomp_is_foreign(const struct gp_seccomp_ask *ask, int fd)
{
	struct stat theirs, ours;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", ask->thread, fd);
	return !stat(path, &theirs) && !fstat(ask->seccomp->node->bar.fd, &ours) &&
	       (theirs.st_ino != ours.st_ino || theirs.st_dev != ours.st_dev);
}

/* Whose call it is: the opener's, whoever makes it (KFD then refuses others). A render node serves whoever holds it, so
 * there it is the caller's. */
static struct gp_vproc *seccomp_owner(const struct gp_seccomp_ask *ask, const struct gp_seccomp_file *file)
{
	struct gp_vproc *process = gp_vproc_find(ask->seccomp->node, file->pid);

	if (process && process->serial != file->serial)
		process = NULL;
	if (file->kind == GP_VFILE_KFD || (process && gp_vproc_has_thread(process, ask->thread)))
		return process;
	return gp_seccomp_process(ask->seccomp, ask->thread, &process) < 0 ? NULL : process;
}

static int seccomp_call_read(const struct gp_seccomp_ask *ask, struct gp_vcall *call)
{
	call->thread = ask->thread;
	call->command = (uint32_t)ask->args[1];
	if (_IOC_SIZE(call->command) > GP_VCALL_ARG_SIZE)
		return -EINVAL;
	if (!(_IOC_DIR(call->command) & _IOC_WRITE))
		return 0;
	call->arg_size = _IOC_SIZE(call->command);
	return gp_seccomp_read(ask, ask->args[2], call->arg, call->arg_size) < 0 ? -EFAULT : 0;
}

static int seccomp_install_fd(struct gp_vnode *node, struct gp_vcall *call, int fd)
{
	struct seccomp_notif_addfd add = { .srcfd = (uint32_t)fd };
	int r;

	(void)node;
	(void)call;
	if (!seccomp_current)
		return -EOPNOTSUPP;
	add.id = seccomp_current->id;
	r = seccomp_tell(seccomp_current, SECCOMP_IOCTL_NOTIF_ADDFD, &add);
	return r < 0 ? -errno : r;
}

/* Decides the call and answers it, or keeps what the answer will need. Both objects are gone or kept afterwards. */
static void seccomp_call(const struct gp_seccomp_ask *ask, enum gp_vfile kind, struct gp_vcall *call,
			 struct gp_seccomp_pending *pending)
{
	struct gp_seccomp *seccomp = ask->seccomp;
	int r;

	*pending = (struct gp_seccomp_pending){ .token = ++seccomp->token,
						.id = ask->id,
						.listener = ask->listener,
						.generation = seccomp->listeners[ask->listener].generation,
						.argument = ask->args[2],
						.thread = ask->thread,
						.status = -1 };
	call->token = pending->token;
	seccomp_current = ask;
	r = gp_vcall_ioctl(&call, kind);
	seccomp_current = NULL;
	if (!call) {
		pending->next = seccomp->pending;
		seccomp->pending = pending;
		gp_seccomp_wait_begin(seccomp, pending);
		return;
	}
	seccomp_finish(seccomp, pending, call, r);
	gp_vcall_free(call);
}

static void seccomp_ioctl(const struct gp_seccomp_ask *ask)
{
	struct gp_seccomp_file *file =
		gp_seccomp_files_find(&ask->seccomp->files, ask->thread, (int)(uint32_t)ask->args[0]);
	struct gp_seccomp_pending *pending;
	struct gp_vcall *call;
	int r;

	if (!file) {
		if (seccomp_is_foreign(ask, (int)(uint32_t)ask->args[0]))
			gp_seccomp_pass(ask);
		else
			gp_seccomp_answer(ask, -EBADF);
		return;
	}
	call = calloc(1, sizeof(*call));
	pending = malloc(sizeof(*pending));
	r = call && pending ? seccomp_call_read(ask, call) : -ENOMEM;
	if (r == 0) {
		call->process = seccomp_owner(ask, file);
		r = call->process ? 0 : -EBADF;
	}
	if (r == 0 && gp_seccomp_is_valid(ask)) {
		seccomp_call(ask, file->kind, call, pending);
		return;
	}
	if (r < 0)
		gp_seccomp_answer(ask, r);
	free(pending);
	free(call);
}

/* Listeners. */

static struct gp_seccomp_ask seccomp_ask(struct gp_seccomp *seccomp, uint32_t number,
					 const struct seccomp_notif *notification)
{
	return (struct gp_seccomp_ask){ .seccomp = seccomp,
					.listener = number,
					.id = notification->id,
					.thread = (pid_t)notification->pid,
					.nr = notification->data.nr,
					.args = notification->data.args };
}

void gp_seccomp_dispatch(struct gp_seccomp *seccomp, uint32_t number, const struct seccomp_notif *notification)
{
	struct gp_seccomp_ask ask = seccomp_ask(seccomp, number, notification);

	seccomp_notice_exec(seccomp, ask.thread);
	if (ask.nr == SYS_ioctl) {
		seccomp_ioctl(&ask);
		return;
	}
	for (size_t i = 0; i < gp_seccomp_call_count; i++)
		if (gp_seccomp_calls[i].nr == ask.nr) {
			gp_seccomp_path(&ask, &gp_seccomp_calls[i]);
			return;
		}
	gp_seccomp_pass(&ask);
}

static void seccomp_notification(struct gp_seccomp *seccomp, uint32_t number)
{
	struct gp_seccomp_ask ask = seccomp_ask(seccomp, number, seccomp->notification);

	/* A process outside our pid namespace has no number here. */
	if (!ask.thread)
		gp_seccomp_pass(&ask);
	else if (!seccomp->lending || gp_seccomp_lent_is_ready(&ask))
		gp_seccomp_dispatch(seccomp, number, seccomp->notification);
}

void gp_seccomp_serve(struct gp_seccomp *seccomp, uint32_t number)
{
	struct gp_seccomp_listener *listener = &seccomp->listeners[number];

	for (uint32_t i = 0; i < SECCOMP_BATCH && listener->fd >= 0; i++) {
		struct pollfd ready = { listener->fd, POLLIN, 0 };

		/* Receiving waits where there is nothing; after this it does not, though the caller may be gone. */
		if (poll(&ready, 1, 0) <= 0)
			return;
		if (!(ready.revents & POLLIN)) {
			/* The last process under this filter has ended. */
			close(listener->fd);
			*listener = (struct gp_seccomp_listener){ .fd = -1, .lender = -1 };
			seccomp->listener_count--;
			return;
		}
		memset(seccomp->notification, 0, seccomp->notification_size);
		if (!ioctl(listener->fd, SECCOMP_IOCTL_NOTIF_RECV, seccomp->notification))
			seccomp_notification(seccomp, number);
	}
}

int gp_seccomp_add(struct gp_seccomp *seccomp, int fd, int lender, uint32_t *ret_number)
{
	char path[64], link[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, link, sizeof(link) - 1u) < 0 || strcmp(link, SECCOMP_FILE_LINK) != 0)
		return -EINVAL;
	/* Where it is known: caller and vgpud take turns, and need not wake each other across processors. */
	ioctl(fd, SECCOMP_SET_FLAGS, SECCOMP_FLAG_SYNC_UP);
	for (uint32_t i = 0; i < GP_SECCOMP_LISTENER_MAX; i++)
		if (seccomp->listeners[i].fd < 0) {
			seccomp->listeners[i] = (struct gp_seccomp_listener){ fd, ++seccomp->generation, lender };
			seccomp->listener_count++;
			*ret_number = i;
			return 0;
		}
	return -ENFILE;
}

uint32_t gp_seccomp_command_count(const struct gp_seccomp *seccomp)
{
	return seccomp->listener_count;
}

int gp_seccomp_create(struct gp_vnode *node, struct gp_vgpu_store *store, struct gp_seccomp **ret_seccomp,
		      struct gp_error *error)
{
	struct seccomp_notif_sizes sizes;
	struct gp_seccomp *seccomp;
	int r = gp_seccomp_files_init(error);

	if (r < 0)
		return r;
	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return gp_error_set(error, -errno, "this kernel has no seccomp user notification: %s", strerror(errno));
	if (sizes.seccomp_notif_resp > sizeof(struct seccomp_notif_resp))
		return gp_error_set(error, -EPROTO, "this kernel's seccomp answers are larger than known here");
	seccomp = calloc(1, sizeof(*seccomp));
	if (!seccomp)
		return gp_error_set(error, -ENOMEM, "out of memory");
	seccomp->notification_size =
		sizes.seccomp_notif > sizeof(struct seccomp_notif) ? sizes.seccomp_notif : sizeof(struct seccomp_notif);
	seccomp->notification = malloc(seccomp->notification_size);
	if (!seccomp->notification) {
		free(seccomp);
		return gp_error_set(error, -ENOMEM, "out of memory");
	}
	seccomp->node = node;
	seccomp->store = store;
	seccomp->lending = gp_seccomp_lent_is_needed();
	for (uint32_t i = 0; i < GP_SECCOMP_LISTENER_MAX; i++)
		seccomp->listeners[i].fd = seccomp->listeners[i].lender = -1;
	for (uint32_t i = 0; i < GP_SECCOMP_LENT_MAX; i++)
		seccomp->lent[i].fd = -1;
	node->complete = seccomp_complete;
	node->install_fd = seccomp_install_fd;
	seccomp_only = seccomp;
	*ret_seccomp = seccomp;
	return 0;
}

void gp_seccomp_destroy(struct gp_seccomp *seccomp)
{
	while (seccomp->pending) {
		struct gp_seccomp_pending *pending = seccomp->pending;

		seccomp->pending = pending->next;
		gp_seccomp_wait_end(pending);
		free(pending);
	}
	/* Whoever still waits gets ENOSYS from the kernel. */
	for (uint32_t i = 0; i < GP_SECCOMP_LISTENER_MAX; i++)
		if (seccomp->listeners[i].fd >= 0)
			close(seccomp->listeners[i].fd);
	gp_seccomp_lent_fini(seccomp);
	gp_seccomp_files_fini(&seccomp->files);
	free(seccomp->notification);
	free(seccomp);
}
