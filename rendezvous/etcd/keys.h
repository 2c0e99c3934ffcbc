// The layout of a job's keys in etcd. Pure.
//
//   /horovod/JOB/leader        who leads the job; goes with its lease
//   /horovod/JOB/tail          names the newest write
//   /horovod/JOB/job           a pb::journal::Job: identity and secrets
//   /horovod/JOB/head          a pb::journal::EtcdHead: what the journal begins with
//   /horovod/JOB/snap/N/CHUNK  pieces of the snapshot of this number
//   /horovod/JOB/log/N         a pb::journal::EtcdEvents
#ifndef RENDEZVOUS_ETCD_KEYS_H_
#define RENDEZVOUS_ETCD_KEYS_H_

#include <cstdint>
#include <string>

namespace hvd::rendezvous::etcd {

// The keys from `begin` up to `end`, which is not one of them.
struct KeyRange {
  std::string begin;
  std::string end;
};

class JobKeys {
 public:
  // `job`: a name without a slash.
  explicit JobKeys(const std::string& job) : prefix_("/horovod/" + job + "/") {}

  std::string Leader() const { return prefix_ + "leader"; }
  std::string Tail() const { return prefix_ + "tail"; }
  std::string Identity() const { return prefix_ + "job"; }
  std::string Head() const { return prefix_ + "head"; }

  // The order of keys is that of numbers.
  std::string Events(uint64_t number) const;
  std::string Chunk(uint64_t snapshot, uint64_t chunk) const;

  // Events of these numbers, the last one excluded.
  KeyRange EventsBetween(uint64_t first, uint64_t end) const;
  KeyRange EventsFrom(uint64_t first) const;
  KeyRange ChunksOf(uint64_t snapshot) const;
  KeyRange SnapshotsBefore(uint64_t snapshot) const;
  KeyRange SnapshotsAfter(uint64_t snapshot) const;

 private:
  std::string Snapshot(uint64_t snapshot) const;

  const std::string prefix_;
};

}  // namespace hvd::rendezvous::etcd

#endif  // RENDEZVOUS_ETCD_KEYS_H_
