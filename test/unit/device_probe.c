/* SPDX-License-Identifier: MIT */
/* Which mechanism a machine with several GPUs gets: one that works on each of them, in whatever order they come. The
 * driver is this test. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "device/kfd/debugger.h"
#include "device/kfd/gate.h"
#include "device/kfd/kfd.h"

#define GPUS 3u

static uint32_t gated; /* bits of the GPUs on which the batch gate works */

int __wrap_gp_kfd_read_number(const char *path, uint64_t *ret_value); // NOLINT: the linker's names
bool __wrap_gp_kfd_gate_try(const struct gp_backend *backend, uint32_t gpu_id, char *why, size_t why_size); // NOLINT
bool __wrap_gp_kfd_debugger_try(struct gp_backend *backend, char *why, size_t why_size);                    // NOLINT

int __wrap_gp_kfd_read_number(const char *path, uint64_t *ret_value) // NOLINT
{
	(void)path, (void)ret_value;
	return -ENOENT;
}

bool __wrap_gp_kfd_gate_try(const struct gp_backend *backend, uint32_t gpu_id, char *why, size_t why_size) // NOLINT
{
	(void)backend;
	snprintf(why, why_size, "tried");
	return gated & 1u << gpu_id;
}

bool __wrap_gp_kfd_debugger_try(struct gp_backend *backend, char *why, size_t why_size) // NOLINT
{
	(void)backend;
	snprintf(why, why_size, "tried");
	return true;
}

/* refused: bits of GPUs that are not scheduled. */
static struct gp_backend probe(uint32_t works, uint32_t refused, struct gp_device_info infos[GPUS])
{
	struct gp_backend backend = { .version_major = 1, .version_minor = 18 };

	gated = works;
	for (uint32_t i = 0; i < GPUS; i++)
		infos[i] = (struct gp_device_info){ .gpu_id = i, .is_refused = refused & 1u << i, .stops_all = true };
	gp_kfd_probe(&backend, infos, GPUS);
	return backend;
}

/* For every set of GPUs on which the batch gate works. */
static void test_all(void **state)
{
	struct gp_device_info infos[GPUS];

	(void)state;
	for (uint32_t works = 0; works < 1u << GPUS; works++) {
		bool everywhere = works == (1u << GPUS) - 1u;
		struct gp_backend backend = probe(works, 0, infos);

		assert_int_equal(!!(backend.usable & GP_MECHANISM_BIT(GP_MECHANISM_KERNEL)), everywhere);
		assert_true(backend.usable & GP_MECHANISM_BIT(GP_MECHANISM_DEBUGGER));
		for (uint32_t i = 0; i < GPUS; i++) {
			const struct gp_device_finding *last = &infos[i].findings[infos[i].finding_count - 1u];

			assert_int_equal(infos[i].mechanism, everywhere ? GP_MECHANISM_KERNEL : GP_MECHANISM_DEBUGGER);
			assert_int_equal(!!strstr(last->text, "another GPU"), !everywhere && works & 1u << i);
			assert_int_equal(infos[i].unit, gp_device_unit(infos[i].mechanism));
		}
	}
}

/* A GPU that is not scheduled takes nothing away from the others. */
static void test_refused(void **state)
{
	struct gp_device_info infos[GPUS];

	(void)state;
	for (uint32_t refused = 0; refused < GPUS; refused++) {
		struct gp_backend backend = probe(~(1u << refused), 1u << refused, infos);

		assert_true(backend.usable & GP_MECHANISM_BIT(GP_MECHANISM_KERNEL));
		for (uint32_t i = 0; i < GPUS; i++)
			assert_int_equal(infos[i].mechanism, i == refused ? GP_MECHANISM_NONE : GP_MECHANISM_KERNEL);
	}
	assert_int_equal(probe(~0u, (1u << GPUS) - 1u, infos).usable, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all), cmocka_unit_test(test_refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
