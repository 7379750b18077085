/* SPDX-License-Identifier: MIT */
/*
 * What a front end owes its clients: names, descriptors, threads, signals, exec; and that a client which means harm
 * harms only itself. Run inside `vgpu run`: vgpu-front VGPU [lent]. "vgpu-front executed FD OLD-ID" is what it runs
 * itself as, after an exec; "vgpu-front orphan FILE" waits for an event that never comes and writes how the wait ended
 * into FILE; "vgpu-front reads", "crowd" and "hoard" only read and open.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "test/e2e/vgpu_front.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"

int front_version(int fd)
{
	struct kfd_ioctl_get_version_args args = { 0, 0 };

	return ioctl(fd, AMDKFD_IOC_GET_VERSION, &args) < 0 ? -errno : args.major_version == 1 ? 0 : -EPROTO;
}

int front_opens(int folder, const char *path, int flags)
{
	int fd = openat(folder, path, flags);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

uint32_t front_entries(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	uint32_t count = 0;

	while (directory && (entry = readdir(directory)))
		count += *entry->d_name != '.';
	if (directory)
		closedir(directory);
	return count;
}

/* The driver's names, by every way a program asks for them. */
static void test_names(void)
{
	char link[256] = "", real[PATH_MAX] = "", here[PATH_MAX];
	int folder = open("/dev/dri", O_RDONLY | O_DIRECTORY | O_CLOEXEC), dev = open("/dev", O_PATH | O_CLOEXEC);
	struct stat status;
	struct statx extended;

	CLIENT_CHECK(getcwd(here, sizeof(here)));
	CLIENT_CHECK(!stat("/dev/kfd", &status) && !S_ISDIR(status.st_mode) && (status.st_mode & 0666u) == 0666u);
	CLIENT_CHECK(!lstat("/sys/class/kfd/kfd", &status) && S_ISLNK(status.st_mode));
	CLIENT_CHECK(!stat("/sys/class/kfd/kfd", &status) && S_ISDIR(status.st_mode));
	CLIENT_CHECK(!statx(AT_FDCWD, NODES "/1/gpu_id", 0, STATX_SIZE, &extended) && extended.stx_size > 1);
	CLIENT_CHECK(!access(NODES "/1/gpu_id", R_OK) && !access("/dev/kfd", R_OK | W_OK));
	CLIENT_CHECK(access(NODES "/1/nothing", F_OK) < 0 && errno == ENOENT);
	CLIENT_CHECK(readlink("/sys/class/kfd/kfd", link, sizeof(link) - 1u) > 0 && strstr(link, "virtual/kfd/kfd"));
	CLIENT_CHECK(readlink("/sys/class/kfd", link, sizeof(link) - 1u) < 0 && errno == EINVAL);
	CLIENT_CHECK(realpath(NODES, real) && !strcmp(real, "/sys/devices/virtual/kfd/kfd/topology/nodes"));
	CLIENT_CHECK(front_entries(NODES) == 2 && front_entries("/dev/dri") == 1);
	CLIENT_CHECK(front_opens(folder, "renderD128", O_RDWR) == 0 && front_opens(dev, "kfd", O_RDWR) == 0);
	CLIENT_CHECK(front_opens(AT_FDCWD, "/dev/./dri/..//kfd", O_RDWR) == 0);
	CLIENT_CHECK(front_opens(AT_FDCWD, "/dev/dri/renderD250", O_RDWR) == -ENOENT);
	CLIENT_CHECK(front_opens(AT_FDCWD, "/dev/kfd", O_RDWR | O_DIRECTORY) == -ENOTDIR);
	CLIENT_CHECK(front_opens(AT_FDCWD, "/dev/kfd", O_RDWR | O_CREAT | O_EXCL) == -EEXIST);
	CLIENT_CHECK(front_opens(AT_FDCWD, "/sys/module/amdgpu/parameters/queue_preemption_timeout_ms", O_WRONLY) == 0);
	/* To root, modes mean nothing. */
	if (geteuid() != 0) {
		CLIENT_CHECK(front_opens(AT_FDCWD, "/sys/module/amdgpu/parameters/num_kcq", O_WRONLY) == -EACCES);
		CLIENT_CHECK(front_opens(AT_FDCWD, NODES "/1/gpu_id", O_RDWR) == -EACCES);
		CLIENT_CHECK(front_opens(AT_FDCWD, NODES "/1/new", O_WRONLY | O_CREAT) == -EACCES);
		CLIENT_CHECK(access(NODES "/1/gpu_id", W_OK) < 0 && errno == EACCES);
	}
	CLIENT_CHECK(!chdir("/dev") && front_opens(AT_FDCWD, "kfd", O_RDWR) == 0 && !chdir(here));
#ifdef SYS_open
	CLIENT_CHECK(syscall(SYS_open, "/dev/kfd", O_RDWR | O_CLOEXEC) >= 0);
	CLIENT_CHECK(!syscall(SYS_access, "/dev/kfd", R_OK));
#endif
	CLIENT_CHECK(syscall(SYS_openat, AT_FDCWD, (char *)16, O_RDWR) < 0 && errno == EFAULT);
	close(folder);
	close(dev);
	client_result("names", true);
}

/* A path that ends with the last byte that is mapped is read, and no more than that. */
static void test_path_at_end(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *path = pages + 4096 - sizeof("/dev/kfd");

	munmap(pages + 4096, 4096);
	memcpy(path, "/dev/kfd", sizeof("/dev/kfd"));
	CLIENT_CHECK(front_opens(AT_FDCWD, path, O_RDWR) == 0);
	memset(path, '/', sizeof("/dev/kfd"));
	CLIENT_CHECK(front_opens(AT_FDCWD, path, O_RDWR) == -EFAULT);
	munmap(pages, 4096);
	client_result("a path at the end of memory", true);
}

static int child_status(pid_t child)
{
	int status = -1;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int received(int socket)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static void sent(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {
		.header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(fd)) }
	};
	char byte = 0;
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	CLIENT_CHECK(sendmsg(socket, &message, 0) == 1);
}

/* A descriptor is a number; what counts is the open file, and who opened it. */
static void test_descriptors(struct client *client)
{
	char name[32] = "";
	struct {
		int major, minor, patch;
		size_t name_size;
		char *name;
		size_t date_size;
		char *date;
		size_t text_size;
		char *text;
	} drm = { .name_size = sizeof(name) - 1u, .name = name };
	int copy = dup(client->kfd), other, sockets[2], r;
	pid_t child;

	CLIENT_CHECK(fcntl(client->kfd, F_GETFD) == FD_CLOEXEC);
	other = open("/dev/kfd", O_RDWR);
	CLIENT_CHECK(other >= 0 && fcntl(other, F_GETFD) == 0);
	close(other);
	CLIENT_CHECK(front_version(copy) == 0);
	other = fcntl(copy, F_DUPFD_CLOEXEC, 700);
	CLIENT_CHECK(other >= 700 && front_version(other) == 0);
	close(copy);
	CLIENT_CHECK(front_version(copy) == -EBADF && front_version(other) == 0);
	/* The number is now another file's. */
	CLIENT_CHECK(dup2(client->render, other) == other && front_version(other) == -ENOTTY);
	close(other);
	CLIENT_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	child = fork();
	if (child == 0) {
		other = received(sockets[1]);
		r = front_version(other) == -EBADF && front_version(client->kfd) == -EBADF ? 0 : 1;
		/* Its own is its own; a render node serves whoever holds it. */
		copy = open("/dev/kfd", O_RDWR | O_CLOEXEC);
		r |= front_version(copy) == 0 ? 0 : 2;
		r |= ioctl(client->render, _IOWR('d', 0, drm), &drm) == 0 && !strcmp(name, "amdgpu") ? 0 : 4;
		_exit(r);
	}
	sent(sockets[0], client->kfd);
	r = child_status(child);
	if (r)
		printf("# the child saw 0x%x\n", (unsigned int)r);
	CLIENT_CHECK(r == 0 && front_version(client->kfd) == 0 && !*name);
	close(sockets[0]);
	close(sockets[1]);
	client_result("descriptors", true);
}

uint32_t front_event_make(const struct client *client)
{
	struct kfd_ioctl_create_event_args args = { .event_type = KFD_IOC_EVENT_SIGNAL };

	return client_ioctl(client, AMDKFD_IOC_CREATE_EVENT, &args) < 0 ? 0 : args.event_id;
}

int front_event_end(const struct client *client, uint32_t id)
{
	struct kfd_ioctl_destroy_event_args args = { id, 0 };

	return client_ioctl(client, AMDKFD_IOC_DESTROY_EVENT, &args);
}

/* What the program before an exec had is gone; its descriptors, where they are kept, are nobody's. */
static int executed(int fd, uint32_t id)
{
	struct client client;
	char path[128];
	int r = 0;

	/* With an answer beyond the argument itself: it must arrive in this program's memory. */
	client_open(&client);
	/* FUSE knows an open file by its process, which is the same as before. */
	r |= fd < 0 || front_version(fd) == -EBADF ? 0 : 2;
	r |= fd < 0 ? !front_event_make(&client) : front_event_make(&client) == id ? 0 : 4;
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/queues", getpid());
	r |= fd < 0 || (front_entries(path) == 0 && !access(path, F_OK)) ? 0 : 8;
	return r;
}

static void test_exec(bool seccomp)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct client client;
		struct client_queue queue;
		char fd[16], id[16];

		client_open(&client);
		client_queue_create(&client, &queue, 64);
		snprintf(id, sizeof(id), "%u", front_event_make(&client));
		front_event_make(&client);
		fcntl(client.kfd, F_SETFD, 0);
		snprintf(fd, sizeof(fd), "%d", seccomp ? client.kfd : -1);
		execl("/proc/self/exe", "vgpu-front", "executed", fd, id, NULL);
		_exit(99);
	}
	status = child_status(child);
	if (status)
		printf("# after the exec: 0x%x\n", (unsigned int)status);
	CLIENT_CHECK(status == 0);
	client_result("exec", true);
}

/* A child that still uses its parent's memory opens files, and then becomes another program. */
static void test_spawn(void)
{
	char name[] = "vgpu-front", role[] = "executed", fd[] = "-1", id[] = "0";
	char *const arguments[] = { name, role, fd, id, NULL };
	posix_spawn_file_actions_t actions;
	pid_t child = -1;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 50, "/sys/class/kfd/kfd/topology/generation_id", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 51, "/dev/kfd", O_RDWR, 0);
	for (uint32_t i = 0; i < 5u; i++) {
		CLIENT_CHECK(posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ) == 0);
		CLIENT_CHECK(child_status(child) == 0);
	}
	posix_spawn_file_actions_destroy(&actions);
	client_result("spawn", true);
}

static volatile sig_atomic_t signal_count;

static void on_signal(int number)
{
	(void)number;
	signal_count++;
}

static int event_wait(const struct client *client, uint32_t id, uint32_t timeout_ms)
{
	struct kfd_event_data data = { .event_id = id };
	struct kfd_ioctl_wait_events_args args = { .events_ptr = (uintptr_t)&data,
						   .num_events = 1,
						   .timeout = timeout_ms };

	return ioctl(client->kfd, AMDKFD_IOC_WAIT_EVENTS, &args) < 0 ? -errno : (int)args.wait_result;
}

/* A signal ends a wait. It may end any other call before vgpud has seen it, but never makes one happen twice. */
static void test_signals(struct client *client)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct itimerval timer = { { 0, 30000 }, { 0, 30000 } }, none = { { 0, 0 }, { 0, 0 } };
	uint32_t id, first, again;

	sigaction(SIGALRM, &action, NULL);
	id = front_event_make(client);
	/* Again and again: the first may come before the wait. */
	setitimer(ITIMER_REAL, &timer, NULL);
	CLIENT_CHECK(event_wait(client, id, 30000) == -EINTR && signal_count >= 1);
	setitimer(ITIMER_REAL, &none, NULL);
	CLIENT_CHECK(event_wait(client, id, 2) == KFD_IOC_WAIT_RESULT_TIMEOUT);
	timer = (struct itimerval){ { 0, 200 }, { 0, 200 } };
	signal_count = 0;
	setitimer(ITIMER_REAL, &timer, NULL);
	first = front_event_make(client);
	for (uint32_t i = 0; i < FRONT_ROUNDS || (signal_count <= 10 && i < 1000u * FRONT_ROUNDS); i++) {
		CLIENT_CHECK(front_event_end(client, first) == 0);
		again = front_event_make(client);
		CLIENT_CHECK(again == first);
	}
	setitimer(ITIMER_REAL, &none, NULL);
	CLIENT_CHECK(signal_count > 10);
	CLIENT_CHECK(front_event_end(client, first) == 0 && front_event_end(client, id) == 0);
	client_result("signals", true);
}

struct tracing {
	struct client *client;
	uint32_t id;
	pid_t tracer;
	int status;
};

/* When the tracer has done, the wait may end. */
static void *let_go(void *data)
{
	struct tracing *tracing = data;
	struct kfd_ioctl_set_event_args set = { tracing->id, 0 };

	tracing->status = child_status(tracing->tracer);
	CLIENT_CHECK(client_ioctl(tracing->client, AMDKFD_IOC_SET_EVENT, &set) == 0);
	return NULL;
}

static int trace(pid_t target)
{
	int status = 0;

	alarm(300);
	/* Long enough that it waits, and has been looked at; if not, the test only shows less. */
	client_sleep_ms(50);
	if (ptrace(PTRACE_SEIZE, target, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, target, NULL, NULL) < 0)
		return 1;
	if (waitpid(target, &status, __WALL) != target || !WIFSTOPPED(status))
		return 2;
	return ptrace(PTRACE_DETACH, target, NULL, NULL) < 0 ? 3 : 0;
}

/* Who waits for the device can still be stopped by a tracer, and goes on waiting afterwards. */
static void test_tracer(struct client *client)
{
	struct tracing tracing = { client, front_event_make(client), 0, -1 };
	pid_t target = getpid();
	pthread_t thread;
	int r;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	tracing.tracer = fork();
	if (tracing.tracer == 0)
		_exit(trace(target));
	CLIENT_CHECK(pthread_create(&thread, NULL, let_go, &tracing) == 0);
	do
		r = event_wait(client, tracing.id, UINT32_MAX);
	while (r == -EINTR);
	pthread_join(thread, NULL);
	CLIENT_CHECK(r == KFD_IOC_WAIT_RESULT_COMPLETE && tracing.status == 0);
	CLIENT_CHECK(front_event_end(client, tracing.id) == 0);
	client_result("a tracer", true);
}

/* What the driver shows of its processes. */
static void test_proc(struct client *client)
{
	struct client_queue queue;
	char path[128];

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/queues", getpid());
	CLIENT_CHECK(!access(path, F_OK) && front_entries(path) == 0);
	client_queue_create(client, &queue, 64);
	CLIENT_CHECK(front_entries(path) == 1);
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/queues/%u/type", getpid(), queue.id);
	CLIENT_CHECK(front_opens(AT_FDCWD, path, O_RDONLY) == 0);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	CLIENT_CHECK(front_opens(AT_FDCWD, path, O_RDONLY) == -ENOENT);
	client_result("processes in sysfs", true);
}

static int orphan(const char *path)
{
	struct client client;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), r;
	uint32_t id;

	client_open(&client);
	id = front_event_make(&client);
	setsid();
	dprintf(fd, "waiting\n");
	do
		r = event_wait(&client, id, UINT32_MAX);
	while (r == -EINTR);
	dprintf(fd, "ended %d\n", -r);
	return 0;
}

/* Another user: asks the node of that name something and prints the answer, or takes the name until somebody
 * tells it something. */
static int stranger(const char *name, const char *command)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1u +
			    (size_t)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1u, "vgpu/%s", name));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char text[4096] = "";
	ssize_t got;

	alarm(300);
	if (!strcmp(command, "listen")) {
		if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 1) < 0)
			return 1;
		printf("listening\n");
		fflush(stdout);
		/* Others may come by: somebody's `vgpu ls` tries every name. */
		for (int caller; (caller = accept(fd, NULL, NULL)) >= 0; close(caller))
			if (recv(caller, text, sizeof(text) - 1u, 0) > 0)
				return 1;
		return 1;
	}
	if (connect(fd, (struct sockaddr *)&address, size) < 0)
		return 1;
	/* It may have hung up already, which is said first; the answer is there all the same. */
	(void)!send(fd, command, strlen(command), MSG_NOSIGNAL);
	got = recv(fd, text, sizeof(text) - 1u, 0);
	if (got <= 0)
		got = recv(fd, text, sizeof(text) - 1u, 0);
	if (got <= 0)
		return 1;
	printf("%s", text);
	return 0;
}

/* Runs a command that may not read the memory of other processes, as on a host that restricts it. */
static int denied(char **command)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return 1;
	execv(command[0], command);
	return 1;
}

int main(int argc, char **argv)
{
	struct client client;
	struct stat status;
	bool seccomp;

	if (argc == 4 && !strcmp(argv[1], "executed"))
		return executed(atoi(argv[2]), (uint32_t)atoi(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "orphan"))
		return orphan(argv[2]);
	if (argc > 2 && !strcmp(argv[1], "denied"))
		return denied(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "undumpable")) {
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		return front_opens(AT_FDCWD, "/dev/null", O_RDWR) == 0 &&
				       front_opens(AT_FDCWD, "/dev/kfd", O_RDWR) < 0 ?
			       0 :
			       1;
	}
	if (argc == 2 && !strcmp(argv[1], "reads"))
		return front_tree_reads();
	if (argc == 2 && !strcmp(argv[1], "crowd"))
		return front_tree_crowd();
	if (argc == 2 && !strcmp(argv[1], "hoard"))
		return front_hoard();
	if (argc == 4 && !strcmp(argv[1], "stranger"))
		return stranger(argv[2], argv[3]);
	/* With FUSE the device file is a link into the mount. */
	seccomp = !lstat("/dev/kfd", &status) && !S_ISLNK(status.st_mode);
	test_names();
	test_path_at_end();
	client_open(&client);
	test_descriptors(&client);
	test_exec(seccomp);
	test_spawn();
	test_proc(&client);
	test_signals(&client);
	test_tracer(&client);
	front_test_threads(&client);
	front_test_tree();
	front_test_many(argc > 1 ? argv[1] : "vgpu");
	front_test_path_race();
	front_test_fd_race(&client);
	front_test_bad_memory(&client, argc > 2 && !strcmp(argv[2], "lent"));
	return client_done();
}
