/* SPDX-License-Identifier: MIT */
/*
 * The AQL packet processor: takes packets from a ring, gives the model their times, and does what they mean when the
 * model says so. The ring is the client's memory: a packet is copied once and judged as it was then.
 */
#include <errno.h>
#include <string.h>
#include "vgpu/kfd/event.h"
#include "vgpu/execute/execute.h"
#include "vgpu/node/memory.h"
#include "vgpu/node/process.h"
#include "vgpu/kfd/queue.h"
#include "vgpu/packet/work.h"

#define AQL_WAVE_SIZE 64u
#define AQL_GROUP_MAX 1024u
#define AQL_LDS_MAX   65536u
#define AQL_FAULT     UINT32_MAX /* not the packet's error: memory it needs is not there */
#define AQL_TURN_MAX  64u        /* packets of one queue in one turn, so that no queue starves the others of the loop */

static int aql_signal_complete(struct gp_vqueue *queue, uint64_t signal, uint64_t start_ticks, uint64_t end_ticks)
{
	struct gp_vproc *process = queue->process;
	struct gp_amd_signal copy;
	uint64_t id;

	if (!signal)
		return 0;
	if (gp_vm_read(process, queue->gpu, signal, &copy, sizeof(copy)) < 0)
		return -EFAULT;
	gp_vm_write(process, queue->gpu, signal + offsetof(struct gp_amd_signal, start), &start_ticks, 8);
	gp_vm_write(process, queue->gpu, signal + offsetof(struct gp_amd_signal, end), &end_ticks, 8);
	gp_vm_add(process, queue->gpu, signal + offsetof(struct gp_amd_signal, value), -1);
	if (!copy.mailbox)
		return 0;
	id = copy.event_id;
	if (gp_vm_write(process, queue->gpu, copy.mailbox, &id, sizeof(id)) < 0)
		return -EFAULT;
	gp_vevent_interrupt(process, copy.event_id);
	return 0;
}

static struct gp_vdispatch *aql_dispatch(struct gp_vqueue *queue, uint64_t index)
{
	struct gp_vdispatch *dispatch = &queue->window[index % GP_VQUEUE_WINDOW];

	return dispatch->used && dispatch->index == index ? dispatch : NULL;
}

static uint32_t aql_type(const union gp_aql_packet *packet)
{
	return packet->kernel.header & 0xffu;
}

/* Barrier packets. */

static int64_t aql_signal_value(struct gp_vqueue *queue, uint64_t signal)
{
	int64_t value = 0;

	/* A signal that is not memory is a fault, and the packet waits for ever. */
	if (gp_vm_read(queue->process, queue->gpu, signal + offsetof(struct gp_amd_signal, value), &value,
		       sizeof(value)) < 0) {
		if (!queue->error)
			gp_vqueue_fault(queue, queue->process->fault_va);
		return INT64_MAX;
	}
	return value;
}

static bool aql_value_met(struct gp_vqueue *queue, const struct gp_aql_barrier_value *packet)
{
	int64_t value = packet->signal ? aql_signal_value(queue, packet->signal) & packet->mask : packet->value;

	switch (packet->condition) {
	case 0: return value == packet->value;
	case 1: return value != packet->value;
	case 2: return value < packet->value;
	default: return value >= packet->value;
	}
}

static bool aql_barrier_met(struct gp_vqueue *queue, const struct gp_vdispatch *dispatch)
{
	const struct gp_aql_barrier *barrier = &dispatch->packet.barrier;
	uint32_t count = 0, met = 0;

	if (aql_type(&dispatch->packet) == GP_AQL_VENDOR)
		return aql_value_met(queue, &dispatch->packet.value);
	for (uint32_t i = 0; i < 5u; i++) {
		if (!barrier->deps[i])
			continue;
		count++;
		met += aql_signal_value(queue, barrier->deps[i]) == 0;
	}
	return aql_type(&dispatch->packet) == GP_AQL_BARRIER_OR ? !count || met : met == count;
}

/* Packets are processed in order: only the first barrier that is not over can be waiting. */
static bool aql_release_barrier(struct gp_vqueue *queue)
{
	for (uint64_t index = queue->read; index < queue->submitted; index++) {
		struct gp_vdispatch *dispatch = aql_dispatch(queue, index);

		if (!dispatch || dispatch->done || !dispatch->barrier_signal || dispatch->barrier_met)
			continue;
		if (!aql_barrier_met(queue, dispatch))
			return false;
		/* Removed only when the packet is over: the model may not have come to it yet, and would then wait for
		 * whoever got the same signal next. */
		gp_gpu_signal_set(queue->gpu->model, dispatch->barrier_signal, 0, gp_vnode_device_ns(queue->gpu->node));
		dispatch->barrier_met = true;
		return true;
	}
	return false;
}

static int aql_prepare_barrier(struct gp_vqueue *queue, struct gp_vdispatch *dispatch, struct gp_gpu_packet *ret_packet)
{
	ret_packet->type = GP_GPU_BARRIER_AND;
	if (aql_barrier_met(queue, dispatch))
		return 0;
	if (gp_gpu_signal_add(queue->gpu->model, 1, &dispatch->barrier_signal) < 0)
		return -ENOMEM;
	ret_packet->deps[0] = dispatch->barrier_signal;
	return 0;
}

/* Kernel packets: 0, or the error the packet processor reports. */

static uint32_t aql_check_kernel(const struct gp_aql_kernel *packet, struct gp_kernel_call *call,
				 uint64_t *ret_workgroups)
{
	uint32_t dimensions = packet->setup & 3u;
	uint64_t workgroups = 1, size = 1;

	if (!dimensions)
		return GP_AQL_ERROR_DIMENSION;
	for (uint32_t i = 0; i < 3u; i++) {
		uint32_t group = i < dimensions ? packet->workgroup_size[i] : 1u,
			 grid = i < dimensions ? packet->grid_size[i] : 1u;

		if (!group || !grid)
			return GP_AQL_ERROR_DIMENSION;
		call->workgroup_size[i] = group;
		call->grid_size[i] = grid;
		call->workgroups[i] = (grid - 1u) / group + 1u;
		size *= group;
		workgroups *= call->workgroups[i];
		if (size > AQL_GROUP_MAX)
			return GP_AQL_ERROR_GROUP_SIZE;
		if (workgroups > UINT32_MAX)
			return GP_AQL_ERROR_DIMENSION;
	}
	if (packet->group_size > AQL_LDS_MAX)
		return GP_AQL_ERROR_GROUP_MEMORY;
	*ret_workgroups = workgroups;
	return 0;
}

/* What computes the results: a body in C, or the kernel's own instructions. */
static uint32_t aql_prepare_work(struct gp_vqueue *queue, struct gp_vdispatch *dispatch,
				 const struct gp_gpu_kernel *kernel)
{
	int64_t execute = queue->process->node->params.values[GP_PARAM_EXECUTE];
	bool is_described = dispatch->kernel.is_described && execute < 2;
	int r;

	dispatch->has_body = dispatch->kernel.body && execute < 2;
	gp_vproc_note_kernel(queue->process, dispatch->kernel.fingerprint,
			     is_described ? GP_VPROC_DESCRIBED :
			     execute      ? GP_VPROC_EXECUTED :
					    GP_VPROC_IDLE);
	if (is_described || !execute)
		return 0;
	r = gp_execute_create(queue, dispatch, kernel, &dispatch->execution);
	if (r == -EINVAL || r == -ENOMEM) {
		gp_vproc_note_kernel(queue->process, dispatch->kernel.fingerprint, GP_VPROC_REFUSED);
		gp_vnode_log(queue->process->node, 0, "process %d: kernel %s is refused: %s", queue->process->pid,
			     dispatch->kernel.name,
			     r == -EINVAL ? "its descriptor asks for registers or waves that no workgroup can have" :
					    "there is no memory for its waves");
	}
	return r == 0 ? 0 : r == -EFAULT ? AQL_FAULT : GP_AQL_ERROR_CODE;
}

static uint32_t aql_prepare_kernel(struct gp_vqueue *queue, struct gp_vdispatch *dispatch,
				   struct gp_gpu_packet *ret_packet)
{
	const struct gp_aql_kernel *packet = &dispatch->packet.kernel;
	struct gp_kernel_call *call = &dispatch->kernel;
	uint64_t workgroups = 0;
	uint32_t error = aql_check_kernel(packet, call, &workgroups), size;

	if (error)
		return error;
	call->process = queue->process;
	call->gpu = queue->gpu;
	call->kernarg = packet->kernarg_address;
	if (!packet->kernel_object)
		return GP_AQL_ERROR_CODE;
	if (gp_kernels_recognise(queue->gpu, packet->kernel_object, call) < 0)
		return AQL_FAULT;
	size = call->workgroup_size[0] * call->workgroup_size[1] * call->workgroup_size[2];
	ret_packet->type = GP_GPU_KERNEL;
	ret_packet->kernel = (struct gp_gpu_kernel){
		.workgroups = (uint32_t)workgroups,
		.workgroup_ns = call->workgroup_ns,
		.waves = (size + AQL_WAVE_SIZE - 1u) / AQL_WAVE_SIZE,
		.vgprs = call->vgprs,
		.lds_size = packet->group_size,
	};
	if (!gp_gpu_capacity(queue->gpu->desc, &ret_packet->kernel))
		return GP_AQL_ERROR_VGPRS;
	dispatch->workgroups = (uint32_t)workgroups;
	return aql_prepare_work(queue, dispatch, &ret_packet->kernel);
}

static uint32_t aql_prepare(struct gp_vqueue *queue, struct gp_vdispatch *dispatch, struct gp_gpu_packet *ret_packet)
{
	*ret_packet = (struct gp_gpu_packet){
		.tag = dispatch->index,
		.barrier = dispatch->packet.kernel.header & GP_AQL_HEADER_BARRIER,
	};
	switch (aql_type(&dispatch->packet)) {
	case GP_AQL_KERNEL: return aql_prepare_kernel(queue, dispatch, ret_packet);
	case GP_AQL_BARRIER_AND:
	case GP_AQL_BARRIER_OR: return aql_prepare_barrier(queue, dispatch, ret_packet) < 0 ? GP_AQL_ERROR_FORMAT : 0;
	case GP_AQL_VENDOR:
		if (dispatch->packet.value.format == GP_AQL_AMD_BARRIER_VALUE)
			return aql_prepare_barrier(queue, dispatch, ret_packet) < 0 ? GP_AQL_ERROR_FORMAT : 0;
		/* A PM4 buffer: cache maintenance in ROCr's hands; there are no caches to maintain. */
		ret_packet->type = GP_GPU_BARRIER_AND;
		return dispatch->packet.value.format == GP_AQL_AMD_PM4_IB ? 0 : GP_AQL_ERROR_VENDOR;
	default: return GP_AQL_ERROR_FORMAT;
	}
}

/* Whether the runtime gave its scratch for one dispatch only: memory that a whole device's waves could not have. */
static bool aql_scratch_is_lent(struct gp_vqueue *queue)
{
	uint64_t control = queue->rptr_va - GP_AMD_QUEUE_READ_OFFSET;
	uint32_t properties = 0;

	return gp_vm_read(queue->process, queue->gpu, control + GP_AMD_QUEUE_PROPERTIES_OFFSET, &properties, 4) == 0 &&
	       properties & GP_AMD_QUEUE_SCRATCH_ONCE;
}

/* After that dispatch the runtime takes it back, and clears the property when it has: the next kernel waits for it. */
static void aql_scratch_return(struct gp_vqueue *queue)
{
	if (!queue->scratch_once || queue->scratch_returns || queue->read <= queue->scratch_index || queue->error)
		return;
	queue->scratch_returns = true;
	gp_vqueue_tell(queue, GP_AQL_SCRATCH_RETURNED);
}

static bool aql_scratch_is_back(struct gp_vqueue *queue)
{
	if (queue->scratch_once && queue->scratch_returns && !aql_scratch_is_lent(queue))
		queue->scratch_once = queue->scratch_returns = false;
	return !queue->scratch_once;
}

/*
 * A kernel that needs more private memory per lane than the queue's scratch has waits, at the head of its queue, until
 * the runtime has seen the request in the inactive signal, has put more into amd_queue_t, and sets the signal back.
 * True: it may go.
 */
static bool aql_has_scratch(struct gp_vqueue *queue, const struct gp_aql_kernel *packet)
{
	uint64_t control = queue->rptr_va - GP_AMD_QUEUE_READ_OFFSET, signal = 0;
	int64_t value = 0;
	uint32_t lane_size = 0;

	if (!packet->private_size || !aql_scratch_is_back(queue))
		return !packet->private_size;
	if (gp_vm_read(queue->process, queue->gpu, control + GP_AMD_QUEUE_INACTIVE_OFFSET, &signal, 8) < 0 || !signal ||
	    gp_vm_read(queue->process, queue->gpu, signal + offsetof(struct gp_amd_signal, value), &value, 8) < 0)
		return true;
	/* The signal first: the runtime writes the size before it sets the signal back. The other way round a request
	 * that was just met would be made again, and its handler would find the packet gone. */
	if (queue->scratch_asked && value)
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (gp_vm_read(queue->process, queue->gpu, control + GP_AMD_QUEUE_SCRATCH_OFFSET, &lane_size, 4) < 0)
		return true;
	if (lane_size >= packet->private_size) {
		queue->scratch_asked = false;
		queue->scratch_once = aql_scratch_is_lent(queue);
		queue->scratch_index = queue->submitted;
		return true;
	}
	if (queue->submitted != queue->read)
		return false;
	queue->scratch_asked = true;
	gp_vqueue_tell(queue, GP_AQL_ERROR_SCRATCH);
	return false;
}

static void aql_forget(struct gp_vdispatch *dispatch)
{
	gp_execute_destroy(dispatch->execution);
	dispatch->execution = NULL;
}

/* 1: taken; 0: not there yet; negative: the queue is in error. */
static int aql_take(struct gp_vqueue *queue)
{
	struct gp_vdispatch *dispatch = &queue->window[queue->submitted % GP_VQUEUE_WINDOW];
	uint64_t va = queue->ring + queue->submitted * GP_AQL_PACKET_SIZE % queue->ring_size;
	struct gp_gpu_packet packet;
	uint16_t header;
	uint32_t error;

	if (gp_vm_read(queue->process, queue->gpu, va, &header, sizeof(header)) < 0) {
		gp_vqueue_fault(queue, va);
		return -EFAULT;
	}
	if ((header & 0xffu) == GP_AQL_INVALID)
		return 0;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	aql_forget(dispatch);
	memset(dispatch, 0, sizeof(*dispatch));
	if (gp_vm_read(queue->process, queue->gpu, va, &dispatch->packet, sizeof(dispatch->packet)) < 0) {
		gp_vqueue_fault(queue, va);
		return -EFAULT;
	}
	dispatch->index = queue->submitted;
	if (aql_type(&dispatch->packet) == GP_AQL_KERNEL && !aql_has_scratch(queue, &dispatch->packet.kernel))
		return 0;
	error = aql_prepare(queue, dispatch, &packet);
	if (!error && gp_gpu_submit(queue->gpu->model, queue->model, &packet, gp_vnode_device_ns(queue->gpu->node)) < 0)
		error = GP_AQL_ERROR_FORMAT;
	if (error) {
		aql_forget(dispatch);
		if (dispatch->barrier_signal)
			gp_gpu_signal_remove(queue->gpu->model, dispatch->barrier_signal);
		if (error == AQL_FAULT)
			gp_vqueue_fault(queue, queue->process->fault_va);
		else
			gp_vqueue_fail(queue, error);
		return -EINVAL;
	}
	dispatch->used = true;
	queue->in_flight++;
	queue->submitted++;
	gp_vnode_log(queue->process->node, 2, "process %d: queue %u packet %llu type %u workgroups %u kernel %s",
		     queue->process->pid, queue->id, (unsigned long long)dispatch->index, aql_type(&dispatch->packet),
		     dispatch->workgroups, dispatch->kernel.name);
	return 1;
}

static void aql_look(struct gp_vqueue *queue)
{
	uint64_t doorbell = *queue->doorbell, written = 0, packets = queue->ring_size / GP_AQL_PACKET_SIZE;

	if (doorbell == queue->doorbell_seen)
		return;
	queue->doorbell_seen = doorbell;
	queue->gpu->node->busy_ns = queue->gpu->node->now_ns;
	/* With several producers a lower value may overwrite a higher one; the write index in memory has it all. A slot
	 * that is reserved and not yet written has an invalid header and is waited for. */
	gp_vm_read(queue->process, queue->gpu, queue->wptr_va, &written, sizeof(written));
	if (doorbell + 1u > written)
		written = doorbell + 1u;
	if (written > queue->limit)
		queue->limit = written - queue->shown > packets ? queue->shown + packets : written;
}

bool gp_aql_turn(struct gp_vqueue *queue)
{
	uint64_t window = queue->ring_size / GP_AQL_PACKET_SIZE;
	uint32_t taken = 0;
	bool moved;

	if (!queue->ring)
		return false;
	if (window > GP_VQUEUE_WINDOW)
		window = GP_VQUEUE_WINDOW;
	aql_look(queue);
	while (taken < AQL_TURN_MAX && !queue->error && queue->submitted < queue->limit &&
	       queue->submitted - queue->read < window) {
		int r = aql_take(queue);

		if (r <= 0)
			break;
		taken++;
	}
	if (taken)
		gp_gpu_doorbell(queue->gpu->model, queue->model, gp_vnode_device_ns(queue->gpu->node));
	moved = !queue->error && aql_release_barrier(queue);
	return taken || moved;
}

/* The client sees the read index move up to here: each slot is marked invalid first, so that it can be used again. */
static void aql_show(struct gp_vqueue *queue, uint64_t index)
{
	static const uint16_t invalid = GP_AQL_INVALID;

	if (queue->shown >= index)
		return;
	for (; queue->shown < index; queue->shown++)
		/* UPDATE_QUEUE may have taken the ring away since. */
		if (queue->ring_size)
			gp_vm_write(queue->process, queue->gpu,
				    queue->ring + queue->shown * GP_AQL_PACKET_SIZE % queue->ring_size, &invalid,
				    sizeof(invalid));
	gp_vm_write(queue->process, queue->gpu, queue->rptr_va, &queue->shown, sizeof(queue->shown));
}

void gp_aql_start(struct gp_vqueue *queue, const struct gp_gpu_event *event)
{
	struct gp_vdispatch *dispatch = aql_dispatch(queue, event->tag);

	if (!dispatch)
		return;
	if (!dispatch->started) {
		dispatch->started = true;
		dispatch->start_ns = event->time_ns;
		if (queue->process->node->params.values[GP_PARAM_RPTR_AT_FETCH])
			aql_show(queue, dispatch->index + 1u);
	}
	if (dispatch->execution && !queue->error) {
		gp_execute_resume(dispatch->execution);
		gp_aql_catch_up(queue);
	}
}

/* Packets that are complete leave, in order. */
static void aql_retire(struct gp_vqueue *queue)
{
	struct gp_vdispatch *dispatch;

	while ((dispatch = aql_dispatch(queue, queue->read)) && dispatch->done) {
		dispatch->used = false;
		queue->read++;
		queue->in_flight--;
	}
	aql_show(queue, queue->read);
	aql_scratch_return(queue);
}

static void aql_complete(struct gp_vqueue *queue, struct gp_vdispatch *dispatch)
{
	const struct gp_vnode *node = queue->gpu->node;
	uint64_t signal, start_ns;

	dispatch->done = true;
	aql_forget(dispatch);
	if (dispatch->barrier_signal)
		gp_gpu_signal_remove(queue->gpu->model, dispatch->barrier_signal);
	dispatch->barrier_signal = 0;
	queue->packets++;
	/* Kernel and barrier packets have their completion signal at the same place. */
	signal = dispatch->packet.kernel.completion_signal;
	start_ns = dispatch->started ? dispatch->start_ns : dispatch->end_ns;
	/* The read index first: a client woken by the signal must not find it behind. */
	aql_retire(queue);
	if (aql_signal_complete(queue, signal, gp_vnode_ticks(node, start_ns), gp_vnode_ticks(node, dispatch->end_ns)) <
	    0)
		gp_vqueue_fault(queue, queue->process->fault_va);
}

/* Whether the model is through with an earlier packet, and the host is not: also one that is off the device with its
 * waves, while the model has come to the next. */
static bool aql_is_blocked(struct gp_vqueue *queue, const struct gp_vdispatch *dispatch)
{
	for (uint64_t index = queue->read; index < dispatch->index; index++) {
		const struct gp_vdispatch *earlier = aql_dispatch(queue, index);

		if (earlier && earlier->ended && !earlier->done)
			return true;
	}
	return false;
}

/* Bodies run when the model says how far the work came: at each interruption, and at the end. In the order of the ring,
 * since a later packet may read what an earlier one wrote. */
static void aql_settle(struct gp_vqueue *queue, struct gp_vdispatch *dispatch)
{
	if (queue->behind || aql_is_blocked(queue, dispatch))
		return;
	queue->behind = !gp_work_run(queue, dispatch);
	if (!queue->behind && !queue->error && dispatch->ended &&
	    (!dispatch->execution || gp_execute_is_over(dispatch->execution)))
		aql_complete(queue, dispatch);
}

void gp_aql_progress(struct gp_vqueue *queue, const struct gp_gpu_event *event)
{
	struct gp_vdispatch *dispatch = aql_dispatch(queue, event->tag);

	if (dispatch && dispatch->execution && !queue->error)
		gp_execute_stop(dispatch->execution);
	if (!dispatch || dispatch->ended || queue->error || dispatch->execution ||
	    event->value <= dispatch->workgroups_due)
		return;
	dispatch->workgroups_due = event->value < dispatch->workgroups ? (uint32_t)event->value : dispatch->workgroups;
	aql_settle(queue, dispatch);
}

void gp_aql_end(struct gp_vqueue *queue, const struct gp_gpu_event *event)
{
	struct gp_vdispatch *dispatch = aql_dispatch(queue, event->tag);
	struct gp_vnode *node = queue->gpu->node;

	if (!dispatch || dispatch->done || dispatch->ended || queue->error)
		return;
	if (dispatch->workgroups) {
		node->counters.dispatches++;
		if (event->value != dispatch->workgroups)
			node->counters.exactly_once_violations++;
	}
	dispatch->workgroups_due = dispatch->workgroups;
	dispatch->ended = true;
	dispatch->end_ns = event->time_ns;
	/* Work that was set aside when nothing of it was left to run ends without another start. */
	if (dispatch->execution)
		gp_execute_resume(dispatch->execution);
	aql_settle(queue, dispatch);
}

void gp_aql_catch_up(struct gp_vqueue *queue)
{
	for (uint64_t index = queue->read; index < queue->submitted && !queue->behind && !queue->error; index++) {
		struct gp_vdispatch *dispatch = aql_dispatch(queue, index);

		if (dispatch && !dispatch->done &&
		    (dispatch->ended || dispatch->workgroups_run < dispatch->workgroups_due ||
		     (dispatch->execution && dispatch->started)))
			aql_settle(queue, dispatch);
	}
}

/* The gate of a queue changed. Kernels that the model is through with, and the host is not, stop and go on with it. */
void gp_aql_gate(struct gp_vqueue *queue)
{
	for (uint64_t index = queue->read; index < queue->submitted && !queue->error; index++) {
		struct gp_vdispatch *dispatch = aql_dispatch(queue, index);

		if (!dispatch || !dispatch->execution || !dispatch->ended)
			continue;
		if (queue->model_open)
			gp_execute_resume(dispatch->execution);
		else
			gp_execute_stop(dispatch->execution);
	}
	if (queue->model_open && !queue->error)
		gp_aql_catch_up(queue);
}

void gp_aql_drop(struct gp_vqueue *queue)
{
	for (uint32_t i = 0; i < GP_VQUEUE_WINDOW; i++) {
		struct gp_vdispatch *dispatch = &queue->window[i];

		if (dispatch->used && dispatch->barrier_signal)
			gp_gpu_signal_remove(queue->gpu->model, dispatch->barrier_signal);
		aql_forget(dispatch);
		dispatch->used = false;
	}
}
