/* The C ABI of libhvd.so: the Python package's only interface to the runtime. No framework type
 * crosses it, only pointers, element types and shapes.
 *
 * Every function is thread-safe, catches all exceptions, and returns an HVD_* status code unless
 * its comment says otherwise; hvd_last_error() of the same thread has the message of a code.
 * Blocking calls must be made without Python's lock (ctypes does so).
 */
#ifndef WORKER_RUNTIME_API_HVD_C_API_H_
#define WORKER_RUNTIME_API_HVD_C_API_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HVD_EXPORT __attribute__((visibility("default")))

/* Incremented with every change of this interface. */
#define HVD_ABI_VERSION 27

/* Status codes: absl::StatusCode's numbers, and two additional ones. */
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
  HVD_DATA_LOSS = 15,     /* the same, because what it sent was changed on the way */
  HVD_RELEASED = 100,     /* the job no longer needs this worker, which must exit with 0 */
  HVD_STILL_RUNNING = 101 /* the caller must call hvd_wait again; see there */
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

/* Failpoints, for tests: base/failpoint/failpoint.h. The first function switches those of a worker
 * on, as the environment says, and returns whether (1) or not (0) any is on. It ends the process if
 * the variable is malformed, or asks for the list. The second one takes the action of a point, by
 * its name.
 * Errors:
 *   - HVD_NOT_FOUND: there is no such point.
 *   - Any other code: the point's error, if that is its action.
 */
HVD_EXPORT int32_t hvd_arm_failpoints(void);
HVD_EXPORT int32_t hvd_pass_failpoint(const char* name);

/* Joins the next world of the job in which an agent has started this process; without an agent,
 * makes a world of one rank. Blocks until all members are connected. No effect if this process is
 * in a world. In an elastic job that has a world already it returns at once, "deferred": the
 * process has a provisional rank, but is in no world before hvd_join_world or hvd_submit.
 * Errors:
 *   - HVD_RELEASED: the job no longer needs this worker.
 *   - HVD_INVALID_ARGUMENT: an environment variable has a bad value.
 *   - Any other code: the agent, the daemon or a peer can't be reached, or has refused.
 */
HVD_EXPORT int32_t hvd_init(void);

HVD_EXPORT int32_t hvd_is_deferred(void); /* 1 or 0 */

/* Makes a deferred process a member of the next world. Blocks like hvd_init. No effect if this
 * process is in a world.
 * Errors:
 *   - HVD_FAILED_PRECONDITION: not initialized.
 *   - All errors of hvd_init. */
HVD_EXPORT int32_t hvd_join_world(void);

/* Sets what the first operation of a deferred process calls, on the thread that submits it: a
 * function that calls hvd_join_world, and then does what all members do at the begin of a world. If
 * it has joined none, the operation fails with the error of that hvd_join_world. NULL: the
 * operation calls hvd_join_world itself. */
HVD_EXPORT void hvd_set_join(void (*join)(void)); /* NOLINT(modernize-redundant-void-arg): C */

/* Leaves the current world, if there is one, and joins the next one. Waits for the next world, but
 * not for peers of the old one. Handles of the old world stay valid until they are released.
 * Errors: those of hvd_init. */
HVD_EXPORT int32_t hvd_reset(void);

/* Sets the number of the newest commit that this process can restore, 0 for none. The process sends
 * it to the daemon when it asks for a world. Initially that of the newest commit in the store. */
HVD_EXPORT void hvd_set_commit(int64_t number);

/* The commit store: memory owned by the agent. Commits in it survive this process, and the process
 * that replaces this one finds them.
 *
 * hvd_store_begin reserves room for a commit of `bytes` and returns its address, which stays
 *   readable for the life of the process. It never overwrites the newest sealed commit, nor the
 *   commit that contains the address `keep` (may be NULL).
 * hvd_store_append copies parts into it, each to the next multiple of 64 bytes, on several threads
 *   if there are cores for them.
 * hvd_store_checksums writes the CRC-32C of pieces of the commit that was begun. A piece is what
 * one part, or several without gaps between them, have brought; `offsets`, in order, count from
 * `base` bytes after the commit's start. The copies have computed them: nothing is read.
 * hvd_store_seal makes it the newest commit. If the process dies before, the previous one remains.
 * hvd_store_compare begins a comparison instead of a commit: appended parts are not kept.
 * hvd_store_is_same then returns 1 if the parts were equal to the newest commit, by length and
 *   checksum, else 0.
 * hvd_store_newest returns the newest commit with a valid checksum, made by this process or an
 *   earlier one. It computes the checksum, which takes time.
 * hvd_store_take_kept copies the newest commit in the agent's memory, of another worker of this
 * host or of another host, into the store, as its newest commit. REQUIRES: no commit was begun and
 * not sealed. The number of a commit, here and in hvd_set_commit, is its id (CommitId in
 * base/ids.h): of two commits the greater number is that of the newer one.
 *
 * Errors:
 *   - HVD_UNIMPLEMENTED, of all but hvd_store_is_same and hvd_store_take_kept: there is no store,
 *     because there is no agent, or the job is not elastic.
 *   - HVD_RESOURCE_EXHAUSTED, of hvd_store_begin and hvd_store_take_kept: there is not enough
 *     memory.
 *   - HVD_FAILED_PRECONDITION, of hvd_store_append, hvd_store_checksums and hvd_store_seal: no
 *     commit was begun.
 *   - HVD_INVALID_ARGUMENT, of hvd_store_append: the parts exceed the bytes of hvd_store_begin; of
 *     hvd_store_checksums: a piece does not consist of whole parts.
 *   - HVD_NOT_FOUND, of hvd_store_compare, hvd_store_newest and hvd_store_take_kept: there is no
 *     such commit. */
HVD_EXPORT int32_t hvd_store_begin(int64_t bytes, const void* keep, const void** memory);
HVD_EXPORT int32_t hvd_store_append(const void* const* parts, const int64_t* bytes, int32_t count);
HVD_EXPORT int32_t hvd_store_checksums(int64_t base, const int64_t* offsets, const int64_t* bytes,
                                       int32_t count, uint32_t* checksums);
HVD_EXPORT int32_t hvd_store_seal(int64_t number);
HVD_EXPORT int32_t hvd_store_compare(void);
HVD_EXPORT int32_t hvd_store_is_same(void);
HVD_EXPORT int32_t hvd_store_take_kept(void);
HVD_EXPORT int32_t hvd_store_newest(const void** memory, int64_t* bytes, int64_t* number);

/* Copies parts to the memory at `to` without gaps, on as many threads as hvd_store_append. */
HVD_EXPORT void hvd_copy(void* to, const void* const* parts, const int64_t* bytes, int32_t count);

/* 1 if some member of the world may lack the state of rank 0, which has the newest commit: rank 0
 * must then broadcast it to all. The same on every rank. 1 if there is no world. */
HVD_EXPORT int32_t hvd_must_sync_state(void);

/* What the job does about silent data corruption, the same on every rank of a world: a number of
 * OnCorruption in base/settings/on_corruption.h. 0, nothing, if there is no world, or the job is
 * not elastic. */
HVD_EXPORT int32_t hvd_on_corruption(void);

/* Leaves the world cleanly; hvd_init may follow. No effect if there is no world. Operations in
 * flight on other ranks fail with HVD_ABORTED. Returns when all callbacks of hvd_submit_then have
 * returned.
 * Errors:
 *   - HVD_FAILED_PRECONDITION: called by a callback.
 *   - Any other code: the daemon did not receive the report that this worker has finished. */
HVD_EXPORT int32_t hvd_shutdown(void);

HVD_EXPORT int32_t hvd_is_initialized(void); /* 1 or 0; 1 if deferred */

/* The placement of this process; provisional if deferred, -1 if not initialized. */
HVD_EXPORT int32_t hvd_rank(void);
HVD_EXPORT int32_t hvd_size(void);
HVD_EXPORT int32_t hvd_local_rank(void);
HVD_EXPORT int32_t hvd_local_size(void);
HVD_EXPORT int32_t hvd_cross_rank(void);
HVD_EXPORT int32_t hvd_cross_size(void);
HVD_EXPORT int64_t hvd_epoch(void);          /* 0 if there is no world */
HVD_EXPORT const char* hvd_job_id(void);     /* "" without an agent, and before hvd_init; of this
                                                thread, valid until its next call */
HVD_EXPORT int32_t hvd_is_homogeneous(void); /* 1 if all machines have the same number of ranks */

/* 1 if the epoch is broken or about to change, 0 if not. Costs a few loads and a lock. */
HVD_EXPORT int32_t hvd_world_is_changing(void);

/* Process sets: groups of ranks that run operations among themselves, concurrently with other sets.
 * Set 0 contains all ranks of the world and always exists; the other sets end with the world.
 * Both functions block, and all ranks of the world must call them at the same point.
 *
 * hvd_add_process_set takes ranks of the world in any order. *id is the same on all ranks and is
 *   never reused.
 * hvd_remove_process_set: operations in flight on the set fail; their handles stay valid until they
 *   are released.
 *
 * All errors but the last two are the same on all ranks, and the world stays usable.
 * Errors:
 *   - HVD_INVALID_ARGUMENT: the ranks make different requests, or a rank does not exist or is named
 *     twice.
 *   - HVD_ALREADY_EXISTS, of hvd_add_process_set: set *id has these ranks.
 *   - HVD_UNAVAILABLE, HVD_DEADLINE_EXCEEDED, of hvd_add_process_set: members can't be connected.
 *   - HVD_NOT_FOUND, of hvd_remove_process_set: there is no such set, or the id is 0.
 *   - HVD_FAILED_PRECONDITION: there is no world.
 *   - Any other code, as of hvd_wait: the world is broken. */
HVD_EXPORT int32_t hvd_add_process_set(const int32_t* ranks, int32_t count, int32_t* id);
HVD_EXPORT int32_t hvd_remove_process_set(int32_t id);

/* Process groups: ranks that connect through a key-value store of the caller, with no daemon and in
 * no world. Only the members make a group. Its number takes the place of a process set's in all
 * functions for operations; ranks, also root ranks, are those of the group. HVD_JOIN and HVD_COMMIT
 * are not for groups. Any number of groups may exist, with and without a world.
 *
 * hvd_open_group blocks until all members, each of which must call it, are connected. The store's
 *   functions are called on the calling thread, before it returns; no two groups may use the same
 *   keys of a store. The group's secret goes through the store.
 * hvd_abort_group breaks the group for all ranks; operations in flight fail with the reason.
 * hvd_close_group leaves the group cleanly; operations in flight fail, their handles stay valid.
 * Errors:
 *   - HVD_INVALID_ARGUMENT: there is no such group or rank, or the address is not numeric.
 *   - HVD_DEADLINE_EXCEEDED, HVD_UNAVAILABLE, of hvd_open_group: members can't be connected. */
typedef struct hvd_store {
  void* context;
  /* Returns 0; any other value: the store has failed. */
  int32_t (*set)(void* context, const char* key, const void* value, int64_t bytes);
  /* Waits for the key and copies its value, if it fits, to `value`. Returns the number of its
     bytes; -1: nobody has set it within the time; -2: the store has failed. */
  int64_t (*get)(void* context, const char* key, double seconds, void* value, int64_t room);
} hvd_store;
typedef struct hvd_group_options {
  int32_t rank;
  int32_t size;
  const char* address;    /* numeric, where the other ranks reach this process */
  const char* name;       /* for messages; "" for the group of all ranks */
  double timeout_seconds; /* for connecting, and for the other ranks of an operation */
} hvd_group_options;
HVD_EXPORT int32_t hvd_open_group(const hvd_group_options* options, const hvd_store* store,
                                  int32_t* id);
HVD_EXPORT int32_t hvd_abort_group(int32_t id, const char* reason);
HVD_EXPORT int32_t hvd_close_group(int32_t id);

/* Messages between two ranks of a process group. They have no order with the group's collectives,
 * and need none between each other but that of one sender, receiver and tag.
 *
 * hvd_send and hvd_receive start a transfer and return at once. The memory must stay valid until it
 *   is done. `type` and `bytes` must be the same at both ends. `source` may be HVD_ANY_SOURCE.
 * hvd_wait_transfer blocks like hvd_wait; *source is then the rank that has sent what was received.
 * hvd_forget_transfer: one that is not done goes on, and uses its memory.
 * Errors:
 *   - HVD_STILL_RUNNING, of hvd_wait_transfer: see hvd_wait.
 *   - HVD_INVALID_ARGUMENT: there is no such group or rank; or, of hvd_wait_transfer, the two ends
 *     differ in size or type: the message is lost, and the group stays usable.
 *   - HVD_NOT_FOUND: there is no such transfer.
 *   - HVD_UNAVAILABLE: the other rank is gone.
 *   - HVD_ABORTED: the group is broken or was left. */
enum { HVD_ANY_SOURCE = -1 };
HVD_EXPORT int32_t hvd_send(int32_t group, int32_t peer, int64_t tag, int32_t type,
                            const void* data, int64_t bytes, int64_t* transfer);
HVD_EXPORT int32_t hvd_receive(int32_t group, int32_t source, int64_t tag, int32_t type, void* data,
                               int64_t bytes, int64_t* transfer);
HVD_EXPORT int32_t hvd_poll_transfer(int64_t transfer, int32_t* done);
HVD_EXPORT int32_t hvd_wait_transfer(int64_t transfer, double seconds, int32_t* source);
HVD_EXPORT void hvd_forget_transfer(int64_t transfer);

/* The identity of the process with this rank: two numbers that stay the same as long as the process
 * lives, in every world and on every rank.
 * Errors:
 *   - HVD_NOT_FOUND: no such rank.
 *   - HVD_FAILED_PRECONDITION: there is no world. */
HVD_EXPORT int32_t hvd_member(int32_t rank, uint64_t* worker, uint64_t* incarnation);

enum { HVD_HOST = -1 };

/* 1 if requests may name this CUDA device: it is the first one for which that was asked, whoever
 * asked, since a process has one device. 0 for any other; and if there is no driver, or hvd_init
 * was never called. On a device all operations that move data are possible, except Adasum, averages
 * of integers, and scale factors with anything but sums and averages of floats. HVD_BROADCAST and
 * HVD_ALLREDUCE need `output` there. */
HVD_EXPORT int32_t hvd_takes_device(int32_t device);

/* Streams of other libraries, and memory for them; each call opens the CUDA device if need be.
 * `stream` is a CUstream of the device's primary context, or CUDA's name for a default stream: NULL
 * or 1 for the legacy one, 2 for the calling thread's.
 *
 * hvd_record_event: *event is one after all work that the stream has been given so far, for
 *   hvd_request.ready_event. hvd_destroy_event ends it.
 * hvd_device_copy: a copy after that work, complete on return; of 0 bytes: waits for that work.
 * hvd_device_allocate: `bytes` (> 0) of memory with any content. hvd_device_free waits until the
 *   device does not use it any more.
 * hvd_device_of: the device that has the memory at `address`.
 * Errors:
 *   - HVD_UNIMPLEMENTED: there is no CUDA driver.
 *   - HVD_INVALID_ARGUMENT: there is no such device, or no device has the memory.
 *   - HVD_RESOURCE_EXHAUSTED: the device is full.
 *   - HVD_INTERNAL: the driver's error. */
enum { HVD_TO_HOST = 0, HVD_FROM_HOST = 1, HVD_ON_DEVICE = 2 };
HVD_EXPORT int32_t hvd_record_event(int32_t device, void* stream, void** event);
HVD_EXPORT int32_t hvd_destroy_event(int32_t device, void* event);
HVD_EXPORT int32_t hvd_device_copy(int32_t device, void* stream, int32_t way, void* to,
                                   const void* from, int64_t bytes);
HVD_EXPORT int32_t hvd_device_allocate(int32_t device, int64_t bytes, void** memory);
HVD_EXPORT int32_t hvd_device_free(int32_t device, void* memory);
HVD_EXPORT int32_t hvd_device_of(const void* address, int32_t* device);

/* One tensor of one operation; see TensorRequest in worker_runtime/engine/request.h. */
typedef struct hvd_request {
  const char* name;
  int32_t op;
  int32_t dtype;
  int32_t ndim;
  int32_t reduction;
  const int64_t* shape;
  const void* input;
  void* output; /* NULL: the runtime allocates the result. HVD_ALLGATHER: room for as many rows from
                   every rank as this one contributes, HVD_ALLTOALL: room for as many rows as this
                   rank sends; not used if the result has another size */
  double prescale;
  double postscale;
  int32_t root_rank;    /* a rank of the world, for every process set */
  int32_t splits_count; /* alltoall: 0 for even splits, else one entry for each rank of the set */
  const int32_t* splits;
  int32_t device;       /* the CUDA device of input and output, or HVD_HOST */
  void* ready_event;    /* a CUDA event after which input and output may be used, or NULL; must stay
                           valid as long as they */
  int64_t output_bytes; /* on a device: if not 0, output is used only if the result has this size;
                           HVD_ALLREDUCE and HVD_BROADCAST: always used */
  const char* meaning;  /* what the caller makes of the operation, "reduce to rank 1"; ranks that
                           differ get an error that shows it. NULL: nothing special */
} hvd_request;

/* A CUDA stream (CUstream) of a framework that orders its own work by it. The calling thread may
 * have any CUDA context, or none.
 *
 * hvd_stream_mark makes an event after the work so far; *device and *event are for hvd_request. The
 *   caller gives the event to hvd_stream_forget.
 * hvd_stream_to_host and hvd_stream_to_device copy between the device and the host, after the work
 *   so far, and block until the copies are done.
 * Errors:
 *   - HVD_UNIMPLEMENTED: there is no CUDA driver.
 *   - HVD_INTERNAL, HVD_RESOURCE_EXHAUSTED: the driver's error. */
typedef struct hvd_bus_copy {
  void* to;
  const void* from;
  int64_t bytes;
} hvd_bus_copy;
HVD_EXPORT int32_t hvd_stream_mark(void* stream, int32_t* device, void** event);
HVD_EXPORT int32_t hvd_stream_forget(void* stream, void* event);
HVD_EXPORT int32_t hvd_stream_to_host(void* stream, const hvd_bus_copy* copies, int32_t count);
HVD_EXPORT int32_t hvd_stream_to_device(void* stream, const hvd_bus_copy* copies, int32_t count);

/* Submits `count` tensors as one group on process set `process_set`; *handle identifies the group
 * until hvd_release. `input` and `output` must stay valid until then. If `waits` is not 0, waits
 * for the group before it returns, and hvd_wait still returns the result. That is faster than a
 * later wait, because the calling thread can run the operation itself. A deferred process first
 * joins a world, like hvd_join_world.
 * Errors:
 *   - HVD_INVALID_ARGUMENT: a bad request; nothing was queued.
 *   - HVD_ALREADY_EXISTS: a request of that name is in flight.
 *   - HVD_FAILED_PRECONDITION: there is no world.
 *   - HVD_ABORTED, HVD_UNAVAILABLE, HVD_DATA_LOSS, HVD_DEADLINE_EXCEEDED: the world is broken.
 *   - All errors of hvd_join_world, if this process was deferred. */
HVD_EXPORT int32_t hvd_submit(const hvd_request* requests, int32_t count, int32_t process_set,
                              int32_t waits, int64_t* handle);

/* The callback of hvd_submit_then, called when the group has ended. `status` is the code that
 * hvd_wait would return; hvd_last_error() has its message. The callee must release the handle, now
 * or later, whatever the status. Until then hvd_result returns the results of a group that ended
 * with HVD_OK. */
typedef void (*hvd_done)(void* context, int64_t handle, int32_t status);

/* Like hvd_submit, for callers that do not wait: calls done(context, ...) once, when the whole
 * group has ended with or without an error. `done` may be called before this function returns. If
 * this function does not return HVD_OK, `done` is never called.
 *
 * Callbacks are called one after another, in the order in which the groups of a process set ended,
 * on one thread of the library, which takes no signals and has no other work. So a callback may
 * block, take locks and call any function here except hvd_shutdown, also hvd_submit and hvd_wait:
 * it delays other callbacks, but no operation. It must not throw.
 *
 * As if a thread waited for them, the tensors are not held back for fusion. But they do not count
 * as a blocked thread, because the caller may be about to submit more. So operations for which all
 * ranks only have callbacks are never reported as a deadlock, after seconds, but as a stall.
 *
 * - When the world breaks, or hvd_reset or hvd_remove_process_set ends operations in flight, their
 *   callbacks are called with the error. The two functions do not wait for that. Callbacks of an
 *   earlier world are called before those of a later one.
 * - hvd_shutdown returns when all callbacks have returned. Its caller must not hold a lock that one
 *   of them needs. Called by a callback it fails with HVD_FAILED_PRECONDITION and does nothing.
 * - A forked child never gets its parent's callbacks, and as long as it is in its parent's world
 *   this function fails with HVD_FAILED_PRECONDITION.
 * - A process that ends without hvd_shutdown may end while a callback runs.
 * Errors: those of hvd_submit. */
HVD_EXPORT int32_t hvd_submit_then(const hvd_request* requests, int32_t count, int32_t process_set,
                                   hvd_done done, void* context);

/* A group of tensors that is submitted repeatedly: its requests without their memory. hvd_prepare
 * makes one. hvd_forget frees it; operations already submitted are unaffected.
 * Errors:
 *   - HVD_INVALID_ARGUMENT: a bad request. */
typedef struct hvd_prepared hvd_prepared;
HVD_EXPORT int32_t hvd_prepare(const hvd_request* requests, int32_t count, hvd_prepared** prepared);
HVD_EXPORT void hvd_forget(hvd_prepared* prepared);

/* Submit a prepared group, with the addresses of each tensor. hvd_start is for a group of one
 * tensor; `name`, if not NULL, replaces its name. Both return the handle, or minus the error code
 * of hvd_submit. */
HVD_EXPORT int64_t hvd_start(const hvd_prepared* prepared, const char* name, const void* input,
                             void* output, int32_t process_set);
HVD_EXPORT int64_t hvd_start_group(const hvd_prepared* prepared, const void* const* inputs,
                                   void* const* outputs, int32_t process_set);

/* hvd_start and hvd_finish in one call. Returns one of:
 *   - the code of hvd_wait;
 *   - minus the code of hvd_submit;
 *   - in place of HVD_STILL_RUNNING, the handle, which is HVD_FIRST_HANDLE or more. */
enum { HVD_FIRST_HANDLE = 1000 };
HVD_EXPORT int64_t hvd_run(const hvd_prepared* prepared, const char* name, const void* input,
                           void* output, int32_t process_set);

/* Submits a broadcast of `count` separate ranges of memory ("stretches"): those of root_rank, a
 * rank of the world, are copied to those of the other ranks, whose number and sizes must be the
 * same. They must stay valid until hvd_release. If `append` is not 0, the bytes are also appended
 * to the commit that was begun, as by hvd_store_append, while they are in the cache. If they don't
 * fit, hvd_store_seal fails.
 * Errors:
 *   - HVD_UNIMPLEMENTED: `append` is not 0 and there is no store.
 *   - All errors of hvd_submit. */
HVD_EXPORT int32_t hvd_broadcast_stretches(const char* name, void* const* stretches,
                                           const int64_t* bytes, int32_t count, int32_t root_rank,
                                           int32_t process_set, int32_t append, int64_t* handle);

/* Sets *done to 1 if the group is done, else to 0.
 * Errors:
 *   - HVD_NOT_FOUND: no such handle. */
HVD_EXPORT int32_t hvd_poll(int64_t handle, int32_t* done);

/* Blocks until the group is done, for `seconds` and about one second at most.
 * Errors:
 *   - HVD_STILL_RUNNING: the group is not done, but a signal has arrived or the time is over. The
 *     caller must let signal handlers run and may call again.
 *   - HVD_NOT_FOUND: no such handle.
 *   - HVD_INVALID_ARGUMENT: the ranks' requests do not match; the world stays usable.
 *   - HVD_UNIMPLEMENTED: no backend can do this; the world stays usable.
 *   - Any other code: the world is broken. */
HVD_EXPORT int32_t hvd_wait(int64_t handle, double seconds);

typedef struct hvd_tensor {
  void* data; /* the request's output, or memory on the same device that lives until hvd_release;
                 work on the device must have finished with it by then */
  const int64_t* shape;
  int32_t ndim;
  int32_t received_splits_count;
  const int32_t* received_splits;
  int32_t last_joined_rank;
  int32_t world_is_changing; /* commit: 1 if the world is about to change, 0 if not; the same on
                                every rank */
} hvd_tensor;

/* Returns the result of one tensor of the group. REQUIRES: hvd_wait(handle) returned HVD_OK.
 * Errors:
 *   - HVD_NOT_FOUND: no such handle or index. */
HVD_EXPORT int32_t hvd_result(int64_t handle, int32_t index, hvd_tensor* result);

/* Frees the group and its results; waits first if the group is in flight. */
HVD_EXPORT int32_t hvd_release(int64_t handle);

/* Waits for all of these groups and releases them. Returns the first error, in the order of the
 * handles. After HVD_STILL_RUNNING none of them is released.
 * Errors: those of hvd_wait. */
HVD_EXPORT int32_t hvd_finish(const int64_t* handles, int32_t count);

/* Message authentication codes ("seals") of objects that receivers unpickle, so that nobody can
 * replace an object in transit; see ObjectSeals. A seal is valid for one operation, which has this
 * name on all ranks of `process_set`.
 *
 * hvd_seal writes HVD_SEAL_BYTES bytes after the `bytes` of `object`, this rank's contribution.
 * hvd_open checks objects followed by their seals (`bytes` counts both). senders[i] is the rank of
 *   the world that has sent object i. Every rank must call it, the sender included.
 * Errors:
 *   - HVD_PERMISSION_DENIED, of hvd_open: a seal is wrong. The world is broken, and the object must
 *     not be unpickled.
 *   - HVD_FAILED_PRECONDITION: there is no world. */
enum { HVD_SEAL_BYTES = 32 };
HVD_EXPORT int32_t hvd_seal(const char* name, int32_t process_set, void* object, int64_t bytes);
HVD_EXPORT int32_t hvd_open(const char* name, int32_t process_set, const int32_t* senders,
                            const void* const* objects, const int64_t* bytes, int32_t count);

/* The timeline. On rank 0 hvd_start_timeline makes all ranks record their activities from now on,
 * which rank 0 writes to `path`; hvd_stop_timeline ends the recording and waits until the file is
 * complete. On other ranks they only check their preconditions.
 * Errors:
 *   - HVD_FAILED_PRECONDITION: not initialized.
 *   - HVD_INVALID_ARGUMENT: HOROVOD_TIMELINE was not set at hvd_init, or the file can't be written.
 *   - HVD_DEADLINE_EXCEEDED, HVD_RESOURCE_EXHAUSTED: the file is not complete. */
HVD_EXPORT int32_t hvd_start_timeline(const char* path, int32_t mark_cycles);
HVD_EXPORT int32_t hvd_stop_timeline(void);

/* The agent's request for this process's stacks: the process must write "ready\n" to `fd`, and then
 * its stack, in the format of Python's faulthandler, on every `signal`. `fd` stays open.
 * Errors:
 *   - HVD_NOT_FOUND: there is no request. */
HVD_EXPORT int32_t hvd_stack_request(int32_t* fd, int32_t* signal);

/* Reports to the daemon why this process is about to fail, for the root-cause report. Best effort;
 * takes a second at most. ends_job: an elastic job ends, too, with exit code 1. */
HVD_EXPORT int32_t hvd_report_failure(const char* message, int32_t caused_by_peer,
                                      int32_t ends_job);

/* The training progress that this process reports to the daemon when it asks for the next world:
 * whether an operation was completed since the last hvd_begin_training, how many steps were counted
 * since then or since the newest commit, and the error because of which it leaves, if any.
 * caused_by_peer: the error is the loss of a peer. hvd_forget_work: the operations so far do not
 * count, since they were those of preparations that have failed. */
HVD_EXPORT void hvd_begin_training(void);
HVD_EXPORT void hvd_forget_work(void);
HVD_EXPORT void hvd_count_step(void);
HVD_EXPORT void hvd_note_error(const char* message, int32_t caused_by_peer);

/* Check that this world may still make commits.
 *
 * hvd_check_world: on rank 0 of an elastic job, checks that the daemon has confirmed recently that
 *   this world is the newest, and asks it, which blocks, only if the last confirmation is too old.
 *   Always OK on other ranks.
 * hvd_confirm_world always asks the daemon, on any rank, and also after hvd_shutdown.
 *
 * Errors:
 *   - HVD_ABORTED: this world is not the newest, or is about to be replaced.
 *   - HVD_UNAVAILABLE: the daemon has not confirmed it for too long.
 *   - HVD_INVALID_ARGUMENT: hvd_check_world in a rehearsal that asks for an exception. */
HVD_EXPORT int32_t hvd_check_world(void);
HVD_EXPORT int32_t hvd_confirm_world(void);

/* Returns 1 if no checkpoint may be written now, as on a full disk: in a rehearsal (horovodrun
 * --inject) that says so. Else 0. */
HVD_EXPORT int32_t hvd_disk_is_full(void);

/* Tells the daemon which checkpoints this process writes; elastic jobs only. `commit`: the id of
 * the newest one's commit, 0 if there is none; `age_seconds`: of that commit, negative if it is
 * unknown; `place`: the newest one's path or URL, or the folder's if there is none; `failure`: why
 * the last write failed, one line, "" if it did not. Best effort; takes a second at most. */
HVD_EXPORT void hvd_note_checkpoints(int64_t commit, double age_seconds, const char* place,
                                     const char* failure);

/* Returns whether a component is available. "gloo": 1. "nccl": the version of the library that can
 * be loaded, e.g. 22307 for 2.23.7, or 0. "cuda": 1 if there is a driver, else 0. Others ("mpi",
 * "rocm", "ddl", "ccl"): 0. */
HVD_EXPORT int32_t hvd_built(const char* what);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* WORKER_RUNTIME_API_HVD_C_API_H_ */
