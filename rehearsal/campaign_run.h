// A campaign that is carried out: which fault is due, and whether the job did what is promised for
// it. Pure.
#ifndef REHEARSAL_CAMPAIGN_RUN_H_
#define REHEARSAL_CAMPAIGN_RUN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "base/settings/on_corruption.h"
#include "rehearsal/campaign.h"
#include "rehearsal/fault_kinds.h"
#include "rendezvous/membership/events.h"
#include "rendezvous/membership/membership.h"

namespace hvd::rehearsal {

// A fault that is to be done now.
struct Order {
  uint64_t id = 0;  // from 1
  FaultKind kind = FaultKind::kKill;
  std::string host;
  WorkerId worker;  // 0: it is about the host
  absl::Duration lasts;
  absl::Duration delay;
  absl::Duration grace;
  std::string text;  // "kill of rank 2 on node1, after commit 20"
};

enum class Verdict { kAsPromised, kNotAsPromised, kNotDone };
absl::string_view NameOf(Verdict verdict);  // "as promised"

// What came of a fault.
struct Row {
  FaultKind kind = FaultKind::kKill;
  std::string target;  // "rank 2 on node1"; as in the campaign if it was never due
  std::string when;    // "commit 20, 31.5 s"; as in the campaign if it was never due
  std::string expected;
  std::string happened;
  std::optional<absl::Duration> took;   // from the fault to the commit after it
  std::optional<absl::Duration> limit;  // for that
  Verdict verdict = Verdict::kNotDone;
};

// One fault at a time: the next one waits until the job has done what is promised, or its time is
// over, and until training goes on. Not thread-safe.
class CampaignRun {
 public:
  using View = rendezvous::membership::Membership::View;
  using Notice = rendezvous::membership::Notice;

  // `grace` is the job's own, of a drain; `on_corruption` what it does about wrong values.
  CampaignRun(Campaign campaign, absl::Duration grace, settings::OnCorruption on_corruption,
              absl::Time now);

  // Take what happens in the job, in the order of its time. Views come often: a commit is known
  // from the first one that has it.
  void Observe(const Notice& notice, absl::Time when);
  void Observe(const View& view, absl::Time now);
  // The agent's answer to an order. `problem`: why it could not be done; empty: it was.
  void Answer(uint64_t order, const std::string& problem, absl::Time now);

  // The fault that is to be done now, if one is due. It counts as ordered.
  std::optional<Order> Next(const View& view, absl::Time now);
  // The order could not be sent.
  void GiveUp(uint64_t order, const std::string& problem) { Answer(order, problem, start_); }

  // The job has ended. Faults that were not judged are not as promised.
  void End();

  bool is_over() const { return !active_.has_value() && waiting_ == 0; }
  // In the order of the campaign; complete after End.
  const std::vector<Row>& rows() const { return rows_; }
  size_t CountAsPromised() const;
  bool AllAsPromised() const { return CountAsPromised() == rows_.size(); }

 private:
  // The fault that was ordered last.
  struct Active {
    size_t index = 0;
    Order order;
    absl::Time ordered_at;
    std::optional<absl::Time> done_at;  // the agent has said so
    Epoch epoch;                        // of the world that it hit
    uint64_t commit = 0;                // the newest then
    uint64_t checkpoint = 0;
    absl::Duration limit;
    // What has been seen since.
    bool has_failed = false;  // the worker, or the host
    Epoch broken = Epoch(0);  // the world that broke
    std::string why_broken;
    uint64_t lost_commits = 0;
    bool is_draining = false, has_left = false, has_overrun = false;
    std::string disk_failure;
  };
  struct Target {
    std::string host;
    WorkerId worker;
    int rank = -1;
  };

  Expectation ExpectationOf(const Fault& fault) const;
  std::string ExpectedText(const Fault& fault) const;
  bool IsSteady(const View& view) const;
  bool IsDue(const Fault& fault, const View& view, absl::Time now) const;
  // nullopt: there is none now. `problem`: why the fault can't happen to it now; empty: it can.
  std::optional<Target> FindTarget(size_t index, const View& view, std::string* problem) const;
  std::string WhyImpossible(const Fault& fault, const Target& target, const View& view) const;
  absl::Duration LimitOf(const Fault& fault, const Target& target, const View& view) const;
  absl::Time BeganAt(const Active& active) const;  // the harm
  absl::Time EndOf(const Active& active) const;    // of the harm
  void NoteCommit(const View& view, absl::Time now);
  void Judge(const View& view, absl::Time now);
  // Each returns whether the fault was judged.
  bool JudgeNextWorld(const View& view);
  bool JudgeGoesOn(const View& view);
  bool JudgeLeavesWell(const View& view);
  bool JudgeDisk(const View& view);
  void Conclude(Verdict verdict, const std::string& happened,
                std::optional<absl::Time> recovered_at = std::nullopt);
  bool HasCommitIn(const View& view, Epoch after) const;

  const Campaign campaign_;
  const absl::Duration grace_;
  const settings::OnCorruption on_corruption_;
  const absl::Time start_;
  std::vector<Row> rows_;
  std::vector<bool> is_waiting_;  // by fault
  size_t waiting_;
  std::optional<Active> active_;
  absl::Time trains_since_ = absl::InfiniteFuture();
  std::map<uint64_t, uint64_t> began_with_;  // the commit, by epoch
  uint64_t newest_commit_ = 0;
  Epoch newest_epoch_ = Epoch(0);
  absl::Time committed_at_ = absl::InfinitePast();
  absl::Duration longest_gap_ = absl::ZeroDuration();  // between two commits of a world
};

}  // namespace hvd::rehearsal

#endif  // REHEARSAL_CAMPAIGN_RUN_H_
