/* SPDX-License-Identifier: MIT */
/* A program with a status of its own; linked statically it is one that no agent gets into. */
int main(void)
{
	return 3;
}
