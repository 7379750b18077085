/* SPDX-License-Identifier: MIT */
/* The runtime's tables: which version is hooked where, and which is left alone. Sizes are those of ROCr's releases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "agent/agent.h"
#include "agent/kfd/hsa.h"

bool OnLoad(struct gp_hsa_root *root, uint64_t version, uint64_t failed_count, const char *const *failed);
void OnUnload(void);

static void test_layouts(void **state)
{
	static const struct {
		uint32_t core_major, core_count, ext_major, ext_count;
		bool known;
		uint32_t copy, copy_on;
	} rows[] = {
		{ 1, 125, 1, 48, true, 15, GP_HSA_NO_SLOT }, /* 5.0 to 5.4: Debian 12 */
		{ 1, 125, 1, 51, true, 15, GP_HSA_NO_SLOT }, /* 5.5 */
		{ 1, 125, 1, 55, true, 15, 16 },             /* 5.6, 5.7 */
		{ 2, 125, 2, 67, true, 15, 16 },             /* 6.0 */
		{ 2, 125, 2, 71, true, 15, 16 },             /* 6.3 */
		{ 2, 125, 3, 80, true, GP_HSA_NO_SLOT, GP_HSA_NO_SLOT },
		{ 3, 125, 2, 70, false, 0, 0 },
		{ 0, 125, 1, 48, false, 0, 0 },
		{ 1, 40, 1, 48, false, 0, 0 },
		{ 2, 125, 2, 12, true, GP_HSA_NO_SLOT, GP_HSA_NO_SLOT },
	};

	(void)state;
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct gp_hsa_layout layout = { 0 };

		assert_int_equal(gp_hsa_layout(rows[i].core_major, GP_HSA_TABLE_SIZE(rows[i].core_count),
					       rows[i].ext_major, GP_HSA_TABLE_SIZE(rows[i].ext_count), &layout),
				 rows[i].known);
		if (!rows[i].known)
			continue;
		assert_int_equal(layout.store_relaxed, 41);
		assert_int_equal(layout.store_release, 42);
		assert_int_equal(layout.copy, rows[i].copy);
		assert_int_equal(layout.copy_on, rows[i].copy_on);
	}
}

/* A runtime of our own. */
static union {
	struct gp_hsa_table table;
	uint64_t words[2 + 125];
} core;
static union {
	struct gp_hsa_table table;
	uint64_t words[2 + 60];
} ext;
static struct gp_hsa_root root = { { 1, sizeof(struct gp_hsa_root), 0, 0 }, &core.table, &ext.table };
static uint64_t stored_signal;
static int64_t stored_value;
static uint32_t stores;

static void real_store(uint64_t signal, int64_t value)
{
	stored_signal = signal;
	stored_value = value;
	stores++;
}

static uint32_t real_system_info(uint32_t attribute, uint16_t *ret_value)
{
	*ret_value = 1;
	return attribute > 1u;
}

static void table_fill(uint32_t major)
{
	core.table.major = ext.table.major = major;
	core.table.minor = sizeof(core);
	ext.table.minor = sizeof(ext);
	for (uint32_t i = 0; i < 125u; i++)
		core.table.functions[i] = (void *)(uintptr_t)(1000u + i);
	for (uint32_t i = 0; i < 60u; i++)
		ext.table.functions[i] = (void *)(uintptr_t)(2000u + i);
	core.table.functions[2] = real_system_info;
	core.table.functions[41] = core.table.functions[42] = real_store;
}

static uint32_t changed(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < 125u; i++)
		count += i != 2u && i != 41u && i != 42u && core.table.functions[i] != (void *)(uintptr_t)(1000u + i);
	for (uint32_t i = 0; i < 60u; i++)
		count += ext.table.functions[i] != (void *)(uintptr_t)(2000u + i);
	return count;
}

/* Only the described slots change, an unknown major changes none, and unloading puts everything back. */
static void test_hooks(void **state)
{
	(void)state;
	table_fill(9);
	assert_true(OnLoad(&root, 1, 0, NULL));
	assert_int_equal(changed(), 0);
	assert_ptr_equal(core.table.functions[41], real_store);
	table_fill(1);
	assert_true(OnLoad(&root, 1, 0, NULL));
	assert_true(OnLoad(&root, 1, 0, NULL)); /* once more: nothing calls itself */
	assert_int_equal(changed(), 5);         /* two waits, two copies, a queue */
	assert_ptr_not_equal(core.table.functions[41], real_store);
	OnUnload();
	assert_int_equal(changed(), 0);
	assert_ptr_equal(core.table.functions[41], real_store);
	assert_ptr_equal(core.table.functions[42], real_store);
}

struct signal {
	int64_t kind, value;
	uint64_t words[4], queue;
};

/* A doorbell is counted and rung; a user's signal passes; a kept one is rung when the gate opens, once, with the last
 * value. */
static void test_doorbells(void **state)
{
	static uint64_t queue[64]; /* amd_queue_t: write index at 56 */
	struct signal doorbell = { .kind = -1, .queue = (uintptr_t)queue },
		      user = { .kind = 1, .queue = (uintptr_t)queue };
	void (*store)(uint64_t, int64_t);
	struct gp_slot *slot;

	(void)state;
	table_fill(2);
	assert_true(OnLoad(&root, 1, 0, NULL));
	memcpy(&store, &core.table.functions[42], sizeof(store));
	assert_int_equal(gp_page_reserve(), 0);
	slot = gp_slot_add((uintptr_t)queue);
	stores = 0;
	store((uintptr_t)&user, 5);
	assert_int_equal(stores, 1);
	assert_int_equal(gp_page_now->queues[0].doorbell, 0);
	queue[7] = 3;
	store((uintptr_t)&doorbell, 1);
	assert_true(slot->seen && stores == 2 && stored_value == 1);
	assert_int_equal(gp_page_now->queues[0].doorbell, 2);
	store((uintptr_t)&doorbell, 70); /* beyond what was reserved */
	assert_int_equal(gp_page_now->queues[0].doorbell, 3);
	__atomic_fetch_or(&gp_slot_doorbell(slot)->flags, GP_DOORBELL_WITHHELD, __ATOMIC_SEQ_CST);
	queue[7] = 6;
	stores = 0;
	store((uintptr_t)&doorbell, 5);
	store((uintptr_t)&doorbell, 4);
	assert_int_equal(stores, 0);
	assert_int_equal(gp_page_now->queues[0].doorbell, 6);
	gp_gate_deliver();
	assert_int_equal(stores, 0);
	__atomic_fetch_and(&gp_slot_doorbell(slot)->flags, ~GP_DOORBELL_WITHHELD, __ATOMIC_SEQ_CST);
	gp_gate_deliver();
	assert_true(stores == 1 && stored_value == 5 && stored_signal == (uintptr_t)&doorbell);
	gp_gate_deliver();
	assert_int_equal(stores, 1);
	OnUnload();
}

static uint64_t made[64];

static uint32_t real_queue_create(uint64_t agent, uint32_t size, uint32_t type, void *callback, void *data,
				  uint32_t private_size, uint32_t group_size, void **ret_queue)
{
	(void)agent, (void)type, (void)callback, (void)data, (void)private_size, (void)group_size;
	*ret_queue = made;
	return size ? 0 : 1;
}

/* What the application makes itself may be rung by the GPU: it is never watched. The runtime's own queues are. */
static void test_queue_create(void **state)
{
	uint32_t (*create)(uint64_t, uint32_t, uint32_t, void *, void *, uint32_t, uint32_t, void **);
	struct gp_slot *slot, *other;
	void *queue = NULL;

	(void)state;
	table_fill(2);
	memcpy(&core.table.functions[7], &(void *){ (void *)(uintptr_t)real_queue_create }, sizeof(void *));
	assert_true(OnLoad(&root, 1, 0, NULL));
	memcpy(&create, &core.table.functions[7], sizeof(create));
	assert_int_equal(gp_page_reserve(), 0);
	slot = gp_slot_add((uintptr_t)made);
	other = gp_slot_add((uintptr_t)made + 64);
	assert_int_equal(create(1, 0, 0, NULL, NULL, 0, 0, &queue), 1);
	assert_false(slot->unwatchable);
	assert_int_equal(create(1, 64, 0, NULL, NULL, 0, 0, &queue), 0);
	assert_ptr_equal(queue, made);
	assert_true(slot->unwatchable && !other->unwatchable);
	OnUnload();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_layouts), cmocka_unit_test(test_hooks),
					    cmocka_unit_test(test_doorbells), cmocka_unit_test(test_queue_create) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
