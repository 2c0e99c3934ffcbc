#include "rendezvous/membership/views/stall_text.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/text/duration_text.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership::views {
namespace {

// The number of ranks that are described in one line; for further ranks only the numbers are
// listed.
constexpr size_t kMostDescribed = 4;

std::string Text(absl::Duration waited) {
  const absl::Duration unit = waited < absl::Seconds(1) ? absl::Milliseconds(1) : absl::Seconds(1);
  return text::DurationText(absl::Trunc(waited, unit));
}

// "rank 1 on host b, which is at ..."
std::string Describe(int rank, const Stall& stall, const World& world) {
  const WorldMember& member = world.members[rank];
  const auto sample = stall.samples.find(member.worker.id);
  const std::string doing =
      sample == stall.samples.end() ? "" : absl::StrCat(", which ", sample->second.doing);
  return phrases::RankOnHost(rank, member.host) + doing;
}

}  // namespace

std::vector<int> MissingRanks(const StallReported& report) {
  std::set<int> ranks;
  for (const StalledOperations& operations : report.waiting) {
    ranks.insert(operations.missing.begin(), operations.missing.end());
  }
  return {ranks.begin(), ranks.end()};
}

std::string StallText(const Stall& stall, const World& world) {
  std::vector<std::string> parts;
  for (const StalledOperations& operations : stall.report.waiting) {
    std::vector<std::string> described;
    std::vector<int> others;
    for (const int rank : operations.missing) {
      if (described.size() < kMostDescribed) {
        described.push_back(Describe(rank, stall, world));
      } else {
        others.push_back(rank);
      }
    }
    if (!others.empty()) described.push_back(phrases::Ranks(others));
    parts.push_back(absl::StrCat("in ", phrases::OneLine(operations.what), ", waiting for ",
                                 absl::StrJoin(described, ", and for ")));
  }
  return absl::StrCat("Stalled for ", Text(stall.report.waited), " ", absl::StrJoin(parts, "; "));
}

std::string EvictionText(const Stall& stall, WorkerId worker) {
  const auto sample = stall.samples.find(worker);
  const std::string doing =
      sample == stall.samples.end() ? "" : absl::StrCat("; it ", sample->second.doing);
  return absl::StrCat("stalled: the others waited for ", Text(stall.report.waited), " for it in ",
                      phrases::OneLine(stall.report.waiting.front().what), doing);
}

Verdict StallVerdict(const Stall& stall, const World& world) {
  Verdict failure;
  failure.exit_code = 1;
  failure.rank = MissingRanks(stall.report).front();
  failure.host = world.members[failure.rank].host;
  failure.exit_meaning = "stalled";
  failure.summary = StallText(stall, world);
  return failure;
}

}  // namespace hvd::rendezvous::membership::views
