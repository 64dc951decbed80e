/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals, the timer, and closed standard streams.
 *
 * Before a search, SIGINT, SIGTERM and SIGHUP end the program at once: nothing is staged yet.
 * During a search, the first one asks it to stop (and the best plan so far is written), a second
 * one ends the program at once; if that happens while files are put in place, some may stay old and
 * a staged ".NAME.XXXXXX" may remain. Signals ignored at the start stay ignored.
 */
#ifndef AP_CLI_STOP_H
#define AP_CLI_STOP_H

#include <signal.h>

/* Opens /dev/null, in the wrong direction, for file descriptors 0-2 that are closed: their use then
 * fails instead of hitting the first file that is opened. */
void ap_streams_secure(void);

/* Installs handlers of these signals; SIGPIPE and SIGXFSZ become errors of write(); a failed
 * assertion exits with the code of AP_INTERNAL. */
void ap_stop_install(void);

/* From here on, a signal stops the search instead of the program. */
void ap_stop_arm(void);

/* Sets the stop flag after a number of seconds. */
void ap_stop_after(double seconds);

/* The flag, for ctx->stop. */
const volatile sig_atomic_t *ap_stop_flag(void);

/* The signal that set the flag; 0 if none, or the time limit. */
int ap_stop_signal(void);

#endif
