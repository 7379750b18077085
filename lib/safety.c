/* SPDX-License-Identifier: MIT */
/* Owns the reading of share/safety and of the versions that its entries are about. */
#include "lib/safety.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "lib/cleanup.h"
#include "lib/file.h"
#include "lib/ini.h"
#include "lib/paths.h"
#include "lib/units.h"

#define SAFETY_FILE_MAX 65536u
#define SAFETY_ROCM     "/opt/rocm/.info/version"

static const char *const safety_actions[] = { "refuse", "submit", "limit" };

/* "6.17" or "6" of a longer text. */
static uint64_t safety_version(const char *text)
{
	char *end;
	unsigned long major = strtoul(text, &end, 10), minor = 0;

	if (end == text || major > 1000)
		return GP_KFD_UNKNOWN;
	if (*end == '.')
		minor = strtoul(end + 1, NULL, 10);
	return 1000u * major + (minor > 999 ? 999 : minor);
}

static int safety_number(const char *text, size_t size, bool is_version, uint64_t *ret_number)
{
	char copy[32], *end;

	if (!size || size >= sizeof(copy) || !(text[0] >= '0' && text[0] <= '9'))
		return -EINVAL;
	memcpy(copy, text, size);
	copy[size] = '\0';
	if (is_version) {
		*ret_number = safety_version(copy);
		return strspn(copy, "0123456789.") == size && *ret_number != GP_KFD_UNKNOWN ? 0 : -EINVAL;
	}
	*ret_number = strtoull(copy, &end, 0);
	return *end ? -EINVAL : 0;
}

/* "7", "..7", "7..", "7..9". */
static int safety_range(const char *name, const char *value, bool is_version, struct gp_safety_range *ret_range,
			struct gp_error *error)
{
	struct gp_safety_range range = { 0, GP_KFD_UNKNOWN - 1 };
	const char *dots = strstr(value, "..");
	size_t first = dots ? (size_t)(dots - value) : strlen(value);
	int r = first ? safety_number(value, first, is_version, &range.first) : dots ? 0 : -EINVAL;

	if (!dots)
		range.last = range.first;
	else if (!r && dots[2])
		r = safety_number(dots + 2, strlen(dots + 2), is_version, &range.last);
	else if (!r && !first)
		r = -EINVAL;
	if (r || range.first > range.last)
		return gp_error_set(error, -EINVAL, "%s: '%s' is not a number or a range such as 0x80..0x83, ..6.17",
				    name, value);
	*ret_range = range;
	return 0;
}

static int safety_action(const char *value, struct gp_safety_entry *entry, struct gp_error *error)
{
	uint64_t permille;

	for (uint32_t i = 0; i < GP_SAFETY_LIMIT; i++)
		if (!strcmp(value, safety_actions[i])) {
			entry->action = (enum gp_safety_action)i;
			return 0;
		}
	if (strncmp(value, "limit ", 6) || gp_units_parse_count(value + 6, "limit", 1, 1000, &permille, error))
		return gp_error_set(error, -EINVAL, "action '%s' is not refuse, submit or limit PERMILLE", value);
	entry->action = GP_SAFETY_LIMIT;
	entry->limit_permille = (uint32_t)permille;
	return 0;
}

static int safety_entry(void *context, const char *section, const char *name, const char *value, uint32_t line,
			struct gp_error *error)
{
	struct gp_safety_entry *entry = context;
	char *text = NULL;

	(void)line;
	if (strcmp(section, "safety"))
		return gp_error_set(error, -EINVAL, "the section is [safety]");
	if (!name)
		return 0;
	if (!strcmp(name, "gfx"))
		return safety_range(name, value, false, &entry->gfx, error);
	if (!strcmp(name, "mec"))
		return safety_range(name, value, false, &entry->mec, error);
	if (!strcmp(name, "mes"))
		return safety_range(name, value, false, &entry->mes, error);
	if (!strcmp(name, "kernel"))
		return safety_range(name, value, true, &entry->kernel, error);
	if (!strcmp(name, "rocm"))
		return safety_range(name, value, true, &entry->rocm, error);
	if (!strcmp(name, "action"))
		return safety_action(value, entry, error);
	text = !strcmp(name, "title")   ? entry->title :
	       !strcmp(name, "happens") ? entry->happens :
	       !strcmp(name, "source")  ? entry->source :
					  NULL;
	if (!text)
		return gp_error_set(error, -EINVAL, "there is no '%s'", name);
	if (!*value || strlen(value) >= GP_SAFETY_TEXT_SIZE)
		return gp_error_set(error, -EINVAL, "%s: empty or longer than %u bytes", name, GP_SAFETY_TEXT_SIZE - 1);
	snprintf(text, GP_SAFETY_TEXT_SIZE, "%s", value);
	return 0;
}

int gp_safety_parse(const char *text, size_t size, const char *name, struct gp_safety_entry *ret_entry,
		    struct gp_error *error)
{
	const struct gp_safety_range none = { 1, 0 };
	struct gp_safety_entry entry = { .gfx = none,
					 .mec = none,
					 .mes = none,
					 .kernel = none,
					 .rocm = none,
					 .action = GP_SAFETY_LIMIT };
	int r = gp_ini_parse(text, size, name, safety_entry, &entry, error);

	if (r)
		return r;
	snprintf(entry.name, sizeof(entry.name), "%s", name);
	if (entry.gfx.first > entry.gfx.last)
		return gp_error_set(error, -EINVAL, "%s: gfx is missing: an entry is about parts", name);
	if (!*entry.title || !*entry.happens || !*entry.source ||
	    (entry.action == GP_SAFETY_LIMIT && !entry.limit_permille))
		return gp_error_set(error, -EINVAL, "%s: title, happens, source or action is missing", name);
	*ret_entry = entry;
	return 0;
}

static int safety_read_file(const char *name, struct gp_safety_entry *ret_entry, struct gp_error *error)
{
	GP_AUTO_FREE char *text = NULL;
	char relative[GP_PATHS_NAME_SIZE + 16], path[4096];
	size_t size;
	int r;

	if (strlen(name) >= GP_SAFETY_NAME_SIZE)
		return gp_error_set(error, -EINVAL, "share/safety/%s.ini: the name is too long", name);
	snprintf(relative, sizeof(relative), "safety/%s.ini", name);
	r = gp_paths_share(relative, path, sizeof(path));
	if (r)
		return gp_error_set(error, r, "share/%s: %s", relative, strerror(-r));
	r = gp_file_read(path, SAFETY_FILE_MAX, &text, &size, error);
	return r ? r : gp_safety_parse(text, size, name, ret_entry, error);
}

int gp_safety_read(struct gp_safety *ret_safety, struct gp_error *error)
{
	GP_AUTO_FREE struct gp_paths_names *names = calloc(1, sizeof(*names));
	int r = names ? gp_paths_list("safety", ".ini", names) : -ENOMEM;

	ret_safety->count = ret_safety->bad_count = 0;
	if (r == -ENOENT)
		return 0;
	if (r)
		return gp_error_set(error, r, "share/safety: %s", strerror(-r));
	if (names->count > GP_SAFETY_MAX)
		return gp_error_set(error, -E2BIG, "share/safety has more than %u files", GP_SAFETY_MAX);
	for (uint32_t i = 0; i < names->count; i++) {
		struct gp_error bad = { "" };

		if (!safety_read_file(names->names[i], &ret_safety->entries[ret_safety->count], &bad))
			ret_safety->count++;
		else if (ret_safety->bad_count < GP_SAFETY_BAD_MAX)
			ret_safety->bad[ret_safety->bad_count++] = bad;
	}
	return 0;
}

static void safety_first_line(const char *path, char *ret_line, size_t size)
{
	FILE *file = fopen(path, "re");

	ret_line[0] = '\0';
	if (file && !fgets(ret_line, (int)size, file))
		ret_line[0] = '\0';
	if (file)
		fclose(file);
	ret_line[strcspn(ret_line, "\n")] = '\0';
}

/* Reads "0x00000080", as amdgpu writes it. A 0 there means that there is no such firmware. */
static uint64_t safety_firmware(const struct gp_kfd_node *node, const char *sysfs, const char *which)
{
	char path[256], line[32];
	uint64_t number;

	if (node->render_minor == GP_KFD_UNKNOWN)
		return GP_KFD_UNKNOWN;
	snprintf(path, sizeof(path), "%s/class/drm/renderD%" PRIu64 "/device/fw_version/%s_fw_version", sysfs,
		 node->render_minor, which);
	safety_first_line(path, line, sizeof(line));
	return safety_number(line, strlen(line), false, &number) || !number ? GP_KFD_UNKNOWN : number;
}

void gp_safety_look(const struct gp_kfd_node *node, const char *sysfs, struct gp_safety_part *ret_part)
{
	struct utsname name;
	char line[64];

	safety_first_line(SAFETY_ROCM, line, sizeof(line));
	*ret_part = (struct gp_safety_part){ .gfx = node->gfx_version,
					     .mec = node->firmware,
					     .mes = safety_firmware(node, sysfs, "mes"),
					     .kernel = uname(&name) ? GP_KFD_UNKNOWN : safety_version(name.release),
					     .rocm = safety_version(line) };
}

static bool safety_fits(const struct gp_safety_range *range, uint64_t value)
{
	return range->first > range->last || (value != GP_KFD_UNKNOWN && value >= range->first && value <= range->last);
}

bool gp_safety_is_about(const struct gp_safety_entry *entry, const struct gp_safety_part *part)
{
	return safety_fits(&entry->gfx, part->gfx) && safety_fits(&entry->mec, part->mec) &&
	       safety_fits(&entry->mes, part->mes) && safety_fits(&entry->kernel, part->kernel) &&
	       safety_fits(&entry->rocm, part->rocm);
}

void gp_safety_overrule(struct gp_safety *safety, const char *name)
{
	for (uint32_t i = 0; i < safety->count; i++)
		if (!strcmp(safety->entries[i].name, name))
			safety->entries[i].is_overruled = true;
}

const struct gp_safety_entry *gp_safety_find(const struct gp_safety *safety, const struct gp_safety_part *part)
{
	const struct gp_safety_entry *found = NULL;

	for (uint32_t i = 0; i < safety->count; i++) {
		const struct gp_safety_entry *entry = &safety->entries[i];

		if (!entry->is_overruled && gp_safety_is_about(entry, part) &&
		    (!found || entry->action < found->action ||
		     (entry->action == found->action && entry->limit_permille < found->limit_permille)))
			found = entry;
	}
	return found;
}

const char *gp_safety_action_text(const struct gp_safety_entry *entry, char *buffer, size_t size)
{
	if (entry->action == GP_SAFETY_REFUSE)
		snprintf(buffer, size, "the daemon does not schedule this GPU");
	else if (entry->action == GP_SAFETY_SUBMIT)
		snprintf(buffer, size, "the daemon stops nothing that runs, and only holds back what is submitted");
	else
		snprintf(buffer, size, "the daemon spends at most %u.%u %% of the time on preempting",
			 entry->limit_permille / 10, entry->limit_permille % 10);
	return buffer;
}
