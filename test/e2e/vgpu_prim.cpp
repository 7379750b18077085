// SPDX-License-Identifier: MIT
// rocPRIM's device algorithms, whose kernels nobody described to the node, against the standard library.
#include <hip/hip_runtime.h>
#include <rocprim/rocprim.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <vector>

#define MUST(call)                                                                  \
	do {                                                                        \
		hipError_t error_ = (call);                                         \
		if (error_ != hipSuccess) {                                         \
			printf("%s: %s\n", #call, hipGetErrorName(error_));         \
			exit(2);                                                    \
		}                                                                   \
	} while (0)

static const unsigned n = 30000;
static int failed;

template <typename T> static T *on_device(const std::vector<T> &from)
{
	T *to;
	MUST(hipMalloc((void **)&to, from.size() * sizeof(T)));
	MUST(hipMemcpy(to, from.data(), from.size() * sizeof(T), hipMemcpyHostToDevice));
	return to;
}

template <typename T> static std::vector<T> from_device(const T *from, size_t count)
{
	std::vector<T> to(count);
	MUST(hipMemcpy(to.data(), from, count * sizeof(T), hipMemcpyDeviceToHost));
	return to;
}

// An algorithm is asked first how much temporary memory it wants.
static void run(const std::function<hipError_t(void *, size_t &)> &algorithm)
{
	size_t size = 0;
	void *memory = nullptr;
	MUST(algorithm(nullptr, size));
	MUST(hipMalloc(&memory, size ? size : 4));
	MUST(algorithm(memory, size));
	MUST(hipDeviceSynchronize());
	MUST(hipFree(memory));
}

static void check(const char *name, bool is_right)
{
	printf("%s: %s\n", is_right ? "ok" : "WRONG", name);
	failed += !is_right;
}

int main()
{
	std::vector<int> h(n), zeros(n, 0), e(n);
	std::vector<unsigned> values(n);
	for (auto &x : h)
		x = rand() % 100000 - 50000;
	std::iota(values.begin(), values.end(), 0u);
	int *a = on_device(h), *b = on_device(zeros), *c = on_device(zeros);
	unsigned *v = on_device(values), *w = on_device(values);

	run([&](void *t, size_t &s) { return rocprim::reduce(t, s, a, b, 0, n, rocprim::plus<int>()); });
	check("reduce", from_device(b, 1)[0] == std::accumulate(h.begin(), h.end(), 0));
	run([&](void *t, size_t &s) { return rocprim::reduce(t, s, a, b, -1000000, n, rocprim::maximum<int>()); });
	check("reduce, maximum", from_device(b, 1)[0] == *std::max_element(h.begin(), h.end()));
	run([&](void *t, size_t &s) { return rocprim::inclusive_scan(t, s, a, b, n, rocprim::plus<int>()); });
	std::partial_sum(h.begin(), h.end(), e.begin());
	check("inclusive scan", from_device(b, n) == e);
	run([&](void *t, size_t &s) { return rocprim::exclusive_scan(t, s, a, b, 7, n, rocprim::plus<int>()); });
	std::exclusive_scan(h.begin(), h.end(), e.begin(), 7);
	check("exclusive scan", from_device(b, n) == e);
	run([&](void *t, size_t &s) { return rocprim::radix_sort_keys(t, s, a, b, n); });
	e = h;
	std::sort(e.begin(), e.end());
	check("radix sort", from_device(b, n) == e);
	run([&](void *t, size_t &s) { return rocprim::radix_sort_pairs(t, s, a, b, v, w, n); });
	std::vector<unsigned> order(values);
	std::stable_sort(order.begin(), order.end(), [&](unsigned x, unsigned y) { return h[x] < h[y]; });
	check("radix sort of pairs", from_device(w, n) == order);
	run([&](void *t, size_t &s) { return rocprim::merge_sort(t, s, a, b, n, rocprim::less<int>()); });
	check("merge sort", from_device(b, n) == e);
	MUST(rocprim::transform(a, b, n, [] __device__(int x) { return x * 2 + 1; }));
	MUST(hipDeviceSynchronize());
	std::transform(h.begin(), h.end(), e.begin(), [](int x) { return x * 2 + 1; });
	check("transform", from_device(b, n) == e);
	run([&](void *t, size_t &s) {
		return rocprim::select(t, s, a, b, c, n, [] __device__(int x) { return x > 0; });
	});
	e.clear();
	std::copy_if(h.begin(), h.end(), std::back_inserter(e), [](int x) { return x > 0; });
	check("select", from_device(c, 1)[0] == (int)e.size() && from_device(b, e.size()) == e);
	printf(failed ? "vgpu-prim: FAILED\n" : "vgpu-prim: ok\n");
	return failed != 0;
}
