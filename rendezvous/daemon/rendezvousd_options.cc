#include "rendezvous/daemon/rendezvousd_options.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/settings/on_corruption.h"
#include "base/settings/runtime_settings.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "base/version.h"
#include "options/elastic_options.h"
#include "options/flag_table.h"

namespace hvd::rendezvous::daemon {
namespace {

constexpr int kMostSlots = 1 << 16;
constexpr int kMostWorkers = 1 << 20;
constexpr int kMostDescriptors = 1 << 20;
constexpr int kWeek = 7 * 86400;
// Longer than horovodrun's: agents are started by users or schedulers, which may take minutes.
constexpr absl::Duration kStartTimeout = absl::Minutes(10);

constexpr char kDescription[] =
    "The rendezvous daemon of one job, for agents that are not started by horovodrun.\n"
    "It prints the addresses it listens on to stdout, one per line, reports the job's events on\n"
    "stderr, and exits with the job's exit code.";

constexpr char kFooter[] =
    "The file of --token-file contains the credentials that agents and workers need, and is\n"
    "secret: only its owner can read it, no two jobs may share it, and it is removed when the job\n"
    "ends. It is a message hvd.pb.Credentials (proto/credentials.proto) in Protobuf's text "
    "format:\n"
    "  token, sent as metadata x-horovod-token with every call;\n"
    "  ca_certificate, certificate and private_key, PEM texts, for mutual TLS with a server whose\n"
    "  certificate has the name horovod-rendezvous.\n"
    "SIGINT (Ctrl-C) ends the job with exit code 130; a second one ends it without a grace.\n"
    "SIGTERM does the same with exit code 143; but with --state-dir it ends only the daemon. When\n"
    "started again with the same options, the daemon resumes the job at the same addresses, as it\n"
    "does after a crash; workers continue to train meanwhile and lose no work. With --etcd a\n"
    "standby daemon on any host resumes the job; give agents the addresses of all daemons:\n"
    "--join host1:7000,host2:7000.";

// Parses "h1:2,h2:2".
absl::StatusOr<std::vector<placement::HostSlots>> ParseHosts(const std::string& text) {
  std::vector<placement::HostSlots> hosts;
  std::set<std::string> names;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    // The last colon: a host may be named by an IPv6 address.
    const size_t colon = entry.rfind(':');
    placement::HostSlots host;
    if (colon == absl::string_view::npos || colon == 0 ||
        !absl::SimpleAtoi(entry.substr(colon + 1), &host.slots) || host.slots < 1 ||
        host.slots > kMostSlots) {
      return absl::InvalidArgumentError(
          absl::StrCat("--hosts: '", entry, "' is not a host with a number of slots, as node1:4"));
    }
    host.host = std::string(entry.substr(0, colon));
    RETURN_IF_ERROR(text::CheckName("--hosts", host.host));
    if (!names.insert(host.host).second) {
      return absl::InvalidArgumentError(absl::StrCat("--hosts: ", host.host, " comes twice"));
    }
    hosts.push_back(std::move(host));
  }
  return hosts;
}

// Parses one command line.
class Parser {
 public:
  Parser() : flags_("horovod-rendezvousd [options]", {}) {
    flags_.Description(kDescription);
    DeclareJob();
    DeclareDaemon();
    DeclareEtcd(flags_, &options_.etcd);
    elastic_.Declare(flags_);
    flags_.Footer(kFooter);
  }

  absl::StatusOr<RendezvousdCommand> Parse(const std::vector<std::string>& args,
                                           const Environment& environment) {
    ASSIGN_OR_RETURN(const options::FlagTable::Result result, flags_.Parse(args));
    if (result.help) return RendezvousdCommand{std::nullopt, flags_.Help(), 0};
    if (version_) return RendezvousdCommand{std::nullopt, absl::StrCat(kVersion, "\n"), 0};
    if (!result.command.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", result.command[0], "' is no option; --help lists all"));
    }
    RETURN_IF_ERROR(Check());
    RETURN_IF_ERROR(SetSizes(environment));
    ASSIGN_OR_RETURN(const settings::RuntimeEnv runtime, settings::ParseRuntimeEnv(environment));
    options_.agent_timeout = runtime.agent_timeout;
    // The variable can turn encryption on, but not off: the stricter of two settings counts.
    options_.job.encrypt_data |= runtime.encrypt_data;
    if (options_.job.elastic.has_value()) {
      options_.job.elastic->on_corruption = on_corruption_.value_or(runtime.on_corruption);
    }
    return RendezvousdCommand{std::move(options_), "", 0};
  }

 private:
  void Text(const std::string& name, const std::string& kind, const std::string& help,
            std::string* target) {
    flags_.Value(name, kind, help, [target](const std::string& text) {
      *target = text;
      return absl::OkStatus();
    });
  }

  void DeclareJob() {
    flags_.Group("Job");
    flags_.Value("--np,--num-proc", "N", "The number of workers at the start of the job",
                 [this](const std::string& text) {
                   ASSIGN_OR_RETURN(np_, options::ParseInteger("-np", text, 1, kMostWorkers));
                   return absl::OkStatus();
                 });
    flags_.SingleDash("--np", "-np");
    flags_.Value("--hosts", "HOST:SLOTS,...",
                 "The hosts that take part, in the order of ranks (default: any host)",
                 [this](const std::string& text) {
                   ASSIGN_OR_RETURN(options_.job.expected_hosts, ParseHosts(text));
                   return absl::OkStatus();
                 });
    flags_.Flag("--keep-host-order",
                "Ranks follow --hosts even if the hosts of a machine are not adjacent there",
                [this] { options_.job.keep_host_order = true; });
    flags_.Value("--start-timeout", "SECONDS", "How long to wait for the first -np slots (600)",
                 [this](const std::string& text) {
                   ASSIGN_OR_RETURN(options_.job.start_timeout,
                                    options::ParseSeconds("--start-timeout", text, 1, kWeek));
                   return absl::OkStatus();
                 });
    options_.job.start_timeout = kStartTimeout;
    flags_.Flag("--encrypt-data", "Use TLS for TCP connections between workers",
                [this] { options_.job.encrypt_data = true; });
    flags_.Value("--on-corruption", "POLICY",
                 "When a commit of an elastic job shows that the state of a rank differs: warn, "
                 "evict, end or off (warn)",
                 [this](const std::string& text) {
                   on_corruption_ = settings::OnCorruptionOf(text);
                   if (on_corruption_.has_value()) return absl::OkStatus();
                   return absl::InvalidArgumentError(
                       absl::StrCat("--on-corruption ", text, ": must be warn, evict, end or off"));
                 });
  }

  void DeclareDaemon() {
    flags_.Group("Daemon");
    flags_.Value("--listen", "ADDR:PORT",
                 "Numeric: 10.0.0.1:0 or [::1]:0; port 0: any free port; repeatable",
                 [this](const std::string& text) {
                   options_.listen.push_back(text);
                   return absl::OkStatus();
                 });
    Text("--token-file", "FILE", "Where to write the credentials", &options_.token_file);
    flags_.Value("--owner", "FD",
                 "A unix socket to the program that starts this daemon: it gets the credentials, "
                 "and the job ends when it closes the socket",
                 [this](const std::string& text) {
                   // From 3 on: 0 to 2 are this daemon's own streams, and stdout is for the
                   // addresses.
                   ASSIGN_OR_RETURN(options_.owner,
                                    options::ParseInteger("--owner", text, 3, kMostDescriptors));
                   return absl::OkStatus();
                 });
    Text("--state-dir", "DIR", "Store the job here, so that a restarted daemon can resume it",
         &options_.state_dir);
    flags_.Value("--reattach-timeout", "SECONDS",
                 "How long agents and workers wait for a restarted daemon (30)",
                 [this](const std::string& text) {
                   has_reattach_timeout_ = true;
                   ASSIGN_OR_RETURN(options_.job.reattach_timeout,
                                    options::ParseSeconds("--reattach-timeout", text, 0, kWeek));
                   return absl::OkStatus();
                 });
    Text("--metrics", "ADDR:PORT", "Serve /metrics, /healthz and /readyz by plain HTTP here",
         &options_.metrics);
    Text("--event-log", "FILE", "Append the job's events, one JSON object per line",
         &options_.event_log);
    flags_.Flag("--version", "Print the version", [this] { version_ = true; });
  }

  absl::Status Check() const {
    if (options_.listen.empty()) {
      return absl::InvalidArgumentError("--listen is missing: at which address? e.g. 10.0.0.1:0");
    }
    if (np_ == 0) return absl::InvalidArgumentError("--np is missing: how many workers?");
    if (options_.owner >= 0 && IsKept()) {
      return absl::InvalidArgumentError(
          "--owner can't be given with --state-dir or --etcd: such a job outlives its owner");
    }
    RETURN_IF_ERROR(CheckEtcd(options_.etcd, options_.listen, !options_.state_dir.empty()));
    if (options_.token_file.empty() && options_.owner < 0) {
      return absl::InvalidArgumentError("--token-file is missing: where to write the credentials?");
    }
    // 64 bits: the list has no limit on the number of hosts.
    int64_t slots = 0;
    for (const placement::HostSlots& host : options_.job.expected_hosts) slots += host.slots;
    if (!options_.job.expected_hosts.empty() && np_ > slots) {
      return absl::InvalidArgumentError(absl::StrCat("-np: ", np_, " workers, but --hosts has ",
                                                     slots, slots == 1 ? " slot" : " slots"));
    }
    if (options_.job.keep_host_order && options_.job.expected_hosts.empty()) {
      return absl::InvalidArgumentError(
          "--keep-host-order needs --hosts, which gives the order of hosts");
    }
    if (has_reattach_timeout_ && !IsKept()) {
      return absl::InvalidArgumentError(
          "--reattach-timeout needs --state-dir or --etcd: without them no daemon comes back");
    }
    return absl::OkStatus();
  }

  bool IsKept() const { return !options_.state_dir.empty() || !options_.etcd.endpoints.empty(); }

  absl::Status SetSizes(const Environment& environment) {
    ASSIGN_OR_RETURN(const std::optional<options::ElasticOptions> elastic,
                     elastic_.Finish(np_, /*lists_hosts=*/false, environment));
    policy::JobSpec& job = options_.job;
    job.min_workers = job.max_workers = np_;
    if (!elastic.has_value()) return absl::OkStatus();
    if (job.keep_host_order) {
      return absl::InvalidArgumentError(
          "--keep-host-order is for jobs of fixed size: ranks of an elastic job change");
    }
    job.min_workers = elastic->min_workers;
    // Without --max-np, the slots of the attached hosts are the limit.
    job.max_workers = elastic->max_workers > 0 ? elastic->max_workers : kMostWorkers;
    job.start_workers = np_;
    job.elastic = elastic->spec;
    return absl::OkStatus();
  }

  options::FlagTable flags_;
  options::ElasticFlags elastic_{/*with_discovery=*/false};
  RendezvousdOptions options_;
  int np_ = 0;
  std::optional<settings::OnCorruption> on_corruption_;
  bool has_reattach_timeout_ = false;
  bool version_ = false;
};

}  // namespace

RendezvousdCommand ParseRendezvousdCommand(const std::vector<std::string>& args,
                                           const Environment& environment) {
  absl::StatusOr<RendezvousdCommand> command = Parser().Parse(args, environment);
  if (command.ok()) return *std::move(command);
  return {std::nullopt,
          absl::StrCat("horovod-rendezvousd: ", text::OnOneLine(command.status().message()), "\n"),
          2};
}

}  // namespace hvd::rendezvous::daemon
