#include "rendezvous/server/rendezvous_service.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crypto.h"
#include "base/failpoint/failpoint.h"
#include "base/net/local_network.h"
#include "base/text/duration_text.h"
#include "base/text/utf8.h"
#include "rendezvous/journal/request_event.h"
#include "rendezvous/reporting/checkpoint_text.h"
#include "rendezvous/reporting/event_log.h"
#include "rendezvous/transport/placement_message.h"
#include "rendezvous/transport/request_checks.h"

namespace hvd::rendezvous::server {
namespace {

// The grace of the workers of a static job that is stopped.
constexpr absl::Duration kStopGrace = absl::Seconds(5);

membership::WorkerKey ToKey(const pb::WorkerIdentity& worker) {
  return {WorkerId(worker.worker_id()), Incarnation(worker.incarnation())};
}

void ToProto(const membership::WorldMember& member, pb::Member& proto) {
  proto.mutable_worker()->set_worker_id(member.worker.id.value());
  proto.mutable_worker()->set_incarnation(member.worker.incarnation.value());
  proto.set_host(member.host);
  proto.set_address(member.address);
  proto.set_port(static_cast<uint32_t>(member.port));
  *proto.mutable_placement() = transport::ToMessage(member.place);
  proto.set_commit(member.commit);
}

pb::WatchEpochResponse::Change ToProto(membership::EpochChange change) {
  switch (change) {
    case membership::EpochChange::kBroken:
      return pb::WatchEpochResponse::EPOCH_BROKEN;
    case membership::EpochChange::kChanging:
      return pb::WatchEpochResponse::EPOCH_CHANGING;
    case membership::EpochChange::kJobOver:
      return pb::WatchEpochResponse::JOB_OVER;
  }
  return pb::WatchEpochResponse::CHANGE_UNSPECIFIED;
}

membership::ProgressReported ProgressEvent(membership::CallId call,
                                           const pb::ReportRequest& request) {
  const pb::Progress& progress = request.progress();
  membership::ProgressReported event{call, ToKey(request.worker()), Epoch(request.epoch()),
                                     progress.commit(),
                                     absl::Milliseconds(progress.commit_age_ms())};
  if (progress.has_began_with()) event.began_with = progress.began_with();
  if (progress.has_checkpoints()) {
    const pb::Checkpoints& told = progress.checkpoints();
    event.checkpoints = {
        told.commit(),
        told.has_age_ms() ? absl::Milliseconds(told.age_ms()) : absl::InfiniteDuration(),
        told.place(), told.failure()};
  }
  return event;
}

uint64_t Milliseconds(absl::Duration duration) {
  return static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Milliseconds(duration), 0));
}

void ToProto(const membership::Membership::HostView& view, absl::Time now, pb::HostStatus& proto) {
  proto.set_host(view.host.host);
  proto.set_slots(static_cast<uint32_t>(view.host.slots));
  proto.set_attached(view.attached);
  proto.set_machine(view.host.machine);
  proto.set_condition(view.condition);
  if (view.leaves_at != absl::InfiniteFuture()) {
    proto.set_condition(
        absl::StrCat(view.condition, "; what is left is stopped in ",
                     text::DurationText(absl::Ceil(
                         std::max(view.leaves_at - now, absl::ZeroDuration()), absl::Seconds(1)))));
  }
  for (const membership::Membership::WorkerView& worker : view.workers) {
    pb::WorkerStatus& added = *proto.add_workers();
    added.set_worker_id(worker.id.value());
    added.set_rank(worker.rank);
    added.set_pid(worker.pid);
    added.set_state(std::string(StateName(worker.state)));
  }
}

void ToProto(const reporting::JobReport& report, pb::GetStatusResponse& proto) {
  const membership::Membership::View& view = report.view;
  proto.set_job_id(report.job_id);
  proto.set_epoch(view.epoch.value());
  proto.set_state(std::string(StateName(view.state)));
  proto.set_explanation(view.explanation);
  for (const membership::Membership::HostView& host : view.hosts)
    ToProto(host, report.now, *proto.add_hosts());
  proto.set_min_workers(view.min_workers);
  proto.set_max_workers(view.max_workers);
  proto.set_size(view.size);
  proto.set_worlds(report.history.count(membership::Notice::Kind::kWorldFormed));
  proto.set_failures(view.failures);
  proto.set_failures_left(view.failures_left);
  if (view.waits_until != absl::InfiniteFuture()) {
    proto.set_wait_left_ms(Milliseconds(view.waits_until - report.now));
  }
  proto.set_commit(view.commit);
  if (view.committed_at != absl::InfinitePast()) {
    proto.set_commit_age_ms(Milliseconds(report.now - view.committed_at));
  }
  proto.set_lost_steps(view.lost_steps);
  proto.set_lost_ms(Milliseconds(view.lost_time));
  proto.set_checkpoint(reporting::CheckpointText(view));
  proto.set_checkpoint_commit(view.checkpoint);
  proto.set_elastic(view.elastic);
  proto.set_commit_rate(view.commit_rate);
  proto.set_daemon_pid(getpid());
  proto.set_daemon_host(text::ToUtf8(net::OwnHostName()));
  for (const reporting::JobHistory::Entry& entry : report.history.recent()) {
    pb::Happening& happening = *proto.add_recent();
    happening.set_kind(std::string(reporting::NoticeKindName(entry.notice.kind)));
    happening.set_text(entry.notice.text);
    happening.set_age_ms(Milliseconds(report.now - entry.time));
  }
}

}  // namespace

RendezvousService::RendezvousService(RendezvousServiceOptions options)
    : options_(std::move(options)),
      calls_([this](membership::CallId call) { options_.post(membership::CallCancelled{call}); }) {}

// Before the machine, so that an impossible value is not written to the journal. Ends the call if
// the request has one.
template <typename Request>
bool RendezvousService::Accepts(const ParkedCall& call, const Request& request) {
  const absl::Status status = transport::Check(request);
  if (!status.ok()) calls_.Finish(call.id(), status);
  return status.ok();
}

grpc::ServerUnaryReactor* RendezvousService::JoinWorld(grpc::CallbackServerContext* context,
                                                       const pb::JoinWorldRequest* request,
                                                       pb::JoinWorldResponse* response) {
  ParkedCall* const call = calls_.Park(*context, *request, response);
  if (!Accepts(*call, *request)) return call;
  FAILPOINT("daemon.join.received");
  options_.post(journal::ToEvent<membership::JoinRequested>(call->id(), *request));
  return call;
}

grpc::ServerUnaryReactor* RendezvousService::GetMembers(grpc::CallbackServerContext* context,
                                                        const pb::GetMembersRequest* request,
                                                        pb::GetMembersResponse* response) {
  ParkedCall* const call = calls_.Park(*context, *request, response);
  options_.world(
      [this, id = call->id(), epoch = Epoch(request->epoch())](const membership::WorldPtr& world) {
        // The machine has only the newest world. A caller of an older epoch learns from its watch
        // that the epoch is over.
        if (world->epoch != epoch) {
          return calls_.Finish(id, absl::FailedPreconditionError(absl::StrCat(
                                       "world ", epoch.value(), " is not the newest one, which is ",
                                       world->epoch.value())));
        }
        calls_.Answer<pb::GetMembersResponse>(id, [&](pb::GetMembersResponse& response) {
          for (const membership::WorldMember& member : world->members)
            ToProto(member, *response.add_members());
        });
      });
  return call;
}

grpc::ServerUnaryReactor* RendezvousService::WatchEpoch(grpc::CallbackServerContext* context,
                                                        const pb::WatchEpochRequest* request,
                                                        pb::WatchEpochResponse* response) {
  ParkedCall* const call = calls_.Park(*context, *request, response);
  options_.post(journal::ToEvent<membership::WatchRequested>(call->id(), *request));
  return call;
}

grpc::ServerUnaryReactor* RendezvousService::Exchange(grpc::CallbackServerContext* context,
                                                      const pb::ExchangeRequest* request,
                                                      pb::ExchangeResponse* response) {
  // Kept in the response until the answer: Handle has the response, but not the request, and the
  // machine knows nothing of selections.
  if (request->has_selection()) *response->mutable_selection() = request->selection();
  ParkedCall* const call = calls_.Park(*context, *request, response);
  if (!Accepts(*call, *request)) return call;
  options_.post(journal::ToEvent<membership::ExchangeRequested>(call->id(), *request));
  return call;
}

grpc::ServerUnaryReactor* RendezvousService::Report(grpc::CallbackServerContext* context,
                                                    const pb::ReportRequest* request,
                                                    pb::ReportResponse* response) {
  ParkedCall* const call = calls_.Park(*context, *request, response);
  if (!Accepts(*call, *request)) return call;
  membership::Reported reported;
  reported.call = call->id();
  reported.worker = ToKey(request->worker());
  reported.epoch = Epoch(request->epoch());
  switch (request->word_case()) {
    case pb::ReportRequest::kFinished:
      FAILPOINT("daemon.finished.received");
      reported.finished = true;
      break;
    case pb::ReportRequest::kFailure:
      reported.failure = request->failure().message();
      reported.caused_by_peer = request->failure().caused_by_peer();
      reported.commit = request->failure().commit();
      reported.ends_job = request->failure().ends_job();
      break;
    case pb::ReportRequest::kProgress:
      if (request->progress().has_checkpoints()) FAILPOINT("daemon.checkpoint.received");
      options_.post(ProgressEvent(call->id(), *request));
      return call;
    case pb::ReportRequest::WORD_NOT_SET:
      calls_.Finish(call->id(), absl::InvalidArgumentError("a report needs a word"));
      return call;
  }
  options_.post(std::move(reported));
  return call;
}

grpc::ServerUnaryReactor* RendezvousService::ReportStall(grpc::CallbackServerContext* context,
                                                         const pb::ReportStallRequest* request,
                                                         pb::ReportStallResponse* response) {
  ParkedCall* const call = calls_.Park(*context, *request, response);
  if (!Accepts(*call, *request)) return call;
  if (!options_.tells && !request->give_up()) {
    calls_.Finish(call->id(), absl::FailedPreconditionError("nobody would be told"));
    return call;
  }
  options_.post(journal::ToEvent<membership::StallReported>(call->id(), *request));
  return call;
}

grpc::ServerUnaryReactor* RendezvousService::GetStatus(grpc::CallbackServerContext* context,
                                                       const pb::GetStatusRequest* request,
                                                       pb::GetStatusResponse* response) {
  ParkedCall* const call = calls_.Park(*context, *request, response);
  options_.report([this, id = call->id()](const reporting::JobReport& report) {
    calls_.Answer<pb::GetStatusResponse>(id, [&](pb::GetStatusResponse& response) {
      ToProto(report, response);
      response.set_command(options_.command());
    });
  });
  return call;
}

grpc::ServerUnaryReactor* RendezvousService::Drain(grpc::CallbackServerContext* context,
                                                   const pb::DrainRequest* request,
                                                   pb::DrainResponse* response) {
  ParkedCall* const call = calls_.Park(*context, *request, response);
  membership::HostDraining draining{request->host(), absl::Milliseconds(request->grace_ms()),
                                    "it was asked to"};
  // Checked on the machine's thread, so that an administrator's error is an answer to this call,
  // and not an event in the journal.
  options_.report([this, id = call->id(), draining](const reporting::JobReport& report) {
    const absl::Status status = CheckDrain(draining.host, report.view);
    if (status.ok()) options_.post(draining);
    calls_.Finish(id, status);
  });
  return call;
}

grpc::ServerUnaryReactor* RendezvousService::Stop(grpc::CallbackServerContext* context,
                                                  const pb::StopRequest* request,
                                                  pb::StopResponse* response) {
  ParkedCall* const call = calls_.Park(*context, *request, response);
  options_.report(
      [this, id = call->id(), stop = StopEvent(*request)](const reporting::JobReport& report) {
        // Posted also if the job is over: what is left of it may have to end at once.
        options_.post(stop);
        calls_.Answer<pb::StopResponse>(id, [&](pb::StopResponse& response) {
          response.set_job_id(report.job_id);
          response.set_was_over(IsOver(report.view.state));
          response.set_at_next_commit(stop.at_commit && report.view.some_train);
          if (stop.at_commit && !report.view.some_train) return;  // nobody is awaited
          response.set_grace_ms(static_cast<uint32_t>(Milliseconds(stop.grace)));
        });
      });
  return call;
}

membership::StopRequested RendezvousService::StopEvent(const pb::StopRequest& request) const {
  membership::StopRequested stop;
  stop.reason = "horovodrun stop";
  stop.exit_code = 128 + SIGTERM;
  if (request.at_once()) return stop;
  stop.at_commit = options_.elastic;
  stop.keeps_world = !options_.elastic;
  stop.grace = options_.elastic ? options_.drain_grace : kStopGrace;
  return stop;
}

absl::Status RendezvousService::CheckDrain(const std::string& host,
                                           const membership::Membership::View& view) const {
  if (!options_.elastic) {
    return absl::FailedPreconditionError(
        "the job is not elastic: it can't go on without one of its hosts");
  }
  if (IsOver(view.state)) {
    return absl::FailedPreconditionError("the job is over");
  }
  for (const membership::Membership::HostView& each : view.hosts) {
    if (each.host.host != host) continue;
    if (each.attached || each.awaited) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("host ", host, " is not there: its agent has not attached, or has left"));
  }
  return absl::NotFoundError(absl::StrCat("no host \"", host, "\" takes part in the job"));
}

void RendezvousService::Handle(const membership::ReplyWorld& effect) {
  calls_.Answer<pb::JoinWorldResponse>(effect.call, [&](pb::JoinWorldResponse& response) {
    pb::World& world = *response.mutable_world();
    const std::vector<membership::WorldMember>& members = effect.world->members;
    world.set_epoch(effect.world->epoch.value());
    world.set_sync_state(effect.world->sync_state);
    // Derived, not stored: after a restart, members that repeat their JoinWorld get the same secret
    // as the others.
    world.set_secret(HmacSha256(options_.secret_key, absl::StrCat(effect.world->epoch.value())));
    world.set_homogeneous(effect.world->homogeneous);
    world.set_encrypt_data(options_.encrypt_data);
    world.set_on_corruption(static_cast<int>(options_.on_corruption));
    if (members.size() <= kMostMembersTold) {
      for (const membership::WorldMember& member : members) ToProto(member, *world.add_members());
      return;
    }
    // A large world: rank 0, to which every member connects, and the caller itself.
    ToProto(members.front(), *world.add_members());
    if (effect.rank != 0) ToProto(members[effect.rank], *world.add_members());
  });
}

void RendezvousService::Handle(const membership::ReplyDeferred& effect) {
  calls_.Answer<pb::JoinWorldResponse>(effect.call, [&](pb::JoinWorldResponse& response) {
    ToProto(effect.member, *response.mutable_deferred()->mutable_member());
  });
}

void RendezvousService::Handle(const membership::ReplyReleased& effect) {
  calls_.Answer<pb::JoinWorldResponse>(effect.call, [&](pb::JoinWorldResponse& response) {
    response.mutable_released()->set_reason(effect.reason);
  });
}

void RendezvousService::Handle(const membership::ReplyWatch& effect) {
  calls_.Answer<pb::WatchEpochResponse>(effect.call, [&](pb::WatchEpochResponse& response) {
    response.set_change(ToProto(effect.change));
    response.set_reason(effect.reason);
  });
}

void RendezvousService::Handle(const membership::ReplyExchange& effect) {
  const std::vector<std::string>& values = *effect.values;
  // Compared once per round: the answers of all members share the values.
  // The cache keeps the values alive, so another round can't have the same address.
  if (effect.values != last_exchange_) {
    last_exchange_ = effect.values;
    last_all_equal_ =
        std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
  }
  calls_.Answer<pb::ExchangeResponse>(effect.call, [&](pb::ExchangeResponse& response) {
    response.set_all_equal(last_all_equal_);
    if (!response.has_selection()) {
      for (const std::string& value : values) response.add_values(value);
    }
    for (const uint32_t rank : response.selection().ranks()) {
      // Ranks come from the caller and are not checked before.
      if (rank < values.size()) response.add_values(values[rank]);
    }
  });
}

void RendezvousService::Handle(const membership::ReplyStatus& effect) {
  calls_.Finish(effect.call, effect.status);
}

void RendezvousService::Close(const absl::Status& status) { calls_.Close(status); }

}  // namespace hvd::rendezvous::server
