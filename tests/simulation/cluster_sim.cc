#include "tests/simulation/cluster_sim.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/simulation/trace.h"

namespace hvd {
namespace {

// "3" or "1-4"; empty if it is neither.
std::vector<int> ParseWorkers(const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, '-');
  int first = 0;
  int last = 0;
  if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last)) return {};
  std::vector<int> workers;
  for (int worker = first; worker <= last; ++worker) workers.push_back(worker);
  return workers;
}

// "12", or "3:12" for a commit of world 3; 0 if it is neither.
uint64_t ParseCommit(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  uint64_t world = 0;
  uint64_t number = 0;
  if (!absl::SimpleAtoi(parts.back(), &number)) return 0;
  if (parts.size() > 1 && !absl::SimpleAtoi(parts.front(), &world)) return 0;
  return CommitId(world, number);
}

// "a:2,b:1"; empty if it is malformed.
std::optional<std::vector<rendezvous::membership::HostSlots>> ParseHosts(const std::string& text) {
  std::vector<rendezvous::membership::HostSlots> hosts;
  for (const absl::string_view host : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(host, ':');
    int slots = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &slots)) return std::nullopt;
    hosts.push_back({parts[0], slots});
  }
  return hosts;
}

// Reads every option, so that a misspelt one shows as an error.
rendezvous::policy::ElasticSpec ParseElastic(Command& command) {
  rendezvous::policy::ElasticSpec spec;
  spec.spares = static_cast<int>(command.Number("spares"));
  spec.elastic_timeout = command.Time("elastic-timeout", spec.elastic_timeout);
  spec.rejoin_timeout = command.Time("rejoin", spec.rejoin_timeout);
  spec.join_delay = command.Time("join-delay", spec.join_delay);
  spec.drain_grace = command.Time("drain-grace", spec.drain_grace);
  spec.budget.failures = static_cast<int>(command.Number("failures", spec.budget.failures));
  spec.budget.window = command.Time("window", spec.budget.window);
  spec.failures_without_progress =
      static_cast<int>(command.Number("no-progress", spec.failures_without_progress));
  if (command.IsGiven("reset-limit")) {
    spec.reset_limit = static_cast<int>(command.Number("reset-limit"));
  }
  const std::vector<std::string> rests = absl::StrSplit(command.Text("cooldown"), ',');
  rendezvous::policy::Cooldown cooldown;
  if (rests.size() == 2 && absl::ParseDuration(rests[0], &cooldown.shortest) &&
      absl::ParseDuration(rests[1], &cooldown.longest)) {
    spec.cooldown = cooldown;
  }
  return spec;
}

bool IsCall(const std::string& name) {
  return name == "join" || name == "watch" || name == "exchange" || name == "finish" ||
         name == "fail" || name == "stall" || name == "progress";
}

}  // namespace

std::string ClusterSim::Run(Command& command) {
  const std::string& name = command.name();
  if (name == "job") return NewJob(command);
  if (machine_ == nullptr) return "error: there is no job yet";
  if (name == "attach" || name == "lose" || name == "kept" || name == "left") return Hosts(command);
  if (name == "discover" || name == "offer" || name == "drain" || name == "restart" ||
      name == "limits")
    return Outside(command);
  if (name == "advance") return Advance(command);
  if (name == "explain") return machine_->Explain();
  if (name == "status") return ToText(machine_->Describe());
  if (name == "deadline") {
    const absl::Time deadline = machine_->NextDeadline();
    return deadline == absl::InfiniteFuture() ? "none" : absl::FormatDuration(deadline - now_);
  }
  if (name == "cancel") {
    uint64_t call = 0;
    if (command.positional().empty() || !absl::SimpleAtoi(command.positional()[0], &call)) {
      return "error: which call?";
    }
    return Apply(rendezvous::membership::CallCancelled{rendezvous::membership::CallId(call)});
  }
  if (name == "stop") {
    return Apply(rendezvous::membership::StopRequested{
        command.Text("reason", "Ctrl-C"), static_cast<int>(command.Number("code", 130)),
        command.Time("grace", absl::Seconds(5)), command.Has("keeps-world"),
        command.Has("at-commit")});
  }
  if (name == "exit" || name == "started" || name == "dying" || name == "sampled" || IsCall(name))
    return Workers(command);
  return absl::StrCat("error: unknown command ", name);
}

std::string ClusterSim::NewJob(Command& command) {
  rendezvous::policy::JobSpec spec;
  const std::optional<std::vector<rendezvous::membership::HostSlots>> hosts =
      ParseHosts(command.Text("hosts"));
  if (!hosts.has_value()) return "error: hosts=HOST:SLOTS,...";
  spec.expected_hosts = *hosts;
  slots_.clear();
  int all_slots = 0;
  for (const rendezvous::membership::HostSlots& host : *hosts) {
    slots_[host.host] = host.slots;
    all_slots += host.slots;
  }
  const int np = static_cast<int>(command.Number("np", all_slots));
  spec.max_workers = spec.min_workers = np;
  if (command.IsGiven("min") || command.IsGiven("max")) {
    spec.min_workers = static_cast<int>(command.Number("min", 1));
    spec.max_workers = static_cast<int>(command.Number("max", np));
    spec.start_workers = np;
    spec.elastic = ParseElastic(command);
  }
  spec.reattach_timeout = command.Time("reattach", spec.reattach_timeout);
  spec.start_timeout = command.Time("start-timeout", spec.start_timeout);
  spec.settle_time = command.Time("settle", spec.settle_time);
  spec.failure_grace = command.Time("grace", spec.failure_grace);
  machine_ = std::make_unique<rendezvous::membership::Membership>(spec, now_);
  calls_.clear();
  last_world_.clear();
  return "";
}

// Events from outside the job.
std::string ClusterSim::Outside(Command& command) {
  if (command.name() == "restart") return Apply(rendezvous::membership::Restarted{});
  if (command.name() == "limits") {
    return Apply(rendezvous::membership::LimitsChanged{static_cast<int>(command.Number("min", 1)),
                                                       static_cast<int>(command.Number("max", 1))});
  }
  const std::string subject = command.positional().empty() ? "" : command.positional()[0];
  if (command.name() == "drain") {
    return Apply(
        rendezvous::membership::HostDraining{subject, command.Time("grace", absl::ZeroDuration()),
                                             command.Text("reason"), command.Has("at-once")});
  }
  const std::optional<std::vector<rendezvous::membership::HostSlots>> hosts = ParseHosts(subject);
  if (!hosts.has_value()) return "error: discover HOST:SLOTS,...";
  if (command.name() == "offer") {
    return Apply(rendezvous::membership::HostsDiscovered{*hosts, /*is_offer=*/true});
  }
  for (const rendezvous::membership::HostSlots& host : *hosts) slots_[host.host] = host.slots;
  return Apply(rendezvous::membership::HostsDiscovered{*hosts});
}

std::string ClusterSim::Hosts(Command& command) {
  std::vector<WorkerId> known;
  for (const absl::string_view text :
       absl::StrSplit(command.Text("known"), ',', absl::SkipEmpty())) {
    uint64_t worker = 0;
    if (!absl::SimpleAtoi(text, &worker)) return "error: known=WORKER,...";
    known.push_back(WorkerId(worker));
  }
  std::string output;
  for (const std::string& host : command.positional()) {
    const Incarnation agent(command.Number("agent", host[0]));
    if (command.name() == "attach") {
      const int slots = static_cast<int>(command.Number("slots", slots_[host]));
      output += Apply(
          rendezvous::membership::HostJoined{{host, slots, command.Text("machine")},
                                             agent,
                                             known,
                                             "",
                                             command.Text("copies").empty() ? "" : host + ":1",
                                             ParseCommit(command.Text("commit"))});
    } else if (command.name() == "kept") {
      output += Apply(rendezvous::membership::CommitKept{host, ParseCommit(command.Text("commit")),
                                                         command.Text("failure")});
    } else if (command.name() == "left") {
      output +=
          Apply(rendezvous::membership::CommitLeft{host, ParseCommit(command.Text("commit"))});
    } else {
      output += Apply(rendezvous::membership::HostLost{
          host, agent, command.Text("reason", "connection closed")});
    }
  }
  return output;
}

std::string ClusterSim::Workers(Command& command) {
  if (command.positional().empty()) return "error: which worker?";
  const std::vector<int> workers = ParseWorkers(command.positional()[0]);
  if (workers.empty()) return "error: which worker?";
  std::string output;
  for (const int worker : workers) output += Apply(WorkerEvent(command, worker));
  return output;
}

rendezvous::membership::Event ClusterSim::WorkerEvent(Command& command, int worker) {
  if (command.name() == "exit") return ExitEvent(command, worker);
  if (command.name() == "dying") return rendezvous::membership::WorkerDying{WorkerId(worker)};
  if (command.name() == "sampled") {
    return rendezvous::membership::WorkerSampled{
        WorkerId(worker), command.Text("doing"),
        absl::StrSplit(command.Text("stack"), '|', absl::SkipEmpty())};
  }
  if (command.name() == "started")
    return rendezvous::membership::WorkerStarted{WorkerId(worker), command.Number("pid")};
  return CallEvent(command, worker);
}

rendezvous::membership::Event ClusterSim::ExitEvent(Command& command, int worker) {
  rendezvous::membership::WorkerExited exited;
  exited.worker = WorkerId(worker);
  exited.exit_code = static_cast<int>(command.Number("code"));
  exited.signal = static_cast<int>(command.Number("signal"));
  exited.core_dumped = command.Has("core");
  exited.out_of_memory = command.Has("oom");
  exited.start_error = command.Text("start-error");
  exited.stderr_tail = absl::StrSplit(command.Text("tail"), '|', absl::SkipEmpty());
  return exited;
}

rendezvous::membership::Event ClusterSim::ProgressEvent(Command& command,
                                                        rendezvous::membership::CallId call,
                                                        rendezvous::membership::WorkerKey key) {
  rendezvous::membership::ProgressReported report{call, key, Epoch(command.Number("epoch")),
                                                  ParseCommit(command.Text("commit")),
                                                  command.Time("age", absl::ZeroDuration())};
  if (command.IsGiven("began")) report.began_with = ParseCommit(command.Text("began"));
  if (command.IsGiven("checkpoint") || command.IsGiven("failure")) {
    report.checkpoints = {ParseCommit(command.Text("checkpoint")),
                          command.Time("checkpoint-age", absl::InfiniteDuration()), "/c",
                          command.Text("failure")};
  }
  return report;
}

rendezvous::membership::Event ClusterSim::CallEvent(Command& command, int worker) {
  const std::string& name = command.name();
  const rendezvous::membership::CallId call(calls_.size() + 1);
  calls_[call] = absl::StrCat(name, " ", worker);
  const rendezvous::membership::WorkerKey key{WorkerId(worker),
                                              Incarnation(command.Number("inc", 100 * worker))};
  if (name == "join") {
    return rendezvous::membership::JoinRequested{
        call,
        key,
        Epoch(command.Number("last")),
        absl::StrCat("10.0.0.", worker),
        4000 + worker,
        command.Has("defer"),
        ParseCommit(command.Text("commit")),
        command.Has("worked"),
        command.Text("left-for"),
        static_cast<uint64_t>(command.Number("lost-steps")),
        command.Time("lost", absl::ZeroDuration()),
        command.Has("by-peer"),
        command.IsGiven("unreached") ? std::optional<int>(command.Number("unreached"))
                                     : std::nullopt,
        command.Has("anew")};
  }
  if (name == "progress") {
    return ProgressEvent(command, call, key);
  }
  if (name == "watch") {
    return rendezvous::membership::WatchRequested{call, key, Epoch(command.Number("epoch")),
                                                  command.Has("knows")};
  }
  if (name == "stall") {
    rendezvous::membership::StallReported report{call,
                                                 key,
                                                 Epoch(command.Number("epoch")),
                                                 command.Time("waited", absl::Seconds(60)),
                                                 command.Has("give-up"),
                                                 {}};
    const std::string missing = command.Text("missing");
    report.waiting = {{command.Text("what", "allreduce 'a'"), ParseWorkers(missing)}};
    return report;
  }
  if (name != "exchange") return ReportEvent(command, key);
  const int64_t bytes = command.Number("bytes");
  const std::string value = command.Text("value", absl::StrCat("from-", worker));
  return rendezvous::membership::ExchangeRequested{call, key, Epoch(command.Number("epoch")),
                                                   command.Text("key"),
                                                   bytes == 0 ? value : std::string(bytes, 'x')};
}

rendezvous::membership::Event ClusterSim::ReportEvent(
    Command& command, const rendezvous::membership::WorkerKey& key) {
  const rendezvous::membership::CallId call(calls_.size());
  const Epoch epoch(command.Number("epoch"));
  if (command.name() == "finish")
    return rendezvous::membership::Reported{call, key, epoch, true, "", false};
  return rendezvous::membership::Reported{call,
                                          key,
                                          epoch,
                                          false,
                                          command.Text("message", "Error"),
                                          command.Has("by-peer"),
                                          ParseCommit(command.Text("commit")),
                                          command.Has("ends-job")};
}

// Ticks at every deadline on the way, as the loop around the machine does.
std::string ClusterSim::Advance(Command& command) {
  absl::Duration duration;
  if (command.positional().empty() || !absl::ParseDuration(command.positional()[0], &duration)) {
    return "error: how long?";
  }
  const absl::Time end = now_ + duration;
  std::string output;
  while (machine_->NextDeadline() <= end) {
    absl::StrAppend(&output, "after ", absl::FormatDuration(machine_->NextDeadline() - now_),
                    ":\n");
    now_ = machine_->NextDeadline();
    output += Apply(rendezvous::membership::Tick{});
    if (machine_->NextDeadline() <= now_) return output + "error: the deadline does not move\n";
  }
  now_ = end;
  return output + Apply(rendezvous::membership::Tick{});
}

std::string ClusterSim::Apply(const rendezvous::membership::Event& event) {
  std::string output;
  for (const rendezvous::membership::Effect& effect : machine_->Apply(event, now_))
    output += Show(effect);
  const std::string broken = machine_->Check();
  if (!broken.empty()) absl::StrAppend(&output, "inconsistent: ", broken, "\n");
  return output;
}

std::string ClusterSim::Show(const rendezvous::membership::Effect& effect) {
  const std::optional<rendezvous::membership::CallId> call = AnsweredCall(effect);
  std::string text = ToText(effect);
  if (!call.has_value()) return absl::StrCat(text, "\n");
  if (std::holds_alternative<rendezvous::membership::ReplyWorld>(effect)) {
    if (std::exchange(last_world_, text) == text) text = "the same world";
  }
  return absl::StrCat("call ", call->value(), " (", calls_[*call],
                      "): ", absl::StripSuffix(text, "\n"), "\n");
}

}  // namespace hvd
