/* SPDX-License-Identifier: MIT */
/* What the library shows: nothing but what is marked so and listed in agent.map. */
#ifndef GP_AGENT_EXPORT_H
#define GP_AGENT_EXPORT_H

#define GP_EXPORT __attribute__((visibility("default")))

#endif
