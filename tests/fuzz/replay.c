/* SPDX-License-Identifier: Apache-2.0 */
/* Goes over a corpus, folders and files, as libFuzzer would: every file, cut at some places, too. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CUTS = 16 };

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	long size;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) {
		perror(path);
		return -1;
	}
	for (size_t cut = 1; cut <= CUTS; cut++) {
		size_t part = (size_t)size / CUTS * cut + (cut == CUTS ? (size_t)size % CUTS : 0);

		data = malloc(part + !part); /* of this size, so that reading past it shows */
		rewind(f);
		if (!data || fread(data, 1, part, f) != part) {
			perror(path);
			return -1;
		}
		LLVMFuzzerTestOneInput(data, part);
		free(data);
	}
	fclose(f);
	return 1;
}

/* The files gone over; -1 where one could not be read. */
static int replay(const char *path)
{
	struct stat st;
	struct dirent *entry;
	char inner[4096];
	int n = 0, one = 0;
	DIR *dir;

	if (stat(path, &st) || !S_ISDIR(st.st_mode))
		return replay_file(path);
	dir = opendir(path);
	while (dir && one >= 0 && (entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
		one = replay(inner);
		n += one;
	}
	if (dir)
		closedir(dir);
	return !dir || one < 0 ? -1 : n;
}

int main(int argc, char **argv)
{
	int n = 0, one = 0;

	for (int i = 1; i < argc && one >= 0; i++) {
		one = replay(argv[i]);
		n += one;
	}
	printf("%d files\n", n);
	return one < 0 || n < 1 ? EXIT_FAILURE : EXIT_SUCCESS;
}
