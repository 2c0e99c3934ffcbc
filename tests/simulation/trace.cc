#include "tests/simulation/trace.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace hvd {

std::string CommitText(uint64_t commit) {
  const uint64_t world = CommitWorld(commit);
  return absl::StrCat(CommitNumber(commit), world == 0 ? "" : absl::StrCat(" of world ", world));
}

namespace {

struct CallOf {
  std::optional<rendezvous::membership::CallId> operator()(
      const rendezvous::membership::ReplyWorld& reply) {
    return reply.call;
  }
  std::optional<rendezvous::membership::CallId> operator()(
      const rendezvous::membership::ReplyDeferred& reply) {
    return reply.call;
  }
  std::optional<rendezvous::membership::CallId> operator()(
      const rendezvous::membership::ReplyReleased& reply) {
    return reply.call;
  }
  std::optional<rendezvous::membership::CallId> operator()(
      const rendezvous::membership::ReplyWatch& reply) {
    return reply.call;
  }
  std::optional<rendezvous::membership::CallId> operator()(
      const rendezvous::membership::ReplyExchange& reply) {
    return reply.call;
  }
  std::optional<rendezvous::membership::CallId> operator()(
      const rendezvous::membership::ReplyStatus& reply) {
    return reply.call;
  }
  template <typename Other>
  std::optional<rendezvous::membership::CallId> operator()(const Other&) {
    return std::nullopt;
  }
};

std::string MemberText(const rendezvous::membership::WorldMember& m) {
  return absl::StrCat("  rank ", m.place.rank, ": worker ", m.worker.id.value(), ".",
                      m.worker.incarnation.value(), " on ", m.host, " at ", m.address, ":", m.port,
                      ", local ", m.place.local_rank, "/", m.place.local_size, ", cross ",
                      m.place.cross_rank, "/", m.place.cross_size,
                      m.commit == 0 ? "" : absl::StrCat(", commit ", CommitText(m.commit)), "\n");
}

struct Text {
  std::string operator()(const rendezvous::membership::StartWorkerEffect& e) {
    return absl::StrCat("start worker ", e.worker.value(), " on ", e.host, ": rank ", e.place.rank,
                        "/", e.place.size, ", local ", e.place.local_rank, "/", e.place.local_size,
                        ", cross ", e.place.cross_rank, "/", e.place.cross_size);
  }
  std::string operator()(const rendezvous::membership::StopWorkersEffect& e) {
    const auto id = [](std::string* out, WorkerId worker) { absl::StrAppend(out, worker.value()); };
    return absl::StrCat("stop on ", e.host, ": workers ", absl::StrJoin(e.workers, ", ", id),
                        ", grace ", absl::FormatDuration(e.grace));
  }
  std::string operator()(const rendezvous::membership::SampleWorkerEffect& e) {
    return absl::StrCat("sample worker ", e.worker.value(), " on ", e.host);
  }
  std::string operator()(const rendezvous::membership::KeepCommitsEffect& e) {
    if (e.from_address.empty()) return absl::StrCat(e.host, " drops its copy");
    return absl::StrCat(e.host, " keeps copies of the commits of ", e.from);
  }
  std::string operator()(const rendezvous::membership::HoldHostEffect& e) {
    return absl::StrCat("hold ", e.host, e.took_part ? ", which took part" : "");
  }
  std::string operator()(const rendezvous::membership::EndJobEffect& e) {
    return absl::StrCat("end job on ", e.host, ", grace ", absl::FormatDuration(e.grace));
  }
  std::string operator()(const rendezvous::membership::ReplyWorld& e) {
    std::string text = absl::StrCat("world of epoch ", e.world->epoch.value(),
                                    e.world->sync_state ? "" : ", all have its state", "\n");
    for (const rendezvous::membership::WorldMember& member : e.world->members)
      text += MemberText(member);
    return text;
  }
  std::string operator()(const rendezvous::membership::ReplyDeferred& e) {
    return absl::StrCat("deferred, of ", e.member.place.size, "\n", MemberText(e.member));
  }
  std::string operator()(const rendezvous::membership::ReplyReleased& e) {
    return absl::StrCat("released: ", e.reason);
  }
  std::string operator()(const rendezvous::membership::Notice& e) {
    return absl::StrCat("notice: ", e.text);
  }
  std::string operator()(const rendezvous::membership::ReplyWatch& e) {
    switch (e.change) {
      case rendezvous::membership::EpochChange::kBroken:
        return absl::StrCat("epoch broken: ", e.reason);
      case rendezvous::membership::EpochChange::kChanging:
        return absl::StrCat("epoch changing: ", e.reason);
      case rendezvous::membership::EpochChange::kJobOver:
        return absl::StrCat("job over: ", e.reason);
    }
    return "unknown change";
  }
  std::string operator()(const rendezvous::membership::ReplyExchange& e) {
    return absl::StrCat("values ", absl::StrJoin(*e.values, ", "));
  }
  std::string operator()(const rendezvous::membership::ReplyStatus& e) {
    return e.status.ToString();
  }
  std::string operator()(const rendezvous::membership::JobFinished& e) {
    const rendezvous::membership::Verdict& v = e.verdict;
    std::string text = absl::StrCat("JOB FINISHED: ", v.success ? "success" : "failure",
                                    ", exit code ", v.exit_code, ": ", v.summary);
    if (v.rank >= 0) {
      absl::StrAppend(&text, "\n  cause: rank ", v.rank, " on ", v.host, ", ", v.exit_meaning);
    }
    if (v.rank < 0 && !v.host.empty()) absl::StrAppend(&text, "\n  cause: host ", v.host);
    if (!v.exception.empty()) absl::StrAppend(&text, "\n  exception: ", v.exception);
    for (const std::string& line : v.stderr_tail) absl::StrAppend(&text, "\n  stderr: ", line);
    if (v.consequences > 0) absl::StrAppend(&text, "\n  consequences: ", v.consequences);
    return text;
  }
};

}  // namespace

std::optional<rendezvous::membership::CallId> AnsweredCall(
    const rendezvous::membership::Effect& effect) {
  return std::visit(CallOf(), effect);
}

std::string ToText(const rendezvous::membership::Effect& effect) {
  return std::visit(Text(), effect);
}

std::string ToText(const rendezvous::membership::Membership::View& view) {
  std::string text = absl::StrCat(StateName(view.state), ", epoch ", view.epoch.value(), ": ",
                                  view.explanation, "\n");
  if (view.commit > 0) absl::StrAppend(&text, "  commit ", view.commit, "\n");
  if (view.lost_time > absl::ZeroDuration()) {
    absl::StrAppend(&text, "  lost ", view.lost_steps, " steps, ",
                    absl::FormatDuration(view.lost_time), "\n");
  }
  for (const rendezvous::membership::Membership::HostView& host : view.hosts) {
    absl::StrAppend(&text, "  host ", host.host.host, ", slots ", host.host.slots,
                    host.host.machine.empty() ? "" : absl::StrCat(", machine ", host.host.machine),
                    host.attached ? ", attached" : ", not attached",
                    host.condition.empty() ? "" : absl::StrCat(", ", host.condition), "\n");
    for (const rendezvous::membership::Membership::WorkerView& worker : host.workers) {
      absl::StrAppend(&text, "    worker ", worker.id.value(), ", rank ", worker.rank, ", pid ",
                      worker.pid, ", ", StateName(worker.state), "\n");
    }
  }
  return text;
}

}  // namespace hvd
