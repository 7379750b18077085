/* SPDX-License-Identifier: MIT */
/* Owns a folder as an argument: what is recognised in it, and in the folders below, is read; what is not is named. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "report/load.h"

#define FOLDER_DEPTH     4 /* rocprofv3 writes to HOST/PID_*.csv */
#define FOLDER_ENTRY_MAX 4096

bool gp_folder_is(const char *path)
{
	struct stat st;

	return strcmp(path, "-") && !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int folder_wanted(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void folder_unread(struct gp_run *run, const struct gp_error *error)
{
	if (run->unread_count < GP_RUN_UNREAD_MAX)
		(void)snprintf(run->unread[run->unread_count], sizeof(run->unread[0]), "%.250s", error->text);
	run->unread_count++;
}

/* A file that is no trace is no reason to stop, unless part of it was read. */
static int folder_file(struct gp_run *run, const char *path, const struct gp_read_progress *progress,
		       struct gp_error *error)
{
	int r = gp_run_load(run, path, progress, error);

	if (r != -ENOMSG || run->store.files[run->store.file_count - 1].events)
		return r;
	gp_store_file_drop(&run->store);
	folder_unread(run, error);
	return 0;
}

static int folder_read(struct gp_run *run, const char *folder, int depth, const struct gp_read_progress *progress,
		       struct gp_error *error)
{
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, folder_wanted, alphasort), r = 0;

	if (count < 0)
		return gp_error_set(error, -errno, "cannot read the folder %s: %s", folder, strerror(errno));
	if (count > FOLDER_ENTRY_MAX)
		r = gp_error_set(error, -E2BIG, "%s has more than %d entries: name the traces", folder,
				 FOLDER_ENTRY_MAX);
	for (int i = 0; i < count; i++) {
		size_t size = strlen(folder) + strlen(entries[i]->d_name) + 2;
		char *path = malloc(size);
		struct stat st;

		if (!path && !r)
			r = gp_error_set(error, -ENOMEM, "not enough memory");
		if (path && !r) {
			(void)snprintf(path, size, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/",
				       entries[i]->d_name);
			/* Links are not followed: a folder may hold one to itself. */
			if (!lstat(path, &st) && S_ISDIR(st.st_mode) && depth < FOLDER_DEPTH)
				r = folder_read(run, path, depth + 1, progress, error);
			else if (!lstat(path, &st) && S_ISREG(st.st_mode))
				r = folder_file(run, path, progress, error);
		}
		free(path);
		free(entries[i]);
	}
	free(entries);
	return r;
}

int gp_folder_load(struct gp_run *run, const char *folder, const struct gp_read_progress *progress,
		   struct gp_error *error)
{
	uint32_t before = run->store.file_count;
	uint64_t unread = run->unread_count;
	int r = folder_read(run, folder, 0, progress, error);

	if (!r && run->store.file_count == before && run->unread_count > unread)
		return gp_error_set(error, -ENOMSG, "%.200s: no file in this folder is a trace of a known format",
				    folder);
	if (!r && run->store.file_count == before)
		return gp_error_set(error, -ENOMSG, "%.200s: there is no file in this folder", folder);
	return r;
}

int gp_folder_warn(const struct gp_run *run, struct gp_report *report)
{
	int r = 0;

	for (uint64_t i = 0; i < run->unread_count && i < GP_RUN_UNREAD_MAX; i++)
		r |= gp_warn(report, "not read: %s", run->unread[i]);
	if (run->unread_count > GP_RUN_UNREAD_MAX)
		r |= gp_warn(report, "not read: %llu more files of the folder",
			     (unsigned long long)(run->unread_count - GP_RUN_UNREAD_MAX));
	return r;
}
