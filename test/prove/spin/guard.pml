/* SPDX-License-Identifier: MIT */
/*
 * The guard: the agent's thread may be ended at any point (a filter, a debugger, a mistake), with the agent's lock or
 * without, in the middle of a change or not; the guard sleeps until then, takes over and starts another. An application
 * thread wants the lock now and then. Written from agent/guard.c, agent/thread.c, agent/lock.c.
 *
 * Shown: there are never two agent's threads; a gate that is closed has an agent's thread, or somebody who is about to
 * open it; nobody waits for ever for a lock whose owner has ended.
 *
 * Planted: PLANT_LOCK the lock of a thread that ended is not passed on; PLANT_HALFWAY what the dead thread was about to
 * close is taken for open; PLANT_EARLY the guard takes over before the thread has ended; PLANT_HEIRS the last heir does
 * not open the gates.
 */
#define HEIRS 2

#define NOBODY 0
byte owner = NOBODY;   /* of the agent's lock: 1..: agent's threads by number; 9: the application */
byte thread = 1;       /* who is the agent's thread; NOBODY: none */
byte threads = 1;      /* that run as one */
bool dead;             /* the present one has ended */
bool closed, slot_closed; /* the gate, in truth; what the agent knows */
byte heirs;
bool over;             /* there will be no agent any more */

inline lock(who) { atomic { owner == NOBODY -> owner = who } }
inline unlock() { owner = NOBODY }

proctype agent_thread(byte me)
{
	do
	:: lock(me);
	   if
	   :: closed = true; slot_closed = true /* an order */
	   :: closed = true; /* the call is made, and this thread ends before it has noted it */
	      atomic { dead = true; threads--; goto gone }
	   :: closed = false; slot_closed = false
	   :: atomic { dead = true; threads--; goto gone } /* ends with the lock */
	   fi;
	   unlock()
	:: atomic { dead = true; threads--; goto gone }
	od;
gone:
	skip
}

proctype guard(byte me)
{
	bool halfway;

end_wait:
#ifdef PLANT_EARLY
	atomic { true -> threads++; }
#else
	atomic { dead -> dead = false; threads++; thread = NOBODY }
#endif
	assert(threads == 1);
	/* The lock, from whoever had it. */
	atomic {
		if
#ifndef PLANT_LOCK
		:: owner != NOBODY && owner != 9 -> halfway = true; owner = me
#endif
		:: owner == NOBODY -> halfway = false; owner = me
		fi
	}
	if
#ifndef PLANT_HALFWAY
	:: halfway -> slot_closed = true /* everything counts as closed */
#endif
	:: else
	fi;
	heirs++;
#ifdef PLANT_HEIRS
	if :: heirs <= HEIRS -> if :: slot_closed -> closed = false; slot_closed = false :: else fi :: else fi;
#else
	if :: slot_closed -> closed = false; slot_closed = false :: else fi; /* the link is given up: gates open */
#endif
	unlock();
	if
	:: heirs > HEIRS -> atomic { threads--; over = true } /* what ends every one of them will end the next */
	:: else -> atomic { thread = me; run guard(me + 1); run agent_thread(me) }
	fi
}

active proctype application()
{
	do
	:: lock(9); unlock()
	:: atomic { over -> break }
	od
}

init { atomic { run guard(2); run agent_thread(1) } }

ltl one { [] (threads <= 1) }
ltl opened { [] (over -> !closed) }
