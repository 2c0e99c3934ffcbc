#include "rendezvous/membership/views/explanation.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text/duration_text.h"
#include "rendezvous/membership/decisions/free_slots.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership::views {
namespace {

std::string RanksRun(size_t count) {
  return absl::StrCat(count, count == 1 ? " rank runs" : " ranks run");
}

std::string AreText(int count) {
  if (count == 0) return "none is";
  return absl::StrCat(count, count == 1 ? " is" : " are");
}

// "; slot 0 of host b rests for 42s after 3 failures in a row"
std::string RestingText(const Parts& parts) {
  constexpr int kMost = 4;  // slots that are named
  std::string text;
  int resting = 0;
  for (const decisions::FreeSlot& free :
       decisions::FreeSlots(parts.hosts, parts.workers, parts.health, parts.last_time)) {
    if (!free.rests() || ++resting > kMost) continue;
    const std::string& host = parts.hosts[free.host].slots.host;
    absl::StrAppend(&text, "; slot ", free.slot, " of host ", host, " rests for ",
                    text::DurationText(free.rests_until - parts.last_time), " after ",
                    phrases::Count(parts.health.Failures(host, free.slot), "failure"), " in a row");
  }
  if (resting > kMost) absl::StrAppend(&text, "; ", resting - kMost, " more rest");
  if (resting > 0 && parts.epochs.next_try > parts.last_time) {
    absl::StrAppend(&text, "; the next one is tried in ",
                    text::DurationText(parts.epochs.next_try - parts.last_time));
  }
  return text;
}

// "2 slots on hosts a, b"
std::string UsableSlots(const Parts& parts) {
  int slots = 0;
  std::vector<std::string> names;
  for (const Host& host : parts.hosts) {
    if (!host.TakesPart() || host.held) continue;
    slots += host.slots.slots;
    names.push_back(host.slots.host);
  }
  return names.empty() ? "no host is there"
                       : absl::StrCat(phrases::Count(slots, "slot"), " on ", phrases::Hosts(names));
}

std::string ExplainNeed(const Parts& parts, int asked, int starting) {
  const int needed = parts.least_workers();
  std::string text = absl::StrCat("waiting for ", phrases::Count(needed, "worker"), ": ",
                                  AreText(asked), " ready, ", AreText(starting), " starting");
  if (asked + starting < needed) {
    absl::StrAppend(&text, " (", UsableSlots(parts), RestingText(parts), ")");
  }
  return text;
}

// "waiting for commit 51, which only host b has (host a takes a copy)"
std::string MissingCommitText(const Parts& parts, const Host& holder) {
  std::string how = "none of its workers is ready";
  for (const Host& host : parts.hosts) {
    if (host.copies_from != holder.commit_address || host.copies_from.empty()) continue;
    how = absl::StrCat("host ", host.slots.host, " takes a copy");
  }
  return absl::StrCat("waiting for commit ", CommitNumber(holder.commit), ", which only host ",
                      holder.slots.host, " has (", how, ")");
}

std::string ExplainElastic(const Parts& parts) {
  int asked = 0, inside = 0, starting = 0, finished_ones = 0;
  for (const Worker& worker : parts.workers) {
    if (worker.life.gone() && !worker.life.finished()) continue;
    if (worker.IsSurvivor()) ++inside;
    if (worker.join.has_value()) {
      asked += parts.standing.IsLeaving(worker) ? 0 : 1;
    } else if (parts.standing.IsLive(worker) && !worker.IsSurvivor()) {
      ++starting;
    }
    if (worker.life.finished() && worker.last_world == parts.epochs.current) ++finished_ones;
  }
  if (parts.standing.ComingTogether()) {
    const std::vector<int> late = parts.standing.LateSurvivors();
    if (late.empty() && parts.standing.OldWorldEnds() > parts.last_time) {
      return absl::StrCat("waiting until the members of world ", parts.epochs.current.value(),
                          ", which was lost as a whole, have surely ended");
    }
    if (late.empty() && parts.epochs.idle_until > parts.last_time)
      return parts.epochs.IdleText(parts.epochs.IdleInARow());
    if (late.empty() && parts.epochs.quorum_since != absl::InfiniteFuture()) {
      const Host* const holder = parts.commits.HolderAbove(parts.commits.Candidates());
      if (holder != nullptr && holder->commit > parts.commits.RestorableByAsking())
        return MissingCommitText(parts, *holder);
    }
    if (late.empty()) return ExplainNeed(parts, asked, starting);
    return absl::StrCat(
        "waiting for ", phrases::Ranks(late), " to ask for the next world",
        parts.epochs.broken.has_value() ? absl::StrCat(" (", *parts.epochs.broken, ")") : "");
  }
  std::string text = absl::StrCat(RanksRun(inside), " in world ", parts.epochs.current.value());
  if (finished_ones > 0) absl::StrAppend(&text, "; ", finished_ones, " finished");
  if (parts.epochs.changing.has_value())
    absl::StrAppend(
        &text, parts.epochs.starts_anew ? "; another world is wanted: " : "; at the next commit: ",
        *parts.epochs.changing);
  if (starting > 0) absl::StrAppend(&text, "; ", phrases::Count(starting, "worker"), " starting");
  if (asked > 0) absl::StrAppend(&text, "; ", asked, " ready to join");
  return text;
}

}  // namespace

std::string MissingText(const Parts& parts) {
  // An elastic job waits for a number of slots, not for particular hosts.
  const std::vector<std::string> missing =
      parts.elastic() ? std::vector<std::string>() : parts.hosts.MissingNames();
  if (missing.empty()) {
    const std::vector<std::string> there = parts.hosts.AttachedNames();
    const std::vector<std::string> held = parts.hosts.HeldNames();
    return absl::StrCat(
        "more hosts to attach (", parts.hosts.AttachedSlots(), " of ",
        phrases::Count(parts.start_workers(), "slot"),
        there.empty() ? "" : absl::StrCat(", on ", phrases::Hosts(there)),
        held.empty() ? "" : absl::StrCat("; ", phrases::Hosts(held), " not offered to the job"),
        ")");
  }
  const size_t expected = parts.spec.expected_hosts.size();
  return absl::StrCat(phrases::Hosts(missing), " to attach (", expected - missing.size(), " of ",
                      expected, " attached)");
}

std::string Explain(const Parts& parts) {
  std::vector<int> alive = parts.workers.RanksWhere([](const Worker& w) { return !w.life.gone(); });
  // A worker that was in no world yet may have the place of one that has not ended.
  std::sort(alive.begin(), alive.end());
  alive.erase(std::unique(alive.begin(), alive.end()), alive.end());
  if (parts.finished) return parts.verdict->summary;
  if (parts.verdict.has_value()) {
    return absl::StrCat(parts.verdict->summary, "; waiting for ", phrases::Ranks(alive),
                        " to exit");
  }
  if (!parts.started) return absl::StrCat("waiting for ", MissingText(parts));
  if (parts.ending.has_value()) {
    const bool all_asked =
        parts.standing.ComingTogether() && parts.standing.LateSurvivors().empty();
    return absl::StrCat("the job ends (", parts.ending->reason, "): ",
                        all_asked ? absl::StrCat("waiting for ", phrases::Ranks(alive), " to exit")
                                  : ExplainElastic(parts));
  }
  if (parts.elastic()) return ExplainElastic(parts);
  if (parts.root_cause.HasEnd()) {
    return absl::StrCat(parts.root_cause.Build().summary, "; waiting for its cause to show");
  }
  const std::vector<int> to_ask = parts.workers.RanksWhere(
      [](const Worker& w) { return !w.life.gone() && !w.join.has_value(); });
  const size_t asked = alive.size() - to_ask.size();
  if (asked > 0) {
    return absl::StrCat("waiting for ", phrases::Ranks(to_ask), " to call hvd.init() (", asked,
                        " of ", parts.workers.size(), ")");
  }
  const size_t exited = parts.workers.size() - alive.size();
  if (parts.epochs.current == Epoch(0)) {
    return absl::StrCat(RanksRun(alive.size()), ", none has called hvd.init()",
                        exited == 0 ? "" : absl::StrCat("; ", exited, " exited with code 0"));
  }
  if (parts.epochs.broken.has_value())
    return absl::StrCat("world ", parts.epochs.current.value(),
                        " is broken: ", *parts.epochs.broken);
  const size_t inside =
      parts.workers.RanksWhere([](const Worker& w) { return w.life.member(); }).size();
  const size_t outside = parts.workers.size() - inside;
  if (inside == 0) {
    return absl::StrCat("all ranks finished world ", parts.epochs.current.value(), "; waiting for ",
                        phrases::Ranks(alive), " to exit");
  }
  return absl::StrCat(RanksRun(inside), " in world ", parts.epochs.current.value(),
                      outside == 0 ? "" : absl::StrCat("; ", outside, " finished"));
}

}  // namespace hvd::rendezvous::membership::views
