/* SPDX-License-Identifier: MIT */
/* Whom the agent lets hold up its program: who serves the socket is told by the kernel, and a set-user-ID program has
 * no agent at all. Serving as another user takes root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "agent/agent.h"

#define OTHER_UID 12345u
#define THIRD_UID 12346u

static unsigned long secure;

unsigned long __wrap_getauxval(unsigned long type);
unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_SECURE ? secure : 0;
}

/* Whether a socket in a folder of owner's, served by server, is connected to. */
static bool is_trusted(uid_t owner, uid_t server)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char folder[] = "/tmp/agent-trust-XXXXXX";
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool trusted;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chown(folder, owner, (gid_t)-1) | chmod(folder, 0777), 0);
	snprintf(gp_agent.socket_path, sizeof(gp_agent.socket_path), "%s/s", folder);
	memcpy(address.sun_path, gp_agent.socket_path, sizeof(address.sun_path));
	/* The kernel notes who serves when that one begins to listen. */
	assert_int_equal(seteuid(server), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)) | listen(fd, 1), 0);
	assert_int_equal(seteuid(0), 0);
	trusted = gp_link_connect() == 0;
	gp_link_down("end");
	close(fd);
	unlink(address.sun_path);
	assert_int_equal(rmdir(folder), 0);
	return trusted;
}

static void test_who_serves(void **state)
{
	(void)state;
	if (getuid())
		skip();
	assert_true(is_trusted(0, 0));
	assert_true(is_trusted(OTHER_UID, 0));
	assert_true(is_trusted(OTHER_UID, OTHER_UID)); /* a daemon of one user, in his own folder */
	assert_false(is_trusted(0, OTHER_UID));        /* as in /tmp */
	assert_false(is_trusted(THIRD_UID, OTHER_UID));
}

static void test_setuid(void **state)
{
	(void)state;
	gp_agent.pid = 0;
	secure = 1;
	assert_false(gp_agent_ready());
	gp_agent.pid = 0;
	secure = 0;
	assert_true(gp_agent_ready());
	gp_agent.pid = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_who_serves), cmocka_unit_test(test_setuid) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
