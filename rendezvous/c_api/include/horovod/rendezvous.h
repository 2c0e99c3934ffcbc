/* The C API of the rendezvous server, for schedulers that embed it: libhvd_rendezvous.so.
 *
 *   const char* listen[] = {"127.0.0.1:0"};
 *   hvd_rendezvous_server* server;
 *   if (hvd_rendezvous_start(HVD_RENDEZVOUS_ABI_VERSION, listen, 1, &server) != HVD_RENDEZVOUS_OK)
 *     return fail(hvd_rendezvous_last_error());
 *   hvd_rendezvous_job_options options;
 *   hvd_rendezvous_job_options_init(&options, sizeof(options));
 *   options.np = 2;
 *   options.start_worker = start;  // another thread starts a process with worker->environment
 *   options.stop_worker = stop;    // that thread sends SIGTERM, and SIGKILL after the grace
 *   options.finished = finished;   // that thread removes the job
 *   hvd_rendezvous_job* job;
 *   if (hvd_rendezvous_add_job(server, &options, &job) != HVD_RENDEZVOUS_OK)
 *     return fail(hvd_rendezvous_last_error());
 *   const hvd_rendezvous_host hosts[] = {{"localhost", 2, NULL}};
 *   hvd_rendezvous_offer_slots(job, hosts, 1);
 *   // For each process: hvd_rendezvous_report_started, and hvd_rendezvous_report_exit at its end.
 *   // After `finished`:
 *   hvd_rendezvous_remove_job(job);
 *   hvd_rendezvous_stop(server);
 *
 * One server serves any number of jobs at one port. Either the caller starts and stops the
 * processes of a job (start_worker and stop_worker), on this machine and as this user; or agents
 * do, on any machine. The caller starts an agent as "horovod-agent --join ADDRESS --token-file
 * FILE", where FILE contains the job's credentials.
 *
 * Functions return HVD_RENDEZVOUS_OK or an error code, unless their comment says otherwise;
 * hvd_rendezvous_last_error() returns a one-line message for the calling thread's last error. The
 * library throws no exceptions, and callbacks must not throw. Strings are UTF-8 and end with a zero
 * byte. Strings passed to the library are copied. Strings and structures passed to a callback are
 * valid until the callback returns.
 *
 * Threads: everything is thread-safe. A job's callbacks come one at a time from a thread of the
 * library, in which all signals are blocked. They must not block. They may call every function here
 * except hvd_rendezvous_remove_job and hvd_rendezvous_stop.
 *
 * fork(): only the parent may use the library afterwards. The child must call exec or _exit soon:
 * until then it, too, holds the server's port and state directory.
 *
 * Compatibility: a program runs with every library of the HVD_RENDEZVOUS_ABI_VERSION that it was
 * built with, if the library is at least as new as the program's copy of this header. Within an ABI
 * version, functions may be added, and members at the end of structures that begin with `size`.
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
  HVD_RENDEZVOUS_INVALID_ARGUMENT = 3,    /* an argument is not valid; the message says which */
  HVD_RENDEZVOUS_NOT_FOUND = 5,           /* there is no such object */
  HVD_RENDEZVOUS_ALREADY_EXISTS = 6,      /* the server has a job of that id */
  HVD_RENDEZVOUS_RESOURCE_EXHAUSTED = 8,  /* out of memory or descriptors */
  HVD_RENDEZVOUS_FAILED_PRECONDITION = 9, /* not in this state; the message says why */
  HVD_RENDEZVOUS_UNIMPLEMENTED = 12,      /* another ABI version */
  HVD_RENDEZVOUS_INTERNAL = 13,
  HVD_RENDEZVOUS_UNAVAILABLE = 14, /* an address that can't be listened on, a missing library */
  HVD_RENDEZVOUS_DATA_LOSS = 15    /* stored data is damaged */
};

HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_abi_version(void);    /* of the library */
HVD_RENDEZVOUS_EXPORT const char* hvd_rendezvous_version(void);    /* "1.0.0" */
HVD_RENDEZVOUS_EXPORT const char* hvd_rendezvous_last_error(void); /* of this thread; valid until
                                                                      its next call; never NULL */

/* Frees a string that a function of this header has returned. NULL is allowed. */
HVD_RENDEZVOUS_EXPORT void hvd_rendezvous_free(char* text);

/* ---- The server */

typedef struct hvd_rendezvous_server hvd_rendezvous_server;

/* Starts a server at `count` addresses, numeric "address:port"; port 0 selects a free port. Pass
 * HVD_RENDEZVOUS_ABI_VERSION as `abi_version`. Free *server with hvd_rendezvous_stop.
 * Errors:
 *   - UNIMPLEMENTED: the library has another ABI version than the program was built for.
 *   - INVALID_ARGUMENT: there is no address, or one is not numeric.
 *   - UNAVAILABLE: an address can't be listened on, or the library can't be loaded; says why.
 *   - INTERNAL: the server's certificate can't be created. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_start(int32_t abi_version, const char* const* listen,
                                                   int32_t count, hvd_rendezvous_server** server);

/* Like hvd_rendezvous_start, with a state directory that keeps the jobs beyond this process. A
 * later server with the same directory and the same `listen` has the same addresses and
 * credentials, and resumes each job that hvd_rendezvous_add_job adds again. The directory is
 * created if it is missing, must be used by this server only, and must be private to this user
 * (mode 0700). The server can resume on another host only if that host shares the directory and has
 * the same address.
 * Errors, besides those of hvd_rendezvous_start:
 *   - INVALID_ARGUMENT: the directory can't be used; says why.
 *   - FAILED_PRECONDITION: another process uses the directory, or its server had other addresses.
 *   - DATA_LOSS: the contents of the directory are damaged; gives the remedy. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_start_with_state(int32_t abi_version,
                                                              const char* const* listen,
                                                              int32_t count, const char* state_dir,
                                                              hvd_rendezvous_server** server);

/* Stops the server, waits for its threads and frees it. NULL is allowed.
 * Errors, after which the server continues:
 *   - FAILED_PRECONDITION: the server has jobs, or the caller is a callback. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_stop(hvd_rendezvous_server* server);

/* The n-th address listened on, with its real port; NULL if there is none. Valid as long as the
 * server. */
HVD_RENDEZVOUS_EXPORT const char* hvd_rendezvous_address(const hvd_rendezvous_server* server,
                                                         int32_t n);

/* The metrics of all jobs in Prometheus' text format (0.0.4). Free *text with
 * hvd_rendezvous_free. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_metrics(hvd_rendezvous_server* server, char** text);

/* ---- Jobs */

typedef struct hvd_rendezvous_job hvd_rendezvous_job;

/* A worker process that the caller must start. Valid during the callback only. */
typedef struct hvd_rendezvous_worker {
  size_t size;
  uint64_t worker;                /* identifies it in later calls */
  const char* host;               /* as in the offer */
  const char* const* environment; /* "NAME=value", then NULL: variables to add to its environment */
} hvd_rendezvous_worker;

/* The result of a job. Valid during the callback only; strings are never NULL. */
typedef struct hvd_rendezvous_result {
  size_t size;
  int32_t success;     /* 1 or 0 */
  int32_t exit_code;   /* 0: success. Otherwise the exit code of the worker at fault, or 128 + its
                          signal, or 1 if there is neither. After hvd_rendezvous_request_stop: the
                          code given there */
  const char* summary; /* one line */
  /* The root cause, if a worker failed: */
  int32_t rank;             /* or -1 */
  const char* host;         /* or "" */
  const char* exit_meaning; /* "exit code 3", or "" */
  const char* exception;    /* the error that it reported, or "" */
} hvd_rendezvous_result;

/* The options and callbacks of a job; see hvd_rendezvous_job_options_init. Times are in seconds,
 * from 0 to a week. Comments give the defaults. */
typedef struct hvd_rendezvous_job_options {
  size_t size;    /* as hvd_rendezvous_job_options_init sets it */
  const char* id; /* NULL: a random one. Ids and host names: at most 255 bytes of UTF-8 without
                     blanks and control characters */

  /* As in horovodrun: the job has np workers. If min_np or max_np is not 0, it is elastic: it runs
   * with min_np (0: np) to max_np (0: any number) workers. */
  int32_t np;
  int32_t min_np;
  int32_t max_np;
  int32_t spares; /* elastic jobs with max_np: workers kept ready beyond it */

  double start_timeout; /* 600: for np slots to be available at the start */
  double failure_grace; /* 1: from SIGTERM to SIGKILL after a failure */
  int32_t encrypt_data; /* 0; 1: connections between workers use TLS */

  /* For elastic jobs: */
  double elastic_timeout;            /* 600: for min_np workers to be ready again */
  double rejoin_timeout;             /* 60: for survivors to ask for the next world */
  double join_delay;                 /* 0.2: for further newcomers, once one is ready */
  double drain_grace;                /* 30: for hosts that are no longer offered */
  int32_t max_failures;              /* 20: more failures within failure_window end the job */
  double failure_window;             /* 600 */
  int32_t failures_without_progress; /* 3: so many without a commit end the job; 0: no limit */
  int32_t reset_limit;               /* -1: no limit; the maximum of worlds after the first */
  double cooldown;                   /* 0: none; a slot's pause after its first failure there; */
  double cooldown_longest;           /* 60: it doubles with each failure, up to this */

  void* context; /* the first argument of all callbacks */

  /* start_worker starts a process; the caller reports the result, possibly later and from another
   * thread, with hvd_rendezvous_report_started, or _report_exit if it failed. stop_worker sends
   * SIGTERM now, and SIGKILL after `grace` seconds. The caller must report the exit of every worker
   * that it started, whether stopped or not. Set both, or neither: then agents start the
   * processes. */
  void (*start_worker)(void* context, const hvd_rendezvous_worker* worker);
  void (*stop_worker)(void* context, uint64_t worker, double grace);
  /* The callbacks below may be NULL. host_free: the host's slots are free, because it was
   * withdrawn, drained or is no longer needed. In a job with agents: it was withdrawn. `host` is
   * valid during the callback only. */
  void (*host_free)(void* context, const char* host);
  /* The job has ended. Called once. */
  void (*finished)(void* context, const hvd_rendezvous_result* result);
  /* An event of interest to users, mostly in elastic jobs: a JSON object as in horovodrun's
   * --event-log, with "time", "kind", "world", "text" and, where they apply, "host",
   * "worker", "rank", "size". `json` is valid during the callback only. */
  void (*notice)(void* context, const char* json);

  /* For servers with a state directory: */
  double reattach_timeout; /* 30: for agents and workers to find the next server, and for the
                              reports on earlier workers */
  /* The job's journal can't be written; `why` is one line. The job takes no further decisions;
   * workers continue to train. Remove the job, and add it again when the journal can be written.
   * `why` is valid during the callback only. May be NULL. */
  void (*journal_failed)(void* context, const char* why);
} hvd_rendezvous_job_options;

/* Sets all members to their defaults: those in the comments above, NULL for callbacks, 1 for np.
 * Pass sizeof(*options) as `size`. */
HVD_RENDEZVOUS_EXPORT void hvd_rendezvous_job_options_init(hvd_rendezvous_job_options* options,
                                                           size_t size);

/* Adds a new job, or resumes the job of this id from the server's state directory, with its
 * membership: its agents attach again, and its workers repeat their calls. For workers that
 * start_worker started see hvd_rendezvous_earlier_workers. Free *job with
 * hvd_rendezvous_remove_job. Callbacks may come before this returns.
 * Errors:
 *   - INVALID_ARGUMENT: an option is not valid, or only one of start_worker and stop_worker is set.
 *   - ALREADY_EXISTS: the server has a job of this id.
 *   - FAILED_PRECONDITION: the job in the state directory has other options, or has ended; says
 *     which.
 *   - DATA_LOSS: the job in the state directory is damaged; gives the remedy.
 *   - INTERNAL, RESOURCE_EXHAUSTED: a certificate or a socket can't be created, or the state
 *     directory can't be written. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_add_job(hvd_rendezvous_server* server,
                                                     const hvd_rendezvous_job_options* options,
                                                     hvd_rendezvous_job** job);

/* Removes a job, ended or not, from the server and frees it. NULL is allowed. No callback runs when
 * this returns, and none comes later. With a state directory, a job that has not ended stays there
 * and can be added again; its workers continue to train for at most reattach_timeout. Otherwise the
 * caller must stop the processes that it started; agents stop theirs.
 * Errors, after which the job continues:
 *   - FAILED_PRECONDITION: the caller is a callback. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_remove_job(hvd_rendezvous_job* job);

/* A job in the state directory that was not added to this server. Valid during the callback
 * only. */
typedef struct hvd_rendezvous_kept_job {
  size_t size;
  const char* id; /* "" if it can't be read */
  int32_t np;     /* as in hvd_rendezvous_job_options, like the next two */
  int32_t min_np;
  int32_t max_np;
  int32_t starts_workers;             /* 1: it had start_worker; 0: agents start its processes */
  const hvd_rendezvous_result* ended; /* not NULL: the result, if it has ended */
  const char* problem;                /* not NULL: why the job can't be read; one line */
} hvd_rendezvous_kept_job;

/* Calls `take` for each such job, before this returns. Add each job again, or forget it. */
HVD_RENDEZVOUS_EXPORT int32_t
hvd_rendezvous_kept_jobs(hvd_rendezvous_server* server, void* context,
                         void (*take)(void* context, const hvd_rendezvous_kept_job* job));

/* Removes a job from the state directory. Its agents and workers that still wait give up.
 * Errors:
 *   - NOT_FOUND: there is no job of this id.
 *   - FAILED_PRECONDITION: the job is on the server.
 *   - INTERNAL: the job's files can't be removed. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_forget_job(hvd_rendezvous_server* server,
                                                        const char* id);

/* The job's id. Valid as long as the job. */
HVD_RENDEZVOUS_EXPORT const char* hvd_rendezvous_job_id(const hvd_rendezvous_job* job);

/* The job's credentials for agents: write them to a file of mode 0600 for --token-file. Secret.
 * Free *text with hvd_rendezvous_free. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_credentials(hvd_rendezvous_job* job, char** text);

typedef struct hvd_rendezvous_host {
  const char* host;
  int32_t slots;
  const char* machine; /* NULL: the host's own; hosts with the same name here share memory, and so
                          local ranks */
} hvd_rendezvous_host;

/* Sets the hosts and slots that the job may use. A resumed job uses those of the earlier process
 * until the first call. A host that is new, or named again after it was free, joins; a host that is
 * no longer named is drained. A job of fixed size ignores withdrawals once it has started.
 *
 * In a job without start_worker, agents of the named hosts take part, each with the smaller of the
 * offered slots and its own (`machine` is the agent's). An agent of another host attaches and waits
 * until an offer names its host. If a host is withdrawn, its agent stops its workers, host_free is
 * called, and the agent waits. Before the first call, all agents take part.
 * Errors, after which nothing has changed:
 *   - INVALID_ARGUMENT: a host without a name, without slots, or named twice. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_offer_slots(hvd_rendezvous_job* job,
                                                         const hvd_rendezvous_host* hosts,
                                                         int32_t count);

/* Elastic jobs: sets new limits for the size of worlds (max_np 0: no maximum). Workers beyond the
 * maximum leave at the next commit, so no step is lost. Missing workers are started as soon as
 * there are slots. The minimum applies when the next world forms.
 * Errors, after which nothing has changed:
 *   - INVALID_ARGUMENT: the numbers contradict each other.
 *   - FAILED_PRECONDITION: the job is of fixed size. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_set_limits(hvd_rendezvous_job* job, int32_t min_np,
                                                        int32_t max_np);

/* A worker process that was started before a restart of the scheduler. Valid during the callback
 * only. */
typedef struct hvd_rendezvous_earlier_worker {
  size_t size;
  uint64_t worker;
  const char* host;
  int64_t pid; /* as reported; 0: not reported */
} hvd_rendezvous_earlier_worker;

/* Calls `take`, before this returns, for each worker of a resumed job whose state the caller must
 * report:
 *   - hvd_rendezvous_report_started, with its pid: the process still runs;
 *   - hvd_rendezvous_report_exit: it has ended;
 *   - hvd_rendezvous_start_again: it was never started.
 * The processes are not children of this process; watch them with pidfd_open(2). A host rejoins the
 * job when all its workers are reported. It counts as lost if a report is missing after
 * reattach_timeout. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_earlier_workers(
    hvd_rendezvous_job* job, void* context,
    void (*take)(void* context, const hvd_rendezvous_earlier_worker* worker));

/* Reports that an earlier worker never had a process; start_worker is called for it again.
 * Errors:
 *   - NOT_FOUND: it is not one of hvd_rendezvous_earlier_workers. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_start_again(hvd_rendezvous_job* job, uint64_t worker);

/* Reports that the process of `worker` was started, or that an earlier one still runs. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_report_started(hvd_rendezvous_job* job,
                                                            uint64_t worker, int64_t pid);

/* The end of a worker's process, or the failure to start it. */
typedef struct hvd_rendezvous_exit {
  size_t size; /* sizeof(hvd_rendezvous_exit); set other members that do not apply to 0 */
  uint64_t worker;
  int32_t exit_code;
  int32_t signal; /* the signal that killed it */
  int32_t core_dumped;
  int32_t out_of_memory;
  const char* start_error; /* not NULL: why it could not be started */
  const char* last_output; /* its last lines on stderr, for the report of the root cause */
  const char* unknown_end; /* not NULL: the exit status is not known, for example of an earlier
                              worker; describes the end: "ended while no scheduler was there".
                              Set exit_code and signal to 0. A worker that had finished counts as
                              successful, any other as failed with exit code 1 */
} hvd_rendezvous_exit;

/* Errors:
 *   - INVALID_ARGUMENT: `size` is not that of any version of this header. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_report_exit(hvd_rendezvous_job* job,
                                                         const hvd_rendezvous_exit* exit);

/* Elastic jobs: drains the host. Its workers leave at the next commit, so no step is lost; those
 * that remain after `grace` seconds are stopped. `reason` is for users.
 * Errors:
 *   - INVALID_ARGUMENT: no host, or a grace that is not from 0 to a week. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_drain(hvd_rendezvous_job* job, const char* host,
                                                   double grace, const char* reason);

/* Ends the job with this exit code. Workers get SIGTERM, and SIGKILL after `grace` seconds. A
 * second call can shorten the grace.
 * Errors:
 *   - INVALID_ARGUMENT: an exit code that is not from 0 to 255, or a grace that is not from 0 to a
 *     week. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_request_stop(hvd_rendezvous_job* job,
                                                          const char* reason, int32_t exit_code,
                                                          double grace);

/* The state of the job, a JSON object: "job", "state" (forming, running, resetting, done, failed),
 * "world", "size", "min_np", "max_np", "explanation", "failures", "failures_left" (null in a static
 * job), "commit", "checkpoint_commit" (0: none), "checkpoint" (a line about it), "lost_steps",
 * "lost_seconds", "hosts": "host", "slots", "machine", "attached", "condition", "workers":
 * "worker", "rank" (-1: none), "pid", "state". Members may be added. Free *json with
 * hvd_rendezvous_free. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_describe(hvd_rendezvous_job* job, char** json);

/* The metrics of this job in Prometheus' text format (0.0.4). Free *text with
 * hvd_rendezvous_free. */
HVD_RENDEZVOUS_EXPORT int32_t hvd_rendezvous_job_metrics(hvd_rendezvous_job* job, char** text);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HOROVOD_RENDEZVOUS_H_ */
