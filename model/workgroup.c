/* SPDX-License-Identifier: MIT */
/*
 * The workgroup engine: who holds which share of the compute units, and until when. Owns the space of the device and
 * the life of each workgroup; every one completes exactly once, whatever stops it in between. Knows nothing of pipes,
 * processes or slices.
 *
 * Workgroups of a kernel that end together are one cohort. While only one kernel wants space (solo), each of its
 * cohorts is replaced by an equal one as it ends, so its rounds are a division, not a loop: events grow with
 * preemptions and with contention, not with the grid. Under contention each cohort's end is an event and the space is
 * divided (arbitration).
 *
 * Known weaknesses: space is one pool per device, not per CU, so fragmentation across CUs is not seen; beyond
 * GPU_COHORT_MAX cohorts the two nearest are merged to the later end, which delays some workgroups by the gap between
 * the two. Three kernels that contend without a pause run 0.8 % slower than they should; with five a queue may hold its
 * places twice as long. Each queue counts its delays (delay_ns).
 */
#include <string.h>
#include "model/gpu_internal.h"

uint32_t gpu_occupancy(const struct gp_desc *desc, const struct gp_gpu_kernel *kernel)
{
	uint64_t vgprs = (kernel->vgprs + 7u) / 8u * 8u;
	uint64_t limit = (uint64_t)gp_desc_get(desc, GP_DESC_WAVES_PER_CU) / kernel->waves;
	uint64_t by_vgprs = (uint64_t)gp_desc_get(desc, GP_DESC_VGPR_SIZE) / (vgprs * GPU_LANE_SIZE * kernel->waves);

	if (by_vgprs < limit)
		limit = by_vgprs;
	if (kernel->lds_size) {
		uint64_t by_lds = (uint64_t)gp_desc_get(desc, GP_DESC_LDS_SIZE) / kernel->lds_size;

		if (by_lds < limit)
			limit = by_lds;
	}
	return (uint32_t)limit;
}

uint32_t gp_gpu_capacity(const struct gp_desc *desc, const struct gp_gpu_kernel *kernel)
{
	if (!kernel->waves || !kernel->vgprs)
		return 0;
	return gpu_occupancy(desc, kernel) * (uint32_t)gp_desc_get(desc, GP_DESC_CU_COUNT);
}

/*
 * A mask of so many CUs: bit b belongs to XCC b mod n. Workgroups are dealt to the XCCs in turn without regard to how
 * many CUs each has left, so the XCC with the fewest sets the pace. Inside an XCC the dispatcher goes round its SEs and
 * skips full ones: dealing statically over SEs as well predicts 67 queries/s at 60 of 80 CUs where 79 were measured,
 * this predicts 77.5.
 */
uint32_t gpu_mask_cus(const struct gp_desc *desc, uint32_t cu_count)
{
	uint32_t all = (uint32_t)gp_desc_get(desc, GP_DESC_CU_COUNT),
		 xccs = (uint32_t)gp_desc_get(desc, GP_DESC_XCC_COUNT);

	if (!cu_count || cu_count >= all)
		return all;
	return cu_count < xccs ? cu_count : cu_count / xccs * xccs;
}

void gpu_workgroup_init(struct gpu_dispatch *dispatch)
{
	const struct gp_desc *desc = dispatch->queue->gpu->desc;
	const struct gp_gpu_kernel *kernel = &dispatch->packet.kernel;
	uint32_t occupancy = gpu_occupancy(desc, kernel);
	uint64_t waves_per_cu = (uint64_t)gp_desc_get(desc, GP_DESC_WAVES_PER_CU);
	uint64_t wave_size = (kernel->vgprs + 7u) / 8u * 8u * GPU_LANE_SIZE;

	GPU_ASSERT(occupancy);
	/* Rounded down, so that the device holds exactly occupancy x CUs; what that leaves is less than any workgroup.
	 */
	dispatch->share = GPU_CU_UNITS / occupancy;
	dispatch->slots = occupancy * dispatch->queue->mask_cus;
	wave_size +=
		(uint64_t)(gp_desc_get(desc, GP_DESC_SGPR_SIZE) + gp_desc_get(desc, GP_DESC_HWREG_SIZE)) / waves_per_cu;
	dispatch->save_size = wave_size * kernel->waves + kernel->lds_size;
	dispatch->fresh = kernel->workgroups;
	dispatch->queue->undispatched++;
}

/* The earlier of the two nearest ends moves to the later one: nothing ever ends before its time. */
static void workgroup_merge(struct gpu_dispatch *dispatch, struct gpu_cohorts *cohorts)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i + 1 < cohorts->count; i++)
		if (cohorts->items[i + 1].at_ns - cohorts->items[i].at_ns <
		    cohorts->items[best + 1].at_ns - cohorts->items[best].at_ns)
			best = i;
	dispatch->queue->delay_sum += (gpu_u128)cohorts->items[best].count * dispatch->share *
				      (cohorts->items[best + 1].at_ns - cohorts->items[best].at_ns);
	cohorts->items[best + 1].count += cohorts->items[best].count;
	memmove(&cohorts->items[best], &cohorts->items[best + 1],
		(cohorts->count - best - 1u) * sizeof(cohorts->items[0]));
	cohorts->count--;
}

static void workgroup_insert(struct gpu_dispatch *dispatch, struct gpu_cohorts *cohorts, uint64_t at_ns, uint32_t count)
{
	uint32_t i = cohorts->count;

	while (i && cohorts->items[i - 1].at_ns > at_ns)
		i--;
	if (i && cohorts->items[i - 1].at_ns == at_ns) {
		cohorts->items[i - 1].count += count;
		return;
	}
	memmove(&cohorts->items[i + 1], &cohorts->items[i], (cohorts->count - i) * sizeof(cohorts->items[0]));
	cohorts->items[i] = (struct gpu_cohort){ .at_ns = at_ns, .count = count };
	if (++cohorts->count > GPU_COHORT_MAX)
		workgroup_merge(dispatch, cohorts);
}

static void workgroup_pop(struct gpu_cohorts *cohorts)
{
	cohorts->count--;
	memmove(&cohorts->items[0], &cohorts->items[1], cohorts->count * sizeof(cohorts->items[0]));
}

/* Accounts the space held since the last change. While the device is halted nothing runs and nothing is charged. */
static void workgroup_account(struct gpu_dispatch *dispatch)
{
	struct gp_gpu *gpu = dispatch->queue->gpu;

	if (gpu->halt == GPU_RUNNING)
		dispatch->queue->unit_sum +=
			(gpu_u128)dispatch->inflight * dispatch->share * (gpu->now_ns - dispatch->since_ns);
	dispatch->since_ns = gpu->now_ns;
}

static void workgroup_set_inflight(struct gpu_dispatch *dispatch, uint32_t inflight)
{
	struct gp_gpu *gpu = dispatch->queue->gpu;

	workgroup_account(dispatch);
	gpu->used = gpu->used - (uint64_t)dispatch->inflight * dispatch->share + (uint64_t)inflight * dispatch->share;
	gpu->resident_size =
		gpu->resident_size - dispatch->inflight * dispatch->save_size + inflight * dispatch->save_size;
	if (inflight < dispatch->inflight)
		gpu->space_changed = true;
	if (!dispatch->inflight && inflight) {
		gpu_list_add(&gpu->running, &dispatch->running_link);
		if (gpu->halt == GPU_RUNNING)
			gpu_queue_busy_begin(dispatch->queue);
	} else if (dispatch->inflight && !inflight) {
		gpu_list_remove(&dispatch->running_link);
		if (gpu->halt == GPU_RUNNING)
			gpu_queue_busy_end(dispatch->queue);
	}
	dispatch->inflight = inflight;
}

/* When the last fresh workgroup of a solo kernel will be dispatched. */
static uint64_t workgroup_exhausted_ns(const struct gpu_dispatch *dispatch)
{
	uint64_t rounds = (dispatch->fresh - 1u) / dispatch->inflight;
	uint32_t rest = dispatch->fresh - (uint32_t)rounds * dispatch->inflight, i = 0;

	while (dispatch->run.items[i].count < rest)
		rest -= dispatch->run.items[i++].count;
	if (rounds && dispatch->packet.kernel.workgroup_ns > GP_GPU_NEVER_NS / 4u / rounds)
		return GP_GPU_NEVER_NS - 1u;
	return gpu_add_ns(dispatch->run.items[i].at_ns, rounds * dispatch->packet.kernel.workgroup_ns);
}

static void workgroup_arm(struct gpu_dispatch *dispatch)
{
	struct gp_gpu *gpu = dispatch->queue->gpu;

	if (!dispatch->run.count || gpu->halt != GPU_RUNNING)
		gpu_timer_cancel(gpu, &dispatch->timer);
	else if (gpu->solo == dispatch)
		gpu_timer_arm(gpu, &dispatch->timer, workgroup_exhausted_ns(dispatch));
	else
		gpu_timer_arm(gpu, &dispatch->timer, dispatch->run.items[0].at_ns);
}

static void workgroup_none_fresh(struct gpu_dispatch *dispatch)
{
	dispatch->dispatching = false;
	dispatch->queue->undispatched--;
	gpu_queue_mark(dispatch->queue);
	gpu_workgroup_update(dispatch);
}

/*
 * Counts the rounds of a solo kernel up to now. Until its last fresh workgroup is dispatched each cohort is replaced by
 * an equal one, so inflight is constant and whole rounds are skipped at once.
 */
static uint32_t workgroup_rounds(struct gpu_dispatch *dispatch, uint64_t now_ns)
{
	const uint64_t workgroup_ns = dispatch->packet.kernel.workgroup_ns;
	struct gpu_cohorts *run = &dispatch->run;
	uint64_t last_ns = run->items[run->count - 1].at_ns, done = 0;
	uint32_t gone = 0;

	if (now_ns >= last_ns) {
		uint64_t rounds = (now_ns - last_ns) / workgroup_ns + 1u;

		if (rounds > dispatch->fresh / dispatch->inflight)
			rounds = dispatch->fresh / dispatch->inflight;
		for (uint32_t i = 0; i < run->count; i++)
			run->items[i].at_ns += rounds * workgroup_ns;
		done = rounds * dispatch->inflight;
		dispatch->fresh -= (uint32_t)done;
	}
	while (run->count && run->items[0].at_ns <= now_ns) {
		struct gpu_cohort ended = run->items[0];
		uint32_t count = ended.count < dispatch->fresh ? ended.count : dispatch->fresh;

		workgroup_pop(run);
		if (count)
			workgroup_insert(dispatch, run, gpu_add_ns(ended.at_ns, workgroup_ns), count);
		dispatch->fresh -= count;
		gone += ended.count - count;
		done += ended.count;
	}
	dispatch->done += (uint32_t)done;
	dispatch->queue->workgroups_run += done;
	return gone;
}

static void workgroup_sync(struct gpu_dispatch *dispatch)
{
	struct gp_gpu *gpu = dispatch->queue->gpu;
	uint32_t gone;

	if (gpu->solo != dispatch)
		return;
	gpu->solo = NULL;
	gone = workgroup_rounds(dispatch, gpu->now_ns);
	if (gone)
		workgroup_set_inflight(dispatch, dispatch->inflight - gone);
	if (!dispatch->fresh)
		workgroup_none_fresh(dispatch);
	if (dispatch->done == dispatch->packet.kernel.workgroups)
		gpu_dispatch_finish(dispatch);
	workgroup_arm(dispatch);
}

uint32_t gpu_workgroup_done(const struct gpu_dispatch *dispatch)
{
	const struct gp_gpu *gpu = dispatch->queue->gpu;
	struct gpu_queue queue;
	struct gpu_dispatch copy;

	if (gpu->solo != dispatch)
		return dispatch->done;
	queue = *dispatch->queue;
	copy = *dispatch;
	copy.queue = &queue;
	(void)workgroup_rounds(&copy, gpu->now_ns);
	return copy.done;
}

void gpu_workgroup_update(struct gpu_dispatch *dispatch)
{
	struct gp_gpu *gpu = dispatch->queue->gpu;
	bool wants = gpu_queue_runs(dispatch->queue) &&
		     (dispatch->saved_count || (dispatch->fresh && dispatch->dispatching));

	if (wants == dispatch->wants)
		return;
	if (!wants)
		workgroup_sync(dispatch);
	/* Counting its rounds may have ended its wish already. */
	if (wants == dispatch->wants)
		return;
	dispatch->wants = wants;
	if (wants) {
		gpu_list_add(&gpu->want[dispatch->queue->priority_class], &dispatch->want_link);
		gpu->want_count++;
	} else {
		gpu_list_remove(&dispatch->want_link);
		gpu->want_count--;
	}
	gpu->space_changed = true;
}

void gpu_workgroup_expire(struct gpu_dispatch *dispatch)
{
	struct gp_gpu *gpu = dispatch->queue->gpu;
	bool spins =
		dispatch->packet.kernel.spin_signal && gpu_signal_value(gpu, dispatch->packet.kernel.spin_signal) > 0;
	uint32_t ended = 0;

	if (gpu->solo == dispatch) {
		workgroup_sync(dispatch);
		gpu->space_changed = true;
		return;
	}
	while (dispatch->run.count && dispatch->run.items[0].at_ns <= gpu->now_ns) {
		ended += dispatch->run.items[0].count;
		workgroup_pop(&dispatch->run);
	}
	if (spins) {
		dispatch->spinning += ended;
		if (!dispatch->spin.signal)
			gpu_wait_add(gpu, &dispatch->spin, dispatch->packet.kernel.spin_signal);
	} else {
		dispatch->done += ended;
		dispatch->queue->workgroups_run += ended;
		workgroup_set_inflight(dispatch, dispatch->inflight - ended);
		if (dispatch->done == dispatch->packet.kernel.workgroups)
			gpu_dispatch_finish(dispatch);
	}
	workgroup_arm(dispatch);
}

void gpu_workgroup_release(struct gpu_dispatch *dispatch)
{
	uint32_t ended = dispatch->spinning;

	/* Halted or set aside they cannot look at the signal; they will when they run again. */
	if (!ended || dispatch->queue->gpu->halt != GPU_RUNNING)
		return;
	dispatch->spinning = 0;
	dispatch->done += ended;
	dispatch->queue->workgroups_run += ended;
	workgroup_set_inflight(dispatch, dispatch->inflight - ended);
	if (dispatch->done == dispatch->packet.kernel.workgroups)
		gpu_dispatch_finish(dispatch);
}

static void workgroup_clear(struct gpu_dispatch *dispatch)
{
	dispatch->run.count = 0;
	dispatch->spinning = 0;
	gpu_wait_remove(&dispatch->spin);
	workgroup_set_inflight(dispatch, 0);
	gpu_timer_cancel(dispatch->queue->gpu, &dispatch->timer);
}

void gpu_workgroup_stop(struct gpu_dispatch *dispatch)
{
	struct gp_gpu *gpu = dispatch->queue->gpu;
	bool halted = gpu->halt != GPU_RUNNING;

	workgroup_sync(dispatch);
	if (dispatch->finished)
		return;
	dispatch->dispatching = false;
	if (dispatch->inflight) {
		/* Halted cohorts carry the time they still need, running ones the time they end. */
		for (uint32_t i = 0; i < dispatch->run.count; i++)
			workgroup_insert(dispatch, &dispatch->saved,
					 dispatch->run.items[i].at_ns - (halted ? 0 : gpu->now_ns),
					 dispatch->run.items[i].count);
		if (dispatch->spinning)
			workgroup_insert(dispatch, &dispatch->saved, 0, dispatch->spinning);
		dispatch->saved_count += dispatch->inflight;
		workgroup_clear(dispatch);
		dispatch->active = false;
		gpu_emit(gpu, GP_GPU_EVENT_STOP, dispatch->queue, dispatch, dispatch->done, 0);
	}
	gpu_workgroup_update(dispatch);
}

void gpu_workgroup_retune(struct gpu_dispatch *dispatch, uint32_t priority_class)
{
	struct gpu_queue *queue = dispatch->queue;
	struct gp_gpu *gpu = queue->gpu;

	GPU_ASSERT(!dispatch->inflight && gpu->solo != dispatch);
	dispatch->slots = gpu_occupancy(gpu->desc, &dispatch->packet.kernel) * queue->mask_cus;
	if (dispatch->wants && priority_class != queue->priority_class) {
		gpu_list_remove(&dispatch->want_link);
		gpu_list_add(&gpu->want[queue->priority_class], &dispatch->want_link);
	}
	gpu->space_changed = true;
}

void gpu_workgroup_drop(struct gpu_dispatch *dispatch)
{
	struct gp_gpu *gpu = dispatch->queue->gpu;

	workgroup_sync(dispatch);
	if (dispatch->fresh)
		dispatch->queue->undispatched--;
	dispatch->fresh = dispatch->saved_count = dispatch->saved.count = 0;
	workgroup_clear(dispatch);
	if (dispatch->wants) {
		dispatch->wants = false;
		gpu_list_remove(&dispatch->want_link);
		gpu->want_count--;
	}
}

static uint64_t workgroup_spent(const struct gpu_cohorts *cohorts, uint64_t workgroup_ns, uint64_t now_ns)
{
	uint64_t spent = 0;

	for (uint32_t i = 0; i < cohorts->count; i++) {
		uint64_t left = cohorts->items[i].at_ns - now_ns;

		spent += (left < workgroup_ns ? workgroup_ns - left : 0) * cohorts->items[i].count;
	}
	return spent;
}

uint64_t gpu_workgroup_kill(struct gpu_dispatch *dispatch)
{
	const uint64_t workgroup_ns = dispatch->packet.kernel.workgroup_ns;
	struct gp_gpu *gpu = dispatch->queue->gpu;
	uint64_t wasted;

	workgroup_sync(dispatch);
	if (dispatch->finished)
		return 0;
	wasted = ((uint64_t)dispatch->done + dispatch->spinning) * workgroup_ns;
	wasted += workgroup_spent(&dispatch->run, workgroup_ns, gpu->halt == GPU_RUNNING ? gpu->now_ns : 0);
	wasted += workgroup_spent(&dispatch->saved, workgroup_ns, 0);
	workgroup_clear(dispatch);
	if (!dispatch->fresh)
		dispatch->queue->undispatched++;
	dispatch->queue->workgroups_run -= dispatch->done;
	dispatch->done = dispatch->saved_count = dispatch->saved.count = 0;
	dispatch->fresh = dispatch->packet.kernel.workgroups;
	dispatch->active = dispatch->dispatching = false;
	gpu_workgroup_update(dispatch);
	return wasted;
}

void gpu_workgroup_freeze(struct gp_gpu *gpu)
{
	if (gpu->solo)
		workgroup_sync(gpu->solo);
	for (struct gpu_list *node = gpu->running.next; node != &gpu->running; node = node->next) {
		struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, running_link);

		workgroup_account(dispatch);
		gpu_queue_busy_end(dispatch->queue);
		gpu_timer_cancel(gpu, &dispatch->timer);
		for (uint32_t i = 0; i < dispatch->run.count; i++)
			dispatch->run.items[i].at_ns -= gpu->now_ns;
	}
}

void gpu_workgroup_thaw(struct gp_gpu *gpu)
{
	struct gpu_list *node = gpu->running.next;

	while (node != &gpu->running) {
		struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, running_link);

		node = node->next;
		dispatch->since_ns = gpu->now_ns;
		gpu_queue_busy_begin(dispatch->queue);
		for (uint32_t i = 0; i < dispatch->run.count; i++)
			dispatch->run.items[i].at_ns = gpu_add_ns(dispatch->run.items[i].at_ns, gpu->now_ns);
		workgroup_arm(dispatch);
		if (dispatch->spinning && gpu_signal_value(gpu, dispatch->packet.kernel.spin_signal) <= 0)
			gpu_workgroup_release(dispatch);
		else if (dispatch->spinning && !dispatch->spin.signal)
			gpu_wait_add(gpu, &dispatch->spin, dispatch->packet.kernel.spin_signal);
	}
	gpu->space_changed = true;
}

/* Count workgroups more on the device: those set aside first, the nearest to their end before the others. */
static void workgroup_give(struct gpu_dispatch *dispatch, uint32_t count)
{
	struct gp_gpu *gpu = dispatch->queue->gpu;

	workgroup_set_inflight(dispatch, dispatch->inflight + count);
	if (!dispatch->active) {
		dispatch->active = true;
		gpu_emit(gpu, GP_GPU_EVENT_START, dispatch->queue, dispatch, dispatch->done, 0);
	}
	while (count && dispatch->saved.count) {
		struct gpu_cohort *first = &dispatch->saved.items[0];
		uint32_t part = first->count < count ? first->count : count;

		workgroup_insert(dispatch, &dispatch->run, gpu_add_ns(gpu->now_ns, first->at_ns), part);
		dispatch->saved_count -= part;
		count -= part;
		first->count -= part;
		if (!first->count)
			workgroup_pop(&dispatch->saved);
	}
	if (count) {
		workgroup_insert(dispatch, &dispatch->run,
				 gpu_add_ns(gpu->now_ns, dispatch->packet.kernel.workgroup_ns), count);
		dispatch->fresh -= count;
		if (!dispatch->fresh)
			workgroup_none_fresh(dispatch);
	}
	gpu_workgroup_update(dispatch);
	workgroup_arm(dispatch);
}

static uint32_t workgroup_room(const struct gpu_dispatch *dispatch)
{
	uint32_t wanted = dispatch->saved_count + (dispatch->dispatching ? dispatch->fresh : 0);
	uint32_t room = dispatch->slots - dispatch->inflight;

	return wanted < room ? wanted : room;
}

/* Whole rounds for everybody of one class who has room. False: nobody has. True with *ret_rounds 0: space is short. */
static bool workgroup_deal(struct gp_gpu *gpu, struct gpu_list *want, uint32_t *ret_rounds)
{
	uint64_t round_units = 0, rounds;
	uint32_t room_min = UINT32_MAX;
	struct gpu_list *node, *next;

	for (node = want->next; node != want; node = node->next) {
		struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, want_link);
		uint32_t room = workgroup_room(dispatch);

		if (!room)
			continue;
		round_units += dispatch->share;
		if (room < room_min)
			room_min = room;
	}
	if (!round_units)
		return false;
	rounds = (gpu->capacity - gpu->used) / round_units;
	if (rounds > room_min)
		rounds = room_min;
	*ret_rounds = (uint32_t)rounds;
	for (node = want->next; rounds && node != want; node = next) {
		struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, want_link);

		next = node->next;
		if (workgroup_room(dispatch))
			workgroup_give(dispatch, (uint32_t)rounds);
	}
	return true;
}

/* Less than a round is left: one each, in turn. Whoever does not fit keeps its turn and the space, or it might starve.
 */
static void workgroup_deal_rest(struct gp_gpu *gpu, struct gpu_list *want)
{
	struct gpu_list *node = want->next;

	while (node != want) {
		struct gpu_dispatch *dispatch = gpu_container(node, struct gpu_dispatch, want_link);
		bool has_room = workgroup_room(dispatch) != 0;

		if (has_room && dispatch->share > gpu->capacity - gpu->used)
			return;
		node = node->next;
		if (!has_room)
			continue;
		/* It had its turn: to the end of the list, where the next round begins again. */
		gpu_list_remove(&dispatch->want_link);
		gpu_list_add(want, &dispatch->want_link);
		workgroup_give(dispatch, 1);
	}
}

void gpu_workgroup_arbitrate(struct gp_gpu *gpu)
{
	gpu->space_changed = false;
	if (gpu->halt != GPU_RUNNING)
		return;
	if (gpu->solo)
		workgroup_sync(gpu->solo);
	for (uint32_t i = GPU_CLASS_COUNT; i-- > 0;) {
		uint32_t rounds = 0;

		while (workgroup_deal(gpu, &gpu->want[i], &rounds)) {
			if (rounds)
				continue;
			workgroup_deal_rest(gpu, &gpu->want[i]);
			return;
		}
	}
}

void gpu_workgroup_choose_solo(struct gp_gpu *gpu)
{
	struct gpu_dispatch *dispatch;
	uint32_t i = 0;

	if (gpu->solo || gpu->want_count != 1 || gpu->halt != GPU_RUNNING)
		return;
	while (gpu_list_empty(&gpu->want[i]))
		i++;
	dispatch = gpu_container(gpu->want[i].next, struct gpu_dispatch, want_link);
	if (dispatch->saved_count || !dispatch->inflight || dispatch->packet.kernel.spin_signal)
		return;
	gpu->solo = dispatch;
	workgroup_arm(dispatch);
}
