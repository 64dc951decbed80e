/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libautopar, version 0.x: plans how a network is cut over many devices, like the program
 * autopar-plan. Programs may have to be recompiled for the next version.
 *
 * A context holds settings and inputs; searches and evaluations of it make plans. The library has
 * no global state, prints nothing, and ends the program only on finding a bug in itself (an
 * assertion). Contexts are independent: any number of threads may use one each. One context is used
 * by one thread at a time, except for autopar_stop(). Pictures are drawn by a child process, so
 * threads need not take turns, if malloc works in a child of a process with threads. glibc's does,
 * that of GCC 12's AddressSanitizer does not: there no other thread may allocate meanwhile.
 *
 * Errors are values. Every call that returns enum autopar_status leaves its messages in the context
 * until the next such call. Texts are UTF-8 and end with NUL; arguments are copied.
 */
#ifndef AUTOPAR_AUTOPAR_H
#define AUTOPAR_AUTOPAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define AUTOPAR_API __attribute__((visibility("default")))
#else
#define AUTOPAR_API
#endif

struct autopar; /* a context */
struct autopar_plan; /* the result of a search or an evaluation */

enum autopar_status { /* the exit codes of the program */
	AUTOPAR_OK = 0,
	AUTOPAR_DIFFERS = 1,
	AUTOPAR_USAGE = 2, /* a setting or a call is wrong */
	AUTOPAR_SYNTAX = 3, /* an input is malformed */
	AUTOPAR_MEANING = 4, /* an input is well-formed but wrong */
	AUTOPAR_INFEASIBLE = 5, /* no strategy fits; notes say what would */
	AUTOPAR_IO = 6, /* a file could not be read or written */
	AUTOPAR_LIMIT = 7, /* memory ran out, or the search was stopped before it had a plan */
	AUTOPAR_STOPPED = 8, /* stopped early: the plan is the best so far */
	AUTOPAR_INTERNAL = 70 /* a bug in the library */
};

/* "0.3.0". Static. */
AUTOPAR_API const char *autopar_version(void);

/* A new context, which the caller destroys with autopar_destroy(); NULL if memory runs out. */
AUTOPAR_API struct autopar *autopar_create(void);

/* Destroys a context; its plans must have been destroyed before. Accepts NULL. */
AUTOPAR_API void autopar_destroy(struct autopar *a);

/* Sets a setting by its name, as in --config and `autopar-plan list settings`: "device_num" to "8".
 * Accepts all settings of search and evaluate except files to write, what the program prints, and
 * time_limit (use autopar_stop()), with one value each but for autopar_decide(). The last one counts.
 * AUTOPAR_USAGE for an unknown name or an invalid value; contradictions between settings are
 * reported by a search. */
AUTOPAR_API enum autopar_status autopar_set(struct autopar *a, const char *name, const char *value);

/* Sets the members of a JSON object, as in --config, that autopar_set() has not set.
 * AUTOPAR_SYNTAX, AUTOPAR_MEANING. */
AUTOPAR_API enum autopar_status autopar_config(struct autopar *a, const char *text, size_t bytes);

/* Inputs. For each, the last call counts; files are read when needed, bytes are copied. name: what
 * messages and the plan call the bytes, "net.json". A graph is required. Without a rank table,
 * device_num and chip define the machine. A strategy checkpoint, in either form, is what
 * autopar_evaluate() evaluates and autopar_search() keeps unchanged. AUTOPAR_OK, or
 * AUTOPAR_LIMIT. */
AUTOPAR_API enum autopar_status autopar_graph_file(struct autopar *a, const char *path);
AUTOPAR_API enum autopar_status autopar_graph_memory(struct autopar *a, const char *name, const char *text,
	size_t bytes);
AUTOPAR_API enum autopar_status autopar_rank_table_file(struct autopar *a, const char *path);
AUTOPAR_API enum autopar_status autopar_rank_table_memory(struct autopar *a, const char *name,
	const char *text, size_t bytes);
AUTOPAR_API enum autopar_status autopar_strategy_file(struct autopar *a, const char *path);
AUTOPAR_API enum autopar_status autopar_strategy_memory(struct autopar *a, const char *name,
	const char *text, size_t bytes);

/* Called by the searching thread when a phase ("planning") begins; not returning 0 stops it. */
typedef int autopar_progress_fn(void *user, const char *phase);

/* Makes fn (NULL: none) the callback, with argument user. */
AUTOPAR_API void autopar_progress(struct autopar *a, autopar_progress_fn *fn, void *user);

/* Makes the current search, or else the next one, stop soon with the best plan so far. May be
 * called from any thread and from a signal handler. */
AUTOPAR_API void autopar_stop(struct autopar *a);

/* Searches the best plan, or makes the plan if settings or strategy leave nothing to search; the
 * second evaluates the strategy, or the setting "hybrid". With AUTOPAR_OK and AUTOPAR_STOPPED, *out
 * is a plan that the caller destroys with autopar_plan_destroy(); otherwise NULL. */
AUTOPAR_API enum autopar_status autopar_search(struct autopar *a, struct autopar_plan **out);
AUTOPAR_API enum autopar_status autopar_evaluate(struct autopar *a, struct autopar_plan **out);

/* As the command plan: decides what the settings leave open, stages, micro-batches, degrees,
 * recomputation and more, for the one machine that is described, and makes the plan. Settings that the
 * command takes as a list, a range or auto may have several values here. AUTOPAR_INFEASIBLE if no
 * combination fits. */
AUTOPAR_API enum autopar_status autopar_decide(struct autopar *a, struct autopar_plan **out);

/* The least number of devices on which a plan fits, and the bytes that a device then needs. The
 * setting device_num must not be given. AUTOPAR_INFEASIBLE if none was found. */
AUTOPAR_API enum autopar_status autopar_min_devices(struct autopar *a, int64_t *devices, int64_t *bytes);

/*
 * Messages of the last call: their number, and facts of message i, from 0, by name: "level"
 * ("note", "warning", "error"), "text", its location "file", "pointer" (into JSON), "operator";
 * "check", the name of the rule. NULL if it lacks the fact, and past the end. Line and column count
 * from 1; 0: unknown. Texts are valid until the next call that leaves messages; those about a plan,
 * no longer than it.
 */
AUTOPAR_API size_t autopar_messages(const struct autopar *a);
AUTOPAR_API const char *autopar_message(const struct autopar *a, size_t i, const char *fact);
AUTOPAR_API int64_t autopar_message_line(const struct autopar *a, size_t i);
AUTOPAR_API int64_t autopar_message_column(const struct autopar *a, size_t i);

/* Destroys a plan and everything read from it. Accepts NULL. */
AUTOPAR_API void autopar_plan_destroy(struct autopar_plan *p);

/* Predicted seconds of a training step; bytes needed by the fullest device. */
AUTOPAR_API double autopar_plan_step_time_s(const struct autopar_plan *p);
AUTOPAR_API int64_t autopar_plan_memory_bytes(const struct autopar_plan *p);

/* "optimal", "feasible", "given" or "stopped". Static. */
AUTOPAR_API const char *autopar_plan_status(const struct autopar_plan *p);

/* Everything else, by its JSON pointer in the plan file; autopar-plan(5) lists the keys:
 * "/search/lower_bound_s", "/baselines/0/step_time_s", "/operators/3/in_strategy/0/1". Returns a
 * number, a text, or the number of elements or members; false, NULL and 0 if there is none, or if
 * memory runs out. Texts are owned by the plan. */
AUTOPAR_API bool autopar_plan_number(struct autopar_plan *p, const char *pointer, double *value);
AUTOPAR_API const char *autopar_plan_text(struct autopar_plan *p, const char *pointer);
AUTOPAR_API size_t autopar_plan_count(struct autopar_plan *p, const char *pointer);

/* Writes an output, named by its setting: "strategy_ckpt_save_file", "plan_out", "dot_out",
 * "trace_out", "problem_out", "stage_config_out", "group_ckpt_save_file", "bundle". The file or
 * folder appears whole or not at all; the suffix of path selects its form, as in the program.
 * AUTOPAR_IO, AUTOPAR_USAGE. */
AUTOPAR_API enum autopar_status autopar_plan_file(struct autopar_plan *p, const char *output,
	const char *path);

/* Makes an output as bytes owned by the plan; suffix is that of a file name, such as ".json" or
 * ".svg", or "". Not for "bundle", but for "summary": the program's table, with ".json" an
 * object. */
AUTOPAR_API enum autopar_status autopar_plan_memory(struct autopar_plan *p, const char *output,
	const char *suffix, const char **data, size_t *bytes);

/* As the command explain: why a plan is as it is, and what else it could be, as bytes owned by the plan.
 * name: an operator or a pattern, a tensor, "stage:3", a collective or a setting; NULL: the plan as a
 * whole. suffix: ".json", ".md" for Markdown, or "" for text. AUTOPAR_USAGE if nothing has that name. */
AUTOPAR_API enum autopar_status autopar_plan_explain(struct autopar_plan *p, const char *name,
	const char *suffix, const char **data, size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
