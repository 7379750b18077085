/* SPDX-License-Identifier: MIT */
/* KFD's calls as clients of the virtual node may not make them: each is refused with the driver's errno, and nothing
 * has changed (the fixture looks when the node ends). No front end, virtual time; clients are children that sleep. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <cmocka.h>
#include "test/fuzz/vgpu_fixture.h"
#include "vgpu/node/bar.h"
#include "vgpu/node/memory.h"
#include "vgpu/kfd/queue.h"

#define VA      FUZZ_VA
#define VRAM    KFD_IOC_ALLOC_MEM_FLAGS_VRAM
#define GTT     KFD_IOC_ALLOC_MEM_FLAGS_GTT
#define USERPTR KFD_IOC_ALLOC_MEM_FLAGS_USERPTR

static struct fuzz_node *node;

static int begin(void **state)
{
	(void)state;
	node = fuzz_node_open(NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	fuzz_node_close(node);
	return 0;
}

static uint32_t gpu(void)
{
	return node->node.gpus[0].gpu_id;
}

static int alloc(uint64_t va, uint64_t size, uint32_t flags, uint64_t user, uint64_t *ret_handle)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = { .va_addr = va,
							   .size = size,
							   .gpu_id = gpu(),
							   .flags = flags,
							   .mmap_offset = user };
	int r = fuzz_node_ioctl(node, 0, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);

	if (r == 0)
		*ret_handle = args.handle;
	return r;
}

static int release(uint64_t handle)
{
	struct kfd_ioctl_free_memory_of_gpu_args args = { .handle = handle };

	return fuzz_node_ioctl(node, 0, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
}

static int map(uint64_t handle, uint32_t count, uint32_t done)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = { .handle = handle,
							 .device_ids_array_ptr = FUZZ_ARENA,
							 .n_devices = count,
							 .n_success = done };

	for (uint32_t i = 0; i < 64u; i++)
		((volatile uint32_t *)FUZZ_ARENA)[i] = gpu();
	return fuzz_node_ioctl(node, 0, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args);
}

/* Somebody else's thread on the process's file, and calls that there are not. */
static void test_who_and_what(void **state)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	struct gp_vcall *call = calloc(1, sizeof(*call));

	(void)state;
	assert_non_null(call);
	call->process = node->clients[0];
	call->command = AMDKFD_IOC_GET_VERSION;
	call->thread = fuzz_node_pid(1);
	call->arg_size = sizeof(version);
	assert_int_equal(gp_vcall_ioctl(&call, GP_VFILE_KFD), -EBADF);
	call->thread = fuzz_node_pid(0);
	assert_int_equal(gp_vcall_ioctl(&call, GP_VFILE_KFD), 0);
	gp_vcall_free(call);
	for (uint32_t number = 0x27; number <= 0xffu; number++)
		assert_int_equal(fuzz_node_ioctl(node, 0, _IOC(_IOC_READ | _IOC_WRITE, 'K', number, 8), &version),
				 -EINVAL);
	assert_int_equal(fuzz_node_ioctl(node, 0, _IOC(_IOC_READ | _IOC_WRITE, 'K', 0, 8), &version), -EINVAL);
	assert_int_equal(fuzz_node_ioctl(node, 0, _IOC(_IOC_READ | _IOC_WRITE, 'X', 1, 8), &version), -ENOTTY);
}

static void test_memory(void **state)
{
	uint64_t handle = 0, other;

	(void)state;
	assert_int_equal(alloc(VA, 0, GTT, 0, &handle), -EINVAL);
	assert_int_equal(alloc(VA, GP_BAR_GTT_SIZE + 4096u, GTT, 0, &handle), -EINVAL);
	assert_int_equal(alloc(VA, 4096, 0, 0, &handle), -EINVAL);
	assert_int_equal(alloc(VA, 4096, GTT | VRAM, 0, &handle), -EINVAL);
	assert_int_equal(alloc(VA + 1u, 4096, GTT, 0, &handle), -EINVAL);
	assert_int_equal(alloc(GP_VM_END, 4096, GTT, 0, &handle), -EINVAL);
	assert_int_equal(alloc(GP_VM_END - 4096u, 8192, GTT, 0, &handle), -EINVAL);
	assert_int_equal(alloc(UINT64_MAX - 4095u, 8192, GTT, 0, &handle), -EINVAL);
	assert_int_equal(alloc(VA, 4096, USERPTR, 0, &handle), -EINVAL);
	assert_int_equal(alloc(VA, 8192, USERPTR, GP_VM_END - 4096u, &handle), -EINVAL);
	assert_int_equal(alloc(VA, 4096, KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL, 0, &handle), -EINVAL);
	assert_int_equal(alloc(VA, 8192, KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP, 0, &handle), -EINVAL);
	assert_int_equal(alloc(VA, 65u << 20, GTT, 0, &handle), -ENOMEM); /* the node has 64 MiB */
	assert_int_equal(alloc(VA, 8192, GTT, 0, &handle), 0);
	assert_int_equal(alloc(VA + 4096u, 4096, GTT, 0, &other), -EINVAL); /* over the other */
	assert_int_equal(alloc(VA - 4096u, 8192, GTT, 0, &other), -EINVAL);
	assert_int_equal(release(handle ^ 1ull << 40), -EINVAL); /* its place, another name */
	assert_int_equal(release(handle + 100u), -EINVAL);
	assert_int_equal(release(handle), 0);
	assert_int_equal(release(handle), -EINVAL);
}

/* What is named to be mapped is read into a table of as many as there are GPUs. */
static void test_mapping(void **state)
{
	struct gp_vproc *client = node->clients[0];
	struct gp_vdev *first = &node->node.gpus[0], *second = &node->node.gpus[1];
	uint64_t handle = 0;

	(void)state;
	assert_int_equal(alloc(VA, 8192, GTT, 0, &handle), 0);
	assert_null(gp_vm_find(client, first, VA)); /* not mapped */
	assert_int_equal(map(handle, 0, 0), -EINVAL);
	assert_int_equal(map(handle, FUZZ_GPU_COUNT + 1u, 0), -EINVAL);
	assert_int_equal(map(handle, 1, 2), -EINVAL);
	assert_int_equal(map(handle + 1u, 1, 0), -ENOMEM);
	assert_int_equal(map(handle, 1, 0), 0);
	assert_non_null(gp_vm_find(client, first, VA));
	assert_null(gp_vm_find(client, second, VA)); /* on one GPU only */
	assert_int_equal(release(handle), -EBUSY);
	/* To its last byte, and not beyond; sums do not wrap round. */
	assert_non_null(gp_vm_pointer(client, first, VA + 8184u, 8));
	assert_null(gp_vm_pointer(client, first, VA + 8185u, 8));
	assert_null(gp_vm_pointer(client, first, VA + 8192u, 1));
	assert_null(gp_vm_pointer(client, first, VA - 1u, 1));
	assert_null(gp_vm_pointer(client, first, VA + 8u, UINT64_MAX));
	assert_int_equal(gp_vm_write(client, first, VA + 8188u, &handle, 8), -EFAULT);
}

static int create(struct kfd_ioctl_create_queue_args args)
{
	uint32_t command = _IOWR('K', _IOC_NR(AMDKFD_IOC_CREATE_QUEUE), struct kfd_ioctl_create_queue_args);

	return fuzz_node_ioctl(node, 0, command, &args);
}

static void test_queues(void **state)
{
	struct fuzz_queue queue;
	struct kfd_ioctl_create_queue_args good = {
		.ring_base_address = VA,
		.ring_size = FUZZ_QUEUE_RING_SIZE,
		.write_pointer_address = VA + FUZZ_QUEUE_RING_SIZE + 56u,
		.read_pointer_address = VA + FUZZ_QUEUE_RING_SIZE + GP_AMD_QUEUE_READ_OFFSET,
		.gpu_id = gpu(),
		.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		.queue_percentage = 100,
		.queue_priority = 7,
	}, args;

	(void)state;
	assert_int_equal(create(good), -ESRCH); /* no address space yet */
	assert_int_equal(fuzz_node_queue(node, VA, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, &queue), 0);
	args = good;
	args.queue_percentage = 101;
	assert_int_equal(create(args), -EINVAL);
	args = good;
	args.queue_priority = 16;
	assert_int_equal(create(args), -EINVAL);
	args = good;
	args.ring_size = FUZZ_QUEUE_RING_SIZE - 64u;
	assert_int_equal(create(args), -EINVAL);
	args = good;
	args.ring_size = FUZZ_QUEUE_RING_SIZE * 2u; /* more than it has there */
	assert_int_equal(create(args), -EINVAL);
	args = good;
	args.ring_base_address = GP_VM_END;
	assert_int_equal(create(args), -EFAULT);
	args = good;
	args.ring_base_address = VA + 0x10000000u; /* nobody's */
	assert_int_equal(create(args), -EINVAL);
	args = good;
	args.write_pointer_address = VA + 0x10000000u;
	assert_int_equal(create(args), -EINVAL);
	args = good;
	args.read_pointer_address = VA + 0x10000000u;
	assert_int_equal(create(args), -EINVAL);
	args = good;
	args.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE;
	assert_int_equal(create(args), -EINVAL);
	args = good;
	args.queue_type = 99;
	assert_int_equal(create(args), -524);
	args = good;
	args.gpu_id = 1;
	assert_int_equal(create(args), -EINVAL);
	assert_null(gp_vqueue_find(node->clients[0], GP_VPROC_QUEUE_MAX));
	assert_null(gp_vqueue_find(node->clients[0], UINT32_MAX));
}

static int make_event(uint32_t type, uint64_t page, uint32_t *ret_id)
{
	struct kfd_ioctl_create_event_args args = { .event_type = type, .event_page_offset = page };
	int r = fuzz_node_ioctl(node, 0, AMDKFD_IOC_CREATE_EVENT, &args);

	if (r == 0)
		*ret_id = args.event_id;
	return r;
}

static int wait_events(uint32_t count)
{
	struct kfd_ioctl_wait_events_args args = { .events_ptr = FUZZ_ARENA, .num_events = count, .timeout = 0 };

	return fuzz_node_ioctl(node, 0, AMDKFD_IOC_WAIT_EVENTS, &args);
}

static void test_events(void **state)
{
	struct kfd_ioctl_set_event_args set = { .event_id = GP_VPROC_EVENT_MAX };
	uint64_t small = 0, large = 0, other = 0;
	uint32_t id = 0;

	(void)state;
	assert_int_equal(make_event(KFD_IOC_EVENT_MEMORY + 1u, 0, &id), -EINVAL);
	/* The page: memory of its own that is large enough, once and for all. */
	assert_int_equal(alloc(VA, 4096, GTT, 0, &small), 0);
	assert_int_equal(alloc(VA + 0x100000u, 65536, GTT, 0, &large), 0);
	assert_int_equal(alloc(VA + 0x200000u, 65536, GTT, 0, &other), 0);
	assert_int_equal(make_event(KFD_IOC_EVENT_SIGNAL, 12345, &id), -EINVAL);
	assert_int_equal(make_event(KFD_IOC_EVENT_SIGNAL, small, &id), -EINVAL);
	assert_int_equal(make_event(KFD_IOC_EVENT_SIGNAL, large, &id), 0);
	assert_int_equal(make_event(KFD_IOC_EVENT_SIGNAL, other, &id), -EINVAL);
	assert_int_equal(fuzz_node_ioctl(node, 0, AMDKFD_IOC_SET_EVENT, &set), -EINVAL);
	set.event_id = 0;
	assert_int_equal(fuzz_node_ioctl(node, 0, AMDKFD_IOC_SET_EVENT, &set), -EINVAL);
	assert_int_equal(wait_events(1), -EINVAL); /* the arena names event 0 */
	for (uint32_t i = 0; i < 4097u; i++)
		((struct kfd_event_data *)FUZZ_ARENA)[i].event_id = id;
	assert_int_equal(wait_events(1), 0);
	assert_int_equal(wait_events(4096), 0);
	assert_int_equal(wait_events(4097), -EINVAL);
}

static int trap(uint32_t client, struct gp_kfd_dbg_trap args)
{
	return fuzz_node_ioctl(node, client, _IOWR('K', GP_KFD_NR_DBG_TRAP, struct gp_kfd_dbg_trap), &args);
}

/* Nobody debugs a process that he does not trace; and whoever may names as many queues as there can be. */
static void test_debugging(void **state)
{
	uint32_t pid = (uint32_t)fuzz_node_pid(0);

	(void)state;
	assert_int_equal(fuzz_node_client_open(node, 1), 0);
	assert_int_equal(trap(1, (struct gp_kfd_dbg_trap){ .pid = pid, .op = GP_KFD_DBG_ENABLE }), -EPERM);
	assert_int_equal(trap(1, (struct gp_kfd_dbg_trap){ .pid = pid, .op = GP_KFD_DBG_SUSPEND_QUEUES }), -EPERM);
	assert_int_equal(trap(1, (struct gp_kfd_dbg_trap){ .pid = 1, .op = GP_KFD_DBG_ENABLE }), -ESRCH);
	assert_int_equal(trap(0, (struct gp_kfd_dbg_trap){ .pid = pid, .op = GP_KFD_DBG_SUSPEND_QUEUES }), -EINVAL);
	node->clients[0]->debug_enabled = node->clients[0]->runtime_enabled = true;
	assert_int_equal(trap(0, (struct gp_kfd_dbg_trap){ .pid = pid,
							   .op = GP_KFD_DBG_SUSPEND_QUEUES,
							   .suspend = { .queue_array_ptr = FUZZ_ARENA,
									.num_queues = GP_VPROC_QUEUE_MAX + 1u } }),
			 -EINVAL);
	assert_int_equal(trap(0, (struct gp_kfd_dbg_trap){ .pid = pid,
							   .op = GP_KFD_DBG_SUSPEND_QUEUES,
							   .suspend = { .num_queues = 1 } }),
			 -EINVAL);
	node->clients[0]->runtime_enabled = false;
	assert_int_equal(trap(0, (struct gp_kfd_dbg_trap){ .pid = pid, .op = GP_KFD_DBG_SUSPEND_QUEUES }), -EPERM);
	node->clients[0]->debug_enabled = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_who_and_what, begin, end),
		cmocka_unit_test_setup_teardown(test_memory, begin, end),
		cmocka_unit_test_setup_teardown(test_mapping, begin, end),
		cmocka_unit_test_setup_teardown(test_queues, begin, end),
		cmocka_unit_test_setup_teardown(test_events, begin, end),
		cmocka_unit_test_setup_teardown(test_debugging, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
