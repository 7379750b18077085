/* SPDX-License-Identifier: MIT */
/*
 * Held contexts (NVIDIA, mechanism borrow): the daemon closes a client's context itself, by a thread of its own, and
 * says so on the page before it calls. If it stands still the agent, whose lease runs out, opens the context and tells
 * it; the message and the answer of the daemon's own thread come in any order. Written from daemon/plan.c,
 * daemon/queue.c, agent/gate.c, device/nvidia.
 *
 * Shown: whenever nothing is on its way, a context that is closed is one the daemon knows to be closed and the page says
 * is held (so a lease runs), or one the agent has closed; and where the daemon is dead it is open.
 *
 * Planted: PLANT_TRUST the daemon believes the agent's message and does not see to it itself that the context is open
 * (the close that it had ordered may come after the agent's open); PLANT_LATE the page is told after the call; PLANT_KEEP
 * the agent opens only what it closed itself when the link ends.
 */
bool closed;           /* the context, in truth */
bool held;             /* the page */
bool believed;         /* the daemon: closed */
bool waiting, want;    /* its order under way; close? */
bool alive = true, stands; /* stands still: SIGSTOP, a debugger */
bool sock = true, agent_closed, saw_end;
#ifndef STOPS
#define STOPS 2
#endif
byte orders = 3, stops = STOPS, leases = 2;
chan jobs = [2] of { bool };    /* to the daemon's thread: close? */
chan answers = [2] of { bool }; /* from it */
chan lost = [2] of { bool };    /* from the agent: it is open now */

#define moves (alive && !stands)

active proctype decide()
{
	bool close, _unused;

	do
	:: atomic { moves && !waiting && orders && nfull(jobs) -> orders--; want = !believed; waiting = true;
#ifndef PLANT_LATE
		if :: want -> held = true :: else fi;
#endif
		jobs!want }
	:: atomic { moves && nempty(answers) -> answers?close;
		if
		:: waiting && close == want -> waiting = false; believed = close; held = close
		:: else /* its own opens, which nobody waits for */
		fi }
	:: atomic { moves && nempty(lost) && nfull(jobs) -> lost?_unused; held = false;
		if
		:: !waiting -> believed = false;
#ifndef PLANT_TRUST
			jobs!false /* what is done to one client is done in order: after whatever was ordered before */
#endif
		:: else /* the answer decides */
		fi
	   }
	od
}

active proctype worker()
{
	bool close;

	do
	:: atomic { alive && !stands && nempty(jobs) && nfull(answers) -> jobs?close; closed = close; answers!close }
	od
}

active proctype agent()
{
	do
	:: atomic { sock && leases && (held || agent_closed) && nfull(lost) && stands -> /* the lease ran out */
		leases--; held = false; closed = false; agent_closed = false; lost!true }
	:: atomic { !sock && alive -> skip } /* comes back as a new client: not in this model */
	:: atomic { !sock && !alive -> /* the link has ended: everything is enabled, also what it was told nothing of */
#ifdef PLANT_KEEP
		if :: agent_closed -> closed = false :: else fi;
#else
		closed = false;
#endif
		held = false; agent_closed = false; saw_end = true; break }
	od
}

active proctype trouble()
{
	do
	:: atomic { alive && !stands && stops -> stops--; stands = true }
	:: atomic { alive && stands -> stands = false }
	:: atomic { alive -> alive = false; sock = false; break } /* kill -9: its thread goes with it */
	od
}

#define still (!waiting && len(jobs) == 0 && len(answers) == 0 && len(lost) == 0)
ltl vouched { [] ((alive && !stands && still && closed) -> (believed && held)) }
/* Where it stands still once: a lease runs for whatever is closed. */
ltl leased { [] ((alive && stands && closed) -> held) }
ltl let_go { [] (saw_end -> !closed) }
