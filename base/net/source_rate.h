// A token bucket per source address, which bounds the handshakes that strangers can ask for.
#ifndef BASE_NET_SOURCE_RATE_H_
#define BASE_NET_SOURCE_RATE_H_

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace hvd::net {

// A handshake costs the server a signature, and the stranger nothing. So that a crowd from one
// address leaves the processor to others, each source has a bucket of tokens, one per handshake.
// The tokens of peers that prove themselves come back: a source whose peers all belong to the job
// may have any number of them. Pure; not thread-safe.
class SourceRate {
 public:
  // A bucket has `burst` tokens at first, and gets `per_second` as long as it has fewer.
  SourceRate(double per_second, double burst) : per_second_(per_second), burst_(burst) {}

  // Whether another peer of `source` (see PeerSource) may begin a handshake. `now` never goes back.
  bool Take(const std::string& source, absl::Time now);
  // A peer for which Take has returned true has proved itself.
  void GiveBack(const std::string& source);

  // How many buckets are kept; full ones need not be.
  size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    double tokens;
    absl::Time filled;
  };

  void Fill(Bucket& bucket, absl::Time now) const;
  void ForgetFullOnes(absl::Time now);

  const double per_second_;
  const double burst_;
  std::map<std::string, Bucket> buckets_;
  size_t next_cleaning_ = 1024;  // the number of buckets at which full ones are looked for
};

inline bool SourceRate::Take(const std::string& source, absl::Time now) {
  if (buckets_.size() >= next_cleaning_) ForgetFullOnes(now);
  Bucket& bucket = buckets_.try_emplace(source, Bucket{burst_, now}).first->second;
  Fill(bucket, now);
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

inline void SourceRate::GiveBack(const std::string& source) {
  const auto found = buckets_.find(source);
  if (found != buckets_.end()) found->second.tokens = std::min(burst_, found->second.tokens + 1);
}

inline void SourceRate::Fill(Bucket& bucket, absl::Time now) const {
  const double more = per_second_ * absl::ToDoubleSeconds(now - bucket.filled);
  bucket.tokens = std::min(burst_, bucket.tokens + std::max(0.0, more));
  bucket.filled = now;
}

// A look at all of them pays off only once there are twice as many as were needed the last time.
inline void SourceRate::ForgetFullOnes(absl::Time now) {
  for (auto entry = buckets_.begin(); entry != buckets_.end();) {
    Fill(entry->second, now);
    entry = entry->second.tokens >= burst_ ? buckets_.erase(entry) : std::next(entry);
  }
  next_cleaning_ = std::max<size_t>(1024, 2 * buckets_.size());
}

}  // namespace hvd::net

#endif  // BASE_NET_SOURCE_RATE_H_
