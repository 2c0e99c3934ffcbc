/* The C ABI of libhvd.so: all that the Python package knows of the runtime. No framework type
 * crosses it: pointers, element types and shapes do.
 *
 * Every function is thread-safe, catches everything, and returns an HVD_* status code unless it
 * says otherwise; the message that goes with a code is hvd_last_error() of the same thread.
 * Blocking calls must be made without Python's lock (ctypes does so).
 */
#ifndef WORKER_RUNTIME_API_HVD_C_API_H_
#define WORKER_RUNTIME_API_HVD_C_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HVD_EXPORT __attribute__((visibility("default")))

/* Changes whenever anything below does. */
#define HVD_ABI_VERSION 14

/* Status codes: absl::StatusCode's numbers, and one of our own. */
enum {
  HVD_OK = 0,
  HVD_CANCELLED = 1,
  HVD_UNKNOWN = 2,
  HVD_INVALID_ARGUMENT =
      3, /* the caller's mistake, or (from hvd_wait) the ranks' requests do not match */
  HVD_DEADLINE_EXCEEDED = 4, /* a collective or the rendezvous took too long */
  HVD_NOT_FOUND = 5,         /* unknown handle */
  HVD_ALREADY_EXISTS = 6,    /* a request of that name is in flight; a process set of these ranks */
  HVD_PERMISSION_DENIED = 7,
  HVD_RESOURCE_EXHAUSTED = 8,  /* no memory */
  HVD_FAILED_PRECONDITION = 9, /* not initialized, or already shut down */
  HVD_ABORTED = 10,            /* the epoch is over: another rank failed or shut down */
  HVD_UNIMPLEMENTED = 12,
  HVD_INTERNAL = 13,
  HVD_UNAVAILABLE = 14,   /* a peer is gone */
  HVD_RELEASED = 100,     /* this worker is not wanted any more and is to exit with 0 */
  HVD_STILL_RUNNING = 101 /* it is to be waited for again; see hvd_wait */
};

/* DataType, OpKind and Reduction: collectives/types.h, worker_runtime/engine/engine.h. */
enum {
  HVD_UINT8 = 0,
  HVD_INT8 = 1,
  HVD_INT16 = 2,
  HVD_INT32 = 3,
  HVD_INT64 = 4,
  HVD_FLOAT16 = 5,
  HVD_BFLOAT16 = 6,
  HVD_FLOAT32 = 7,
  HVD_FLOAT64 = 8,
  HVD_BOOL = 9
};
enum {
  HVD_ALLREDUCE = 0,
  HVD_ALLGATHER = 1,
  HVD_BROADCAST = 2,
  HVD_ALLTOALL = 3,
  HVD_REDUCESCATTER = 4,
  HVD_BARRIER = 5,
  HVD_JOIN = 6,
  HVD_COMMIT = 7 /* without a tensor; hvd_tensor.world_is_changing is its result */
};
enum { HVD_AVERAGE = 0, HVD_SUM = 1, HVD_ADASUM = 2, HVD_MIN = 3, HVD_MAX = 4, HVD_PRODUCT = 5 };

HVD_EXPORT int32_t hvd_abi_version(void);    /* HVD_ABI_VERSION of the library */
HVD_EXPORT const char* hvd_version(void);    /* "1.0.0" */
HVD_EXPORT const char* hvd_last_error(void); /* of this thread; valid until its next call */

/* Joins the next world of the job this process was started in (by an agent), or makes a world of
 * one without one. Blocks until all members are there and connected. Does nothing if a world is up.
 * In an elastic job that has a world already it returns at once, "deferred": the process has a
 * provisional place, but is in no world before hvd_join_world or hvd_submit. HVD_RELEASED, here and
 * in the next two.
 */
HVD_EXPORT int32_t hvd_init(void);

HVD_EXPORT int32_t hvd_is_deferred(void); /* 1 or 0 */

/* Makes a deferred process a member. Blocks as hvd_init. Does nothing if a world is up.
 * HVD_FAILED_PRECONDITION: not initialized. */
HVD_EXPORT int32_t hvd_join_world(void);

/* Leaves the present world, if there is one, for the next one, and joins that. Quick: waits for the
 * next world, not for peers of the old one. Handles of the old world stay until they are released.
 */
HVD_EXPORT int32_t hvd_reset(void);

/* The newest commit that this process can restore, 0 for none: told when it asks for a world. At
 * first the one in the store. */
HVD_EXPORT void hvd_set_commit(int64_t number);

/* The store: memory, owned by the agent, in which commits outlive this process; a process that
 * takes its place finds them. Each of these returns HVD_UNIMPLEMENTED if there is none: no agent,
 * or the job is not elastic.
 *
 * hvd_store_begin makes room for a commit of `bytes` and gives where it is going to be, which stays
 * readable for ever; never where the newest sealed commit is, nor `keep` (may be NULL), an address
 * within an earlier one. HVD_RESOURCE_EXHAUSTED.
 * hvd_store_append copies parts into it, each to the next multiple of 64 bytes.
 * hvd_store_seal makes it the newest commit; a death before leaves the one before.
 * hvd_store_compare begins a comparison instead of a commit: what is appended is not kept.
 * hvd_store_is_same, then, is 1 if it was what the newest commit holds, by length and checksum, or
 * else 0. HVD_NOT_FOUND: there is none.
 * hvd_store_newest gives the newest one, of this process or one before it, whose checksum is right:
 * checks it, so it takes its time. HVD_NOT_FOUND: there is none. */
HVD_EXPORT int32_t hvd_store_begin(int64_t bytes, const void* keep, const void** memory);
HVD_EXPORT int32_t hvd_store_append(const void* const* parts, const int64_t* bytes, int32_t count);
HVD_EXPORT int32_t hvd_store_seal(int64_t number);
HVD_EXPORT int32_t hvd_store_compare(void);
HVD_EXPORT int32_t hvd_store_is_same(void);
HVD_EXPORT int32_t hvd_store_newest(const void** memory, int64_t* bytes, int64_t* number);

/* 1 if some member of the world may not hold the state of rank 0, which holds the newest commit:
 * all must take it over from there. The same on every rank. 1 if there is no world. */
HVD_EXPORT int32_t hvd_must_sync_state(void);

/* Leaves the world in good order; hvd_init may follow. Does nothing if there is none. Peers'
 * operations in flight fail with HVD_ABORTED. Returns when all callbacks of hvd_submit_then have;
 * HVD_FAILED_PRECONDITION: called by one. */
HVD_EXPORT int32_t hvd_shutdown(void);

HVD_EXPORT int32_t hvd_is_initialized(void); /* 1 or 0; 1 if deferred */

/* Provisional if deferred. -1 if not initialized. */
HVD_EXPORT int32_t hvd_rank(void);
HVD_EXPORT int32_t hvd_size(void);
HVD_EXPORT int32_t hvd_local_rank(void);
HVD_EXPORT int32_t hvd_local_size(void);
HVD_EXPORT int32_t hvd_cross_rank(void);
HVD_EXPORT int32_t hvd_cross_size(void);
HVD_EXPORT int64_t hvd_epoch(void);          /* 0 if there is no world */
HVD_EXPORT const char* hvd_job_id(void);     /* "" without an agent, and before hvd_init; of this
                                                thread, valid until its next call */
HVD_EXPORT int32_t hvd_is_homogeneous(void); /* 1 if all hosts have as many ranks */

/* 1 if the epoch is broken or about to change, 0 if not. One load. */
HVD_EXPORT int32_t hvd_world_is_changing(void);

/* Process sets: groups of ranks whose members run operations among themselves, at the same time as
 * others. 0 is the set of all ranks of the world and is always there; the others end with the
 * world. All ranks of the world must make each of these two calls, at the same point; both block.
 *
 * hvd_add_process_set takes ranks of the world in any order. *id is the same on all ranks and is
 * never given again. On all ranks alike, and the world goes on: HVD_INVALID_ARGUMENT: the ranks ask
 * for different things, or a rank does not exist or is named twice; HVD_ALREADY_EXISTS: *id has
 * these ranks; HVD_UNAVAILABLE, HVD_DEADLINE_EXCEEDED: members can't be connected.
 * hvd_remove_process_set: what is in flight on the set fails; its handles stay until they are
 * released. HVD_INVALID_ARGUMENT: the ranks ask for different things; HVD_NOT_FOUND: no such set,
 * or 0.
 * Both: HVD_FAILED_PRECONDITION: there is no world; or the world is broken, as hvd_wait. */
HVD_EXPORT int32_t hvd_add_process_set(const int32_t* ranks, int32_t count, int32_t* id);
HVD_EXPORT int32_t hvd_remove_process_set(int32_t id);

/* Which process `rank` is: the same two numbers as long as it lives, in any world and to every
 * member. HVD_NOT_FOUND: no such rank. HVD_FAILED_PRECONDITION: there is no world. */
HVD_EXPORT int32_t hvd_member(int32_t rank, uint64_t* worker, uint64_t* incarnation);

enum { HVD_HOST = -1 };

/* 1 if requests may name a device, else 0: there is no CUDA driver, HOROVOD_GPU_OPERATIONS says
 * otherwise, or hvd_init was never called. Such requests are for whatever moves data, but not for
 * Adasum, averages of integers, or factors with anything but sums and averages of floats; `output`
 * must be given for HVD_BROADCAST and HVD_ALLREDUCE. */
HVD_EXPORT int32_t hvd_takes_device_tensors(void);

/* One tensor of one operation; see TensorRequest in worker_runtime/engine/request.h. */
typedef struct hvd_request {
  const char* name;
  int32_t op;
  int32_t dtype;
  int32_t ndim;
  int32_t reduction;
  const int64_t* shape;
  const void* input;
  void* output; /* NULL: the runtime allocates the result. HVD_ALLGATHER: for as many rows from
                   every rank as this one gives, HVD_ALLTOALL: for as many as this one sends; it is
                   not used if more or fewer come */
  double prescale;
  double postscale;
  int32_t root_rank;    /* of the world, whatever the process set */
  int32_t splits_count; /* alltoall: 0 for even splits, else one entry for each rank of the set */
  const int32_t* splits;
  int32_t device;    /* the CUDA device that input and output are on, or HVD_HOST. On a device: */
  void* ready_event; /* a CUDA event after which they may be used, alive as they are; or NULL */
} hvd_request;

/* Hands over `count` tensors as one group, to be run by process set `process_set`; *handle
 * identifies it until hvd_release. `input` and `output` must stay valid until then. Errors:
 * HVD_INVALID_ARGUMENT, HVD_ALREADY_EXISTS, HVD_FAILED_PRECONDITION, HVD_ABORTED, HVD_UNAVAILABLE;
 * those of hvd_join_world, which it calls if this process is deferred.
 * If `waits` is not 0, waits for the group first, as hvd_wait, which tells how it ended. This is
 * quicker than to wait afterwards: the calling thread does the work. */
HVD_EXPORT int32_t hvd_submit(const hvd_request* requests, int32_t count, int32_t process_set,
                              int32_t waits, int64_t* handle);

/* What hvd_submit_then calls when a group has ended, with `status` as of hvd_wait, whose text is
 * hvd_last_error(). The callee sees to it that the handle is released, now or later, whatever the
 * status; until then hvd_result gives the results of a group that ended with HVD_OK. */
typedef void (*hvd_done)(void* context, int64_t handle, int32_t status);

/* hvd_submit, for callers that do not wait: done(context, ...) is called once when all of the group
 * has ended, in good order or not. If this returns anything but HVD_OK, `done` is never called. It
 * may be called before this returns.
 *
 * Callbacks are called one after another, in the order in which the groups of a process set ended,
 * on one thread of the library, which takes no signals and has no other work. So a callback may
 * block, take locks and call any function here but hvd_shutdown, hvd_submit and hvd_wait included:
 * it holds up other callbacks, but no operation. It must not throw.
 *
 * Nothing is kept back so that more goes with it, as if somebody waited. But the caller may be
 * about to submit more, so what all ranks only have callbacks for is never taken for a deadlock,
 * which hvd_wait would report after seconds; it is reported as a stall.
 *
 * - The world breaks, or hvd_reset or hvd_remove_process_set ends what is in flight: each callback
 *   is called, with the status. These functions do not wait for that; callbacks of an earlier world
 *   come before those of a later one.
 * - hvd_shutdown returns when all callbacks have returned. Its caller must not hold a lock that one
 *   of them needs. Called by a callback it fails with HVD_FAILED_PRECONDITION and does nothing.
 * - A forked child never sees its parent's callbacks, and as long as it is in its parent's world
 *   this function fails with HVD_FAILED_PRECONDITION.
 * - A process that ends without hvd_shutdown may end while a callback runs.
 * Errors: those of hvd_submit. */
HVD_EXPORT int32_t hvd_submit_then(const hvd_request* requests, int32_t count, int32_t process_set,
                                   hvd_done done, void* context);

/* A group of tensors that is submitted again and again: all of its requests but the memory.
 * hvd_prepare makes one, and hvd_forget frees it, which what was submitted with it does not mind.
 * HVD_INVALID_ARGUMENT. */
typedef struct hvd_prepared hvd_prepared;
HVD_EXPORT int32_t hvd_prepare(const hvd_request* requests, int32_t count, hvd_prepared** prepared);
HVD_EXPORT void hvd_forget(hvd_prepared* prepared);

/* hvd_submit of a prepared group, with an address for each tensor; hvd_start is for a single one,
 * which may be given another name. Return the handle, or minus the error code. */
HVD_EXPORT int64_t hvd_start(const hvd_prepared* prepared, const char* name, const void* input,
                             void* output, int32_t process_set);
HVD_EXPORT int64_t hvd_start_group(const hvd_prepared* prepared, const void* const* inputs,
                                   void* const* outputs, int32_t process_set);

/* hvd_start and hvd_finish in one call: returns the code of hvd_wait, or minus that of hvd_submit;
 * instead of HVD_STILL_RUNNING the handle, which is HVD_FIRST_HANDLE or more. */
enum { HVD_FIRST_HANDLE = 1000 };
HVD_EXPORT int64_t hvd_run(const hvd_prepared* prepared, const char* name, const void* input,
                           void* output, int32_t process_set);

/* hvd_submit of a broadcast whose memory is `count` stretches: root_rank's (of the world) are
 * copied to those of the other ranks, which are as many and as long. They must stay valid until
 * hvd_release. If `append` is not 0, the bytes are appended as well, as by
 * hvd_store_append, while they are at hand; HVD_UNIMPLEMENTED: there is no store. If they don't fit
 * in, that shows when the commit is sealed. */
HVD_EXPORT int32_t hvd_broadcast_stretches(const char* name, void* const* stretches,
                                           const int64_t* bytes, int32_t count, int32_t root_rank,
                                           int32_t process_set, int32_t append, int64_t* handle);

HVD_EXPORT int32_t hvd_poll(int64_t handle, int32_t* done); /* HVD_NOT_FOUND */

/* Blocks until the group is done. HVD_STILL_RUNNING: it is not, but the thread has taken a signal,
 * or a second or so has gone by, in which it may have taken one: the caller sees to that and calls
 * again. HVD_INVALID_ARGUMENT: the ranks' requests do not match, the world goes on;
 * HVD_UNIMPLEMENTED; any other code: the world is broken. */
HVD_EXPORT int32_t hvd_wait(int64_t handle);

typedef struct hvd_tensor {
  void* data; /* the request's output, or memory of the same device that lives until hvd_release, by
                 when nothing may be under way that uses it */
  const int64_t* shape;
  int32_t ndim;
  int32_t received_splits_count;
  const int32_t* received_splits;
  int32_t last_joined_rank;
  int32_t world_is_changing; /* commit: 1 if another world is wanted, 0 if not; the same on every
                                rank */
} hvd_tensor;

/* REQUIRES: hvd_wait(handle) returned HVD_OK. HVD_NOT_FOUND: no such handle or index. */
HVD_EXPORT int32_t hvd_result(int64_t handle, int32_t index, hvd_tensor* result);

/* Forgets the group; waits for it first if it is in flight. */
HVD_EXPORT int32_t hvd_release(int64_t handle);

/* hvd_wait for all of these groups and hvd_release of them; returns the first error in their
 * order. HVD_STILL_RUNNING: none of them is released yet. */
HVD_EXPORT int32_t hvd_finish(const int64_t* handles, int32_t count);

/* Seals of objects that are unpickled where they arrive, so that nobody on the way can put one of
 * his own in their place; see ObjectSeals. They are for one operation, which all ranks of
 * `process_set` know by this name.
 *
 * hvd_seal writes HVD_SEAL_BYTES bytes behind the `bytes` of `object`, which this rank gives to it.
 * hvd_open checks objects with the seals behind them (both counted in `bytes`), each from the rank
 * of the world `senders` names; every rank must call it, the one that sent as well.
 * HVD_PERMISSION_DENIED: one was changed; the world is broken, and it must not be unpickled. Both:
 * HVD_FAILED_PRECONDITION: there is no world. */
enum { HVD_SEAL_BYTES = 32 };
HVD_EXPORT int32_t hvd_seal(const char* name, int32_t process_set, void* object, int64_t bytes);
HVD_EXPORT int32_t hvd_open(const char* name, int32_t process_set, const int32_t* senders,
                            const void* const* objects, const int64_t* bytes, int32_t count);

/* The timeline: on rank 0 makes all ranks record what they do from now on, which rank 0 writes to
 * `path`, or ends that and waits until the file is complete. On other ranks these only check.
 * HVD_FAILED_PRECONDITION: not initialized. HVD_INVALID_ARGUMENT: HOROVOD_TIMELINE was not set at
 * hvd_init; the file can't be written. HVD_DEADLINE_EXCEEDED, HVD_RESOURCE_EXHAUSTED: the file
 * is not complete. */
HVD_EXPORT int32_t hvd_start_timeline(const char* path, int32_t mark_cycles);
HVD_EXPORT int32_t hvd_stop_timeline(void);

/* Where this process is to write its stack, in the words of Python's faulthandler, whenever it gets
 * `signal`, once it has written "ready\n" there: the agent wants to know. It stays open.
 * HVD_NOT_FOUND: nobody does. */
HVD_EXPORT int32_t hvd_stack_request(int32_t* fd, int32_t* signal);

/* This process's own word on why it is about to fail, passed on to the daemon for the root-cause
 * report; best effort, bounded to a second. */
HVD_EXPORT int32_t hvd_report_failure(const char* message, int32_t caused_by_peer);

/* What the daemon is told when this process asks for the next world: whether an operation was
 * completed since the last hvd_begin_training, how many steps were counted since then or since the
 * newest commit, and the error of its own, if it was one, for which the world is left. */
HVD_EXPORT void hvd_begin_training(void);
HVD_EXPORT void hvd_count_step(void);
HVD_EXPORT void hvd_note_error(const char* message);

/* Whether a commit may count: on rank 0 of an elastic job, that the daemon has said lately that
 * this world is the newest, or says so now; nothing on others. HVD_ABORTED: it is not, or will soon
 * not be. HVD_UNAVAILABLE: the daemon has not said so for too long. Blocks only where the last word
 * is too old. hvd_confirm_world always asks, on any rank, and also after hvd_shutdown. Thread-safe.
 */
HVD_EXPORT int32_t hvd_check_world(void);
HVD_EXPORT int32_t hvd_confirm_world(void);

/* "gloo": 1. "nccl": the version of the library that can be loaded, 22307 for 2.23.7, or 0.
 * "cuda": whether there is a driver. "mpi", "rocm", "ddl", "ccl": 0. */
HVD_EXPORT int32_t hvd_built(const char* what);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* WORKER_RUNTIME_API_HVD_C_API_H_ */
