/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of hosts: checked, converted, planned for; what is converted is a rank table. */
#include "fuzz.h"

#include "base/vec.h"

static const char *word(size_t i)
{
	static const char *const words[] = {"node1", "node[1-4]", "[", "]", "-", ",", ":8", " slots=8", " max_slots=8", "#",
		"8(x4),2\n", "(x", "SLURM_JOB_NODELIST=", "SLURM_TASKS_PER_NODE=", "export ", "'", "\"", "[0-9999999]", "[007-9]",
		"10.0.0.1", "*", "0", "999999999", "\r\n", "\xef\xbb\xbf"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

/* Short texts may mean a million devices: of these only the reader is tried. */
static int means_many(const uint8_t *data, size_t size)
{
	static const char *const before[] = {"slots=", ":", "-", "x", ",", "\n"};
	int brackets = 0, many = size && data[0] >= '0' && data[0] <= '9';

	for (size_t i = 0; i < size; i++)
		brackets += data[i] == '[';
	for (size_t i = 0; i < AP_COUNT(before); i++)
		many |= fuzz_many(data, size, before[i], 1);
	return brackets > 1 || many;
}

static int try_input(const uint8_t *data, size_t size)
{
	fuzz_file("in", data, size);
	(void)fuzz_run("check in");
	if (means_many(data, size))
		return 0;
	if (fuzz_run("convert in out.json --devices-per-server 2") == AP_OK)
		fuzz_must("check out.json --no-hccl-rules");
	(void)fuzz_run("search pair.json in --chip a100-80 --executor generic -q");
	return 0;
}

FUZZ_TARGET(hosts, word, try_input)
