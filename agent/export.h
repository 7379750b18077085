/* SPDX-License-Identifier: MIT */
/* The library exports only symbols that are marked GP_EXPORT and listed in agent.map. */
#ifndef GP_AGENT_EXPORT_H
#define GP_AGENT_EXPORT_H

#define GP_EXPORT __attribute__((visibility("default")))

#endif
