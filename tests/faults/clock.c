// Preloaded, it puts a process's clock ahead, by as many seconds as the file that CLOCK_AHEAD names has bytes.

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec real;
    struct stat file;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &real);
    now->tv_sec = real.tv_sec + (stat(getenv("CLOCK_AHEAD"), &file) ? 0 : file.st_size);
    now->tv_usec = real.tv_nsec / 1000;
    return 0;
}
