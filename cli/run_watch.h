/* SPDX-License-Identifier: MIT */
/* A process beside the program that `gpreempt run` became, which says once if the program uses the GPU without an
 * agent. */
#ifndef GP_CLI_RUN_WATCH_H
#define GP_CLI_RUN_WATCH_H

#include <stdint.h>

/* Call before exec. The watcher is nobody's child, holds only standard error, and ends with the program. Without it
 * nothing is lost but the warning, so failures are silent. interval_ms: between the first questions. */
void gp_run_watch_start(const char *command, uint32_t interval_ms);

#endif
