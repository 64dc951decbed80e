/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "autopar/status.h"
#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/options.h"

enum { WIDTH = 80, COLUMN = 28 };

static const char *const group_titles[] = {
	[AP_GROUP_MACHINE] = "Machine",
	[AP_GROUP_STEP] = "Training step",
	[AP_GROUP_PARALLEL] = "Communication and parallel optimizer",
	[AP_GROUP_PIPELINE] = "Pipeline",
	[AP_GROUP_SEARCH] = "Search",
	[AP_GROUP_OUTPUTS] = "Outputs (- is standard output)",
	[AP_GROUP_INPUTS] = "Inputs (- is standard input)",
	[AP_GROUP_RUN] = "Running",
	[AP_GROUP_ACCEPTED] = "Settings of MindSpore without influence on planning",
	[AP_GROUP_GENERAL] = "General",
};

/* Adds words of text from column `at` on, wrapped at WIDTH and indented by `indent`; ends the line. */
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

void ap_help_entry(struct ap_str *out, const char *left, const char *text)
{
	size_t len = strlen(left);

	ap_str_addf(out, "  %s", left);
	if (len + 4 > COLUMN)
		ap_str_addf(out, "\n%*s", COLUMN, "");
	else
		ap_str_addf(out, "%*s", (int)(COLUMN - 2 - len), "");
	wrap(out, text, COLUMN, COLUMN);
}

static const char *option_left(struct ap_arena *arena, const struct ap_option *row)
{
	bool on = row->type == AP_OPT_FLAG && !strcmp(row->otherwise, "true");
	char letter[8] = "";

	if (row->letter)
		snprintf(letter, sizeof letter, "-%c, ", row->letter);
	return ap_arena_printf(arena, "%s%s%s%s", letter,
		ap_option_spelling(arena, on ? "--[no-]" : "--", row), row->metavar ? " " : "",
		row->metavar ? row->metavar : "");
}

const char *ap_option_help(struct ap_arena *arena, const struct ap_option *row, bool brief)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	if (brief) {
		ap_str_addn(&s, row->help, strcspn(row->help, ";"));
		return s.s;
	}
	ap_str_add(&s, row->help);
	if (row->type == AP_OPT_CHOICE || row->type == AP_OPT_INT || row->type == AP_OPT_NUM ||
		row->type == AP_OPT_INTS)
		ap_str_addf(&s, " (%s)", ap_option_expects(arena, row));
	if (row->otherwise && strcmp(row->otherwise, "false") != 0)
		ap_str_addf(&s, " [default: %s]", row->otherwise);
	return s.s;
}

static void add_options(struct ap_str *out, unsigned commands, bool brief)
{
	for (int group = 0; group < AP_GROUP_COUNT; group++) {
		bool titled = false;

		for (int i = 0; i < AP_OPT_COUNT; i++) {
			const struct ap_option *row = ap_option_at(i);

			if ((int)row->group != group || (brief && row->idle) ||
				(row->commands & commands) != commands)
				continue;
			if (!titled)
				ap_str_addf(out, "\n%s:\n", group_titles[group]);
			titled = true;
			ap_help_entry(out, option_left(out->arena, row),
				ap_option_help(out->arena, row, brief));
		}
	}
}

static void add_commands(struct ap_str *out)
{
	ap_str_add(out, "\nCommands (autopar-plan COMMAND --help explains one):\n");
	for (size_t i = 0; ap_command_at(i); i++) {
		const struct ap_command *c = ap_command_at(i);

		ap_help_entry(out, c->name, c->help);
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

static void program_help(bool brief, struct ap_str *out)
{
	ap_str_add(out, "autopar-plan: plans how a MindSpore network is cut over many devices\n\n"
		"Usage: autopar-plan COMMAND ARGUMENTS... [OPTIONS]\n");
	add_commands(out);
	if (brief)
		return;
	ap_str_addf(out, "\nExamples:\n%s%s", ap_command_at(AP_CMD_search)->examples,
		ap_command_at(AP_CMD_check)->examples);
	add_options(out, AP_FOR_EVERY, false);
	ap_str_add(out, "\nEnvironment:\n");
	ap_help_entry(out, "RANK_TABLE_FILE", "rank table, where no argument names one");
	ap_help_entry(out, "AUTOPAR_PLAN_MODELS",
		"folder of the bundled models, where it is not the one that "
		"they were installed in");
	ap_help_entry(out, "NO_COLOR", "when set and not empty, messages and differences have no colour");
	add_exit_status(out);
}

void ap_help_text(const struct ap_cli *cli, struct ap_str *out)
{
	const struct ap_command *c = cli->command;

	if (!c) {
		program_help(cli->opt.brief, out);
		return;
	}
	ap_str_addf(out, "Usage: autopar-plan %s %s [OPTIONS]\n\n", c->name, c->args);
	if (cli->opt.brief) {
		wrap(out, c->help, 0, 0);
	} else {
		wrap(out, c->details, 0, 0);
		ap_str_addf(out, "\nExamples:\n%s", c->examples);
	}
	add_options(out, 1u << (c - ap_command_at(0)), cli->opt.brief);
}
