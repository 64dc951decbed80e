/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libautopar, version 0.x: plans how a network is cut over many devices, as the program autopar-plan does.
 * There is no promise yet that programs need not be compiled anew for the next version.
 *
 * A context holds settings and inputs; searches and evaluations of it make plans. The library has no global
 * state, prints nothing and never ends the program, but where it finds a bug in itself (an assertion).
 * Contexts are independent of each other and may be used by as many threads; one context is used by one
 * thread at a time, but for autopar_stop(). Pictures are drawn by a process of their own, so that they need
 * no turn.
 *
 * What can go wrong is a value. Every call that returns enum autopar_status leaves the messages of what it
 * did in its context, until the next such call. Texts are UTF-8 and end with NUL; what a call is given is
 * copied.
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
struct autopar_plan; /* what a search or an evaluation has found */

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

/* "0.2.0". Static. */
AUTOPAR_API const char *autopar_version(void);

/* A new context; the caller's, who destroys it with autopar_destroy(). NULL where memory has run out. */
AUTOPAR_API struct autopar *autopar_create(void);

/* Destroys a context, after its plans. Accepts NULL. */
AUTOPAR_API void autopar_destroy(struct autopar *a);

/* Sets one setting by its name, as in --config and `autopar-plan list settings`: "device_num" to "8". Taken
 * are all that search and evaluate take, but files to write, what the program prints, and time_limit,
 * instead of which there is autopar_stop(). What is set twice has its last value. AUTOPAR_USAGE for an
 * unknown name and for what is no value; whether settings contradict each other, a search says. */
AUTOPAR_API enum autopar_status autopar_set(struct autopar *a, const char *name, const char *value);

/* Sets what a JSON object says, as of --config, wherever autopar_set() has said nothing. AUTOPAR_SYNTAX,
 * AUTOPAR_MEANING. */
AUTOPAR_API enum autopar_status autopar_config(struct autopar *a, const char *text, size_t bytes);

/*
 * Inputs. Of each the last call counts; a file is read when it is needed, bytes are copied. name is what
 * messages and the plan call the bytes: "net.json". A graph there has to be. Without a rank table the
 * machine is that of device_num and chip. A strategy checkpoint, in either form, is what autopar_evaluate()
 * evaluates, and what autopar_search() leaves as it is. AUTOPAR_OK, or AUTOPAR_LIMIT.
 */
AUTOPAR_API enum autopar_status autopar_graph_file(struct autopar *a, const char *path);
AUTOPAR_API enum autopar_status autopar_graph_memory(struct autopar *a, const char *name, const char *text,
	size_t bytes);
AUTOPAR_API enum autopar_status autopar_rank_table_file(struct autopar *a, const char *path);
AUTOPAR_API enum autopar_status autopar_rank_table_memory(struct autopar *a, const char *name,
	const char *text, size_t bytes);
AUTOPAR_API enum autopar_status autopar_strategy_file(struct autopar *a, const char *path);
AUTOPAR_API enum autopar_status autopar_strategy_memory(struct autopar *a, const char *name,
	const char *text, size_t bytes);

/* Told what begins ("planning"), by the thread that searches; anything but 0 stops it. */
typedef int autopar_progress_fn(void *user, const char *phase);

/* From now on fn is told; NULL: nobody. user is passed on. */
AUTOPAR_API void autopar_progress(struct autopar *a, autopar_progress_fn *fn, void *user);

/* Stops the search that runs, or, if none does, the next one, soon: it ends with the best plan so far. From
 * any thread, and from a signal handler. */
AUTOPAR_API void autopar_stop(struct autopar *a);

/*
 * Searches the best plan, or, where the settings or the strategy leave nothing to search, makes that plan;
 * the second evaluates the strategy, or the setting "hybrid". With AUTOPAR_OK and AUTOPAR_STOPPED *out is a
 * plan of the caller's, who destroys it with autopar_plan_destroy(); else it is NULL.
 */
AUTOPAR_API enum autopar_status autopar_search(struct autopar *a, struct autopar_plan **out);
AUTOPAR_API enum autopar_status autopar_evaluate(struct autopar *a, struct autopar_plan **out);

/* The least number of devices on which a plan fits, and bytes that a device then needs; the setting
 * device_num is not to be given. AUTOPAR_INFEASIBLE where none was found. */
AUTOPAR_API enum autopar_status autopar_min_devices(struct autopar *a, int64_t *devices, int64_t *bytes);

/*
 * Messages of the last call: how many there are, and message i, from 0. Facts of it by name: "level"
 * ("note", "warning", "error"), "text", and where it is: "file", "pointer" (into JSON), "operator";
 * "check", the name of the rule. NULL for what it has not, and past the end. Line and column count from 1;
 * 0: unknown. Texts live until the next call that leaves messages, and those about a plan no longer than it.
 */
AUTOPAR_API size_t autopar_messages(const struct autopar *a);
AUTOPAR_API const char *autopar_message(const struct autopar *a, size_t i, const char *fact);
AUTOPAR_API int64_t autopar_message_line(const struct autopar *a, size_t i);
AUTOPAR_API int64_t autopar_message_column(const struct autopar *a, size_t i);

/* Destroys a plan and all that was read of it. Accepts NULL. */
AUTOPAR_API void autopar_plan_destroy(struct autopar_plan *p);

/* Seconds of a training step, as predicted; bytes that the fullest device needs. */
AUTOPAR_API double autopar_plan_step_time_s(const struct autopar_plan *p);
AUTOPAR_API int64_t autopar_plan_memory_bytes(const struct autopar_plan *p);

/* "optimal", "feasible", "given" or "stopped". Static. */
AUTOPAR_API const char *autopar_plan_status(const struct autopar_plan *p);

/*
 * Everything else, by its place in the plan file, a JSON pointer; autopar-plan(5) has the keys:
 * "/search/lower_bound_s", "/baselines/0/step_time_s", "/operators/3/in_strategy/0/1". A number, a text,
 * and how many elements or members there are. False, NULL and 0 where there is no such thing, or memory has
 * run out. Texts are the plan's.
 */
AUTOPAR_API bool autopar_plan_number(struct autopar_plan *p, const char *pointer, double *value);
AUTOPAR_API const char *autopar_plan_text(struct autopar_plan *p, const char *pointer);
AUTOPAR_API size_t autopar_plan_count(struct autopar_plan *p, const char *pointer);

/*
 * Writes an output, called as its setting: "strategy_ckpt_save_file", "plan_out", "dot_out", "trace_out",
 * "problem_out", "stage_config_out", "group_ckpt_save_file", "bundle". A file, or folder, appears whole or
 * not at all; the suffix of its name says which form it has, as with the program. AUTOPAR_IO,
 * AUTOPAR_USAGE.
 */
AUTOPAR_API enum autopar_status autopar_plan_file(struct autopar_plan *p, const char *output,
	const char *path);

/* The same as bytes, which are the plan's; suffix is that of a file name, such as ".json" or ".svg", or "". A
 * bundle cannot be had so; "summary" can, the table that the program prints, with ".json" as an object. */
AUTOPAR_API enum autopar_status autopar_plan_memory(struct autopar_plan *p, const char *output,
	const char *suffix, const char **data, size_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
