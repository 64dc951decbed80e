/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

#include "api/model.h"
#include "autopar/status.h"
#include "base/arena.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"

enum { WIDTH = 80, COLUMN = 28 };

static const char *const group_titles[] = {
	[AP_GROUP_MODEL] = "Model",
	[AP_GROUP_MACHINE] = "Machine",
	[AP_GROUP_STEP] = "Training step",
	[AP_GROUP_PARALLEL] = "Communication and parallel optimizer",
	[AP_GROUP_PIPELINE] = "Pipeline",
	[AP_GROUP_DECIDE] = "Decisions of `plan`",
	[AP_GROUP_SEARCH] = "Search",
	[AP_GROUP_OUTPUTS] = "Outputs (- is standard output)",
	[AP_GROUP_INPUTS] = "Inputs (- is standard input)",
	[AP_GROUP_RUN] = "Running",
	[AP_GROUP_ACCEPTED] = "Settings of MindSpore without influence on planning",
	[AP_GROUP_GENERAL] = "General",
};

/* Adds text from column `at` on, wrapped at WIDTH with `indent`, and ends the line. */
static void wrap(struct ap_str *out, const char *text, size_t at, size_t indent)
{
	size_t col = at;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (col + len + (col > indent) > WIDTH && col > indent) {
			ap_str_addf(out, "\n%*s", (int)indent, "");
			col = indent;
		} else if (col > indent) {
			ap_str_addc(out, ' ');
			col++;
		}
		ap_str_addn(out, text, len);
		col += len;
		text += len;
		text += *text == ' ';
	}
	ap_str_addc(out, '\n');
}

/* Adds " LEFT text ...", with text wrapped in its own column. */
static void entry(struct ap_str *out, const char *left, const char *text)
{
	size_t len = strlen(left);

	ap_str_addf(out, "  %s", left);
	if (len + 4 > COLUMN)
		ap_str_addf(out, "\n%*s", COLUMN, "");
	else
		ap_str_addf(out, "%*s", (int)(COLUMN - 2 - len), "");
	wrap(out, text, COLUMN, COLUMN);
}

static const char *option_left(struct ap_arena *arena, const struct ap_setting_row *row)
{
	bool on = ap_setting_is_switch(row) && !strcmp(row->otherwise, "true");
	char letter[8] = "";

	if (row->letter)
		snprintf(letter, sizeof letter, "-%c, ", row->letter);
	return ap_arena_printf(arena, "%s%s%s%s", letter,
		ap_option_spelling(arena, on ? "--[no-]" : "--", row), row->metavar && !on ? " " : "",
		row->metavar && !on ? row->metavar : "");
}

/* The help line of a setting; the long form adds its values, as these commands take them, and its default. */
static const char *help_line(struct ap_arena *arena, const struct ap_setting_row *row, unsigned commands,
	bool brief)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	if (brief) {
		ap_str_addn(&s, row->help, strcspn(row->help, ";"));
		return s.s;
	}
	ap_str_add(&s, row->help);
	if (row->type == AP_SET_CHOICE || row->type == AP_SET_INT || row->type == AP_SET_NUM ||
		row->type == AP_SET_INTS)
		ap_str_addf(&s, " (%s)", commands & AP_FOR_DECIDERS ? ap_setting_expects(arena, row)
			: ap_setting_expects_one(arena, row));
	if (row->otherwise && strcmp(row->otherwise, "false") != 0)
		ap_str_addf(&s, " [default: %s]", row->otherwise);
	return s.s;
}

static void add_families(struct ap_str *out)
{
	const char *name, *help;

	ap_str_add(out, "\nFamilies (autopar-plan model FAMILY --help explains one):\n");
	for (size_t i = 0; (name = ap_model_name_at(i, &help)); i++)
		entry(out, name, help);
}

/* family: of `model`, whose dimensions alone are listed; NULL: none. */
static void add_options(struct ap_str *out, unsigned commands, const char *family, bool brief)
{
	for (int group = 0; group < AP_GROUP_COUNT; group++) {
		bool titled = false;

		for (int i = 0; i < AP_SET_COUNT; i++) {
			const struct ap_setting_row *row = ap_setting_at(i);
			const char *standard = NULL, *line;

			if ((int)row->group != group || (brief && row->idle) ||
				(row->uses & commands) != commands)
				continue;
			if (family && !ap_model_reads(out->arena, family, (enum ap_setting_id)i, &standard) &&
				group == AP_GROUP_MODEL)
				continue;
			if (!titled)
				ap_str_addf(out, "\n%s:\n", group_titles[group]);
			titled = true;
			line = help_line(out->arena, row, commands, brief);
			entry(out, option_left(out->arena, row),
				standard ? ap_arena_printf(out->arena, "%s [%s: %s]", line, family, standard)
				: line);
		}
	}
}

static void add_exit_status(struct ap_str *out)
{
	static const struct {
		int code;
		const char *text;
	} rows[] = {
#define ROW(name, code, word, text) {code, text},
		AP_STATUS_ROWS(ROW)
#undef ROW
	};

	ap_str_add(out, "\nExit status:\n");
	for (size_t i = 0; i < AP_COUNT(rows); i++)
		ap_str_addf(out, "  %5d  %s\n", rows[i].code, rows[i].text);
	ap_str_add(out, "  128+n  ended by signal n\n");
}

static const struct ap_command *find_command(unsigned use)
{
	size_t i = 0;

	while (ap_command_at(i)->use != use)
		i++;
	return ap_command_at(i);
}

static void program_help(bool brief, struct ap_str *out)
{
	ap_str_add(out, "autopar-plan: plans how a MindSpore network is cut over many devices\n\n"
		"Usage: autopar-plan COMMAND ARGUMENTS... [OPTIONS]\n");
	ap_str_add(out, "\nCommands (autopar-plan COMMAND --help explains one):\n");
	for (size_t i = 0; ap_command_at(i); i++) {
		const struct ap_command *c = ap_command_at(i);

		entry(out, c->name, c->help);
	}
	if (brief)
		return;
	ap_str_addf(out, "\nExamples:\n%s%s", find_command(AP_FOR_search)->examples,
		find_command(AP_FOR_check)->examples);
	add_options(out, AP_FOR_ALL, NULL, false);
	ap_str_add(out, "\nEnvironment:\n");
	entry(out, "RANK_TABLE_FILE", "rank table, where no argument names one");
	entry(out, "AUTOPAR_PLAN_MODELS",
		"folder of the bundled models, where it is not the one that "
		"they were installed in");
	entry(out, "NO_COLOR", "when set and not empty, messages and differences have no colour");
	add_exit_status(out);
}

/* The family that `model` is asked about; NULL: none, or an unknown one. */
static const char *known_family(const struct ap_cli *cli)
{
	const char *name, *help;

	if (cli->command->use != AP_FOR_model || !cli->narg)
		return NULL;
	for (size_t i = 0; (name = ap_model_name_at(i, &help)); i++)
		if (!strcmp(name, cli->arg[0]))
			return name;
	return NULL;
}

void ap_help_text(const struct ap_cli *cli, struct ap_str *out)
{
	const struct ap_command *c = cli->command;

	if (!c) {
		program_help(cli->brief, out);
		return;
	}
	ap_str_addf(out, "Usage: autopar-plan %s %s [OPTIONS]\n\n", c->name, c->args);
	if (cli->brief) {
		wrap(out, c->help, 0, 0);
	} else {
		wrap(out, c->details, 0, 0);
		ap_str_addf(out, "\nExamples:\n%s", c->examples);
	}
	if (c->use == AP_FOR_model && !known_family(cli))
		add_families(out);
	add_options(out, c->use, known_family(cli), cli->brief);
}

static const struct {
	unsigned on;
	const char *name;
} influences[] = {
	{AP_ON_PLAN, "plan"},
	{AP_ON_COST, "cost"},
	{AP_ON_MEMORY, "memory"},
	{AP_ON_FILES, "files"},
};

static const char *type_name(enum ap_setting_type type)
{
	static const char *const names[] = {
		[AP_SET_FLAG] = "flag", [AP_SET_INT] = "integer", [AP_SET_NUM] = "number",
		[AP_SET_SIZE] = "size", [AP_SET_AMOUNT] = "amount", [AP_SET_PRICE] = "price",
		[AP_SET_TIME] = "time", [AP_SET_INTS] = "integers", [AP_SET_SERIES] = "integers",
		[AP_SET_CHOICE] = "choice",
		[AP_SET_TEXT] = "text", [AP_SET_TEXTS] = "texts", [AP_SET_COUNTS] = "counts",
		[AP_SET_LISTS] = "lists", [AP_SET_DICT] = "object",
		[AP_SET_INPUT] = "input", [AP_SET_OUTPUT] = "output",
		[AP_SET_FOLDER] = "folder",
	};

	return names[type];
}

typedef void spelling_fn(void *user, const char *name);

/* Calls fn for each other name of a setting: aliases, objects that turn it on, object members. */
static void each_spelling(struct ap_arena *arena, enum ap_setting_id id, spelling_fn *fn, void *user)
{
	const struct ap_object_spelling *object;
	const struct ap_member_spelling *m;
	const char *alias;
	enum ap_setting_id of;

	for (size_t i = 0; (alias = ap_setting_alias_at(i, &of)); i++)
		if (of == id)
			fn(user, alias);
	for (size_t i = 0; (object = ap_object_spelling_at(i)); i++)
		if (object->also == id && strcmp(object->path, ap_setting_at(id)->key) != 0)
			fn(user, object->path);
	for (size_t i = 0; (m = ap_member_spelling_at(i)); i++)
		if (m->setting == id)
			fn(user, ap_arena_printf(arena, "%s.%s", m->path, m->key));
}

static void add_spelling(void *user, const char *name)
{
	struct ap_str *s = user;

	ap_str_addf(s, "%s%s", s->len ? ", " : "", name);
}

static const char *influence_text(struct ap_arena *arena, const struct ap_setting_row *row)
{
	struct ap_str s;

	if (row->idle)
		return ap_arena_printf(arena, "No influence on planning: %s", row->idle);
	ap_str_init(&s, arena);
	for (size_t i = 0; i < AP_COUNT(influences); i++)
		if (row->on & influences[i].on)
			ap_str_addf(&s, "%s%s", s.len ? ", " : "Influences ", influences[i].name);
	return s.s;
}

static void add_setting(struct ap_arena *arena, enum ap_setting_id id, struct ap_str *out)
{
	const struct ap_setting_row *row = ap_setting_at(id);
	const char *influence = influence_text(arena, row);
	struct ap_str text, names;

	ap_str_init(&names, arena);
	each_spelling(arena, id, add_spelling, &names);
	ap_str_init(&text, arena);
	ap_str_add(&text, help_line(arena, row, AP_FOR_ALL, false));
	if (names.len)
		ap_str_addf(&text, ". Also: %s", names.s);
	if (*influence)
		ap_str_addf(&text, ". %s.", influence);
	entry(out, row->key, text.s);
}

/* The setting of a name, such as "hsdp.threshold"; NULL if there is none. */
static const struct ap_setting_row *find_setting(const char *name)
{
	const struct ap_setting_row *row = ap_setting_of_key(name);
	const struct ap_member_spelling *m;

	for (size_t i = 0; !row && (m = ap_member_spelling_at(i)); i++) {
		size_t len = strlen(m->path);

		if (!strncmp(name, m->path, len) && name[len] == '.' && !strcmp(name + len + 1, m->key))
			row = ap_setting_at(m->setting);
	}
	return row && row->group != AP_GROUP_GENERAL ? row : NULL;
}

/* Does name mean row: as its key, or as an object that has it as a member? */
static bool is_wanted(const struct ap_setting_row *row, const char *name)
{
	const struct ap_object_spelling *object = name ? ap_object_spelling_of(name) : NULL;
	const struct ap_member_spelling *m;

	if (row->group == AP_GROUP_GENERAL)
		return false;
	if (!name || row == find_setting(name))
		return true;
	if (object && object->also != AP_SET_COUNT && row == ap_setting_at(object->also))
		return true;
	for (size_t i = 0; (m = ap_member_spelling_at(i)); i++)
		if (row == ap_setting_at(m->setting) && !strncmp(m->path, name, strlen(name)) &&
			(!m->path[strlen(name)] || m->path[strlen(name)] == '.'))
			return true;
	return false;
}

static void write_spelling(void *user, const char *name)
{
	ap_jw_str(user, name);
}

static void write_range(struct ap_jw *w, const struct ap_setting_row *row)
{
	static const char *const ranges[] = {[AP_RANGE_NONE] = "list", [AP_RANGE_EVERY] = "every",
		[AP_RANGE_DOUBLINGS] = "doublings"};
	enum ap_range range;

	if (row->type == AP_SET_INT || row->type == AP_SET_NUM || row->type == AP_SET_INTS) {
		ap_jw_kint(w, "least", row->least);
		ap_jw_kint(w, "most", row->most);
	}
	if (ap_setting_takes_several(row, &range))
		ap_jw_kstr(w, "several", ranges[range]);
	if (row->type != AP_SET_CHOICE)
		return;
	ap_jw_karr_flat(w, "values");
	for (size_t i = 0; row->choices(i); i++)
		if (*row->choices(i) != '!')
			ap_jw_str(w, row->choices(i));
	ap_jw_end(w);
}

static void write_setting(struct ap_jw *w, struct ap_arena *arena, enum ap_setting_id id)
{
	const struct ap_setting_row *row = ap_setting_at(id);
	struct ap_settings usual;
	unsigned uses;

	ap_settings_init(&usual);
	ap_jw_obj(w);
	ap_jw_kstr(w, "name", row->key);
	ap_jw_kstr(w, "type", type_name(row->type));
	ap_jw_key(w, "default");
	ap_jw_raw(w, ap_setting_json(arena, row, &usual));
	write_range(w, row);
	ap_jw_karr_flat(w, "also");
	each_spelling(arena, id, write_spelling, w);
	ap_jw_end(w);
	uses = row->uses;
	ap_jw_karr_flat(w, "commands");
	for (size_t i = 0; ap_command_at(i); i++)
		if (ap_command_at(i)->use & uses)
			ap_jw_str(w, ap_command_at(i)->name);
	ap_jw_end(w);
	ap_jw_karr_flat(w, "influences");
	for (size_t i = 0; i < AP_COUNT(influences); i++)
		if (row->on & influences[i].on)
			ap_jw_str(w, influences[i].name);
	ap_jw_end(w);
	if (row->idle)
		ap_jw_kstr(w, "without_influence", row->idle);
	ap_jw_kstr(w, "help", row->help);
	ap_jw_end(w);
}

bool ap_help_settings(const char *name, struct ap_str *out, struct ap_jw *w)
{
	bool found = false;

	for (int i = 0; i < AP_SET_COUNT; i++) {
		if (!is_wanted(ap_setting_at(i), name))
			continue;
		found = true;
		if (w)
			write_setting(w, out->arena, (enum ap_setting_id)i);
		else
			add_setting(out->arena, (enum ap_setting_id)i, out);
	}
	return found;
}

static const char *origin_text(enum ap_origin origin)
{
	static const char *const texts[] = {
		[AP_FROM_DEFAULT] = "default", [AP_FROM_SITE] = "site", [AP_FROM_ENVIRONMENT] = "environment",
		[AP_FROM_CONFIG] = "config file", [AP_FROM_OPTION] = "option"};

	return texts[origin];
}

/* How a setting was spelled; NULL if by its own name. */
static const char *other_name(struct ap_arena *arena, const struct ap_cli *cli, enum ap_setting_id id)
{
	const struct ap_setting_row *row = ap_setting_at(id);
	const char *name = cli->set.name[id];

	if (!name || !strcmp(name, row->key) || !strcmp(name, ap_option_spelling(arena, "--", row)) ||
		!strcmp(name, ap_option_spelling(arena, "--no-", row)))
		return NULL;
	return row->letter && name[0] == '-' && name[1] == row->letter && !name[2] ? NULL : name;
}

static bool printed(const struct ap_cli *cli, const struct ap_setting_row *row)
{
	return row->group != AP_GROUP_GENERAL && (row->uses & ap_cli_uses(cli));
}

void ap_help_config(const struct ap_cli *cli, struct ap_str *out)
{
	size_t width = 0;

	if (cli->set.json) {
		struct ap_jw w;

		ap_jw_str_init(&w, out, 2);
		ap_jw_obj(&w);
		ap_jw_kstr(&w, "schema", "autopar-settings/1");
		for (int i = 0; i < AP_SET_COUNT; i++) {
			const struct ap_setting_row *row = ap_setting_at(i);
			const char *name = other_name(out->arena, cli, (enum ap_setting_id)i);

			if (!printed(cli, row))
				continue;
			ap_jw_kobj_flat(&w, row->key);
			ap_jw_key(&w, "value");
			ap_jw_raw(&w, ap_setting_json(out->arena, row, &cli->set));
			ap_jw_kstr(&w, "origin", origin_text(cli->set.origin[i]));
			if (name)
				ap_jw_kstr(&w, "name", name);
			ap_jw_end(&w);
		}
		ap_jw_end(&w);
		ap_jw_finish(&w);
		return;
	}
	for (int i = 0; i < AP_SET_COUNT; i++)
		if (printed(cli, ap_setting_at(i)) && strlen(ap_setting_at(i)->key) > width)
			width = strlen(ap_setting_at(i)->key);
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at(i);
		const char *text = ap_setting_text(out->arena, row, &cli->set);
		const char *name = other_name(out->arena, cli, (enum ap_setting_id)i);

		if (printed(cli, row))
			ap_str_addf(out, "%-*s %-24s %s%s%s%s\n", (int)width, row->key,
				text ? text : "-",
				origin_text(cli->set.origin[i]), name ? " (" : "", name ? name : "",
				name ? ")" : "");
	}
}
