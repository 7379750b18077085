/* SPDX-License-Identifier: MIT */
/* Feeds every file of a corpus folder to a fuzzer's entry point, so that the corpus is an ordinary test with any
 * compiler. Fails when the folder holds no file: an empty corpus would be a check that cannot fail. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int corpus_feed(const char *path)
{
	struct stat st;
	uint8_t *data;
	FILE *file;
	size_t size;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return -1;
	}
	/* Exactly as many bytes as the file has, so that the address sanitizer sees a read of one too many. */
	data = malloc(st.st_size ? (size_t)st.st_size : 1);
	if (!data) {
		fclose(file);
		return -1;
	}
	size = fread(data, 1, (size_t)st.st_size, file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 1;
}

int main(int argc, char **argv)
{
	struct dirent *entry;
	char path[4096];
	int fed, count = 0;
	DIR *dir;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
		return 2;
	}
	dir = opendir(argv[1]);
	if (!dir) {
		perror(argv[1]);
		return 1;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		fed = corpus_feed(path);
		if (fed < 0)
			return 1;
		count += fed;
	}
	closedir(dir);
	printf("%s: %d files\n", argv[1], count);
	return count ? 0 : 1;
}
