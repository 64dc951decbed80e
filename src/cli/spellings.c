/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/spellings.h"

#include <string.h>

#include "base/vec.h"

#define AP_OPT_NONE AP_OPT_COUNT

static const struct ap_value_spelling values[] = {
#define VALUE(setting, text, plain, also, value) \
	{AP_OPT_##setting, text, plain, AP_OPT_##also, value},
#define OBJECT(path, also)
#define MEMBER(path, key, setting)
#include "cli/spellings.def"
#undef VALUE
#undef OBJECT
#undef MEMBER
};

static const struct ap_object_spelling objects[] = {
#define VALUE(setting, text, plain, also, value)
#define OBJECT(path, also) {path, AP_OPT_##also},
#define MEMBER(path, key, setting)
#include "cli/spellings.def"
#undef VALUE
#undef OBJECT
#undef MEMBER
};

static const struct ap_member_spelling members[] = {
#define VALUE(setting, text, plain, also, value)
#define OBJECT(path, also)
#define MEMBER(path, key, setting) {path, key, AP_OPT_##setting},
#include "cli/spellings.def"
#undef VALUE
#undef OBJECT
#undef MEMBER
};

const struct ap_value_spelling *ap_value_spelling_at(size_t i)
{
	return i < AP_COUNT(values) ? &values[i] : NULL;
}

const struct ap_object_spelling *ap_object_spelling_at(size_t i)
{
	return i < AP_COUNT(objects) ? &objects[i] : NULL;
}

const struct ap_member_spelling *ap_member_spelling_at(size_t i)
{
	return i < AP_COUNT(members) ? &members[i] : NULL;
}

const struct ap_value_spelling *ap_value_spelling_of(const struct ap_option *row, const char *text)
{
	for (size_t i = 0; i < AP_COUNT(values); i++)
		if (ap_option_at(values[i].setting) == row && !strcmp(values[i].text, text))
			return &values[i];
	return NULL;
}

const struct ap_object_spelling *ap_object_spelling_of(const char *path)
{
	for (size_t i = 0; i < AP_COUNT(objects); i++)
		if (!strcmp(objects[i].path, path))
			return &objects[i];
	return NULL;
}

const struct ap_option *ap_member_spelling_of(const char *path, const char *key)
{
	for (size_t i = 0; i < AP_COUNT(members); i++)
		if (!strcmp(members[i].path, path) && !strcmp(members[i].key, key))
			return ap_option_at(members[i].setting);
	return NULL;
}
