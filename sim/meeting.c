/* SPDX-License-Identifier: MIT */
/*
 * Owns meetings: one collective, whose kernels stay on their devices until all of them have started. Its members are
 * the devices of one client, or of all clients that are ranks of one job (gp_work_client.meets); then the n-th
 * collective of each of them is the same one. When a rank dies the job's collectives are given up: nobody waits in them
 * any more, now or later, as when a communicator is aborted.
 */
#include <errno.h>
#include <stdlib.h>
#include "sim/state.h"

static bool meeting_is_rank(const struct gp_sim *sim, uint32_t client, uint32_t job)
{
	return job && sim->clients[client].device_count && sim->clients[client].info.work->meets == job;
}

void gp_sim_meeting_init(struct gp_sim *sim)
{
	uint32_t i, k;

	for (i = 0; i < sim->client_count; i++) {
		struct sim_client *client = &sim->clients[i];

		client->meet_count = client->device_count;
		for (k = 0; k < sim->client_count; k++) {
			if (k == i || !meeting_is_rank(sim, k, client->info.work->meets))
				continue;
			client->meet_count += sim->clients[k].device_count;
			client->meet_first += k < i ? sim->clients[k].device_count : 0;
		}
	}
}

static uint32_t meeting_find(const struct gp_sim *sim, uint32_t job, uint64_t number)
{
	uint32_t i;

	for (i = 0; job && i < sim->meeting_capacity; i++) {
		if (sim->meetings[i].used && sim->meetings[i].job == job && sim->meetings[i].number == number)
			return i;
	}
	return SIM_NONE;
}

static uint32_t meeting_take_free(struct gp_sim *sim)
{
	uint32_t i, capacity;
	struct sim_meeting *meetings;

	for (i = 0; i < sim->meeting_capacity; i++)
		if (!sim->meetings[i].used)
			return i;
	capacity = sim->meeting_capacity ? 2 * sim->meeting_capacity : 8;
	meetings = realloc(sim->meetings, (size_t)capacity * sizeof(*meetings));
	if (!meetings)
		return SIM_NONE;
	sim->meetings = meetings;
	for (i = sim->meeting_capacity; i < capacity; i++)
		meetings[i].used = false;
	i = sim->meeting_capacity;
	sim->meeting_capacity = capacity;
	return i;
}

uint32_t gp_sim_meeting_take(struct gp_sim *sim, uint32_t client)
{
	struct sim_client *owner = &sim->clients[client];
	uint32_t i, k, place, job = owner->info.work->meets;
	uint64_t number = owner->meet_number++;
	uint32_t index = meeting_find(sim, job, number);
	struct sim_meeting *meeting;

	if (index != SIM_NONE)
		return index;
	index = meeting_take_free(sim);
	if (index == SIM_NONE) {
		sim->out_of_memory = true;
		return SIM_NONE;
	}
	meeting = &sim->meetings[index];
	*meeting = (struct sim_meeting){ .used = true,
					 .job = job,
					 .number = number,
					 .member_count = owner->meet_count,
					 .expected = owner->meet_count };
	for (i = 0; i < sim->client_count; i++) {
		const struct sim_client *rank = &sim->clients[i];

		for (k = 0; (i == client || meeting_is_rank(sim, i, job)) && k < rank->device_count; k++) {
			place = rank->meet_first + k;
			meeting->clients[place] = i;
			meeting->devices[place] = rank->devices[k];
			if (gp_gpu_signal_add(sim->devices[rank->devices[k]].gpu, owner->meet_count,
					      &meeting->signals[place]))
				sim->out_of_memory = true;
		}
	}
	return index;
}

uint32_t gp_sim_meeting_signal(const struct gp_sim *sim, uint32_t index, uint32_t client, uint32_t member)
{
	return sim->meetings[index].signals[sim->clients[client].meet_first + member];
}

static void meeting_release_if_over(struct gp_sim *sim, uint32_t index)
{
	struct sim_meeting *meeting = &sim->meetings[index];
	uint32_t i;

	if (meeting->expected || meeting->left)
		return;
	meeting->used = false;
	for (i = 0; i < meeting->member_count; i++)
		gp_gpu_signal_remove(sim->devices[meeting->devices[i]].gpu, meeting->signals[i]);
}

void gp_sim_meeting_join(struct gp_sim *sim, uint32_t index)
{
	sim->meetings[index].expected--;
	sim->meetings[index].left++;
}

void gp_sim_meeting_leave(struct gp_sim *sim, uint32_t index)
{
	sim->meetings[index].left--;
	meeting_release_if_over(sim, index);
}

static void meeting_spun(struct gp_sim *sim, struct sim_meeting *meeting, uint32_t place)
{
	if (meeting->since_ns[place])
		sim->clients[meeting->clients[place]].info.spin_ns += sim->now_ns + 1 - meeting->since_ns[place];
	meeting->since_ns[place] = 0;
}

static uint32_t meeting_place(const struct sim_meeting *meeting, uint32_t client, uint32_t device)
{
	uint32_t i = 0;

	while (meeting->clients[i] != client || meeting->devices[i] != device)
		i++;
	return i;
}

/* So many have not started yet; those who have wait for them. */
static void meeting_tell(struct gp_sim *sim, struct sim_meeting *meeting, uint32_t missing)
{
	uint32_t i;

	for (i = 0; i < meeting->member_count; i++) {
		if (!missing)
			meeting_spun(sim, meeting, i);
		gp_gpu_signal_set(sim->devices[meeting->devices[i]].gpu, meeting->signals[i], missing, sim->now_ns);
	}
}

void gp_sim_meeting_start(struct gp_sim *sim, uint32_t index, uint32_t client, uint32_t device)
{
	struct sim_meeting *meeting = &sim->meetings[index];
	uint32_t place = meeting_place(meeting, client, device), missing;

	if (meeting->over)
		return;
	meeting->since_ns[place] = sim->now_ns + 1;
	if (meeting->started >> place & 1)
		return;
	meeting->started |= 1ull << place;
	missing = meeting->member_count - (uint32_t)__builtin_popcountll(meeting->started);
	meeting->over = !missing;
	meeting_tell(sim, meeting, missing);
}

void gp_sim_meeting_stop(struct gp_sim *sim, uint32_t index, uint32_t client, uint32_t device)
{
	struct sim_meeting *meeting = &sim->meetings[index];

	meeting_spun(sim, meeting, meeting_place(meeting, client, device));
}

void gp_sim_meeting_give_up(struct gp_sim *sim, uint32_t client)
{
	uint32_t i, job = sim->clients[client].info.work->meets;

	for (i = 0; i < sim->client_count; i++)
		sim->clients[i].meets_nobody |= meeting_is_rank(sim, i, job);
	for (i = 0; i < sim->job_capacity; i++) {
		struct sim_job *run = &sim->jobs[i];

		if (!run->live || run->meeting == SIM_NONE)
			continue;
		if (run->client == client || sim->clients[run->client].meets_nobody) {
			sim->meetings[run->meeting].expected = 0;
			meeting_release_if_over(sim, run->meeting);
			run->meeting = SIM_NONE;
		}
	}
	for (i = 0; job && i < sim->meeting_capacity; i++) {
		struct sim_meeting *meeting = &sim->meetings[i];

		if (!meeting->used || meeting->job != job)
			continue;
		meeting->expected = 0;
		meeting->over = true;
		meeting_tell(sim, meeting, 0);
		meeting_release_if_over(sim, i);
	}
}
