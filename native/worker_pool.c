/* Threads that compute without the GIL, so they never wait for it.

   Idle threads take the next part of the oldest job. The thread that finishes the last part starts the job's next stage
   or, if there is none, writes the job's ticket (eight bytes) to a pipe. */
#include "worker_pool.h"
#include "kernels.h"
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum { PARTS_PER_THREAD = 8 }; /* with fewer, an awake thread is done before another one wakes */

struct trivet_worker_pool {
    pthread_mutex_t lock;
    pthread_cond_t work_or_close;
    Job *first, *last;
    int notify_fd, is_closing;
    int64_t threads;
    pthread_t thread[];
};

static void start_stage(Job *job) {
    job->started = 0;
    job->unfinished = job->parts;
}

static void run(Job *job) {
    do
        for (int64_t part = 0; part < job->parts; part++)
            job->run_part(job, part);
    while (job->next_stage(job));
    free(job);
}

/* Wake enough threads for this number of parts. */
static void wake(WorkerPool *pool, int64_t parts) {
    for (; parts > 0; parts -= PARTS_PER_THREAD)
        pthread_cond_signal(&pool->work_or_close);
}

void trivet_job_submit(WorkerPool *pool, Job *job, int64_t ticket) {
    if (!pool) {
        run(job);
        return;
    }
    job->ticket = ticket;
    job->next = NULL;
    start_stage(job);
    pthread_mutex_lock(&pool->lock);
    *(pool->first ? &pool->last->next : &pool->first) = job;
    pool->last = job;
    wake(pool, job->parts);
    pthread_mutex_unlock(&pool->lock);
}

static void notify(const WorkerPool *pool, int64_t ticket) {
    while (write(pool->notify_fd, &ticket, sizeof ticket) < 0 && errno == EINTR)
        ;
}

static void *worker_main(void *argument) {
    WorkerPool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->first && !pool->is_closing)
            pthread_cond_wait(&pool->work_or_close, &pool->lock);
        if (pool->is_closing)
            break;
        Job *job = pool->first;
        int64_t part = job->started++;
        if (job->started == job->parts)
            pool->first = job->next;
        pthread_mutex_unlock(&pool->lock);
        job->run_part(job, part);
        pthread_mutex_lock(&pool->lock);
        if (--job->unfinished)
            continue;
        pthread_mutex_unlock(&pool->lock);
        int has_next_stage = job->next_stage(job);
        if (!has_next_stage) {
            int64_t ticket = job->ticket;
            free(job);
            notify(pool, ticket);
        }
        pthread_mutex_lock(&pool->lock);
        if (has_next_stage) { /* before later jobs */
            start_stage(job);
            job->next = pool->first;
            if (!pool->first)
                pool->last = job;
            pool->first = job;
            wake(pool, job->parts - PARTS_PER_THREAD); /* this thread is awake */
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* Stop the threads after the parts they are running, and discard waiting jobs. */
void trivet_worker_pool_close(WorkerPool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->is_closing = 1;
    pthread_cond_broadcast(&pool->work_or_close);
    pthread_mutex_unlock(&pool->lock);
    for (int64_t i = 0; i < pool->threads; i++)
        pthread_join(pool->thread[i], NULL);
    for (Job *next; pool->first; pool->first = next) {
        next = pool->first->next;
        free(pool->first);
    }
    pthread_cond_destroy(&pool->work_or_close);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* A pool of that many threads, writing tickets to `notify_fd`; NULL if they cannot all be started. */
WorkerPool *trivet_worker_pool_open(int64_t threads, int notify_fd) {
    WorkerPool *pool = calloc(1, sizeof *pool + (size_t)threads * sizeof *pool->thread);
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work_or_close, NULL);
    pool->notify_fd = notify_fd;
    while (pool->threads < threads && !pthread_create(&pool->thread[pool->threads], NULL, worker_main, pool))
        pool->threads++;
    if (pool->threads == threads)
        return pool;
    trivet_worker_pool_close(pool);
    return NULL;
}
