/* SPDX-License-Identifier: MIT */
/* The page that a client shares with the daemon: the client can neither take it away nor have the daemon hold more
 * memory than it should. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "lib/closer.h"
#include "test/unit/daemon_world.h"
#include "test/unit/welcome.h"

static struct world world;
static struct agent agent;
static bool holds; /* somebody holds the lock of every page's file */

int madvise(void *memory, size_t size, int advice)
{
	while (__atomic_load_n(&holds, __ATOMIC_SEQ_CST) && advice == MADV_REMOVE)
		usleep(1000);
	return (int)syscall(SYS_madvise, memory, size, advice);
}

static int begin(void **state)
{
	(void)state;
	world_begin_one(&world, &agent, NULL, 50);
	return 0;
}

static int end(void **state)
{
	(void)state;
	world_end_one(&world, &agent);
	return 0;
}

/* Its memory is looked at all the time: it must not be able to take it away, or to make it what it was not. */
static void test_page_is_sealed(void **state)
{
	struct gp_wire_hello hello = world_hello(50);
	struct gp_wire_welcome welcome;
	struct iovec part = { &welcome, sizeof(welcome) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct msghdr packet = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control) };
	int fd = world_connect(&world), fds[2];

	(void)state;
	world_send(fd, &hello, sizeof(hello));
	world_step(&world);
	assert_int_equal(recvmsg(fd, &packet, MSG_DONTWAIT), sizeof(welcome));
	assert_int_equal(packet.msg_controllen, sizeof(control.room));
	memcpy(fds, CMSG_DATA(&control.head), sizeof(fds));
	assert_int_equal(ftruncate(fds[0], 0), -1);
	assert_int_equal(ftruncate(fds[0], 1 << 20), -1);
	assert_int_equal(fcntl(fds[0], F_ADD_SEALS, F_SEAL_WRITE), -1);
	close(fds[0]);
	close(fds[1]);
	close(fd);
	world_step(&world);
}

/* A file of the page of which the daemon knows nothing; -1: only root may. */
static int open_page(const struct gp_page *page)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)page,
		 (unsigned long)page + (unsigned long)((sizeof(*page) + 4095) & ~4095ul));
	return open(path, O_RDWR | O_CLOEXEC);
}

static uint64_t memory_of(int page_fd)
{
	struct stat st;

	assert_int_equal(fstat(page_fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void end_page(struct agent *other, int page_fd)
{
	munmap(other->page, sizeof(*other->page));
	close(other->doorbell_fd);
	close(page_fd);
}

static int connect_page(struct agent *other)
{
	struct gp_wire_hello hello = world_hello(50);
	struct gp_wire_welcome welcome;

	*other = (struct agent){ .fd = world_connect(&world) };
	world_send(other->fd, &hello, sizeof(hello));
	world_step(&world);
	assert_null(gp_test_welcome(other->fd, MSG_DONTWAIT, &welcome, &other->page, &other->doorbell_fd));
	return open_page(other->page);
}

/* A client without queues that leaves and keeps its page does not keep its memory: the daemon touched it, so it counts
 * as the daemon's. */
static void test_page_is_given_back(void **state)
{
	struct agent other;
	int page_fd = connect_page(&other);

	(void)state;
	if (page_fd < 0)
		skip();
	agent_ring(&other);
	world_step(&world);
	assert_int_equal(memory_of(page_fd), 4096);
	close(other.fd);
	world_step(&world);
	while (gp_unmap_pending())
		usleep(1000);
	assert_int_equal(memory_of(page_fd), 0);
	assert_int_equal(other.page->armed, 0);
	end_page(&other, page_fd);
}

/* Before the daemon reads a client's slots, nobody can make holes any more, which it would fill with memory of its own.
 * Nor can the file be mapped for writing again. The memory of slots is the client's, who wrote them first. */
static void test_page_without_holes(void **state)
{
	struct agent other;
	int page_fd = connect_page(&other);

	(void)state;
	if (page_fd < 0)
		skip();
	for (uint32_t slot = 0; slot < GP_WIRE_QUEUE_MAX; slot += 32) /* in each of its pages */
		agent_add_queue(&world, &other, slot, GP_QUEUE_SEEN);
	assert_true(world_queue(&world, &other, GP_WIRE_QUEUE_MAX - 32)->in_core);
	assert_int_equal(madvise(other.page, sizeof(*other.page), MADV_REMOVE), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fallocate(page_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0), MAP_FAILED);
	agent_doorbell(&world, &other, 32, 1); /* what is mapped can be written as before */
	assert_int_equal(world_queue(&world, &other, 32)->pending, 1);
	close(other.fd);
	world_step(&world);
	end_page(&other, page_fd);
}

/* The daemon would touch a slot first that has no memory: it takes no queue there. */
static void test_slot_without_memory(void **state)
{
	struct gp_wire_queue queue = {
		.header = { GP_WIRE_MAGIC, GP_WIRE_VERSION, GP_WIRE_QUEUE_ADD, sizeof(queue), 0 },
		.slot = GP_WIRE_QUEUE_MAX / 2,
		.generation = 1,
		.flags = GP_QUEUE_SEEN,
		.gpu_id = WORLD_GPU,
	};
	struct agent other;
	int page_fd = connect_page(&other);

	(void)state;
	if (page_fd < 0)
		skip();
	agent_add_queue(&world, &other, 0, GP_QUEUE_SEEN);
	world_send(other.fd, &queue, sizeof(queue));
	world_step(&world);
	assert_true(world_is_closed(other.fd));
	assert_int_equal(memory_of(page_fd), 4096);
	close(other.fd);
	world_step(&world);
	end_page(&other, page_fd);
}

/* Whether what this process touches of that mapping stays in memory. */
static bool is_locked(const void *mapping)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	char line[512], begin[32];
	bool is_there = false, locked = false;

	assert_non_null(maps);
	snprintf(begin, sizeof(begin), "%lx-", (unsigned long)mapping);
	while (fgets(line, sizeof(line), maps) && !(is_there && !strncmp(line, "VmFlags:", 8)))
		is_there |= !strncmp(line, begin, strlen(begin));
	assert_true(is_there);
	locked = strstr(line, " lo");
	fclose(maps);
	return locked;
}

/* A user who has swap for what the client wrote does not make the decision thread wait for it: what it has read stays.
 * What it has not read takes no memory. */
static void test_page_stays_in_memory(void **state)
{
	struct agent other;
	int page_fd = connect_page(&other);
	const struct gp_client *client;

	(void)state;
	if (page_fd < 0)
		skip();
	agent_add_queue(&world, &other, GP_WIRE_QUEUE_MAX / 2, GP_QUEUE_SEEN);
	client = world_queue(&world, &other, GP_WIRE_QUEUE_MAX / 2)->client;
	assert_true(is_locked(client->page));
	assert_false(is_locked(other.page));
	assert_int_equal(memory_of(page_fd), 8192);
	close(other.fd);
	world_step(&world);
	end_page(&other, page_fd);
}

/* The newest connection is that user's, before it says HELLO. */
static void give_newest_peer(uid_t uid)
{
	struct gp_peer *peer = world.daemon.peers;

	peer->owner->peer_count--;
	gp_owner_put(peer->owner);
	peer->owner = gp_owner_of_uid(&world.daemon, uid);
	peer->owner->peer_count++;
	peer->uid = uid;
	peer->identity.rights = uid ? 0 : GP_RIGHT_NICE | GP_RIGHT_ADMIN;
}

/* A client of the user comes and goes, with a queue; or without one, having sealed its page so that the daemon cannot
 * give the memory back. False: it is refused. */
static bool comes_and_goes(uid_t uid, bool has_queue)
{
	struct gp_wire_hello hello = world_hello(50);
	struct agent other = { .fd = world_connect(&world) };
	bool comes;
	int page_fd;

	world_step(&world);
	give_newest_peer(uid);
	world_send(other.fd, &hello, sizeof(hello));
	world_step(&world);
	comes = !gp_test_welcome(other.fd, MSG_DONTWAIT, &other.welcome, &other.page, &other.doorbell_fd);
	if (!comes) {
		assert_true(world_is_closed(other.fd));
		close(other.fd);
		return false;
	}
	page_fd = open_page(other.page);
	if (has_queue)
		agent_add_queue(&world, &other, 0, GP_QUEUE_SEEN);
	else if (page_fd >= 0)
		assert_int_equal(fcntl(page_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	assert_false(world_is_closed(other.fd));
	close(other.fd);
	world_step(&world);
	end_page(&other, page_fd);
	return true;
}

/* How many clients of the user come and go until one is refused. */
static int come_and_go(uid_t uid, bool have_queues, int most)
{
	int count = 0;

	while (count < most && comes_and_goes(uid, have_queues))
		count++;
	return count;
}

/* The first 4 KB of each page stay charged to the daemon for as long as the client likes. So a user gets 512 at once,
 * and ten a second. Root's are not counted. */
static void test_pages_in_a_time(void **state)
{
	(void)state;
	assert_in_range(come_and_go(4711, true, 1000), 512, 520);
	world_wait(&world, 1000);
	assert_in_range(come_and_go(4711, true, 1000), 9, 12);
	assert_int_equal(come_and_go(4712, true, 5), 5);
	assert_int_equal(come_and_go(0, true, 520), 520);
}

/* Nor are queues what counts: without one the client can seal its page itself, or put it into a pipe. */
static void test_pages_without_queues(void **state)
{
	(void)state;
	assert_in_range(come_and_go(4713, false, 1000), 512, 520);
	world_wait(&world, 1000);
	assert_in_range(come_and_go(4713, true, 1000), 9, 12);
}

/* Pages that cannot be given back keep the places of their clients: their memory is bounded as that of clients is. */
static void test_pages_that_stay(void **state)
{
	struct gp_wire_hello hello = world_hello(50);
	uint32_t max = world.daemon.config.client_max;
	int fd;

	(void)state;
	world.daemon.config.client_max = 8; /* one is there */
	__atomic_store_n(&holds, true, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 16 + 8; i++) {
		fd = world_connect(&world);
		world_send(fd, &hello, sizeof(hello));
		world_step(&world);
		close(fd);
		world_step(&world);
	}
	assert_int_equal(gp_unmap_pending(), 16 + 7);
	__atomic_store_n(&holds, false, __ATOMIC_SEQ_CST);
	while (gp_unmap_pending())
		usleep(1000);
	world.daemon.config.client_max = max;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_page_is_sealed, begin, end),
		cmocka_unit_test_setup_teardown(test_page_is_given_back, begin, end),
		cmocka_unit_test_setup_teardown(test_page_without_holes, begin, end),
		cmocka_unit_test_setup_teardown(test_slot_without_memory, begin, end),
		cmocka_unit_test_setup_teardown(test_page_stays_in_memory, begin, end),
		cmocka_unit_test_setup_teardown(test_pages_in_a_time, begin, end),
		cmocka_unit_test_setup_teardown(test_pages_without_queues, begin, end),
		cmocka_unit_test_setup_teardown(test_pages_that_stay, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
