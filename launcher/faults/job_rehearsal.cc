#include "launcher/faults/job_rehearsal.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/agent.pb.h"
#include "rehearsal/rehearsal_report.h"

namespace hvd::launcher::faults {
namespace {

pb::Fault::Kind KindOf(rehearsal::FaultKind kind) {
  using Kind = rehearsal::FaultKind;
  switch (kind) {
    case Kind::kKill:
      return pb::Fault::KILL;
    case Kind::kStop:
      return pb::Fault::STOP;
    case Kind::kException:
      return pb::Fault::EXCEPTION;
    case Kind::kSlowRank:
      return pb::Fault::SLOW_RANK;
    case Kind::kSlowLink:
      return pb::Fault::SLOW_LINK;
    case Kind::kCutLink:
      return pb::Fault::CUT_LINK;
    case Kind::kWrongGradientValue:
      return pb::Fault::WRONG_VALUE;
    case Kind::kFullDisk:
      return pb::Fault::FULL_DISK;
    case Kind::kPreemption:
      return pb::Fault::PREEMPTION;
    case Kind::kLostHost:
      return pb::Fault::LOST_HOST;
  }
  return pb::Fault::NONE;
}

uint32_t Milliseconds(absl::Duration time) {
  return static_cast<uint32_t>(absl::ToInt64Milliseconds(time));
}

}  // namespace

JobRehearsal::JobRehearsal(const plan::RehearsalPlan& plan,
                           const rendezvous::policy::ElasticSpec& spec,
                           rendezvous::server::Server& server, Clock& clock, Say say)
    : server_(server),
      clock_(clock),
      say_(std::move(say)),
      seed_(plan.campaign.seed),
      run_(plan.campaign, spec.drain_grace, spec.on_corruption, clock.Now()),
      next_look_(clock.Now()) {}

void JobRehearsal::Take(const rendezvous::membership::Notice& notice, absl::Time when) {
  run_.Observe(notice, when);
}

void JobRehearsal::Answer(uint64_t order, const std::string& problem, absl::Time when) {
  run_.Answer(order, problem, when);
}

absl::Time JobRehearsal::NextDue() const {
  return run_.is_over() ? absl::InfiniteFuture() : next_look_;
}

void JobRehearsal::Look() {
  const absl::Time now = clock_.Now();
  next_look_ = now + kPause;
  const auto view = server_.Describe();
  run_.Observe(view, now);
  const std::optional<rehearsal::Order> order = run_.Next(view, now);
  if (order.has_value()) Send(*order);
  if (run_.is_over()) {
    say_(absl::StrCat("rehearsal: ", run_.CountAsPromised(), " of ", run_.rows().size(),
                      " faults as promised; no more are due"));
  }
}

void JobRehearsal::Send(const rehearsal::Order& order) {
  say_(absl::StrCat("rehearsal: ", order.text));
  pb::Fault fault;
  fault.set_id(order.id);
  fault.set_kind(KindOf(order.kind));
  fault.set_worker_id(order.worker.value());
  const bool drains = order.kind == rehearsal::FaultKind::kPreemption;
  fault.set_duration_ms(Milliseconds(drains ? order.grace : order.lasts));
  fault.set_delay_ms(Milliseconds(order.delay));
  if (!server_.Harm(order.host, fault)) run_.GiveUp(order.id, "no agent of the host was attached");
}

JobRehearsal::End JobRehearsal::Finish(const rendezvous::membership::Membership::View& view,
                                       int exit_code, bool has_reason) {
  run_.Observe(view, clock_.Now());
  run_.End();
  rehearsal::RehearsalReport report;
  report.rows = run_.rows();
  report.seed = seed_;
  report.job_exit_code = exit_code;
  const bool is_good = exit_code == 0 && run_.AllAsPromised();
  report.exit_code = is_good ? 0 : has_reason ? exit_code : kNotAsPromised;
  return {rehearsal::ReportTable(report), rehearsal::ReportJson(report), report.exit_code};
}

}  // namespace hvd::launcher::faults
