// A fenced writer of a job's keys in etcd: its writes succeed only while its daemon leads the job.
#ifndef RENDEZVOUS_ETCD_FENCED_WRITER_H_
#define RENDEZVOUS_ETCD_FENCED_WRITER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "proto/etcd.pb.h"
#include "rendezvous/etcd/key_value_store.h"
#include "rendezvous/etcd/keys.h"
#include "rendezvous/etcd/leadership.h"
#include "rendezvous/etcd/trouble.h"

namespace hvd::rendezvous::etcd {

// Each write is one transaction that compares two keys:
// - the leader's key, so that a replaced daemon can't write, whatever its clock says;
// - the tail, which names the previous write, so that a write that is repeated after a lost answer,
//   or that arrives late, is applied exactly once and in order.
//
// Thread-safe; writes are serialized. While etcd is unreachable a write retries, until the
// leadership is lost.
class FencedWriter {
 public:
  using Say = std::function<void(const std::string& line)>;

  // `tail` is the value of the tail at the start of this leadership; empty: there is no such key.
  // The references must outlive the writer.
  FencedWriter(KeyValueStore& store, const JobKeys& keys, Leadership& leadership, std::string tail,
               Say say);

  // Applies all changes atomically. REQUIRES: they do not touch the leader's key and the tail.
  // Errors:
  //   - Aborted: the leadership was lost. If etcd's answer is missing, the changes may have been
  //     applied, or may still be, until the leader's key is gone.
  //   - Internal: etcd rejects the changes permanently; says why.
  //   - Cancelled: this daemon has given the leadership up.
  absl::Status Write(const std::vector<etcdserverpb::RequestOp>& changes);

 private:
  etcdserverpb::TxnRequest Transaction(const std::vector<etcdserverpb::RequestOp>& changes,
                                       const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status Judge(const etcdserverpb::TxnResponse& response, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  KeyValueStore& store_;
  const JobKeys& keys_;
  Leadership& leadership_;
  const Say say_;
  absl::Mutex mu_;
  std::string tail_ ABSL_GUARDED_BY(mu_);
  uint64_t writes_ ABSL_GUARDED_BY(mu_) = 0;
  Trouble trouble_ ABSL_GUARDED_BY(mu_);
};

// Changes for Write.
etcdserverpb::RequestOp Put(const std::string& key, const std::string& value);
etcdserverpb::RequestOp Delete(const KeyRange& range);

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_FENCED_WRITER_H_
