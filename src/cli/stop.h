/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the operating system does to the program: signals, the timer, lost standard streams.
 *
 * Before a search SIGINT, SIGTERM and SIGHUP end the program at once: nothing is staged yet. While
 * one runs, the first asks it to stop (the best plan so far is then written), a second one ends the
 * program at once; should that hit the moment in which files are put in place, those not yet in
 * place stay old and a staged ".NAME.XXXXXX" may remain. A signal that was ignored when the program
 * started stays ignored.
 */
#ifndef AP_CLI_STOP_H
#define AP_CLI_STOP_H

#include <signal.h>

/* File descriptors 0-2 that are closed get /dev/null opened the wrong way round: what is lost then
 * fails, instead of landing in the first file that is opened. */
void ap_streams_secure(void);

/* Handlers for the signals above; SIGPIPE and SIGXFSZ become errors of write(); a failed assertion
 * ends with the exit code of AP_INTERNAL. */
void ap_stop_install(void);

/* From here on a signal stops the search instead of the program. */
void ap_stop_arm(void);

/* Sets the stop flag after so many seconds. */
void ap_stop_after(double seconds);

/* For ctx->stop. */
const volatile sig_atomic_t *ap_stop_flag(void);

/* The signal that set the flag; 0: none, or the time limit. */
int ap_stop_signal(void);

#endif
