#include "collectives/communicator_key_exchange.h"

#include <cstdint>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd::collectives {
namespace {

constexpr uint64_t kMostBytes = 1 << 20;

}  // namespace

absl::StatusOr<std::vector<std::string>> CommunicatorKeyExchange::AllGather(
    absl::string_view key, absl::string_view value, absl::Duration timeout) {
  const CallOptions options = {timeout};
  const size_t size = communicator_.size();
  const uint64_t own_bytes = value.size();
  // The lengths first: an allgather needs the sizes of all ranks' values.
  std::vector<uint64_t> lengths(size);
  RETURN_IF_ERROR(communicator_.AllGather(&own_bytes, lengths.data(),
                                          std::vector<size_t>(size, sizeof(own_bytes)), options));
  // Unless the communicator encrypts, they may have been changed on the way. Unchecked, their sum
  // could overflow, and the values would be written beyond the memory below.
  for (size_t rank = 0; rank < size; ++rank) {
    if (lengths[rank] <= kMostBytes) continue;
    return absl::InternalError(
        absl::StrCat("rank ", rank, " offers a value of ", lengths[rank], " bytes for ", key));
  }
  const std::vector<size_t> bytes(lengths.begin(), lengths.end());
  std::string all(std::accumulate(bytes.begin(), bytes.end(), size_t{0}), '\0');
  RETURN_IF_ERROR(communicator_.AllGather(value.data(), &all[0], bytes, options));
  std::vector<std::string> values;
  size_t offset = 0;
  for (const size_t length : bytes) {
    values.push_back(all.substr(offset, length));
    offset += length;
  }
  return values;
}

}  // namespace hvd::collectives
