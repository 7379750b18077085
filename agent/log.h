/* SPDX-License-Identifier: MIT */
/* What the agent did, for finding faults: lines in the file of GPREEMPT_AGENT_LOG; without that variable none. */
#ifndef GP_AGENT_LOG_H
#define GP_AGENT_LOG_H

#include <stdint.h>

void gp_log_open(const char *path);
/* One line: the time in µs, the thread, the text, then the values that are not GP_LOG_NONE. */
void gp_log_line(const char *text, int64_t a, int64_t b, int64_t c);
#define GP_LOG_NONE            INT64_MIN
#define gp_log(text)           gp_log_line((text), GP_LOG_NONE, GP_LOG_NONE, GP_LOG_NONE)
#define gp_log1(text, a)       gp_log_line((text), (int64_t)(a), GP_LOG_NONE, GP_LOG_NONE)
#define gp_log2(text, a, b)    gp_log_line((text), (int64_t)(a), (int64_t)(b), GP_LOG_NONE)
#define gp_log3(text, a, b, c) gp_log_line((text), (int64_t)(a), (int64_t)(b), (int64_t)(c))

#endif
