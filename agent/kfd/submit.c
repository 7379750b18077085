/* SPDX-License-Identifier: MIT */
/* Mechanism submit: the agent withholds doorbells while the gate is closed. Running work goes on; no new work starts.
 */
#include <errno.h>
#include "agent/kfd/kfd.h"

void gp_kfd_submit_change(struct gp_slot *const *slots, uint32_t count, bool open, int *results)
{
	for (uint32_t i = 0; i < count; i++) {
		struct gp_doorbell *doorbell = gp_slot_doorbell(slots[i]);

		results[i] = 0;
		if (open)
			__atomic_fetch_and(&doorbell->flags, ~GP_DOORBELL_WITHHELD, __ATOMIC_SEQ_CST);
		else if (slots[i]->seen && doorbell->handle)
			__atomic_fetch_or(&doorbell->flags, GP_DOORBELL_WITHHELD, __ATOMIC_SEQ_CST);
		else
			results[i] = -EOPNOTSUPP; /* the agent does not observe its doorbells */
	}
}
