/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/parse.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/config.h"
#include "api/launch.h"
#include "api/settle.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/commands.h"
#include "cli/site.h"

static const struct ap_command commands[] = {
#define COMMAND(name, args, least, most, help, details, examples) \
	{#name, AP_FOR_##name, args, least, most, help, details, examples, ap_cmd_##name},
#include "cli/commands.def"
#undef COMMAND
};

const struct ap_command *ap_command_at(size_t i)
{
	return i < AP_COUNT(commands) ? &commands[i] : NULL;
}

unsigned ap_cli_uses(const struct ap_cli *cli)
{
	return cli->command ? cli->command->use : AP_FOR_ALL;
}

static bool takes(const struct ap_cli *cli, const struct ap_setting_row *row)
{
	return row->uses & ap_cli_uses(cli);
}

struct parser {
	struct ap_ctx *ctx;
	struct ap_cli *cli;
	int argc, at; /* index of the next word */
	char **argv;
	const char *by[AP_SET_COUNT]; /* the key or alias it was given by, or NULL */
};

#define FAULT(p, ...) \
	((void)ap_diag_add((p)->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, __VA_ARGS__))

/* Does an option's name (with '-') spell the row's key (with '_')? */
static bool spells(const char *name, size_t len, const char *key)
{
	for (size_t i = 0; i < len; i++)
		if (name[i] == '_' || (name[i] == '-' ? '_' : name[i]) != key[i])
			return false;
	return !key[len];
}

/* The row of a long option, and the key or alias it spells; NULL if none. */
static const struct ap_setting_row *find_spelled(const char *name, size_t len, const char **key)
{
	enum ap_setting_id id;

	for (int i = 0; i < AP_SET_COUNT; i++)
		if (spells(name, len, *key = ap_setting_at(i)->key))
			return ap_setting_at(i);
	for (size_t i = 0; (*key = ap_setting_alias_at(i, &id)); i++)
		if (spells(name, len, *key))
			return ap_setting_at(id);
	return NULL;
}

/* find_spelled() that also takes the --no- form of a flag, and then sets *off. */
static const struct ap_setting_row *find_long(const char *name, size_t len, const char **key, bool *off)
{
	const struct ap_setting_row *row = find_spelled(name, len, key);

	*off = false;
	if (row || len < 4 || strncmp(name, "no-", 3) != 0)
		return row;
	row = find_spelled(name + 3, len - 3, key);
	*off = row && ap_setting_is_switch(row);
	return *off ? row : NULL;
}

/* The object whose members a long option sets; *off: it is the --no- form. */
static const struct ap_object_spelling *find_object(const char *name, size_t len, bool *off)
{
	const struct ap_object_spelling *object;

	*off = false;
	for (size_t i = 0; (object = ap_object_spelling_at(i)); i++) {
		if (spells(name, len, object->path))
			return object;
		*off = object->also != AP_SET_COUNT && len > 3 && !strncmp(name, "no-", 3) &&
			spells(name + 3, len - 3, object->path);
		if (*off)
			return object;
	}
	return NULL;
}

/* Prefers a setting of the command, if that is known and several have the letter. */
static const struct ap_setting_row *find_letter(const struct parser *p, char letter)
{
	const struct ap_setting_row *found = NULL;

	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at(i);

		if (row->letter == letter && (!found || (p->cli->command && takes(p->cli, row))))
			found = row;
	}
	return found;
}

/* Replaces *best by candidate if that is nearer to word. The beginning of a name counts as near,
 * the nearer the less is missing. */
static void consider(const char *word, const char *candidate, const char **best, int *distance)
{
	size_t len = strlen(word);
	bool begins = len > 3 && !strncmp(word, candidate, len);
	int d = begins ? 1 + (int)(strlen(candidate) - len) / 8
		       : ap_str_distance(word, candidate, *distance - 1);

	if (d < *distance) {
		*distance = d;
		*best = candidate;
	}
}

/* Names at this distance or more are not near to word: about a third of its letters. */
static int far_from(const char *word)
{
	size_t letters = strlen(word + strspn(word, "-"));

	return letters < 3 ? 2 : letters < 9 ? 3 : 4;
}

static void unknown_option(struct parser *p, const char *word, size_t len)
{
	struct ap_arena *arena = p->ctx->arena;
	char *name = ap_arena_strndup(arena, word, len);
	const char *best = NULL, *alias, *ours = ap_launch_option(word + 2, len - 2);
	enum ap_setting_id id;
	int distance = far_from(name);

	if (ours && *ours) {
		FAULT(p, "%s is Megatron's: here %s; --config takes a file of Megatron's arguments", name,
			ours);
		return;
	}
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at(i);

		consider(name, ap_option_spelling(arena, "--", row), &best, &distance);
		if (ap_setting_is_switch(row))
			consider(name, ap_option_spelling(arena, "--no-", row), &best, &distance);
	}
	for (size_t i = 0; (alias = ap_setting_alias_at(i, &id)); i++)
		consider(name, ap_key_spelling(arena, "--", alias), &best, &distance);
	for (size_t i = 0; ap_object_spelling_at(i); i++)
		consider(name, ap_key_spelling(arena, "--", ap_object_spelling_at(i)->path), &best,
			&distance);
	if (best)
		FAULT(p, "unknown option %s; did you mean %s?", name, best);
	else
		FAULT(p, "unknown option %s; see --help", name);
}

/* Sets a value; name is the option as written, key is what it spells. */
static void take(struct parser *p, const struct ap_setting_row *row, const char *key, const char *name,
	const char *value)
{
	enum ap_setting_id id = (enum ap_setting_id)(row - ap_setting_at(0));
	const char *why;

	if (p->by[id] == key && row->type != AP_SET_TEXTS && row->type != AP_SET_COUNTS)
		FAULT(p, "%s: given twice", name);
	else if (!ap_setting_give(p->ctx->arena, row, &p->cli->set, value, AP_FROM_OPTION, name, &why))
		FAULT(p, "%s: %s", name, why);
	p->by[id] = key;
}

/* The next word as a value; NULL if it looks like a long option (such a value needs --x=--y). */
static const char *next_value(struct parser *p)
{
	const char *word = p->at < p->argc ? p->argv[p->at] : NULL;

	if (!word || !strncmp(word, "--", 2))
		return NULL;
	p->at++;
	return word;
}

static void parse_object(struct parser *p, const struct ap_object_spelling *object, const char *name,
	const char *value, bool off)
{
	bool flag = object->also != AP_SET_COUNT;

	if (off && value)
		FAULT(p, "%s takes no value", name);
	else if (flag && (!value || *value != '{'))
		take(p, ap_setting_at(object->also), object->path, name,
			off ? "false" : value ? value : "true");
	else if (value || (value = next_value(p)))
		ap_config_option(p->ctx, name, value, object, ap_cli_uses(p->cli), &p->cli->set);
	else
		FAULT(p, "%s needs a value; expected a JSON object", name);
}

/* Flags may share a word; a letter that takes a value ends it: -o FILE, -oFILE. */
static void parse_letters(struct parser *p, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		const char *name = ap_arena_printf(p->ctx->arena, "-%c", *c);
		const struct ap_setting_row *row = find_letter(p, *c);
		const char *value = NULL;

		if (!row) {
			FAULT(p, "unknown option %s; see --help", name);
			return;
		}
		if (row == ap_setting_at(AP_SET_help))
			p->cli->brief = true;
		if (ap_setting_is_switch(row)) {
			take(p, row, row->key, name, "true");
			continue;
		}
		value = c[1] ? c + 1 : next_value(p);
		if (value)
			take(p, row, row->key, name, value);
		else
			FAULT(p, "%s needs a value; expected %s", name,
				ap_setting_expects(p->ctx->arena, row));
		return;
	}
}

static void find_command(struct parser *p, const char *word)
{
	const char *best = NULL;
	int distance = far_from(word);

	for (size_t i = 0; i < AP_COUNT(commands); i++) {
		if (!strcmp(commands[i].name, word)) {
			p->cli->command = &commands[i];
			return;
		}
		consider(word, commands[i].name, &best, &distance);
	}
	if (best)
		FAULT(p, "unknown command \"%s\"; did you mean %s?", word, best);
	else
		FAULT(p, "unknown command \"%s\"; see --help", word);
}

/* Does the program answer about itself instead of running a command? */
static bool answers(const struct ap_settings *o)
{
	return o->help || o->version || o->print_config;
}

/* Parses all words; options may be anywhere before "--". */
static void parse_words(struct parser *p)
{
	const char **arg = AP_NEW_N(p->ctx->arena, const char *, p->argc + 1);
	bool options = true, named = false;

	p->cli->arg = arg;
	while (p->at < p->argc) {
		const char *word = p->argv[p->at++];

		if (options && !strcmp(word, "--")) {
			options = false;
		} else if (options && !strncmp(word, "--", 2)) {
			size_t len = strcspn(word, "=");
			const char *value = word[len] ? word + len + 1 : NULL, *key;
			char *name = ap_arena_strndup(p->ctx->arena, word, len);
			bool off, off_object;
			const struct ap_setting_row *row = find_long(word + 2, len - 2, &key, &off);
			const struct ap_object_spelling *object =
				find_object(word + 2, len - 2, &off_object);

			if (object && (!row || (value && *value == '{')))
				parse_object(p, object, name, value, off_object);
			else if (!row)
				unknown_option(p, word, len);
			else if (off && value)
				FAULT(p, "%s takes no value", name);
			else if (ap_setting_is_switch(row))
				take(p, row, key, name, off ? "false" : value ? value : "true");
			else if (value || (value = next_value(p)))
				take(p, row, key, name, value);
			else
				FAULT(p, "%s needs a value; expected %s", name,
					ap_setting_expects(p->ctx->arena, row));
		} else if (options && word[0] == '-' && word[1]) {
			parse_letters(p, word);
		} else if (!named) {
			named = true;
			find_command(p, word);
		} else {
			arg[p->cli->narg++] = word;
		}
	}
	if (!named && !answers(&p->cli->set))
		FAULT(p, "no command; see --help");
}

/* Refuses options that the command does not take, except if another option implied them. */
static void check_taken(struct parser *p)
{
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const char *name = p->cli->set.name[i];

		if (name && !strchr(name, ' ') && !takes(p->cli, ap_setting_at(i)))
			FAULT(p, "%s: the command %s does not take it",
				name[1] == '-' ? name
					       : ap_option_spelling(p->ctx->arena, "--", ap_setting_at(i)),
				p->cli->command->name);
	}
}

static void check_args(struct parser *p)
{
	const struct ap_command *c = p->cli->command;
	size_t n = p->cli->narg;

	if (!n && p->cli->set.config && (c->use & AP_FOR_PLANNERS))
		return; /* the file may say the network, too */
	if (n < (size_t)c->least)
		FAULT(p, "%s: too few arguments; expected %s", c->name, c->args);
	else if (n > (size_t)c->most)
		FAULT(p, "%s: one argument too many, \"%s\"; expected %s", c->name,
			p->cli->arg[c->most], c->args);
	for (size_t i = 0; i < n; i++)
		if (!*p->cli->arg[i])
			FAULT(p, "%s: argument %zu is empty; expected %s", c->name, i + 1, c->args);
}

static void from_environment(struct ap_settings *o)
{
	const char *no_color = getenv("NO_COLOR");

	if (no_color && *no_color && o->origin[AP_SET_color] == AP_FROM_DEFAULT) {
		o->color = AP_COLOR_NEVER;
		o->origin[AP_SET_color] = AP_FROM_ENVIRONMENT;
	}
}

enum ap_status ap_cli_parse(struct ap_ctx *ctx, int argc, char **argv, struct ap_cli *out)
{
	struct parser p = {.ctx = ctx, .cli = out, .argc = argc, .at = 1, .argv = argv};

	*out = (struct ap_cli){0};
	ap_settings_init(&out->set);
	parse_words(&p);
	check_taken(&p);
	AP_TRY(ap_diag_status(ctx->diag));
	if (out->set.config)
		AP_TRY(ap_config_load(ctx, out->set.config, ap_cli_uses(out), &out->set));
	if (out->set.transformer_opt)
		AP_TRY(ap_config_speed_up(ctx, out->set.transformer_opt, ap_cli_uses(out), &out->set));
	from_environment(&out->set);
	if (out->set.site_defaults && (ap_cli_uses(out) & (AP_FOR_PLANNERS | AP_FOR_import)))
		AP_TRY(ap_site_load(ctx, ap_cli_uses(out), &out->set, &out->site));
	AP_TRY(ap_settings_settle(ctx, &out->set, ap_cli_uses(out)));
	if (out->command)
		AP_TRY(ap_settings_one(ctx, &out->set, out->command->use, out->command->name));
	if (out->command && !answers(&out->set))
		check_args(&p);
	return ap_diag_status(ctx->diag);
}
