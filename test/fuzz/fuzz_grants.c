/* SPDX-License-Identifier: MIT */
/* Fuzzer: the file of grants. Whatever is taken from it is within the bounds its users rely on; cgroups and rules are
 * asked about them afterwards. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cgroup.h"
#include "daemon/daemon.h"
#include "daemon/grant.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is)
{
	if (!is)
		abort();
}

static void check_attr(const struct gp_wire_attr *attr)
{
	must(!(attr->valid & GP_ATTR_PRIORITY) || (attr->priority >= 0 && attr->priority <= GP_PRIORITY_MAX));
	must(!(attr->valid & GP_ATTR_WEIGHT) || (attr->weight && attr->weight <= GP_WEIGHT_MAX));
	must(attr->deadline_ns <= GP_DURATION_NS_MAX && attr->budget_ns <= GP_DURATION_NS_MAX);
	must(memchr(attr->gang, 0, sizeof(attr->gang)) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gp_daemon daemon;
	static char paths[GP_CGROUP_TEXT];
	char *text = calloc(1, size + 1);
	struct gp_terms terms;
	struct gp_error error;

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	daemon.loop.epoll_fd = -1; /* no process can be watched: their grants are refused */
	(void)gp_grant_parse(&daemon, text, size, "this", &error);
	must(daemon.grants.count <= GP_GRANT_MAX && daemon.grants.pid_count <= GP_GRANT_PIDS);
	for (const struct gp_grant *grant = daemon.grants.first; grant; grant = grant->next) {
		check_attr(&grant->terms.attr);
		check_attr(&grant->terms.forced);
		must(grant->terms.ceiling >= -1 && grant->terms.ceiling <= GP_PRIORITY_MAX);
		must(grant->pid || (grant->cgroup[0] == '/' && !gp_cgroup_check(grant->cgroup, &error)));
	}
	gp_terms_init(&terms);
	gp_cgroup_parse(text, paths, sizeof(paths));
	gp_grant_overlay(&daemon, paths, &terms);
	check_attr(&terms.attr);
	gp_grant_fini(&daemon);
	free(text);
	return 0;
}
