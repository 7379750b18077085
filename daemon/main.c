/* SPDX-License-Identifier: MIT */
/* gpreemptd, the program: options, then the loop. Everything else is a library, so that tests drive the same daemon. */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/daemon.h"
#include "daemon/identity.h"
#include "lib/aside.h"
#include "lib/output.h"
#include "lib/units.h"

#define MAIN_PIECE (256 * 1024) /* bytes; chosen */

static const char main_help[] =
	"Usage: gpreemptd [options]\n"
	"Schedules the GPU queues of this machine by priority. Runs in the foreground; systemd starts it (gpreemptd.service).\n"
	"\n"
	"  --config FILE        default " GP_CONFIG_FILE ", and conf.d/*.conf beside it\n"
	"  --check-config       read the configuration, report errors, and exit\n"
	"  --socket PATH        default " GP_WIRE_SOCKET "\n"
	"  --backend NAME       auto, %s\n"
	"  --mechanism LIST     use only these, each on the GPUs of its vendor:\n"
	"%s"
	"  --policy NAME        none, rr, hpf, wfq, edf, drf\n"
	"  --version, --help\n"
	"\n"
	"Signals: TERM and INT open every gate and end the daemon; HUP makes it read the configuration again.\n"
	"Exit status: 0 ended, 1 failed, 2 wrong usage or configuration.\n";

enum { MAIN_CONFIG = 256, MAIN_CHECK, MAIN_SOCKET, MAIN_BACKEND, MAIN_MECHANISM, MAIN_POLICY };

static const struct option main_options[] = {
	{ "config", required_argument, NULL, MAIN_CONFIG },
	{ "check-config", no_argument, NULL, MAIN_CHECK },
	{ "socket", required_argument, NULL, MAIN_SOCKET },
	{ "backend", required_argument, NULL, MAIN_BACKEND },
	{ "mechanism", required_argument, NULL, MAIN_MECHANISM },
	{ "policy", required_argument, NULL, MAIN_POLICY },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct main_arguments {
	const char *config, *settings[8]; /* name, text, name, text …: over the configuration */
	uint32_t setting_count;
	bool check;
};

static void main_print_help(void)
{
	char names[GP_BACKEND_NAMES_SIZE], mechanisms[512] = "";
	size_t used = 0;

	gp_backend_names(names);
	for (uint32_t i = 0; gp_backends[i]; i++) {
		if (!gp_backends[i]->is_hardware)
			continue;
		used += (size_t)snprintf(mechanisms + used, sizeof(mechanisms) - used, "%23s%s:", "",
					 gp_backends[i]->name);
		for (uint32_t m = 0; m < GP_MECHANISM_COUNT; m++)
			if (gp_backends[i]->mechanisms & GP_MECHANISM_BIT(m))
				used += (size_t)snprintf(mechanisms + used, sizeof(mechanisms) - used, " %s",
							 gp_mechanism_name(m));
		used += (size_t)snprintf(mechanisms + used, sizeof(mechanisms) - used, "\n");
	}
	printf(main_help, names, mechanisms);
}

static int main_parse(int argc, char **argv, struct main_arguments *arguments)
{
	int option;

	while ((option = getopt_long(argc, argv, "hV", main_options, NULL)) != -1) {
		switch (option) {
		case MAIN_CONFIG: arguments->config = optarg; break;
		case MAIN_CHECK: arguments->check = true; break;
		case 'V': printf("gpreemptd " GP_VERSION "\n"); exit(0);
		case 'h': main_print_help(); exit(0);
		case MAIN_SOCKET:
		case MAIN_BACKEND:
		case MAIN_MECHANISM:
		case MAIN_POLICY:
			if (arguments->setting_count == 8)
				return -1;
			arguments->settings[arguments->setting_count++] = option == MAIN_SOCKET  ? "[daemon]\nsocket" :
									  option == MAIN_BACKEND ? "[daemon]\nbackend" :
									  option == MAIN_MECHANISM ?
												   GP_CONFIG_MECHANISM :
												   "[policy]\npolicy";
			arguments->settings[arguments->setting_count++] = optarg;
			break;
		default: return -1;
		}
	}
	if (optind < argc)
		fprintf(stderr, "gpreemptd: takes no argument '%s'\n", argv[optind]);
	return optind == argc ? 0 : -1;
}

static int main_configure(const struct main_arguments *arguments, struct gp_config *config, struct gp_error *error)
{
	const char *socket = getenv(GP_WIRE_SOCKET_ENV);
	int r;

	gp_config_init(config);
	if (socket && *socket)
		snprintf(config->socket, sizeof(config->socket), "%s", socket);
	r = gp_config_read(config, arguments->config ? arguments->config : GP_CONFIG_FILE, !arguments->config, error);
	if (!r)
		r = gp_config_apply(config, arguments->settings, arguments->setting_count, error);
	return r ? r : gp_drivers_known(config->backend, error);
}

int main(int argc, char **argv)
{
	static struct gp_daemon daemon;
	struct main_arguments arguments = { 0 };
	struct gp_error error = { "" };
	int r;

	gp_output_reserve();
	/* The C library shall give memory back to the kernel when many clients have gone; by default it would keep
	 * large pieces. Threads that wait for the driver need no arena of their own. */
	mallopt(M_MMAP_THRESHOLD, MAIN_PIECE);
	mallopt(M_TRIM_THRESHOLD, MAIN_PIECE);
	mallopt(M_ARENA_MAX, 2);
	if (main_parse(argc, argv, &arguments)) {
		fprintf(stderr, "gpreemptd: see gpreemptd --help\n");
		return 2;
	}
	if (main_configure(&arguments, &daemon.config, &error)) {
		fprintf(stderr, "gpreemptd: %s\n", error.text);
		return 2;
	}
	if (arguments.check) {
		if (daemon.config.file_count)
			printf("gpreemptd: the configuration is fine (%u %s)\n", daemon.config.file_count,
			       gp_units_word(daemon.config.file_count, "file", "files"));
		else
			printf("gpreemptd: there is no %s; the defaults hold\n", GP_CONFIG_FILE);
		return 0;
	}
	daemon.start.config_path = arguments.config ? arguments.config : GP_CONFIG_FILE;
	daemon.start.config_required = arguments.config;
	daemon.start.settings = arguments.settings;
	daemon.start.setting_count = arguments.setting_count;
	/* Now, while the process has one thread, little memory and no file of a client. */
	gp_identity_prepare();
	if (gp_aside_start()) {
		fprintf(stderr, "gpreemptd: cannot start its helper process: %s\n", strerror(errno));
		return 1;
	}
	r = gp_daemon_init(&daemon, &error);
	if (r) {
		fprintf(stderr, "gpreemptd: %s\n", error.text);
		gp_daemon_fini(&daemon);
		return 1;
	}
	for (uint32_t i = 0; i < daemon.device_count; i++)
		gp_log("GPU %u (%s): %s, policy %s", daemon.devices[i].info.gpu_id, daemon.devices[i].info.name,
		       gp_mechanism_name(daemon.devices[i].info.mechanism), daemon.config.policy);
	r = gp_daemon_run(&daemon);
	gp_daemon_fini(&daemon);
	gp_aside_stop();
	return r ? 1 : 0;
}
