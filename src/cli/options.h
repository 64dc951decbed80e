/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings from the command line, a config file and the environment, in this order of precedence
 * before the defaults. Which there are is written in options.def alone, the commands in
 * commands.def.
 */
#ifndef AP_CLI_OPTIONS_H
#define AP_CLI_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/json.h"

struct ap_run;
struct ap_str;

enum ap_command_id {
#define COMMAND(name, ...) AP_CMD_##name,
#include "cli/commands.def"
#undef COMMAND
	AP_CMD_COUNT
};

struct ap_command {
	const char *name;
	const char *args; /* synopsis */
	int least, most; /* number of arguments */
	const char *help; /* one line */
	const char *details; /* a paragraph */
	const char *examples; /* whole lines */
	enum ap_status (*run)(struct ap_run *run);
};

/* Row i of commands.def; NULL past the end. */
const struct ap_command *ap_command_at(size_t i);

/* Sets of commands, for the rows of options.def. */
enum {
	AP_FOR_SEARCHER = 1 << AP_CMD_search,
	AP_FOR_EVALUATOR = 1 << AP_CMD_evaluate,
	AP_FOR_PLANNERS = AP_FOR_SEARCHER | AP_FOR_EVALUATOR,
	AP_FOR_CHECKER = 1 << AP_CMD_check,
	AP_FOR_IMPORTER = 1 << AP_CMD_import,
	AP_FOR_RENDERER = 1 << AP_CMD_render,
	AP_FOR_CONVERTER = 1 << AP_CMD_convert,
	AP_FOR_DIFFER = 1 << AP_CMD_diff,
	AP_FOR_SOLVER = 1 << AP_CMD_solve,
	AP_FOR_LISTER = 1 << AP_CMD_list,
	AP_FOR_EVERY = (1 << AP_CMD_COUNT) - 1
};

enum ap_opt_type {
	AP_OPT_FLAG,
	AP_OPT_INT,
	AP_OPT_NUM,
	AP_OPT_SIZE,
	AP_OPT_INTS,
	AP_OPT_CHOICE,
	AP_OPT_TEXT,
	AP_OPT_TEXTS, /* words, joined with commas where the option is given several times */
	AP_OPT_LISTS, /* a word, or lists of integers as JSON text */
	AP_OPT_DICT, /* a file, or a JSON object as text */
	AP_OPT_INPUT,
	AP_OPT_OUTPUT,
	AP_OPT_FOLDER /* of outputs */
};

enum ap_opt_group { /* headings of the help text */
	AP_GROUP_MACHINE,
	AP_GROUP_STEP,
	AP_GROUP_PARALLEL,
	AP_GROUP_PIPELINE,
	AP_GROUP_SEARCH, /* these and those before decide the result: they are echoed in the plan */
	AP_GROUP_OUTPUTS,
	AP_GROUP_INPUTS,
	AP_GROUP_RUN,
	AP_GROUP_ACCEPTED, /* MindSpore's, without influence on planning */
	AP_GROUP_GENERAL, /* not in a config file */
	AP_GROUP_COUNT
};

enum { /* what a setting influences */
	AP_ON_PLAN = 1, /* which cuts, stages or schedules there may be */
	AP_ON_COST = 2, /* predicted times, and so what is best */
	AP_ON_MEMORY = 4, /* predicted memory, and so what fits */
	AP_ON_FILES = 8, /* what is written, apart from these */
	AP_ON_NOTED = 16 /* none of them, but whoever runs the plan behaves differently */
};

struct ap_ints { /* a list of integers */
	size_t n;
	const int64_t *v;
};

enum ap_origin { AP_FROM_DEFAULT, AP_FROM_ENVIRONMENT, AP_FROM_CONFIG, AP_FROM_OPTION };

enum ap_opt_id {
#define OPTION(field, ...) AP_OPT_##field,
#define ALIAS(field, key)
#include "cli/options.def"
#undef OPTION
#undef ALIAS
	AP_OPT_COUNT
};

#define AP_OPT_CTYPE_FLAG bool
#define AP_OPT_CTYPE_INT int64_t
#define AP_OPT_CTYPE_NUM double
#define AP_OPT_CTYPE_SIZE int64_t
#define AP_OPT_CTYPE_INTS struct ap_ints
#define AP_OPT_CTYPE_CHOICE int /* index into the row's names */
#define AP_OPT_CTYPE_TEXT const char *
#define AP_OPT_CTYPE_TEXTS const char *
#define AP_OPT_CTYPE_LISTS const char *
#define AP_OPT_CTYPE_DICT const char *
#define AP_OPT_CTYPE_INPUT const char *
#define AP_OPT_CTYPE_OUTPUT const char *
#define AP_OPT_CTYPE_FOLDER const char *

struct ap_options {
#define OPTION(field, letter, type, ...) AP_OPT_CTYPE_##type field;
#define ALIAS(field, key)
#include "cli/options.def"
#undef OPTION
#undef ALIAS
	enum ap_origin origin[AP_OPT_COUNT];
	const char *name[AP_OPT_COUNT]; /* how it was spelled: "--vpp", "hsdp.threshold"; NULL: not given */
	bool brief; /* help was asked for with the letter */
};

/* Name i of a CHOICE, NULL past the end. A name with '!' before it is known but cannot be had; ": "
 * and the reason may follow it. */
typedef const char *ap_choice_fn(size_t i);
ap_choice_fn ap_choices_color, ap_choices_communi, ap_choices_context_mode, ap_choices_detail,
	ap_choices_device_target, ap_choices_executor, ap_choices_format, ap_choices_fusion,
	ap_choices_fusion_size, ap_choices_optimizer, ap_choices_optimizer_level,
	ap_choices_parallel_mode, ap_choices_recompute, ap_choices_run_phase, ap_choices_scheduler,
	ap_choices_search_mode, ap_choices_unknown_operators;

/* Indices into the lists of choices.c. */
enum { AP_COLOR_AUTO, AP_COLOR_ALWAYS, AP_COLOR_NEVER };
enum {
	AP_MODE_AUTO_PARALLEL,
	AP_MODE_DATA_PARALLEL,
	AP_MODE_SEMI_AUTO_PARALLEL,
	AP_MODE_HYBRID_PARALLEL,
	AP_MODE_STAND_ALONE
};
enum { /* pipeline/schedulers.def */
	AP_SCHEDULER_GPIPE,
	AP_SCHEDULER_1F1B,
	AP_SCHEDULER_INTERLEAVED,
	AP_SCHEDULER_ZERO_BUBBLE_V
};
enum { AP_FUSE_AUTO, AP_FUSE_SIZE, AP_FUSE_INDEX };
enum { AP_RUN_TRAINING, AP_RUN_INFERENCE };
enum { AP_UNKNOWN_ERROR, AP_UNKNOWN_BATCH_PARALLEL };

struct ap_option { /* a row of options.def */
	const char *key; /* in a config file */
	char letter; /* 0: none */
	enum ap_opt_type type;
	const char *otherwise; /* default as text; NULL: not given */
	int64_t least, most; /* of INT, NUM and INTS */
	ap_choice_fn *choices;
	unsigned commands; /* AP_FOR_... */
	enum ap_opt_group group;
	unsigned on; /* AP_ON_... */
	const char *idle; /* why it has no influence on planning; NULL: it has, or plans nothing */
	const char *metavar;
	const char *help;
	size_t offset; /* in struct ap_options */
};

/* Row of an option. */
const struct ap_option *ap_option_at(enum ap_opt_id id);

/* The row of a config key, aliases included; NULL when unknown. */
const struct ap_option *ap_option_of_key(const char *key);

/* Alias i: another key of *id; NULL past the end. */
const char *ap_option_alias_at(size_t i, enum ap_opt_id *id);

/* The long option with its dashes ("--", "--no-") before it, kept in arena. */
const char *ap_option_spelling(struct ap_arena *arena, const char *dashes,
	const struct ap_option *row);

/* The same of any key. */
const char *ap_key_spelling(struct ap_arena *arena, const char *dashes, const char *key);

/* What a value may be: "an integer from 1 to 256", "one of auto, always, never". */
const char *ap_option_expects(struct ap_arena *arena, const struct ap_option *row);

/* Sets a field from text, which is kept; name is how the setting was spelled. False, and *why says what
 * is wrong, when the text is no value of it. */
bool ap_option_set(struct ap_arena *arena, const struct ap_option *row, struct ap_options *o,
	const char *text, enum ap_origin origin, const char *name, const char **why);

/* The same for what the user gives: other spellings of values are known, what comes from a higher origin
 * stays, and two names of one setting have to agree. */
bool ap_option_give(struct ap_arena *arena, const struct ap_option *row, struct ap_options *o,
	const char *text, enum ap_origin origin, const char *name, const char **why);

/* The value of a field as text, and as JSON text; NULL and "null" where it is not given. */
const char *ap_option_text(struct ap_arena *arena, const struct ap_option *row,
	const struct ap_options *o);
const char *ap_option_json(struct ap_arena *arena, const struct ap_option *row,
	const struct ap_options *o);

/* The file that a field of type INPUT, OUTPUT or DICT names; NULL where it names none. */
const char *ap_option_path(const struct ap_option *row, const struct ap_options *o);

void ap_options_init(struct ap_options *o);

struct ap_cli {
	const struct ap_command *command; /* NULL: none was named (--help, --version, --print-config) */
	struct ap_options opt;
	size_t narg;
	const char *const *arg; /* of the command */
};

/* Reads the command line, then the config file and the environment. Reports every fault of it;
 * AP_USAGE, or what the config file ended with. */
enum ap_status ap_cli_parse(struct ap_ctx *ctx, int argc, char **argv, struct ap_cli *out);

/* Is this setting one of the command's (any, where there is no command)? */
bool ap_cli_takes(const struct ap_cli *cli, const struct ap_option *row);

/* Texts for standard output. */
void ap_help_text(const struct ap_cli *cli, struct ap_str *out);

/* "  LEFT      text ...", wrapped, the text in its own column. */
void ap_help_entry(struct ap_str *out, const char *left, const char *text);

/* Help line of a setting; in the long form with the values it takes and the default. */
const char *ap_option_help(struct ap_arena *arena, const struct ap_option *row, bool brief);

#endif
