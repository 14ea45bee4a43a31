/* Threads that compute beside the interpreter: they have no use for its lock, and so never wait for it.

   Who is free takes the next part of the oldest work. Who does the last part of it decides what follows, and at the end
   writes the work's ticket, eight bytes, into a pipe. */
#include "crew.h"
#include "kernels.h"
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum { PARTS_EACH = 8 }; /* that are worth another thread: with fewer, who is awake is done before it */

struct trivet_crew {
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    Work *first, *last;
    int told, is_closing;
    int64_t threads;
    pthread_t thread[];
};

static void begin(Work *work)
{
    work->begun = 0;
    work->left = work->parts;
}

void trivet_work_here(Work *work)
{
    do
        for (int64_t at = 0; at < work->parts; at++)
            work->part(work, at);
    while (work->onward(work));
    work->discard(work);
}

/* Wakes as many threads as so many parts are worth. */
static void wake(Crew *crew, int64_t parts)
{
    for (; parts > 0; parts -= PARTS_EACH)
        pthread_cond_signal(&crew->wanted);
}

void trivet_work_beside(Crew *crew, Work *work, int64_t ticket)
{
    work->ticket = ticket;
    work->next = NULL;
    begin(work);
    pthread_mutex_lock(&crew->lock);
    *(crew->first ? &crew->last->next : &crew->first) = work;
    crew->last = work;
    wake(crew, work->parts);
    pthread_mutex_unlock(&crew->lock);
}

static void tell(const Crew *crew, int64_t ticket)
{
    while (write(crew->told, &ticket, sizeof ticket) < 0 && errno == EINTR)
        ;
}

/* Takes a part of the oldest work; the lock is held. */
static Work *take(Crew *crew, int64_t *at)
{
    Work *work = crew->first;
    *at = work->begun++;
    if (work->begun == work->parts)
        crew->first = work->next;
    return work;
}

static void *labour(void *given)
{
    Crew *crew = given;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (!crew->first && !crew->is_closing)
            pthread_cond_wait(&crew->wanted, &crew->lock);
        if (crew->is_closing)
            break;
        int64_t at;
        Work *work = take(crew, &at);
        pthread_mutex_unlock(&crew->lock);
        work->part(work, at);
        pthread_mutex_lock(&crew->lock);
        if (--work->left)
            continue;
        pthread_mutex_unlock(&crew->lock);
        int is_wanted_again = work->onward(work);
        if (!is_wanted_again) {
            int64_t ticket = work->ticket;
            work->discard(work);
            tell(crew, ticket);
        }
        pthread_mutex_lock(&crew->lock);
        if (is_wanted_again) { /* before what came later */
            begin(work);
            work->next = crew->first;
            if (!crew->first)
                crew->last = work;
            crew->first = work;
            wake(crew, work->parts - PARTS_EACH); /* this one is awake */
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Ends the threads after the parts that they are at, and discards what waits. */
void trivet_crew_close(Crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->is_closing = 1;
    pthread_cond_broadcast(&crew->wanted);
    pthread_mutex_unlock(&crew->lock);
    for (int64_t at = 0; at < crew->threads; at++)
        pthread_join(crew->thread[at], NULL);
    for (Work *next; crew->first; crew->first = next) {
        next = crew->first->next;
        crew->first->discard(crew->first);
    }
    pthread_cond_destroy(&crew->wanted);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

/* A crew of so many threads that tells tickets into a pipe; none where they cannot be had. */
Crew *trivet_crew_open(int64_t threads, int told)
{
    Crew *crew = calloc(1, sizeof *crew + (size_t)threads * sizeof *crew->thread);
    if (!crew)
        return NULL;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->wanted, NULL);
    crew->told = told;
    while (crew->threads < threads && !pthread_create(&crew->thread[crew->threads], NULL, labour, crew))
        crew->threads++;
    if (crew->threads == threads)
        return crew;
    trivet_crew_close(crew);
    return NULL;
}
