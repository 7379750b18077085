/* SPDX-License-Identifier: MIT */
/*
 * A training job: kernels that fill the device several times over, back to back, until it is told to stop. An iteration is
 * one kernel. Weights and momenta are updated in turn, each from the other (w += m/2, m -= w/2): doing a workgroup twice, not
 * at all or out of order gives other bits, for good. The factors are powers of two, so that a fused multiply-add rounds as a
 * multiplication and an addition do and the host can tell exactly what the device must have.
 */
#include <csignal>
#include <cstddef>
#include <vector>
#include "program.h"

#define DEPTH_MAX 16u

struct options {
	double seconds = 0; /* 0: until SIGTERM or SIGINT */
	unsigned iterations = 0, rounds = 4, depth = 2;
	const char *json = nullptr;
};

static volatile sig_atomic_t stopped;

/* 128 registers, as a real training kernel may have; the register file then holds four workgroups per compute unit. */
extern "C" __global__ void __launch_bounds__(256) train_step(float *y, const float *x, float a, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	asm volatile("s_nop 1" ::: "v127");
	if (i < n)
		y[i] += a * x[i];
}

static void usage()
{
	std::puts("usage: train [--seconds S] [--iterations N] [--rounds R] [--depth D] [--json FILE]\n"
		  "Kernels of R times what the device holds, D queued ahead, until so many or SIGTERM; then the result is checked.\n"
		  "Exit status: 0, 1 an error, 2 wrong usage, 3 the result is not exact.");
}

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
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
		if (!std::strcmp(name, "--seconds"))
			o.seconds = program_number(name, value);
		else if (!std::strcmp(name, "--iterations"))
			o.iterations = (unsigned)program_number(name, value);
		else if (!std::strcmp(name, "--rounds"))
			o.rounds = (unsigned)program_number(name, value);
		else if (!std::strcmp(name, "--depth"))
			o.depth = (unsigned)program_number(name, value);
		else if (!std::strcmp(name, "--json") && value)
			o.json = value;
		else {
			usage();
			std::exit(2);
		}
	}
	if (!o.rounds || !o.depth || o.depth > DEPTH_MAX) {
		std::fprintf(stderr, "train: rounds from 1, depth from 1 to %u\n", DEPTH_MAX);
		std::exit(2);
	}
	return o;
}

struct model {
	unsigned count;
	float *weights, *momenta; /* on the device */
	std::vector<float> start_weights, start_momenta;
};

static void prepare(model &m, unsigned count)
{
	m.count = count;
	m.start_weights.resize(count);
	m.start_momenta.resize(count);
	for (unsigned i = 0; i < count; i++) {
		m.start_weights[i] = (float)(i % PERIOD) + 0.25f;
		m.start_momenta[i] = 1.0f / (float)(1u + i % PERIOD);
	}
	MUST(hipMalloc(&m.weights, count * sizeof(float)));
	MUST(hipMalloc(&m.momenta, count * sizeof(float)));
	MUST(hipMemcpy(m.weights, m.start_weights.data(), count * sizeof(float), hipMemcpyHostToDevice));
	MUST(hipMemcpy(m.momenta, m.start_momenta.data(), count * sizeof(float), hipMemcpyHostToDevice));
}

/* Iterates; ret_done: when each iteration was seen to be complete. */
static void train(const options &o, model &m, hipStream_t stream, std::vector<uint64_t> &ret_done)
{
	hipEvent_t events[DEPTH_MAX];
	uint64_t begin = program_now_ns();
	size_t launched = 0;

	for (unsigned i = 0; i < o.depth; i++)
		MUST(hipEventCreateWithFlags(&events[i], hipEventDisableTiming | hipEventBlockingSync));
	for (;;) {
		bool more = !stopped && (!o.iterations || launched < o.iterations) &&
			    (!o.seconds || (double)(program_now_ns() - begin) < o.seconds * 1e9);

		if (more && launched - ret_done.size() < o.depth) {
			bool even = launched % 2 == 0;

			hipLaunchKernelGGL(train_step, dim3(m.count / GROUP_SIZE), dim3(GROUP_SIZE), 0, stream,
					   even ? m.weights : m.momenta, even ? m.momenta : m.weights,
					   even ? 0.5f : -0.5f, m.count);
			MUST(hipGetLastError());
			MUST(hipEventRecord(events[launched % o.depth], stream));
			launched++;
			continue;
		}
		if (ret_done.size() == launched)
			break;
		program_wait(events[ret_done.size() % o.depth], 2000000);
		ret_done.push_back(program_now_ns());
	}
}

static size_t check(const model &m, size_t iterations)
{
	std::vector<float> weights(m.start_weights.begin(), m.start_weights.begin() + PERIOD),
		momenta(m.start_momenta.begin(), m.start_momenta.begin() + PERIOD), result(m.count);
	size_t wrong;

	for (size_t k = 0; k < iterations; k++)
		for (unsigned i = 0; i < PERIOD; i++) {
			if (k % 2 == 0)
				weights[i] += 0.5f * momenta[i];
			else
				momenta[i] -= 0.5f * weights[i];
		}
	MUST(hipMemcpy(result.data(), m.weights, m.count * sizeof(float), hipMemcpyDeviceToHost));
	wrong = program_wrong(result.data(), weights.data(), m.count);
	MUST(hipMemcpy(result.data(), m.momenta, m.count * sizeof(float), hipMemcpyDeviceToHost));
	return wrong + program_wrong(result.data(), momenta.data(), m.count);
}

static int report(const options &o, uint64_t begin_ns, const std::vector<uint64_t> &done, size_t wrong)
{
	double slow = program_dilation(), seconds = done.empty() ? 0 : (double)(done.back() - begin_ns) / 1e9 / slow;
	FILE *file;

	std::printf("train: %zu iterations in %.3f s%s, %.2f per s, %s\n", done.size(), seconds, slow > 1 ? " of device time" : "",
		    seconds > 0 ? (double)done.size() / seconds : 0, wrong ? "WRONG" : "exact");
	if (!o.json)
		return 0;
	file = std::fopen(o.json, "w");
	if (!file)
		return -errno;
	std::fprintf(file, "{\"program\": \"train\", \"iterations\": %zu, \"begin_ns\": %llu, \"wrong\": %zu, \"done_ns\": [",
		     done.size(), (unsigned long long)begin_ns, wrong);
	for (size_t i = 0; i < done.size(); i++)
		std::fprintf(file, "%s%llu", i ? ", " : "", (unsigned long long)done[i]);
	std::fputs("]}\n", file);
	return std::fclose(file) ? -errno : 0;
}

int main(int argc, char **argv)
{
	options o = parse(argc, argv);
	std::vector<uint64_t> done;
	hipStream_t stream;
	uint64_t begin_ns;
	size_t wrong;
	model m;

	std::signal(SIGTERM, on_signal);
	std::signal(SIGINT, on_signal);
	MUST(hipSetDeviceFlags(hipDeviceScheduleBlockingSync));
	MUST(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
	prepare(m, program_full((const void *)train_step) * o.rounds * GROUP_SIZE);
	std::puts("ready");
	std::fflush(stdout);
	begin_ns = program_now_ns();
	train(o, m, stream, done);
	wrong = check(m, done.size());
	if (report(o, begin_ns, done, wrong) < 0) {
		std::perror(o.json);
		return 1;
	}
	return wrong ? 3 : 0;
}
