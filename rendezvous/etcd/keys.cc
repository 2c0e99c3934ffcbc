#include "rendezvous/etcd/keys.h"

#include "absl/strings/str_format.h"
#include "base/text/names.h"
#include "base/text/shortened.h"

namespace hvd::rendezvous::etcd {
namespace {

// etcd orders keys by their bytes. Leading zeros, up to the 20 digits of the largest number, make
// that the numeric order, in which ranges are read.
std::string Digits(uint64_t number) { return absl::StrFormat("%020d", number); }

constexpr char kRoot[] = "/horovod/";

}  // namespace

std::string JobPrefixOf(const std::string& key) {
  return key.substr(0, key.find('/', sizeof(kRoot) - 1) + 1);
}

std::string LeaderText(const std::string& value) {
  constexpr size_t kLongest = 255;
  return text::Shortened(text::OnOneLine(value), kLongest);
}

JobKeys::JobKeys(const std::string& job) : prefix_(kRoot + job + "/") {}

std::string JobKeys::Events(uint64_t number) const { return prefix_ + "log/" + Digits(number); }

std::string JobKeys::Snapshot(uint64_t snapshot) const {
  return prefix_ + "snap/" + Digits(snapshot);
}

std::string JobKeys::Chunk(uint64_t snapshot, uint64_t chunk) const {
  return Snapshot(snapshot) + "/" + Digits(chunk);
}

KeyRange JobKeys::EventsBetween(uint64_t first, uint64_t end) const {
  return {Events(first), Events(end)};
}

// '0' follows '/' in ASCII, so it ends the range of keys with this prefix.
KeyRange JobKeys::EventsFrom(uint64_t first) const { return {Events(first), prefix_ + "log0"}; }

KeyRange JobKeys::ChunksOf(uint64_t snapshot) const {
  return {Snapshot(snapshot) + "/", Snapshot(snapshot) + "0"};
}

KeyRange JobKeys::SnapshotsBefore(uint64_t snapshot) const {
  return {prefix_ + "snap/", Snapshot(snapshot)};
}

KeyRange JobKeys::SnapshotsAfter(uint64_t snapshot) const {
  return {Snapshot(snapshot) + "0", prefix_ + "snap0"};
}

}  // namespace hvd::rendezvous::etcd
