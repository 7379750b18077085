/* SPDX-License-Identifier: MIT */
/*
 * hp: an urgent program. Requests arrive at times drawn from a seed; each is one kernel that fills the device for so
 * long, or a kernel list. A request that would arrive while --outstanding are under way is not made, and counted
 * (skipped): where requests take longer than the gaps between them the others are told as they were, without the queue
 * in front of them. It knows nothing of gpreempt, except that with --hint it announces requests.
 *
 *   hp --calibrate            rounds per microsecond, on an idle device
 *   hp --rate N --json FILE   [--us 200 | --list FILE] [--arrival jitter|poisson] [--seed 1]
 *
 *      --go FILE                 begins when there is such a file
 *      --pieces N                a request is so many kernels of --us, launched at once
 *      --launches ROUNDS         makes no requests: how many empty kernels it launches in a second, so often; with
 *      --turn FILE --turn-of K/N   in turn with N - 1 other such processes that have the same file, on --core C
 *      --forever 1               makes no requests: one kernel that waits for a word of the host's, until SIGTERM
 *
 * and of a phase, a stretch of requests, of which one process may have several:
 *   --phase NAME              what follows is about another one; it begins as the one before it
 *   --requests 1000           0: until SIGTERM
 *   --period-us 20000         between requests, on average
 *   --phase-seconds S         makes no further requests after so long
 *   --outstanding 1
 *   --hint US                 announces each request so long ahead (0: when it arrives)
 *   --hint-wrong P            with probability P announces one that does not come
 *   --hint-miss P             with probability P does not announce one that does
 *
 * A latency is from the arrival to when this process sees the completion. FILE: see write_phase(). Everything is
 * verified: the sum over all elements of all kernels. Ends with `exact` or `WRONG`, status 0 or 3.
 */
#include "common.cuh"
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define LATE_NS 20000 /* from the arrival to the call that launches: nothing but the host */

enum { PHASES = 32, OUTSTANDING = 256, REQUESTS_MAX = 1 << 20, WARM = 10 };
/* Before a phase: whoever watches may look at the others without being in the way of a request. */
static const uint64_t PAUSE_NS = 50000000;
static const uint64_t WARM_NS = 200000000; /* long kernels need no ten of them */

struct phase {
	const char *name;
	double period_us, hint_us, wrong, miss; /* hint_us < 0: no hints */
	uint32_t requests, outstanding;
	double seconds; /* 0: as long as it takes */
	/* found */
	uint64_t begin_ns, end_ns;
	uint64_t *due_ns, *latency_ns;
	uint64_t late_max_ns;   /* from a request's arrival to the call that launches it: the host's share */
	uint64_t launch_max_ns; /* the longest such call */
	uint32_t late;          /* that were launched later than LATE_NS */
	uint32_t done, skipped, hints, hints_wrong, hints_missed, hint_errors;
	int hint_error;
};

static volatile sig_atomic_t ended;
static struct sequence seq;
static bool is_poisson;
static uint64_t random_state;
static int (*hint)(const void *queue, uint64_t in_ns);

static void on_term(int number_)
{
	(void)number_;
	ended = 1;
}

/* splitmix64, 0 <= x < 1 */
static double random_unit(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static uint64_t gap_ns(double period_us)
{
	if (is_poisson) {
		const double gap = -__builtin_log(1 - random_unit()) * period_us * 1000;

		return (uint64_t)(gap < 1000 ? 1000 : gap);
	}
	return (uint64_t)(period_us * 1000 * (0.75 + 0.5 * random_unit()));
}

static void phase_hint(struct phase *phase, bool is_wrong)
{
	const int r = hint ? hint(NULL, (uint64_t)(phase->hint_us * 1000)) : -ENOSYS;

	phase->hints++;
	phase->hints_wrong += is_wrong;
	if (r) {
		phase->hint_errors++;
		phase->hint_error = r;
	}
}

/* When the next thing is due, besides completions. */
struct agenda {
	uint64_t arrival_ns, hint_ns, wrong_ns; /* UINT64_MAX: not */
};

static void agenda_next(struct phase *phase, struct agenda *agenda)
{
	const uint64_t before = agenda->arrival_ns, gap = gap_ns(phase->period_us);
	const double miss = random_unit(), wrong = random_unit();

	agenda->arrival_ns = before + gap;
	agenda->hint_ns = agenda->wrong_ns = UINT64_MAX;
	if (phase->hint_us < 0)
		return;
	if (miss < phase->miss)
		phase->hints_missed++;
	else
		agenda->hint_ns = agenda->arrival_ns - (uint64_t)(phase->hint_us * 1000);
	/* In the middle, so that nothing comes for a while after it. */
	if (wrong < phase->wrong)
		agenda->wrong_ns = before + gap / 2;
}

/* Spun, not slept: on a virtual machine a sleep of a few milliseconds was seen to end up to six too late, and that is
 * no time of the GPU's. */
static void idle_until(uint64_t moment)
{
	while (!ended && now_ns() < moment)
		;
}

static cudaEvent_t completions[OUTSTANDING];

static void phase_note(uint64_t *max_ns, uint64_t ns)
{
	*max_ns = ns > *max_ns ? ns : *max_ns;
}

static void phase_run(struct phase *phase)
{
	uint64_t due[OUTSTANDING], stop_ns = UINT64_MAX;
	uint32_t launched = 0, total = phase->requests ? phase->requests : REQUESTS_MAX;
	struct agenda agenda = { now_ns(), UINT64_MAX, UINT64_MAX };

	phase->due_ns = (uint64_t *)calloc(total, sizeof(uint64_t));
	phase->latency_ns = (uint64_t *)calloc(total, sizeof(uint64_t));
	phase->begin_ns = now_ns();
	if (phase->seconds > 0)
		stop_ns = phase->begin_ns + (uint64_t)(phase->seconds * 1e9);
	agenda_next(phase, &agenda);
	while (phase->done < launched || (launched < total && !ended && now_ns() < stop_ns)) {
		const uint64_t now = now_ns();
		const bool more = launched < total && !ended && now < stop_ns;

		if (more && now >= agenda.wrong_ns) {
			agenda.wrong_ns = UINT64_MAX;
			phase_hint(phase, true);
		}
		if (more && now >= agenda.hint_ns) {
			agenda.hint_ns = UINT64_MAX;
			phase_hint(phase, false);
		}
		if (more && now >= agenda.arrival_ns) {
			if (launched - phase->done < phase->outstanding) {
				const uint64_t call_ns = now_ns();

				phase->late += call_ns - agenda.arrival_ns > LATE_NS;
				phase_note(&phase->late_max_ns, call_ns - agenda.arrival_ns);
				sequence_launch(&seq, NULL, 0);
				CUDA(cudaEventRecord(completions[launched % OUTSTANDING], seq.stream));
				phase_note(&phase->launch_max_ns, now_ns() - call_ns);
				due[launched++ % OUTSTANDING] = agenda.arrival_ns;
			} else {
				phase->skipped++;
			}
			agenda_next(phase, &agenda);
		}
		if (phase->done < launched) {
			const cudaError_t state = cudaEventQuery(completions[phase->done % OUTSTANDING]);

			if (state != cudaSuccess && state != cudaErrorNotReady)
				fail("while running: %s", cudaGetErrorString(state));
			if (state == cudaSuccess) {
				phase->due_ns[phase->done] = due[phase->done % OUTSTANDING];
				phase->latency_ns[phase->done] = now_ns() - due[phase->done % OUTSTANDING];
				phase->done++;
			}
		} else if (more) {
			uint64_t next = agenda.arrival_ns;

			next = agenda.hint_ns < next ? agenda.hint_ns : next;
			idle_until(agenda.wrong_ns < next ? agenda.wrong_ns : next);
		}
	}
	phase->end_ns = now_ns();
}

static void warm_up(void)
{
	const uint64_t begin_ns = now_ns();

	for (int k = 0; k < OUTSTANDING; k++)
		CUDA(cudaEventCreateWithFlags(&completions[k], cudaEventDisableTiming));
	for (int k = 0; k < WARM && now_ns() - begin_ns < WARM_NS; k++) {
		sequence_launch(&seq, NULL, 0);
		CUDA(cudaEventRecord(completions[0], seq.stream));
		while (cudaEventQuery(completions[0]) == cudaErrorNotReady)
			;
	}
}

__global__ void wait_kernel(volatile uint32_t *word)
{
	while (!*word)
		;
}

static void run_forever(void)
{
	void *word, *word_gpu;

	if (posix_memalign(&word, 4096, 4096))
		fail("no memory");
	memset(word, 0, 4096);
	CUDA(cudaHostRegister(word, 4096, cudaHostRegisterMapped));
	CUDA(cudaHostGetDevicePointer(&word_gpu, word, 0));
	wait_kernel<<<1, 1, 0, seq.stream>>>((volatile uint32_t *)word_gpu);
	CUDA(cudaGetLastError());
	while (!ended)
		sleep_ns(1000000);
	*(volatile uint32_t *)word = 1;
	CUDA(cudaStreamSynchronize(seq.stream));
}

__global__ void empty_kernel(void)
{
}

/* The rate of one stretch of launches, in kernels a second: what the host can do, with the GPU keeping up. */
static double launch_rate(uint64_t ns)
{
	const uint64_t begin = now_ns();
	uint64_t count = 0, now;

	do {
		for (int k = 0; k < 256; k++)
			empty_kernel<<<1, 1, 0, seq.stream>>>();
		CUDA(cudaStreamSynchronize(seq.stream));
		count += 256;
		now = now_ns();
	} while (now - begin < ns);
	CUDA(cudaGetLastError());
	return (double)count * 1e9 / (double)(now - begin);
}

/* Only this thread, now that others have been made: on which core it runs changes its speed by a tenth. A core that is
 * not there is no error. */
static void stay_on(uint32_t core)
{
	cpu_set_t cores;

	CPU_ZERO(&cores);
	CPU_SET(core % CPU_SETSIZE, &cores);
	(void)sched_setaffinity(0, sizeof(cores), &cores);
}

/* A count that several processes share: whose turn it is. */
static void run_launches(const char *json, const char *turn_path, uint32_t of, uint32_t processes, uint32_t rounds)
{
	const uint64_t window_ns = 20000000, warm_ns = 5000000;
	const int fd = open(turn_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	uint32_t *turn;
	FILE *file;

	if (fd < 0 || ftruncate(fd, 4096))
		fail("%s: %s", turn_path, strerror(errno));
	turn = (uint32_t *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	file = fopen(json, "we");
	if (turn == MAP_FAILED || !file)
		fail("%s: %s", json, strerror(errno));
	fputs("[", file);
	for (uint32_t round = 0; round < rounds && !ended; round++) {
		while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != round * processes + of && !ended)
			sleep_ns(1000000);
		launch_rate(warm_ns); /* the context comes in */
		fprintf(file, "%s%.1f", round ? ", " : "", launch_rate(window_ns));
		__atomic_add_fetch(turn, 1, __ATOMIC_RELEASE);
	}
	fputs("]\n", file);
	if (fclose(file))
		fail("%s: %s", json, strerror(errno));
}

static void write_phase(FILE *file, const struct phase *phase)
{
	fprintf(file, "{\"name\": \"%s\", \"begin_ns\": %llu, \"end_ns\": %llu, \"skipped\": %u, ", phase->name,
		(unsigned long long)phase->begin_ns, (unsigned long long)phase->end_ns, phase->skipped);
	fprintf(file, "\"hints\": %u, \"hints_wrong\": %u, \"hints_missed\": %u, ", phase->hints, phase->hints_wrong,
		phase->hints_missed);
	fprintf(file, "\"late\": %u, \"late_max_ns\": %llu, \"launch_max_ns\": %llu, ", phase->late,
		(unsigned long long)phase->late_max_ns, (unsigned long long)phase->launch_max_ns);
	fprintf(file, "\"hint_errors\": %u, \"hint_error\": %d,\n\"due_ns\": [", phase->hint_errors, phase->hint_error);
	for (uint32_t i = 0; i < phase->done; i++)
		fprintf(file, "%s%llu", i ? "," : "", (unsigned long long)phase->due_ns[i]);
	fputs("],\n\"latency_ns\": [", file);
	for (uint32_t i = 0; i < phase->done; i++)
		fprintf(file, "%s%llu", i ? "," : "", (unsigned long long)phase->latency_ns[i]);
	fputs("]}", file);
}

static void write_json(const char *path, const struct phase *phases, uint32_t count, bool exact)
{
	FILE *file = fopen(path, "we");

	if (!file)
		fail("%s: %s", path, strerror(errno));
	fprintf(file, "{\"exact\": %s, \"nominal_us\": %.3f, \"phases\": [\n", exact ? "true" : "false", seq.us);
	for (uint32_t i = 0; i < count; i++) {
		write_phase(file, &phases[i]);
		fputs(i + 1 < count ? ",\n" : "\n", file);
	}
	fputs("]}\n", file);
	if (fclose(file))
		fail("%s: %s", path, strerror(errno));
}

static void find_hint(const char *library)
{
	void *handle = dlopen(library ? library : "libgpreempt.so.0", RTLD_NOW);

	if (!handle)
		fail("hints need libgpreempt: %s", dlerror());
	*(void **)&hint = dlsym(handle, "gpreempt_hint");
	if (!hint)
		fail("hints need libgpreempt: %s", dlerror());
}

struct options {
	double us, rate, seconds;
	const char *list, *json, *library, *go;
	uint64_t seed;
	bool calibrates, forever;
	uint32_t pieces, launches, turn_of, turns, core;
	const char *turn;
};

/* "2/3": the third of three. */
static void parse_turn(struct options *options, const char *value)
{
	if (sscanf(value, "%u/%u", &options->turn_of, &options->turns) != 2 || options->turns > 64 ||
	    options->turn_of >= options->turns)
		fail("--turn-of takes K/N, not %s", value);
}

/* An option of a phase; false: it is none. */
static bool parse_phase(struct phase *phase, const char *name, const char *value)
{
	if (!strcmp(name, "--period-us"))
		phase->period_us = number(name, value, 100, 1e7);
	else if (!strcmp(name, "--hint"))
		phase->hint_us = number(name, value, 0, 1e6);
	else if (!strcmp(name, "--hint-wrong"))
		phase->wrong = number(name, value, 0, 1);
	else if (!strcmp(name, "--hint-miss"))
		phase->miss = number(name, value, 0, 1);
	else if (!strcmp(name, "--requests"))
		phase->requests = (uint32_t)number(name, value, 0, REQUESTS_MAX);
	else if (!strcmp(name, "--outstanding"))
		phase->outstanding = (uint32_t)number(name, value, 1, OUTSTANDING);
	else if (!strcmp(name, "--phase-seconds"))
		phase->seconds = number(name, value, 0, 3600);
	else
		return false;
	return true;
}

static bool parse_other(struct options *options, const char *name, const char *value)
{
	if (!strcmp(name, "--us"))
		options->us = number(name, value, 1, 1e6);
	else if (!strcmp(name, "--rate"))
		options->rate = number(name, value, 0.001, 1e6);
	else if (!strcmp(name, "--seed"))
		options->seed = (uint64_t)number(name, value, 0, 1e15);
	else if (!strcmp(name, "--forever"))
		options->forever = number(name, value, 0, 1) != 0;
	else if (!strcmp(name, "--seconds"))
		options->seconds = number(name, value, 1, 3600);
	else if (!strcmp(name, "--pieces"))
		options->pieces = (uint32_t)number(name, value, 1, STEP_MAX);
	else if (!strcmp(name, "--launches"))
		options->launches = (uint32_t)number(name, value, 1, 10000);
	else if (!strcmp(name, "--core"))
		options->core = (uint32_t)number(name, value, 0, 4095);
	else if (!strcmp(name, "--turn") && value)
		options->turn = value;
	else if (!strcmp(name, "--turn-of") && value)
		parse_turn(options, value);
	else if (!strcmp(name, "--arrival") && value && (!strcmp(value, "jitter") || !strcmp(value, "poisson")))
		is_poisson = *value == 'p';
	else if (!strcmp(name, "--list") && value)
		options->list = value;
	else if (!strcmp(name, "--json") && value)
		options->json = value;
	else if (!strcmp(name, "--go") && value)
		options->go = value;
	else if (!strcmp(name, "--hint-lib") && value)
		options->library = value;
	else
		return false;
	return true;
}

static uint32_t parse(int argc, char **argv, struct options *options, struct phase *phases)
{
	uint32_t count = 1;
	bool is_named = false;

	phases[0] = (struct phase){ "main", 20000, -1, 0, 0, 1000, 1 };
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (!strcmp(name, "--calibrate")) {
			options->calibrates = true;
			continue;
		}
		i++;
		if (!strcmp(name, "--phase") && value && count < PHASES && !strpbrk(value, "\"\\\n")) {
			if (is_named) {
				phases[count] = phases[count - 1];
				count++;
			}
			is_named = true;
			phases[count - 1].name = value;
		} else if (!parse_phase(&phases[count - 1], name, value) && !parse_other(options, name, value)) {
			fail("hp does not know %s %s; the head of hp.cu lists its options", name, value ? value : "");
		}
	}
	return count;
}

int main(int argc, char **argv)
{
	struct options options = { 200, 0, 900, NULL, NULL, NULL, NULL, 1, false, false, 1, 0, 0, 1, UINT32_MAX, NULL };
	static struct phase phases[PHASES];
	uint32_t count, ran = 0;
	bool exact;

	setvbuf(stdout, NULL, _IOLBF, 0);
	count = parse(argc, argv, &options, phases);
	signal(SIGTERM, on_term);
	signal(SIGINT, on_term);
	alarm((unsigned)options.seconds);
	for (uint32_t i = 0; i < count && !hint; i++)
		if (phases[i].hint_us >= 0)
			find_hint(options.library);
	CUDA(cudaSetDevice(0));
	CUDA(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
	if (options.calibrates) {
		printf("{\"rate\": %.6f}\n", sequence_calibrate(options.us));
		return 0;
	}
	if (options.rate <= 0)
		fail("--rate is missing: see --calibrate");
	if (options.list)
		sequence_read(&seq, options.list);
	else
		sequence_pieces(&seq, options.us, options.pieces);
	sequence_prepare(&seq, options.rate);
	warm_up();
	if (hint) { /* the first one in a context takes milliseconds, says gpreempt.h */
		(void)hint(NULL, 0);
		sleep_ns(20000000);
	}
	puts("ready");
	while (options.go && access(options.go, F_OK) && !ended)
		sleep_ns(1000000);
	if (options.forever)
		run_forever();
	if (options.launches && !(options.turn && options.json))
		fail("--launches needs --turn FILE and --json FILE");
	if (options.launches) {
		if (options.core != UINT32_MAX)
			stay_on(options.core);
		run_launches(options.json, options.turn, options.turn_of, options.turns, options.launches);
		options.json = NULL;
		ended = 1;
	}
	for (; ran < count && !ended; ran++) {
		random_state = options.seed; /* so every phase sees the same arrivals */
		printf("phase %s\n", phases[ran].name);
		sleep_ns(PAUSE_NS);
		phase_run(&phases[ran]);
	}
	exact = sequence_exact(&seq);
	if (options.json)
		write_json(options.json, phases, ran, exact);
	printf("%s\n", exact ? "exact" : "WRONG");
	fflush(stdout);
	_exit(exact ? 0 : 3);
}
