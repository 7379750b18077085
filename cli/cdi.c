/* SPDX-License-Identifier: MIT */
/* `gpreempt cdi`: what a container runtime must do to a container so that its programs have a GPU priority, as a
 * specification of the Container Device Interface. It asks no daemon and starts nothing. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "cli/attr.h"
#include "cli/control.h"
#include "cli/run_env.h"
#include "lib/file.h"
#include "lib/json_writer.h"
#include "lib/output.h"

#define CDI_KIND      "gpreempt.dev/priority"
#define CDI_INSIDE    "/run/gpreempt-agent/libgpreempt-agent.so" /* agent/ld.so.preload says the same */
#define CDI_PRELOAD   "ld.so.preload"
#define CDI_SOCKETS   "/run/gpreempt"
#define CDI_PATH_SIZE 1024u

/* clang-format off */
static const char cdi_help[] =
"Usage: gpreempt cdi [OPTION...]\n"
"Writes a CDI specification: the devices " CDI_KIND "=idle, low, normal, high, realtime and default\n"
"give a container the agent, the daemon's socket and a priority. For podman, Docker, containerd, CRI-O.\n"
"\n"
"  -o, --output FILE        where to write it, e.g. /etc/cdi/gpreempt.json; default: standard output\n"
"      --cdi-version V      0.5.0 (default, as podman 4.3 reads it), 0.6.0, 0.7.0, 0.8.0 or 1.0.0\n"
"      --agent FILE         where the agent is on the machine; default: the one of this installation\n"
"      --preload FILE       where the file for /etc/ld.so.preload is; default: beside the agent\n"
"      --socket-dir FOLDER  the folder of the daemon's socket on the machine; default " CDI_SOCKETS "\n"
"\n"
"Exit status: 0; 1 the agent is missing, or the file could not be written; 2 wrong usage.\n";
/* clang-format on */

enum { CDI_OPTION_VERSION = 256, CDI_OPTION_AGENT, CDI_OPTION_PRELOAD, CDI_OPTION_SOCKETS };

static const struct option cdi_options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "cdi-version", required_argument, NULL, CDI_OPTION_VERSION },
	{ "agent", required_argument, NULL, CDI_OPTION_AGENT },
	{ "preload", required_argument, NULL, CDI_OPTION_PRELOAD },
	{ "socket-dir", required_argument, NULL, CDI_OPTION_SOCKETS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

struct cdi {
	const char *output, *version, *agent, *preload, *sockets;
	char agent_path[CDI_PATH_SIZE], preload_path[CDI_PATH_SIZE + sizeof(CDI_PRELOAD)];
};

static bool cdi_version_is_known(const char *version)
{
	static const char *const known[] = { "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i], version))
			return true;
	return false;
}

/* Printed into JSON as it is; a runtime wants it absolute. */
static bool cdi_path_is_plain(const char *path)
{
	if (*path != '/' || strlen(path) >= CDI_PATH_SIZE)
		return false;
	for (; *path; path++)
		if ((unsigned char)*path < 0x20 || *path == '"' || *path == '\\' || *path == 0x7f)
			return false;
	return true;
}

/* Paths that are given are those of the machine on which containers start, which may not be this one's. */
static int cdi_find(struct cdi *cdi, struct gp_error *error)
{
	const char *const paths[] = { cdi->agent, cdi->preload, cdi->sockets };
	char *slash;
	int r;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (paths[i] && !cdi_path_is_plain(paths[i]))
			return gp_error_set(
				error, -1,
				"'%s' must begin with / and have no quotes, backslashes or control characters",
				paths[i]);
	if (!cdi->agent) {
		r = gp_run_env_agent(cdi->agent_path, sizeof(cdi->agent_path), error);
		if (r)
			return r;
		cdi->agent = cdi->agent_path;
	}
	if (!cdi->preload) {
		(void)snprintf(cdi->preload_path, sizeof(cdi->preload_path), "%s", cdi->agent);
		slash = strrchr(cdi->preload_path, '/');
		(void)snprintf(slash + 1, sizeof(cdi->preload_path) - (size_t)(slash + 1 - cdi->preload_path), "%s",
			       CDI_PRELOAD);
		cdi->preload = cdi->preload_path;
		if (cdi->agent == cdi->agent_path && access(cdi->preload, R_OK))
			return gp_error_set(error, -1, "%s is missing; --preload names the file", cdi->preload);
	}
	return 0;
}

static void cdi_mount(struct gp_json_writer *writer, const char *from, const char *to, bool is_code)
{
	gp_json_writer_begin(writer, NULL, '{');
	gp_json_writer_string(writer, "hostPath", from);
	gp_json_writer_string(writer, "containerPath", to);
	gp_json_writer_begin(writer, "options", '[');
	gp_json_writer_string(writer, NULL, "rbind");
	gp_json_writer_string(writer, NULL, "ro");
	gp_json_writer_string(writer, NULL, "nosuid");
	gp_json_writer_string(writer, NULL, "nodev");
	if (!is_code)
		gp_json_writer_string(writer, NULL, "noexec");
	gp_json_writer_end(writer, ']');
	gp_json_writer_end(writer, '}');
}

/* Without a wish (variable NULL) the daemon's rules and grants decide. */
static void cdi_device(struct gp_json_writer *writer, const char *name, const char *variable)
{
	gp_json_writer_begin(writer, NULL, '{');
	gp_json_writer_string(writer, "name", name);
	gp_json_writer_begin(writer, "containerEdits", '{');
	gp_json_writer_begin(writer, "env", '[');
	if (variable)
		gp_json_writer_string(writer, NULL, variable);
	gp_json_writer_string(writer, NULL, "DEBUG_HIP_IGNORE_STREAM_PRIORITY=0");
	gp_json_writer_end(writer, ']');
	gp_json_writer_end(writer, '}');
	gp_json_writer_end(writer, '}');
}

/* The agent comes by /etc/ld.so.preload, not by LD_PRELOAD: a variable of a specification replaces the user's, and
 * musl, which cannot load a library made for glibc, reads no such file. The socket's folder, not the socket: a daemon
 * that is started again makes another. */
static void cdi_write(const struct cdi *cdi, FILE *out)
{
	struct gp_json_writer writer;
	const char *name;
	char variable[64];
	int32_t priority;

	gp_json_writer_init(&writer, out);
	gp_json_writer_begin(&writer, NULL, '{');
	gp_json_writer_string(&writer, "cdiVersion", cdi->version);
	gp_json_writer_string(&writer, "kind", CDI_KIND);
	gp_json_writer_begin(&writer, "containerEdits", '{');
	gp_json_writer_begin(&writer, "env", '[');
	gp_json_writer_string(&writer, NULL, "HSA_TOOLS_LIB=" CDI_INSIDE);
	gp_json_writer_end(&writer, ']');
	gp_json_writer_begin(&writer, "mounts", '[');
	cdi_mount(&writer, cdi->sockets, CDI_SOCKETS, false);
	cdi_mount(&writer, cdi->agent, CDI_INSIDE, true);
	cdi_mount(&writer, cdi->preload, "/etc/ld.so.preload", false);
	gp_json_writer_end(&writer, ']');
	gp_json_writer_end(&writer, '}');
	gp_json_writer_begin(&writer, "devices", '[');
	for (unsigned int i = 0; (name = gp_attr_priority_name(i, &priority)); i++) {
		snprintf(variable, sizeof(variable), "GPREEMPT_PRIORITY=%d", (int)priority);
		cdi_device(&writer, name, variable);
	}
	cdi_device(&writer, "default", NULL);
	gp_json_writer_end(&writer, ']');
	gp_json_writer_end(&writer, '}');
}

static int cdi_parse(int argc, char **argv, struct cdi *cdi)
{
	int option;

	while ((option = getopt_long(argc, argv, "o:hV", cdi_options, NULL)) != -1) {
		switch (option) {
		case 'o': cdi->output = optarg; break;
		case CDI_OPTION_VERSION: cdi->version = optarg; break;
		case CDI_OPTION_AGENT: cdi->agent = optarg; break;
		case CDI_OPTION_PRELOAD: cdi->preload = optarg; break;
		case CDI_OPTION_SOCKETS: cdi->sockets = optarg; break;
		case 'h': fputs(cdi_help, stdout); return -1;
		case 'V': puts("gpreempt " GP_VERSION); return -1;
		default: fputs("gpreempt cdi: see gpreempt cdi --help\n", stderr); return GP_CLI_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "gpreempt cdi: takes no argument '%s' (gpreempt cdi --help)\n", argv[optind]);
		return GP_CLI_USAGE;
	}
	if (!cdi_version_is_known(cdi->version)) {
		fprintf(stderr, "gpreempt cdi: version '%s' is none of 0.5.0, 0.6.0, 0.7.0, 0.8.0, 1.0.0\n",
			cdi->version);
		return GP_CLI_USAGE;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct cdi cdi = { .output = "-", .version = "0.5.0", .sockets = CDI_SOCKETS };
	struct gp_file_writer writer;
	struct gp_error error;
	int r;

	gp_output_start("gpreempt cdi", GP_CLI_FAILED);
	r = cdi_parse(argc, argv, &cdi);
	if (r)
		return r < 0 ? GP_CLI_OK : r;
	r = cdi_find(&cdi, &error);
	r = r ? r : gp_file_open(&writer, cdi.output, &error);
	if (!r) {
		cdi_write(&cdi, writer.stream);
		r = gp_file_commit(&writer, &error);
	}
	if (r)
		fprintf(stderr, "gpreempt cdi: %s\n", error.text);
	return r ? GP_CLI_FAILED : GP_CLI_OK;
}
