/* SPDX-License-Identifier: Apache-2.0 */
/* Plans a network that is in memory, and prints its step time. Usage: plan GRAPH DEVICES
 *     cc plan.c $(pkg-config --cflags --libs autopar) -o plan && ./plan multiple_mix.json 8 */
#include <autopar/autopar.h>
#include <stdio.h>
#include <stdlib.h>

static char *read_all(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "rb");
	long size = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
	char *text = size < 0 ? NULL : malloc((size_t)size + 1);

	if (text) {
		rewind(f);
		*bytes = fread(text, 1, (size_t)size, f);
	}
	if (f)
		fclose(f);
	return text;
}

static void print_messages(const struct autopar *a)
{
	for (size_t i = 0; i < autopar_messages(a); i++) {
		const char *file = autopar_message(a, i, "file");

		fprintf(stderr, "%s: %s%s%s\n", autopar_message(a, i, "level"), file ? file : "", file ? ": " : "",
			autopar_message(a, i, "text"));
	}
}

int main(int argc, char **argv)
{
	struct autopar *a = autopar_create();
	struct autopar_plan *plan = NULL;
	size_t bytes = 0;
	char *graph = argc == 3 ? read_all(argv[1], &bytes) : NULL;
	int status = 1;

	if (a && graph && autopar_graph_memory(a, argv[1], graph, bytes) == AUTOPAR_OK &&
		autopar_set(a, "device_num", argv[2]) == AUTOPAR_OK &&
		autopar_set(a, "chip", "ascend910b") == AUTOPAR_OK && autopar_search(a, &plan) == AUTOPAR_OK) {
		printf("%.17g\n", autopar_plan_step_time_s(plan));
		status = 0;
	}
	if (a)
		print_messages(a);
	free(graph);
	autopar_plan_destroy(plan);
	autopar_destroy(a);
	return status;
}
