/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/settings.h"
#include "cli/spellings.h"

static const struct {
	unsigned on;
	const char *name;
} influences[] = {
	{AP_ON_PLAN, "plan"},
	{AP_ON_COST, "cost"},
	{AP_ON_MEMORY, "memory"},
	{AP_ON_FILES, "files"},
};

static const char *type_name(enum ap_opt_type type)
{
	static const char *const names[] = {
		[AP_OPT_FLAG] = "flag", [AP_OPT_INT] = "integer", [AP_OPT_NUM] = "number",
		[AP_OPT_SIZE] = "size", [AP_OPT_INTS] = "integers", [AP_OPT_CHOICE] = "choice",
		[AP_OPT_TEXT] = "text", [AP_OPT_TEXTS] = "texts",
		[AP_OPT_LISTS] = "lists", [AP_OPT_DICT] = "object",
		[AP_OPT_INPUT] = "input", [AP_OPT_OUTPUT] = "output",
		[AP_OPT_FOLDER] = "folder",
	};

	return names[type];
}

typedef void spelling_fn(void *user, const char *name);

/* Calls fn for every other name of a setting: aliases, objects that turn it on, members of objects. */
static void each_spelling(struct ap_arena *arena, enum ap_opt_id id, spelling_fn *fn, void *user)
{
	const struct ap_object_spelling *object;
	const struct ap_member_spelling *m;
	const char *alias;
	enum ap_opt_id of;

	for (size_t i = 0; (alias = ap_option_alias_at(i, &of)); i++)
		if (of == id)
			fn(user, alias);
	for (size_t i = 0; (object = ap_object_spelling_at(i)); i++)
		if (object->also == id && strcmp(object->path, ap_option_at(id)->key) != 0)
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

static const char *influence_text(struct ap_arena *arena, const struct ap_option *row)
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

static void add_setting(struct ap_arena *arena, enum ap_opt_id id, struct ap_str *out)
{
	const struct ap_option *row = ap_option_at(id);
	const char *influence = influence_text(arena, row);
	struct ap_str text, names;

	ap_str_init(&names, arena);
	each_spelling(arena, id, add_spelling, &names);
	ap_str_init(&text, arena);
	ap_str_add(&text, ap_option_help(arena, row, false));
	if (names.len)
		ap_str_addf(&text, ". Also: %s", names.s);
	if (*influence)
		ap_str_addf(&text, ". %s.", influence);
	ap_help_entry(out, row->key, text.s);
}

/* The setting that a name means, also "hsdp.threshold"; NULL for none. */
static const struct ap_option *find_setting(const char *name)
{
	const struct ap_option *row = ap_option_of_key(name);
	const struct ap_member_spelling *m;

	for (size_t i = 0; !row && (m = ap_member_spelling_at(i)); i++) {
		size_t len = strlen(m->path);

		if (!strncmp(name, m->path, len) && name[len] == '.' && !strcmp(name + len + 1, m->key))
			row = ap_option_at(m->setting);
	}
	return row && row->group != AP_GROUP_GENERAL ? row : NULL;
}

/* Is row meant by name: as itself, or as a member of the object of that name? */
static bool is_wanted(const struct ap_option *row, const char *name)
{
	const struct ap_object_spelling *object = name ? ap_object_spelling_of(name) : NULL;
	const struct ap_member_spelling *m;

	if (row->group == AP_GROUP_GENERAL)
		return false;
	if (!name || row == find_setting(name))
		return true;
	if (object && object->also != AP_OPT_COUNT && row == ap_option_at(object->also))
		return true;
	for (size_t i = 0; (m = ap_member_spelling_at(i)); i++)
		if (row == ap_option_at(m->setting) && !strncmp(m->path, name, strlen(name)) &&
			(!m->path[strlen(name)] || m->path[strlen(name)] == '.'))
			return true;
	return false;
}

bool ap_settings_text(struct ap_arena *arena, const char *name, struct ap_str *out)
{
	size_t before = out->len;

	for (int i = 0; i < AP_OPT_COUNT; i++)
		if (is_wanted(ap_option_at(i), name))
			add_setting(arena, (enum ap_opt_id)i, out);
	return out->len > before;
}

static void write_spelling(void *user, const char *name)
{
	ap_jw_str(user, name);
}

static void write_range(struct ap_jw *w, const struct ap_option *row)
{
	if (row->type == AP_OPT_INT || row->type == AP_OPT_NUM || row->type == AP_OPT_INTS) {
		ap_jw_kint(w, "least", row->least);
		ap_jw_kint(w, "most", row->most);
	}
	if (row->type != AP_OPT_CHOICE)
		return;
	ap_jw_key(w, "values");
	ap_jw_arr_flat(w);
	for (size_t i = 0; row->choices(i); i++)
		if (*row->choices(i) != '!')
			ap_jw_str(w, row->choices(i));
	ap_jw_end(w);
}

static void write_commands(struct ap_jw *w, unsigned commands)
{
	ap_jw_key(w, "commands");
	ap_jw_arr_flat(w);
	for (size_t i = 0; ap_command_at(i); i++)
		if (commands >> i & 1)
			ap_jw_str(w, ap_command_at(i)->name);
	ap_jw_end(w);
}

static void write_setting(struct ap_jw *w, struct ap_arena *arena, enum ap_opt_id id)
{
	const struct ap_option *row = ap_option_at(id);
	struct ap_options usual;

	ap_options_init(&usual);
	ap_jw_obj(w);
	ap_jw_kstr(w, "name", row->key);
	ap_jw_kstr(w, "type", type_name(row->type));
	ap_jw_key(w, "default");
	ap_jw_raw(w, ap_option_json(arena, row, &usual));
	write_range(w, row);
	ap_jw_key(w, "also");
	ap_jw_arr_flat(w);
	each_spelling(arena, id, write_spelling, w);
	ap_jw_end(w);
	write_commands(w, row->commands);
	ap_jw_key(w, "influences");
	ap_jw_arr_flat(w);
	for (size_t i = 0; i < AP_COUNT(influences); i++)
		if (row->on & influences[i].on)
			ap_jw_str(w, influences[i].name);
	ap_jw_end(w);
	if (row->idle)
		ap_jw_kstr(w, "without_influence", row->idle);
	ap_jw_kstr(w, "help", row->help);
	ap_jw_end(w);
}

bool ap_settings_json(struct ap_jw *w, struct ap_arena *arena, const char *name)
{
	bool found = false;

	for (int i = 0; i < AP_OPT_COUNT; i++)
		if (is_wanted(ap_option_at(i), name)) {
			found = true;
			write_setting(w, arena, (enum ap_opt_id)i);
		}
	return found;
}

static const char *origin_text(enum ap_origin origin)
{
	static const char *const texts[] = {"default", "environment", "config file", "option"};

	return texts[origin];
}

/* How a setting was spelled, where that is not by its own name; NULL where it is. */
static const char *other_name(struct ap_arena *arena, const struct ap_cli *cli, enum ap_opt_id id)
{
	const struct ap_option *row = ap_option_at(id);
	const char *name = cli->opt.name[id];

	if (!name || !strcmp(name, row->key) || !strcmp(name, ap_option_spelling(arena, "--", row)) ||
		!strcmp(name, ap_option_spelling(arena, "--no-", row)))
		return NULL;
	return row->letter && name[0] == '-' && name[1] == row->letter && !name[2] ? NULL : name;
}

static bool printed(const struct ap_cli *cli, const struct ap_option *row)
{
	return row->group != AP_GROUP_GENERAL && ap_cli_takes(cli, row);
}

static void print_json(const struct ap_cli *cli, struct ap_str *out)
{
	struct ap_jw w;

	ap_jw_str_init(&w, out, 2);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-settings/1");
	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at(i);
		const char *name = other_name(out->arena, cli, (enum ap_opt_id)i);

		if (!printed(cli, row))
			continue;
		ap_jw_key(&w, row->key);
		ap_jw_obj_flat(&w);
		ap_jw_key(&w, "value");
		ap_jw_raw(&w, ap_option_json(out->arena, row, &cli->opt));
		ap_jw_kstr(&w, "origin", origin_text(cli->opt.origin[i]));
		if (name)
			ap_jw_kstr(&w, "name", name);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

void ap_print_config(const struct ap_cli *cli, struct ap_str *out)
{
	size_t width = 0;

	if (cli->opt.json) {
		print_json(cli, out);
		return;
	}
	for (int i = 0; i < AP_OPT_COUNT; i++)
		if (printed(cli, ap_option_at(i)) && strlen(ap_option_at(i)->key) > width)
			width = strlen(ap_option_at(i)->key);
	for (int i = 0; i < AP_OPT_COUNT; i++) {
		const struct ap_option *row = ap_option_at(i);
		const char *text = ap_option_text(out->arena, row, &cli->opt);
		const char *name = other_name(out->arena, cli, (enum ap_opt_id)i);

		if (printed(cli, row))
			ap_str_addf(out, "%-*s %-24s %s%s%s%s\n", (int)width, row->key,
				text ? text : "-",
				origin_text(cli->opt.origin[i]), name ? " (" : "", name ? name : "",
				name ? ")" : "");
	}
}
