/* SPDX-License-Identifier: MIT */
/*
 * pair: two batch processes that belong together: neither can go on without the other. They know nothing of gpreempt.
 *
 *   pair --mode ipc --role 0 --shared FILE --progress FILE     and, beside it,    pair --mode ipc --role 1 --shared
 * FILE pair --mode wait --progress FILE                           (starts the second process itself)
 *
 * ipc: a buffer and two events of CUDA IPC; in each round the one computes on the buffer, records its event, the other
 * waits for that event on the GPU, computes, records; the first process sees the end of a round before it begins the
 * next. Two programs that were started apart.
 * wait: a kernel of each round waits, on the GPU, for a word that the other process's kernel writes.
 *
 * Until SIGTERM. The first process notes (CLOCK_MONOTONIC ns, rounds) in the progress file, computes every round again
 * on the CPU, and ends with `exact` or `WRONG`, status 0 or 3.
 */
#include "common.cuh"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { ELEMENTS = 256, WORK = 16, AHEAD = 2 };
static const uint64_t STUCK_NS = 20000000000ull;

/* In memory of both processes. Counts of rounds: 0 is none. */
struct shared {
	volatile uint64_t recorded[2], done[2]; /* by the host of each role */
	volatile uint64_t last;                 /* the last round there will be; 0: not known yet */
	volatile uint32_t is_open[2], has_failed;
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t events[2];
};
struct words { /* written by kernels */
	volatile unsigned long long round[2], value[2];
	volatile unsigned long long timeouts;
};

static volatile sig_atomic_t ended;
static uint64_t ended_at_ns;
static struct shared *shared;
static int progress_fd = -1;

static void on_term(int number_)
{
	(void)number_;
	ended = 1;
}

/* The work of a role in a round. */
__host__ __device__ static inline uint32_t pair_work(uint32_t x, uint32_t round, uint32_t role)
{
	return step_work(x ^ (round * 2u + role) * 0x9e3779b1u, WORK);
}

__global__ void __launch_bounds__(ELEMENTS) pair_kernel(uint32_t *buffer, uint32_t round, uint32_t role)
{
	buffer[threadIdx.x] = pair_work(buffer[threadIdx.x], round, role);
}

/* Waits for what the other one wrote (of this round, or for the first role of the one before), and answers. */
__global__ void relay_kernel(struct words *words, uint32_t round, uint32_t role, unsigned long long limit_ns)
{
	unsigned long long begin, now;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
	while (words->round[1 - role] < round - (1 - role)) {
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
		if (now - begin > limit_ns) {
			words->timeouts = 1;
			return;
		}
	}
	__threadfence_system();
	words->value[role] = pair_work((uint32_t)words->value[1 - role], round, role);
	__threadfence_system();
	words->round[role] = round;
}

static void pair_fail(const char *what)
{
	shared->has_failed = 1;
	fail("%s", what);
}

/* Both are told to end at about the same time: one that waits longer than this waits for a process that is gone. */
static void check_partner(uint64_t since_ns)
{
	const uint64_t now = now_ns();

	if (shared->has_failed)
		fail("the other process failed");
	if (ended && !ended_at_ns)
		ended_at_ns = now;
	if (ended_at_ns && now - ended_at_ns > STUCK_NS && now - since_ns > STUCK_NS)
		pair_fail("stuck: the other process did not go on within 20 s");
}

/* Spins for a little, then sleeps between looks. */
static void idle(uint64_t since_ns)
{
	if (now_ns() - since_ns < 50000)
		return;
	sleep_ns(20000);
	check_partner(since_ns);
}

static void wait_count(const volatile uint64_t *count, uint64_t wanted)
{
	const uint64_t begin = now_ns();

	while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < wanted)
		idle(begin);
}

static void wait_event(cudaEvent_t event)
{
	const uint64_t begin = now_ns();

	for (;;) {
		const cudaError_t state = cudaEventQuery(event);

		if (state == cudaSuccess)
			return;
		if (state != cudaErrorNotReady)
			pair_fail(cudaGetErrorString(state));
		idle(begin);
	}
}

static void note(uint64_t rounds)
{
	uint64_t record[2] = { now_ns(), rounds };

	if (progress_fd >= 0 && write(progress_fd, record, sizeof(record)) != sizeof(record))
		pair_fail("the progress file cannot be written");
}

static int verdict(uint64_t rounds, uint32_t wrong)
{
	printf("{\"rounds\": %llu, \"wrong\": %u}\n%s\n", (unsigned long long)rounds, wrong, wrong ? "WRONG" : "exact");
	fflush(stdout);
	return wrong ? 3 : 0;
}

static void signal_ready(uint32_t role)
{
	__atomic_store_n(&shared->is_open[role], 1, __ATOMIC_RELEASE);
}

static void wait_ready(uint32_t role)
{
	const uint64_t begin = now_ns();

	while (!__atomic_load_n(&shared->is_open[role], __ATOMIC_ACQUIRE)) {
		idle(begin);
		if (ended && now_ns() - begin > STUCK_NS)
			pair_fail("the other process never came");
	}
}

static int ipc_first(void)
{
	cudaEvent_t mine, theirs;
	cudaStream_t stream;
	uint32_t *buffer, found[ELEMENTS], wrong = 0;
	uint64_t round = 0;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaMalloc(&buffer, sizeof(found)));
	CUDA(cudaMemsetAsync(buffer, 0, sizeof(found), stream));
	CUDA(cudaStreamSynchronize(stream));
	CUDA(cudaIpcGetMemHandle(&shared->memory, buffer));
	CUDA(cudaEventCreateWithFlags(&mine, cudaEventDisableTiming | cudaEventInterprocess));
	CUDA(cudaIpcGetEventHandle(&shared->events[0], mine));
	signal_ready(0);
	puts("ready"); /* it has its context, and a first piece of work has run */
	wait_ready(1);
	CUDA(cudaIpcOpenEventHandle(&theirs, shared->events[1]));
	while (!ended) {
		round++;
		pair_kernel<<<1, ELEMENTS, 0, stream>>>(buffer, (uint32_t)round, 0);
		CUDA(cudaGetLastError());
		CUDA(cudaEventRecord(mine, stream));
		__atomic_store_n(&shared->recorded[0], round, __ATOMIC_RELEASE);
		wait_count(&shared->recorded[1], round);
		wait_event(theirs);
		note(round);
	}
	__atomic_store_n(&shared->last, round + 1, __ATOMIC_RELEASE); /* so that 0 is none */
	wait_count(&shared->done[1], 1);
	CUDA(cudaMemcpyAsync(found, buffer, sizeof(found), cudaMemcpyDeviceToHost, stream));
	CUDA(cudaStreamSynchronize(stream));
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		uint32_t x = 0;

		for (uint32_t r = 1; r <= round; r++)
			x = pair_work(pair_work(x, r, 0), r, 1);
		wrong += x != found[i];
	}
	return verdict(round, wrong);
}

static int ipc_second(void)
{
	cudaEvent_t mine, theirs;
	cudaStream_t stream;
	void *buffer;

	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CUDA(cudaEventCreateWithFlags(&mine, cudaEventDisableTiming | cudaEventInterprocess));
	wait_ready(0);
	CUDA(cudaIpcOpenMemHandle(&buffer, shared->memory, cudaIpcMemLazyEnablePeerAccess));
	CUDA(cudaIpcOpenEventHandle(&theirs, shared->events[0]));
	CUDA(cudaIpcGetEventHandle(&shared->events[1], mine));
	puts("ready");
	signal_ready(1);
	for (uint64_t round = 1;; round++) {
		const uint64_t begin = now_ns();

		while (__atomic_load_n(&shared->recorded[0], __ATOMIC_ACQUIRE) < round) {
			if (__atomic_load_n(&shared->last, __ATOMIC_ACQUIRE) == round) {
				CUDA(cudaStreamSynchronize(stream));
				__atomic_store_n(&shared->done[1], 1, __ATOMIC_RELEASE);
				return verdict(round - 1, 0);
			}
			idle(begin);
		}
		CUDA(cudaStreamWaitEvent(stream, theirs, 0));
		pair_kernel<<<1, ELEMENTS, 0, stream>>>((uint32_t *)buffer, (uint32_t)round, 1);
		CUDA(cudaGetLastError());
		CUDA(cudaEventRecord(mine, stream));
		__atomic_store_n(&shared->recorded[1], round, __ATOMIC_RELEASE);
	}
}

/* One role of the relay. The first decides when it is over; the second does as many rounds. */
static uint64_t relay(struct words *words, uint32_t role)
{
	cudaEvent_t events[AHEAD];
	cudaStream_t stream;
	void *words_gpu;
	uint64_t round = 0, last = UINT64_MAX;

	CUDA(cudaHostRegister(words, 4096, cudaHostRegisterMapped));
	CUDA(cudaHostGetDevicePointer(&words_gpu, words, 0));
	CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int k = 0; k < AHEAD; k++)
		CUDA(cudaEventCreateWithFlags(&events[k], cudaEventDisableTiming));
	CUDA(cudaStreamSynchronize(stream));
	signal_ready(role);
	wait_ready(1 - role);
	if (role == 0)
		puts("ready");
	while (round < last) {
		if (role == 0 && ended) {
			last = round;
			__atomic_store_n(&shared->last, last + 1, __ATOMIC_RELEASE);
			break;
		}
		if (role == 1) {
			/* Not beyond what the first has launched: it may have launched its last. */
			const uint64_t begin = now_ns();

			while (__atomic_load_n(&shared->recorded[0], __ATOMIC_ACQUIRE) <= round && last == UINT64_MAX) {
				const uint64_t told = __atomic_load_n(&shared->last, __ATOMIC_ACQUIRE);

				last = told ? told - 1 : last;
				idle(begin);
			}
			if (round >= last)
				break;
		}
		round++;
		relay_kernel<<<1, 1, 0, stream>>>((struct words *)words_gpu, (uint32_t)round, role, STUCK_NS);
		CUDA(cudaGetLastError());
		CUDA(cudaEventRecord(events[round % AHEAD], stream));
		__atomic_store_n(&shared->recorded[role], round, __ATOMIC_RELEASE);
		if (round >= AHEAD) {
			wait_event(events[(round + 1) % AHEAD]);
			if (role == 0)
				note(round - 1);
		}
	}
	CUDA(cudaStreamSynchronize(stream));
	return round;
}

static int wait_main(struct words *words)
{
	const pid_t parent = getpid();
	const pid_t child = fork(); /* before either has a context */
	uint32_t wrong, value = 0;
	uint64_t rounds;
	int status = 0;

	if (child < 0)
		fail("fork: %s", strerror(errno));
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(2);
		CUDA(cudaSetDevice(0));
		relay(words, 1);
		_exit(0);
	}
	CUDA(cudaSetDevice(0));
	rounds = relay(words, 0);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	for (uint32_t r = 1; r <= rounds; r++)
		value = pair_work(pair_work(value, r, 0), r, 1);
	wrong = status != 0 || words->timeouts || words->round[0] != rounds || words->round[1] != rounds ||
		(uint32_t)words->value[1] != value;
	return verdict(rounds, wrong);
}

static void *map_shared(const char *path, size_t size)
{
	const int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
	void *memory;

	if (path && (fd < 0 || ftruncate(fd, (off_t)size)))
		fail("%s: %s", path, strerror(errno));
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | (path ? 0 : MAP_ANONYMOUS), fd, 0);
	if (memory == MAP_FAILED)
		fail("mmap: %s", strerror(errno));
	return memory;
}

int main(int argc, char **argv)
{
	const char *mode = "", *path = NULL, *progress = NULL;
	double seconds = 900;
	uint32_t role = 0;
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(name, "--role"))
			role = (uint32_t)number(name, value, 0, 1);
		else if (!strcmp(name, "--seconds"))
			seconds = number(name, value, 1, 3600);
		else if (!strcmp(name, "--mode") && value)
			mode = value;
		else if (!strcmp(name, "--shared") && value)
			path = value;
		else if (!strcmp(name, "--progress") && value)
			progress = value;
		else
			fail("usage: pair --mode ipc --role 0|1 --shared FILE | --mode wait; --progress FILE --seconds N");
	}
	if (strcmp(mode, "wait") && (strcmp(mode, "ipc") || !path))
		fail("--mode is ipc, with --shared FILE, or wait");
	signal(SIGTERM, on_term);
	signal(SIGINT, on_term);
	alarm((unsigned)seconds);
	shared = (struct shared *)map_shared(mode[0] == 'i' ? path : NULL, 8192);
	progress_fd = progress ? open(progress, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	if (progress && progress_fd < 0)
		fail("%s: %s", progress, strerror(errno));
	if (mode[0] == 'w') {
		status = wait_main((struct words *)((char *)shared + 4096));
	} else {
		CUDA(cudaSetDevice(0));
		status = role ? ipc_second() : ipc_first();
	}
	_exit(status);
}
