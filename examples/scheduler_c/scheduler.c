// scheduler SLOTS "COMMAND" "URGENT COMMAND": runs two trainings on this machine's slots, with
// preemption. The first is elastic and takes all slots. As soon as it trains, the urgent one
// arrives and takes all slots but one: the first gives each of them back at its next commit,
// without losing a step, and gets them again when the urgent one has ended. A worker that dies is
// replaced.
// Uses nothing but horovod/rendezvous.h, C11 and POSIX.
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <horovod/rendezvous.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

struct process {
  uint64_t worker;
  pid_t pid;
  double kill_at;  // 0: it has not been asked to end
  struct process* next;
};

// A job and its processes. Only the main thread changes it.
struct training {
  const char* name;
  const char* command;
  hvd_rendezvous_job* job;
  char* held;  // for each slot whether the job has it, or is leaving it
  struct process* processes;
  bool trains;  // or has ended
  bool has_result;
  int exit_code;
};

// What a callback has to say. Callbacks must not block, so they write it to a pipe, which holds
// hundreds of events; the main thread calls `handle`.
struct event {
  void (*handle)(struct training*, const struct event*);
  struct training* training;
  uint64_t worker;
  pid_t pid;
  double grace;
  int number;     // an error, a slot or an exit code
  char* summary;  // allocated, or NULL
};

static int events[2];           // the pipe
static sigset_t usual_signals;  // which are blocked in children, and here in pselect()

static void* must(void* memory) {
  if (memory == NULL) abort();
  return memory;
}

static void check(int32_t result) {
  if (result == HVD_RENDEZVOUS_OK) return;
  fprintf(stderr, "scheduler: %s\n", hvd_rendezvous_last_error());
  exit(2);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// ---- On the main thread, after a callback or the end of a process

static void report_exit(struct training* job, hvd_rendezvous_exit report) {
  report.size = sizeof(report);
  check(hvd_rendezvous_report_exit(job->job, &report));
}

static void take_process(struct training* job, const struct event* event) {
  if (event->number != 0) {
    report_exit(job, (hvd_rendezvous_exit){.worker = event->worker,
                                           .start_error = strerror(event->number)});
    return;
  }
  struct process* const started = must(malloc(sizeof(*started)));
  *started = (struct process){event->worker, event->pid, 0, job->processes};
  job->processes = started;
  printf("%s: worker %d is process %d\n", job->name, (int)event->worker, (int)event->pid);
  check(hvd_rendezvous_report_started(job->job, event->worker, event->pid));
}

static void stop(struct training* job, const struct event* event) {
  for (struct process* each = job->processes; each != NULL; each = each->next) {
    if (each->worker != event->worker) continue;
    kill(-each->pid, SIGTERM);
    each->kill_at = now() + event->grace;
  }
}

static void take_slot(struct training* job, const struct event* event) {
  job->held[event->number] = 0;
}

static void note_world(struct training* job, const struct event* event) {
  (void)event;
  job->trains = true;
}

static void finish(struct training* job, const struct event* event) {
  printf("%s: ended: %s\n", job->name, event->summary);
  job->exit_code = event->number;
  job->has_result = job->trains = true;
}

// Kills processes whose grace is over, and reports those that have ended.
static void look_after_processes(struct training* job) {
  for (struct process** link = &job->processes; *link != NULL;) {
    struct process* const each = *link;
    if (each->kill_at > 0 && each->kill_at <= now()) kill(-each->pid, SIGKILL);
    // WNOWAIT leaves the zombie, so its process id is not reused yet.
    siginfo_t info;
    info.si_pid = 0;
    waitid(P_PID, (id_t)each->pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_pid == 0) {
      link = &each->next;
      continue;
    }
    kill(-each->pid, SIGKILL);  // the worker's descendants
    int status = 0;
    waitpid(each->pid, &status, 0);
    report_exit(job, (hvd_rendezvous_exit){
                         .worker = each->worker,
                         .exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                         .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                     });
    *link = each->next;
    free(each);
  }
}

// ---- Callbacks, on threads of the library

static void post(struct event event) {
  if (write(events[1], &event, sizeof(event)) != (ssize_t)sizeof(event)) abort();
}

// This process's environment with `more`, which replaces variables of the same name. Free the
// array.
static char** environment_with(const char* const* more) {
  size_t count = 1;
  for (char** each = environ; *each != NULL; ++each) ++count;
  for (const char* const* each = more; *each != NULL; ++each) ++count;
  char** const all = must(calloc(count, sizeof(*all)));
  size_t used = 0;
  for (char** each = environ; *each != NULL; ++each) {
    const size_t name = strcspn(*each, "=") + 1;
    const char* const* other = more;
    while (*other != NULL && strncmp(*each, *other, name) != 0) ++other;
    if (*other == NULL) all[used++] = *each;
  }
  for (const char* const* each = more; *each != NULL; ++each) all[used++] = (char*)*each;
  return all;
}

// Starts a process in a new process group, which does not block the signals that this thread
// blocks.
static void on_start(void* context, const hvd_rendezvous_worker* worker) {
  struct training* const job = context;
  char* const arguments[] = {"sh", "-c", (char*)job->command, NULL};
  char** const environment = environment_with(worker->environment);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &usual_signals);
  struct event event = {.handle = take_process, .training = job, .worker = worker->worker};
  event.number = posix_spawnp(&event.pid, "sh", NULL, &attributes, arguments, environment);
  posix_spawnattr_destroy(&attributes);
  free(environment);
  post(event);
}

static void on_stop(void* job, uint64_t worker, double grace) {
  post((struct event){.handle = stop, .training = job, .worker = worker, .grace = grace});
}

static void on_host_free(void* job, const char* host) {
  const int slot = atoi(host + strlen("slot"));
  post((struct event){.handle = take_slot, .training = job, .number = slot});
}

static void on_notice(void* job, const char* json) {
  if (strstr(json, "\"kind\":\"world_formed\"") == NULL) return;
  post((struct event){.handle = note_world, .training = job});
}

static void on_finished(void* job, const hvd_rendezvous_result* result) {
  post((struct event){.handle = finish,
                      .training = job,
                      .number = result->exit_code,
                      .summary = must(strdup(result->summary))});
}

// ---- The policy

static bool is_over(const struct training* job) {
  return job->has_result && job->processes == NULL;
}

// Sets the slots that the job may use from now on. Each slot is a separate host, so that slots can
// be added and removed one at a time.
static void offer(struct training* job, const hvd_rendezvous_host* slots, int first, int count) {
  memset(job->held + first, 1, (size_t)count);
  printf("%s: may use %d %s\n", job->name, count, count == 1 ? "slot" : "slots");
  check(hvd_rendezvous_offer_slots(job->job, slots + first, count));
}

// Called after every change. The first job keeps slot 0.
static void share(struct training* first, struct training* urgent, const hvd_rendezvous_host* slots,
                  int count) {
  static enum { NOBODY_HAS_SLOTS, FIRST_HAS_ALL, FIRST_LEAVES, URGENT_RUNS, URGENT_IS_OVER } state;
  if (state == NOBODY_HAS_SLOTS) {
    offer(first, slots, 0, count);
    state = FIRST_HAS_ALL;
  }
  if (state == FIRST_HAS_ALL && first->trains) {
    offer(first, slots, 0, 1);
    state = FIRST_LEAVES;
  }
  if (state == FIRST_LEAVES && memchr(first->held + 1, 1, (size_t)count - 1) == NULL) {
    offer(urgent, slots, 1, count - 1);
    state = URGENT_RUNS;
  }
  if (state == URGENT_RUNS && is_over(urgent)) {
    if (!is_over(first)) offer(first, slots, 0, count);
    state = URGENT_IS_OVER;
  }
}

// ---- The program

static void add(hvd_rendezvous_server* server, struct training* job, int slots, int np,
                int min_np) {
  job->held = must(calloc((size_t)slots, 1));
  hvd_rendezvous_job_options options;
  hvd_rendezvous_job_options_init(&options, sizeof(options));
  options.id = job->name;
  options.np = options.max_np = np;
  options.min_np = min_np;
  options.context = job;
  options.start_worker = on_start;
  options.stop_worker = on_stop;
  options.host_free = on_host_free;
  options.notice = on_notice;
  options.finished = on_finished;
  check(hvd_rendezvous_add_job(server, &options, &job->job));
}

static void wake_up(int signal) { (void)signal; }

// SIGCHLD is blocked but in pselect(), so the end of a process always wakes that up. The library's
// threads, which start later, block it, too.
static void prepare_to_wait(void) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, &usual_signals);
  sigdelset(&usual_signals, SIGCHLD);
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = wake_up}, NULL);
  if (pipe(events) != 0) abort();
  for (int end = 0; end < 2; ++end) fcntl(events[end], F_SETFD, FD_CLOEXEC);
}

// Waits for an event and handles it. Returns without one when a process has ended, and after
// 100 ms, because a grace may be over.
static void handle_event(void) {
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(events[0], &readable);
  const struct timespec longest = {.tv_nsec = 100000000};
  if (pselect(events[0] + 1, &readable, NULL, NULL, &longest, &usual_signals) <= 0) return;
  struct event event;
  if (read(events[0], &event, sizeof(event)) != (ssize_t)sizeof(event)) abort();
  event.handle(event.training, &event);
  free(event.summary);
}

int main(int argc, char** argv) {
  const int count = argc == 4 ? atoi(argv[1]) : 0;
  if (count < 2) {
    fprintf(stderr,
            "usage: scheduler SLOTS \"COMMAND\" \"URGENT COMMAND\", with two slots or more\n");
    return 2;
  }
  hvd_rendezvous_host* const slots = must(calloc((size_t)count, sizeof(*slots)));
  char(*const names)[16] = must(calloc((size_t)count, sizeof(*names)));
  for (int slot = 0; slot < count; ++slot) {
    snprintf(names[slot], sizeof(names[slot]), "slot%d", slot);
    slots[slot] = (hvd_rendezvous_host){names[slot], 1, "this-machine"};
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  prepare_to_wait();

  const char* const listen[] = {"127.0.0.1:0"};
  hvd_rendezvous_server* server = NULL;
  check(hvd_rendezvous_start(HVD_RENDEZVOUS_ABI_VERSION, listen, 1, &server));
  struct training first = {.name = "first", .command = argv[2]};
  struct training urgent = {.name = "urgent", .command = argv[3]};
  add(server, &first, count, count, 1);
  add(server, &urgent, count, count - 1, count - 1);
  while (!is_over(&first) || !is_over(&urgent)) {
    share(&first, &urgent, slots, count);
    handle_event();
    look_after_processes(&first);
    look_after_processes(&urgent);
  }
  check(hvd_rendezvous_remove_job(first.job));
  check(hvd_rendezvous_remove_job(urgent.job));
  check(hvd_rendezvous_stop(server));
  free(first.held);
  free(urgent.held);
  free(slots);
  free(names);
  return first.exit_code != 0 ? first.exit_code : urgent.exit_code;
}
