/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: held PROGRAM ARGUMENT... Prints its exit status and the most bytes that it held. The parent's own
 * are counted for a child before it becomes PROGRAM, so they have to be few. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	pid_t pid = fork();
	struct rusage usage;
	int status;

	if (argc < 2 || pid < 0)
		return 2;
	if (pid == 0) {
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || getrusage(RUSAGE_CHILDREN, &usage))
		return 2;
	printf("%d %lld\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, usage.ru_maxrss * 1024LL);
	return 0;
}
