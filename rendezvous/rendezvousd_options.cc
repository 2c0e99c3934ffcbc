#include "rendezvous/rendezvousd_options.h"

#include <cmath>
#include <set>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/version.h"

namespace hvd {
namespace {

constexpr int kMostSlots = 1 << 16;
constexpr int kMostWorkers = 1 << 20;
constexpr double kLongestSeconds = 7 * 86400;
// People and schedulers start the agents, and not in a hurry.
constexpr absl::Duration kStartTimeout = absl::Minutes(10);

constexpr char kDescription[] =
    "The rendezvous daemon of one job, for agents that something other than horovodrun starts.\n"
    "It prints the addresses it listens on, one a line, and ends with the job's exit code.";

constexpr char kFooter[] =
    "The file of --token-file is what an agent or worker needs to take part, and a secret: it is\n"
    "readable by its owner only, must not be another job's, and is removed when the job ends. It "
    "is a\n"
    "message hvd.pb.Credentials (proto/agent.proto) in Protobuf's text format:\n"
    "  token, sent as metadata x-horovod-token with every call;\n"
    "  ca_certificate, certificate and private_key, PEM texts, for mutual TLS with a server whose\n"
    "  certificate carries the name horovod-rendezvous.\n"
    "SIGTERM or Ctrl-C ends the job with code 143 or 130; a second one ends it at once.\n"
    "With --state-dir a daemon that was killed can be started again with the same options: it "
    "serves\n"
    "the same job at the same addresses, and workers that went on meanwhile keep their work.";

// As given; what was not given is as it is here, or counted in `app`.
struct Given {
  std::vector<std::string> listen;
  int np = 0;
  int min_np = 0;  // 0: not given
  int max_np = 0;  // 0: not given
  std::string hosts;
  int spares = 0;
  double elastic_timeout = 600;
  int reset_limit = -1;  // -1: not given
  std::string max_failures;
  double grace = 30;
  double reattach_timeout = 30;
  std::string state_dir;
  std::string token_file;
  std::string metrics;
  std::string event_log;
};

absl::Status Invalid(absl::string_view text) { return absl::InvalidArgumentError(text); }

void DeclareJob(CLI::App& app, Given& given) {
  app.add_option("--listen", given.listen,
                 "a numeric address and port, as 10.0.0.1:0 or [::1]:0; port 0: a free one; may be "
                 "repeated")
      ->required()
      ->type_name("ADDR:PORT");
  app.add_option("--np", given.np, "how many workers the job starts with; also -np")
      ->required()
      ->type_name("N");
  app.add_option("--hosts", given.hosts,
                 "the hosts that take part and their slots, in the order of ranks; without it, "
                 "whoever comes")
      ->type_name("HOST:SLOTS,...");
  app.add_option("--token-file", given.token_file, "where to write the credentials")
      ->required()
      ->type_name("FILE");
  app.add_option("--state-dir", given.state_dir,
                 "keep the job here, so that the daemon can be started again")
      ->type_name("DIR");
  app.add_option("--reattach-timeout", given.reattach_timeout,
                 "how long agents and workers wait for a daemon that is away (30); with "
                 "--state-dir")
      ->type_name("SECONDS");
  app.add_option("--metrics", given.metrics,
                 "serve /metrics, /healthz and /readyz by plain HTTP at this numeric address")
      ->type_name("ADDR:PORT");
  app.add_option("--event-log", given.event_log, "append what happens to the job, as JSON lines")
      ->type_name("FILE");
}

void DeclareElastic(CLI::App& app, Given& given) {
  const std::string group = "Elastic jobs (with --min-np or --max-np)";
  app.add_option("--min-np", given.min_np, "go on with no fewer workers than these (--np)")
      ->type_name("N")
      ->group(group);
  app.add_option("--max-np", given.max_np, "never use more than these (all slots there are)")
      ->type_name("N")
      ->group(group);
  app.add_option("--spares", given.spares, "beyond --max-np, keep so many ready to step in (0)")
      ->type_name("N")
      ->group(group);
  app.add_option("--elastic-timeout", given.elastic_timeout,
                 "for --min-np workers to be there again (600)")
      ->type_name("SECONDS")
      ->group(group);
  app.add_option("--reset-limit", given.reset_limit, "end the job after so many new worlds")
      ->type_name("N")
      ->group(group);
  app.add_option("--max-failures", given.max_failures,
                 "forgive so many failures within a time (20/10m)")
      ->type_name("N/TIME")
      ->group(group);
  app.add_option("--grace", given.grace, "for a host that leaves to end its work (30)")
      ->type_name("SECONDS")
      ->group(group);
}

// "h1:2,h2:2"
absl::Status ParseHosts(const std::string& text, std::vector<HostSlots>& hosts) {
  std::set<std::string> names;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    const size_t colon = entry.rfind(':');
    HostSlots host;
    if (colon == absl::string_view::npos || colon == 0 ||
        !absl::SimpleAtoi(entry.substr(colon + 1), &host.slots) || host.slots < 1 ||
        host.slots > kMostSlots) {
      return Invalid(absl::StrCat("--hosts: \"", entry,
                                  "\" is not a host with a number of slots, as node1:4"));
    }
    host.host = std::string(entry.substr(0, colon));
    if (!names.insert(host.host).second) {
      return Invalid(absl::StrCat("--hosts: ", host.host, " comes twice"));
    }
    hosts.push_back(std::move(host));
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> ParseSeconds(const CLI::App& app, const std::string& name,
                                            double seconds) {
  if (std::isfinite(seconds) && seconds >= 0 && seconds <= kLongestSeconds) {
    return absl::Seconds(seconds);
  }
  return Invalid(absl::StrCat(name, ": ", app.get_option(name)->results()[0],
                              " is not a number of seconds from 0 to ", kLongestSeconds));
}

absl::Status ParseFailures(const std::string& text, FailureBudget& budget) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('/', 1));
  if (!absl::SimpleAtoi(parts.first, &budget.failures) || budget.failures < 0 ||
      !absl::ParseDuration(parts.second, &budget.window) || budget.window <= absl::ZeroDuration()) {
    return Invalid(absl::StrCat("--max-failures: \"", text,
                                "\" is not a number of failures and a time, as 5/10m"));
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const CLI::App& app, const Given& given,
                        const std::vector<HostSlots>& hosts) {
  const std::pair<const char*, int> counts[] = {
      {"--np", given.np}, {"--min-np", given.min_np}, {"--max-np", given.max_np}};
  for (const auto& [name, count] : counts) {
    if (app.count(name) > 0 && (count < 1 || count > kMostWorkers)) {
      return Invalid(absl::StrCat(name, ": ", count, " workers are no job; at least 1"));
    }
  }
  if (given.min_np > given.np) {
    return Invalid(
        absl::StrCat("--min-np (", given.min_np, ") must not be more than --np (", given.np, ")"));
  }
  if (given.max_np > 0 && given.max_np < given.np) {
    return Invalid(
        absl::StrCat("--max-np (", given.max_np, ") must not be less than --np (", given.np, ")"));
  }
  int64_t slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  if (!hosts.empty() && given.np > slots) {
    return Invalid(absl::StrCat("--np: ", given.np, " workers, but --hosts has ", slots, " slots"));
  }
  return absl::OkStatus();
}

absl::StatusOr<ElasticSpec> MakeElastic(const CLI::App& app, const Given& given) {
  ElasticSpec spec;
  if (given.spares < 0 || given.spares > kMostWorkers) {
    return Invalid(absl::StrCat("--spares: ", given.spares, " is no number of workers"));
  }
  if (given.spares > 0 && given.max_np == 0) {
    return Invalid("--spares needs --max-np: without a limit every slot is in use");
  }
  spec.spares = given.spares;
  ASSIGN_OR_RETURN(spec.elastic_timeout,
                   ParseSeconds(app, "--elastic-timeout", given.elastic_timeout));
  ASSIGN_OR_RETURN(spec.drain_grace, ParseSeconds(app, "--grace", given.grace));
  if (app.count("--max-failures") > 0) {
    RETURN_IF_ERROR(ParseFailures(given.max_failures, spec.budget));
  }
  if (app.count("--reset-limit") > 0) {
    if (given.reset_limit < 0) {
      return Invalid(absl::StrCat("--reset-limit: ", given.reset_limit, " is less than 0"));
    }
    spec.reset_limit = given.reset_limit;
  }
  return spec;
}

absl::StatusOr<RendezvousdOptions> Check(const CLI::App& app, Given given) {
  RendezvousdOptions options;
  JobSpec& job = options.job;
  if (app.count("--hosts") > 0) RETURN_IF_ERROR(ParseHosts(given.hosts, job.expected_hosts));
  RETURN_IF_ERROR(CheckSizes(app, given, job.expected_hosts));
  job.start_timeout = kStartTimeout;
  job.min_workers = job.max_workers = given.np;
  if (given.min_np > 0 || given.max_np > 0) {
    if (given.min_np > 0) job.min_workers = given.min_np;
    job.max_workers = given.max_np > 0 ? given.max_np : kMostWorkers;
    job.start_workers = given.np;
    ASSIGN_OR_RETURN(job.elastic, MakeElastic(app, given));
  } else {
    for (const char* name :
         {"--spares", "--elastic-timeout", "--reset-limit", "--max-failures", "--grace"}) {
      if (app.count(name) == 0) continue;
      return Invalid(
          absl::StrCat(name, " is for elastic jobs; --min-np or --max-np makes this one elastic"));
    }
  }
  if (app.count("--reattach-timeout") > 0 && given.state_dir.empty()) {
    return Invalid("--reattach-timeout needs --state-dir: without it no daemon comes back");
  }
  ASSIGN_OR_RETURN(job.reattach_timeout,
                   ParseSeconds(app, "--reattach-timeout", given.reattach_timeout));
  for (const char* name : {"--token-file", "--state-dir", "--metrics", "--event-log"}) {
    if (app.count(name) > 0 && app.get_option(name)->results()[0].empty()) {
      return Invalid(absl::StrCat(name, " must not be empty"));
    }
  }
  options.listen = std::move(given.listen);
  options.token_file = std::move(given.token_file);
  options.state_dir = std::move(given.state_dir);
  options.metrics = std::move(given.metrics);
  options.event_log = std::move(given.event_log);
  return options;
}

RendezvousdCommand Refuse(absl::string_view why) {
  return {std::nullopt,
          absl::StrCat("horovod-rendezvousd: ", absl::StrReplaceAll(why, {{"\n", " "}}), "\n"), 2};
}

}  // namespace

RendezvousdCommand ParseRendezvousdCommand(int argc, const char* const* argv) {
  Given given;
  CLI::App app(kDescription, "horovod-rendezvousd");
  app.footer(kFooter);
  app.set_version_flag("--version", kVersion);
  DeclareJob(app, given);
  DeclareElastic(app, given);
  // The parser wants them last first; and it knows no names of two letters with one dash.
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    arguments.push_back(absl::string_view(argv[i]) == "-np" ? "--np" : argv[i]);
  }
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForVersion& version) {
    return {std::nullopt, absl::StrCat(version.what(), "\n"), 0};
  } catch (const CLI::CallForHelp&) {
    return {std::nullopt, app.help(), 0};
  } catch (const CLI::ParseError& error) {
    return Refuse(error.what());
  }
  absl::StatusOr<RendezvousdOptions> options = Check(app, std::move(given));
  if (!options.ok()) return Refuse(options.status().message());
  return {*std::move(options), "", 0};
}

}  // namespace hvd
