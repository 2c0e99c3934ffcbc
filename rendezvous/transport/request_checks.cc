#include "rendezvous/transport/request_checks.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/net/address.h"
#include "base/status_macros.h"
#include "base/text/names.h"

namespace hvd::rendezvous::transport {
namespace {

// An event with such a value still fits into one write to etcd, whose limit is 1.5 MiB.
constexpr size_t kLargestValue = 1 << 20;
constexpr uint64_t kMostPorts = 65535;
// A hundred years in milliseconds: sums of such times don't overflow.
constexpr uint64_t kLongestTime = uint64_t{100} * 366 * 24 * 3600 * 1000;
// More steps than a job can do: sums of them don't overflow.
constexpr uint64_t kMostSteps = uint64_t{1} << 53;
// More than a job has workers.
constexpr int kMostRanks = 1 << 20;

absl::Status CheckRange(absl::string_view what, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the ", what, " is ", value, "; from ", least, " to ", most, " are possible"));
}

absl::Status CheckTime(absl::string_view what, uint64_t milliseconds) {
  return CheckRange(what, milliseconds, 0, kLongestTime);
}

}  // namespace

absl::Status Check(const pb::JoinWorldRequest& request) {
  if (net::AddressBytes(request.address()).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the worker's address is ", text::Quoted(request.address()),
                     "; a numeric one without a port is needed, as 10.0.0.1 or fd00::1"));
  }
  RETURN_IF_ERROR(CheckRange("port", request.port(), 1, kMostPorts));
  RETURN_IF_ERROR(CheckRange("number of lost steps", request.lost_steps(), 0, kMostSteps));
  return CheckTime("lost time in ms", request.lost_time_ms());
}

absl::Status Check(const pb::ExchangeRequest& request) {
  if (request.key().empty()) return absl::InvalidArgumentError("an exchange needs a key");
  if (request.value().size() > kLargestValue) {
    return absl::InvalidArgumentError(absl::StrCat("the value for ", text::Quoted(request.key()),
                                                   " has ", request.value().size(),
                                                   " bytes, more than 1 MiB"));
  }
  // Each rank costs the answer its value, so a rank that is listed often would exhaust the memory.
  absl::flat_hash_set<uint32_t> ranks;
  for (const uint32_t rank : request.selection().ranks()) {
    if (!ranks.insert(rank).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the selection for ", text::Quoted(request.key()), " has rank ", rank, " twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const pb::ReportRequest& request) {
  if (!request.has_progress()) return absl::OkStatus();
  return CheckTime("commit's age in ms", request.progress().commit_age_ms());
}

absl::Status Check(const pb::ReportStallRequest& request) {
  for (const pb::StalledOperations& waiting : request.waiting()) {
    for (const int32_t rank : waiting.missing()) {
      if (rank < 0 || rank >= kMostRanks) {
        return absl::InvalidArgumentError(absl::StrCat("a missing rank is ", rank, "; from 0 to ",
                                                       kMostRanks - 1, " are possible"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace hvd::rendezvous::transport
