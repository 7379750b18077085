/* SPDX-License-Identifier: MIT */
/* Whole files: read within a limit, written completely or not at all. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "lib/file.h"

static char folder[] = "/tmp/gp-lib-file-XXXXXX", path[128];
static struct gp_error error;

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/out", folder);
	return 0;
}

static int entries(void)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void put(const char *text)
{
	struct gp_file_writer writer;

	assert_int_equal(gp_file_open(&writer, path, &error), 0);
	fputs(text, writer.stream);
	assert_int_equal(gp_file_commit(&writer, &error), 0);
	gp_file_abandon(&writer);
}

static void expect(const char *text)
{
	char *got = NULL;
	size_t size = 0;

	assert_int_equal(gp_file_read(path, 1u << 20, &got, &size, &error), 0);
	assert_int_equal(size, strlen(text));
	assert_string_equal(got, text);
	free(got);
}

/* What is committed is there; a second time replaces it; what is abandoned leaves the old content and no other file. */
/* Somebody has put a link where our temporary file would be: what it points to is left alone. */
static void test_link_in_the_way(void **state)
{
	char link[200], victim[200], byte = 0;
	int fd;

	(void)state;
	snprintf(victim, sizeof(victim), "%s.victim", path);
	snprintf(link, sizeof(link), "%s.%ld-0.tmp", path, (long)getpid());
	fd = open(victim, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "v", 1), 1);
	close(fd);
	assert_int_equal(symlink(victim, link), 0);
	put("first");
	expect("first");
	fd = open(victim, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(byte, 'v');
	close(fd);
	unlink(victim);
	unlink(link);
}

static void test_replaces(void **state)
{
	struct gp_file_writer writer;

	(void)state;
	put("first");
	expect("first");
	put("second");
	expect("second");
	assert_int_equal(gp_file_open(&writer, path, &error), 0);
	fputs("half", writer.stream);
	assert_int_equal(entries(), 2);
	gp_file_abandon(&writer);
	expect("second");
	assert_int_equal(entries(), 1);
}

/* The file behind a link is replaced, not the link. */
static void test_follows_link(void **state)
{
	char link[160];
	struct stat st;
	struct gp_file_writer writer;

	(void)state;
	put("old");
	(void)snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(gp_file_open(&writer, link, &error), 0);
	fputs("new", writer.stream);
	assert_int_equal(gp_file_commit(&writer, &error), 0);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	expect("new");
	unlink(link);
}

/* A device that is full: the commit says so, and nothing is left behind. /dev/full itself stays a device. */
static void test_full(void **state)
{
	struct gp_file_writer writer;
	struct stat st;

	(void)state;
	if (access("/dev/full", W_OK))
		skip();
	assert_int_equal(gp_file_open(&writer, "/dev/full", &error), 0);
	fputs("text", writer.stream);
	assert_int_equal(gp_file_commit(&writer, &error), -ENOSPC);
	assert_non_null(strstr(error.text, "/dev/full: cannot write"));
	gp_file_abandon(&writer);
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

/* A stream that failed in the middle fails the commit, although the last write went well: the old file stays. */
static void test_failed_stream(void **state)
{
	struct gp_file_writer writer;

	(void)state;
	put("kept");
	assert_int_equal(gp_file_open(&writer, path, &error), 0);
	(void)fgetc(writer.stream); /* reading from a stream for writing sets its error flag */
	assert_true(ferror(writer.stream));
	assert_true(gp_file_commit(&writer, &error) < 0);
	expect("kept");
	assert_int_equal(entries(), 1);
}

/* Where the file cannot be created, the reason is told with the path. */
static void test_cannot_create(void **state)
{
	struct gp_file_writer writer;
	char *longest = malloc(6000);

	(void)state;
	assert_int_equal(gp_file_open(&writer, "/nowhere/out", &error), -ENOENT);
	assert_non_null(strstr(error.text, "/nowhere/out: cannot create"));
	gp_file_abandon(&writer);
	assert_int_equal(gp_file_open(&writer, folder, &error), -EISDIR);
	memset(longest, 'a', 5999);
	longest[5999] = '\0';
	assert_int_equal(gp_file_open(&writer, longest, &error), -ENAMETOOLONG);
	free(longest);
}

/* To try leaves what is there, and makes nothing. */
static void test_tries(void **state)
{
	(void)state;
	put("kept");
	assert_int_equal(gp_file_try(path, &error), 0);
	expect("kept");
	assert_int_equal(entries(), 1);
	assert_int_equal(gp_file_try(NULL, &error), 0);
	assert_int_equal(gp_file_try("-", &error), 0);
	assert_int_equal(gp_file_try("/dev/full", &error), 0);
	assert_int_equal(gp_file_try("/nowhere/out", &error), -ENOENT);
	assert_non_null(strstr(error.text, "/nowhere/out: cannot create"));
}

/* Standard output is written to and left open. */
static void test_standard_output(void **state)
{
	struct gp_file_writer writer;

	(void)state;
	assert_int_equal(gp_file_open(&writer, "-", &error), 0);
	assert_ptr_equal(writer.stream, stdout);
	assert_int_equal(gp_file_commit(&writer, &error), 0);
	gp_file_abandon(&writer);
	assert_true(fileno(stdout) >= 0);
}

/* The limit is exact; a missing file and a folder are refused; an empty file is an empty text; large files are read
 * whole. */
static void test_reads(void **state)
{
	char *text = NULL;
	size_t size = 77;

	(void)state;
	put("12345");
	assert_int_equal(gp_file_read(path, 5, &text, &size, &error), 0);
	free(text);
	text = NULL;
	assert_int_equal(gp_file_read(path, 4, &text, &size, &error), -EFBIG);
	assert_non_null(strstr(error.text, "is larger than 4 bytes"));
	assert_null(text);
	assert_int_equal(gp_file_read("/nowhere", 4, &text, &size, &error), -ENOENT);
	assert_int_equal(gp_file_read(folder, 4, &text, &size, &error), -EISDIR);
	put("");
	assert_int_equal(gp_file_read(path, 0, &text, &size, &error), 0);
	assert_int_equal(size, 0);
	assert_string_equal(text, "");
	free(text);
	text = malloc(300001);
	memset(text, 'x', 300000);
	text[300000] = '\0';
	put(text);
	expect(text);
	free(text);
}

/* A write that failed early, and was forgotten by the stream, still has its reason in the sentence. */
static void test_reason(void **state)
{
	struct rlimit before, limit;
	struct gp_file_writer writer;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 100000;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(gp_file_open(&writer, path, &error), 0);
	for (int i = 0; i < 100000; i++)
		fprintf(writer.stream, "line %d\n", i);
	(void)fflush(writer.stream);
	assert_int_equal(gp_file_commit(&writer, &error), -EFBIG);
	assert_non_null(strstr(error.text, strerror(EFBIG)));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	gp_file_abandon(&writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replaces),        cmocka_unit_test(test_link_in_the_way),
		cmocka_unit_test(test_follows_link),    cmocka_unit_test(test_full),
		cmocka_unit_test(test_failed_stream),   cmocka_unit_test(test_cannot_create),
		cmocka_unit_test(test_standard_output), cmocka_unit_test(test_reads),
		cmocka_unit_test(test_reason),          cmocka_unit_test(test_tries),
	};

	return cmocka_run_group_tests_name("lib/file", tests, setup, teardown);
}
