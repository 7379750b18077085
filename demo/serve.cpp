/* SPDX-License-Identifier: MIT */
/*
 * An inference service: requests arrive at random moments drawn from a seed (Poisson), whether or not earlier ones are done;
 * each copies its input to the device, runs a few kernels one after the other, and copies the output back. Latency is from the
 * moment a request was due to the moment its output is there, so that one that could not even start counts with its waiting.
 *
 * The state y += a x goes on from request to request and every output is compared with the host's: a workgroup that ran twice or
 * not at all shows in this and in each later request. The factors are powers of two: see train.cpp.
 *
 * Built with SERVE_HINT it is the one program here that does know of gpreempt: it says some time ahead that a request is coming.
 */
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>
#include "program.h"
#ifdef SERVE_HINT
#include <gpreempt/gpreempt.h>
#endif

#define FLIGHT_MAX 64u /* requests under way; more wait on the host */

struct options {
	double rate = 10, seconds = 10, seed = 1, think = 0, hint = 0;
	unsigned requests = 0, kernels = 4, warm = 3;
	bool closed = false;
	const char *json = nullptr;
};

/* Half as many registers would do; 128 make it as large as the trainer's, so that each fills the device. */
extern "C" __global__ void __launch_bounds__(256) serve_layer(float *y, const float *x, float a, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	asm volatile("s_nop 2" ::: "v127");
	if (i < n)
		y[i] += a * x[i];
}

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static void usage()
{
	std::puts("usage: serve [--rate PER-S] [--seconds S | --requests N] [--seed N] [--kernels K] [--closed THINK-S] [--json FILE]\n"
		  "Poisson arrivals, or with --closed each request THINK-S after the last one's end; SIGTERM: no more requests.\n"
		  "Exit status: 0, 1 an error, 2 wrong usage, 3 a result is not exact.");
}

static options parse(int argc, char **argv)
{
	options o;

	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];

		if (!std::strcmp(name, "--help")) {
			usage();
			std::exit(0);
		}
		if (!std::strcmp(name, "--rate"))
			o.rate = program_number(name, value);
		else if (!std::strcmp(name, "--seconds"))
			o.seconds = program_number(name, value);
		else if (!std::strcmp(name, "--requests"))
			o.requests = (unsigned)program_number(name, value);
		else if (!std::strcmp(name, "--seed"))
			o.seed = program_number(name, value);
#ifdef SERVE_HINT
		else if (!std::strcmp(name, "--hint"))
			o.hint = program_number(name, value);
#endif
		else if (!std::strcmp(name, "--kernels"))
			o.kernels = (unsigned)program_number(name, value);
		else if (!std::strcmp(name, "--closed")) {
			o.closed = true;
			o.think = program_number(name, value);
		} else if (!std::strcmp(name, "--json") && value)
			o.json = value;
		else {
			usage();
			std::exit(2);
		}
	}
	if (!(o.rate > 0) || !o.kernels) {
		std::fprintf(stderr, "serve: rate and kernels must be above 0\n");
		std::exit(2);
	}
	return o;
}

/* One request under way: its buffers on the host, and when it was due. */
struct flight {
	float *input, *output;
	hipEvent_t done;
	uint64_t due_ns;
};

struct service {
	options o;
	unsigned count; /* elements */
	float *x, *y;   /* on the device */
	hipStream_t stream;
	flight flights[FLIGHT_MAX];
	std::mutex lock; /* of the next three */
	std::condition_variable changed;
	uint64_t submitted = 0, completed = 0;
	bool is_last = false;
	std::vector<float> wanted;
	std::vector<uint64_t> due_ns, latency_ns;
	size_t wrong = 0;
};

static float input_value(uint64_t request, unsigned i)
{
	return (float)((request * 7u + i) % 97u) - 48.0f;
}

static float factor(unsigned kernel)
{
	return kernel % 2 ? -0.25f : 0.5f;
}

static void prepare(service &s)
{
	s.count = program_full((const void *)serve_layer) * GROUP_SIZE;
	s.wanted.assign(PERIOD, 0.0f);
	MUST(hipMalloc(&s.x, s.count * sizeof(float)));
	MUST(hipMalloc(&s.y, s.count * sizeof(float)));
	MUST(hipMemset(s.y, 0, s.count * sizeof(float)));
	MUST(hipStreamCreateWithFlags(&s.stream, hipStreamNonBlocking));
	for (flight &f : s.flights) {
		MUST(hipHostMalloc(&f.input, s.count * sizeof(float), hipHostMallocDefault));
		MUST(hipHostMalloc(&f.output, s.count * sizeof(float), hipHostMallocDefault));
		MUST(hipEventCreateWithFlags(&f.done, hipEventDisableTiming | hipEventBlockingSync));
	}
	MUST(hipDeviceSynchronize());
}

static void count_one(service &s, uint64_t &count)
{
	{
		std::lock_guard<std::mutex> hold(s.lock);
		count++;
	}
	s.changed.notify_all();
}

static void submit(service &s, uint64_t request, uint64_t due_ns)
{
	flight &f = s.flights[request % FLIGHT_MAX];

	f.due_ns = due_ns;
	for (unsigned i = 0; i < PERIOD && i < s.count; i++)
		f.input[i] = input_value(request, i);
	for (unsigned at = PERIOD; at < s.count; at += PERIOD)
		std::memcpy(f.input + at, f.input, std::min(PERIOD, s.count - at) * sizeof(float));
	MUST(hipMemcpyAsync(s.x, f.input, s.count * sizeof(float), hipMemcpyHostToDevice, s.stream));
	for (unsigned k = 0; k < s.o.kernels; k++) {
		hipLaunchKernelGGL(serve_layer, dim3(s.count / GROUP_SIZE), dim3(GROUP_SIZE), 0, s.stream, s.y, s.x, factor(k),
				   s.count);
		MUST(hipGetLastError());
	}
	MUST(hipMemcpyAsync(f.output, s.y, s.count * sizeof(float), hipMemcpyDeviceToHost, s.stream));
	MUST(hipEventRecord(f.done, s.stream));
	count_one(s, s.submitted);
}

static void complete(service &s, uint64_t request)
{
	flight &f = s.flights[request % FLIGHT_MAX];
	uint64_t now_ns;

	program_wait(f.done, 50000);
	now_ns = program_now_ns();
	for (unsigned i = 0; i < PERIOD; i++)
		for (unsigned k = 0; k < s.o.kernels; k++)
			s.wanted[i] += factor(k) * input_value(request, i);
	s.wrong += program_wrong(f.output, s.wanted.data(), s.count);
	if (request >= s.o.warm) {
		s.due_ns.push_back(f.due_ns);
		s.latency_ns.push_back(now_ns - f.due_ns);
	}
	count_one(s, s.completed);
}

/* Waits for requests in the order they were made. */
static void completer(service *s)
{
	for (uint64_t request = s->o.warm;; request++) {
		{
			std::unique_lock<std::mutex> hold(s->lock);

			s->changed.wait(hold, [&] { return s->submitted > request || s->is_last; });
			if (s->submitted <= request)
				return;
		}
		complete(*s, request);
	}
}

/* Uniform in (0, 1], from a counter (splitmix64). */
static double uniform(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)(((z ^ z >> 31) >> 11) + 1) / 9007199254740992.0;
}

/* Sleeps until a request is due; the scheduler hears of it o.hint seconds ahead. */
static void await(const service &s, uint64_t due_ns)
{
#ifdef SERVE_HINT
	uint64_t ahead_ns = (uint64_t)(s.o.hint * 1e9);

	if (ahead_ns) {
		program_sleep_until_ns(due_ns - ahead_ns);
		(void)gpreempt_hint(nullptr, ahead_ns);
	}
#else
	(void)s;
#endif
	program_sleep_until_ns(due_ns);
}

static bool is_over(const service &s, uint64_t request, uint64_t passed_ns)
{
	return stopped || (s.o.requests ? request >= s.o.requests + s.o.warm : (double)passed_ns >= s.o.seconds * 1e9);
}

static void serve_open(service &s, uint64_t begin_ns)
{
	uint64_t state = (uint64_t)s.o.seed, due_ns = begin_ns, request = s.o.warm;
	std::thread waiter(completer, &s);

	for (;; request++) {
		due_ns += (uint64_t)(-std::log(uniform(&state)) / s.o.rate * 1e9);
		if (is_over(s, request, due_ns - begin_ns))
			break;
		await(s, due_ns);
		{
			std::unique_lock<std::mutex> hold(s.lock);

			s.changed.wait(hold, [&] { return request - s.completed < FLIGHT_MAX; });
		}
		submit(s, request, due_ns);
	}
	{
		std::lock_guard<std::mutex> hold(s.lock);
		s.is_last = true;
	}
	s.changed.notify_all();
	waiter.join();
}

static void serve_closed(service &s, uint64_t begin_ns)
{
	for (uint64_t request = s.o.warm;; request++) {
		uint64_t now_ns = program_now_ns();

		if (is_over(s, request, now_ns - begin_ns))
			return;
		submit(s, request, now_ns);
		complete(s, request);
		program_sleep_until_ns(program_now_ns() + (uint64_t)(s.o.think * 1e9));
	}
}

static double quantile_ms(std::vector<uint64_t> sorted, double q)
{
	size_t rank = (size_t)std::ceil(q * (double)sorted.size());

	return sorted.empty() ? 0 : (double)sorted[rank ? rank - 1 : 0] / 1e6;
}

static int report(const service &s, uint64_t begin_ns, uint64_t end_ns)
{
	std::vector<uint64_t> sorted = s.latency_ns;
	double slow = program_dilation();
	FILE *file;

	std::sort(sorted.begin(), sorted.end());
	std::printf("serve: %zu requests, p50 %.3f p90 %.3f p99 %.3f max %.3f ms%s, %s\n", sorted.size(), quantile_ms(sorted, 0.5) / slow,
		    quantile_ms(sorted, 0.9) / slow, quantile_ms(sorted, 0.99) / slow, quantile_ms(sorted, 1) / slow,
		    slow > 1 ? " of device time" : "", s.wrong ? "WRONG" : "exact");
	if (!s.o.json)
		return 0;
	file = std::fopen(s.o.json, "w");
	if (!file)
		return -errno;
	std::fprintf(file, "{\"program\": \"serve\", \"requests\": %zu, \"begin_ns\": %llu, \"end_ns\": %llu, \"wrong\": %zu, "
			   "\"p50_ms\": %.6f, \"p90_ms\": %.6f, \"p99_ms\": %.6f, \"max_ms\": %.6f, \"latency_ns\": [",
		     sorted.size(), (unsigned long long)begin_ns, (unsigned long long)end_ns, s.wrong, quantile_ms(sorted, 0.5),
		     quantile_ms(sorted, 0.9), quantile_ms(sorted, 0.99), quantile_ms(sorted, 1));
	for (size_t i = 0; i < s.latency_ns.size(); i++)
		std::fprintf(file, "%s%llu", i ? ", " : "", (unsigned long long)s.latency_ns[i]);
	std::fputs("], \"due_ns\": [", file);
	for (size_t i = 0; i < s.due_ns.size(); i++)
		std::fprintf(file, "%s%llu", i ? ", " : "", (unsigned long long)(s.due_ns[i] - begin_ns));
	std::fputs("]}\n", file);
	return std::fclose(file) ? -errno : 0;
}

int main(int argc, char **argv)
{
	static service s;
	uint64_t begin_ns;

	s.o = parse(argc, argv);
	std::signal(SIGTERM, on_signal);
	std::signal(SIGINT, on_signal);
	MUST(hipSetDeviceFlags(hipDeviceScheduleBlockingSync));
	prepare(s);
	/* The first launches load code and make queues; they do not count. */
	for (uint64_t request = 0; request < s.o.warm; request++) {
		submit(s, request, program_now_ns());
		complete(s, request);
	}
	std::puts("ready");
	std::fflush(stdout);
	begin_ns = program_now_ns();
	if (s.o.closed)
		serve_closed(s, begin_ns);
	else
		serve_open(s, begin_ns);
	if (report(s, begin_ns, program_now_ns()) < 0) {
		std::perror(s.o.json);
		return 1;
	}
	return s.wrong ? 3 : 0;
}
