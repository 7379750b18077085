/* SPDX-License-Identifier: MIT */
/* How waves reach memory: the ranges that were found since the last flush, and piecewise access where one is not
 * enough. Addresses are the program's. */
#include <errno.h>
#include "vgpu/isa/internal.h"

void gp_isa_bus_flush(struct gp_isa_bus *bus)
{
	bus->range_count = bus->last = bus->next = 0;
}

static bool bus_has(const struct gp_isa_range *range, uint64_t va, uint64_t size)
{
	return va - range->base < range->size && range->size - (va - range->base) >= size;
}

static const struct gp_isa_range *bus_find(struct gp_isa_bus *bus, uint64_t va, uint64_t size)
{
	struct gp_isa_range found;
	uint32_t at;

	if (bus->range_count && bus_has(&bus->ranges[bus->last], va, size))
		return &bus->ranges[bus->last];
	for (uint32_t i = 0; i < bus->range_count; i++)
		if (bus_has(&bus->ranges[i], va, size)) {
			bus->last = i;
			return &bus->ranges[i];
		}
	if (bus->find(bus->context, va, &found) < 0)
		return NULL;
	at = bus->range_count < GP_ISA_TLB_SIZE ? bus->range_count++ : bus->next++ % GP_ISA_TLB_SIZE;
	bus->ranges[at] = found;
	bus->last = at;
	return bus_has(&found, va, size) ? &bus->ranges[at] : NULL;
}

uint8_t *gp_isa_at(struct gp_isa_bus *bus, uint64_t va, uint64_t size, bool write)
{
	const struct gp_isa_range *range = bus_find(bus, va, size);

	if (!range) {
		bus->fault = GP_ISA_FAULT_UNMAPPED;
		bus->fault_va = va;
		return NULL;
	}
	if (write && !range->writable) {
		bus->fault = GP_ISA_FAULT_READ_ONLY;
		bus->fault_va = va;
		return NULL;
	}
	return range->host + (va - range->base);
}

/* Piece by piece, as far as one range reaches. */
static int bus_copy(struct gp_isa_bus *bus, uint64_t va, uint8_t *data, uint32_t size, bool write)
{
	while (size) {
		uint8_t *host = gp_isa_at(bus, va, 1, write);
		const struct gp_isa_range *range = &bus->ranges[bus->last];
		uint64_t left;
		uint32_t step;

		if (!host)
			return -EFAULT;
		left = range->size - (va - range->base);
		step = left < size ? (uint32_t)left : size;
		if (write)
			memcpy(host, data, step);
		else
			memcpy(data, host, step);
		data += step;
		va += step;
		size -= step;
	}
	return 0;
}

int gp_isa_bus_read(struct gp_isa_bus *bus, uint64_t va, void *ret_data, uint32_t size)
{
	return bus_copy(bus, va, ret_data, size, false);
}

int gp_isa_bus_write(struct gp_isa_bus *bus, uint64_t va, const void *data, uint32_t size)
{
	return bus_copy(bus, va, (uint8_t *)(uintptr_t)data, size, true);
}
