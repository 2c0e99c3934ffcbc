// The layout of a job's keys in etcd. Pure.
//
//   /horovod/JOB/leader        the name of the leader; attached to its lease
//   /horovod/JOB/tail          the name of the newest write
//   /horovod/JOB/job           a pb::journal::Job: identity and secrets
//   /horovod/JOB/head          a pb::journal::EtcdHead: the head of the journal
//   /horovod/JOB/snap/N/CHUNK  the chunks of snapshot N
//   /horovod/JOB/log/N         a pb::journal::EtcdEvents
#ifndef RENDEZVOUS_ETCD_KEYS_H_
#define RENDEZVOUS_ETCD_KEYS_H_

#include <cstdint>
#include <string>

namespace hvd::rendezvous::etcd {

// The half-open range of keys [begin, end).
struct KeyRange {
  std::string begin;
  std::string end;
};

// The prefix of all keys of the job that has this key.
std::string JobPrefixOf(const std::string& key);

// The leader that a leader's key names, for a message: on one line, with an end.
std::string LeaderText(const std::string& value);

class JobKeys {
 public:
  // `job` must not contain a slash.
  explicit JobKeys(const std::string& job);

  std::string Leader() const { return prefix_ + "leader"; }
  std::string Tail() const { return prefix_ + "tail"; }
  std::string Identity() const { return prefix_ + "job"; }
  std::string Head() const { return prefix_ + "head"; }

  // Keys sort in the order of their numbers.
  std::string Events(uint64_t number) const;
  std::string Chunk(uint64_t snapshot, uint64_t chunk) const;

  // The events with numbers in [first, end).
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
