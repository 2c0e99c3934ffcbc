// The writer of a job's keys in etcd, which writes only as long as its daemon leads the job.
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

// Each write is one transaction, which compares two keys: the leader's, so that nothing is written
// by a daemon that another has replaced, whatever their clocks say; and the tail, which names the
// write before, so that a write whose answer was lost, or that arrives late, is made once and in
// its place.
//
// Thread-safe; writes are made one after another. While etcd is away a write waits, until the
// leadership is lost.
class FencedWriter {
 public:
  using Say = std::function<void(const std::string& line)>;

  // `tail`: its value at the begin of this leadership; empty: there is none. The others must
  // outlive the writer.
  FencedWriter(KeyValueStore& store, const JobKeys& keys, Leadership& leadership, std::string tail,
               Say say);

  // Makes all changes, or none. They must not concern the leader and the tail.
  // Errors:
  //   - Aborted: the leadership is lost; the changes have been made, or never will be.
  //   - Internal: etcd refuses them for good; says why.
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
