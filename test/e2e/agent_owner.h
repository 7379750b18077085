/* SPDX-License-Identifier: MIT */
/* What an application may do to its own process. */
#ifndef GP_TEST_E2E_AGENT_OWNER_H
#define GP_TEST_E2E_AGENT_OWNER_H

#define OWNER_FDS 256

int owner_fds(int fds[OWNER_FDS], int a, int b); /* open numbers above 2, but those two */

int owner_sandbox(void);       /* process_vm_readv and socket are refused by a handler of SIGSYS */
int owner_trapped_count(void); /* how often, in threads but the first */

int owner_steal(int a, int b);  /* all other open numbers become a file of ours; how many */
const char *owner_stolen(void); /* "ok": nobody used them, and they can be closed */

int owner_bind(void);             /* this thread, to one processor; of how many */
int owner_agent_processors(void); /* of the agent's threads, the fewest that one may run on */
long owner_agent_stacks(void);    /* KiB of memory taken by the stacks of the agent's threads */

int owner_limit(unsigned count);
int owner_count(unsigned below); /* open numbers above 2 and below that */
int owner_hoard(unsigned left);  /* a limit of 64, all but so many taken; how many are open above 2 */
int owner_share(void);           /* closes those again; the same */

#endif
