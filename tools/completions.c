/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: completions bash|zsh|fish
 * Writes the completion of that shell to standard output, from the rows of commands and settings. Names of
 * what is built in are asked of the program when they are wanted. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cli/parse.h"

enum { HELP_COLUMNS = 72 };

/* Settings whose words `list WHAT` prints, beside files. */
static const struct {
	enum ap_setting_id id;
	const char *what;
} listed[] = {{AP_SET_chip, "chips"}, {AP_SET_software, "software"}};

struct option {
	const struct ap_setting_row *row;
	const char *name; /* without dashes */
	const char *help; /* a clause, without characters that shells treat apart */
	const char *what; /* of `list`; else NULL */
	const char *values; /* words with spaces between; NULL if there are none to choose from */
	bool folder, file; /* what the value names */
};

/* The first clause, at most so long that a line of the terminal holds it. */
static const char *brief(struct ap_arena *arena, const char *help)
{
	size_t len = strcspn(help, ";:");
	char *text;

	if (len > HELP_COLUMNS)
		for (len = HELP_COLUMNS; len && help[len] != ' '; len--) {
		}
	text = ap_arena_strndup(arena, help, len);
	for (char *c = text; *c; c++)
		if (strchr("'\"`$\\[]", *c))
			*c = ' ';
	return text;
}

static const char *values_of(struct ap_arena *arena, const struct ap_setting_row *row)
{
	const char *text = "";

	if (row->type != AP_SET_CHOICE)
		return NULL;
	for (size_t i = 0; row->choices(i); i++)
		if (*row->choices(i) != '!')
			text = ap_arena_printf(arena, "%s%s%s", text, *text ? " " : "", row->choices(i));
	return text;
}

static struct option option_at(struct ap_arena *arena, enum ap_setting_id id)
{
	const struct ap_setting_row *row = ap_setting_at(id);
	struct option o = {.row = row, .name = ap_option_spelling(arena, "", row),
		.help = brief(arena, row->help), .values = values_of(arena, row),
		.folder = row->type == AP_SET_FOLDER,
		.file = row->type == AP_SET_INPUT || row->type == AP_SET_OUTPUT || row->type == AP_SET_DICT};

	for (size_t i = 0; i < AP_COUNT(listed); i++)
		if (listed[i].id == id) {
			o.what = listed[i].what;
			o.file = true;
		}
	return o;
}

/* What `list` prints of the words that a command's first argument may be; NULL if it is a file. */
static const char *words_of(const struct ap_command *c)
{
	return !strncmp(c->args, "FAMILY", 6) ? "families" : !strncmp(c->args, "GRAPH", 5) ||
		!strncmp(c->args, "FILE", 4) || !strncmp(c->args, "PLAN|GRAPH", 10) ? "models" : NULL;
}

/* The words themselves of an argument such as "chips|engines [NAME]", with spaces between; NULL if none. */
static const char *choice_of(struct ap_arena *arena, const struct ap_command *c)
{
	char *text = ap_arena_strndup(arena, c->args, strcspn(c->args, " "));

	if (!strchr(text, '|') || *text < 'a')
		return NULL;
	for (char *at; (at = strchr(text, '|'));)
		*at = ' ';
	return text;
}

static void write_bash(struct ap_arena *arena)
{
	char letters[AP_SET_COUNT + 1] = ""; /* of several options with one letter, the first that takes it */

	printf("_autopar_plan_names() {\n"
		"  autopar-plan list \"$1\" 2>/dev/null | cut -d ' ' -f 1\n"
		"}\n\n"
		"_autopar_plan_offer() { # OPTION_OF_COMPGEN...\n"
		"  compopt -o filenames\n"
		"  mapfile -t COMPREPLY < <(compgen \"$@\" -- \"$cur\")\n"
		"}\n\n"
		"_autopar_plan() {\n"
		"  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		"  local command='' word equals='' options words\n"
		"  COMPREPLY=()\n"
		"  if [[ $cur == = ]]; then\n"
		"    cur='' equals=1\n"
		"  elif [[ $prev == = ]]; then\n"
		"    prev=${COMP_WORDS[COMP_CWORD-2]} equals=1\n"
		"  fi\n"
		"  case $prev in\n");
	for (int i = 0; i < AP_SET_COUNT; i++) {
		struct option o = option_at(arena, (enum ap_setting_id)i);

		if (ap_setting_is_switch(o.row) && !o.values)
			continue;
		printf("  --%s", o.name);
		if (o.row->letter && !strchr(letters, o.row->letter)) {
			printf("|-%c", o.row->letter);
			letters[strlen(letters)] = o.row->letter;
		}
		printf(") ");
		if (o.values && ap_setting_is_switch(o.row))
			printf("[[ $equals ]] && _autopar_plan_offer -W '%s' && return ;;\n", o.values);
		else if (o.values)
			printf("_autopar_plan_offer -W '%s'; return ;;\n", o.values);
		else if (o.what)
			printf("_autopar_plan_offer -f -W \"$(_autopar_plan_names %s)\"; return ;;\n",
				o.what);
		else
			printf("%sreturn ;;\n", o.folder ? "_autopar_plan_offer -d; " :
				o.file ? "_autopar_plan_offer -f; " : "");
	}
	printf("  esac\n"
		"  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
		"    case $word in\n    ");
	for (size_t i = 0; ap_command_at(i); i++)
		printf("%s%s", i ? "|" : "", ap_command_at(i)->name);
	printf(") command=$word; break ;;\n    esac\n  done\n  options='' words=''\n  case $command in\n");
	for (size_t c = 0; ap_command_at(c); c++) {
		const struct ap_command *command = ap_command_at(c);
		const char *choice = choice_of(arena, command), *what = words_of(command);

		printf("  %s)\n    options='", command->name);
		for (int i = 0; i < AP_SET_COUNT; i++) {
			struct option o = option_at(arena, (enum ap_setting_id)i);

			if (!(o.row->uses & command->use))
				continue;
			printf("--%s ", o.name);
			if (ap_setting_is_switch(o.row) && o.row->group != AP_GROUP_GENERAL)
				printf("--no-%s ", o.name);
		}
		printf("'\n");
		if (choice)
			printf("    words='%s'\n", choice);
		else if (what)
			printf("    [[ $cur == -* ]] || words=$(_autopar_plan_names %s)\n", what);
		printf("    ;;\n");
	}
	printf("  *)\n    options='--help --version --print-config'\n    words='");
	for (size_t i = 0; ap_command_at(i); i++)
		printf("%s%s", i ? " " : "", ap_command_at(i)->name);
	printf("'\n    ;;\n  esac\n"
		"  if [[ $cur == -* ]]; then\n"
		"    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
		"  elif [[ $command ]]; then\n"
		"    _autopar_plan_offer -f -W \"$words\"\n"
		"  else\n"
		"    _autopar_plan_offer -W \"$words\"\n"
		"  fi\n"
		"}\n\n"
		"complete -F _autopar_plan autopar-plan\n");
}

static void write_zsh(struct ap_arena *arena)
{
	printf("#compdef autopar-plan\n\n"
		"_autopar_plan_names() {\n"
		"  local -a names\n"
		"  names=(${(f)\"$(autopar-plan list $1 2>/dev/null | cut -d ' ' -f 1)\"})\n"
		"  compadd -a names\n"
		"}\n\n"
		"_autopar_plan_names_or_files() {\n"
		"  _alternative \"names:name: _autopar_plan_names $1\" 'files:file:_files'\n"
		"}\n\n"
		"_autopar_plan() {\n"
		"  local -a commands options\n"
		"  if (( CURRENT == 2 )); then\n"
		"    commands=(\n");
	for (size_t i = 0; ap_command_at(i); i++)
		printf("      '%s:%s'\n", ap_command_at(i)->name, brief(arena, ap_command_at(i)->help));
	printf("    )\n"
		"    _describe command commands\n"
		"    _arguments '--help[explain]' '--version[print the version]'\n"
		"    return\n"
		"  fi\n"
		"  case $words[2] in\n");
	for (size_t c = 0; ap_command_at(c); c++) {
		const struct ap_command *command = ap_command_at(c);
		const char *choice = choice_of(arena, command), *what = words_of(command);

		printf("  %s)\n    options=(\n", command->name);
		for (int i = 0; i < AP_SET_COUNT; i++) {
			struct option o = option_at(arena, (enum ap_setting_id)i);
			bool flag = ap_setting_is_switch(o.row);

			if (!(o.row->uses & command->use))
				continue;
			printf("      '--%s%s[%s]", o.name, !flag ? "=" : o.values ? "=-" : "",
				o.help);
			if (flag && o.values)
				printf("::%s:(%s)'\n", o.name, o.values);
			else if (flag)
				printf("'\n");
			else if (o.values)
				printf(":%s:(%s)'\n", o.name, o.values);
			else if (o.what)
				printf(":%s:{_autopar_plan_names_or_files %s}'\n", o.name, o.what);
			else
				printf(":%s:%s'\n", o.name, o.folder ? "_files -/" : o.file ? "_files" : " ");
			if (flag && o.row->group != AP_GROUP_GENERAL)
				printf("      '--no-%s[not so]'\n", o.name);
		}
		printf("    )\n    ");
		if (choice)
			printf("_arguments -s $options '2:what:(%s)' '*:name:'\n", choice);
		else if (what)
			printf("_arguments -s $options '*:word:{_autopar_plan_names_or_files %s}'\n", what);
		else
			printf("_arguments -s $options '*:file:_files'\n");
		printf("    ;;\n");
	}
	printf("  esac\n}\n\n_autopar_plan \"$@\"\n");
}

static void write_fish(struct ap_arena *arena)
{
	static const char start[] = "complete -c autopar-plan";

	printf("function __autopar_plan_names\n"
		"    autopar-plan list $argv[1] 2>/dev/null | string split -f 1 ' '\n"
		"end\n\n");
	for (size_t i = 0; ap_command_at(i); i++) {
		const struct ap_command *command = ap_command_at(i);
		const char *choice = choice_of(arena, command), *what = words_of(command);

		printf("%s -n __fish_use_subcommand -f -a %s -d '%s'\n", start, command->name,
			brief(arena, command->help));
		if (choice || what)
			printf("%s -n '__fish_seen_subcommand_from %s'", start, command->name);
		if (choice)
			printf(" -f -a '%s'\n", choice);
		else if (what)
			printf(" -a '(__autopar_plan_names %s)'\n", what);
	}
	for (int i = 0; i < AP_SET_COUNT; i++) {
		struct option o = option_at(arena, (enum ap_setting_id)i);
		bool flag = ap_setting_is_switch(o.row);

		for (int off = 0; off <= (flag && o.row->group != AP_GROUP_GENERAL); off++) {
			printf("%s -n '__fish_seen_subcommand_from", start);
			for (size_t c = 0; ap_command_at(c); c++)
				if (ap_command_at(c)->use & o.row->uses)
					printf(" %s", ap_command_at(c)->name);
			printf("' -l %s%s", off ? "no-" : "", o.name);
			if (o.row->letter && !off)
				printf(" -s %c", o.row->letter);
			if (o.values && !off)
				printf(" %s -a '%s'", flag ? "-f" : "-x", o.values);
			else if (o.what)
				printf(" -r -a '(__autopar_plan_names %s)'", o.what);
			else if (o.folder)
				printf(" -x -a '(__fish_complete_directories)'");
			else if (!flag)
				printf(o.file ? " -r -F" : " -x");
			printf(" -d '%s'\n", off ? "not so" : o.help);
		}
	}
	printf("%s -n __fish_use_subcommand -l help -d explain\n", start);
	printf("%s -n __fish_use_subcommand -l version -d 'print the version'\n", start);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*write)(struct ap_arena *arena);
	} shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
	struct ap_arena *arena = ap_arena_create(0, NULL, NULL);
	bool known = false;

	for (size_t i = 0; i < AP_COUNT(shells) && argc == 2; i++)
		if (!strcmp(argv[1], shells[i].name)) {
			shells[i].write(arena);
			known = true;
		}
	ap_arena_destroy(arena);
	return !known || ferror(stdout) || fclose(stdout);
}
