/* SPDX-License-Identifier: MIT */
/* KFD events. Owns the table of each process and the decision whether a wait is over. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "vgpu/kfd/call.h"
#include "vgpu/kfd/event.h"
#include "vgpu/node/memory.h"

#define EVENT_WAIT_MAX  4096u
#define EVENT_PAGE_SIZE (GP_VPROC_EVENT_MAX * 8u)

static struct gp_vevent *event_find(struct gp_vproc *process, uint32_t id)
{
	return id < GP_VPROC_EVENT_MAX && process->events[id].used ? &process->events[id] : NULL;
}

static bool event_is_signal(uint32_t type)
{
	return type == KFD_IOC_EVENT_SIGNAL || type == KFD_IOC_EVENT_DEBUG_EVENT;
}

int gp_vevent_create(struct gp_vproc *process, struct kfd_ioctl_create_event_args *args)
{
	uint32_t id = 1;

	if (args->event_type > KFD_IOC_EVENT_MEMORY)
		return -EINVAL;
	/* A dGPU's event page is memory of the process, given once by its handle. */
	if (args->event_page_offset) {
		struct gp_vbo *page = gp_vbo_by_handle(process, args->event_page_offset);

		if (!page || page->user || page->size < EVENT_PAGE_SIZE || page->offset >= GP_BAR_MAPPED_SIZE)
			return -EINVAL;
		if (process->event_page && process->event_page != page)
			return -EINVAL;
		if (!process->event_page)
			memset(process->node->bar.base + page->offset, 0xff, EVENT_PAGE_SIZE);
		process->event_page = page;
	}
	while (id < GP_VPROC_EVENT_MAX && process->events[id].used)
		id++;
	if (id == GP_VPROC_EVENT_MAX)
		return -ENOSPC;
	process->events[id] = (struct gp_vevent){
		.id = id,
		.type = args->event_type,
		.used = true,
		.auto_reset = args->auto_reset,
		.age = 1,
	};
	args->event_id = id;
	args->event_trigger_data = id;
	args->event_slot_index = id;
	/* Not 0 for signal events, else the thunk gives them no mailbox; the value itself is not used where the page
	 * was given. */
	if (event_is_signal(args->event_type) && !args->event_page_offset)
		args->event_page_offset = process->event_page ? process->event_page->handle : 1;
	return 0;
}

int gp_vevent_destroy(struct gp_vproc *process, uint32_t id)
{
	struct gp_vevent *event = event_find(process, id);

	if (!event)
		return -EINVAL;
	event->used = false;
	return 0;
}

/* As KFD does it: everybody who waits for the event now is let go, each by its own mark; an auto-reset event stays
 * signalled only if there was nobody. Two threads of a runtime do wait for one event. */
static void event_signal(struct gp_vproc *process, struct gp_vevent *event)
{
	bool waited = false;

	for (struct gp_vcall *call = process->node->calls; call; call = call->next) {
		if (call->kind != GP_VCALL_WAIT_EVENTS || call->process != process)
			continue;
		for (uint32_t i = 0; i < call->event_count; i++)
			if (call->event_ids[i] == event->id)
				call->event_marks[i] = waited = true;
	}
	event->signaled = !event->auto_reset || !waited;
	event->age++;
}

int gp_vevent_set(struct gp_vproc *process, uint32_t id)
{
	struct gp_vevent *event = event_find(process, id);

	if (!event || !event_is_signal(event->type))
		return -EINVAL;
	event_signal(process, event);
	return 0;
}

int gp_vevent_reset(struct gp_vproc *process, uint32_t id)
{
	struct gp_vevent *event = event_find(process, id);

	if (!event || !event_is_signal(event->type))
		return -EINVAL;
	event->signaled = false;
	return 0;
}

void gp_vevent_interrupt(struct gp_vproc *process, uint32_t id)
{
	if (gp_vevent_set(process, id) < 0 || !process->event_page)
		return;
	/* The driver acknowledges the slot; the next write of the GPU is then seen as a new one. */
	((volatile uint64_t *)(void *)(process->node->bar.base + process->event_page->offset))[id] =
		GP_KFD_EVENT_SLOT_UNSIGNALED;
}

void gp_vevent_raise(struct gp_vproc *process, uint32_t type, const void *data, size_t data_size)
{
	for (uint32_t id = 1; id < GP_VPROC_EVENT_MAX; id++) {
		struct gp_vevent *event = event_find(process, id);

		if (!event || event->type != type)
			continue;
		memcpy(event->data, data, data_size < sizeof(event->data) ? data_size : sizeof(event->data));
		event_signal(process, event);
	}
}

static void event_deliver(struct gp_vcall *call, uint32_t index, struct gp_vevent *event)
{
	struct kfd_ioctl_wait_events_args *args = (void *)call->arg;
	uint64_t address = args->events_ptr + index * sizeof(struct kfd_event_data);

	/* A caller whose memory is gone loses the data, not the wake-up. */
	if (event->type == KFD_IOC_EVENT_MEMORY || event->type == KFD_IOC_EVENT_HW_EXCEPTION)
		gp_client_write(call->process, address, event->data, sizeof(event->data));
	else if (call->event_ages[index])
		gp_client_write(call->process, address, &event->age, sizeof(event->age));
}

bool gp_vevent_wait_done(struct gp_vcall *call, uint64_t now_ns)
{
	struct kfd_ioctl_wait_events_args *args = (void *)call->arg;
	uint32_t count = 0;

	for (uint32_t i = 0; i < call->event_count; i++) {
		const struct gp_vevent *event = event_find(call->process, call->event_ids[i]);

		/* Destroyed while waited for: KFD fails the wait. */
		if (!event) {
			args->wait_result = KFD_IOC_WAIT_RESULT_FAIL;
			call->result = -EIO;
			return true;
		}
		count += call->event_marks[i];
	}
	if (call->event_count && (args->wait_for_all ? count < call->event_count : !count)) {
		if (now_ns < call->deadline_ns)
			return false;
		args->wait_result = KFD_IOC_WAIT_RESULT_TIMEOUT;
		return true;
	}
	for (uint32_t i = 0; i < call->event_count; i++) {
		struct gp_vevent *event = event_find(call->process, call->event_ids[i]);

		if (call->event_marks[i])
			event_deliver(call, i, event);
	}
	args->wait_result = KFD_IOC_WAIT_RESULT_COMPLETE;
	return true;
}

static int event_wait_read(struct gp_vcall *call, const struct kfd_ioctl_wait_events_args *args)
{
	struct kfd_event_data *data;
	int r = 0;

	if (!args->num_events)
		return 0;
	data = calloc(args->num_events, sizeof(*data));
	call->event_ids = calloc(args->num_events, sizeof(*call->event_ids));
	call->event_ages = calloc(args->num_events, sizeof(*call->event_ages));
	call->event_marks = calloc(args->num_events, sizeof(*call->event_marks));
	if (!data || !call->event_ids || !call->event_ages || !call->event_marks)
		r = -ENOMEM;
	else if (gp_client_read(call->process, args->events_ptr, data, args->num_events * sizeof(*data)) < 0)
		r = -EFAULT;
	for (uint32_t i = 0; !r && i < args->num_events; i++) {
		const struct gp_vevent *event = event_find(call->process, data[i].event_id);

		if (!event) {
			r = -EINVAL;
			break;
		}
		call->event_ids[i] = data[i].event_id;
		if (event_is_signal(event->type))
			memcpy(&call->event_ages[i], &data[i], sizeof(call->event_ages[i]));
	}
	free(data);
	return r;
}

/* What is signalled already, or was since the caller last looked (age), is taken at once. */
static void event_take(struct gp_vcall *call)
{
	for (uint32_t i = 0; i < call->event_count; i++) {
		struct gp_vevent *event = event_find(call->process, call->event_ids[i]);

		call->event_marks[i] = event->signaled || (event_is_signal(event->type) && call->event_ages[i] &&
							   call->event_ages[i] != event->age);
		if (event->auto_reset)
			event->signaled = false;
	}
}

void gp_vevent_wait_undo(struct gp_vcall *call)
{
	for (uint32_t i = 0; i < call->event_count; i++) {
		struct gp_vevent *event = call->process ? event_find(call->process, call->event_ids[i]) : NULL;

		if (event && call->event_marks[i] && event->auto_reset)
			event->signaled = true;
	}
}

int gp_vevent_wait(struct gp_vcall **call_slot)
{
	struct gp_vcall *call = *call_slot;
	struct kfd_ioctl_wait_events_args *args = (void *)call->arg;
	struct gp_vnode *node = call->process->node;
	int r;

	if (args->num_events > EVENT_WAIT_MAX)
		return -EINVAL;
	r = event_wait_read(call, args);
	if (r < 0)
		return r;
	call->event_count = args->num_events;
	event_take(call);
	call->deadline_ns = args->timeout == UINT32_MAX ? UINT64_MAX : node->now_ns + args->timeout * 1000000ull;
	call->result = 0;
	if (gp_vevent_wait_done(call, node->now_ns))
		return call->result;
	gp_vcall_keep(node, call_slot, GP_VCALL_WAIT_EVENTS);
	return GP_VCALL_LATER;
}
