// How the machine explains itself.
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/membership/membership_state.h"
#include "rendezvous/membership/phrases.h"

namespace hvd {
namespace {

std::string RanksRun(size_t count) {
  return absl::StrCat(count, count == 1 ? " rank runs" : " ranks run");
}

}  // namespace

std::string Membership::State::Explain() const {
  const std::vector<int> live = RanksWhere([](const Worker& w) { return !w.gone; });
  if (finished) return verdict->summary;
  if (verdict.has_value()) {
    return absl::StrCat(verdict->summary, "; waiting for ", Ranks(live), " to exit");
  }
  if (!started) return absl::StrCat("waiting for ", MissingText());
  if (failures.HasEnd()) {
    return absl::StrCat(failures.Build().summary, "; waiting for its cause to show");
  }
  const std::vector<int> to_ask =
      RanksWhere([](const Worker& w) { return !w.gone && !w.join.has_value(); });
  const size_t asked = live.size() - to_ask.size();
  if (asked > 0) {
    return absl::StrCat("waiting for ", Ranks(to_ask), " to call hvd.init() (", asked, " of ",
                        workers.size(), ")");
  }
  const size_t exited = workers.size() - live.size();
  if (epoch == Epoch(0)) {
    return absl::StrCat(RanksRun(live.size()), ", none has called hvd.init()",
                        exited == 0 ? "" : absl::StrCat("; ", exited, " exited with code 0"));
  }
  if (broken.has_value()) return absl::StrCat("epoch ", epoch.value(), " is broken: ", *broken);
  const size_t inside = RanksWhere([](const Worker& w) { return w.in_epoch; }).size();
  const size_t left = workers.size() - inside;
  if (inside == 0) {
    return absl::StrCat("all ranks finished epoch ", epoch.value(), "; waiting for ", Ranks(live),
                        " to exit");
  }
  return absl::StrCat(RanksRun(inside), " in epoch ", epoch.value(),
                      left == 0 ? "" : absl::StrCat("; ", left, " finished"));
}

Membership::View Membership::State::Describe() const {
  View view;
  view.epoch = epoch;
  view.state = StateName();
  view.explanation = Explain();
  for (const Host& host : hosts) {
    HostView host_view;
    host_view.host = host.slots;
    host_view.attached = host.agent.has_value();
    for (const Worker& worker : workers) {
      if (&HostOf(worker) != &host) continue;
      host_view.workers.push_back(
          WorkerView{worker.id, worker.place.rank, worker.pid, StateName(worker)});
    }
    view.hosts.push_back(std::move(host_view));
  }
  return view;
}

std::string Membership::State::StateName() const {
  if (verdict.has_value()) return verdict->success ? "done" : "failed";
  const bool somebody_asks =
      !RanksWhere([](const Worker& w) { return w.join.has_value(); }).empty();
  return epoch == Epoch(0) || somebody_asks ? "forming" : "running";
}

std::string Membership::State::StateName(const Worker& worker) const {
  if (worker.gone) return worker.failed ? "failed" : "finished";
  if (worker.join.has_value()) return "joining";
  if (worker.in_epoch) return "running";
  return epoch == Epoch(0) ? "starting" : "finished";
}

}  // namespace hvd
