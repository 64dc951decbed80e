/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as rows with typed values. settings.def alone lists them, spellings.def gives other
 * spellings. Values come as text: from a command line, a config file, or a program that uses the
 * library. */
#ifndef AP_API_SETTINGS_H
#define AP_API_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/choices.h"
#include "base/ctx.h"

enum { /* the commands that a setting is for, a bit each */
	AP_FOR_search = 1 << 0,
	AP_FOR_evaluate = 1 << 1,
	AP_FOR_check = 1 << 2,
	AP_FOR_import = 1 << 3,
	AP_FOR_render = 1 << 4,
	AP_FOR_convert = 1 << 5,
	AP_FOR_diff = 1 << 6,
	AP_FOR_solve = 1 << 7,
	AP_FOR_list = 1 << 8,
	AP_FOR_model = 1 << 9,
	AP_FOR_plan = 1 << 10,
	AP_FOR_show = 1 << 11,
	AP_FOR_compare = 1 << 12,
	AP_FOR_explain = 1 << 13,
	AP_FOR_PLANNERS = AP_FOR_search | AP_FOR_evaluate | AP_FOR_plan,
	AP_FOR_DECIDERS = AP_FOR_search | AP_FOR_plan, /* they decide among several values of a setting */
	AP_FOR_ALL = (1 << 14) - 1
};

enum ap_setting_type {
	AP_SET_FLAG,
	AP_SET_INT,
	AP_SET_NUM,
	AP_SET_SIZE,
	AP_SET_AMOUNT, /* an integer, "15T" */
	AP_SET_PRICE, /* numbers, by the hour, "2.10/h" */
	AP_SET_INTS, /* ascending */
	AP_SET_SERIES, /* integers in any order */
	AP_SET_CHOICE,
	AP_SET_TIME, /* seconds, "20s" */
	AP_SET_TEXT,
	AP_SET_TEXTS, /* words; joined with commas if given several times */
	AP_SET_LISTS, /* a word, or lists of integers as JSON text */
	AP_SET_COUNTS, /* words with numbers, "full:13,5,mlp"; in JSON also an object; joined as TEXTS */
	AP_SET_DICT, /* a file, or a JSON object as text */
	AP_SET_INPUT,
	AP_SET_OUTPUT,
	AP_SET_FOLDER /* for outputs */
};

enum ap_setting_group { /* headings of the help */
	AP_GROUP_MODEL,
	AP_GROUP_MACHINE,
	AP_GROUP_STEP,
	AP_GROUP_PARALLEL,
	AP_GROUP_PIPELINE,
	AP_GROUP_DECIDE,
	AP_GROUP_SEARCH, /* groups up to here decide the result and are echoed in the plan */
	AP_GROUP_OUTPUTS,
	AP_GROUP_INPUTS,
	AP_GROUP_RUN,
	AP_GROUP_ACCEPTED, /* MindSpore's settings without influence on planning */
	AP_GROUP_GENERAL, /* not in a config file */
	AP_GROUP_COUNT
};

enum { /* what a setting influences */
	AP_ON_PLAN = 1, /* the possible cuts, stages or schedules */
	AP_ON_COST = 2, /* predicted times, and so the best plan */
	AP_ON_MEMORY = 4, /* predicted memory, and so which plans fit */
	AP_ON_FILES = 8, /* the output files only */
	AP_ON_NOTED = 16 /* nothing, though the executor then behaves differently */
};

struct ap_prices { /* a list of numbers; n 0: not given */
	size_t n;
	const double *v;
};

struct ap_ints { /* a list of integers */
	size_t n;
	const int64_t *v;
};

/* Are all numbers of a list the same? */
bool ap_ints_equal(const struct ap_ints *list);

/* Of a higher one is what counts. AP_FROM_SITE: a file of the site's own defaults. */
enum ap_origin { AP_FROM_DEFAULT, AP_FROM_SITE, AP_FROM_ENVIRONMENT, AP_FROM_CONFIG, AP_FROM_OPTION };

enum ap_setting_id {
#define SETTING(field, ...) AP_SET_##field,
#define ALIAS(field, key)
#define SEVERAL(field, range)
#define SITE(field)
#include "api/settings.def"
#undef SETTING
#undef ALIAS
#undef SEVERAL
#undef SITE
	AP_SET_COUNT
};

#define AP_SET_CTYPE_FLAG bool
#define AP_SET_CTYPE_INT int64_t
#define AP_SET_CTYPE_NUM double
#define AP_SET_CTYPE_SIZE int64_t
#define AP_SET_CTYPE_AMOUNT int64_t
#define AP_SET_CTYPE_PRICE struct ap_prices
#define AP_SET_CTYPE_TIME double
#define AP_SET_CTYPE_INTS struct ap_ints
#define AP_SET_CTYPE_SERIES struct ap_ints
#define AP_SET_CTYPE_CHOICE int /* index among the row's choices */
#define AP_SET_CTYPE_TEXT const char *
#define AP_SET_CTYPE_TEXTS const char *
#define AP_SET_CTYPE_LISTS const char *
#define AP_SET_CTYPE_COUNTS const char *
#define AP_SET_CTYPE_DICT const char *
#define AP_SET_CTYPE_INPUT const char *
#define AP_SET_CTYPE_OUTPUT const char *
#define AP_SET_CTYPE_FOLDER const char *

enum ap_progress_way { AP_PROGRESS_NONE, AP_PROGRESS_SHOWN, AP_PROGRESS_JSON };

/* A number of the chip or of the software profile. */
struct ap_profile_number {
	const char *path; /* hw/constant.h */
	double value; /* within what a profile may state */
};

struct ap_settings { /* a value type: may be copied and changed; texts are borrowed */
#define SETTING(field, letter, type, ...) AP_SET_CTYPE_##type field;
#define ALIAS(field, key)
#define SEVERAL(field, range)
#define SITE(field)
#include "api/settings.def"
#undef SETTING
#undef ALIAS
#undef SEVERAL
#undef SITE
	/* Several values, which are still to be decided among; the field then holds the first of them, or of
	 * auto its default. NULL: the field is the value. Of hybrid, whose
	 * text is then a space of hybrids (hybrid/hybrid_parse.h), only their number. */
	const struct ap_choices *among[AP_SET_COUNT];
	enum ap_origin origin[AP_SET_COUNT];
	const char *name[AP_SET_COUNT]; /* spelling: "--vpp", "hsdp.threshold"; NULL if not given */
	const struct ap_profile_number *number; /* of a trial, in place of what the profile says; or NULL */
	double keep_best_s; /* of a trial with keep: the best step known under other settings; 0: none is */
};

/* Choices that no other table lists: the program's constant, and the word. */
#define AP_COLORS(X) X(COLOR_AUTO, "auto") X(COLOR_ALWAYS, "always") X(COLOR_NEVER, "never")
#define AP_MODES(X) \
	X(MODE_AUTO_PARALLEL, "auto_parallel") \
	X(MODE_DATA_PARALLEL, "data_parallel") \
	X(MODE_SEMI_AUTO_PARALLEL, "semi_auto_parallel") \
	X(MODE_HYBRID_PARALLEL, "hybrid_parallel") \
	X(MODE_STAND_ALONE, "stand_alone")
#define AP_FUSES(X) X(FUSE_AUTO, "auto") X(FUSE_SIZE, "size") X(FUSE_INDEX, "index")
#define AP_RUN_PHASES(X) X(RUN_TRAINING, "training") X(RUN_INFERENCE, "inference")
#define AP_FP8S(X) X(FP8_E4M3, "e4m3") X(FP8_HYBRID, "hybrid")
#define AP_DISPATCHERS(X) X(DISPATCH_ALLTOALL, "alltoall") X(DISPATCH_DEEPEP, "deepep")
#define AP_UNKNOWNS(X) X(UNKNOWN_ERROR, "error") X(UNKNOWN_BATCH_PARALLEL, "batch-parallel")
#define AP_LEVELS(X) X(LEVEL1, "level1") X(LEVEL2, "level2") X(LEVEL3, "level3") \
	X(LEVEL_NONE, "none") /* of sharding */
#define AP_ATTENTIONS(X) X(ATTENTION_SMALL, "small-operators") X(ATTENTION_FLASH, "flash")
#define AP_KERNELS(X) X(KERNELS_SINGLE, "single") X(KERNELS_FUSED, "fused")

#define CONSTANT(name, word) AP_##name,
enum { AP_COLORS(CONSTANT) };
enum { AP_MODES(CONSTANT) };
enum { AP_FUSES(CONSTANT) };
enum { AP_RUN_PHASES(CONSTANT) };
enum { AP_FP8S(CONSTANT) };
enum { AP_DISPATCHERS(CONSTANT) };
enum { AP_UNKNOWNS(CONSTANT) };
enum { AP_LEVELS(CONSTANT) };
enum { AP_ATTENTIONS(CONSTANT) };
enum { AP_KERNELS(CONSTANT) };
#undef CONSTANT

enum { /* rows of pipeline/schedulers.def */
	AP_SCHEDULER_GPIPE,
	AP_SCHEDULER_1F1B,
	AP_SCHEDULER_INTERLEAVED,
	AP_SCHEDULER_ZERO_BUBBLE_V
};

/* What an index of optimizer_level, which is no level itself, says is dealt: 0, nothing; 1 to 3. */
static inline int ap_setting_level(int64_t index)
{
	return index == AP_LEVEL_NONE ? 0 : (int)index - AP_LEVEL1 + 1;
}

/* Name i of a CHOICE, NULL past the end. A leading '!' marks a name that is known but unavailable;
 * ": " and a reason may follow it. */
typedef const char *ap_choice_fn(size_t i);
ap_choice_fn ap_choices_scheduler, ap_choices_search_mode;

struct ap_setting_row { /* a row of settings.def */
	const char *key; /* in a config file */
	char letter; /* of the option; 0 if none */
	enum ap_setting_type type;
	const char *otherwise; /* default as text; NULL if not given */
	int64_t least, most; /* limits of INT, NUM, INTS and SERIES */
	ap_choice_fn *choices;
	unsigned uses; /* AP_FOR_... */
	enum ap_setting_group group;
	unsigned on; /* AP_ON_... */
	const char *idle; /* why it has no influence on planning; else NULL */
	const char *metavar;
	const char *help;
	size_t offset; /* in struct ap_settings */
};

/* Row of a setting. */
const struct ap_setting_row *ap_setting_at(enum ap_setting_id id);

/* The row of a config key or alias; NULL if unknown. */
const struct ap_setting_row *ap_setting_of_key(const char *key);

/* Alias i, another key of *id; NULL past the end. */
const char *ap_setting_alias_at(size_t i, enum ap_setting_id *id);

/* The long option after dashes ("--", "--no-"); owned by arena. */
const char *ap_option_spelling(struct ap_arena *arena, const char *dashes,
	const struct ap_setting_row *row);

/* ap_option_spelling() for any key. */
const char *ap_key_spelling(struct ap_arena *arena, const char *dashes, const char *key);

/* May a setting have several values, for AP_FOR_DECIDERS? *range: what a range of them means. */
bool ap_setting_takes_several(const struct ap_setting_row *row, enum ap_range *range);

/* Setting i of those of which a site may have its own defaults; AP_SET_COUNT past the end. */
enum ap_setting_id ap_setting_of_site(size_t i);

/* Describes allowed values: "an integer from 1 to 256", "one of auto, always, never"; the first leaves
 * several values out. */
const char *ap_setting_expects_one(struct ap_arena *arena, const struct ap_setting_row *row);
const char *ap_setting_expects(struct ap_arena *arena, const struct ap_setting_row *row);

/* Can it be given without a value, and as --no-..? A flag, or a choice of "false", "true" and more. */
bool ap_setting_is_switch(const struct ap_setting_row *row);

/* Sets every setting to its default, as if none were given. */
void ap_settings_init(struct ap_settings *s);

/* Resets a setting as if it had not been given. */
void ap_setting_unset(struct ap_settings *s, enum ap_setting_id id);

/* Was the setting given, from any origin? */
bool ap_setting_given(const struct ap_settings *s, enum ap_setting_id id);

/* Takes value i of those that a setting is to be decided among. A level of optimizer_level, of several,
 * also says whether enable_parallel_optimizer is on, unless that is given. */
void ap_setting_pick(struct ap_settings *s, enum ap_setting_id id, size_t i);

/* Gives a setting a value from text (kept, not copied); name is how the setting was spelled.
 * Accepts other spellings of values. A value from a higher origin stays; two names of one setting
 * must agree. Returns false, with *why, if text is no value of it. */
bool ap_setting_give(struct ap_arena *arena, const struct ap_setting_row *row, struct ap_settings *s,
	const char *text, enum ap_origin origin, const char *name, const char **why);

/* The value as text and as JSON text; NULL and "null" if not given. */
const char *ap_setting_text(struct ap_arena *arena, const struct ap_setting_row *row,
	const struct ap_settings *s);
const char *ap_setting_json(struct ap_arena *arena, const struct ap_setting_row *row,
	const struct ap_settings *s);

/* The file that a value of type INPUT, OUTPUT or DICT names; NULL if none. */
const char *ap_setting_path(const struct ap_setting_row *row, const struct ap_settings *s);

/* "--x 3", as the user spelled it, else its key and default; owned by the arena of ctx. */
const char *ap_setting_said(struct ap_ctx *ctx, const struct ap_settings *s, enum ap_setting_id id);

struct ap_value_spelling { /* a VALUE row of spellings.def */
	enum ap_setting_id setting;
	const char *text, *plain;
	enum ap_setting_id also; /* AP_SET_COUNT if none */
	const char *value;
};

struct ap_object_spelling { /* an OBJECT row */
	const char *path;
	enum ap_setting_id also;
};

struct ap_member_spelling { /* a MEMBER row */
	const char *path, *key;
	enum ap_setting_id setting;
};

/* Row i of each table; NULL past the end. */
const struct ap_value_spelling *ap_value_spelling_at(size_t i);
const struct ap_object_spelling *ap_object_spelling_at(size_t i);
const struct ap_member_spelling *ap_member_spelling_at(size_t i);

/* The object of a path; NULL if there is none. */
const struct ap_object_spelling *ap_object_spelling_of(const char *path);

/* The setting behind a member of an object; NULL if there is no such member. */
const struct ap_setting_row *ap_member_spelling_of(const char *path, const char *key);

#endif
