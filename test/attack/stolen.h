/* SPDX-License-Identifier: MIT */
#ifndef TEST_ATTACK_STOLEN_H
#define TEST_ATTACK_STOLEN_H

#include <stdint.h>

uint64_t attack_stolen_ns(void);

#endif
