/* SPDX-License-Identifier: MIT */
/*
 * Owns ftrace text (trace, trace_pipe, trace-cmd report): jobs of the DRM scheduler and of amdgpu, from being queued
 * over being run to being done. These are the kernel's own rings (graphics, video, page tables, SDMA); work of KFD's
 * user queues never passes here. Names and forms changed between kernels: drm_sched_job, drm_run_job,
 * drm_sched_process_job up to 6.16; drm_sched_job_queue, drm_sched_job_run, drm_sched_job_done since.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "lib/cleanup.h"
#include "report/trace/lines.h"
#include "report/trace/readers.h"
#include "report/trace/rows.h"

#define FTRACE_JOBS  4096u /* under way at once */
#define FTRACE_RINGS 256u
#define FTRACE_WORD  64u

struct ftrace_job {
	char key[FTRACE_WORD]; /* the fence, as it is written */
	uint64_t queued_ns, run_ns, row;
	uint32_t ring;
	uint64_t pid;
};

struct ftrace {
	struct gp_lines lines;
	const struct gp_sink *sink;
	uint32_t job_count, ring_count;
	struct ftrace_job jobs[FTRACE_JOBS];
	char rings[FTRACE_RINGS][FTRACE_WORD];
	uint64_t events, lost;
	bool has_drm; /* the scheduler's own events are there: amdgpu's would be the same jobs again */
	/* the line */
	char *event, *args;
	uint64_t time_ns, pid;
};

/* "12345.678901" seconds. */
static bool ftrace_time(const char *text, uint64_t *ret_ns)
{
	size_t whole = strspn(text, "0123456789");
	uint64_t seconds = 0, part = 0, scale = 100000000;

	if (text[whole] != '.' || !gp_rows_u64(text, whole, &seconds) || seconds > 1000000000000ull / 100)
		return false;
	for (text += whole + 1; *text >= '0' && *text <= '9'; text++, scale /= 10)
		part += (uint64_t)(*text - '0') * scale;
	*ret_ns = seconds * 1000000000ull + part;
	return true;
}

/* "  comm-1234  [001] d.h2.  12.345678: event: args"; false: another kind of line. */
static bool ftrace_line(struct ftrace *ftrace)
{
	char *text = ftrace->lines.text, *cpu = strchr(text, '['), *at, *dash, *colon;

	if (text[0] == '#' || !cpu)
		return false;
	dash = cpu;
	while (dash > text && *dash != '-')
		dash--;
	ftrace->pid = strtoull(dash + 1, NULL, 10);
	at = strchr(cpu, ']');
	if (!at)
		return false;
	while (*at) {
		at += strcspn(at, " ");
		at += strspn(at, " ");
		if (ftrace_time(at, &ftrace->time_ns))
			break;
	}
	colon = strchr(at, ':');
	if (!colon || colon[1] != ' ')
		return false;
	ftrace->event = colon + 2 + strspn(colon + 2, " ");
	colon = strchr(ftrace->event, ':');
	if (!colon) {
		ftrace->args = ftrace->event + strlen(ftrace->event);
		return true;
	}
	*colon = '\0';
	ftrace->args = colon + 1;
	return true;
}

/* The value behind "key=" up to a comma, a blank or the end. */
static bool ftrace_value(const char *args, const char *key, char *ret_value)
{
	size_t length = strlen(key);

	for (const char *at = strstr(args, key); at; at = strstr(at + 1, key))
		if ((at == args || at[-1] == ' ' || at[-1] == ',') && at[length] == '=') {
			size_t size = strcspn(at + length + 1, ", ");

			if (!size || size >= FTRACE_WORD)
				return false;
			memcpy(ret_value, at + length + 1, size);
			ret_value[size] = '\0';
			return true;
		}
	return false;
}

static struct ftrace_job *ftrace_find(struct ftrace *ftrace, const char *key)
{
	for (uint32_t i = ftrace->job_count; i-- > 0;)
		if (!strcmp(ftrace->jobs[i].key, key))
			return &ftrace->jobs[i];
	return NULL;
}

static struct ftrace_job *ftrace_add(struct ftrace *ftrace, const char *key)
{
	struct ftrace_job *job = ftrace_find(ftrace, key);

	if (job)
		return job;
	if (ftrace->job_count == FTRACE_JOBS) {
		/* The oldest one never ended in this trace. */
		memmove(&ftrace->jobs[0], &ftrace->jobs[1], (FTRACE_JOBS - 1) * sizeof(*job));
		ftrace->job_count--;
		ftrace->lost++;
	}
	job = &ftrace->jobs[ftrace->job_count++];
	memset(job, 0, sizeof(*job));
	(void)snprintf(job->key, sizeof(job->key), "%s", key);
	return job;
}

static uint32_t ftrace_ring(struct ftrace *ftrace, const char *name)
{
	for (uint32_t i = 0; i < ftrace->ring_count; i++)
		if (!strcmp(ftrace->rings[i], name))
			return i;
	if (ftrace->ring_count == FTRACE_RINGS)
		return FTRACE_RINGS - 1;
	(void)snprintf(ftrace->rings[ftrace->ring_count], FTRACE_WORD, "%s", name);
	return ftrace->ring_count++;
}

static int ftrace_done(struct ftrace *ftrace, const char *key, struct gp_error *error)
{
	struct ftrace_job *job = ftrace_find(ftrace, key), last;
	const char *ring;
	char name[FTRACE_WORD + 16];
	struct gp_profile_event event;

	if (!job)
		return 0;
	last = *job;
	memmove(job, job + 1, (size_t)(&ftrace->jobs[ftrace->job_count] - job - 1) * sizeof(*job));
	ftrace->job_count--;
	if (!last.run_ns)
		return 0;
	ring = ftrace->rings[last.ring];
	(void)snprintf(name, sizeof(name), "job on %s", ring);
	gp_trace_event_init(&event, strstr(ring, "sdma") ? GP_LAYER_COPY : GP_LAYER_KERNEL, name, strlen(name));
	event.start_ns = last.run_ns;
	event.end_ns = ftrace->time_ns;
	event.queue = last.ring;
	event.known = GP_KNOWN_QUEUE;
	event.row = last.row;
	if (last.queued_ns && event.layer == GP_LAYER_KERNEL) {
		event.dispatch_ns = last.queued_ns;
		event.known |= GP_KNOWN_DISPATCH;
	}
	if (last.pid) {
		event.pid = last.pid;
		event.known |= GP_KNOWN_PID;
	}
	ftrace->events++;
	return ftrace->sink->event(ftrace->sink->context, &event, error);
}

/* A job is queued by the process that wants it and run by a kernel thread. */
static void ftrace_moved(const struct ftrace *ftrace, struct ftrace_job *job, bool is_queued)
{
	if (is_queued) {
		job->queued_ns = ftrace->time_ns;
		job->pid = ftrace->pid;
	} else {
		job->run_ns = ftrace->time_ns;
	}
	job->row = ftrace->lines.line;
}

static int ftrace_drm(struct ftrace *ftrace, struct gp_error *error)
{
	bool is_queued = !strcmp(ftrace->event, "drm_sched_job") || !strcmp(ftrace->event, "drm_sched_job_queue");
	bool is_run = !strcmp(ftrace->event, "drm_run_job") || !strcmp(ftrace->event, "drm_sched_job_run");
	bool is_done = !strcmp(ftrace->event, "drm_sched_process_job") || !strcmp(ftrace->event, "drm_sched_job_done");
	char fence[FTRACE_WORD], ring[FTRACE_WORD];
	struct ftrace_job *job;

	if ((!is_queued && !is_run && !is_done) || !ftrace_value(ftrace->args, "fence", fence))
		return 0;
	ftrace->has_drm = true;
	if (is_done)
		return ftrace_done(ftrace, fence, error);
	job = ftrace_add(ftrace, fence);
	if (ftrace_value(ftrace->args, "ring", ring))
		job->ring = ftrace_ring(ftrace, ring);
	ftrace_moved(ftrace, job, is_queued);
	return 0;
}

static int ftrace_amdgpu(struct ftrace *ftrace, struct gp_error *error)
{
	bool is_queued = !strcmp(ftrace->event, "amdgpu_cs_ioctl");
	bool is_run = !strcmp(ftrace->event, "amdgpu_sched_run_job");
	bool is_done = !strcmp(ftrace->event, "dma_fence_signaled");
	char context[FTRACE_WORD], number[FTRACE_WORD], ring[FTRACE_WORD], key[FTRACE_WORD];
	struct ftrace_job *job;

	if (ftrace->has_drm || (!is_queued && !is_run && !is_done) || !ftrace_value(ftrace->args, "context", context) ||
	    !ftrace_value(ftrace->args, "seqno", number))
		return 0;
	(void)snprintf(key, sizeof(key), "%.20s:%.20s", context, number);
	if (is_done)
		return ftrace_done(ftrace, key, error);
	job = ftrace_add(ftrace, key);
	if (ftrace_value(ftrace->args, "ring_name", ring) || ftrace_value(ftrace->args, "timeline", ring))
		job->ring = ftrace_ring(ftrace, ring);
	ftrace_moved(ftrace, job, is_queued);
	return 0;
}

/* The function tracer: "kfd_ioctl_create_queue <-kfd_ioctl" */
static int ftrace_function(struct ftrace *ftrace, struct gp_error *error)
{
	struct gp_fact fact = { .kind = GP_FACT_QUEUE_CREATED, .text = ftrace->event, .row = ftrace->lines.line };

	if (!strstr(ftrace->event, "create_queue"))
		return 0;
	fact.has_time = true;
	fact.time_ns = ftrace->time_ns;
	return ftrace->sink->fact(ftrace->sink->context, &fact, error);
}

int gp_read_ftrace(struct gp_input *input, const struct gp_sink *sink, struct gp_error *error)
{
	GP_AUTO_FREE struct ftrace *ftrace = calloc(1, sizeof(*ftrace));
	int r;

	if (!ftrace)
		return gp_error_set(error, -ENOMEM, "%s: not enough memory", input->file_name);
	ftrace->sink = sink;
	gp_lines_init(&ftrace->lines, input);
	while ((r = gp_lines_next(&ftrace->lines, error)) > 0) {
		if (!ftrace_line(ftrace))
			continue;
		r = ftrace_drm(ftrace, error);
		if (!r)
			r = ftrace_amdgpu(ftrace, error);
		if (!r && !ftrace->args[0])
			r = ftrace_function(ftrace, error);
		if (r)
			return r;
	}
	if (!r && (ftrace->lost || ftrace->job_count)) {
		struct gp_fact fact = { .kind = GP_FACT_WARNING, .row = ftrace->lines.line };

		fact.text = "jobs that were not done when the trace ended, or whose end is not in it, are left out";
		r = sink->fact(sink->context, &fact, error);
	}
	return r;
}
