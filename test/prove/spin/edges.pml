/* SPDX-License-Identifier: MIT */
/*
 * Edges through the page: two producers that ring one queue, the agent's thread that sees it drain, a daemon that arms
 * and sleeps. Sequentially consistent (the fences of page.h; test/unit/page_edges.c has the weaker orders). Written from
 * include/gpreempt/page.h.
 *
 * Shown: when nobody can move any more the daemon knows how much was announced and how much is done.
 *
 * Planted: PLANT_ORDER the daemon arms after it has read; PLANT_PLAIN a doorbell is stored, not raised to the maximum;
 * PLANT_ALL whoever tells of one edge clears the flag of the other, too.
 */
#define PRODUCERS 2
#define RINGS     3 /* of all */

#define BUSY 1
#define IDLE 2

byte tickets, announced, completed;
byte armed;
bool event;
byte knows_announced, knows_completed;
byte finished;

inline tell(flag)
{
	if
	:: armed & flag ->
#ifdef PLANT_ALL
		atomic { got = armed; armed = 0 };
#else
		atomic { got = armed; armed = armed & (3 - flag) };
#endif
		if :: got & flag -> event = true :: else fi
	:: else
	fi
}

proctype producer(byte rings)
{
	byte i, mine, got;

	for (i : 1 .. rings) {
		atomic { tickets++; mine = tickets }
#ifdef PLANT_PLAIN
		announced = mine;
#else
		atomic { if :: mine > announced -> announced = mine :: else fi }
#endif
		tell(BUSY)
	}
	finished++
}

proctype drain()
{
	byte got;

	do
	:: atomic { completed < announced -> completed = announced };
	   tell(IDLE)
	:: finished == PRODUCERS && completed == announced -> break
	od
}

active proctype daemon()
{
	byte a, d;

end_sleep:
	do
	::
#ifdef PLANT_ORDER
		a = announced; d = completed;
		armed = (knows_announced == knows_completed -> BUSY : IDLE);
#else
		armed = (knows_announced == knows_completed -> BUSY : IDLE);
		a = announced; d = completed;
#endif
		if
		:: a != knows_announced || d != knows_completed -> knows_announced = a; knows_completed = d
		:: else ->
end_wait:
			event -> event = false
		fi
	od
}

init { atomic { run producer(RINGS - 1); run producer(1); run drain() } }

active proctype watch()
{
	timeout -> assert(knows_announced == RINGS && knows_completed == RINGS)
}
