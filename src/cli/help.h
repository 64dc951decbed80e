/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts for standard output. */
#ifndef AP_CLI_HELP_H
#define AP_CLI_HELP_H

#include "cli/parse.h"

struct ap_jw;
struct ap_str;

/* --help. */
void ap_help_text(const struct ap_cli *cli, struct ap_str *out);

/* --print-config. */
void ap_help_config(const struct ap_cli *cli, struct ap_str *out);

/* `list settings`: writes the setting of this name, or all (NULL), as text onto out, or as objects
 * in w's open array. Returns false if none has this name. */
bool ap_help_settings(const char *name, struct ap_str *out, struct ap_jw *w);

#endif
