/* SPDX-License-Identifier: MIT */
/*
 * Leases: one client with one gate, a daemon that renews, hangs for ever, is killed, or comes back; an open that may
 * fail. Time is counted in half leases, and does not pass what the agent asked to be woken for. Written from
 * docs/protocol.md, agent/thread.c, agent/gate.c.
 *
 * Shown: a gate that is closed on work while no daemon is well opens within two leases, and one more for each open that
 * failed, whatever state the link is in.
 *
 * Planted: PLANT_LEASE nobody looks at leases; PLANT_DOWN gates stay as they are when the link ends; PLANT_GREETED a link
 * that was greeted and never answered counts as one that looks after the gates; PLANT_RENEW each look counts as a
 * renewal; PLANT_RETRY an open that failed is not tried again.
 */
#define LEASE 2
#define FAILS 1

mtype = { DOWN, GREETED, UP };
mtype link = DOWN;
bool sock, alive = true, hung, known;
bool closed, work;
bool renewed;     /* the page: the daemon has vouched for it since the agent looked */
byte age;         /* half leases since the agent saw that, or work began */
byte due;         /* half leases until the next try where no lease runs */
byte helpless;    /* half leases closed on work with nobody well */
byte fails = FAILS, daemons = 2;
bool gave_up;

#define well (alive && !hung)
/* What the agent's thread asked to be woken for: it is not late for that. */
#define agent_due ((link != DOWN && !sock) || (link == DOWN && closed && !gave_up && due == 0) || \
		   (LOOKS && link == UP && closed && work && age >= LEASE) || \
		   (GREETS && link == GREETED && closed && due == 0))
#ifdef PLANT_LEASE
#define LOOKS false
#else
#define LOOKS true
#endif
#ifdef PLANT_GREETED
#define GREETS false
#else
#define GREETS true
#endif

inline open_gate()
{
	if
	:: closed && fails -> fails--; due = 1;
#ifdef PLANT_RETRY
		gave_up = true
#endif
	:: closed = false; helpless = 0
	fi;
	age = 0
}

active proctype agent()
{
	do
	:: atomic { link != DOWN && !sock -> link = DOWN; due = 0;
#ifndef PLANT_DOWN
		if :: closed -> open_gate() :: else fi
#else
		gave_up = true
#endif
	   }
	:: atomic { link == DOWN && alive -> sock = true; link = GREETED; due = 1 } /* nobody need accept it */
	:: atomic { link == DOWN && closed && !gave_up && due == 0 -> open_gate() }
	:: atomic { GREETS && link == GREETED && closed && due == 0 -> open_gate() }
	:: atomic { link == UP && renewed -> renewed = false; age = 0 }
#ifdef PLANT_RENEW
	:: atomic { link == UP && age -> age = 0 }
#endif
	:: atomic { LOOKS && link == UP && closed && work && age >= LEASE && !renewed -> open_gate() }
	od
}

active proctype daemon()
{
	do
	:: atomic { well && sock && link == GREETED -> known = true; link = UP; age = 0; helpless = 0 }
	:: atomic { well && known && !sock -> known = false }
	:: atomic { well && known && link == UP && !closed -> closed = true; age = 0 }
	:: atomic { well && known && link == UP && closed -> closed = false }
	:: atomic { well && known && closed && work -> renewed = true }
	:: atomic { well -> hung = true }
	:: atomic { alive -> alive = false; hung = false; sock = false; known = false }
	:: atomic { !alive && daemons -> daemons--; alive = true }
	od
}

active proctype application()
{
	do
	:: atomic { !work -> work = true; age = 0 }
	:: atomic { work && !closed -> work = false }
	od
}

active proctype clock()
{
	do
	:: atomic { !agent_due ->
		if :: closed && work && age < 9 -> age++ :: else fi;
		if :: due -> due-- :: else fi;
		if
		:: closed && work && !well && helpless < 9 -> helpless++
		:: !(closed && work && !well) -> helpless = 0
		:: else
		fi
	   }
	od
}

ltl opens { [] (helpless <= 2 * LEASE + FAILS * LEASE) }
