/* Threads that run jobs in parts; see worker_pool.c. */
#include <stdint.h>

typedef struct trivet_worker_pool WorkerPool;

/* Header of a job: the first member of a larger structure, in one block of malloc, which the pool frees. */
typedef struct trivet_job {
    void (*run_part)(struct trivet_job *job, int64_t part); /* in any thread, concurrently with other parts */
    int (*next_stage)(struct trivet_job *job); /* after the last part: whether to run all parts again */
    int64_t parts, started, unfinished, ticket;
    struct trivet_job *next;
} Job;

/* Submit the job; the pool runs it, writes its ticket and frees it. Without a pool it runs in the calling thread. */
void trivet_job_submit(WorkerPool *pool, Job *job, int64_t ticket);
