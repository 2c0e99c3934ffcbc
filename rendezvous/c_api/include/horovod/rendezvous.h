/* The C API of the rendezvous server, for schedulers that embed it: libhvd_rendezvous.so.
 *
 *   hvd_rendezvous_server* server;
 *   const char* listen[] = {"127.0.0.1:0"};
 *   hvd_rendezvous_start(HVD_RENDEZVOUS_ABI_VERSION, listen, 1, &server);
 *   hvd_rendezvous_job_options options;
 *   hvd_rendezvous_job_options_init(&options, sizeof(options));
 *   options.np = 2;
 *   options.start_worker = ...;  // fork, with the worker's environment
 *   options.stop_worker = ...;   // SIGTERM, later SIGKILL
 *   hvd_rendezvous_job* job;
 *   hvd_rendezvous_add_job(server, &options, &job);
 *   ... hvd_rendezvous_offer_slots, hvd_rendezvous_report_exit ...
 *
 * One server serves any number of jobs at one port. The caller starts and stops the processes of a
 * job (start_worker and stop_worker), on this machine and as this user; or agents do, on any
 * machine, which the caller starts there as "horovod-agent --join ADDRESS --token-file FILE", FILE
 * holding the job's credentials.
 *
 * Functions return HVD_RENDEZVOUS_OK or another code, if their comments do not say otherwise;
 * hvd_rendezvous_last_error() of the same thread has one line on it. No exception leaves the
 * library, and none may leave a callback. Texts are UTF-8 and end with 0; those handed in are
 * copied.
 *
 * Threads: everything is thread-safe. A job's callbacks come one at a time from a thread of the
 * library, which takes no signals. They must not block. They may call everything here but
 * hvd_rendezvous_remove_job and hvd_rendezvous_stop. A child of fork() may only call exec or _exit.
 *
 * Compatibility: a program that was built with a version of this header runs with each library of
 * the same HVD_RENDEZVOUS_ABI_VERSION that is as new or newer. Within a version functions may be
 * added, and members at the end of the structures that begin with `size`.
 */
#ifndef HOROVOD_RENDEZVOUS_H_
#define HOROVOD_RENDEZVOUS_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HVD_RENDEZVOUS_EXPORT __attribute__((visibility("default")))

#define HVD_RENDEZVOUS_ABI_VERSION 1

enum {
  HVD_RENDEZVOUS_OK = 0,
  HVD_RENDEZVOUS_INVALID_ARGUMENT = 3,    /* an argument can't be right; the text says which */
  HVD_RENDEZVOUS_NOT_FOUND = 5,           /* there is nothing of that name */
  HVD_RENDEZVOUS_ALREADY_EXISTS = 6,      /* there is a job of that id */
  HVD_RENDEZVOUS_RESOURCE_EXHAUSTED = 8,  /* no memory, no descriptor */
  HVD_RENDEZVOUS_FAILED_PRECONDITION = 9, /* not now; the text says what has to come first */
  HVD_RENDEZVOUS_UNIMPLEMENTED = 12,      /* another ABI version */
  HVD_RENDEZVOUS_INTERNAL = 13,
  HVD_RENDEZVOUS_UNAVAILABLE = 14, /* an address that can't be listened on, a missing library */
  HVD_RENDEZVOUS_DATA_LOSS = 15    /* what was saved is damaged */
};

HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_abi_version(void);    /* that of the library */
HVD_RENDEZVOUS_EXPORT const char* hvd_rendezvous_version(void);    /* "1.0.0" */
HVD_RENDEZVOUS_EXPORT const char* hvd_rendezvous_last_error(void); /* of this thread; valid until
                                                                      its next call; never NULL */

/* Frees a text that a function here has made. NULL is allowed. */
HVD_RENDEZVOUS_EXPORT void hvd_rendezvous_free(char* text);

/* ---- The server */

typedef struct hvd_rendezvous_server hvd_rendezvous_server;

/* Starts a server at `count` addresses, numeric "address:port"; port 0: a free one. `abi_version`
 * is HVD_RENDEZVOUS_ABI_VERSION. *server is for hvd_rendezvous_stop.
 * Errors:
 *   - UNIMPLEMENTED: the library has another ABI version than the program was built for.
 *   - INVALID_ARGUMENT: there is no address, or one is not numeric.
 *   - UNAVAILABLE: an address can't be listened on, or the library can't be loaded; says why.
 *   - INTERNAL: no certificate can be made. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_start(int32_t abi_version, const char* const* listen,
                                                   int32_t count, hvd_rendezvous_server** server);

/* As hvd_rendezvous_start, with a directory in which jobs outlive this process: a later server with
 * the same directory and the same `listen` has the same addresses and credentials, and goes on with
 * each job that hvd_rendezvous_add_job adds again. It is made if it is missing, belongs to this
 * server alone, and is private to its user (mode 0700); a disk that all hosts of the scheduler
 * share lets it come back elsewhere only if the address does, too. Errors, besides those of
 * hvd_rendezvous_start:
 *   - INVALID_ARGUMENT: the directory can't be used; says why.
 *   - FAILED_PRECONDITION: another process uses it, or its server listened elsewhere.
 *   - DATA_LOSS: what is in it is damaged; gives the remedy. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_start_with_state(int32_t abi_version,
                                                              const char* const* listen,
                                                              int32_t count, const char* state_dir,
                                                              hvd_rendezvous_server** server);

/* Ends the server, waits for its threads and frees it. NULL is allowed.
 * Errors; the server stays:
 *   - FAILED_PRECONDITION: it has jobs, or this is a callback. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_stop(hvd_rendezvous_server* server);

/* The n-th of the addresses with its real port, in their order; NULL: there are no more. Valid as
 * long as the server. */
HVD_RENDEZVOUS_EXPORT const char* hvd_rendezvous_address(const hvd_rendezvous_server* server,
                                                         int32_t n);

/* All jobs in Prometheus' text format (0.0.4). *text is for hvd_rendezvous_free. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_metrics(hvd_rendezvous_server* server, char** text);

/* ---- Jobs */

typedef struct hvd_rendezvous_job hvd_rendezvous_job;

/* A process that a job wants to run. Everything is valid during the callback only. */
typedef struct hvd_rendezvous_worker {
  size_t size;
  uint64_t worker;                /* its name from now on */
  const char* host;               /* as offered */
  const char* const* environment; /* "NAME=value", then NULL: what it must find in its environment
                                     besides what is its own */
} hvd_rendezvous_worker;

/* How a job has ended. Everything is valid during the callback only; texts are never NULL. */
typedef struct hvd_rendezvous_result {
  size_t size;
  int32_t success;     /* 1 or 0 */
  int32_t exit_code;   /* 0; or the first failing worker's, 128 + its signal, 1 if there is none; or
                          that of hvd_rendezvous_request_stop */
  const char* summary; /* one line */
  /* The root cause, if a worker failed: */
  int32_t rank;             /* or -1 */
  const char* host;         /* or "" */
  const char* exit_meaning; /* "exit code 3", or "" */
  const char* exception;    /* that it reported, or "" */
} hvd_rendezvous_result;

/* A job and its callbacks; see hvd_rendezvous_job_options_init. Times are in seconds, from 0 to a
 * week. */
typedef struct hvd_rendezvous_job_options {
  size_t size;    /* as hvd_rendezvous_job_options_init sets it */
  const char* id; /* NULL: a random one. As names of hosts: at most 255 bytes of UTF-8 without
                     blanks and control characters */

  /* As horovodrun's: np workers, and if one of the other two is not 0, the job is elastic: it goes
   * on with min_np (0: np) to max_np (0: any number) workers. */
  int32_t np;
  int32_t min_np;
  int32_t max_np;
  int32_t spares; /* elastic, with max_np: workers kept ready beyond it */

  double start_timeout; /* 600: for np slots to be there at first */
  double failure_grace; /* 1: from SIGTERM to SIGKILL after a failure */
  int32_t encrypt_data; /* 0; 1: workers talk to each other under TLS */

  /* Of elastic jobs. */
  double elastic_timeout;            /* 600: for min_np workers to be there again */
  double rejoin_timeout;             /* 60: for survivors to ask for the next world */
  double join_delay;                 /* 0.2: for more newcomers, once one is ready */
  double drain_grace;                /* 30: of hosts that are no longer offered */
  int32_t max_failures;              /* 20 within */
  double failure_window;             /* 600; more end the job */
  int32_t failures_without_progress; /* 3 without a commit in between end the job; 0: no limit */
  int32_t reset_limit;               /* -1: no limit; of the worlds after the first */
  double cooldown;                   /* 0: none; the rest of a slot after its first failure; it */
  double cooldown_longest;           /* doubles with each, up to 60 */

  void* context; /* of all callbacks */

  /* Starts a process and tells by hvd_rendezvous_report_started, or _report_exit, what came of it;
   * both may come later, from another thread. stop_worker: SIGTERM now, SIGKILL after `grace`
   * seconds. Every worker that was started must be reported to have exited, stopped or not. Both
   * are set, or neither: then agents start the processes. */
  void (*start_worker)(void* context, const hvd_rendezvous_worker* worker);
  void (*stop_worker)(void* context, uint64_t worker, double grace);
  /* The rest may be NULL. host_free: the job has left the host, which was withdrawn or drained or
   * is no longer needed: its slots are free. With agents: it was withdrawn. */
  void (*host_free)(void* context, const char* host);
  /* The job has ended; comes once. */
  void (*finished)(void* context, const hvd_rendezvous_result* result);
  /* Something happened that users may want to know, in an elastic job mostly: a JSON object as in
   * horovodrun's --event-log, with "time", "kind", "world", "text" and, where they apply, "host",
   * "worker", "rank", "size".
   */
  void (*notice)(void* context, const char* json);

  /* Of servers with a state directory. */
  double reattach_timeout; /* 30: for agents and workers to find the next server, and for what is to
                              be said of earlier workers */
  /* The job's journal can't be written; `why` is one line. Nothing is decided any more, workers
   * train on: remove the job, and add it again when it can be written. May be NULL. */
  void (*journal_failed)(void* context, const char* why);
} hvd_rendezvous_job_options;

/* Sets all members to what the comments above say, the callbacks to NULL, np to 1. `size` is
 * sizeof(*options). */
HVD_RENDEZVOUS_EXPORT void hvd_rendezvous_job_options_init(hvd_rendezvous_job_options* options,
                                                           size_t size);

/* Begins a job, or goes on with the one of this id in the server's state directory, with the
 * membership that it had: its agents attach again, its workers call again; for those that
 * start_worker started see hvd_rendezvous_earlier_workers. *job is for hvd_rendezvous_remove_job.
 * Callbacks may come before this returns.
 * Errors:
 *   - INVALID_ARGUMENT: an option can't be right, or only one of start_worker and stop_worker is
 *     set.
 *   - ALREADY_EXISTS: there is a job of this id on the server.
 *   - FAILED_PRECONDITION: the job in the state directory was begun with other options, or has
 *     ended; says how.
 *   - DATA_LOSS: that job is damaged; gives the remedy.
 *   - INTERNAL, RESOURCE_EXHAUSTED: no certificate or no socket can be made, or the state directory
 *     can't be written. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_add_job(hvd_rendezvous_server* server,
                                                     const hvd_rendezvous_job_options* options,
                                                     hvd_rendezvous_job** job);

/* Removes a job, ended or not, and frees it; NULL is allowed. No callback comes after this returns,
 * and none is under way. With a state directory, a job that has not ended stays there to be added
 * again: its workers train on meanwhile, for reattach_timeout at most. Else the caller must stop
 * the processes that it started; agents stop theirs. Errors; the job stays:
 *   - FAILED_PRECONDITION: this is a callback. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_remove_job(hvd_rendezvous_job* job);

/* A job in the state directory that is not on the server. Everything is valid during the call
 * only. */
typedef struct hvd_rendezvous_kept_job {
  size_t size;
  const char* id; /* "" if not even that can be read */
  int32_t np;     /* as in hvd_rendezvous_job_options, like the next two */
  int32_t min_np;
  int32_t max_np;
  int32_t starts_workers;             /* 1: it had start_worker; 0: agents start its processes */
  const hvd_rendezvous_result* ended; /* not NULL: it has, and was not removed since */
  const char* problem;                /* not NULL: it can't be read; one line */
} hvd_rendezvous_kept_job;

/* Calls `take` for each of them, before this returns: they are to be added again, or forgotten. */
HVD_RENDEZVOUS_EXPORT int32_t
hvd_rendezvous_kept_jobs(hvd_rendezvous_server* server, void* context,
                         void (*take)(void* context, const hvd_rendezvous_kept_job* job));

/* Removes a job from the state directory. Its agents and workers that still wait give up.
 * Errors:
 *   - NOT_FOUND: there is none of this id.
 *   - FAILED_PRECONDITION: it is on the server.
 *   - INTERNAL: it can't be removed. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_forget_job(hvd_rendezvous_server* server,
                                                        const char* id);

/* Valid as long as the job. */
HVD_RENDEZVOUS_EXPORT const char* hvd_rendezvous_job_id(const hvd_rendezvous_job* job);

/* What agents need to join the job: write it to a file of mode 0600 for --token-file. Secret. *text
 * is for hvd_rendezvous_free. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_credentials(hvd_rendezvous_job* job, char** text);

typedef struct hvd_rendezvous_host {
  const char* host;
  int32_t slots;
  const char* machine; /* NULL: the host's own; hosts with the same name here share memory, and so
                          local ranks */
} hvd_rendezvous_host;

/* All hosts and slots that the job may use now; until the first call, those of an earlier
 * scheduler. A host that is named for the first time, or again after it was free, joins; one that
 * is no longer named is drained. Hosts of a job of fixed size can't be withdrawn once it has
 * started.
 *
 * In a job without start_worker these are the hosts whose agents may take part, each with the
 * smaller of the two numbers of slots (`machine` is the agent's). An agent of another host waits:
 * it attaches, says so, and is taken when an offer names its host. One whose host is withdrawn
 * stops its workers, host_free is called, and it waits. Without any call all agents take part.
 * Errors; nothing changes:
 *   - INVALID_ARGUMENT: a host without a name, without slots, or named twice. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_offer_slots(hvd_rendezvous_job* job,
                                                         const hvd_rendezvous_host* hosts,
                                                         int32_t count);

/* Elastic jobs: from now on worlds have from min_np to max_np (0: any number of) workers. Those
 * beyond the maximum leave at the next commit, without a step being lost; those who are missing are
 * started as soon as there are slots; the minimum counts when the next world forms. Errors; nothing
 * changes:
 *   - INVALID_ARGUMENT: the numbers contradict each other.
 *   - FAILED_PRECONDITION: the job is of fixed size. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_set_limits(hvd_rendezvous_job* job, int32_t min_np,
                                                        int32_t max_np);

/* A process that start_worker of an earlier scheduler was asked for. */
typedef struct hvd_rendezvous_earlier_worker {
  size_t size;
  uint64_t worker;
  const char* host;
  int64_t pid; /* as it has reported; 0: it has not */
} hvd_rendezvous_earlier_worker;

/* Of a job that was added again: calls `take`, before this returns, for each process of which it
 * must be said whether it still runs (hvd_rendezvous_report_started, with its pid), has ended
 * (hvd_rendezvous_report_exit), or never was there (hvd_rendezvous_start_again). It is no child of
 * this process: pidfd_open(2) tells of its end. A host takes part again when that was said of all
 * its processes; if it is not within reattach_timeout, the host is a lost one. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_earlier_workers(
    hvd_rendezvous_job* job, void* context,
    void (*take)(void* context, const hvd_rendezvous_earlier_worker* worker));

/* An earlier worker never had a process: start_worker is called for it again.
 * Errors:
 *   - NOT_FOUND: it is none of hvd_rendezvous_earlier_workers. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_start_again(hvd_rendezvous_job* job, uint64_t worker);

/* The process of `worker` was started, or an earlier one still runs. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_report_started(hvd_rendezvous_job* job,
                                                            uint64_t worker, int64_t pid);

/* The process of `worker` has ended, in one of these ways, or could not be started. */
typedef struct hvd_rendezvous_exit {
  size_t size; /* sizeof(hvd_rendezvous_exit); the rest is 0 if it does not apply */
  uint64_t worker;
  int32_t exit_code;
  int32_t signal; /* it was killed by */
  int32_t core_dumped;
  int32_t out_of_memory;
  const char* start_error; /* not NULL: why there never was a process */
  const char* last_output; /* its last lines on stderr, for the report of the root cause */
  const char* unknown_end; /* not NULL: how it ended is not known, as of an earlier scheduler's
                              process, but this: "ended while no scheduler was there". exit_code
                              and signal are 0. If it had finished, that is success; else it has
                              failed, with the exit code 1 */
} hvd_rendezvous_exit;

/* Errors:
 *   - INVALID_ARGUMENT: `size` is not right. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_report_exit(hvd_rendezvous_job* job,
                                                         const hvd_rendezvous_exit* exit);

/* Elastic jobs: the host leaves at the next commit, without a step being lost; after `grace`
 * seconds its workers are stopped. `reason` is for users.
 * Errors:
 *   - INVALID_ARGUMENT: no host, or a grace that is not from 0 to a week. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_drain(hvd_rendezvous_job* job, const char* host,
                                                   double grace, const char* reason);

/* Ends the job with this exit code. Workers get SIGTERM, after `grace` seconds SIGKILL. A second
 * call shortens the grace.
 * Errors:
 *   - INVALID_ARGUMENT: an exit code that is not from 0 to 255, or a grace as above. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_request_stop(hvd_rendezvous_job* job,
                                                          const char* reason, int32_t exit_code,
                                                          double grace);

/* The job now, a JSON object: "job", "state" (forming, running, resetting, done, failed), "world",
 * "size", "min_np", "max_np", "explanation", "failures", "failures_left", "commit", "lost_steps",
 * "lost_seconds", "hosts": "host", "slots", "machine", "attached", "condition", "workers":
 * "worker", "rank" (-1: none), "pid", "state". Members may be added. *json is for
 * hvd_rendezvous_free. hvd_rendezvous_job_metrics: as hvd_rendezvous_metrics, of this job alone. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_describe(hvd_rendezvous_job* job, char** json);
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_job_metrics(hvd_rendezvous_job* job, char** text);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HOROVOD_RENDEZVOUS_H_ */
