/* SPDX-License-Identifier: MIT */
/*
 * Orders: one daemon, two clients with a gate each. Orders go out with a number, answers come back in any order of the
 * clients, the daemon gives up on those that do not come, clients and the daemon die and come back at any time, and a
 * gate may refuse to open a few times. Written from docs/protocol.md, daemon/plan.c, agent/gate.c, agent/link.c.
 *
 * Shown: an answer is taken for no other order; whenever nothing is on its way, what the daemon believes of a gate is
 * true; a gate whose link has ended is open, or was refused to be opened and is tried again.
 *
 * Planted: PLANT_SEQ the daemon takes whatever answer comes; PLANT_TIMEOUT it takes an order for done that nobody
 * answered; PLANT_DOWN an agent leaves its gate when the link ends; PLANT_RESTART a daemon takes the gates of who comes
 * back for open; PLANT_FAILED a failed order is taken for done.
 */
#define N      2
#define SEQS   2 /* orders of one daemon */
#define DEATHS 1
#define FAILS  1

#define OPEN    0
#define CLOSED  1
#define UNKNOWN 2

typedef Client {
	bool up;      /* the agent's view of its link */
	bool sock;    /* the connection, as the kernel has it */
	bool closed;  /* the gate, in truth */
	bool told;    /* the daemon knows it */
	byte believed;
	byte waiting; /* number of the order under way; 0: none */
	bool want;    /* that order: close */
};
Client c[N];
/* number, close; number, close, done */
chan down0 = [2] of { byte, bool }; chan down1 = [2] of { byte, bool };
chan up0 = [2] of { byte, bool, bool }; chan up1 = [2] of { byte, bool, bool };
bool alive = true;
byte seq, deaths = DEATHS, fails = FAILS;

#define quiet(i, d, u) (c[i].told && c[i].up && c[i].sock && !c[i].waiting && len(d) == 0 && len(u) == 0)

inline forget(i, d, u)
{
	do :: nempty(d) -> d?_,_ :: nempty(u) -> u?_,_,_ :: empty(d) && empty(u) -> break od;
	c[i].told = false;
	c[i].waiting = 0
}

inline open_gate(i)
{
	if
	:: c[i].closed && fails -> fails--
	:: c[i].closed = false
	fi
}

proctype agent(byte i; chan d; chan u)
{
	byte s;
	bool close;

	do
	:: atomic { c[i].up && !c[i].sock -> c[i].up = false;
#ifndef PLANT_DOWN
		open_gate(i)
#endif
	   }
	:: atomic { !c[i].up && c[i].closed -> c[i].closed = false } /* tried again, 100 ms later */
	:: atomic { !c[i].up && !c[i].told && alive -> c[i].sock = true; c[i].up = true } /* a new client to the daemon */
	:: atomic { c[i].up && c[i].sock && nempty(d) && nfull(u) -> d?s,close;
		if
		:: close -> c[i].closed = true; u!s,close,true
		:: !close -> open_gate(i); u!s,close,!c[i].closed
		:: u!s,close,false /* the device could not */
		fi
	   }
	:: atomic { deaths -> deaths--; c[i].up = false; c[i].sock = false; c[i].closed = false } /* the process dies */
	od
}

inline order(i, d)
{
	c[i].want = (c[i].believed == OPEN);
	c[i].waiting = seq;
	d!seq,c[i].want
}

inline answer(i, u)
{
	u?s,close,done;
	if
#ifdef PLANT_SEQ
	:: c[i].waiting ->
#else
	:: c[i].waiting && s == c[i].waiting ->
#endif
		assert(s == c[i].waiting);
		c[i].waiting = 0;
		if
		:: done -> c[i].believed = (c[i].want -> CLOSED : OPEN)
#ifdef PLANT_FAILED
		:: !done -> c[i].believed = (c[i].want -> CLOSED : OPEN)
#else
		:: !done -> c[i].believed = UNKNOWN
#endif
		fi
	:: else -> /* late: it only corrects what is known */
		if
		:: done && !c[i].waiting && c[i].believed != UNKNOWN -> c[i].believed = (close -> CLOSED : OPEN)
		:: else
		fi
	fi
}

inline serve(i, d, u)
{
	if
	:: alive && c[i].sock && c[i].up && !c[i].told ->
		c[i].told = true;
#ifdef PLANT_RESTART
		c[i].believed = OPEN
#else
		c[i].believed = (c[i].closed -> CLOSED : OPEN)
#endif
	:: alive && c[i].told && !c[i].sock -> forget(i, d, u)
	:: alive && c[i].told && nempty(u) -> answer(i, u)
	:: alive && c[i].waiting -> /* the core gives up */
		c[i].waiting = 0;
#ifdef PLANT_TIMEOUT
		c[i].believed = (c[i].want -> CLOSED : OPEN)
#else
		c[i].believed = UNKNOWN
#endif
	fi
}

active proctype daemon()
{
	byte s;
	bool close, done;

	do
	:: atomic { serve(0, down0, up0) }
	:: atomic { serve(1, down1, up1) }
	:: atomic { /* a plan: one client or both, closes what is open and opens the rest */
		alive && seq < SEQS && !c[0].waiting && !c[1].waiting && (c[0].told || c[1].told) -> seq++;
		if :: c[0].told && c[0].sock && nfull(down0) -> order(0, down0) :: true fi;
		if :: c[1].told && c[1].sock && nfull(down1) -> order(1, down1) :: true fi
	   }
	:: atomic { alive && deaths -> deaths--; alive = false; c[0].sock = false; c[1].sock = false;
		forget(0, down0, up0); forget(1, down1, up1) }
	:: atomic { !alive -> alive = true; seq = 0 }
	od
}

init { atomic { run agent(0, down0, up0); run agent(1, down1, up1) } }

#define true_of(i, d, u) (!quiet(i, d, u) || c[i].believed == UNKNOWN || (c[i].believed == CLOSED) == c[i].closed)
ltl belief { [] (true_of(0, down0, up0) && true_of(1, down1, up1)) }
/* The one refusal there is apart, a gate without a link is open. */
ltl alone { [] ((!c[0].up && c[0].closed && fails == FAILS) -> false) }
