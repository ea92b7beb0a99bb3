/* See job.h. Threads take tasks in order, whatever run they belong to, so that none is idle while the last task of a run is being
 * done. With --threads 1 no thread is made: emulators may not have them. */
#include "job.h"
#include "check.h"
#include "cli.h"
#include "output.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) { stop_signal = number; }

int job_stop_signal(void) { return stop_signal; }

void job_catch_signals(void) {
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old, action = { .sa_handler = on_signal, .sa_flags = (int)(SA_RESETHAND | SA_RESTART) };
        sigemptyset(&action.sa_mask);
        if (!sigaction(numbers[i], NULL, &old) && old.sa_handler != SIG_IGN) sigaction(numbers[i], &action, NULL);   /* nohup */
    }
}

typedef struct state {
    job *job;
    double *weights;                             /* of an input of each run */
    pthread_mutex_t lock;                        /* of all below */
    int run;                                     /* where the next task is */
    uint64_t task;
    int n_reported;
    double work_done;
    bool failed;
} state;

static bool go_on(void *user, const run *r, uint64_t inputs) {
    state *s = user;
    char what[64];
    pthread_mutex_lock(&s->lock);
    double done = s->work_done += s->weights[r - s->job->runs] * (double)inputs;
    bool failed = s->failed;
    pthread_mutex_unlock(&s->lock);
    snprintf(what, sizeof what, "%s %s", r->reference->name, r->format->name);
    output_progress(done, what);
    return !failed && !stop_signal;
}

/* The next task that is not done; false where there is none. */
static bool next_task(state *s, run **r, uint64_t *task) {
    bool found = false;
    pthread_mutex_lock(&s->lock);
    while (!found && !s->failed && !stop_signal && s->run < s->job->n_runs) {
        run *at = &s->job->runs[s->run];
        if (s->task < at->first_task) s->task = at->first_task;
        if (s->task >= at->end_task) {
            s->run++, s->task = 0;
            continue;
        }
        *r = at, *task = s->task++;
        found = !at->done[*task];
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

/* With the lock held. */
static void report_finished(state *s) {
    for (; s->n_reported < s->job->n_runs && s->job->runs[s->n_reported].n_left == 0; s->n_reported++)
        s->job->finished(&s->job->runs[s->n_reported]);
}

static void keep(state *s, run *r, uint64_t task, const task_result *result) {
    pthread_mutex_lock(&s->lock);
    journal_add_result(r, task, result);
    if (s->job->journal && !journal_write(s->job->journal, r, task, result)) s->failed = true;
    else report_finished(s);
    pthread_mutex_unlock(&s->lock);
}

static void fail(state *s, const char *what) {
    pthread_mutex_lock(&s->lock);
    if (!s->failed) cli_error(s->job->command, "%s", what);
    s->failed = true;
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *user) {
    state *s = user;
    const task_watch watch = { go_on, s };
    block *b = block_new();
    run *r;
    uint64_t task;
    task_result result;
    if (!b) fail(s, "out of memory");
    while (b && next_task(s, &r, &task) && check_task(r, b, task, &watch, &result)) keep(s, r, task, &result);
    block_free(b);
    reference_thread_end();
    return NULL;
}

/* Weighs the runs by what an input takes, which differs a hundredfold, so that the time left can be told. */
static bool weigh(state *s) {
    double total = 0, done = 0;
    block *b = block_new();
    if (!b) return false;
    for (int i = 0; i < s->job->n_runs && !stop_signal; i++) {
        run *r = &s->job->runs[i];
        if (s->job->progress) s->weights[i] = check_speed(r, b);
        for (uint64_t task = r->first_task; task < r->end_task; task++) {
            double work_of_task = s->weights[i] * (double)run_task_inputs(r, task);
            total += work_of_task, done += r->done[task] ? work_of_task : 0;
        }
    }
    block_free(b);
    s->work_done = done;
    output_begin(s->job->progress, total, done);
    return true;
}

job_end job_run(job *j) {
    state s = { .job = j, .lock = PTHREAD_MUTEX_INITIALIZER, .weights = calloc((size_t)j->n_runs + 1, sizeof(double)) };
    pthread_t *threads = calloc((size_t)j->n_threads, sizeof *threads);
    int n_made = 0;
    if (!threads || !s.weights || !weigh(&s)) {
        fail(&s, "out of memory");
    } else {
        report_finished(&s);                     /* what a state file has all of */
        for (; n_made < j->n_threads - 1; n_made++) {
            int error = pthread_create(&threads[n_made], NULL, work, &s);
            if (error) {
                cli_error(j->command, "a thread could not be made (%s); going on with %d", strerror(error), n_made + 1);
                break;
            }
        }
        work(&s);
        for (int i = 0; i < n_made; i++) pthread_join(threads[i], NULL);
        output_end();
    }
    free(threads);
    free(s.weights);
    return s.failed ? JOB_FAILED : stop_signal ? JOB_STOPPED : JOB_DONE;
}
