/* SPDX-License-Identifier: MIT */
/*
 * Context save areas, seen from a client: which sizes CREATE_QUEUE takes, what GET_QUEUE_WAVE_STATE tells of a queue
 * that is off the device, that a wave's registers lie in the area and are read back from there, and what becomes of a
 * record that is none. Then executed code that writes where it may not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "test/e2e/vgpu_client.h"

#define WAVES         2u
#define ROWS          16u
#define RECORD_SGPRS  (ROWS * 256u)
#define RECORD_HW     (RECORD_SGPRS + 112u * 4u)
#define RECORD_TTMP   (RECORD_HW + 16u * 4u)
#define RECORD_SIZE   (RECORD_TTMP + 16u * 4u + 64u)
#define HW_PC         1u /* words of the block */
#define HW_EXEC       3u
#define HW_STATUS     5u
#define STATUS_VALID  (1u << 16)
#define LOOP_BEGIN    0x34u /* of the code, in bytes */
#define LOOP_END      0x48u
#define VECTOR_VALUE  0x01234567u
#define SCALAR_VALUE  0x00abcdefu
#define SCALAR_NUMBER 20u

/*
 * Sets its first argument's word to 1, waits until its second one's is not 0, then stores v3 + s20 behind the first:
 *	s_load_dwordx4 s[8:11], s[0:1], 0; v_mov_b32 v3, VECTOR_VALUE; s_mov_b32 s20, SCALAR_VALUE; s_mov_b64 vcc, 0x55;
 *	v_mov_b32 v4, 1; v_mov_b32 v5, 0; s_waitcnt; global_store_dword v5, v4, s[8:9];
 *	loop: s_load_dword s4, s[10:11], 0 glc; s_waitcnt; s_cmp_eq_u32 s4, 0; s_cbranch_scc1 loop;
 *	v_add_u32 v3, s20, v3; v_lshlrev_b32 v6, 2, v0; global_store_dword v6, v3, s[8:9] offset:256; s_waitcnt;
 *s_endpgm
 */
static const uint32_t save_code[] = {
	0xc00a0200, 0x00000000, 0x7e0602ff, VECTOR_VALUE, 0xbe9400ff, SCALAR_VALUE, 0xbeea01ff, 0x00000055,
	0x7e080281, 0x7e0a0280, 0xbf8cc07f, 0xdc708000,   0x00080405, 0xc0030105,   0x00000000, 0xbf8cc07f,
	0xbf068004, 0xbf85fffb, 0x68060614, 0x240c0082,   0xdc708100, 0x00080306,   0xbf8c0f70, 0xbf810000,
};

struct area {
	uint32_t stack_size, size, debug_size, xcc_count;
};

struct test {
	struct client client;
	struct area area;
	struct client_queue queue;
	uint8_t *save;
	uint64_t kernel;
	volatile uint32_t *out, *flag;
	struct client_signal *done;
};

/* A number of the first GPU's properties in sysfs. */
static uint32_t property(const char *name)
{
	FILE *file = fopen("/sys/class/kfd/kfd/topology/nodes/1/properties", "r");
	char text[64];
	unsigned long long value, found = 0;

	while (file && fscanf(file, "%63s %llu", text, &value) == 2)
		if (!strcmp(text, name))
			found = value;
	if (file)
		fclose(file);
	return (uint32_t)found;
}

/* As kfd_queue.c of Linux 6.12 has it, written down again. */
static struct area area_of_device(void)
{
	uint32_t xcc_count = property("num_xcc") ? property("num_xcc") : 1u;
	uint32_t cus = property("simd_count") / property("simd_per_cu") / xcc_count, waves = cus * 40u;
	uint32_t limit = property("array_count") / property("simd_arrays_per_engine") * 512u;
	struct area area = { .xcc_count = xcc_count };

	waves = waves < limit ? waves : limit;
	area.stack_size = (40u + waves * 8u + 8u + 4095u) / 4096u * 4096u;
	area.size = area.stack_size + (cus * (0x80000u + 0x4000u + 0x10000u + 0x1000u) + 4095u) / 4096u * 4096u;
	area.debug_size = (waves * 32u + 63u) / 64u * 64u;
	return area;
}

/* Creates a queue with that area; 0 or -errno. */
static int queue_with(struct test *test, struct client_queue *queue, void *save, uint32_t size, uint32_t stack_size)
{
	struct client_save wanted = { save, size, stack_size };

	return client_queue_try_create_with(&test->client, queue, 64, &wanted);
}

/* Shows: the driver's sizes are taken; any other, memory that is too small or none of the client's is refused. */
static void test_sizes(struct test *test)
{
	struct area a = test->area;
	size_t total = (size_t)(a.size + a.debug_size) * a.xcc_count;
	uint8_t *save = client_alloc(&test->client, (total + 4095u) / 4096u * 4096u, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	uint8_t *small = client_alloc(&test->client, a.size - 4096u, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	struct client_queue queue;

	CLIENT_CHECK(queue_with(test, &queue, save, a.size, a.stack_size) == 0);
	CLIENT_CHECK(client_queue_destroy(&queue) == 0);
	CLIENT_CHECK(queue_with(test, &queue, save, a.size - 4096u, a.stack_size) == -EINVAL);
	CLIENT_CHECK(queue_with(test, &queue, save, a.size + 4096u, a.stack_size) == -EINVAL);
	CLIENT_CHECK(queue_with(test, &queue, save, a.size, a.stack_size - 4096u) == -EINVAL);
	CLIENT_CHECK(queue_with(test, &queue, save, a.size, a.stack_size + 4096u) == -EINVAL);
	CLIENT_CHECK(queue_with(test, &queue, save, a.size, 0) == -EINVAL);
	CLIENT_CHECK(queue_with(test, &queue, save, 0, a.stack_size) == -EINVAL);
	CLIENT_CHECK(queue_with(test, &queue, save, UINT32_MAX, UINT32_MAX) == -EINVAL);
	CLIENT_CHECK(queue_with(test, &queue, save + 4096, a.size, a.stack_size) == -EINVAL);
	CLIENT_CHECK(queue_with(test, &queue, small, a.size, a.stack_size) == -EINVAL);
	CLIENT_CHECK(queue_with(test, &queue, (void *)0x1000, a.size, a.stack_size) == -EINVAL);
	CLIENT_CHECK(queue_with(test, &queue, NULL, a.size, a.stack_size) == -EINVAL);
	test->save = save;
	client_result("sizes of a save area", true);
}

static int wave_state(struct test *test, void *to, struct kfd_ioctl_get_queue_wave_state_args *ret_args)
{
	*ret_args = (struct kfd_ioctl_get_queue_wave_state_args){ .ctl_stack_address = (uintptr_t)to,
								  .queue_id = test->queue.id };
	return client_ioctl(&test->client, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, ret_args);
}

/* A kernel in memory: descriptor (registers, arguments' address in s[0:1]), then code. */
static uint64_t kernel_make(struct test *test, const uint32_t *code, uint32_t size)
{
	uint32_t *page = client_alloc(&test->client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);

	page[4] = 256;             /* entry */
	page[11] = ROWS / 4u - 1u; /* no accumulation registers */
	page[12] = ROWS / 8u - 1u; /* vector registers */
	page[13] = 2u << 1;        /* user registers */
	page[14] = 8;              /* of which the arguments' address */
	memcpy(page + 64, code, size);
	return (uintptr_t)page;
}

static void kernel_start(struct test *test, uint64_t kernel, const void *out, uint32_t waves)
{
	uint64_t *kernarg = client_alloc(&test->client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	struct client_packet packet = { .header = 2 | 1 << 8,
					.setup = 1,
					.workgroup_size = { (uint16_t)(waves * 64u), 1, 1 },
					.grid_size = { waves * 64u, 1, 1 },
					.kernel = kernel,
					.kernarg = (uintptr_t)kernarg };

	test->done = client_signal(&test->client, 1);
	packet.signal = (uintptr_t)test->done;
	kernarg[0] = (uintptr_t)out;
	kernarg[1] = (uintptr_t)test->flag;
	client_submit(&test->queue, &packet);
}

/* A kernel that has begun and waits. */
static bool kernel_waits(struct test *test)
{
	test->out[0] = *test->flag = 0;
	memset((void *)&test->out[64], 0, WAVES * 256u);
	kernel_start(test, test->kernel, (const void *)test->out, WAVES);
	for (uint32_t i = 0; i < CLIENT_WAIT_MS && !test->out[0]; i++)
		client_sleep_ms(1);
	return test->out[0];
}

static bool each_is(struct test *test, uint32_t first, uint32_t count, uint32_t value)
{
	bool good = true;

	for (uint32_t i = first; i < first + count; i++)
		good &= test->out[64u + i] == value;
	return good;
}

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, 4);
	return value;
}

/* Shows: off the device the waves are in the area, with the registers the kernel gave them, stopped inside its loop;
 * what is written into the area while they are there is what they go on with. */
static void test_state(struct test *test)
{
	struct kfd_ioctl_get_queue_wave_state_args args;
	uint32_t *copy = calloc(1, test->area.stack_size), other = SCALAR_VALUE + 1000u;
	uint8_t *record = test->save + test->area.stack_size;

	CLIENT_CHECK(kernel_waits(test));
	CLIENT_CHECK(wave_state(test, copy, &args) == -EINVAL); /* it runs */
	CLIENT_CHECK(client_queue_update(&test->queue, 0) == 0);
	CLIENT_CHECK(wave_state(test, copy, &args) == 0);
	CLIENT_CHECK(args.save_area_used_size == WAVES * RECORD_SIZE);
	CLIENT_CHECK(args.ctl_stack_used_size == (2u + WAVES + 1u) * 4u);
	/* The head: where the control stack and the waves' state are. */
	CLIENT_CHECK(copy[0] == test->area.stack_size - args.ctl_stack_used_size &&
		     copy[1] == args.ctl_stack_used_size);
	CLIENT_CHECK(copy[2] == test->area.stack_size + args.save_area_used_size &&
		     copy[3] == args.save_area_used_size);
	CLIENT_CHECK(copy[(test->area.stack_size - args.ctl_stack_used_size) / 4u + 2u] >>
		     31); /* a state, then waves */
	for (uint32_t i = 0; i < WAVES; i++) {
		const uint8_t *at = record + i * RECORD_SIZE;
		uint32_t pc = word(at + RECORD_HW + HW_PC * 4u) - (uint32_t)(test->kernel + 256u);

		CLIENT_CHECK(word(at + 3u * 256u + 17u * 4u) == VECTOR_VALUE);
		CLIENT_CHECK(word(at + RECORD_SGPRS + SCALAR_NUMBER * 4u) == SCALAR_VALUE);
		CLIENT_CHECK(word(at + RECORD_SGPRS + 106u * 4u) == 0x55);
		CLIENT_CHECK(word(at + RECORD_HW + HW_EXEC * 4u) == UINT32_MAX);
		CLIENT_CHECK(word(at + RECORD_HW + HW_STATUS * 4u) & STATUS_VALID);
		CLIENT_CHECK(pc >= LOOP_BEGIN && pc < LOOP_END);
	}
	memcpy(record + RECORD_SIZE + RECORD_SGPRS + SCALAR_NUMBER * 4u, &other, 4);
	CLIENT_CHECK(client_queue_update(&test->queue, 100) == 0);
	*test->flag = 1;
	CLIENT_CHECK(client_wait(test->done));
	CLIENT_CHECK(each_is(test, 0, 64, VECTOR_VALUE + SCALAR_VALUE));
	CLIENT_CHECK(each_is(test, 64, 64, VECTOR_VALUE + other));
	/* Nothing is there any more. */
	CLIENT_CHECK(client_queue_update(&test->queue, 0) == 0);
	CLIENT_CHECK(wave_state(test, copy, &args) == 0 && !args.save_area_used_size && !args.ctl_stack_used_size);
	CLIENT_CHECK(wave_state(test, (void *)8, &args) == -EFAULT);
	CLIENT_CHECK(client_queue_update(&test->queue, 100) == 0);
	args = (struct kfd_ioctl_get_queue_wave_state_args){ .ctl_stack_address = (uintptr_t)copy, .queue_id = 900 };
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_GET_QUEUE_WAVE_STATE, &args) == -EINVAL);
	free(copy);
	client_result("what a save area holds", true);
}

/* Shows: three hundred preemptions in one kernel, and its result is right. */
static void test_often(struct test *test)
{
	CLIENT_CHECK(kernel_waits(test));
	for (uint32_t i = 0; i < 300u; i++) {
		CLIENT_CHECK(client_queue_update(&test->queue, 0) == 0);
		memset(test->save + test->area.stack_size - 64u, 0xa5, 16);
		CLIENT_CHECK(client_queue_update(&test->queue, 100) == 0);
	}
	*test->flag = 1;
	CLIENT_CHECK(client_wait(test->done));
	CLIENT_CHECK(each_is(test, 0, WAVES * 64u, VECTOR_VALUE + SCALAR_VALUE));
	client_result("three hundred preemptions of a kernel", true);
}

/* Shows: a record that is none stops the queue with an error, and nothing else; another queue goes on. */
static void test_wrecked(struct test *test)
{
	CLIENT_CHECK(kernel_waits(test));
	CLIENT_CHECK(client_queue_update(&test->queue, 0) == 0);
	memset(test->save + test->area.stack_size, 0xff, WAVES * RECORD_SIZE);
	CLIENT_CHECK(client_queue_update(&test->queue, 100) == 0);
	for (uint32_t i = 0; i < CLIENT_WAIT_MS && !test->queue.inactive->value; i++)
		client_sleep_ms(1);
	CLIENT_CHECK(test->queue.inactive->value & 0x80000000);
	CLIENT_CHECK(test->done->value == 1);
	CLIENT_CHECK(client_queue_destroy(&test->queue) == 0);
	CLIENT_CHECK(queue_with(test, &test->queue, test->save, test->area.size, test->area.stack_size) == 0);
	CLIENT_CHECK(kernel_waits(test));
	*test->flag = 1;
	CLIENT_CHECK(client_wait(test->done));
	CLIENT_CHECK(each_is(test, 0, WAVES * 64u, VECTOR_VALUE + SCALAR_VALUE));
	client_result("a save area that has been wrecked", true);
}

/* Memory that the GPU may read. */
static uint32_t *read_only(struct test *test)
{
	void *va = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct kfd_ioctl_map_memory_to_gpu_args map = { .device_ids_array_ptr = (uintptr_t)test->client.gpu_ids,
							.n_devices = test->client.gpu_count };
	__u64 offset;

	CLIENT_CHECK(client_try_alloc(&test->client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT, (uintptr_t)va, &map.handle,
				      &offset) == 0);
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map) == 0);
	return va;
}

/* Shows: a store to memory that the GPU may only read is a memory fault, whose event says so, with the address. */
static void test_read_only(struct test *test)
{
	struct kfd_ioctl_create_event_args create = { .event_type = KFD_IOC_EVENT_MEMORY };
	struct kfd_event_data data;
	struct kfd_ioctl_wait_events_args args = { .events_ptr = (uintptr_t)&data,
						   .num_events = 1,
						   .timeout = CLIENT_WAIT_MS };
	const uint32_t *page = read_only(test);

	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_CREATE_EVENT, &create) == 0);
	kernel_start(test, test->kernel, page, 1);
	data = (struct kfd_event_data){ .event_id = create.event_id };
	CLIENT_CHECK(client_ioctl(&test->client, AMDKFD_IOC_WAIT_EVENTS, &args) == 0 &&
		     args.wait_result == KFD_IOC_WAIT_RESULT_COMPLETE);
	CLIENT_CHECK(data.memory_exception_data.failure.ReadOnly && !data.memory_exception_data.failure.NotPresent);
	CLIENT_CHECK(data.memory_exception_data.va == (uintptr_t)page);
	client_result("a store to memory that is read-only", true);
}

int main(void)
{
	struct test test = { 0 };

	client_open(&test.client);
	test.area = area_of_device();
	test.kernel = kernel_make(&test, save_code, sizeof(save_code));
	test.out = client_alloc(&test.client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_VRAM);
	test.flag = client_alloc(&test.client, 4096, KFD_IOC_ALLOC_MEM_FLAGS_GTT);
	test_sizes(&test);
	CLIENT_CHECK(queue_with(&test, &test.queue, test.save, test.area.size, test.area.stack_size) == 0);
	test_state(&test);
	test_often(&test);
	test_wrecked(&test);
	test_read_only(&test); /* the process has no working queue afterwards */
	return client_done();
}
