/* SPDX-License-Identifier: Apache-2.0 */
/* Other spellings of settings: words that stand for a value, objects whose members are settings. */
#ifndef AP_CLI_SPELLINGS_H
#define AP_CLI_SPELLINGS_H

#include "cli/options.h"

struct ap_value_spelling { /* a row VALUE of spellings.def */
	enum ap_opt_id setting;
	const char *text, *plain;
	enum ap_opt_id also; /* AP_OPT_COUNT: none */
	const char *value;
};

struct ap_object_spelling { /* a row OBJECT */
	const char *path;
	enum ap_opt_id also;
};

struct ap_member_spelling { /* a row MEMBER */
	const char *path, *key;
	enum ap_opt_id setting;
};

/* Row i of each kind; NULL past the end. */
const struct ap_value_spelling *ap_value_spelling_at(size_t i);
const struct ap_object_spelling *ap_object_spelling_at(size_t i);
const struct ap_member_spelling *ap_member_spelling_at(size_t i);

/* What text stands for as a value of a setting; NULL: for itself. */
const struct ap_value_spelling *ap_value_spelling_of(const struct ap_option *row, const char *text);

/* The object of a path; NULL when there is none. */
const struct ap_object_spelling *ap_object_spelling_of(const char *path);

/* The setting that a member of an object is; NULL when the object has no such member. */
const struct ap_option *ap_member_spelling_of(const char *path, const char *key);

#endif
