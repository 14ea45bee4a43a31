/* Threads that do the parts of what they are given, see crew.c. */
#ifndef TRIVET_CREW_H
#define TRIVET_CREW_H
#include <stdint.h>

typedef struct trivet_crew Crew;

/* Begins what others extend: the first member of their own structure, allocated by malloc. */
typedef struct trivet_work {
    void (*part)(struct trivet_work *work, int64_t at); /* does one of the parts, in any thread */
    int (*onward)(struct trivet_work *work);            /* once all are done: whether all are wanted again */
    void (*discard)(struct trivet_work *work);          /* frees it */
    int64_t parts, begun, left, ticket;
    struct trivet_work *next;
} Work;

/* Does all parts here and now, then discards it. */
void trivet_work_here(Work *work);

/* Has the crew do it, tell the ticket and discard it. */
void trivet_work_beside(Crew *crew, Work *work, int64_t ticket);
#endif
