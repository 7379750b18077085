// SPDX-License-Identifier: MIT
// What the HIP programs of these tests share: a call that must succeed, and device memory with an owner.
#ifndef TEST_VGPU_MEMORY_HPP
#define TEST_VGPU_MEMORY_HPP

#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define MUST(call)                                                          \
	do {                                                                \
		hipError_t error_ = (call);                                 \
		if (error_ != hipSuccess) {                                 \
			printf("%s: %s\n", #call, hipGetErrorName(error_)); \
			exit(2);                                            \
		}                                                           \
	} while (0)

template <typename T> struct Memory {
	T *data = nullptr;
	size_t count;
	explicit Memory(size_t n) : count(n)
	{
		MUST(hipMalloc((void **)&data, n * sizeof(T)));
		MUST(hipMemset(data, 0, n * sizeof(T)));
	}
	explicit Memory(const std::vector<T> &from) : Memory(from.size())
	{
		MUST(hipMemcpy(data, from.data(), count * sizeof(T), hipMemcpyHostToDevice));
	}
	std::vector<T> get() const
	{
		std::vector<T> to(count);
		MUST(hipMemcpy(to.data(), data, count * sizeof(T), hipMemcpyDeviceToHost));
		return to;
	}
	~Memory()
	{
		(void)hipFree(data);
	}
};

#endif
