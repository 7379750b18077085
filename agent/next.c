/* SPDX-License-Identifier: MIT */
/* The functions behind the interposed ones: the next library's, else the kernel's. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include "agent/next.h"
#include "agent/sys.h"

/* glibc 2.34 moved these into libc.so with new versions. The old versions are still there; in an older glibc they are
 * in libdl and libpthread, which every program with ROCr has loaded. Weak, because a program without them loads the
 * agent too. */
#if defined(__x86_64__)
#define NEXT_BASE_VERSION "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define NEXT_BASE_VERSION "GLIBC_2.17"
#endif
#ifdef NEXT_BASE_VERSION
__asm__(".symver dlsym, dlsym@" NEXT_BASE_VERSION);
__asm__(".symver pthread_create, pthread_create@" NEXT_BASE_VERSION);
__asm__(".symver pthread_attr_setstacksize, pthread_attr_setstacksize@" NEXT_BASE_VERSION);
#endif
/* NOLINTBEGIN(readability-redundant-declaration): the declarations make them weak */
extern __typeof__(dlsym) dlsym __attribute__((weak));
extern __typeof__(pthread_create) pthread_create __attribute__((weak));
extern __typeof__(pthread_attr_setstacksize) pthread_attr_setstacksize __attribute__((weak));
/* NOLINTEND(readability-redundant-declaration) */

#define NEXT_TRIES 1000u
#define NEXT_STACK (256u * 1024u) /* many times what the agent's deepest call and a signal handler need; chosen */

static int (*next_ioctl)(int, unsigned long, void *);
static int (*next_close)(int);
static int (*next_dup2)(int, int);
static int (*next_dup3)(int, int, int);
static int (*next_close_range)(unsigned, unsigned, int);
static void *(*next_mmap)(void *, size_t, int, int, int, long);
static int (*next_munmap)(void *, size_t);
static int (*next_mprotect)(void *, size_t, int);
static size_t (*next_least_stack)(const pthread_attr_t *);
static void *(*next_mremap)(void *, size_t, size_t, int, void *);

static void next_find(void *ret_pointer, const char *name)
{
	void *found = dlsym ? dlsym(RTLD_NEXT, name) : NULL;

	__atomic_store_n((void **)ret_pointer, found, __ATOMIC_RELEASE);
}

void gp_next_init(void)
{
	static bool done;

	if (__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		return;
	next_find(&next_ioctl, "ioctl");
	next_find(&next_close, "close");
	next_find(&next_dup2, "dup2");
	next_find(&next_dup3, "dup3");
	next_find(&next_close_range, "close_range");
	next_find(&next_mmap, "mmap");
	next_find(&next_munmap, "munmap");
	next_find(&next_mprotect, "mprotect");
	next_find(&next_mremap, "mremap");
	/* An internal function of glibc, which language runtimes call too: the stack also holds thread-local memory of
	 * any size. */
	next_find(&next_least_stack, "__pthread_get_minstack");
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
}

static int next_kernel(long r)
{
	if (r >= 0)
		return (int)r;
	errno = (int)-r;
	return -1;
}

#define NEXT(function) __atomic_load_n(&(function), __ATOMIC_ACQUIRE)

int gp_next_ioctl(int fd, unsigned long request, void *arg)
{
	return NEXT(next_ioctl) ? next_ioctl(fd, request, arg) :
				  next_kernel(gp_sys(SYS_ioctl, fd, (long)request, (long)arg));
}

int gp_next_close(int fd)
{
	return NEXT(next_close) ? next_close(fd) : next_kernel(gp_sys(SYS_close, fd));
}

int gp_next_dup3(int from, int to, int flags)
{
	return NEXT(next_dup3) ? next_dup3(from, to, flags) : next_kernel(gp_sys(SYS_dup3, from, to, flags));
}

int gp_next_dup2(int from, int to)
{
	if (NEXT(next_dup2))
		return next_dup2(from, to);
#ifdef SYS_dup2
	return next_kernel(gp_sys(SYS_dup2, from, to));
#else
	if (from == to)
		return next_kernel(gp_sys(SYS_fcntl, from, 1 /* F_GETFD */)) < 0 ? -1 : to;
	return gp_next_dup3(from, to, 0);
#endif
}

int gp_next_close_range(unsigned first, unsigned last, int flags)
{
#ifdef SYS_close_range
	if (!NEXT(next_close_range))
		return next_kernel(gp_sys(SYS_close_range, (long)first, (long)last, flags));
#endif
	if (NEXT(next_close_range))
		return next_close_range(first, last, flags);
	errno = ENOSYS;
	return -1;
}

static void *next_memory(long r)
{
	if (r >= 0 || r <= -4096)
		return (void *)r;
	errno = (int)-r;
	return (void *)-1;
}

void *gp_next_mmap(void *address, size_t length, int protection, int flags, int fd, long offset)
{
	return NEXT(next_mmap) ?
		       next_mmap(address, length, protection, flags, fd, offset) :
		       next_memory(gp_sys(SYS_mmap, (long)address, (long)length, protection, flags, fd, offset));
}

int gp_next_munmap(void *address, size_t length)
{
	return NEXT(next_munmap) ? next_munmap(address, length) :
				   next_kernel(gp_sys(SYS_munmap, (long)address, (long)length));
}

int gp_next_mprotect(void *address, size_t length, int protection)
{
	return NEXT(next_mprotect) ? next_mprotect(address, length, protection) :
				     next_kernel(gp_sys(SYS_mprotect, (long)address, (long)length, protection));
}

void *gp_next_mremap(void *address, size_t length, size_t new_length, int flags, void *to)
{
	return NEXT(next_mremap) ?
		       next_mremap(address, length, new_length, flags, to) :
		       next_memory(gp_sys(SYS_mremap, (long)address, (long)length, (long)new_length, flags, (long)to));
}

int gp_next_own_ioctl(int fd, unsigned long request, void *arg)
{
	int saved = errno, r = -EINTR;

	/* The agent's thread blocks all signals. An application's thread does not: a storm of signals must not keep it
	 * here for ever, hence the limit. */
	for (unsigned i = 0; i < NEXT_TRIES && (r == -EINTR || r == -EAGAIN); i++) {
		r = gp_next_ioctl(fd, request, arg);
		if (r < 0)
			r = -errno;
	}
	errno = saved;
	return r;
}

bool gp_next_start_thread(void *(*function)(void *))
{
	/* Signals 32 and 33 are glibc's: with 33 blocked, setuid() in the application would wait for this thread for
	 * ever. With SIGSYS blocked, a seccomp filter that passes a call of the agent to the application's handler
	 * would end the process. */
	uint64_t all = ~(3ull << 31 | 1ull << (SIGSYS - 1)), before = 0;
	int saved = errno, r = -1;
	pthread_attr_t attr;
	pthread_t thread;

	if (!pthread_create || pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* The default stack is as large as the limit of the first thread's stack, and mlockall() would lock all of it.
	 */
	if (pthread_attr_setstacksize && NEXT(next_least_stack))
		pthread_attr_setstacksize(&attr, next_least_stack(&attr) + NEXT_STACK);
	gp_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&before, sizeof(all));
	r = pthread_create(&thread, &attr, function, NULL);
	gp_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(before));
	pthread_attr_destroy(&attr);
	errno = saved;
	return r == 0;
}
