/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations: every effective setting printed, a small search and an evaluation under them. */
#include "api/settings.h"
#include "base/vec.h"
#include "fuzz.h"

/* Keys of settings, their further names, objects, their members, other spellings of values, choices. */
static const char *word(size_t i)
{
	static const char *const words[] = {"dp=2,tp=2", "dp=4", "pp=2", "[[4,1],[1]]", "([4,1],)", "full_batch",
		"in.json", "out.ckpt", "1GB", "10KB", "1,2,4..6", "auto", "tp=1,2", "none|full", "a", "b",
		"c"};
	enum ap_setting_id id;

	if (i < AP_SET_COUNT)
		return ap_setting_at((enum ap_setting_id)i)->key;
	i -= AP_SET_COUNT;
	if (i < AP_COUNT(words))
		return words[i];
	i -= AP_COUNT(words);
	for (size_t n = 0; n < AP_SET_COUNT; n++) {
		const struct ap_setting_row *row = ap_setting_at((enum ap_setting_id)n);

		for (size_t c = 0; row->choices && row->choices(c); c++)
			if (!i--)
				return row->choices(c);
	}
	for (size_t n = 0; ap_setting_alias_at(n, &id); n++)
		if (!i--)
			return ap_setting_alias_at(n, &id);
	for (size_t n = 0; ap_object_spelling_at(n); n++)
		if (!i--)
			return ap_object_spelling_at(n)->path;
	for (size_t n = 0; ap_member_spelling_at(n); n++)
		if (!i--)
			return ap_member_spelling_at(n)->key;
	for (size_t n = 0; ap_value_spelling_at(n); n++)
		if (!i--)
			return ap_value_spelling_at(n)->text;
	return NULL;
}

static int try_input(const uint8_t *data, size_t size)
{
	fuzz_file("in.json", data, size);
	if (fuzz_run("search --print-config --config in.json") != AP_OK)
		return 0;
	(void)fuzz_run("check in.json");
	if (fuzz_run("search pair.json --config in.json --device-num 4 --chip ascend910b --plan-out plan.json") == AP_OK)
		(void)fuzz_run("check plan.json");
	(void)fuzz_run("search pair.json --config in.json --chip a100-80");
	(void)fuzz_run("evaluate pair.json --config in.json --device-num 4 --chip ascend910b --hybrid dp=2,tp=2 --json");
	return 0;
}

FUZZ_TARGET(config, word, try_input)
